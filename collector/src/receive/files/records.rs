//! Finds whole records in the newest bytes of a text: lines, and JSON that was written over several lines.
//!
//! JSON has no line break inside a string, so one between its parts is only white space: it becomes a blank, and the record
//! a line like any other. Whoever reads the lines later need not know.
//!
//! What always holds:
//! - What is cut off ends where a line does, unless the text is over or its last line is whole JSON that nobody went on with.
//! - The work is linear: lines that were tried in vain as one record are not tried again.
//! - A record that is not whole within [`JOINED`] bytes is taken for the lines it is written in.

use crate::receive::envelopes::split::scan;
use memchr::{memchr, memchr_iter};
use serde::de::IgnoredAny;
use serde_json::Deserializer;
use std::ops::Range;

/// The longest record over several lines.
const JOINED: usize = 1 << 20;

/// What is known of what comes after the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::receive) enum After {
    /// Perhaps more, soon.
    More,
    /// Nothing came for a while.
    Quiet,
    /// Nothing will come.
    Nothing,
}

/// Whole records at the beginning of some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::receive) struct Cut {
    /// How long they are.
    pub(in crate::receive) length: usize,
    /// How many there are.
    pub(super) records: usize,
    /// Those over several lines.
    joined: Vec<Range<usize>>,
}

impl Cut {
    /// Makes lines of the records over several lines.
    pub(in crate::receive) fn join(&self, bytes: &mut [u8]) {
        for range in &self.joined {
            let record = bytes.get_mut(range.clone()).unwrap_or_default();
            record.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        }
    }
}

/// What a text is that may be a record over several lines.
enum Tried {
    /// A record; it ends here.
    Whole(usize),
    /// It may become one.
    Open,
    /// It is none: so many lines were looked at.
    Not(usize),
}

/// Finds at most so many records.
pub(in crate::receive) fn cut(bytes: &[u8], after: After, most: usize) -> Cut {
    let mut cut = Cut::default();
    // Lines that are known to be records of their own.
    let mut single = 0_usize;
    while cut.records < most {
        let rest = bytes.get(cut.length..).unwrap_or_default();
        let Some(end) = memchr(b'\n', rest) else {
            cut.take_tail(rest, after);
            return cut;
        };
        if single == 0 && begins_value(&rest[..end]) {
            match try_join(rest, after) {
                Tried::Whole(length) => {
                    cut.joined.push(cut.length..cut.length + length);
                    let newline = memchr(b'\n', &rest[length..]);
                    cut.take(newline.map_or(rest.len(), |at| length + at + 1));
                    continue;
                }
                Tried::Open => return cut,
                Tried::Not(lines) => single = lines.max(1),
            }
        }
        single = single.saturating_sub(1);
        cut.take(end + 1);
    }
    cut
}

impl Cut {
    fn take(&mut self, length: usize) {
        self.length += length;
        self.records += 1;
    }

    /// The last line, which has no newline.
    fn take_tail(&mut self, line: &[u8], after: After) {
        let is_whole = match after {
            After::More => false,
            After::Quiet => is_json(line),
            After::Nothing => true,
        };
        if is_whole && !line.is_empty() {
            self.take(line.len());
        }
    }
}

/// True for a line that begins a JSON value and does not end it.
fn begins_value(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    matches!(line.first(), Some(b'{' | b'[')) && scan::value(line).is_none()
}

fn is_json(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), Some(b'{'))
        && serde_json::from_slice::<IgnoredAny>(line.trim_ascii()).is_ok()
}

fn try_join(rest: &[u8], after: After) -> Tried {
    let window = &rest[..rest.len().min(JOINED)];
    let mut values = Deserializer::from_slice(window).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => {
            let length = values.byte_offset();
            let line = &rest[length..];
            let newline = memchr(b'\n', line);
            let is_alone = line[..newline.unwrap_or(line.len())].trim_ascii().is_empty();
            match (is_alone, newline, after) {
                (false, ..) => Tried::Not(lines(&window[..length])),
                (true, None, After::More) => Tried::Open,
                (true, ..) => Tried::Whole(length),
            }
        }
        Some(Err(error)) if error.is_eof() => match after {
            After::More if window.len() < JOINED => Tried::Open,
            _ => Tried::Not(lines(window)),
        },
        // The line with the mistake may begin a record.
        Some(Err(error)) => Tried::Not(error.line().saturating_sub(1)),
        None => Tried::Not(1),
    }
}

fn lines(bytes: &[u8]) -> usize {
    memchr_iter(b'\n', bytes).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of a text, and what is left.
    #[track_caller]
    fn check(text: &str, after: After, records: &[&str], rest: &str) {
        let cut = cut(text.as_bytes(), after, usize::MAX);
        let mut bytes = text.as_bytes().to_vec();
        cut.join(&mut bytes);
        let body = std::str::from_utf8(&bytes[..cut.length]).unwrap();
        let found: Vec<&str> = body.lines().collect();
        assert_eq!((found, &text[cut.length..]), (records.to_vec(), rest), "{text:?} {after:?}");
        assert_eq!(cut.records, records.len());
    }

    #[test]
    fn lines_are_records_and_the_last_one_waits_for_its_end() {
        check("one\n\ntwo\nthr", After::More, &["one", "", "two"], "thr");
        check("one\ntwo", After::Quiet, &["one"], "two");
        check("one\ntwo", After::Nothing, &["one", "two"], "");
        check("one\n{\"a\":1}", After::More, &["one"], "{\"a\":1}");
        check("one\n{\"a\":1}", After::Quiet, &["one", "{\"a\":1}"], "");
        check("one\n{\"a\":", After::Quiet, &["one"], "{\"a\":");
        check("", After::Nothing, &[], "");
    }

    #[test]
    fn json_over_several_lines_is_one_record() {
        let pretty = "{\n  \"a\": [\n    1\n  ]\n}\n";
        check(&format!("x\n{pretty}y\n"), After::More, &["x", "{   \"a\": [     1   ] }", "y"], "");
        check("[\r\n1\r\n]\r\n", After::More, &["[  1  ]"], "");
        check("{\"a\": {\"b\": 1}\n}\n", After::More, &["{\"a\": {\"b\": 1} }"], "");
        check("{\n\"a\":1\n}", After::More, &[], "{\n\"a\":1\n}");
        check("{\n\"a\":1\n}", After::Quiet, &["{ \"a\":1 }"], "");
    }

    #[test]
    fn a_record_that_is_not_whole_waits_and_then_is_lines() {
        check("x\n{\n\"a\":1,\n", After::More, &["x"], "{\n\"a\":1,\n");
        check("x\n{\n\"a\":1,\n", After::Quiet, &["x", "{", "\"a\":1,"], "");
        let long = format!("[\n{}", "1,\n".repeat(JOINED / 3));
        let cut = cut(long.as_bytes(), After::More, usize::MAX);
        assert!(cut.length > JOINED - 8 && cut.joined.is_empty());
    }

    #[test]
    fn what_only_looks_like_json_is_lines() {
        check("[INFO] starting {\n[12:00] x\n", After::More, &["[INFO] starting {", "[12:00] x"], "");
        // The first was cut off; the second is whole.
        check("{\"a\":\n{\n\"b\":1\n}\n", After::Quiet, &["{\"a\":", "{", "\"b\":1", "}"], "");
        check("{ oh no\n{\n\"b\":1\n}\n", After::More, &["{ oh no", "{ \"b\":1 }"], "");
        check("{\n{\n\"b\":1\n}\n", After::More, &["{", "{ \"b\":1 }"], "");
        check("{\n} trailing\nx\n", After::More, &["{", "} trailing", "x"], "");
    }

    #[test]
    fn the_work_is_linear() {
        let began = std::time::Instant::now();
        for text in ["{\n", "[1,\n", "{\"a\":\n", "[\n[],\n"] {
            let _ = cut(text.repeat(400_000).as_bytes(), After::Quiet, usize::MAX);
        }
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }

    #[test]
    fn no_more_are_taken_than_asked_for() {
        assert_eq!(cut(b"a\nb\nc\n", After::More, 2).length, 4);
    }
}
