//! Retry delays in seconds, from `retry_after` in all its spellings and units.

use crate::details::{DetailKey, Details};
use crate::dialect::Dialect;
use aho_corasick::AhoCorasick;
use std::sync::LazyLock;

/// The fields that hold a delay, in order of preference.
const KEYS: [DetailKey; 4] = [
    DetailKey::RetryAfterSeconds,
    DetailKey::RetryAfterMillis,
    DetailKey::RetryAfter,
    DetailKey::RetryAfterCamel,
];

/// Reads a delay from the fields of the details and of the error object, or else from the message.
pub(crate) fn read(objects: [&Details<'_>; 2], message: Option<&str>, dialect: Dialect) -> Option<f64> {
    objects
        .into_iter()
        .find_map(|object| from_fields(object, dialect))
        .or_else(|| from_message(message?))
        .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
}

fn from_fields(object: &Details<'_>, dialect: Dialect) -> Option<f64> {
    KEYS.iter().find_map(|&key| {
        let value = object.get(key)?;
        let unit = match key {
            DetailKey::RetryAfterMillis => 0.001,
            // The numeric model writes milliseconds, every other dialect seconds.
            DetailKey::RetryAfterCamel if dialect == Dialect::McpReference => 0.001,
            _ => 1.0,
        };
        match value.as_f64() {
            Some(number) => Some(number * unit),
            None => from_text(value.as_str()?, unit),
        }
    })
}

/// Parses `30`, `30s`, `1m30s`, `1500 ms` or `2 minutes`.
fn from_text(text: &str, unit_of_bare_number: f64) -> Option<f64> {
    let text = text.trim();
    text.parse::<f64>().ok().map(|number| number * unit_of_bare_number).or_else(|| parse_duration(text))
}

/// The phrases that introduce a delay in a message. Punctuation between the phrase and the number is skipped.
const LEAD_PHRASES: [&str; 8] =
    ["retry after", "retry-after", "retry_after", "retry in", "again in", "again after", "wait for", "wait"];
/// Finds any of the phrases, in upper or lower case.
static LEAD_MATCHER: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(LEAD_PHRASES).ok());

/// Reads a delay from a message: "Retry after 30 seconds", "try again in 1m30s", "wait 2 minutes".
fn from_message(message: &str) -> Option<f64> {
    // Most messages state no delay: they have no number, or no introductory phrase.
    let has_number = message.bytes().any(|byte| byte.is_ascii_digit());
    if !has_number || LEAD_MATCHER.as_ref().is_some_and(|lead| !lead.is_match(message)) {
        return None;
    }
    let message = message.to_ascii_lowercase();
    LEAD_PHRASES.iter().find_map(|lead| {
        let (_, rest) = message.split_once(lead)?;
        let rest = rest.trim_start_matches([' ', ':', '=', '\'', '"', '~']);
        parse_duration(rest.strip_prefix("about ").unwrap_or(rest))
    })
}

/// Parses one or more numbers with units at the start of a text. A bare number is in seconds, unless the text
/// after it makes it something else: a date, a larger number, a count of things.
fn parse_duration(text: &str) -> Option<f64> {
    let mut total = None;
    let mut rest = text;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { return total };
        let suffix = &rest[digits..];
        let after = suffix.trim_start_matches([' ', '\'']);
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let seconds = match &after[..letters] {
            "µs" | "us" | "microseconds" => 0.000_001,
            "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            "" if !suffix.starts_with([',', '-', ':', '/']) => return total.or(Some(number)),
            "" if suffix.starts_with(',') && !suffix[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                return total.or(Some(number));
            }
            _ => return total,
        };
        total = Some(total.unwrap_or(0.0) + number * seconds);
        rest = &after[letters..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Parser;

    fn seconds(details: &str, message: &str, dialect: Dialect) -> Option<f64> {
        Parser::new(64)
            .parse(details.as_bytes(), |json| {
                read([&Details::read(Some(json)), &Details::EMPTY], Some(message), dialect)
            })
            .expect(details)
    }

    #[test]
    fn every_spelling_comes_out_in_seconds() {
        let reference = Dialect::McpReference;
        for (details, dialect, expected) in [
            (r#"{"retry_after_seconds":1847}"#, Dialect::McpAql, 1847.0),
            (r#"{"retry_after":30}"#, Dialect::Erlmcp, 30.0),
            (r#"{"retry_after":"30"}"#, Dialect::Erlmcp, 30.0),
            (r#"{"retry_after":"1m30s"}"#, Dialect::Unknown, 90.0),
            (r#"{"retryAfter":1500}"#, reference, 1.5),
            (r#"{"retryAfter":"1500"}"#, reference, 1.5),
            (r#"{"retryAfter":2}"#, Dialect::Jsonrpc, 2.0),
            (r#"{"retry_after_ms":250}"#, Dialect::Unknown, 0.25),
            (r#"{"Retry-After":"120"}"#, Dialect::Http, 120.0),
            (r#"{"retry_after":null,"retryAfterSeconds":3}"#, Dialect::Unknown, 3.0),
        ] {
            assert_eq!(seconds(details, "", dialect), Some(expected), "{details}");
        }
    }

    #[test]
    fn words_say_it_too() {
        for (message, expected) in [
            ("Slow down, retry after 30 seconds", Some(30.0)),
            ("Rate limited. Try again in 1m30s.", Some(90.0)),
            ("please wait 2 minutes", Some(120.0)),
            ("Retry in 500ms", Some(0.5)),
            ("Retry after '45'", Some(45.0)),
            ("RETRY AFTER 30 SECONDS", Some(30.0)),
            ("retry_after: 20", Some(20.0)),
            ("Wait for 30 seconds", Some(30.0)),
            ("try again in about 5 minutes", Some(300.0)),
            ("retry after 45, please", Some(45.0)),
            ("retry in 500000 µs", Some(0.5)),
            ("Retry after 2026-01-28T13:00:00Z", None),
            ("retry after 1,000 seconds", None),
            ("retry after 5 failed attempts", None),
            ("retry in 1e3 s", None),
            ("wait for it", None),
            ("Too many requests", None),
        ] {
            assert_eq!(seconds("{}", message, Dialect::Unknown), expected, "{message}");
        }
    }

    #[test]
    fn nonsense_is_no_time_to_wait() {
        assert_eq!(seconds(r#"{"retry_after":-5}"#, "", Dialect::Unknown), None);
        assert_eq!(seconds(r#"{"retry_after":"soon"}"#, "", Dialect::Unknown), None);
        assert_eq!(seconds(r#"{"retry_after":{}}"#, "", Dialect::Unknown), None);
    }
}
