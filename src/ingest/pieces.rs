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
    pub(super) span: Span,
    /// The number of its first line in the text.
    pub(super) first_line: u64,
    /// To be written down before the piece is sent.
    pub(super) plan: Option<Plan>,
}

/// Where a piece is in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// Where it begins, which is where a line does.
    pub(super) start: Mark,
    pub(super) end: Mark,
    /// It is the last line of the text and has no newline.
    pub(super) is_tail: bool,
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
    /// What earlier runs may have sent.
    planned: Vec<Plan>,
    /// What is there does not wait for more.
    is_live: bool,
}

impl<R: Read> Pieces<R> {
    pub(super) fn new(text: Text<R>, sizes: Sizes, planned: Vec<Plan>) -> Self {
        Self { text, sizes, planned, is_live: false }
    }

    /// Of a source that makes us wait: what it gives is handed on as it comes.
    pub(super) fn live(text: Text<R>, sizes: Sizes) -> Self {
        Self { is_live: true, ..Self::new(text, sizes, Vec::new()) }
    }

    pub(super) fn text(&self) -> &Text<R> {
        &self.text
    }

    /// The next piece.
    pub(super) fn next(&mut self) -> Option<Piece> {
        let is_early = self.fill();
        let is_end = self.text.buffer().len() < self.sizes.piece && !is_early;
        // In this order, since it is that of the runs that planned them.
        if let Some(length) = self.planned_tail() {
            return Some(self.tail(length));
        }
        if let Some(length) = self.planned_lines() {
            return Some(self.piece(length, None));
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
    fn fill(&mut self) -> bool {
        while self.text.buffer().len() < self.sizes.piece && !self.text.has_ended() {
            self.text.fill_once(self.sizes.piece);
            if self.is_live && !self.text.has_ended() && memchr(b'\n', self.text.buffer()).is_some() {
                return true;
            }
        }
        false
    }

    /// How far into the buffer the whole lines reach that an earlier run may have sent as its last piece.
    fn planned_lines(&self) -> Option<usize> {
        let lengths = self.planned.iter().filter_map(|plan| {
            let length = usize::try_from(plan.lines.checked_sub(self.text.position())?).ok()?;
            let fits = (1..=self.sizes.piece).contains(&length);
            (fits && self.text.buffer().get(length - 1) == Some(&b'\n')).then_some(length)
        });
        lengths.min()
    }

    /// How long the line is that an earlier run may have sent without its newline, if it has one now. At the end of the
    /// text it is the same piece anyway.
    fn planned_tail(&mut self) -> Option<usize> {
        let Self { text, sizes, planned, .. } = self;
        let here = planned.iter().filter(|plan| plan.lines == text.position() && plan.end > plan.lines);
        let lengths: Vec<usize> =
            here.filter_map(|plan| usize::try_from(plan.end - plan.lines).ok()).collect();
        lengths.into_iter().find(|&length| {
            if length >= sizes.line {
                return false;
            }
            text.fill(length + 2);
            let line = text.buffer().get(..length);
            line.is_some_and(|line| memchr(b'\n', line).is_none()) && text.line_end(length) > 0
        })
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
        let (start, first_line) = (self.text.mark(), self.text.lines() + 1);
        let body = self.text.take(self.sizes.line);
        let is_tail = !self.text.skip_line();
        if self.text.failure().is_some() && is_tail {
            return None;
        }
        let end = self.text.mark();
        let plan = is_tail.then_some(Plan { lines: start.position, end: end.position });
        Some(Piece { body, span: Span { start, end, is_tail }, first_line, plan })
    }

    /// What is to be written down when the whole lines of a text end this far into the buffer.
    fn plan(&self, length: usize) -> Plan {
        let place = |length: usize| self.text.position() + length as u64;
        let torn = self.text.failure().is_some();
        let end = if torn { length } else { self.text.buffer().len() };
        Plan { lines: place(length), end: place(end) }
    }

    fn piece(&mut self, length: usize, plan: Option<Plan>) -> Piece {
        let (start, first_line) = (self.text.mark(), self.text.lines() + 1);
        let body = self.text.take(length);
        Piece { body, span: Span { start, end: self.text.mark(), is_tail: false }, first_line, plan }
    }

    /// A line without its newline, which is passed over if it is there.
    fn tail(&mut self, length: usize) -> Piece {
        let mut piece = self.piece(length, None);
        piece.span.is_tail = true;
        self.text.take(self.text.line_end(0));
        piece
    }
}

#[cfg(test)]
mod tests;
