//! Tests that lines are returned once and in order, however the bytes arrive, and that long lines are not kept in
//! memory.

use super::*;
use proptest::prelude::*;
use std::io::Cursor;

/// A reader that returns a few bytes at a time, as a pipe may.
struct SlowReader<'a> {
    rest: &'a [u8],
    step: usize,
}

impl Read for SlowReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.step.min(self.rest.len()).min(buffer.len());
        let (now, later) = self.rest.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.rest = later;
        Ok(count)
    }
}

/// Returns every line; `None` is one that was too long.
fn lines(bytes: &[u8], step: usize, max_line_bytes: usize) -> Vec<Option<Vec<u8>>> {
    let mut lines = LineReader::new(SlowReader { rest: bytes, step }, max_line_bytes);
    let mut all = Vec::new();
    while lines.fill().unwrap() {
        while let Some(line) = lines.next_line() {
            all.push(match line {
                Line::Complete(line) => Some(line.to_vec()),
                Line::TooLong => None,
            });
        }
    }
    all
}

/// Returns the expected lines, computed in memory. A line that is too long and arrives in one piece is left to the
/// classifier.
fn expected(bytes: &[u8], max_line_bytes: usize) -> Vec<Option<Vec<u8>>> {
    let mut all: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    if all.last().is_some_and(|last| last.is_empty()) {
        all.pop();
    }
    all.into_iter().map(|line| (line.len() <= max_line_bytes + LINE_SLACK).then(|| line.to_vec())).collect()
}

proptest! {
    #[test]
    fn lines_are_those_of_the_text(
        text in proptest::collection::vec(prop_oneof![4 => Just(b'x'), 1 => Just(b'\n')], 0..300),
        step in 1_usize..40,
    ) {
        prop_assert_eq!(lines(&text, step, 1000), expected(&text, 1000));
    }

    #[test]
    fn a_long_line_leaves_the_others_alone(before in 0_usize..5, length in 0_usize..200, after in 0_usize..5) {
        let max_line_bytes = 40;
        let mut text = b"ok\n".repeat(before);
        text.extend(b"x".repeat(length));
        text.push(b'\n');
        text.extend(b"ok\n".repeat(after));
        prop_assert_eq!(lines(&text, 1, max_line_bytes), expected(&text, max_line_bytes));
    }
}

#[test]
fn a_line_that_never_ends_is_reported_once_and_not_held() {
    let endless = Cursor::new(b"ok\n").chain(io::repeat(b'x').take(20 << 20));
    let mut lines = LineReader::new(endless, 1 << 10);
    let size = lines.buffer.len();
    let mut found = Vec::new();
    while lines.fill().unwrap() {
        while let Some(line) = lines.next_line() {
            found.push(line == Line::TooLong);
        }
    }
    assert_eq!(found, [false, true]);
    assert_eq!(lines.buffer.len(), size);
}
