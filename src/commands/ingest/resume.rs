//! Finds out how far a text has been ingested before.
//!
//! Reads no further than the furthest place that an entry with the same first line claims, and compares the hash of what
//! came before at every such place. The furthest match is where ingesting goes on.

use super::hashing_reader::{ContentHash, HashedOffset, HashingReader};
use super::ledger::{Entry, ResumeOffset};
use std::io::{self, Read};

/// Where a text is to be ingested from.
pub(super) struct ResumePoint<R> {
    /// At the place where it goes on.
    pub(super) reader: HashingReader<R>,
    pub(super) first_line: ContentHash,
    /// What is known of it, if anything is, and by which of its places.
    pub(super) entry: Option<(Entry, ResumeOffset)>,
}

impl<R: Read> ResumePoint<R> {
    /// True when it was ingested before and nothing was added since.
    pub(super) fn has_nothing_new(&mut self) -> bool {
        self.reader.fill(1);
        self.entry.is_some() && self.reader.position() > 0 && self.reader.buffer().is_empty()
    }
}

/// Looks a text up. `open` opens it, and is called again when more was read than is known.
pub(super) fn find_resume_point<R: Read>(
    entries: &[Entry],
    mut open: impl FnMut() -> io::Result<R>,
) -> io::Result<ResumePoint<R>> {
    let mut reader = HashingReader::new(open()?);
    let first_line = reader.first_line_hash();
    let known = entries.iter().filter(|entry| entry.first == first_line);
    let mut offsets: Vec<(HashedOffset, ResumeOffset, &Entry)> =
        known.flat_map(|entry| entry.offsets().map(move |(offset, known)| (offset, known, entry))).collect();
    // Of those that know equally much, the one that is there now, and then the newest.
    offsets.sort_by_key(|(offset, known, entry)| (offset.position, *known, entry.time));
    let mut best = None;
    for (offset, known, entry) in offsets {
        if matches(&mut reader, offset, known) {
            best = Some((offset, known, entry));
        }
    }
    let Some((offset, known, entry)) = best else {
        if reader.position() > 0 {
            reader = HashingReader::new(open()?);
        }
        return Ok(ResumePoint { reader, first_line, entry: None });
    };
    if reader.position() != offset.position {
        reader = HashingReader::new(open()?);
        reader.skip_to(offset.position);
    }
    if known == ResumeOffset::Tail {
        // Its newline has come since.
        reader.fill(2);
        reader.take(reader.newline_length(0));
    }
    Ok(ResumePoint { reader, first_line, entry: Some((entry.clone(), known)) })
}

/// True when everything before a place is what it was. A line that had no newline must not have gone on.
fn matches<R: Read>(reader: &mut HashingReader<R>, offset: HashedOffset, known: ResumeOffset) -> bool {
    if !reader.skip_to(offset.position) || reader.offset() != offset {
        return false;
    }
    reader.fill(2);
    known != ResumeOffset::Tail || reader.buffer().is_empty() || reader.newline_length(0) > 0
}

#[cfg(test)]
mod tests;
