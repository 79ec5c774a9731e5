//! The ledger records the progress of every text: one file beside the data, or one for each server.
//!
//! An entry identifies a text by the hash of its first line, and by the hash of everything before the position up to
//! which it was ingested. So a text is recognized under another name and with another compression, and a log that has
//! grown since continues at its previous end. A last line without a newline is recorded separately: if that line grows
//! later, it is another line.
//!
//! Invariants: an entry never claims more than was acknowledged without a gap; the file is written atomically and
//! synced; the number of entries is bounded, and the oldest are removed first.

mod file;

pub(super) use file::LedgerError;

use super::chunks::{Chunk, ChunkSpan, TailPlan};
use super::hashing_reader::{ContentHash, HashedOffset};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The maximum number of entries.
const MAX_ENTRIES: usize = 10_000;
/// The number of ends of earlier runs that an entry records, so that copies from those times are recognized.
const MAX_EARLIER: usize = 16;
/// The maximum number of recorded plans, one for each consecutive run without any acknowledged chunk.
const MAX_PLANS: usize = 64;
/// The time for which an unfinished `--again` can be continued, which is how long servers remember idempotency keys.
const AGAIN_WINDOW_US: i64 = 24 * 60 * 60 * 1_000_000;

/// The progress of one text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The random identifier of the entry.
    pub(super) id: u64,
    /// The latest name of the file.
    pub(super) name: String,
    /// The hash of the first line.
    pub(super) first: ContentHash,
    /// The position before which everything was ingested; it is the end of a line.
    pub(super) done: HashedOffset,
    /// The end of the line after `done`, if it was ingested although it had no newline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tail: Option<HashedOffset>,
    /// The plans of runs that may have sent chunks beyond `done` and were killed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) plans: Vec<TailPlan>,
    /// The ends of chunks beyond `done` that are sent in parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) in_parts: Vec<u64>,
    /// The positions at which earlier runs ended, each with its number of lines; a copy may be as old as that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) earlier: Vec<(HashedOffset, u64)>,
    /// The number of lines, without blank ones.
    pub(super) lines: u64,
    /// The time of the last progress, in microseconds since 1970.
    pub(super) time: i64,
    /// The name of the `--again` run that ingests the text once more, until that is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) again: Option<String>,
}

impl Entry {
    /// Creates an entry without progress.
    pub(super) fn new(id: u64, name: &str, first: ContentHash, again: Option<String>) -> Self {
        let (name, done) = (name.to_owned(), HashedOffset::start());
        Self {
            id,
            name,
            first,
            done,
            tail: None,
            plans: Vec::new(),
            in_parts: Vec::new(),
            earlier: Vec::new(),
            lines: 0,
            time: 0,
            again,
        }
    }

    /// Continues from a recorded position. A text that matches only up to an earlier end is a different text, so it
    /// gets an entry of its own.
    pub(super) fn resume_from(&mut self, from: ResumeOffset, new_id: u64) {
        match from {
            ResumeOffset::Earlier(index) => {
                (self.id, self.tail) = (new_id, None);
                self.plans.clear();
                self.in_parts.clear();
                (self.done, self.lines) = self.earlier[index];
                self.earlier.truncate(index + 1);
            }
            ResumeOffset::Done | ResumeOffset::Tail if self.done.position > 0 => {
                self.earlier.push((self.done, self.lines));
            }
            ResumeOffset::Done | ResumeOffset::Tail => {}
        }
        let excess = self.earlier.len().saturating_sub(MAX_EARLIER);
        self.earlier.drain(..excess);
    }

    /// Records that a chunk has been acknowledged, and everything before it.
    pub(super) fn acknowledge(&mut self, chunk: &ChunkSpan, lines: u64, now: i64) {
        let ChunkSpan { start, end, is_tail } = *chunk;
        (self.done, self.tail) = if is_tail { (start, Some(end)) } else { (end, None) };
        self.in_parts.retain(|part| *part > end.position);
        self.plans.retain(|plan| plan.end > end.position);
        self.lines += lines;
        self.time = now;
    }

    /// Records the plan of a chunk that is about to be sent.
    pub(super) fn add_plan(&mut self, chunk: &Chunk) {
        if let Some(plan) = chunk.plan.filter(|plan| !self.plans.contains(plan)) {
            self.plans.push(plan);
            let excess = self.plans.len().saturating_sub(MAX_PLANS);
            self.plans.drain(..excess);
        }
    }

    /// Returns the positions up to which the text is known.
    pub(super) fn offsets(&self) -> impl Iterator<Item = (HashedOffset, ResumeOffset)> {
        let earlier = self
            .earlier
            .iter()
            .enumerate()
            .map(|(index, (offset, _))| (*offset, ResumeOffset::Earlier(index)));
        let tail = self.tail.map(|tail| (tail, ResumeOffset::Tail));
        earlier.chain([(self.done, ResumeOffset::Done)]).chain(tail)
    }

    /// Returns the number of lines before a position.
    pub(super) fn lines_at(&self, known: ResumeOffset) -> u64 {
        match known {
            ResumeOffset::Earlier(index) => self.earlier[index].1,
            ResumeOffset::Done | ResumeOffset::Tail => self.lines,
        }
    }

    /// Returns true when a run may continue from this entry. A run with `--again` continues only recent entries of
    /// unfinished runs with `--again`; other runs ignore those.
    fn is_resumable(&self, again: bool, now: i64) -> bool {
        let is_recent = now.saturating_sub(self.time) < AGAIN_WINDOW_US;
        if again { self.again.is_some() && is_recent } else { self.again.is_none() }
    }
}

/// The recorded position of an entry at which a text matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ResumeOffset {
    /// The end of an earlier run.
    Earlier(usize),
    /// The position up to which the text was ingested.
    Done,
    /// The position after a last line without a newline.
    Tail,
}

/// The entries of one destination.
pub(super) struct Ledger {
    file: file::LedgerFile,
    entries: BTreeMap<u64, Entry>,
    /// The entries that are not written yet.
    changed: BTreeMap<u64, Entry>,
}

impl Ledger {
    /// Reads the ledger at this path; the file may not exist yet.
    pub(super) fn open(path: PathBuf) -> Result<Self, LedgerError> {
        let file = file::LedgerFile::new(path);
        let entries = file.read()?.into_iter().map(|entry| (entry.id, entry)).collect();
        Ok(Self { file, entries, changed: BTreeMap::new() })
    }

    /// Returns the entries from which a run may continue.
    pub(super) fn resumable_entries(&self, again: bool, now: i64) -> Vec<Entry> {
        self.entries.values().filter(|entry| entry.is_resumable(again, now)).cloned().collect()
    }

    /// Stores the newest state of an entry, which `save` writes.
    pub(super) fn put(&mut self, entry: &Entry) {
        self.changed.insert(entry.id, entry.clone());
    }

    /// Writes the changes. When this returns, they are durable.
    ///
    /// Another process may have written to the same file; its entries are kept.
    pub(super) fn save(&mut self) -> Result<(), LedgerError> {
        if self.changed.is_empty() {
            return Ok(());
        }
        let changed = &self.changed;
        self.entries = self.file.update(|entries| {
            let mut all: BTreeMap<u64, Entry> = entries.into_iter().map(|entry| (entry.id, entry)).collect();
            all.extend(changed.iter().map(|(id, entry)| (*id, entry.clone())));
            drop_oldest(all, MAX_ENTRIES)
        })?;
        self.changed.clear();
        Ok(())
    }
}

/// Removes the oldest entries beyond the limit.
fn drop_oldest(mut entries: BTreeMap<u64, Entry>, limit: usize) -> BTreeMap<u64, Entry> {
    if entries.len() > limit {
        let mut ages: Vec<(i64, u64)> = entries.values().map(|entry| (entry.time, entry.id)).collect();
        ages.sort_unstable();
        for (_, id) in &ages[..ages.len() - limit] {
            entries.remove(id);
        }
    }
    entries
}

#[cfg(test)]
mod tests;
