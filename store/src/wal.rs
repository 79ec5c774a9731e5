//! The write-ahead log: what is acknowledged is in it, and stays in it until it is flushed.
//!
//! A folder of segments, numbered in the order in which they were begun. Records are handed to one thread, which
//! writes what has gathered and makes it durable with one fdatasync (`commit`); the next segment is made ahead on
//! another (`segment_allocator`). At the start all segments are read back (`replay`) and a fresh one is begun: to a file
//! that an earlier process wrote, nothing is added. The bytes are described in `format`.
//!
//! What must always hold:
//! - **An acknowledged record survives** a kill and a power loss, and is read back exactly once, in order.
//! - **A refused record does not come back**, once any later record was acknowledged or the log was closed.
//! - **Damage costs only what is damaged**, and is counted. It never stops the start, and starting destroys nothing:
//!   no byte other than zero is cut off or removed, but for segments that hold nothing except a header.
//! - **What is acknowledged can be found again**: a log that was removed, renamed or replaced under our hands refuses.
//! - **The log stays within its size** over any number of restarts, but for the header of one segment and the rest of one group.
//! - **A disk that is full or fails** makes the log refuse. It tries again with every group, on a new segment, and so
//!   recovers by itself.
//! - The disk keeps a 512-byte sector whole: a new write next to an old one in the same sector leaves the old one
//!   as it was.
//!
//! ## Epochs
//! A record may lean on one that is not durable yet: a batch from which rows were left out because an earlier batch,
//! still in the queue, holds them. If the earlier one fails, the later one must not be answered yes. So read
//! [`Wal::epoch`] *before* looking up what is there, and pass it to [`Wal::submit`]. On a failure the failed records
//! are answered, then everything queued, and then the epoch rises; a record with an older epoch is answered
//! [`CommitError::Stale`].
//!
//! One case is the caller's: a record that was looked up before the epoch rose and is submitted after it. It will be
//! answered `Stale`, but until then others may find its rows. Note the epoch with them: what is not acknowledged and
//! was noted under an older epoch than one's own is refused or about to be, and is to be treated as absent.
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
    /// Its place in the order of all records. Never given twice; there may be gaps.
    pub sequence: u64,
    /// The schema it was written with.
    pub schema: u16,
    /// Its bytes: a slice of the segment in memory, aligned to 64 bytes.
    pub payload: Buffer,
    /// The preamble of its segment. The same allocation for all segments with the same preamble.
    pub preamble: Arc<[u8]>,
}

/// The result of replaying the WAL.
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
    /// Segments whose last records could not be made durable: they may have been refused when they came, and a power
    /// loss may still take them.
    pub unsynced_segments: u64,
    /// The highest sequence handed out, 0 when there is none.
    pub newest: u64,
}

/// The reason why a WAL cannot be opened. Damage is not one.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// The folder cannot be made or listed: see to its permissions or its disk.
    #[error("cannot use the log folder {}: {error}; check its owner and permissions", .folder.display())]
    Folder {
        /// The log's folder.
        folder: PathBuf,
        /// The error of the operating system.
        error: io::Error,
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

/// The reason why a record is not stored, which determines the response to its sender.
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
    /// The log is not where it was: somebody has removed, renamed or replaced the data directory.
    #[error("{0}")]
    Displaced(Arc<str>),
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

/// The write-ahead log. Clones refer to the same log; it is closed when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Wal {
    handle: Arc<Handle>,
}

impl Wal {
    /// Takes the folder as it is: hands every intact record to `visit`, in order and made durable, then starts the
    /// commit thread on a fresh segment. Neither damage nor a full disk is an error; on a full disk the log begins
    /// by refusing. Only one process may do this at a time: see [`DirectoryLock`](crate::lock::DirectoryLock).
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

    /// Rises with every failure. Read it before looking up what a record leans on: see [Epochs](self#epochs).
    pub fn epoch(&self) -> u64 {
        self.handle.shared.epoch.load(Ordering::SeqCst)
    }

    /// Hands a record to the commit thread and returns at once.
    ///
    /// `done` is called exactly once: with the record's sequence when the record is durable, and only then; or with
    /// the reason why it is not stored. It is called on the commit thread, in the order of the sequences, and should
    /// be quick; only a closed log calls it on other threads, this one included.
    pub fn submit(&self, payload: impl Into<Buffer>, epoch: u64, done: Done) {
        let payload = payload.into();
        let checksum = crc32fast::hash(&payload);
        let pending = PendingRecord { payload, checksum, epoch, answer: CommitCallback::new(done) };
        // A closed channel gives the message back, and dropping it answers it.
        drop(self.handle.sender.send(CommitMessage::Append(pending)));
    }

    /// Deletes the segments all of whose records are at or below `up_to`, oldest first, and gives back how many.
    /// When this returns, they do not come back. The newest segment stays in any case.
    pub fn release(&self, up_to: u64) -> io::Result<u64> {
        self.handle.shared.release(up_to)
    }

    /// Stores everything that was submitted before, then stops. What is submitted later is answered
    /// [`CommitError::Closed`]. Returns when that is done, except on the commit thread itself.
    pub fn close(&self) {
        self.handle.close();
    }

    /// Checks that the WAL's folder is still the one that was opened; the error says what is wrong.
    ///
    /// # Errors
    /// [`CommitError::Displaced`], or why that cannot be found out.
    pub fn is_in_place(&self) -> Result<(), CommitError> {
        let Shared { disk, place, .. } = &*self.handle.shared;
        place.check(&**disk).map_err(|error| CommitError::from_disk(&error))
    }

    /// Returns the counters of the WAL.
    pub fn stats(&self) -> WalStats {
        self.handle.shared.counters.read()
    }
}

/// A log as it stands on the disk: its segments, held open, so that what is released from now on can still be read.
///
/// Nothing in the folder is changed, and another process may be writing: what it is writing at that moment counts as
/// torn.
#[derive(Debug)]
pub struct WalView(SegmentIndex);

impl WalView {
    /// Opens the segments of a folder.
    ///
    /// # Errors
    /// When the folder cannot be listed, or a newer version of the program has written it.
    pub fn open(disk: &dyn Disk, folder: &Path) -> Result<Self, WalError> {
        SegmentIndex::take(disk, folder).map(Self)
    }

    /// The length of its segments.
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

/// Puts the past in order, as far as the disk allows, and begins the first segment.
fn begin(committer: &mut Committer, shared: &Shared, past: ReplayState) {
    let counters = &shared.counters;
    counters.bytes.fetch_add(past.segments.iter().map(|segment| segment.bytes).sum(), Ordering::Relaxed);
    counters.segments.fetch_add(past.segments.len() as u64, Ordering::Relaxed);
    let mut segments = past.segments;
    // Zeros were preallocated and are not data. A process that dies often would otherwise fill the disk with them, and
    // they would take the room of the first segment.
    for segment in &mut segments {
        segment.bytes = committer.supply().trim(&segment.path, segment.bytes, segment.used);
    }
    let (empty, full): (Vec<_>, Vec<_>) = segments.into_iter().partition(|segment| segment.empty);
    if committer.begin(full.into_iter().map(RetiredSegment::from).collect()).is_ok() {
        // Only now: an empty segment may be the one that says which sequences were given and which are void.
        for segment in empty {
            committer.supply().discard(&segment.path, segment.bytes);
        }
        committer.supply().sync_folder();
    }
}

/// A segment that is complete and no longer written.
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
    /// One release at a time: a segment must not go before an older one, because it says which of the older one's
    /// records are void.
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

    /// The lowest sequence that may still be in a retired segment.
    fn oldest_sequence(&self) -> Option<u64> {
        self.retired().front().map(|segment| segment.first)
    }

    fn release(&self, up_to: u64) -> io::Result<u64> {
        let _one = self.releasing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut released = 0;
        loop {
            // Or a copy that was put in the place of the folder would lose its segments.
            self.place.check(&*self.disk)?;
            let Some(segment) = self.retired().pop_front_if(|segment| segment.last <= up_to) else {
                return Ok(released);
            };
            // Durable one by one: after a power loss, the newer of two must not be the one that is gone.
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
        // Fails when it is closed already.
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
