//! Classifies keys by whether their values are secrets.

mod words;

use words::{
    HARMLESS_ENDINGS, HARMLESS_KEYS, HARMLESS_TOKENS, IDENTIFIERS, NAME_KEYS, QUERY_KEYS, RANDOM_ENDINGS,
    SECRET_PARTS, SECRET_WHOLE, SECRET_WORDS, TOKEN_KEYS, VALUE_KEYS,
};

/// The kind of value that a key indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    Plain,
    Secret,
    /// The value is a confirmation token, which is hashed so that it can be followed.
    Token,
    /// The value is a secret if it looks randomly generated.
    Random,
    /// The value belongs to the name in the same object.
    Value,
}

#[derive(Debug, Clone)]
pub(super) struct SecretKeys {
    /// The operator's own keys, reduced to letters and digits.
    own: Vec<String>,
}

/// The maximum length of a relevant key. Of a longer key, only the beginning is examined.
const LONGEST: usize = 64;

impl SecretKeys {
    pub(super) fn new(own: &[String]) -> Self {
        let folded = |key: &String| {
            let bytes: Vec<u8> = key.bytes().filter_map(fold).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Self { own: own.iter().map(folded).filter(|key: &String| !key.is_empty()).collect() }
    }

    /// Returns the kind of a key, or of the last part of a dotted one: `http.request.header.auth` is as secret as
    /// `auth`.
    pub(super) fn kind(&self, key: &[u8]) -> KeyKind {
        match (self.kind_of_name(key), memchr::memrchr(b'.', key)) {
            (KeyKind::Plain, Some(dot)) => self.kind_of_name(&key[dot + 1..]),
            (kind, _) => kind,
        }
    }

    /// Returns the kind of a name by its letters and digits: `X-Api-Key`, `apiKey` and `api_key` are equal.
    fn kind_of_name(&self, key: &[u8]) -> KeyKind {
        if self.own.is_empty() && !may_be_secret(key) {
            return KeyKind::Plain;
        }
        let folded = Folded::of(key);
        let key_folded = folded.text();
        if self.own.iter().any(|own| own.as_bytes() == key_folded) {
            return KeyKind::Secret;
        }
        judged(key_folded, last_part(key))
    }
}

/// The letters and digits of a key, in lower case.
struct Folded {
    buffer: [u8; LONGEST],
    length: usize,
}

impl Folded {
    fn of(key: &[u8]) -> Self {
        let mut folded = Self { buffer: [0; LONGEST], length: 0 };
        for byte in key.iter().copied().filter_map(fold).take(LONGEST) {
            folded.buffer[folded.length] = byte;
            folded.length += 1;
        }
        folded
    }

    fn text(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

fn judged(key: &[u8], last: &[u8]) -> KeyKind {
    if is_one_of(&TOKEN_KEYS, key) {
        return KeyKind::Token;
    }
    if key.ends_with(b"token") && !ends_with_one_of(&HARMLESS_TOKENS, key) {
        return KeyKind::Secret;
    }
    let last = Folded::of(last);
    if is_one_of(&SECRET_WHOLE, key) || is_one_of(&SECRET_WORDS, last.text()) {
        return KeyKind::Secret;
    }
    if has_secret_part(key) && !ends_with_one_of(&HARMLESS_ENDINGS, key) {
        return KeyKind::Secret;
    }
    let is_random =
        is_one_of(&RANDOM_ENDINGS, last.text()) && !ends_with_one_of(&HARMLESS_KEYS, key) && key != b"key";
    if is_random { KeyKind::Random } else { KeyKind::Plain }
}

/// The index of the first part for each first byte. The parts of a byte end where those of the next byte start.
const FIRST_PART: [u8; 257] = {
    let mut starts = [0; 257];
    let mut byte = 0;
    let mut part = 0;
    while byte < 256 {
        starts[byte] = part as u8;
        while part < SECRET_PARTS.len() && SECRET_PARTS[part].as_bytes()[0] as usize == byte {
            part += 1;
        }
        byte += 1;
    }
    starts[256] = part as u8;
    assert!(part == SECRET_PARTS.len(), "the parts are sorted");
    starts
};

fn has_secret_part(key: &[u8]) -> bool {
    let starts_at = |at: usize| {
        let first = usize::from(key[at]);
        let parts = &SECRET_PARTS[usize::from(FIRST_PART[first])..usize::from(FIRST_PART[first + 1])];
        parts.iter().any(|part| key[at..].starts_with(part.as_bytes()))
    };
    (0..key.len()).any(starts_at)
}

fn is_one_of(words: &[&str], key: &[u8]) -> bool {
    words.iter().any(|word| word.as_bytes() == key)
}

fn ends_with_one_of(words: &[&str], key: &[u8]) -> bool {
    words.iter().any(|word| key.ends_with(word.as_bytes()))
}

/// Returns the last part of a key: `PASS` of `DB_PASS`, `Pass` of `dbPass`.
fn last_part(key: &[u8]) -> &[u8] {
    let starts = |at: &usize| {
        !key[at - 1].is_ascii_alphanumeric() && key[at - 1].is_ascii()
            || key[*at].is_ascii_uppercase() && key[at - 1].is_ascii_lowercase()
    };
    (1..key.len()).rev().take(LONGEST).find(starts).map_or(key, |at| &key[at..])
}

/// Returns true for the key of a value whose name is in the same object.
pub(super) fn is_value_key(key: &[u8]) -> bool {
    key.len() <= 15 && is_one_of(&VALUE_KEYS, key)
}

/// Returns true for the key of a name whose value is in the same object.
pub(super) fn is_name_key(key: &[u8]) -> bool {
    key.len() <= 11 && is_one_of(&NAME_KEYS, key)
}

/// Returns true for a query parameter that may be a secret, although its name is a common word.
pub(super) fn is_query_key(key: &[u8]) -> bool {
    key.len() <= 9 && is_one_of(&QUERY_KEYS, Folded::of(key).text())
}

/// Returns true for a key or word whose number identifies an order, a trace or the like, and is not a card number.
pub(super) fn is_identifier(key: &[u8]) -> bool {
    let last = Folded::of(last_part(key));
    let whole = Folded::of(key);
    is_one_of(&IDENTIFIERS, last.text())
        || is_one_of(&IDENTIFIERS, whole.text())
        // webhooks: the address is the secret
        || whole.text().strip_suffix(b"id").is_some_and(|stem| is_one_of(&IDENTIFIERS, stem))
}

fn fold(byte: u8) -> Option<u8> {
    (byte.is_ascii_alphanumeric() || !byte.is_ascii()).then(|| byte.to_ascii_lowercase())
}

/// Sequences of three letters. Every secret key contains at least one of them; most other keys contain none and are
/// ruled out.
#[rustfmt::skip]
const HINTS: [&[u8; 3]; 45] = [
    b"key", b"pas", b"ken", b"sig", b"api", b"aut", b"ras", b"ord", b"otp", b"asa", b"cvv", b"gan", b"net",
    b"psw", b"pwd", b"sid", b"slo", b"srf", b"aml", b"are", b"aro", b"atk", b"ave", b"bac", b"ber", b"cke",
    b"coo", b"cov", b"cvc", b"ehe", b"emo", b"enh", b"fic", b"fre", b"hma", b"jel", b"jwt", b"mdp", b"pin",
    b"psk", b"rti", b"sal", b"ses", b"cre", b"pat",
];

/// One bit for each sequence of three letters, by their low five bits, which are equal in both cases.
static IS_HINT: [u64; 512] = {
    let mut bits = [0; 512];
    let mut index = 0;
    while index < HINTS.len() {
        let [a, b, c] = *HINTS[index];
        let place = ((a & 31) as usize) << 10 | ((b & 31) as usize) << 5 | (c & 31) as usize;
        bits[place >> 6] |= 1 << (place & 63);
        index += 1;
    }
    bits
};

/// Returns true if a key contains one of the sequences. Signs between letters are skipped. Keys of two letters have no
/// sequence, so they always pass, as do keys with non-ASCII letters.
fn may_be_secret(key: &[u8]) -> bool {
    let mut place = 0;
    for &byte in key.iter().take(2 * LONGEST) {
        if byte.is_ascii_alphanumeric() {
            place = (place << 5 | usize::from(byte & 31)) & 0x7fff;
            if IS_HINT[place >> 6] >> (place & 63) & 1 != 0 {
                return true;
            }
        } else if !byte.is_ascii() {
            return true;
        }
    }
    key.len() == 2
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
        let words = TOKEN_KEYS.iter().chain(&SECRET_WHOLE).chain(&SECRET_WORDS).chain(&SECRET_PARTS);
        for word in words.chain(&RANDOM_ENDINGS) {
            assert!(may_be_secret(word.as_bytes()), "{word} has no hint pair");
        }
    }
}
