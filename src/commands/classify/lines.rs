//! Splits the bytes of a reader into lines.
//!
//! The lines are slices of one buffer of a fixed size, so a line of gigabytes, or a small file that decompresses to
//! one, needs no more memory than any other.
//!
//! Invariant: every line is returned once, in order, and a line that does not fit is returned as [`Line::TooLong`]
//! instead, so that line numbers stay correct.

use crate::cli::input::{LINE_SLACK, READ_BYTES};
use std::io::{self, Read};

/// One line, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// The whole line.
    Complete(&'a [u8]),
    /// A line that is longer than the limit, and was skipped.
    TooLong,
}

/// Splits the bytes of a reader into lines. Call [`fill`](Self::fill), then [`next_line`](Self::next_line) until it
/// returns `None`, and repeat.
pub(super) struct LineReader<R> {
    reader: R,
    buffer: Box<[u8]>,
    /// The start of the part of the buffer that has not been returned yet.
    start: usize,
    end: usize,
    /// The position up to which no newline was found, so that an unfinished line is not searched twice.
    searched: usize,
    max_line_bytes: usize,
    /// True while the reader is inside a line that is too long.
    skipping: bool,
    ended: bool,
}

impl<R: Read> LineReader<R> {
    /// Creates a reader of lines of up to `max_line_bytes` bytes.
    pub(super) fn new(reader: R, max_line_bytes: usize) -> Self {
        let max_line_bytes = max_line_bytes + LINE_SLACK;
        let buffer = vec![0; max_line_bytes + READ_BYTES].into_boxed_slice();
        Self { reader, buffer, start: 0, end: 0, searched: 0, max_line_bytes, skipping: false, ended: false }
    }

    /// Reads once, and returns false at the end of the input. This call blocks while a live source has no data.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.searched -= self.start;
            self.start = 0;
        }
        let read = loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.end += read;
        self.ended = read == 0;
        Ok(true)
    }

    /// Returns the next complete line in the buffer. At the end of the input, the last line needs no newline.
    pub(super) fn next_line(&mut self) -> Option<Line<'_>> {
        while let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..self.end]) {
            let line = self.start..self.searched + at;
            self.start = line.end + 1;
            self.searched = self.start;
            if !std::mem::take(&mut self.skipping) {
                return Some(Line::Complete(&self.buffer[line]));
            }
        }
        let rest = self.start..self.end;
        self.searched = self.end;
        if self.skipping || rest.len() > self.max_line_bytes {
            self.start = self.end;
            let is_new = !std::mem::replace(&mut self.skipping, true);
            return is_new.then_some(Line::TooLong);
        }
        if self.ended && !rest.is_empty() {
            self.start = self.end;
            return Some(Line::Complete(&self.buffer[rest]));
        }
        None
    }
}

#[cfg(test)]
mod tests;
