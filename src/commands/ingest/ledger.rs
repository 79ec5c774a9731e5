//! What has been ingested, and how far: one file beside the data, or one for each server.
//!
//! An entry knows a text by the hash of its first line, and by the hash of everything before the place it was ingested
//! to. So a text is known under another name and in another packing, and a log that has grown since goes on where it
//! ended. That a last line came without a newline is kept apart: when the line goes on later, it is another line.
//!
//! What always holds: an entry never claims more than was acknowledged, without a gap; the file is written whole or not
//! at all, and synced; it has a bounded number of entries, and the oldest make room.

mod file;

pub(super) use file::LedgerError;

use super::chunks::{Chunk, ChunkSpan, TailPlan};
use super::hashing_reader::{ContentHash, HashedOffset};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// More entries than this are not kept.
const MAX_ENTRIES: usize = 10_000;
/// Ends of earlier runs that an entry remembers: copies from then are known as long.
const MAX_EARLIER: usize = 16;
/// Runs without a single acknowledged piece, one after another, whose last pieces are remembered.
const MAX_PLANS: usize = 64;
/// An unfinished `--again` can be continued for as long as servers remember what they were sent.
const AGAIN_WINDOW_US: i64 = 24 * 60 * 60 * 1_000_000;

/// What is known of one text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Tells entries apart; random.
    pub(super) id: u64,
    /// What the file was called last.
    pub(super) name: String,
    /// The hash of its first line.
    pub(super) first: ContentHash,
    /// Everything before this was ingested; it is the end of a line.
    pub(super) done: HashedOffset,
    /// The end of the line after that, which was ingested too, though it had no newline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tail: Option<HashedOffset>,
    /// What runs that were killed may have sent beyond that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) plans: Vec<TailPlan>,
    /// The ends of pieces beyond that which are sent in parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) in_parts: Vec<u64>,
    /// Where earlier runs had ended, and how many lines that were: a copy may be from then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) earlier: Vec<(HashedOffset, u64)>,
    /// Lines, without blank ones.
    pub(super) lines: u64,
    /// When it was last added to, in microseconds since 1970.
    pub(super) time: i64,
    /// The run that ingests it once more, as long as that is not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) again: Option<String>,
}

impl Entry {
    /// Nothing ingested yet.
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

    /// Goes on from a place that it knows. A text that is known up to an earlier end only is another text: it gets an
    /// entry of its own.
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

    /// A piece has been acknowledged, and everything before it.
    pub(super) fn acknowledge(&mut self, chunk: &ChunkSpan, lines: u64, now: i64) {
        let ChunkSpan { start, end, is_tail } = *chunk;
        (self.done, self.tail) = if is_tail { (start, Some(end)) } else { (end, None) };
        self.in_parts.retain(|part| *part > end.position);
        self.plans.retain(|plan| plan.end > end.position);
        self.lines += lines;
        self.time = now;
    }

    /// A piece is about to be sent.
    pub(super) fn add_plan(&mut self, chunk: &Chunk) {
        if let Some(plan) = chunk.plan.filter(|plan| !self.plans.contains(plan)) {
            self.plans.push(plan);
            let excess = self.plans.len().saturating_sub(MAX_PLANS);
            self.plans.drain(..excess);
        }
    }

    /// The places up to which the text is known.
    pub(super) fn offsets(&self) -> impl Iterator<Item = (HashedOffset, ResumeOffset)> {
        let earlier = self
            .earlier
            .iter()
            .enumerate()
            .map(|(index, (offset, _))| (*offset, ResumeOffset::Earlier(index)));
        let tail = self.tail.map(|tail| (tail, ResumeOffset::Tail));
        earlier.chain([(self.done, ResumeOffset::Done)]).chain(tail)
    }

    /// How many lines are before a place.
    pub(super) fn lines_at(&self, known: ResumeOffset) -> u64 {
        match known {
            ResumeOffset::Earlier(index) => self.earlier[index].1,
            ResumeOffset::Done | ResumeOffset::Tail => self.lines,
        }
    }

    /// True when it may say how far a text was ingested: in a run that ingests once more, only such a run can.
    fn is_resumable(&self, again: bool, now: i64) -> bool {
        let is_recent = now.saturating_sub(self.time) < AGAIN_WINDOW_US;
        if again { self.again.is_some() && is_recent } else { self.again.is_none() }
    }
}

/// Which of an entry's places a text was found at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ResumeOffset {
    /// Where an earlier run had ended.
    Earlier(usize),
    /// As far as it was ingested.
    Done,
    /// After a last line without a newline.
    Tail,
}

/// All entries of a destination.
pub(super) struct Ledger {
    file: file::LedgerFile,
    entries: BTreeMap<u64, Entry>,
    /// What is not written yet.
    changed: BTreeMap<u64, Entry>,
}

impl Ledger {
    /// Reads the ledger that stands here; there may be none yet.
    pub(super) fn open(path: PathBuf) -> Result<Self, LedgerError> {
        let file = file::LedgerFile::new(path);
        let entries = file.read()?.into_iter().map(|entry| (entry.id, entry)).collect();
        Ok(Self { file, entries, changed: BTreeMap::new() })
    }

    /// What may tell how far texts were ingested.
    pub(super) fn resumable_entries(&self, again: bool, now: i64) -> Vec<Entry> {
        self.entries.values().filter(|entry| entry.is_resumable(again, now)).cloned().collect()
    }

    /// Takes the newest state of an entry; to be saved.
    pub(super) fn put(&mut self, entry: &Entry) {
        self.changed.insert(entry.id, entry.clone());
    }

    /// Writes down what has changed. When this returns, it is durable.
    ///
    /// Another process may have written to the same file: what it wrote stays.
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

/// Without the oldest, if there are too many.
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
