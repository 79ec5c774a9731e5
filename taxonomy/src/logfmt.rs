//! Logfmt: `level=INFO msg="tool call" tool=echo status=401`.
//!
//! A line is put on a tape as the object it stands for, so that everything after this point knows one
//! format only. Values stay texts, except whole numbers.

use crate::json::ObjectTape;
use std::mem;

/// Puts the fields of a line on a tape; false when the line is not logfmt. `room` is as long as the line.
pub(crate) fn read<'l>(line: &'l str, room: &'l mut [u8], tape: &mut ObjectTape<'l>) -> bool {
    let mut room = Room(room);
    let mut rest = line.trim();
    let mut is_first = true;
    while !rest.is_empty() {
        let end = rest.bytes().position(|byte| byte == b'=' || is(SPACE, byte)).unwrap_or(rest.len());
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
        rest = put(tape, key, value, &mut room).trim_start();
        is_first = false;
    }
    !is_first
}

/// White space: it ends a key or a bare value.
const SPACE: u8 = 1;
/// What keys are made of.
const KEY: u8 = 2;

const KIND: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'_' | b'.' | b'-' | b'@' | b'/' => KEY,
            b if b.is_ascii_alphanumeric() => KEY,
            b if b.is_ascii_whitespace() => SPACE,
            _ => 0,
        };
        byte += 1;
    }
    table
};

const fn is(kind: u8, byte: u8) -> bool {
    KIND[byte as usize] == kind
}

fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '@')
        && key.bytes().all(|byte| is(KEY, byte))
}

/// Puts one field on the tape and returns what follows its value.
fn put<'l>(tape: &mut ObjectTape<'l>, key: &'l str, text: &'l str, room: &mut Room<'l>) -> &'l str {
    if let Some(quoted) = text.strip_prefix('"') {
        let (end, has_escapes) = closing_quote(quoted);
        let value = &quoted[..end];
        tape.text(key, if has_escapes { room.unescaped(value) } else { value });
        return quoted.get(end + 1..).unwrap_or_default();
    }
    let end = text.bytes().position(|byte| is(SPACE, byte)).unwrap_or(text.len());
    let (value, rest) = text.split_at(end);
    match whole_number(value) {
        Some(number) => tape.number(key, number),
        None => tape.text(key, value),
    }
    rest
}

/// A number that is written like one: identifiers may be longer, or start with a zero.
fn whole_number(text: &str) -> Option<u64> {
    const LONGEST: usize = 15;
    let is_short = (1..=LONGEST).contains(&text.len()) && (text == "0" || !text.starts_with('0'));
    (is_short && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Where a quoted value ends, and whether there are escapes in it.
fn closing_quote(text: &str) -> (usize, bool) {
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'"', b'\\', &text.as_bytes()[from..]) {
        if text.as_bytes()[from + at] == b'"' {
            return (from + at, from > 0);
        }
        // An escape covers what follows it.
        from = (from + at + 2).min(text.len());
    }
    (text.len(), from > 0)
}

/// Where values go that do not stand in the line as they are meant, one after another.
struct Room<'l>(&'l mut [u8]);

impl<'l> Room<'l> {
    /// Never longer than what is written, so there is room for all values of the line.
    fn unescaped(&mut self, text: &str) -> &'l str {
        let room = mem::take(&mut self.0);
        let mut length = 0;
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            room[length] = match (byte, byte == b'\\') {
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
        let (value, rest) = room.split_at_mut(length);
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
        let mut room = vec![0; line.len()];
        let read = Parser::new(1).read_fields(
            |tape| read(line, &mut room, tape),
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
