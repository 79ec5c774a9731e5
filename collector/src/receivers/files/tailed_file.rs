//! One file that is being read: what is new in it, and what became of that.
//!
//! What always holds:
//! - Nothing is read past what was delivered: a batch that was refused is read once more.
//! - Before anything is read on, the bytes before it are compared with those that were read: a file that was emptied
//!   and written anew is noticed even when it has grown past the old place.

use super::file_content::{FileContent, FileStamp};
use super::file_reader::{FileReader, stamp};
use super::record_boundaries::{InputState, find_complete_records};
use super::rolling_hash::RollingHash;
use super::rotation;
use super::timeouts::Timeouts;
use bytes::Bytes;
use memchr::memchr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

/// How many bytes before a place are compared.
const COMPARED_BYTES: usize = 256;
/// What a line may have beside what is read of it: its end, and white space.
const LINE_SLACK_BYTES: usize = 16;
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A file among all others, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    pub(super) device: u64,
    pub(super) inode: u64,
}

/// A file that is being read.
pub(super) struct TailedFile {
    pub(super) id: FileId,
    pub(super) path: PathBuf,
    /// By which of the patterns it was found.
    pub(super) pattern: usize,
    pub(super) text: FileContent,
    chain: RollingHash,
    reader: FileReader,
    /// The last bytes before the place.
    before: Vec<u8>,
    pub(super) stamp: FileStamp,
    /// When the stamp changed last.
    pub(super) changed: Instant,
    /// What was known of the future when nothing whole was found; none while there may be something.
    exhausted: Option<InputState>,
    /// It was renamed: nobody will write to it for long.
    pub(super) is_rotated: bool,
    /// None of the names we look at is its own any more.
    pub(super) is_gone: bool,
    /// `RecordConsumer` in a batch: fewer after one was refused.
    most: usize,
    /// The next record was refused for ever, and is left out.
    skips_one: bool,
}

/// What may be delivered.
pub(super) struct Batch {
    pub(super) body: Bytes,
    pub(super) text: FileContent,
    records: usize,
    chain: RollingHash,
    before: Vec<u8>,
}

/// What a file has.
pub(super) enum Next {
    Nothing,
    /// Only the rest of a line that was refused; ask again.
    Passed,
    Batch(Box<Batch>),
    /// Something else than what was read from it.
    Replaced,
}

impl TailedFile {
    /// A file whose text is known as far as the chain.
    pub(super) fn new(
        id: FileId,
        pattern: usize,
        text: FileContent,
        chain: RollingHash,
        reader: FileReader,
        now: Instant,
    ) -> io::Result<Self> {
        let metadata = reader.metadata()?;
        Ok(Self {
            id,
            path: text.path.clone(),
            pattern,
            text,
            chain,
            reader,
            before: Vec::new(),
            stamp: stamp(&metadata),
            changed: now,
            exhausted: None,
            is_rotated: false,
            is_gone: false,
            most: usize::MAX,
            skips_one: false,
        })
    }

    /// With the bytes that stand before the place.
    pub(super) fn with_before(mut self, bytes: &[u8]) -> Self {
        self.before = end_of(bytes).to_vec();
        self
    }

    pub(super) fn position(&self) -> u64 {
        self.chain.offset()
    }

    pub(super) fn is_packed(&self) -> bool {
        self.reader.is_packed()
    }

    /// Sees whether it has changed; true when it has become shorter than what was read.
    pub(super) fn look(&mut self, now: Instant) -> io::Result<bool> {
        let metadata = self.reader.metadata()?;
        let stamp = stamp(&metadata);
        if stamp != self.stamp {
            self.stamp = stamp;
            self.changed = now;
            self.exhausted = None;
        }
        // Nobody can open it any more by a name.
        self.is_rotated |= metadata.nlink() == 0;
        Ok(!self.is_packed() && stamp.size < self.position())
    }

    /// What is to be expected of it.
    fn after(&self, now: Instant, times: &Timeouts) -> InputState {
        let quiet = now.saturating_duration_since(self.changed);
        let is_over = (self.is_rotated || self.is_gone) && quiet >= times.rotated_linger;
        match () {
            () if self.is_packed() || is_over => InputState::Ended,
            () if quiet >= times.quiet_after => InputState::Quiet,
            () => InputState::MayGrow,
        }
    }

    /// False when there is nothing to be read.
    pub(super) fn may_have_more(&self, now: Instant, times: &Timeouts) -> bool {
        let has_bytes = self.is_packed() || self.position() < self.stamp.size;
        has_bytes && self.exhausted != Some(self.after(now, times))
    }

    /// True when nothing will ever come from it.
    pub(super) fn is_finished(&self, now: Instant, times: &Timeouts) -> bool {
        self.after(now, times) == InputState::Ended && !self.may_have_more(now, times)
    }

    /// True when all of it was read.
    pub(super) fn is_read(&self) -> bool {
        self.position() == self.stamp.size
    }

    /// What it holds and was not delivered yet, in bytes; nobody knows that of an archive.
    pub(super) fn lag(&self) -> u64 {
        if self.is_packed() { 0 } else { self.stamp.size.saturating_sub(self.position()) }
    }

    /// Reads what comes next: one more than the longest line, so that it is refused for its length.
    pub(super) fn next(&mut self, now: Instant, times: &Timeouts, longest_line: usize) -> io::Result<Next> {
        let known = if self.is_packed() { 0 } else { self.before.len() };
        let place = self.position() - known as u64;
        let mut read = self.reader.read(place, known + longest_line + LINE_SLACK_BYTES + 1)?;
        if !self.is_packed() {
            // It may have been emptied while it was read.
            let is_shorter = self.reader.metadata()?.len() < place + read.bytes.len() as u64;
            if is_shorter || !read.bytes.starts_with(&self.before) {
                return Ok(Next::Replaced);
            }
        }
        let after = if read.is_end { self.after(now, times) } else { InputState::MayGrow };
        let skipped = self.rest_of_long_line(read.bytes.get(known..).unwrap_or_default());
        // The mark at the beginning is no part of the first record, but of what the text is known by.
        let bom = if self.position() == 0 && read.bytes.starts_with(BOM) { BOM.len() } else { 0 };
        read.bytes[..bom].fill(b' ');
        let found =
            find_complete_records(read.bytes.get(known + skipped..).unwrap_or_default(), after, self.most);
        read.bytes[..bom].copy_from_slice(&BOM[..bom]);
        let new = read.bytes.get(known..).unwrap_or_default();
        let is_too_long = found.length == 0 && skipped == 0 && !read.is_end;
        if found.length == 0 && !is_too_long {
            let is_more = skipped > 0 && !read.is_end;
            self.pass_over(&new[..skipped]);
            self.exhausted = (!is_more).then_some(after);
            return Ok(if is_more { Next::Passed } else { Next::Nothing });
        }
        let length = if is_too_long { new.len() } else { skipped + found.length };
        let mut batch = self.batch(&new[..length], found.records.max(1));
        batch.text.in_long_line = is_too_long;
        let start = known + skipped;
        found.join(read.bytes.get_mut(start..).unwrap_or_default());
        read.bytes[..bom].fill(b' ');
        batch.body =
            if self.skips_one { Bytes::new() } else { Bytes::from(read.bytes).slice(start..known + length) };
        Ok(Next::Batch(Box::new(batch)))
    }

    /// How much of these bytes belongs to a line that was refused for its length.
    fn rest_of_long_line(&self, bytes: &[u8]) -> usize {
        if !self.text.in_long_line {
            return 0;
        }
        memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1)
    }

    /// Goes on without having delivered anything; not durable, and need not be.
    fn pass_over(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let is_line_over = bytes.last() == Some(&b'\n');
        let batch = self.batch(bytes, 0);
        self.text = batch.text;
        self.text.in_long_line = !is_line_over;
        (self.chain, self.before) = (batch.chain, batch.before);
    }

    /// The state after these bytes.
    fn batch(&self, bytes: &[u8], records: usize) -> Batch {
        let mut chain = self.chain.clone();
        chain.add(bytes);
        let before = match bytes.len() {
            length if length >= COMPARED_BYTES => end_of(bytes).to_vec(),
            _ => end_of(&[&self.before, bytes].concat()).to_vec(),
        };
        let mut text = self.text.clone().at(&chain);
        text.path.clone_from(&self.path);
        text.inode = self.id.inode;
        text.in_long_line = false;
        Batch { body: Bytes::new(), text, records, chain, before }
    }

    /// The batch is durable.
    pub(super) fn delivered(&mut self, batch: Batch) {
        self.text = batch.text;
        self.chain = batch.chain;
        self.before = batch.before;
        self.most = self.most.saturating_mul(2);
        self.skips_one = false;
        self.exhausted = None;
    }

    /// The batch will never be taken: try with less, and leave out a record that alone is refused. True when one is.
    pub(super) fn refused(&mut self, batch: &Batch) -> bool {
        self.skips_one = batch.records <= 1;
        self.most = (batch.records / 2).max(1);
        self.skips_one
    }

    /// Begins anew: the file holds another text.
    pub(super) fn restart(&mut self, now: Instant) -> io::Result<()> {
        self.text = FileContent::new(&self.path, self.id.inode)?;
        self.chain = RollingHash::new();
        self.before.clear();
        self.changed = now;
        self.exhausted = None;
        (self.most, self.skips_one) = (usize::MAX, false);
        Ok(())
    }

    /// It has another name now.
    pub(super) fn renamed(&mut self, path: PathBuf) {
        // Back to the name of its family it is the one that is written to.
        self.is_rotated = rotation::name_of(&path) != self.text.first_name;
        self.text.path.clone_from(&path);
        self.path = path;
        self.exhausted = None;
    }
}

fn end_of(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(COMPARED_BYTES)..]
}
