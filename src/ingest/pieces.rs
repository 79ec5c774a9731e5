//! Cuts a text into pieces of whole lines, each small enough for one request.
//!
//! What always holds:
//! - Where pieces end depends on where the first one begins and on the text, and not on how far the text reaches, but for
//!   the pieces at its end. Those say so ([`Piece::plan`]), so that it can be written down before they are sent: when
//!   the text has grown by the next time, the same pieces are cut once more and known for the same.
//! - Every line is in one piece. The last line of a text may lack its newline; it is a piece of its own.
//! - A line that is too long to be read costs no more memory than any other: its beginning is sent, so that it is
//!   refused and counted where all lines are, and the rest is passed over.

use super::text::{Mark, Text};
use crate::input::SLACK;
use bytes::Bytes;
use memchr::{memchr, memrchr};
use serde::{Deserialize, Serialize};
use std::io::Read;

/// A piece is as many whole lines as fit into this.
const PIECE: usize = 1 << 20;

/// Whole lines on their way.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) body: Bytes,
    /// Where it ends.
    pub(super) end: Mark,
    /// The number of its first line in the text.
    pub(super) first_line: u64,
    /// It is the last line of the text and has no newline.
    pub(super) is_tail: bool,
    /// To be written down before the piece is sent.
    pub(super) plan: Option<Plan>,
}

/// Where the last pieces of a text end, which may have been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The end of the last whole line.
    pub(super) lines: u64,
    /// The end of the text: the same, or after a last line without a newline.
    pub(super) end: u64,
}

/// Sizes, which tests choose smaller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) piece: usize,
    /// More of a line is not kept.
    pub(super) line: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        // One more than could be read, so that it is refused for its length.
        Self { piece: PIECE, line: taxonomy::Limits::default().line_bytes + SLACK + 1 }
    }
}

/// A text as pieces.
pub(super) struct Pieces<R> {
    text: Text<R>,
    sizes: Sizes,
    /// What an earlier run may have sent.
    planned: Option<Plan>,
}

impl<R: Read> Pieces<R> {
    pub(super) fn new(text: Text<R>, sizes: Sizes, planned: Option<Plan>) -> Self {
        Self { text, sizes, planned }
    }

    pub(super) fn text(&self) -> &Text<R> {
        &self.text
    }

    /// The next piece. `is_idle` is asked of a source that makes us wait: true when what is there should not wait, too.
    pub(super) fn next(&mut self, is_idle: impl Fn() -> bool) -> Option<Piece> {
        let is_early = self.fill(is_idle);
        let is_end = self.text.buffer().len() < self.sizes.piece && !is_early;
        if let Some(length) = self.planned_lines() {
            return Some(self.piece(length, None));
        }
        if let Some(length) = self.planned_tail() {
            return Some(self.tail(length));
        }
        let window = &self.text.buffer()[..self.text.buffer().len().min(self.sizes.piece)];
        match memrchr(b'\n', window) {
            Some(at) => {
                let plan = is_end.then(|| self.plan(at + 1));
                Some(self.piece(at + 1, plan))
            }
            None if window.is_empty() => None,
            None => self.long_line(),
        }
    }

    /// Reads as much as a piece may hold; true when whole lines are there and should not wait for more.
    fn fill(&mut self, is_idle: impl Fn() -> bool) -> bool {
        while self.text.buffer().len() < self.sizes.piece && !self.text.has_ended() {
            self.text.fill_once(self.sizes.piece);
            if is_idle() && !self.text.has_ended() && memchr(b'\n', self.text.buffer()).is_some() {
                return true;
            }
        }
        false
    }

    /// How far into the buffer the whole lines reach that an earlier run may have sent as its last piece.
    fn planned_lines(&self) -> Option<usize> {
        let length = usize::try_from(self.planned?.lines.checked_sub(self.text.position())?).ok()?;
        let fits = (1..=self.sizes.piece).contains(&length);
        (fits && self.text.buffer().get(length - 1) == Some(&b'\n')).then_some(length)
    }

    /// How long the line is that an earlier run may have sent without its newline, if it has one now. At the end of the
    /// text it is the same piece anyway.
    fn planned_tail(&mut self) -> Option<usize> {
        let length = usize::try_from(self.planned?.end.checked_sub(self.text.position())?).ok()?;
        if length == 0 || length >= self.sizes.line {
            return None;
        }
        self.text.fill(length + 2);
        let line = self.text.buffer().get(..length)?;
        (memchr(b'\n', line).is_none() && self.text.line_end(length) > 0).then_some(length)
    }

    /// No newline within a piece: one long line, whole or not, or the last one.
    fn long_line(&mut self) -> Option<Piece> {
        self.text.fill(self.sizes.line);
        let buffer = self.text.buffer();
        if let Some(at) = memchr(b'\n', buffer) {
            return Some(self.piece(at + 1, None));
        }
        if buffer.len() >= self.sizes.line {
            return self.endless_line();
        }
        // Half a line of a file that could not be read on is no line.
        let length = buffer.len();
        if self.text.failure().is_some() {
            return None;
        }
        let plan = self.plan(0);
        let mut piece = self.tail(length);
        piece.plan = Some(plan);
        Some(piece)
    }

    /// Keeps the beginning of a line, and passes over the rest.
    fn endless_line(&mut self) -> Option<Piece> {
        let (start, first_line) = (self.text.position(), self.text.lines() + 1);
        let body = self.text.take(self.sizes.line);
        let is_tail = !self.text.skip_line();
        if self.text.failure().is_some() && is_tail {
            return None;
        }
        let end = self.text.mark();
        let plan = is_tail.then_some(Plan { lines: start, end: end.position });
        Some(Piece { body, end, first_line, is_tail, plan })
    }

    /// What is to be written down when the whole lines of a text end this far into the buffer.
    fn plan(&self, length: usize) -> Plan {
        let place = |length: usize| self.text.position() + length as u64;
        let torn = self.text.failure().is_some();
        let end = if torn { length } else { self.text.buffer().len() };
        Plan { lines: place(length), end: place(end) }
    }

    fn piece(&mut self, length: usize, plan: Option<Plan>) -> Piece {
        let first_line = self.text.lines() + 1;
        let body = self.text.take(length);
        Piece { body, end: self.text.mark(), first_line, is_tail: false, plan }
    }

    /// A line without its newline, which is passed over if it is there.
    fn tail(&mut self, length: usize) -> Piece {
        let piece = Piece { is_tail: true, ..self.piece(length, None) };
        self.text.take(self.text.line_end(0));
        piece
    }
}

#[cfg(test)]
mod tests;
