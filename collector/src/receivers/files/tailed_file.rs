//! One file that is being read: its unread records, and the state after each delivery.
//!
//! Invariants:
//! - The offset advances only when a batch was delivered: a batch that was rejected is read again.
//! - Before reading on, the bytes before the offset are compared with those that were read: a file that was truncated
//!   and rewritten is detected even if it has grown past the old offset.

use super::file_content::{FileContent, FileStamp};
use super::file_reader::{FileReader, stamp};
use super::record_boundaries::{InputState, find_complete_records};
use super::rolling_hash::RollingHash;
use super::rotation;
use super::timeouts::Timeouts;
use crate::pipeline::StreamState;
use bytes::Bytes;
use memchr::memchr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

/// The number of bytes before the offset that are compared.
const COMPARED_BYTES: usize = 256;
/// The bytes that a line may have in addition to its maximum length: its line break, and white space.
const LINE_SLACK_BYTES: usize = 16;
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The device and inode of a file, which identify it while it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    pub(super) device: u64,
    pub(super) inode: u64,
}

/// A file that is being read.
pub(super) struct TailedFile {
    pub(super) id: FileId,
    pub(super) path: PathBuf,
    /// The index of the pattern that matched it.
    pub(super) pattern: usize,
    pub(super) text: FileContent,
    chain: RollingHash,
    reader: FileReader,
    /// The calls that await their reply.
    pub(super) calls: StreamState,
    /// The last bytes before the offset.
    before: Vec<u8>,
    pub(super) stamp: FileStamp,
    /// The time at which the stamp last changed.
    pub(super) changed: Instant,
    /// The input state at the last read that found no complete record; `None` while there may be one.
    exhausted: Option<InputState>,
    /// True if it was renamed or deleted, so that writers will soon stop writing to it.
    pub(super) is_rotated: bool,
    /// True if no path that matches the patterns refers to it any more.
    pub(super) is_gone: bool,
    /// The most records in a batch; reduced after a batch was rejected.
    most: usize,
    /// True if the next record was rejected permanently and is skipped.
    skips_one: bool,
}

/// Records to be delivered, and the state of the file once they are.
pub(super) struct Batch {
    pub(super) body: Bytes,
    pub(super) text: FileContent,
    records: usize,
    chain: RollingHash,
    before: Vec<u8>,
}

/// The result of reading on in a file.
pub(super) enum Next {
    Nothing,
    /// Only the rest of a line that was rejected for its length; read again.
    Passed,
    Batch(Box<Batch>),
    /// The file no longer has the content that was read from it.
    Replaced,
}

impl TailedFile {
    /// Creates a file whose content was read up to the offset of `chain`.
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
            calls: StreamState::default(),
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

    /// Sets the bytes that precede the offset.
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

    /// Checks whether the file has changed. Returns true if it is now shorter than the part that was read.
    pub(super) fn look(&mut self, now: Instant) -> io::Result<bool> {
        let metadata = self.reader.metadata()?;
        let stamp = stamp(&metadata);
        if stamp != self.stamp {
            self.stamp = stamp;
            self.changed = now;
            self.exhausted = None;
        }
        // It has no path left, so no new writer can open it.
        self.is_rotated |= metadata.nlink() == 0;
        Ok(!self.is_packed() && stamp.size < self.position())
    }

    /// Returns the input state: whether more bytes may follow.
    fn after(&self, now: Instant, times: &Timeouts) -> InputState {
        let quiet = now.saturating_duration_since(self.changed);
        let is_over = (self.is_rotated || self.is_gone) && quiet >= times.rotated_linger;
        match () {
            () if self.is_packed() || is_over => InputState::Ended,
            () if quiet >= times.quiet_after => InputState::Quiet,
            () => InputState::MayGrow,
        }
    }

    /// Returns false if there is nothing to read.
    pub(super) fn may_have_more(&self, now: Instant, times: &Timeouts) -> bool {
        let has_bytes = self.is_packed() || self.position() < self.stamp.size;
        has_bytes && self.exhausted != Some(self.after(now, times))
    }

    /// Returns true if it will never have another record.
    pub(super) fn is_finished(&self, now: Instant, times: &Timeouts) -> bool {
        self.after(now, times) == InputState::Ended && !self.may_have_more(now, times)
    }

    /// Returns true if all of it was read.
    pub(super) fn is_read(&self) -> bool {
        self.position() == self.stamp.size
    }

    /// Returns the number of bytes not delivered yet; 0 for an archive, whose uncompressed size is unknown.
    pub(super) fn lag(&self) -> u64 {
        if self.is_packed() { 0 } else { self.stamp.size.saturating_sub(self.position()) }
    }

    /// Reads the next records. It reads a little more than the longest line, so that a longer one is rejected for its
    /// length.
    pub(super) fn next(&mut self, now: Instant, times: &Timeouts, longest_line: usize) -> io::Result<Next> {
        let known = if self.is_packed() { 0 } else { self.before.len() };
        let place = self.position() - known as u64;
        let mut read = self.reader.read(place, known + longest_line + LINE_SLACK_BYTES + 1)?;
        if !self.is_packed() {
            // It may have been truncated while it was read.
            let is_shorter = self.reader.metadata()?.len() < place + read.bytes.len() as u64;
            if is_shorter || !read.bytes.starts_with(&self.before) {
                return Ok(Next::Replaced);
            }
        }
        let after = if read.is_end { self.after(now, times) } else { InputState::MayGrow };
        let skipped = self.rest_of_long_line(read.bytes.get(known..).unwrap_or_default());
        // The byte order mark is part of the hashed content, but not of the first record.
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

    /// Returns the number of leading bytes that belong to a line that was rejected for its length.
    fn rest_of_long_line(&self, bytes: &[u8]) -> usize {
        if !self.text.in_long_line {
            return 0;
        }
        memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1)
    }

    /// Advances past bytes without delivering them; this is not durable and need not be.
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

    /// Returns a batch without a body, with the state after these bytes.
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

    /// Advances to the state of a batch that is durable now.
    pub(super) fn delivered(&mut self, batch: Batch) {
        self.calls.commit();
        self.text = batch.text;
        self.chain = batch.chain;
        self.before = batch.before;
        self.most = self.most.saturating_mul(2);
        self.skips_one = false;
        self.exhausted = None;
    }

    /// Handles a permanent rejection: the next batch is smaller, and a record that was rejected alone is skipped.
    /// Returns true if one is skipped.
    pub(super) fn rejected(&mut self, batch: &Batch) -> bool {
        self.skips_one = batch.records <= 1;
        self.most = (batch.records / 2).max(1);
        self.skips_one
    }

    /// Starts over with a new content, because the file was replaced or truncated.
    pub(super) fn restart(&mut self, now: Instant) -> io::Result<()> {
        self.text = FileContent::new(&self.path, self.id.inode)?;
        self.chain = RollingHash::new();
        self.calls = StreamState::default();
        self.before.clear();
        self.changed = now;
        self.exhausted = None;
        (self.most, self.skips_one) = (usize::MAX, false);
        Ok(())
    }

    /// Records that the file has another path now.
    pub(super) fn renamed(&mut self, path: PathBuf) {
        // Under the name in which its content was found first, it is the file that is written to.
        self.is_rotated = rotation::name_of(&path) != self.text.first_name;
        self.text.path.clone_from(&path);
        self.path = path;
        self.exhausted = None;
    }
}

fn end_of(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(COMPARED_BYTES)..]
}
