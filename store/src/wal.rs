//! The write-ahead log (WAL): acknowledged records are in it, and stay in it until they are flushed.
//!
//! It is a folder of segments, numbered in the order in which they were created. Records are handed to one thread,
//! which writes the records that have gathered and makes them durable with one fdatasync (`commit`); the next segment
//! is prepared on another thread (`segment_allocator`). At the start, all segments are read back (`replay`) and a new
//! one is created: nothing is ever appended to a file of an earlier process. The bytes are described in `format`.
//!
//! Invariants:
//! - **An acknowledged record survives** a kill and a power loss, and is read back exactly once, in order.
//! - **A rejected record does not come back**, once any later record was acknowledged or the WAL was closed.
//! - **Damage costs only what is damaged**, and is counted. It never prevents the start, and starting destroys nothing:
//!   no byte other than zero is cut off or removed, except in segments that hold nothing but a header.
//! - **Acknowledged records can be found again**: a WAL that was removed, renamed or replaced while it is open rejects
//!   records.
//! - **The WAL stays within its size limit** over any number of restarts, except for the header of one segment and the
//!   rest of one group.
//! - **A disk that is full or fails** makes the WAL reject records. It tries again with every group, on a new segment,
//!   and so recovers by itself.
//! - The disk is assumed to keep a 512-byte sector intact: a new write next to an old one in the same sector leaves the
//!   old one unchanged.
//!
//! ## Epochs
//! A record may depend on one that is not durable yet: a batch from which rows were left out because an earlier batch,
//! still in the queue, holds them. If the earlier one fails, the later one must not be acknowledged. So read
//! [`Wal::epoch`] *before* looking up which rows are there, and pass it to [`Wal::submit`]. On a failure, first the
//! failed records are rejected, then everything queued, and then the epoch rises; a record with an older epoch is
//! rejected with [`CommitError::Stale`].
//!
//! One case is left to the caller: a record that was looked up before the epoch rose and is submitted after it. It will
//! be rejected as `Stale`, but until then others may find its rows. Store the epoch with such rows: rows that are not
//! acknowledged and have an older epoch than one's own are rejected or about to be, and must be treated as absent.
use crate::disk::Disk;
use arrow::buffer::Buffer;
use commit::{CommitCallback, CommitMessage, Committer, PendingRecord};
use crossbeam_channel::{Sender, unbounded};
use location::FileLocation;
use replay::{ReplayState, ReplayedSegment, SegmentIndex};
use segment_allocator::SegmentAllocator;
use stats::Counters;
use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};

mod backup;
mod commit;
mod format;
mod location;
mod loss_accounting;
mod replay;
mod salvage;
mod segment_allocator;
mod segment_reader;
mod sequence_ranges;
mod stats;
#[cfg(test)]
mod tests;

pub(crate) use backup::CopyError;
pub use stats::{FSYNC_BOUNDS, WalStats};

/// The options of a WAL.
#[derive(Debug, Clone)]
pub struct WalOptions {
    /// The size of one segment; a new one begins when a group does not fit. It is at most a quarter of `max_bytes`.
    pub segment_bytes: u64,
    /// The maximum size of all segments together on disk.
    pub max_bytes: u64,
    /// The size at which a group is committed without waiting for more. A group has at least one record.
    pub group_bytes: usize,
    /// Opaque bytes in every segment's header, which are returned with every record of it: the schemas.
    pub preamble: Vec<u8>,
    /// The schema of the records that will be written, which is returned with each of them.
    pub schema: u16,
    /// The lowest sequence that may be assigned: one more than the highest that is stored outside of the WAL. It only
    /// matters when the folder was lost.
    pub first_sequence: u64,
}

impl Default for WalOptions {
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

/// A record that was read back.
#[derive(Debug, Clone)]
pub struct Record {
    /// The position in the order of all records. A sequence is never assigned twice; there may be gaps.
    pub sequence: u64,
    /// The schema it was written with.
    pub schema: u16,
    /// The content of the record: a slice of the segment in memory, aligned to 64 bytes.
    pub payload: Buffer,
    /// The preamble of its segment. Segments with the same preamble share one allocation.
    pub preamble: Arc<[u8]>,
}

/// The result of replaying the WAL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// The number of intact records, all of which were passed on.
    pub records: u64,
    /// The number of payload bytes in them.
    pub bytes: u64,
    /// The number of acknowledged records that are lost.
    pub damaged: u64,
    /// The number of bytes that should have been readable and were not.
    pub damaged_bytes: u64,
    /// The number of byte ranges at the end of a run of the program that were never acknowledged, as far as is known:
    /// the rest of a write that a crash interrupted.
    pub torn: u64,
    /// The number of bytes in these ranges.
    pub torn_bytes: u64,
    /// The number of intact records that were rejected when they arrived (the sender knows), and are therefore not
    /// passed on.
    pub void: u64,
    /// The number of segments that were read.
    pub segments: u64,
    /// The number of segments whose header is unreadable, so that everything in them is lost.
    pub unreadable_segments: u64,
    /// The number of segments whose last records could not be made durable: they may have been rejected when they
    /// arrived, and a power loss may still remove them.
    pub unsynced_segments: u64,
    /// The highest sequence that was passed on, or 0 when there is none.
    pub newest: u64,
}

/// The reason why a WAL cannot be opened. Damage is not a reason.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// The folder cannot be created or listed, because of its permissions or its disk.
    #[error("cannot use the log folder {}: {error}; check its owner and permissions", .folder.display())]
    Folder {
        /// The folder of the WAL.
        folder: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A newer version of the program wrote this WAL. Only that version can open it.
    #[error("{} was written by a newer faultline (log format {version}); use that version", .path.display())]
    Newer {
        /// The segment.
        path: PathBuf,
        /// The version of its format.
        version: u16,
    },
    /// The system provided no thread or no random number.
    #[error("cannot start the log: {0}")]
    Start(String),
}

/// The reason why a record is not stored, which determines the response to its sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The WAL has reached its size limit. The caller must back off until segments are released.
    #[error("the log has reached its size")]
    Full,
    /// The disk is full. The caller must back off until there is space.
    #[error("no space left on the disk")]
    NoSpace,
    /// The disk failed. The caller must back off.
    #[error("the disk failed: {0}")]
    Io(Arc<str>),
    /// The WAL is not where it was opened: someone has removed, renamed or replaced the data directory.
    #[error("{0}")]
    Displaced(Arc<str>),
    /// An earlier record failed, and this one may depend on it. The caller must build it again, and can retry at once.
    #[error("an earlier record failed")]
    Stale,
    /// The record can never be stored. The caller must split it.
    #[error("the record is too large for the log")]
    TooLarge,
    /// The WAL was closed.
    #[error("the log is closed")]
    Closed,
}

/// A callback that gets the outcome of a record once.
pub type Done = Box<dyn FnOnce(Result<u64, CommitError>) + Send>;

impl CommitError {
    fn from_disk(error: &io::Error) -> Self {
        if let Some(displaced) = location::displaced(error) {
            return displaced;
        }
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            _ => Self::Io(error.to_string().into()),
        }
    }
}

/// The write-ahead log. Clones refer to the same WAL; it is closed when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Wal {
    handle: Arc<Handle>,
}

impl Wal {
    /// Opens the WAL in its present state: passes every intact record to `visit`, in order and made durable, then
    /// starts the commit thread on a new segment. Neither damage nor a full disk is an error; on a full disk, the WAL
    /// begins by rejecting records. Only one process may do this at a time: see
    /// [`DirectoryLock`](crate::lock::DirectoryLock).
    pub fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
        options: WalOptions,
        visit: &mut dyn FnMut(Record),
    ) -> Result<(Self, Replay), WalError> {
        let error = |error| WalError::Folder { folder: folder.to_owned(), error };
        disk.create_dir_all(folder).map_err(error)?;
        let mut visit = |record| {
            visit(record);
            ControlFlow::Continue(())
        };
        let mut past = SegmentIndex::take(&*disk, folder)?.replay(&mut visit);
        past.secure(&*disk);
        let replay = past.replay.clone();
        let place = FileLocation::of(&*disk, folder).map_err(error)?;
        let shared = Arc::new(Shared::new(disk, place));
        let (sender, receiver) = unbounded();
        let next_sequence = past.next_sequence.max(options.first_sequence);
        let supply = SegmentAllocator::start(&shared, &options, past.next_number)?;
        let voids = std::mem::take(&mut past.voids);
        let mut committer =
            Committer::new(Arc::clone(&shared), supply, options, receiver, (next_sequence, voids));
        begin(&mut committer, &shared, past);
        let thread = thread::Builder::new().name("log-commit".into()).spawn(move || committer.run());
        let thread = thread.map_err(|error| WalError::Start(error.to_string()))?;
        let committing = thread.thread().id();
        let handle = Handle { shared, sender, committing, thread: Mutex::new(Some(thread)) };
        Ok((Self { handle: Arc::new(handle) }, replay))
    }

    /// Returns the epoch, which rises with every failure. Read it before looking up what a record depends on: see
    /// [Epochs](self#epochs).
    pub fn epoch(&self) -> u64 {
        self.handle.shared.epoch.load(Ordering::SeqCst)
    }

    /// Hands a record to the commit thread and returns at once.
    ///
    /// `done` is called exactly once: with the record's sequence when the record is durable, and only then; or with the
    /// reason why it is not stored. It is called on the commit thread, in the order of the sequences, and should be
    /// fast; only a closed WAL calls it on other threads, including this one.
    pub fn submit(&self, payload: impl Into<Buffer>, epoch: u64, done: Done) {
        let payload = payload.into();
        let checksum = crc32fast::hash(&payload);
        let pending = PendingRecord { payload, checksum, epoch, answer: CommitCallback::new(done) };
        // A closed channel returns the message, and dropping it calls its callback.
        drop(self.handle.sender.send(CommitMessage::Append(pending)));
    }

    /// Deletes the segments all of whose records are at or below `up_to`, oldest first, and returns their number. When
    /// this returns, they do not come back. The newest segment always stays.
    pub fn release(&self, up_to: u64) -> io::Result<u64> {
        self.handle.shared.release(up_to)
    }

    /// Stores everything that was submitted before, then stops. Later records are rejected with
    /// [`CommitError::Closed`]. It returns when that is done, except on the commit thread itself.
    pub fn close(&self) {
        self.handle.close();
    }

    /// Checks that the WAL's folder is still the one that was opened; the error says what is wrong.
    ///
    /// # Errors
    /// Returns [`CommitError::Displaced`], or the reason why the folder cannot be checked.
    pub fn is_in_place(&self) -> Result<(), CommitError> {
        let Shared { disk, place, .. } = &*self.handle.shared;
        place.check(&**disk).map_err(|error| CommitError::from_disk(&error))
    }

    /// Returns the counters of the WAL.
    pub fn stats(&self) -> WalStats {
        self.handle.shared.counters.read()
    }
}

/// A view of the WAL on disk. It holds the segments open, so that segments that are released from now on can still be
/// read.
///
/// Nothing in the folder is changed, and another process may be writing: the data that it is writing at that moment
/// counts as torn.
#[derive(Debug)]
pub struct WalView(SegmentIndex);

impl WalView {
    /// Opens the segments of a folder.
    ///
    /// # Errors
    /// Fails when the folder cannot be listed, or a newer version of the program has written it.
    pub fn open(disk: &dyn Disk, folder: &Path) -> Result<Self, WalError> {
        SegmentIndex::take(disk, folder).map(Self)
    }

    /// Returns the total length of the segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Passes the intact records after a sequence to a function, in order, until the function stops.
    pub fn read(&self, after: u64, visit: &mut dyn FnMut(Record) -> ControlFlow<()>) -> Replay {
        self.0.clone().replay_after(after, &mut |record| {
            if record.sequence > after { visit(record) } else { ControlFlow::Continue(()) }
        })
    }
}

/// Cleans up the segments of earlier runs, as far as the disk allows, and creates the first segment.
fn begin(committer: &mut Committer, shared: &Shared, past: ReplayState) {
    let counters = &shared.counters;
    counters.bytes.fetch_add(past.segments.iter().map(|segment| segment.bytes).sum(), Ordering::Relaxed);
    counters.segments.fetch_add(past.segments.len() as u64, Ordering::Relaxed);
    let mut segments = past.segments;
    // Preallocated zeros are not data. A process that dies often would otherwise fill the disk with them, and they
    // would take the space of the first segment.
    for segment in &mut segments {
        segment.bytes = committer.supply().trim(&segment.path, segment.bytes, segment.used);
    }
    let (empty, full): (Vec<_>, Vec<_>) = segments.into_iter().partition(|segment| segment.empty);
    if committer.begin(full.into_iter().map(RetiredSegment::from).collect()).is_ok() {
        // They are removed only now, because an empty segment may be the only one to name the assigned and the void
        // sequences.
        for segment in empty {
            committer.supply().discard(&segment.path, segment.bytes);
        }
        committer.supply().sync_folder();
    }
}

/// A segment that is complete and no longer written to.
#[derive(Debug)]
struct RetiredSegment {
    number: u64,
    path: PathBuf,
    /// The lowest sequence it can hold.
    first: u64,
    /// The highest sequence in it.
    last: u64,
    bytes: u64,
}

impl From<ReplayedSegment> for RetiredSegment {
    fn from(past: ReplayedSegment) -> Self {
        Self { number: past.number, path: past.path, first: past.first, last: past.last, bytes: past.bytes }
    }
}

/// The state that the threads and the users of the WAL share. No lock is held while records are written.
#[derive(Debug)]
struct Shared {
    disk: Arc<dyn Disk>,
    /// The folder that was opened.
    place: FileLocation,
    epoch: AtomicU64,
    counters: Arc<Counters>,
    /// Segments that may be released, oldest first.
    retired: Mutex<VecDeque<RetiredSegment>>,
    /// Serializes releases: a segment must not be removed before an older one, because it names the void records of the
    /// older one.
    releasing: Mutex<()>,
}

impl Shared {
    fn new(disk: Arc<dyn Disk>, place: FileLocation) -> Self {
        Self {
            disk,
            place,
            epoch: AtomicU64::new(0),
            counters: Arc::default(),
            retired: Mutex::default(),
            releasing: Mutex::default(),
        }
    }

    fn retired(&self) -> MutexGuard<'_, VecDeque<RetiredSegment>> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lowest sequence that may still be in a retired segment.
    fn oldest_sequence(&self) -> Option<u64> {
        self.retired().front().map(|segment| segment.first)
    }

    fn release(&self, up_to: u64) -> io::Result<u64> {
        let _one = self.releasing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut released = 0;
        loop {
            // Otherwise a copy that replaced the folder would lose its segments.
            self.place.check(&*self.disk)?;
            let Some(segment) = self.retired().pop_front_if(|segment| segment.last <= up_to) else {
                return Ok(released);
            };
            // Each removal is made durable by itself: after a power loss, the newer of two must not be the only one
            // that is missing.
            let removed = self.disk.remove(&segment.path);
            let gone = if segment_allocator::is_gone(&removed) {
                self.disk.sync_dir(self.place.path())
            } else {
                removed
            };
            if let Err(error) = gone {
                self.retired().push_front(segment);
                return Err(error);
            }
            self.counters.bytes.fetch_sub(segment.bytes, Ordering::Relaxed);
            self.counters.segments.fetch_sub(1, Ordering::Relaxed);
            self.counters.full.store(false, Ordering::Relaxed);
            released += 1;
        }
    }
}

/// Closes the WAL when the last clone is dropped. The commit thread must not hold one.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    sender: Sender<CommitMessage>,
    committing: ThreadId,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Handle {
    fn close(&self) {
        // This fails when the WAL is closed already.
        let _ = self.sender.send(CommitMessage::Close);
        if thread::current().id() == self.committing {
            return;
        }
        let thread = &mut *self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the commit thread of the log panicked");
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}
