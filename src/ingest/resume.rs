//! Finds out how far a text has been ingested before.
//!
//! Reads no further than the furthest place that an entry with the same first line claims, and compares the hash of what
//! came before at every such place. The furthest match is where ingesting goes on.

use super::ledger::{Entry, Known};
use super::text::{Digest, Mark, Text};
use std::io::{self, Read};

/// Where a text is to be ingested from.
pub(super) struct Found<R> {
    /// At the place where it goes on.
    pub(super) text: Text<R>,
    pub(super) first: Digest,
    /// What is known of it, if anything is, and by which of its places.
    pub(super) entry: Option<(Entry, Known)>,
}

impl<R: Read> Found<R> {
    /// True when it was ingested before and nothing was added since.
    pub(super) fn has_nothing_new(&mut self) -> bool {
        self.text.fill(1);
        self.entry.is_some() && self.text.position() > 0 && self.text.buffer().is_empty()
    }
}

/// Looks a text up. `open` opens it, and is called again when more was read than is known.
pub(super) fn find<R: Read>(
    entries: &[Entry],
    mut open: impl FnMut() -> io::Result<R>,
) -> io::Result<Found<R>> {
    let mut text = Text::new(open()?);
    let first = text.first_line();
    let known = entries.iter().filter(|entry| entry.first == first);
    let mut marks: Vec<(Mark, Known, &Entry)> =
        known.flat_map(|entry| entry.marks().map(move |(mark, known)| (mark, known, entry))).collect();
    // Of those that know equally much, the one that is there now, and then the newest.
    marks.sort_by_key(|(mark, known, entry)| (mark.position, *known, entry.time));
    let mut best = None;
    for (mark, known, entry) in marks {
        if matches(&mut text, mark, known) {
            best = Some((mark, known, entry));
        }
    }
    let Some((mark, known, entry)) = best else {
        if text.position() > 0 {
            text = Text::new(open()?);
        }
        return Ok(Found { text, first, entry: None });
    };
    if text.position() != mark.position {
        text = Text::new(open()?);
        text.skip_to(mark.position);
    }
    if known == Known::Tail {
        // Its newline has come since.
        text.fill(2);
        text.take(text.line_end(0));
    }
    Ok(Found { text, first, entry: Some((entry.clone(), known)) })
}

/// True when everything before a place is what it was. A line that had no newline must not have gone on.
fn matches<R: Read>(text: &mut Text<R>, mark: Mark, known: Known) -> bool {
    if !text.skip_to(mark.position) || text.mark() != mark {
        return false;
    }
    text.fill(2);
    known != Known::Tail || text.buffer().is_empty() || text.line_end(0) > 0
}

#[cfg(test)]
mod tests;
