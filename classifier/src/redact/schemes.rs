//! Credentials after the scheme of an `Authorization` header, and header values that contain spaces.

use super::scan::{Found, Mark};
use super::values::{TrimEnd, is_random};
use std::ops::Range;

/// Schemes that are followed by one word.
const SINGLE: [&str; 14] = [
    "bearer",
    "basic",
    "negotiate",
    "token",
    "apikey",
    "bot",
    "ssws",
    "splunk",
    "key",
    "geniekey",
    "ntlm",
    "oauth",
    "api-key",
    "jwt",
];

/// Schemes that are followed by a list of pairs.
const LISTS: [&str; 6] = ["digest", "hawk", "signature", "aws4-hmac-sha256", "oauth", "googlelogin"];

/// The maximum length of a header. Servers reject longer ones.
const LONGEST_HEADER: usize = 16 << 10;

/// The maximum length of a scheme and of the name of a cookie.
const LONGEST_WORD: usize = 256;

/// Returns the credential after `Bearer ` or `Basic `, unless it is a word of prose.
pub(super) fn bearer(bytes: &[u8], word: Range<usize>) -> Option<Found> {
    let text = &bytes[word.clone()];
    if !text.eq_ignore_ascii_case(b"bearer") && !text.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let rest = &bytes[word.end..];
    let spaces = match rest {
        [b' ', ..] => rest.iter().take_while(|&&byte| byte == b' ').count(),
        [b'%', b'2', b'0', ..] => 3,
        [b'+' | b':', ..] => 1 + rest[1..].iter().take_while(|&&byte| byte == b' ').count(),
        _ => return None,
    };
    let start = word.end + spaces;
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(byte);
    let length = bytes[start..].iter().take_while(|byte| is_token(byte)).count();
    let token = bytes[start..start + length].trim_ascii_end_matches(b".");
    let is_word = || token.iter().all(u8::is_ascii_alphabetic) && (token.len() < 8 || is_auth_word(token));
    // In `token_type=Bearer expires_in=3600`, the next pair of a list follows.
    let is_pair = || {
        token.trim_ascii_end_matches(b"=").contains(&b'=')
            || token
                .strip_suffix(b"=")
                .is_some_and(|key| key.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_'))
    };
    let secret = token.len() >= 6 && !is_word() && !is_pair();
    secret.then(|| (start..start + token.len(), Mark::Redacted))
}

/// Returns true for words that follow `Bearer` or `Basic` in prose.
fn is_auth_word(word: &[u8]) -> bool {
    const WORDS: [&str; 16] = [
        "authentication",
        "authorization",
        "authenticate",
        "authenticated",
        "credentials",
        "credential",
        "required",
        "rejected",
        "validation",
        "permissions",
        "challenge",
        "operations",
        "configuration",
        "functionality",
        "information",
        "requirements",
    ];
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// Returns true for the headers whose values contain spaces.
pub(super) fn takes_whole_line(key: &[u8]) -> bool {
    let ends =
        |word: &[u8]| key.len() >= word.len() && key[key.len() - word.len()..].eq_ignore_ascii_case(word);
    ends(b"cookie") || ends(b"authorization")
}

/// Returns the value of a header after its sign: `sid=1; theme=dark`, `Bearer x`. Prose has neither form.
pub(super) fn header_value(bytes: &[u8], after: usize) -> Option<Range<usize>> {
    let start = after + bytes[after..].iter().take_while(|&&byte| byte == b' ').count();
    let line = &bytes[start..bytes.len().min(start + LONGEST_HEADER)];
    let first = word_of(&line[..line.len().min(LONGEST_WORD)]);
    let is = |schemes: &[&str]| {
        line.get(first.len()) == Some(&b' ')
            && schemes.iter().any(|scheme| first.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    let second = || word_of(line[first.len()..].trim_ascii_start());
    let rest = first.len() + 1;
    let length = if is(&LISTS) && line[rest..].iter().take(64).any(|&byte| byte == b'=') {
        rest + list_length(&line[rest..], b',')
    } else if is(&SINGLE) && !second().is_empty() {
        let spaces = line[first.len()..].iter().take_while(|&&byte| byte == b' ').count();
        let is_prose = second().iter().all(u8::is_ascii_alphabetic) && second().len() < 8;
        if is_prose || is_auth_word(second()) {
            return None;
        }
        first.len() + spaces + second().len()
    } else if first.contains(&b'=') && first[0] != b'=' {
        list_length(line, b';')
    } else if first.iter().all(u8::is_ascii_alphabetic) && is_random(second(), 16) {
        first.len() + 1 + second().len()
    } else {
        return None;
    };
    Some(start..start + length)
}

/// Returns the first word of a header.
fn word_of(line: &[u8]) -> &[u8] {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'\\,<>)".contains(byte);
    &line[..line.iter().position(ends).unwrap_or(line.len())]
}

/// Returns the length of one item of a list. In JSON text, backslashes precede its quotes.
fn item_length(line: &[u8]) -> usize {
    let mut in_quotes = false;
    let mut before = 0;
    for (at, &byte) in line.iter().enumerate() {
        match byte {
            b'\\' if matches!(line.get(at + 1), Some(b'"' | b'\\')) => continue,
            b'"' if in_quotes => in_quotes = false,
            b'"' if before == b'=' => in_quotes = true,
            b'"' | b'\\' | b'\'' | b'\n' | b'\r' => return at,
            b' ' if !in_quotes => return at,
            _ => {}
        }
        before = byte;
    }
    line.len()
}

/// Returns the length of a list such as `a=1; b="x y"; c`: items with a sign between them, which may contain quotes.
fn list_length(line: &[u8], between: u8) -> usize {
    let mut at = 0;
    loop {
        let length = item_length(&line[at..]);
        let word = &line[at..at + length];
        at += length;
        let more = word.last() == Some(&between) && line.get(at) == Some(&b' ') && length > 1;
        if !more {
            return at;
        }
        at += 1;
    }
}
