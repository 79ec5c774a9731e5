//! Prepares new segments on a thread of its own, so that a switch to the next segment costs no more than any other
//! commit.
//!
//! Invariants: a segment that is handed over is empty and preallocated, and its name and length are durable. It has no
//! header yet; the header is written with the first group and made durable by the same fdatasync.
use super::location::FileLocation;
use super::stats::Counters;
use super::{CommitError, Shared, WalError, WalOptions, format};
use crate::disk::{Disk, DiskFile};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};

/// An empty segment, ready to be written.
pub(super) struct PreparedSegment {
    pub(super) number: u64,
    pub(super) file: Box<dyn DiskFile>,
    pub(super) place: FileLocation,
    /// The size that is counted for it on disk. Where nothing can be preallocated, it is the size to which the segment
    /// may grow.
    pub(super) bytes: u64,
}

/// Prepares new segments in a thread of its own.
pub(super) struct SegmentAllocator {
    disk: Arc<dyn Disk>,
    counters: Arc<Counters>,
    folder: FileLocation,
    segment_bytes: u64,
    max_bytes: u64,
    next_number: u64,
    /// Sends the number of a segment to create, and its size.
    orders: Option<Sender<(u64, u64)>>,
    results: Receiver<io::Result<PreparedSegment>>,
    /// The size of the segment that is being created or is ready, if there is one.
    ordered: Option<u64>,
    maker: Option<JoinHandle<()>>,
}

impl SegmentAllocator {
    pub(super) fn start(shared: &Shared, options: &WalOptions, next_number: u64) -> Result<Self, WalError> {
        let segment_bytes = options.segment_bytes.min(options.max_bytes / 4);
        let (orders, to_make) = bounded(1);
        let (made, results) = bounded(1);
        let (disk, folder) = (Arc::clone(&shared.disk), shared.place.clone());
        let make_all = move || {
            for (number, bytes) in to_make {
                if made.send(make(&*disk, &folder, number, bytes)).is_err() {
                    return;
                }
            }
        };
        let maker = thread::Builder::new().name("log-prepare".into()).spawn(make_all);
        let maker = maker.map_err(|error| WalError::Start(error.to_string()))?;
        Ok(Self {
            disk: Arc::clone(&shared.disk),
            counters: Arc::clone(&shared.counters),
            folder: shared.place.clone(),
            segment_bytes,
            max_bytes: options.max_bytes,
            next_number,
            orders: Some(orders),
            results,
            ordered: None,
            maker: Some(maker),
        })
    }

    /// Orders the next segment, if the WAL may grow by one and none is ordered yet.
    pub(super) fn make_ahead(&mut self) {
        if self.ordered.is_none() && self.has_room() {
            self.order(self.segment_bytes);
        }
    }

    /// Returns the next segment.
    pub(super) fn next(&mut self) -> Result<PreparedSegment, CommitError> {
        if self.ordered.is_some()
            && let Ok(prepared) = self.receive()
        {
            return Ok(prepared);
        }
        // The ordered segment failed, or none was ordered: create one now.
        if !self.has_room() {
            return Err(CommitError::Full);
        }
        self.order(self.segment_bytes);
        self.receive().map_err(|error| CommitError::from_disk(&error))
    }

    /// Returns the first segment of a run, even if the WAL is at its limit. It is no larger than the limit leaves,
    /// because otherwise every restart would let the WAL grow by a segment.
    pub(super) fn first(&mut self) -> Result<PreparedSegment, CommitError> {
        let left = self.max_bytes.saturating_sub(self.counters.bytes.load(Relaxed));
        self.order(self.segment_bytes.min(left));
        self.receive().map_err(|error| CommitError::from_disk(&error))
    }

    fn has_room(&self) -> bool {
        self.counters.bytes.load(Relaxed).saturating_add(self.segment_bytes) <= self.max_bytes
    }

    fn order(&mut self, bytes: u64) {
        // Each attempt has a number of its own, so that leftovers of an earlier attempt do no harm.
        let number = self.next_number;
        self.next_number += 1;
        if self.orders.as_ref().is_some_and(|orders| orders.send((number, bytes)).is_ok()) {
            self.ordered = Some(bytes);
            self.counters.bytes.fetch_add(bytes, Relaxed);
            self.counters.segments.fetch_add(1, Relaxed);
        }
    }

    fn receive(&mut self) -> io::Result<PreparedSegment> {
        let Some(bytes) = self.ordered.take() else {
            return Err(io::Error::other("the thread that makes segments has ended"));
        };
        let ended = |_| Err(io::Error::other("the thread that makes segments has ended"));
        let result = self.results.recv().unwrap_or_else(ended);
        if result.is_err() {
            self.count_as(bytes, 0);
            self.counters.segments.fetch_sub(1, Relaxed);
        }
        result
    }

    /// Corrects the size that was counted for a segment.
    pub(super) fn count_as(&self, before: u64, now: u64) {
        self.counters.bytes.fetch_add(now, Relaxed);
        self.counters.bytes.fetch_sub(before, Relaxed);
    }

    /// Releases the unused part of the preallocation, and returns the new size of the segment. A failure only costs
    /// space.
    pub(super) fn trim(&self, path: &Path, bytes: u64, used: u64) -> u64 {
        if used >= bytes || !self.is_in_place() || self.disk.truncate(path, used).is_err() {
            return bytes;
        }
        self.count_as(bytes, used);
        used
    }

    /// Removes an empty segment. Returns true if it is gone.
    pub(super) fn discard(&self, path: &Path, bytes: u64) -> bool {
        let gone = self.is_in_place() && is_gone(&self.disk.remove(path));
        if gone {
            self.count_as(bytes, 0);
            self.counters.segments.fetch_sub(1, Relaxed);
        }
        gone
    }

    /// Returns true if the folder's path still leads to the folder that was opened. Somebody may have replaced it with
    /// a copy.
    fn is_in_place(&self) -> bool {
        self.folder.check(&*self.disk).is_ok()
    }

    /// Makes removals durable as far as that matters: an empty segment that comes back does no harm.
    pub(super) fn sync_folder(&self) {
        if let Err(error) = self.disk.sync_dir(self.folder.path()) {
            tracing::warn!(%error, "cannot make the log folder durable");
        }
    }

    /// Ends the thread, and removes the segment that was prepared but not used.
    pub(super) fn stop(&mut self) {
        self.orders = None;
        if self.ordered.is_some()
            && let Ok(prepared) = self.receive()
        {
            self.discard(prepared.place.path(), prepared.bytes);
        }
        if self.maker.take().is_some_and(|maker| maker.join().is_err()) {
            tracing::error!("the thread that makes log segments panicked");
        }
    }
}

/// Returns true if a file that was to be deleted no longer exists.
pub(super) fn is_gone(removed: &io::Result<()>) -> bool {
    match removed {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

fn make(disk: &dyn Disk, folder: &FileLocation, number: u64, bytes: u64) -> io::Result<PreparedSegment> {
    // Nothing is created in a folder that has replaced the one that was opened.
    folder.check(disk)?;
    let path = folder.path().join(format::name(number));
    let made = try_make(disk, folder.path(), &path, bytes);
    match made.and_then(|file| Ok((file, FileLocation::of(disk, &path)?))) {
        Ok((file, place)) => Ok(PreparedSegment { number, file, place, bytes }),
        Err(error) => {
            // A full disk must not fill up with leftovers of attempts. If this fails too, the next start removes the
            // file.
            let _ = disk.remove(&path);
            Err(error)
        }
    }
}

fn try_make(disk: &dyn Disk, folder: &Path, path: &Path, bytes: u64) -> io::Result<Box<dyn DiskFile>> {
    let mut file = disk.create(path, bytes)?;
    file.sync()?;
    disk.sync_dir(folder)?;
    Ok(file)
}
