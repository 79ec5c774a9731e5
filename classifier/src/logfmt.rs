//! Logfmt: `level=INFO msg="tool call" tool=echo status=401`.
//!
//! A line is put on a tape as the equivalent JSON object, so that everything after this point handles a
//! single format. Values stay texts, except whole numbers.

use crate::json::ObjectBuilder;
use std::mem;

/// Puts the fields of a line on a tape. Returns false if the line is not logfmt. `buffer` must be as long as
/// the line.
pub(crate) fn parse<'l>(line: &'l str, buffer: &'l mut [u8], object: &mut ObjectBuilder<'l>) -> bool {
    let mut buffer = UnescapeBuffer(buffer);
    let mut rest = line.trim();
    let mut is_first = true;
    while !rest.is_empty() {
        let end =
            rest.bytes().position(|byte| byte == b'=' || is_class(WHITESPACE, byte)).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let Some(value) = after.strip_prefix('=') else {
            // A bare word is a flag, but a line that starts with one is prose.
            if is_first {
                return false;
            }
            rest = after.trim_start();
            continue;
        };
        if !is_key(key) {
            return false;
        }
        rest = push_field(object, key, value, &mut buffer).trim_start();
        is_first = false;
    }
    !is_first
}

/// Returns the fields of a line that opens with a few words; `None` if fewer than two fields follow.
pub(crate) fn skip_words(line: &str) -> Option<&str> {
    const MAX_WORDS: usize = 4;
    const MIN_FIELDS: usize = 2;
    let mut rest = line.trim_start();
    for _ in 0..=MAX_WORDS {
        let end = rest.bytes().position(|byte| is_class(WHITESPACE, byte)).unwrap_or(rest.len());
        let is_field = |word: &str| word.split_once('=').is_some_and(|(key, _)| is_key(key));
        if is_field(&rest[..end]) {
            let fields = rest.split_ascii_whitespace().take(MIN_FIELDS).filter(|word| is_field(word)).count();
            return (fields == MIN_FIELDS).then_some(rest);
        }
        rest = rest[end..].trim_start();
    }
    None
}

/// The class of white space, which ends a key or a bare value.
const WHITESPACE: u8 = 1;
/// The class of bytes that keys consist of.
const KEY: u8 = 2;

const BYTE_CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'_' | b'.' | b'-' | b'@' | b'/' => KEY,
            b if b.is_ascii_alphanumeric() => KEY,
            b if b.is_ascii_whitespace() => WHITESPACE,
            _ => 0,
        };
        byte += 1;
    }
    table
};

const fn is_class(class: u8, byte: u8) -> bool {
    BYTE_CLASS[byte as usize] == class
}

fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '@')
        && key.bytes().all(|byte| is_class(KEY, byte))
}

/// Puts one field on the tape and returns the text after its value.
fn push_field<'l>(
    object: &mut ObjectBuilder<'l>,
    key: &'l str,
    text: &'l str,
    buffer: &mut UnescapeBuffer<'l>,
) -> &'l str {
    if let Some(quoted) = text.strip_prefix('"') {
        let (end, has_escapes) = find_closing_quote(quoted);
        let value = &quoted[..end];
        object.push_text(key, if has_escapes { buffer.unescape(value) } else { value });
        return quoted.get(end + 1..).unwrap_or_default();
    }
    let end = text.bytes().position(|byte| is_class(WHITESPACE, byte)).unwrap_or(text.len());
    let (value, rest) = text.split_at(end);
    match parse_integer(value) {
        Some(number) => object.push_number(key, number),
        None => object.push_text(key, value),
    }
    rest
}

/// Parses a whole number. Longer digit strings and those with a leading zero are identifiers.
fn parse_integer(text: &str) -> Option<u64> {
    const MAX_DIGITS: usize = 15;
    let is_short = (1..=MAX_DIGITS).contains(&text.len()) && (text == "0" || !text.starts_with('0'));
    (is_short && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Returns the position where a quoted value ends, and true if the value has escapes.
fn find_closing_quote(text: &str) -> (usize, bool) {
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'"', b'\\', &text.as_bytes()[from..]) {
        if text.as_bytes()[from + at] == b'"' {
            return (from + at, from > 0);
        }
        // An escape covers the byte after it.
        from = (from + at + 2).min(text.len());
    }
    (text.len(), from > 0)
}

/// The buffer for unescaped values, one after another.
struct UnescapeBuffer<'l>(&'l mut [u8]);

impl<'l> UnescapeBuffer<'l> {
    /// Unescapes a value. The result is never longer than the input, so the buffer holds all values of the
    /// line.
    fn unescape(&mut self, text: &str) -> &'l str {
        let buffer = mem::take(&mut self.0);
        let mut length = 0;
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            buffer[length] = match (byte, byte == b'\\') {
                (_, true) => match bytes.next() {
                    Some(b'n') => b'\n',
                    Some(b't') => b'\t',
                    Some(b'r') => b'\r',
                    Some(other) => other,
                    None => b'\\',
                },
                (byte, false) => byte,
            };
            length += 1;
        }
        let (value, rest) = buffer.split_at_mut(length);
        self.0 = rest;
        std::str::from_utf8(value).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Parser;
    use crate::json::Scalar::{self, Text, Unsigned};

    fn check(line: &str, expected: &[(&str, Scalar<'_>)]) {
        let mut buffer = vec![0; line.len()];
        let read = Parser::new(1).build_object(
            |object| parse(line, &mut buffer, object),
            |json| {
                let fields = json.fields().filter_map(|(key, value)| Some((key, value.scalar()?)));
                assert_eq!(fields.collect::<Vec<_>>(), expected, "{line}");
            },
        );
        assert_eq!(read.is_none(), expected.is_empty(), "{line}");
    }

    #[test]
    fn pairs_become_fields() {
        check(
            r#"level=INFO msg="tool call" audit=true user=u-17 status=401 empty= zip=012"#,
            &[
                ("level", Text("INFO")),
                ("msg", Text("tool call")),
                ("audit", Text("true")),
                ("user", Text("u-17")),
                ("status", Unsigned(401)),
                ("empty", Text("")),
                ("zip", Text("012")),
            ],
        );
        check(
            r#"msg="say \"hi\"\n" flag n=1 path="C:\\é" end="\"#,
            &[
                ("msg", Text("say \"hi\"\n")),
                ("n", Unsigned(1)),
                ("path", Text("C:\\é")),
                ("end", Text("\\")),
            ],
        );
        check(r#"msg="not closed"#, &[("msg", Text("not closed"))]);
    }

    #[test]
    fn prose_is_not_logfmt() {
        for line in ["", "hello world", "error: a=b", "a b=c", "=x", "1+1=2"] {
            check(line, &[]);
        }
    }
}
