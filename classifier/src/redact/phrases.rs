//! Secrets that are introduced by prose or SQL: `the password is ...`, `IDENTIFIED BY '...'`.

use super::assigned::bare_length;
use super::keys::KeyKind;
use super::scan::{Found, Mark};
use super::values::{TrimEnd, is_harmless, is_prose, is_random, is_remark, looks_secret};
use super::{Redactor, Rule};
use std::ops::Range;

/// The beginnings of the words below, in each case in which they are written. They are candidates.
#[rustfmt::skip]
pub(super) const OPENERS: [&str; 52] = [
    "pass", "Pass", "PASS", "pwd", "Pwd", "PWD", "pin", "PIN", "otp", "OTP", "secr", "Secr", "SECR", "toke",
    "Toke", "TOKE", "api ", "Api ", "API ", "api_", "api-", "API_", "apik", "apiK", "acce", "Acce", "ACCE",
    "iden", "Iden", "IDEN", "kenn", "Kenn", "cont", "senh", "Senh", "mot ", "Mot ", "wach", "Wach", "veri",
    "Veri", "пар", "Пар", "密", "パ", "aws_", "AWS_", "db_", "DB_", "x-ap", "X-Ap", "X-AP",
];

/// Words that introduce a secret, by their first byte, longest first. The flag is true for secrets that a person
/// chose, such as passwords, where any word may follow. Generated secrets look random.
#[rustfmt::skip]
const fn announcements(first: u8) -> &'static [(&'static str, bool)] {
    match first {
        b'a' | b'A' => &[("access token", false), ("access code", false), ("api secret", false), ("access key", false), ("api token", false), ("api key", false), ("apikey", false)],
        b'c' | b'C' => &[("client secret", false), ("contraseña", true), ("contrasena", true)],
        b'k' | b'K' => &[("kennwort", true)],
        b'm' | b'M' => &[("mot de passe", true)],
        b'o' | b'O' => &[("otp", true)],
        b'p' | b'P' => &[("passphrase", true), ("password", true), ("passcode", true), ("passwort", true), ("passwd", true), ("pwd", true), ("pin", true)],
        b's' | b'S' => &[("secret access key", false), ("security token", false), ("security code", true), ("secret key", false), ("secret", false), ("senha", true)],
        b't' | b'T' => &[("token", false)],
        b'v' | b'V' => &[("verification code", false)],
        b'w' | b'W' => &[("wachtwoord", true)],
        0xd0 => &[("пароль", true)],
        0xe3 => &[("パスワード", true)],
        0xe5 => &[("密码", true), ("密碼", true)],
        _ => &[],
    }
}

/// Words between the introduction and the secret.
#[rustfmt::skip]
const COPULAS: [&str; 26] = [
    "is", "was", "are", "equals", "to", "as", "ist", "war", "lautet", "es", "fue", "est", "é", "è", "era",
    "jest", "это", "=", ":", "->", "=>", "是", "为", "為", "は", "：",
];

/// Words that may precede those.
#[rustfmt::skip]
const FILLERS: [&str; 17] = [
    "for", "of", "set", "changed", "reset", "now", "currently", "used", "value", "provided", "für", "para",
    "de", "entered", "has", "been", "have",
];

/// The last words of keys of several words: `api key`, `mot de passe`.
#[rustfmt::skip]
const LAST_WORDS: [&str; 18] = [
    "key", "code", "passe", "token", "secret", "number", "phrase", "word", "schlüssel", "schluessel", "api",
    "secreta", "pass", "id_token", "khẩu", "sandi", "header", "value",
];

pub(super) fn ends_longer_key(word: &[u8]) -> bool {
    LAST_WORDS.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// The distance after the introduction within which a secret is searched.
const WINDOW: usize = 160;

impl Redactor {
    /// Returns the secret that the word at a position introduces.
    pub(super) fn phrase(&self, bytes: &[u8], start: usize) -> Option<Found> {
        if !self.is_on(Rule::Assignment) {
            return None;
        }
        let rest = &bytes[start..];
        let length = rest.iter().take(24).take_while(|byte| byte.is_ascii_alphabetic()).count();
        match rest.get(length)? {
            b'-' | b'_' => in_file_name(bytes, start).or_else(|| self.after_key(bytes, start)),
            _ if rest[0] | 0x20 == b'i' => {
                starts_with_word(rest, b"identified").then(|| identified_by(bytes, start + 10)).flatten()
            }
            _ => {
                let known = announcements(rest[0]);
                let (word, is_chosen) =
                    known.iter().find(|(word, _)| starts_with_word(rest, word.as_bytes()))?;
                announced(bytes, start + word.len(), *is_chosen)
            }
        }
    }

    /// Returns the value after a key without a sign between them: `aws_secret_access_key x`.
    fn after_key(&self, bytes: &[u8], start: usize) -> Option<Found> {
        let rest = &bytes[start..];
        let length = word_length(&rest[..rest.len().min(64)]);
        let is_secret = matches!(rest.get(length), Some(b' ' | b'\'' | b'"'))
            && self.keys.kind(&rest[..length]) == KeyKind::Secret;
        is_secret.then(|| announced(bytes, start + length, false)).flatten()
    }
}

/// Returns the secret in the name of a file: `/backups/password-x7.txt`.
fn in_file_name(bytes: &[u8], start: usize) -> Option<Found> {
    const WORDS: [&str; 6] = ["password", "passwd", "pwd", "token", "secret", "apikey"];
    let rest = &bytes[start..];
    let word = WORDS
        .iter()
        .find(|word| rest.len() > word.len() && rest[..word.len()].eq_ignore_ascii_case(word.as_bytes()))?;
    let sign = start + word.len();
    let tail = &bytes[sign + 1..];
    if !matches!(bytes[sign], b'-' | b'_') {
        return None;
    }
    let length = tail.iter().take(WINDOW).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let value = &tail[..length];
    let is_file =
        matches!(&tail[length..], [b'.', a, b, ..] if a.is_ascii_lowercase() && b.is_ascii_alphanumeric());
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    // `token_v2.json` and `secret-2026.yaml` are ordinary names.
    let is_made = length >= 6 && digits > 0 && length - digits >= 4;
    (is_file && is_made).then_some((sign + 1..sign + 1 + length, Mark::Redacted))
}

/// Returns true if a text starts with a word or phrase, ignoring case, that ends there.
fn starts_with_word(rest: &[u8], word: &[u8]) -> bool {
    let ends = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'_' || !word.is_ascii();
    rest.len() > word.len()
        && rest[0] | 0x20 == word[0] | 0x20
        && rest[1] | 0x20 == word[1] | 0x20
        && same_but_case(&rest[..word.len()], word)
        && ends(&rest[word.len()])
}

/// Compares ignoring case. Of the other scripts, only the words above are covered.
fn same_but_case(text: &[u8], word: &[u8]) -> bool {
    text.eq_ignore_ascii_case(word) || word == "пароль".as_bytes() && text == "Пароль".as_bytes()
}

/// Returns the password in `IDENTIFIED BY 'x'`, `IDENTIFIED WITH plugin BY 'x'` and `IDENTIFIED BY PASSWORD 'x'`.
fn identified_by(bytes: &[u8], after: usize) -> Option<Found> {
    let mut at = after;
    let mut has_by = false;
    for _ in 0..5 {
        let start = at + spaces(bytes, at);
        let word = &bytes[start..start + word_length(&bytes[start..])];
        at = start;
        if [&b"by"[..], b"as"].iter().any(|known| word.eq_ignore_ascii_case(known)) {
            has_by = true;
        } else if has_by
            && ![&b"password"[..], b"values"].iter().any(|known| word.eq_ignore_ascii_case(known))
        {
            break;
        }
        at += word.len();
        if word.is_empty() {
            break;
        }
    }
    let start = at + spaces(bytes, at);
    let (value, is_quoted) = value_at(bytes, start)?;
    let is_statement = || {
        let before = bytes[after.saturating_sub(96)..after].to_ascii_lowercase();
        [&b"create user"[..], b"alter user"]
            .iter()
            .any(|words| memchr::memmem::find(&before, words).is_some())
    };
    let is_value = is_quoted || looks_secret(&bytes[value.clone()]) || is_statement();
    (has_by && is_value && !value.is_empty() && !is_harmless(&bytes[value.clone()]))
        .then_some((value, Mark::Redacted))
}

fn spaces(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().take(16).take_while(|byte| byte.is_ascii_whitespace()).count()
}

fn word_length(rest: &[u8]) -> usize {
    let is_inside =
        |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'_' | b'-');
    rest.iter().take(WINDOW).take_while(|byte| is_inside(byte)).count()
}

/// Returns the range of the value at a position, and whether it is quoted.
fn value_at(bytes: &[u8], at: usize) -> Option<(Range<usize>, bool)> {
    let rest = &bytes[at..bytes.len().min(at + 4 * WINDOW)];
    let escapes = rest.iter().take(4).take_while(|&&byte| byte == b'\\').count();
    match rest.get(escapes)? {
        &quote @ (b'"' | b'\'' | b'`') => {
            let inside = &rest[escapes + 1..];
            let length = inside.iter().position(|&byte| byte == quote)?.checked_sub(escapes)?;
            Some((at + escapes + 1..at + escapes + 1 + length, true))
        }
        _ => {
            let length = rest[..bare_length(rest)].trim_ascii_end_matches(b".:?").len();
            Some((at..at + length, false))
        }
    }
}

/// The word between an introduction and its secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    None,
    /// The word is `is` or `was`, for which the words that may follow are known.
    Is,
    Copula,
}

impl Link {
    fn of(copula: &str) -> Self {
        if matches!(copula, "is" | "was") { Self::Is } else { Self::Copula }
    }
}

/// Returns the secret after an introduction that ends at a position.
fn announced(bytes: &[u8], after: usize, is_chosen: bool) -> Option<Found> {
    let (at, link) = behind_copula(bytes, after)?;
    let (value, is_quoted) = value_at(bytes, at)?;
    let text = &bytes[value.clone()];
    if text.is_empty()
        || text.ends_with(b"(")
        || is_harmless(text)
        || super::candidates::mark_length(text).is_some()
    {
        return None;
    }
    let has_both = || text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_lowercase);
    let is_secret = match (is_chosen, is_quoted, link != Link::None) {
        (true, true, _) => !is_remark(text),
        (true, false, true) => {
            looks_secret(text) && !is_assigned(bytes, value.end)
                || link == Link::Is && is_last_word(bytes, &value)
        }
        (true, false, false) => {
            text.len() >= 6 && has_both() && !text.contains(&b'=') && !text.contains(&b'/')
        }
        (false, true, _) => is_random(text, 8),
        (false, false, true) => is_random(text, 10),
        (false, false, false) => is_random(text, 16) && has_both(),
    };
    is_secret.then_some((value, Mark::Redacted))
}

/// Returns true if the text is another key: `password is_valid=true`.
fn is_assigned(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b'=')
}

/// Returns true for a word at the end of its sentence that prose would not have there.
fn is_last_word(bytes: &[u8], value: &Range<usize>) -> bool {
    let text = &bytes[value.clone()];
    let ends = matches!(
        bytes.get(value.end..),
        None | Some(
            [] | [b'\n' | b'\r' | b'"' | b'\\', ..]
                | [b'.' | b',' | b';' | b')']
                | [b'.' | b',' | b';' | b')', b' ' | b'\n' | b'"' | b'\\', ..]
        )
    );
    ends && text.len() >= 4
        && text.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'-')
        && !is_prose(text)
}

/// Returns the position at which a value may start after an introduction, skipping words such as `is`, and the word
/// that links them.
fn behind_copula(bytes: &[u8], after: usize) -> Option<(usize, Link)> {
    let window = bytes.len().min(after + WINDOW);
    // Covers `'password' is` and `PASSWORD('x')`. `password: ` is handled by `assignment`.
    let mut at = match bytes.get(after..) {
        Some([b'\'' | b'"' | b'`' | b')', b' ', ..]) => after + 1,
        Some([b'(', b'\'' | b'"', ..]) => return Some((after + 1, Link::Copula)),
        Some([b' ' | b'\n' | b'\t', ..]) => after,
        Some([0x80..=0xff, ..]) => after,
        _ => return None,
    };
    let mut named = 0;
    for words in 0..8 {
        at += spaces(bytes, at);
        if at >= window {
            return None;
        }
        let rest = &bytes[at..window];
        if let Some(copula) = COPULAS.iter().find(|word| is_link(rest, word)) {
            // Two links may follow each other: `is set to`.
            at += copula.len();
            at += usize::from(bytes.get(at) == Some(&b':'));
            at += spaces(bytes, at);
            let next = &bytes[at..window.max(at)];
            let Some(filler) = FILLERS.iter().find(|word| is_link(next, word)) else {
                return Some((at, Link::of(copula)));
            };
            at += filler.len() + spaces(bytes, at + filler.len());
            let next = &bytes[at..window.max(at)];
            let copula = COPULAS.iter().find(|word| is_link(next, word));
            at += copula.map_or(0, |word| word.len());
            return Some((at + spaces(bytes, at), copula.map_or(Link::None, |_| Link::Copula)));
        }
        let length = word_length(rest);
        if FILLERS.iter().any(|word| is_link(rest, word)) {
            named = words + 1;
        } else if named == 0 {
            return Some((at, Link::None));
        } else if words > named + 2 {
            return None;
        }
        // In `password for admin: x`, a colon follows the name.
        at += length.max(1);
        if named > 0 && bytes.get(at) == Some(&b':') {
            return Some((at + 1 + spaces(bytes, at + 1), Link::Copula));
        }
    }
    None
}

/// Returns true if a text starts with a link. A link of letters must end there, unless its script has no spaces.
fn is_link(rest: &[u8], link: &&str) -> bool {
    let word = link.as_bytes();
    let is_letters = word[0].is_ascii_alphabetic() || matches!(word[0], 0xc3 | 0xd1);
    rest.len() > word.len()
        && rest[..word.len()].eq_ignore_ascii_case(word)
        && (!is_letters || !rest[word.len()].is_ascii_alphanumeric() && rest[word.len()] != b'_')
}
