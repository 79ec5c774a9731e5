//! Determines the position up to which a text was ingested before.
//!
//! It reads no further than the furthest position of an entry with the same first line, and compares the hash of the
//! text before every such position. Ingestion continues at the furthest match.

use super::hashing_reader::{ContentHash, HashedOffset, HashingReader};
use super::ledger::{Entry, ResumeOffset};
use std::io::{self, Read};

/// The position from which a text is to be ingested.
pub(super) struct ResumePoint<R> {
    /// The reader, at that position.
    pub(super) reader: HashingReader<R>,
    pub(super) first_line: ContentHash,
    /// The entry of the text, if it has one, and the position in that entry that matched.
    pub(super) entry: Option<(Entry, ResumeOffset)>,
}

impl<R: Read> ResumePoint<R> {
    /// Returns true when the text was ingested before and nothing was added since.
    pub(super) fn has_nothing_new(&mut self) -> bool {
        self.reader.fill(1);
        self.entry.is_some() && self.reader.position() > 0 && self.reader.buffer().is_empty()
    }
}

/// Looks a text up. `open` opens it, and is called again if more was read than matches.
pub(super) fn find_resume_point<R: Read>(
    entries: &[Entry],
    mut open: impl FnMut() -> io::Result<R>,
) -> io::Result<ResumePoint<R>> {
    let mut reader = HashingReader::new(open()?);
    let first_line = reader.first_line_hash();
    let known = entries.iter().filter(|entry| entry.first == first_line);
    let mut offsets: Vec<(HashedOffset, ResumeOffset, &Entry)> =
        known.flat_map(|entry| entry.offsets().map(move |(offset, known)| (offset, known, entry))).collect();
    // Among equal positions, the current end wins over ends of earlier runs, and then the newest entry wins.
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
        // The newline of the last line was added since.
        reader.fill(2);
        reader.take(reader.newline_length(0));
    }
    Ok(ResumePoint { reader, first_line, entry: Some((entry.clone(), known)) })
}

/// Returns true when the text before a position is unchanged. A line that had no newline must not have grown.
fn matches<R: Read>(reader: &mut HashingReader<R>, offset: HashedOffset, known: ResumeOffset) -> bool {
    if !reader.skip_to(offset.position) || reader.offset() != offset {
        return false;
    }
    reader.fill(2);
    known != ResumeOffset::Tail || reader.buffer().is_empty() || reader.newline_length(0) > 0
}

#[cfg(test)]
mod tests;
