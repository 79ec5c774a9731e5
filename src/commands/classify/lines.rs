//! Cuts what a reader gives into lines.
//!
//! Lines are cut out of one buffer of a fixed size, so a line of gigabytes, or a small file that unpacks to one, costs no
//! more memory than any other.
//!
//! What always holds: every line is handed out once, in order, and a line that does not fit is handed out as
//! [`Line::TooLong`] instead, so that line numbers stay right.

use crate::cli::input::{LINE_SLACK, READ_BYTES};
use std::io::{self, Read};

/// One line, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// All of it.
    Complete(&'a [u8]),
    /// More than may be held; it was passed over.
    TooLong,
}

/// Cuts what a reader gives into lines. Call [`fill`](Self::fill), then [`next_line`](Self::next_line) until
/// there is none, and so on.
pub(super) struct LineReader<R> {
    reader: R,
    buffer: Box<[u8]>,
    /// The start of the part of the buffer that is not handed out yet.
    start: usize,
    end: usize,
    /// Up to here no newline was found: an unfinished line is not searched twice.
    searched: usize,
    max_line_bytes: usize,
    /// Inside a line that was given up.
    skipping: bool,
    ended: bool,
}

impl<R: Read> LineReader<R> {
    /// Lines of up to `max_line_bytes` bytes.
    pub(super) fn new(reader: R, max_line_bytes: usize) -> Self {
        let max_line_bytes = max_line_bytes + LINE_SLACK;
        let buffer = vec![0; max_line_bytes + READ_BYTES].into_boxed_slice();
        Self { reader, buffer, start: 0, end: 0, searched: 0, max_line_bytes, skipping: false, ended: false }
    }

    /// Reads once; false at the end. This is where a live source makes us wait.
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

    /// The next line that is there whole; at the end also one without a newline.
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
