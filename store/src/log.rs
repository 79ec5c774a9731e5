//! The write-ahead log (interface; the bodies follow).
use crate::disk::Disk;
use arrow::buffer::Buffer;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod stats;
pub use stats::{FSYNC_BOUNDS, LogStats};

/// How a log is kept.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Bytes of one segment; a new one begins when a group does not fit. Never more than a quarter of `max_bytes`.
    pub segment_bytes: u64,
    /// Bytes that all segments together may take on the disk.
    pub max_bytes: u64,
    /// Bytes after which a group is committed without waiting for more. A group has at least one record.
    pub group_bytes: usize,
    /// Opaque bytes in every segment's header, given back with every record of it: the schemas.
    pub preamble: Vec<u8>,
    /// The schema of the records that will be written, given back with each of them.
    pub schema: u16,
    /// The lowest sequence that may be given: one more than the highest that anyone outside the log remembers.
    /// Only matters when the folder was lost.
    pub first_sequence: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            max_bytes: 4 << 30,
            group_bytes: 1 << 20,
            preamble: Vec::new(),
            schema: 0,
            first_sequence: 1,
        }
    }
}

/// A record read back.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its place in the order of all records. Never given twice; there may be gaps.
    pub sequence: u64,
    /// The schema it was written with.
    pub schema: u16,
    /// Its bytes: a slice of the segment in memory, aligned to 64 bytes.
    pub payload: Buffer,
    /// The preamble of its segment. The same allocation for all segments with the same preamble.
    pub preamble: Arc<[u8]>,
}

/// What a reading of the log has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// Intact records, all handed out.
    pub records: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Acknowledged records that are lost.
    pub damaged: u64,
    /// Bytes that should have been readable and were not.
    pub damaged_bytes: u64,
    /// Stretches at the end of a run of the program that were never acknowledged, as far as can be known: what a
    /// crash in the middle of a write leaves.
    pub torn: u64,
    /// Their bytes.
    pub torn_bytes: u64,
    /// Intact records that were refused when they came (their sender was told no), and so not handed out.
    pub void: u64,
    /// Segments that were read.
    pub segments: u64,
    /// Segments whose header is unreadable, and with it everything in them.
    pub unreadable_segments: u64,
    /// Segments whose content could not be made durable: their records may be lost by a power loss now.
    pub unsynced_segments: u64,
    /// The highest sequence handed out, 0 when there is none.
    pub newest: u64,
}

/// Why a log cannot be opened. Damage is no reason.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The folder cannot be made or listed: see to its permissions or its disk.
    #[error("cannot use the log folder {}: {source}", .folder.display())]
    Folder {
        /// The log's folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A later version of the program wrote this log: use that one.
    #[error("{} was written by a newer faultline (log format {version}); use that version", .path.display())]
    Newer {
        /// The segment.
        path: PathBuf,
        /// The version of its format.
        version: u16,
    },
    /// The system gave no thread or no random number.
    #[error("cannot start the log: {0}")]
    Start(String),
}

/// Why a record is not stored, and so what to tell its sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The log has reached its size: back off until segments are released.
    #[error("the log has reached its size")]
    Full,
    /// The disk is full: back off until there is room.
    #[error("no space left on the disk")]
    NoSpace,
    /// The disk failed: back off.
    #[error("the disk failed: {0}")]
    Io(Arc<str>),
    /// A record that came before this one failed, and this one may lean on it: build it again and retry at once.
    #[error("an earlier record failed")]
    Stale,
    /// The record can never be stored: split it.
    #[error("the record is too large for the log")]
    TooLarge,
    /// The log was closed.
    #[error("the log is closed")]
    Closed,
}

/// Told once what became of a record.
pub type Done = Box<dyn FnOnce(Result<u64, CommitError>) + Send>;

/// The log. Clones are the same log.
#[derive(Debug, Clone)]
pub struct Log {
    next: Arc<AtomicU64>,
}

impl Log {
    /// Replays every intact record in order through `visit`, then starts the commit thread on a fresh segment.
    pub fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
        options: LogOptions,
        visit: &mut dyn FnMut(Record),
    ) -> Result<(Self, Replay), LogError> {
        let _ = (disk, folder, visit);
        Ok((Self { next: Arc::new(AtomicU64::new(options.first_sequence)) }, Replay::default()))
    }

    /// Rises with every failure. Read it before looking up what a record leans on, and pass it to [`Log::submit`].
    pub fn epoch(&self) -> u64 {
        0
    }

    /// Hands a record to the commit thread and returns at once. `done` is called once, on the commit thread.
    pub fn submit(&self, payload: Vec<u8>, epoch: u64, done: Done) {
        let _ = (payload, epoch);
        done(Ok(self.next.fetch_add(1, Ordering::SeqCst)));
    }

    /// Deletes the segments all of whose records are at or below `up_to`; gives back how many.
    pub fn release(&self, up_to: u64) -> io::Result<u64> {
        let _ = up_to;
        Ok(0)
    }

    /// Commits everything submitted before, then stops.
    pub fn close(&self) {}

    /// What the log has done so far.
    pub fn stats(&self) -> LogStats {
        stats::Counters::default().read()
    }
}

/// Reads a folder without changing anything in it; another process may be writing.
pub fn read(disk: &dyn Disk, folder: &Path, visit: &mut dyn FnMut(Record)) -> Result<Replay, LogError> {
    let _ = (disk, folder, visit);
    Ok(Replay::default())
}
