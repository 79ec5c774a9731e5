//! Finds complete records in the newest bytes of an input: lines, and JSON that was written over several lines.
//!
//! JSON has no line break inside a string, so a line break between its parts is only white space. It is replaced by a
//! space, and the record becomes a line like any other, which needs no special handling later.
//!
//! Invariants:
//! - The complete records end at a line break, unless the input has ended, or its last line is complete JSON and did
//!   not grow for a while.
//! - The work is linear: lines that could not be joined into one record are not tried again.
//! - A record that is not complete within [`MAX_MULTILINE_BYTES`] bytes is read as separate lines.

use crate::receivers::envelopes::record_splitter::json_scanner;
use memchr::{memchr, memchr_iter};
use serde::de::IgnoredAny;
use serde_json::Deserializer;
use std::ops::Range;

/// The largest record over several lines.
const MAX_MULTILINE_BYTES: usize = 1 << 20;

/// The state of an input: whether more bytes may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::receivers) enum InputState {
    /// More bytes may follow soon.
    MayGrow,
    /// No bytes have arrived for a while.
    Quiet,
    /// No more bytes will follow.
    Ended,
}

/// The complete records at the beginning of some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::receivers) struct CompleteRecords {
    /// Their length in bytes.
    pub(in crate::receivers) length: usize,
    /// Their number.
    pub(super) records: usize,
    /// The ranges of those that span several lines.
    joined: Vec<Range<usize>>,
}

impl CompleteRecords {
    /// Joins each record that spans several lines into one line.
    pub(in crate::receivers) fn join(&self, bytes: &mut [u8]) {
        for range in &self.joined {
            let record = bytes.get_mut(range.clone()).unwrap_or_default();
            record.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        }
    }
}

/// The result of an attempt to join lines into one record.
enum JoinAttempt {
    /// The lines are a record of this length.
    Complete(usize),
    /// The lines may become a record when more bytes arrive.
    Incomplete,
    /// The lines are not one record; this many lines were examined.
    NotRecord(usize),
}

/// Finds at most `most` complete records.
pub(in crate::receivers) fn find_complete_records(
    bytes: &[u8],
    after: InputState,
    most: usize,
) -> CompleteRecords {
    let mut cut = CompleteRecords::default();
    // The number of next lines that are known to be separate records.
    let mut single = 0_usize;
    while cut.records < most {
        let rest = bytes.get(cut.length..).unwrap_or_default();
        let Some(end) = memchr(b'\n', rest) else {
            cut.take_tail(rest, after);
            return cut;
        };
        if single == 0 && begins_value(&rest[..end]) {
            match try_join(rest, after) {
                JoinAttempt::Complete(length) => {
                    cut.joined.push(cut.length..cut.length + length);
                    let newline = memchr(b'\n', &rest[length..]);
                    cut.take(newline.map_or(rest.len(), |at| length + at + 1));
                    continue;
                }
                JoinAttempt::Incomplete => return cut,
                JoinAttempt::NotRecord(lines) => single = lines.max(1),
            }
        }
        single = single.saturating_sub(1);
        cut.take(end + 1);
    }
    cut
}

impl CompleteRecords {
    fn take(&mut self, length: usize) {
        self.length += length;
        self.records += 1;
    }

    /// Takes the last line, which has no newline, if it is complete.
    fn take_tail(&mut self, line: &[u8], after: InputState) {
        let is_whole = match after {
            InputState::MayGrow => false,
            InputState::Quiet => is_json(line),
            InputState::Ended => true,
        };
        if is_whole && !line.is_empty() {
            self.take(line.len());
        }
    }
}

/// Returns true if a line begins a JSON value and does not end it.
fn begins_value(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    matches!(line.first(), Some(b'{' | b'[')) && json_scanner::value(line).is_none()
}

fn is_json(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), Some(b'{'))
        && serde_json::from_slice::<IgnoredAny>(line.trim_ascii()).is_ok()
}

fn try_join(rest: &[u8], after: InputState) -> JoinAttempt {
    let window = &rest[..rest.len().min(MAX_MULTILINE_BYTES)];
    let mut values = Deserializer::from_slice(window).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => {
            let length = values.byte_offset();
            let line = &rest[length..];
            let newline = memchr(b'\n', line);
            let is_alone = line[..newline.unwrap_or(line.len())].trim_ascii().is_empty();
            match (is_alone, newline, after) {
                (false, ..) => JoinAttempt::NotRecord(lines(&window[..length])),
                (true, None, InputState::MayGrow) => JoinAttempt::Incomplete,
                (true, ..) => JoinAttempt::Complete(length),
            }
        }
        Some(Err(error)) if error.is_eof() => match after {
            InputState::MayGrow if window.len() < MAX_MULTILINE_BYTES => JoinAttempt::Incomplete,
            _ => JoinAttempt::NotRecord(lines(window)),
        },
        // The line with the syntax error may itself begin a record, so it is not counted.
        Some(Err(error)) => JoinAttempt::NotRecord(error.line().saturating_sub(1)),
        None => JoinAttempt::NotRecord(1),
    }
}

fn lines(bytes: &[u8]) -> usize {
    memchr_iter(b'\n', bytes).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the complete records of a text, and the rest.
    #[track_caller]
    fn check(text: &str, after: InputState, records: &[&str], rest: &str) {
        let cut = find_complete_records(text.as_bytes(), after, usize::MAX);
        let mut bytes = text.as_bytes().to_vec();
        cut.join(&mut bytes);
        let body = std::str::from_utf8(&bytes[..cut.length]).unwrap();
        let found: Vec<&str> = body.lines().collect();
        assert_eq!((found, &text[cut.length..]), (records.to_vec(), rest), "{text:?} {after:?}");
        assert_eq!(cut.records, records.len());
    }

    #[test]
    fn lines_are_records_and_the_last_one_waits_for_its_end() {
        check("one\n\ntwo\nthr", InputState::MayGrow, &["one", "", "two"], "thr");
        check("one\ntwo", InputState::Quiet, &["one"], "two");
        check("one\ntwo", InputState::Ended, &["one", "two"], "");
        check("one\n{\"a\":1}", InputState::MayGrow, &["one"], "{\"a\":1}");
        check("one\n{\"a\":1}", InputState::Quiet, &["one", "{\"a\":1}"], "");
        check("one\n{\"a\":", InputState::Quiet, &["one"], "{\"a\":");
        check("", InputState::Ended, &[], "");
    }

    #[test]
    fn json_over_several_lines_is_one_record() {
        let pretty = "{\n  \"a\": [\n    1\n  ]\n}\n";
        check(&format!("x\n{pretty}y\n"), InputState::MayGrow, &["x", "{   \"a\": [     1   ] }", "y"], "");
        check("[\r\n1\r\n]\r\n", InputState::MayGrow, &["[  1  ]"], "");
        check("{\"a\": {\"b\": 1}\n}\n", InputState::MayGrow, &["{\"a\": {\"b\": 1} }"], "");
        check("{\n\"a\":1\n}", InputState::MayGrow, &[], "{\n\"a\":1\n}");
        check("{\n\"a\":1\n}", InputState::Quiet, &["{ \"a\":1 }"], "");
    }

    #[test]
    fn a_record_that_is_not_whole_waits_and_then_is_lines() {
        check("x\n{\n\"a\":1,\n", InputState::MayGrow, &["x"], "{\n\"a\":1,\n");
        check("x\n{\n\"a\":1,\n", InputState::Quiet, &["x", "{", "\"a\":1,"], "");
        let long = format!("[\n{}", "1,\n".repeat(MAX_MULTILINE_BYTES / 3));
        let cut = find_complete_records(long.as_bytes(), InputState::MayGrow, usize::MAX);
        assert!(cut.length > MAX_MULTILINE_BYTES - 8 && cut.joined.is_empty());
    }

    #[test]
    fn what_only_looks_like_json_is_lines() {
        check("[INFO] starting {\n[12:00] x\n", InputState::MayGrow, &["[INFO] starting {", "[12:00] x"], "");
        // The first value was cut off; the second is complete.
        check("{\"a\":\n{\n\"b\":1\n}\n", InputState::Quiet, &["{\"a\":", "{", "\"b\":1", "}"], "");
        check("{ oh no\n{\n\"b\":1\n}\n", InputState::MayGrow, &["{ oh no", "{ \"b\":1 }"], "");
        check("{\n{\n\"b\":1\n}\n", InputState::MayGrow, &["{", "{ \"b\":1 }"], "");
        check("{\n} trailing\nx\n", InputState::MayGrow, &["{", "} trailing", "x"], "");
    }

    #[test]
    fn the_work_is_linear() {
        let began = std::time::Instant::now();
        for text in ["{\n", "[1,\n", "{\"a\":\n", "[\n[],\n"] {
            let _ = find_complete_records(text.repeat(400_000).as_bytes(), InputState::Quiet, usize::MAX);
        }
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }

    #[test]
    fn no_more_are_taken_than_asked_for() {
        assert_eq!(find_complete_records(b"a\nb\nc\n", InputState::MayGrow, 2).length, 4);
    }
}
