//! The framing that loggers and transports put around a reply: server-sent events, a prefix before JSON, the
//! lines of agent hosts.
//!
//! Only a text that does not start like JSON is examined here, so lines of plain JSON cost nothing. The
//! readers borrow from the text and do not judge failures; `envelope` does.
//!
//! Invariants: a prefix has a bounded number of parts, and at most a fixed number of positions is tried for
//! the start of JSON, so the work is linear in the length of the text.

mod host_message;
mod prefix;
mod server_sent_events;

pub(crate) use host_message::{HostMessage, HostOutcome};
pub(crate) use prefix::Prefix;
pub(crate) use server_sent_events::{for_each_event, is_server_sent_events};

/// The maximum number of positions that are tried for the start of JSON.
const MAX_JSON_STARTS: usize = 4;

/// Splits a text into a non-blank prefix and the JSON object or array that follows it.
pub(crate) fn split_json(text: &str) -> Option<(&str, &str)> {
    json_candidates(text).find(|(before, _)| !before.trim().is_empty())
}

/// Returns the candidates for JSON after a prefix, each with the text before it. Text after the JSON is left out.
pub(crate) fn json_candidates(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let end = text.rfind(['}', ']']).map_or(0, |at| at + 1);
    let body = &text[..end];
    memchr::memchr2_iter(b'{', b'[', body.as_bytes())
        .filter(move |&at| opens_json(&body.as_bytes()[at..]))
        .take(MAX_JSON_STARTS)
        .map(move |at| (&text[..at], &body[at..at + json_length(&body.as_bytes()[at..])]))
}

/// Returns the length of the JSON value at the start of bytes, or of all of them if it does not end.
fn json_length(bytes: &[u8]) -> usize {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    bytes.len()
}

/// Reports whether bytes start like the JSON of a reply, `{"`, `{\"` or `[{"`, rather than a log's `[info]`
/// or a format's `{0}`.
fn opens_json(bytes: &[u8]) -> bool {
    let mut rest = bytes[1..].iter().filter(|byte| !byte.is_ascii_whitespace());
    match (bytes[0], rest.next()) {
        (b'{', Some(b'"' | b'\\')) => true,
        (b'[', Some(b'{')) => matches!(rest.next(), Some(b'"' | b'\\')),
        _ => false,
    }
}

/// Unescapes JSON that was escaped twice: `{\"jsonrpc\":\"2.0\"}`. Returns `None` if there is nothing to
/// unescape.
pub(crate) fn unescape_json(json: &str) -> Option<String> {
    if !json.starts_with("{\\\"") && !json.starts_with("[{\\\"") {
        return None;
    }
    let mut text = String::with_capacity(json.len());
    let mut chars = json.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('"') => text.push('"'),
                Some('\\') => text.push('\\'),
                Some('n') => text.push('\n'),
                Some(other) => {
                    text.push('\\');
                    text.push(other);
                }
                None => text.push('\\'),
            },
            other => text.push(other),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests;
