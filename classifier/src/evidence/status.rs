//! Numbers in a text that are statuses: HTTP statuses and SQLSTATEs.
//!
//! A number by itself has no meaning: `404 rows` is a count. The text beside it decides.

use memchr::memmem::Finder;
use std::sync::LazyLock;

/// Finds the first HTTP status of a failure in a normalized text.
pub(super) fn http_status(text: &str) -> Option<(u16, usize)> {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'4', b'5', bytes).find_map(|at| {
        let number = bytes.get(at..at + 3)?;
        let is_alone = |index: Option<usize>| {
            index
                .and_then(|i| bytes.get(i))
                .is_none_or(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'_' | b'$' | b'#'))
        };
        if !number.iter().all(u8::is_ascii_digit) || !is_alone(at.checked_sub(1)) || !is_alone(Some(at + 3)) {
            return None;
        }
        let status = number.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
        let (before, after) = (&text[..at], &text[at + 3..]);
        is_status(status, before, after).then_some((status, at))
    })
}

/// Returns true if the text before or after the number shows that it is a status.
fn is_status(status: u16, before: &str, after: &str) -> bool {
    // The number continues: it is part of a decimal, a version, an address or a larger number.
    let continues = |text: &str| {
        let mut chars = text.chars();
        matches!(chars.next(), Some('.' | ',' | ':' | '/' | '-' | '%'))
            && chars.next().is_some_and(|c| c.is_ascii_digit() || c == '%')
    };
    let is_part = continues(after)
        || after.starts_with('%')
        || before.ends_with(['.', ',', '/', '$']) && !before.ends_with("http/");
    let is_port = before.strip_suffix(':').is_some_and(|host| host.ends_with(|c: char| c.is_ascii_digit()));
    if is_part || is_port {
        return false;
    }
    let before = before.trim_end_matches([' ', ':', '(', '[', '=', '\'', '"', '#', '<']);
    let after_words = after.trim_start_matches([' ', '-', ':', ')', ']', '\'', '"', ',', '–', '—']);
    if reason_phrases(status).iter().any(|phrase| after_words.starts_with(phrase)) {
        return true;
    }
    let leads = [
        "status code",
        "statuscode",
        "status",
        "http",
        "http error",
        "http/1.1",
        "http/1.0",
        "http/2",
        "response code",
        "http code",
        "error code",
        "api error",
        "client error",
        "server error",
        "request error",
        "returned",
        "responded with",
        "response",
        "failed with",
        "got",
        "answered with",
        "error",
        "code",
        "returned a",
        "returned an",
        "received",
        "failed",
        "http status",
        "rejected with",
    ];
    let is_led = leads.iter().any(|lead| {
        before.strip_suffix(lead).is_some_and(|head| !head.ends_with(|c: char| c.is_alphanumeric()))
    });
    if is_led {
        return !starts_with_unit(after);
    }
    // Matches `(401)`, `[429]`, and a number after a colon at the end of its line.
    let is_bracketed = after.starts_with([')', ']']);
    let ends_line = after.is_empty() || after.starts_with('\n');
    is_bracketed && is_specific(status) || ends_line && !before.is_empty() && is_specific(status)
}

/// Returns true for statuses that servers send so often that a bare number is taken for one.
fn is_specific(status: u16) -> bool {
    matches!(status, 400..=409 | 410 | 413 | 415 | 422 | 429 | 500..=504 | 529)
}

/// Returns true if the text starts with a unit, which follows a count.
fn starts_with_unit(after: &str) -> bool {
    const UNITS: [&str; 27] = [
        "ms",
        "s",
        "sec",
        "second",
        "seconds",
        "minutes",
        "bytes",
        "kb",
        "mb",
        "gb",
        "rows",
        "items",
        "results",
        "files",
        "lines",
        "records",
        "errors",
        "times",
        "tokens",
        "characters",
        "chars",
        "issues",
        "requests",
        "entries",
        "documents",
        "users",
        "warnings",
    ];
    let word: &str = after.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    !word.is_empty() && UNITS.contains(&word)
}

/// Returns the reason phrases that the standard defines for a status.
pub(super) fn reason_phrases(status: u16) -> &'static [&'static str] {
    match status {
        400 => &["bad request", "client error"],
        401 => &["unauthorized", "unauthorised", "client error", "unauthenticated", "authentication"],
        402 => &["payment required", "client error"],
        403 => &["forbidden", "client error", "access denied", "permission", "access"],
        404 => &["not found", "client error", "no such"],
        405 => &["method not allowed", "client error"],
        406 => &["not acceptable", "client error"],
        408 => &["request timeout", "request time out", "client error"],
        409 => &["conflict", "client error"],
        410 => &["gone", "client error"],
        412 => &["precondition failed", "client error"],
        413 => &["payload too large", "content too large", "request entity too large", "client error"],
        415 => &["unsupported media type", "client error"],
        422 => &["unprocessable", "client error"],
        423 => &["locked", "client error"],
        429 => &["too many requests", "rate limit", "client error"],
        500 => &["internal server error", "server error", "internal error"],
        501 => &["not implemented", "server error"],
        502 => &["bad gateway", "server error"],
        503 => &["service unavailable", "service temporarily unavailable", "server error"],
        504 => &["gateway timeout", "gateway time out", "server error"],
        529 => &["overloaded", "server error", "site is overloaded"],
        status if status < 500 => &["client error"],
        _ => &["server error"],
    }
}

/// Finds an SQLSTATE in a normalized text: `sqlstate 42501`, `error: 42p01:`, `code: '23505'`.
pub(super) fn sqlstate(text: &str) -> Option<&str> {
    const LEADS: [&str; 4] = ["sqlstate", "sql state", "error:", "code"];
    static FINDERS: LazyLock<[Finder<'_>; 4]> = LazyLock::new(|| LEADS.map(Finder::new));
    if text.bytes().filter(u8::is_ascii_digit).count() < 2 {
        return None;
    }
    LEADS.iter().zip(&*FINDERS).find_map(|(lead, finder)| {
        let rest = &text[finder.find(text.as_bytes())? + lead.len()..];
        let rest = rest.trim_start_matches([' ', ':', '[', '(', '=', '\'', '"']);
        let state = rest.get(..5)?;
        let ends = rest[5..].chars().next().is_none_or(|c| !c.is_alphanumeric());
        let looks_right = state.bytes().all(|b| b.is_ascii_alphanumeric())
            && state.bytes().filter(u8::is_ascii_digit).count() >= 2
            && (*lead != "code" || state.bytes().next().is_some_and(|b| b.is_ascii_digit()));
        (ends && looks_right).then_some(state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_status_only_where_words_say_so() {
        for (text, expected) in [
            ("request failed with status code 404", Some(404)),
            ("http error: 403", Some(403)),
            ("could not log in (401)", Some(401)),
            ("409 client error: conflict", Some(409)),
            ("server error '503 service unavailable'", Some(503)),
            ("upstream said: 429", Some(429)),
            ("http/1.1 502 bad gateway", Some(502)),
            ("error 500", Some(500)),
            ("failed after 500 ms", None),
            ("got 404 rows", None),
            ("version 4.0.500", None),
            ("listening on 10.0.0.4:503", None),
            ("costs $404", None),
            ("at line 401 of the file", None),
            ("", None),
        ] {
            assert_eq!(http_status(text).map(|(status, _)| status), expected, "{text}");
        }
    }

    #[test]
    fn a_state_is_found_where_databases_put_it() {
        for (text, expected) in [
            ("error: permission denied (sqlstate 42501)", Some("42501")),
            ("sqlstate[23505]: unique violation", Some("23505")),
            ("failed to run sql query: error:  42p01: relation", Some("42p01")),
            ("error: column does not exist", None),
            ("code 404", None),
        ] {
            assert_eq!(sqlstate(text), expected, "{text}");
        }
    }
}
