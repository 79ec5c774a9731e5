//! Words by which keys are classified. All are folded to small letters and digits, so that `X-Api-Key`, `apiKey` and
//! `api_key` are equal. Letters of other scripts are kept.

/// Keys whose value is a confirmation token.
#[rustfmt::skip]
pub(super) const TOKEN_KEYS: [&str; 3] = ["token", "confirmationtoken", "quotatoken"];

/// A key that contains one of these holds a secret. Some are words of other languages. The list is sorted.
#[rustfmt::skip]
pub(super) const SECRET_PARTS: [&str; 119] = [
    "accesskey", "accesstoken", "accountkey", "adgangskode", "amzsignature", "apikey", "apischluessel",
    "apischlüssel", "apitoken", "appkey", "aspnetsessionid", "aspxauth", "authkey", "authorisation",
    "authorization", "authtoken", "backupcode", "bearertoken", "cardnumber", "ccnumber", "chaveapi",
    "chiaveapi", "claveapi", "clavesecreta", "cleapi", "cléapi", "connectsid", "contrasena", "contrasenya",
    "contraseña", "cookie", "credential", "creditcard", "csrf", "decryptionkey", "encryptionkey",
    "geheimnis", "gitlabsession", "googsignature", "haslo", "hasło", "heslo", "hmackey", "hubsignature",
    "idtoken", "jelszo", "jelszó", "jsessionid", "katasandi", "kennwort", "losenord", "lösenord",
    "masterkey", "matkhau", "mnemonic", "motdepasse", "mậtkhẩu", "onetimecode", "onetimepass", "otpcode",
    "palavrapasse", "passcode", "passkey", "passord", "passphrase", "passwd", "password", "passwort",
    "passwrd", "pasword", "pgpass", "phpsessid", "privatekey", "privkey", "recoverycode", "recoveryphrase",
    "refreshtoken", "salasana", "secret", "seedphrase", "senha", "servicekey", "servicerolekey",
    "sessionkey", "sessiontoken", "sharedaccesskey", "sharedaccesssignature", "sharedkey", "sifre",
    "signingkey", "storagekey", "totp", "verificationcode", "wachtwoord", "webhooksecret", "xsrf",
    "zugangsdaten", "şifre", "ПАРОЛЬ", "Пароль", "Секрет", "Токен", "пароль", "секрет", "токен", "סיסמה",
    "كلمةالمرور", "トークン", "パスワード", "令牌", "口令", "密码", "密碼", "密钥", "暗証番号", "秘密鍵", "비밀번호", "비밀키", "토큰",
];

/// Words that indicate a secret as the whole key or as its last part: `pwd`, `DB_PASS`, `smtpAuth`.
#[rustfmt::skip]
pub(super) const SECRET_WORDS: [&str; 17] = [
    "pwd", "pass", "jwt", "bearer", "auth", "otp", "psw", "pswd", "psk", "pword", "creds", "cred", "mdp",
    "parola", "clave", "cvv", "cvc",
];

/// Words that indicate a secret only as the whole key.
#[rustfmt::skip]
pub(super) const SECRET_WHOLE: [&str; 6] = ["pin", "pw", "cvv2", "passw", "userpwd", "token2fa"];

/// Endings of keys that describe a secret without containing it: `secret_name`, `api_key_id`, `password_policy`.
#[rustfmt::skip]
pub(super) const HARMLESS_ENDINGS: [&str; 97] = [
    "name", "names", "id", "ids", "policy", "policies", "type", "types", "required", "length", "count",
    "expired", "scope", "scopes", "method", "methods", "status", "url", "uri", "urls", "endpoint", "path",
    "paths", "file", "filename", "dir", "arn", "version", "versions", "expiry", "expires", "expiresat",
    "expiresin", "expiration", "ttl", "age", "min", "max", "attempts", "attempt", "retries", "manager",
    "store", "provider", "format", "algorithm", "alg", "hint", "label", "rotation", "rotated", "enabled",
    "disabled", "exists", "valid", "invalid", "present", "missing", "updated", "updatedat", "createdat",
    "changed", "changedat", "strength", "rules", "regex", "field", "fields", "source", "index", "ref",
    "reference", "domain", "consent", "error", "errors", "reason", "message", "description", "server",
    "group", "user", "username", "role", "mode", "state", "level", "size", "bytes", "limit", "usage", "used",
    "remaining", "lastused", "failed", "failures", "reset",
];

/// Endings of keys for tokens that are not credentials: positions, counts and tokens of a language.
#[rustfmt::skip]
pub(super) const HARMLESS_TOKENS: [&str; 24] = [
    "progresstoken", "pagetoken", "nexttoken", "continuationtoken", "synctoken", "canceltoken",
    "cancellationtoken", "paginationtoken", "cursortoken", "resumetoken", "pertoken", "firsttoken",
    "lasttoken", "unexpectedtoken", "stoptoken", "eostoken", "bostoken", "padtoken", "masktoken",
    "specialtoken", "maxtoken", "inputtoken", "outputtoken", "prevtoken",
];

/// Last parts of keys whose value is a secret if it looks randomly generated.
#[rustfmt::skip]
pub(super) const RANDOM_ENDINGS: [&str; 12] = [
    "key", "sig", "signature", "hmac", "session", "sess", "ticket", "assertion", "samlresponse", "salt",
    "authcode", "pat",
];

/// Endings of keys whose values are names and numbers of things.
#[rustfmt::skip]
pub(super) const HARMLESS_KEYS: [&str; 40] = [
    "cachekey", "sortkey", "partitionkey", "primarykey", "foreignkey", "idempotencykey", "routingkey",
    "publickey", "pubkey", "objectkey", "s3key", "hotkey", "rowkey", "groupkey", "dedupkey",
    "deduplicationkey", "lookupkey", "mapkey", "metrickey", "messagekey", "recordkey", "issuekey",
    "projectkey", "ticketkey", "translationkey", "i18nkey", "hashkey", "rangekey", "uniquekey", "indexkey",
    "shardkey", "statekey", "eventkey", "filekey", "configkey", "settingkey", "rediskey", "lockkey",
    "correlationkey", "querykey",
];

/// Query parameters whose value is a secret if it looks randomly generated.
#[rustfmt::skip]
pub(super) const QUERY_KEYS: [&str; 10] =
    ["key", "code", "sig", "signature", "s", "k", "hash", "hmac", "ticket", "state"];

/// Keys of an object whose value belongs to the name in the same object.
#[rustfmt::skip]
pub(super) const VALUE_KEYS: [&str; 21] = [
    "value", "Value", "val", "v", "values", "stringValue", "string_value", "content", "default",
    "provided", "provided_value", "providedValue", "actual", "actual_value", "received", "received_value",
    "got", "input", "rejectedValue", "rejected_value", "attempted_value",
];

/// Keys of an object whose value is the name of another field's value.
#[rustfmt::skip]
pub(super) const NAME_KEYS: [&str; 24] = [
    "name", "Name", "key", "Key", "header", "header_name", "headerName", "field", "field_name", "fieldName",
    "param", "param_name", "paramName", "parameter", "property", "attribute", "variable", "env", "k", "n",
    "loc", "path", "option", "argument",
];

/// Keys and words whose numbers are not card numbers.
#[rustfmt::skip]
pub(super) const IDENTIFIERS: [&str; 36] = [
    "id", "ids", "order", "orders", "orderno", "ordernumber", "invoice", "invoiceno", "invoicenumber",
    "trace", "span", "parent", "request", "req", "transaction", "txn", "tx", "ticket", "tracking",
    "trackingnumber", "shipment", "job", "task", "run", "batch", "offset", "sequence", "seq", "lsn",
    "snowflake", "serial", "serialnumber", "messageid", "session", "timestamp", "nanos",
];
