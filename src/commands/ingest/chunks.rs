//! Splits a text into chunks of whole lines, each small enough for one request.
//!
//! Invariants:
//! - The ends of chunks depend on the start of the first chunk and on the text, but not on the length of the text,
//!   except for the chunks at its end. Those carry a plan ([`Chunk::plan`]), which is recorded before they are sent:
//!   when the text has grown by the next run, the same chunks are split off again, and the destination recognizes them.
//! - Every line is in one chunk. The last line of a text may lack its newline; it is a chunk of its own.
//! - A line that is too long to be read needs no more memory than any other: its beginning is sent, so that it is
//!   rejected and counted where all lines are, and the rest is skipped.

use super::hashing_reader::{HashedOffset, HashingReader};
use crate::cli::input::LINE_SLACK;
use bytes::Bytes;
use memchr::{memchr, memrchr};
use serde::{Deserialize, Serialize};
use std::io::Read;

/// The size of a chunk, which is filled with as many whole lines as fit.
const CHUNK_BYTES: usize = 1 << 20;

/// Whole lines to be sent in one request.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) body: Bytes,
    pub(super) span: ChunkSpan,
    /// The number of the chunk's first line in the text.
    pub(super) first_line: u64,
    /// The plan that must be recorded before the chunk is sent.
    pub(super) plan: Option<TailPlan>,
}

/// The position of a chunk in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkSpan {
    /// The start of the chunk, which is the start of a line.
    pub(super) start: HashedOffset,
    pub(super) end: HashedOffset,
    /// True if the chunk is the last line of the text and has no newline.
    pub(super) is_tail: bool,
}

/// The ends of the last chunks of a text, which may have been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TailPlan {
    /// The end of the last whole line.
    pub(super) lines: u64,
    /// The end of the text: the same position, or the one after a last line without a newline.
    pub(super) end: u64,
}

/// The sizes of chunks and lines. Tests use smaller ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkSizes {
    pub(super) chunk: usize,
    /// The maximum number of bytes that are kept of a line.
    pub(super) line: usize,
}

impl Default for ChunkSizes {
    fn default() -> Self {
        // One byte more than the limit, so that the line is rejected for its length.
        Self { chunk: CHUNK_BYTES, line: classifier::Limits::default().line_bytes + LINE_SLACK + 1 }
    }
}

/// Splits a text into chunks.
pub(super) struct Chunker<R> {
    reader: HashingReader<R>,
    sizes: ChunkSizes,
    /// The plans of earlier runs, whose chunks may have been sent.
    planned: Vec<TailPlan>,
    /// True if whole lines in the buffer are returned without waiting for more.
    is_streaming: bool,
}

impl<R: Read> Chunker<R> {
    pub(super) fn new(reader: HashingReader<R>, sizes: ChunkSizes, planned: Vec<TailPlan>) -> Self {
        Self { reader, sizes, planned, is_streaming: false }
    }

    /// Creates a chunker for a source that can block: whole lines are returned as they arrive.
    pub(super) fn streaming(reader: HashingReader<R>, sizes: ChunkSizes) -> Self {
        Self { is_streaming: true, ..Self::new(reader, sizes, Vec::new()) }
    }

    pub(super) fn reader(&self) -> &HashingReader<R> {
        &self.reader
    }

    /// Returns the next chunk.
    pub(super) fn next(&mut self) -> Option<Chunk> {
        let is_early = self.fill();
        let is_end = self.reader.buffer().len() < self.sizes.chunk && !is_early;
        // The order of these checks is that of the runs that recorded the plans.
        if let Some(length) = self.planned_tail() {
            return Some(self.tail(length));
        }
        if let Some(length) = self.planned_lines() {
            return Some(self.chunk(length, None));
        }
        let window = &self.reader.buffer()[..self.reader.buffer().len().min(self.sizes.chunk)];
        match memrchr(b'\n', window) {
            Some(at) => {
                let plan = is_end.then(|| self.plan(at + 1));
                Some(self.chunk(at + 1, plan))
            }
            None if window.is_empty() => None,
            None => self.long_line(),
        }
    }

    /// Fills the buffer up to the size of a chunk. Returns true when whole lines are available and should not wait for
    /// more.
    fn fill(&mut self) -> bool {
        while self.reader.buffer().len() < self.sizes.chunk && !self.reader.has_ended() {
            self.reader.fill_once(self.sizes.chunk);
            if self.is_streaming && !self.reader.has_ended() && memchr(b'\n', self.reader.buffer()).is_some()
            {
                return true;
            }
        }
        false
    }

    /// Returns the length of the whole lines in the buffer that an earlier run may have sent as its last chunk.
    fn planned_lines(&self) -> Option<usize> {
        let lengths = self.planned.iter().filter_map(|plan| {
            let length = usize::try_from(plan.lines.checked_sub(self.reader.position())?).ok()?;
            let fits = (1..=self.sizes.chunk).contains(&length);
            (fits && self.reader.buffer().get(length - 1) == Some(&b'\n')).then_some(length)
        });
        lengths.min()
    }

    /// Returns the length of the line that an earlier run may have sent without its newline, if the line now has one.
    /// At the end of the text it is the same chunk in any case.
    fn planned_tail(&mut self) -> Option<usize> {
        let Self { reader, sizes, planned, .. } = self;
        let here = planned.iter().filter(|plan| plan.lines == reader.position() && plan.end > plan.lines);
        let lengths: Vec<usize> =
            here.filter_map(|plan| usize::try_from(plan.end - plan.lines).ok()).collect();
        lengths.into_iter().find(|&length| {
            if length >= sizes.line {
                return false;
            }
            reader.fill(length + 2);
            let line = reader.buffer().get(..length);
            line.is_some_and(|line| memchr(b'\n', line).is_none()) && reader.newline_length(length) > 0
        })
    }

    /// Returns the chunk at a position where no newline follows within a chunk: a long line, whole or truncated, or the
    /// last one.
    fn long_line(&mut self) -> Option<Chunk> {
        self.reader.fill(self.sizes.line);
        let buffer = self.reader.buffer();
        if let Some(at) = memchr(b'\n', buffer) {
            return Some(self.chunk(at + 1, None));
        }
        if buffer.len() >= self.sizes.line {
            return self.oversized_line();
        }
        // If the file could not be read further, the incomplete line is not sent.
        let length = buffer.len();
        if self.reader.error().is_some() {
            return None;
        }
        let plan = self.plan(0);
        let mut chunk = self.tail(length);
        chunk.plan = Some(plan);
        Some(chunk)
    }

    /// Keeps the beginning of a line, and skips the rest.
    fn oversized_line(&mut self) -> Option<Chunk> {
        let (start, first_line) = (self.reader.offset(), self.reader.lines() + 1);
        let body = self.reader.take(self.sizes.line);
        let is_tail = !self.reader.skip_line();
        if self.reader.error().is_some() && is_tail {
            return None;
        }
        let end = self.reader.offset();
        let plan = is_tail.then_some(TailPlan { lines: start.position, end: end.position });
        Some(Chunk { body, span: ChunkSpan { start, end, is_tail }, first_line, plan })
    }

    /// Returns the plan to record when the whole lines of the text end this far into the buffer.
    fn plan(&self, length: usize) -> TailPlan {
        let at = |length: usize| self.reader.position() + length as u64;
        let is_truncated = self.reader.error().is_some();
        let end = if is_truncated { length } else { self.reader.buffer().len() };
        TailPlan { lines: at(length), end: at(end) }
    }

    fn chunk(&mut self, length: usize, plan: Option<TailPlan>) -> Chunk {
        let (start, first_line) = (self.reader.offset(), self.reader.lines() + 1);
        let body = self.reader.take(length);
        Chunk { body, span: ChunkSpan { start, end: self.reader.offset(), is_tail: false }, first_line, plan }
    }

    /// Returns a line without its newline, which is skipped if it is there.
    fn tail(&mut self, length: usize) -> Chunk {
        let mut chunk = self.chunk(length, None);
        chunk.span.is_tail = true;
        self.reader.take(self.reader.newline_length(0));
        chunk
    }
}

#[cfg(test)]
mod tests;
