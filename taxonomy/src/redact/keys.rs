//! Keys whose values are secrets.

/// What a key says about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    Plain,
    Secret,
    /// A confirmation token: hashed, so that it can be followed.
    Token,
}

/// Keys that hold a confirmation token.
const TOKEN_KEYS: [&str; 3] = ["token", "confirmationtoken", "quotatoken"];

/// A key that contains one of these, letters and digits only, holds a secret. By their first letter, so that
/// only a few are compared.
const SECRET_PARTS: [(u8, &[&str]); 8] = [
    (b'a', &["apikey", "authorization", "accesskey", "accesstoken", "authtoken", "apitoken"]),
    (b'b', &["bearertoken"]),
    (b'c', &["cookie", "credential", "csrftoken"]),
    (b'e', &["encryptionkey"]),
    (b'i', &["idtoken"]),
    (b'p', &["password", "passwd", "passphrase", "privatekey"]),
    (b'r', &["refreshtoken"]),
    (b's', &["secret", "signingkey", "sessiontoken"]),
];

/// Short keys that are secrets only as a whole word.
const SECRET_WHOLE: [&str; 6] = ["pwd", "pass", "jwt", "bearer", "auth", "otp"];

/// The longest of them.
const LONGEST_WHOLE: usize = 6;

/// Names of secrets are no secrets: `secret_name`, `api_key_id`, `password_policy`.
const HARMLESS_ENDINGS: [&str; 9] =
    ["name", "id", "policy", "type", "required", "length", "count", "expired", "scope"];

/// Tokens that mark a place and open no door.
const HARMLESS_TOKENS: [&str; 7] = [
    "progresstoken",
    "pagetoken",
    "nexttoken",
    "continuationtoken",
    "synctoken",
    "canceltoken",
    "cancellationtoken",
];

#[derive(Debug, Clone)]
pub(super) struct SecretKeys {
    /// An operator's own, letters and digits only.
    own: Vec<String>,
}

/// No key of interest is longer; a longer one is looked at by its first letters.
const LONGEST: usize = 64;

impl SecretKeys {
    pub(super) fn new(own: &[String]) -> Self {
        let folded = |key: &String| key.bytes().filter_map(fold).map(char::from).collect();
        Self { own: own.iter().map(folded).filter(|key: &String| !key.is_empty()).collect() }
    }

    /// Judges a key, and the last part of a dotted one: `http.request.header.auth` is as secret as `auth`.
    pub(super) fn kind(&self, key: &[u8]) -> KeyKind {
        match (self.kind_of_name(key), memchr::memrchr(b'.', key)) {
            (KeyKind::Plain, Some(dot)) => self.kind_of_name(&key[dot + 1..]),
            (kind, _) => kind,
        }
    }

    /// Judges a name by its letters and digits: `X-Api-Key`, `apiKey` and `api_key` are one.
    fn kind_of_name(&self, key: &[u8]) -> KeyKind {
        if self.own.is_empty() && (key.len() > LONGEST_WHOLE || is_one_word(key)) && !may_be_secret(key) {
            return KeyKind::Plain;
        }
        let mut buffer = [0_u8; LONGEST];
        let mut length = 0;
        for byte in key.iter().copied().filter_map(fold).take(LONGEST) {
            buffer[length] = byte;
            length += 1;
        }
        let key = &buffer[..length];
        if self.own.iter().any(|own| own.as_bytes() == key) {
            return KeyKind::Secret;
        }
        let is = |word: &&str| word.as_bytes() == key;
        if TOKEN_KEYS.iter().any(is) {
            return KeyKind::Token;
        }
        let ends = |word: &&str| key.ends_with(word.as_bytes());
        if key.ends_with(b"token") && !HARMLESS_TOKENS.iter().any(ends) {
            return KeyKind::Secret;
        }
        let harmless = || HARMLESS_ENDINGS.iter().any(|ending| key.ends_with(ending.as_bytes()));
        if SECRET_WHOLE.iter().any(is) || (has_secret_part(key) && !harmless()) {
            return KeyKind::Secret;
        }
        KeyKind::Plain
    }
}

fn fold(byte: u8) -> Option<u8> {
    byte.is_ascii_alphanumeric().then(|| byte.to_ascii_lowercase())
}

fn has_secret_part(key: &[u8]) -> bool {
    let starts_at = |at: usize| {
        let of_letter = SECRET_PARTS.iter().find(|(first, _)| *first == key[at]);
        of_letter.is_some_and(|(_, parts)| parts.iter().any(|part| key[at..].starts_with(part.as_bytes())))
    };
    (0..key.len()).any(starts_at)
}

/// Without signs between its letters, which would part the pairs.
fn is_one_word(key: &[u8]) -> bool {
    key.iter().all(u8::is_ascii_alphanumeric)
}

/// Pairs of letters, of which every secret key holds at least one; most keys hold none, and are done.
const HINTS: [&[u8; 2]; 12] =
    [b"sw", b"ss", b"cr", b"ey", b"au", b"ki", b"ok", b"nn", b"pw", b"jw", b"be", b"tp"];

/// By the low five bits of two letters, which are the same in either case.
const IS_HINT: [[bool; 32]; 32] = {
    let mut pairs = [[false; 32]; 32];
    let mut index = 0;
    while index < HINTS.len() {
        let [a, b] = *HINTS[index];
        pairs[(a & 31) as usize][(b & 31) as usize] = true;
        index += 1;
    }
    pairs
};

fn may_be_secret(key: &[u8]) -> bool {
    key.windows(2).any(|pair| IS_HINT[usize::from(pair[0] & 31)][usize::from(pair[1] & 31)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_judged_by_their_letters() {
        let keys = SecretKeys::new(&["national_id".to_owned()]);
        for key in [
            "password",
            "Password",
            "db_password",
            "passwd",
            "PWD",
            "api_key",
            "X-Api-Key",
            "apiKey",
            "authorization",
            "Set-Cookie",
            "client_secret",
            "private_key",
            "aws_access_key",
            "access_token",
            "refreshToken",
            "jwt",
            "credentials",
            "nationalId",
            "pass",
            "auth",
            "otp",
            "signing-key",
            "GITHUB_TOKEN",
            "user_token",
            "http.request.header.auth",
            "http.request.header.pwd",
        ] {
            assert_eq!(keys.kind(key.as_bytes()), KeyKind::Secret, "{key}");
        }
        for key in ["token", "confirmation_token", "confirmationToken", "TOKEN"] {
            assert_eq!(keys.kind(key.as_bytes()), KeyKind::Token, "{key}");
        }
        for key in [
            "tokens",
            "tokens_per_minute",
            "max_tokens",
            "token_operation",
            "progressToken",
            "next_page_token",
            "key",
            "keys",
            "passed",
            "author",
            "operation",
            "secret_name",
            "api_key_id",
            "password_policy",
            "keyboard",
            "monkey",
            "gen_ai.request.max_tokens",
            "messaging.kafka.message.key",
            "id",
            "",
        ] {
            assert_eq!(keys.kind(key.as_bytes()), KeyKind::Plain, "{key}");
        }
    }

    #[test]
    fn no_secret_key_escapes_the_hints() {
        let parts = SECRET_PARTS.iter().flat_map(|(_, parts)| *parts);
        for word in TOKEN_KEYS.iter().chain(&SECRET_WHOLE).chain(parts) {
            assert!(may_be_secret(word.as_bytes()), "{word} has no hint pair");
        }
        for word in SECRET_WHOLE {
            assert!(word.len() <= LONGEST_WHOLE, "{word}");
        }
        for (first, parts) in SECRET_PARTS {
            assert!(parts.iter().all(|part| part.as_bytes()[0] == first), "{parts:?}");
        }
    }
}
