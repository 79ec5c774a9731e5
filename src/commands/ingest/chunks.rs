//! Cuts a text into pieces of whole lines, each small enough for one request.
//!
//! What always holds:
//! - Where pieces end depends on where the first one begins and on the text, and not on how far the text reaches, but for
//!   the pieces at its end. Those say so ([`Chunk::plan`]), so that it can be written down before they are sent: when
//!   the text has grown by the next time, the same pieces are cut once more and known for the same.
//! - Every line is in one piece. The last line of a text may lack its newline; it is a piece of its own.
//! - A line that is too long to be read costs no more memory than any other: its beginning is sent, so that it is
//!   refused and counted where all lines are, and the rest is passed over.

use super::hashing_reader::{HashedOffset, HashingReader};
use crate::cli::input::LINE_SLACK;
use bytes::Bytes;
use memchr::{memchr, memrchr};
use serde::{Deserialize, Serialize};
use std::io::Read;

/// A piece is as many whole lines as fit into this.
const CHUNK_BYTES: usize = 1 << 20;

/// Whole lines on their way.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) body: Bytes,
    pub(super) span: ChunkSpan,
    /// The number of its first line in the text.
    pub(super) first_line: u64,
    /// To be written down before the piece is sent.
    pub(super) plan: Option<TailPlan>,
}

/// The position of a chunk in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkSpan {
    /// The start of the chunk, which is the start of a line.
    pub(super) start: HashedOffset,
    pub(super) end: HashedOffset,
    /// It is the last line of the text and has no newline.
    pub(super) is_tail: bool,
}

/// The ends of the last chunks of a text, which may have been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TailPlan {
    /// The end of the last whole line.
    pub(super) lines: u64,
    /// The end of the text: the same, or after a last line without a newline.
    pub(super) end: u64,
}

/// Sizes, which tests choose smaller.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkSizes {
    pub(super) chunk: usize,
    /// More of a line is not kept.
    pub(super) line: usize,
}

impl Default for ChunkSizes {
    fn default() -> Self {
        // One more than could be read, so that it is refused for its length.
        Self { chunk: CHUNK_BYTES, line: classifier::Limits::default().line_bytes + LINE_SLACK + 1 }
    }
}

/// A text as pieces.
pub(super) struct Chunker<R> {
    reader: HashingReader<R>,
    sizes: ChunkSizes,
    /// What earlier runs may have sent.
    planned: Vec<TailPlan>,
    /// What is there does not wait for more.
    is_streaming: bool,
}

impl<R: Read> Chunker<R> {
    pub(super) fn new(reader: HashingReader<R>, sizes: ChunkSizes, planned: Vec<TailPlan>) -> Self {
        Self { reader, sizes, planned, is_streaming: false }
    }

    /// Of a source that makes us wait: what it gives is handed on as it comes.
    pub(super) fn streaming(reader: HashingReader<R>, sizes: ChunkSizes) -> Self {
        Self { is_streaming: true, ..Self::new(reader, sizes, Vec::new()) }
    }

    pub(super) fn reader(&self) -> &HashingReader<R> {
        &self.reader
    }

    /// The next piece.
    pub(super) fn next(&mut self) -> Option<Chunk> {
        let is_early = self.fill();
        let is_end = self.reader.buffer().len() < self.sizes.chunk && !is_early;
        // In this order, since it is that of the runs that planned them.
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

    /// Reads as much as a piece may hold; true when whole lines are there and should not wait for more.
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

    /// How far into the buffer the whole lines reach that an earlier run may have sent as its last piece.
    fn planned_lines(&self) -> Option<usize> {
        let lengths = self.planned.iter().filter_map(|plan| {
            let length = usize::try_from(plan.lines.checked_sub(self.reader.position())?).ok()?;
            let fits = (1..=self.sizes.chunk).contains(&length);
            (fits && self.reader.buffer().get(length - 1) == Some(&b'\n')).then_some(length)
        });
        lengths.min()
    }

    /// How long the line is that an earlier run may have sent without its newline, if it has one now. At the end of the
    /// text it is the same piece anyway.
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

    /// No newline within a piece: one long line, whole or not, or the last one.
    fn long_line(&mut self) -> Option<Chunk> {
        self.reader.fill(self.sizes.line);
        let buffer = self.reader.buffer();
        if let Some(at) = memchr(b'\n', buffer) {
            return Some(self.chunk(at + 1, None));
        }
        if buffer.len() >= self.sizes.line {
            return self.oversized_line();
        }
        // Half a line of a file that could not be read on is no line.
        let length = buffer.len();
        if self.reader.error().is_some() {
            return None;
        }
        let plan = self.plan(0);
        let mut chunk = self.tail(length);
        chunk.plan = Some(plan);
        Some(chunk)
    }

    /// Keeps the beginning of a line, and passes over the rest.
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

    /// What is to be written down when the whole lines of a text end this far into the buffer.
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

    /// A line without its newline, which is passed over if it is there.
    fn tail(&mut self, length: usize) -> Chunk {
        let mut chunk = self.chunk(length, None);
        chunk.span.is_tail = true;
        self.reader.take(self.reader.newline_length(0));
        chunk
    }
}

#[cfg(test)]
mod tests;
