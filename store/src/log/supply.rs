//! New segments, made ahead of time on a thread of their own, so that going on to the next one costs no more than
//! any other commit.
//!
//! What must always hold: a segment that is handed over is empty, preallocated, and its name and length are durable.
//! It has no header yet; the header is written with the first group and made durable by the same fdatasync.
use super::stats::Counters;
use super::{CommitError, LogError, LogOptions, Shared, format};
use crate::disk::{Disk, DiskFile};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};

/// An empty segment.
pub(super) struct Prepared {
    pub(super) number: u64,
    pub(super) file: Box<dyn DiskFile>,
    pub(super) path: PathBuf,
    /// What it counts for on the disk: where nothing can be preallocated, what it may grow to.
    pub(super) bytes: u64,
}

/// Where new segments come from.
pub(super) struct Supply {
    disk: Arc<dyn Disk>,
    counters: Arc<Counters>,
    folder: PathBuf,
    segment_bytes: u64,
    max_bytes: u64,
    next_number: u64,
    orders: Option<Sender<u64>>,
    results: Receiver<io::Result<Prepared>>,
    /// One segment is being made, or lies ready.
    ordered: bool,
    maker: Option<JoinHandle<()>>,
}

impl Supply {
    pub(super) fn start(shared: &Shared, options: &LogOptions, next_number: u64) -> Result<Self, LogError> {
        let segment_bytes = options.segment_bytes.min(options.max_bytes / 4);
        let (orders, to_make) = bounded(1);
        let (made, results) = bounded(1);
        let (disk, folder) = (Arc::clone(&shared.disk), shared.folder.clone());
        let make_all = move || {
            for number in to_make {
                if made.send(make(&*disk, &folder, number, segment_bytes)).is_err() {
                    return;
                }
            }
        };
        let maker = thread::Builder::new().name("log-prepare".into()).spawn(make_all);
        let maker = maker.map_err(|error| LogError::Start(error.to_string()))?;
        Ok(Self {
            disk: Arc::clone(&shared.disk),
            counters: Arc::clone(&shared.counters),
            folder: shared.folder.clone(),
            segment_bytes,
            max_bytes: options.max_bytes,
            next_number,
            orders: Some(orders),
            results,
            ordered: false,
            maker: Some(maker),
        })
    }

    /// Has a segment made, if the log may grow by one and none is on its way.
    pub(super) fn make_ahead(&mut self) {
        if !self.ordered && self.has_room() {
            self.order();
        }
    }

    /// The next segment.
    pub(super) fn next(&mut self) -> Result<Prepared, CommitError> {
        if self.ordered
            && let Ok(prepared) = self.receive()
        {
            return Ok(prepared);
        }
        // That one failed some time ago, or none was ordered: try now.
        if self.has_room() { self.next_beyond_limit() } else { Err(CommitError::Full) }
    }

    /// The next segment, even if the log is at its limit.
    pub(super) fn next_beyond_limit(&mut self) -> Result<Prepared, CommitError> {
        if !self.ordered {
            self.order();
        }
        self.receive().map_err(|error| CommitError::from_disk(&error))
    }

    fn has_room(&self) -> bool {
        self.counters.bytes.load(Relaxed).saturating_add(self.segment_bytes) <= self.max_bytes
    }

    fn order(&mut self) {
        // Each attempt has a number of its own: what an earlier one left behind is in nobody's way.
        let number = self.next_number;
        self.next_number += 1;
        if self.orders.as_ref().is_some_and(|orders| orders.send(number).is_ok()) {
            self.ordered = true;
            self.counters.bytes.fetch_add(self.segment_bytes, Relaxed);
            self.counters.segments.fetch_add(1, Relaxed);
        }
    }

    fn receive(&mut self) -> io::Result<Prepared> {
        if !self.ordered {
            return Err(io::Error::other("the thread that makes segments has ended"));
        }
        self.ordered = false;
        let ended = |_| Err(io::Error::other("the thread that makes segments has ended"));
        let result = self.results.recv().unwrap_or_else(ended);
        if result.is_err() {
            self.count_as(self.segment_bytes, 0);
            self.counters.segments.fetch_sub(1, Relaxed);
        }
        result
    }

    /// A segment takes more or less than was counted for it.
    pub(super) fn count_as(&self, before: u64, now: u64) {
        self.counters.bytes.fetch_add(now, Relaxed);
        self.counters.bytes.fetch_sub(before, Relaxed);
    }

    /// Gives back what was preallocated and not used. If that fails, it costs room and nothing else.
    /// Returns what the segment takes now.
    pub(super) fn trim(&self, path: &Path, bytes: u64, used: u64) -> u64 {
        if used >= bytes || self.disk.truncate(path, used).is_err() {
            return bytes;
        }
        self.count_as(bytes, used);
        used
    }

    /// Removes a segment that holds nothing. Says whether it is gone.
    pub(super) fn discard(&self, path: &Path, bytes: u64) -> bool {
        let gone = is_gone(&self.disk.remove(path));
        if gone {
            self.count_as(bytes, 0);
            self.counters.segments.fetch_sub(1, Relaxed);
        }
        gone
    }

    /// Makes removals durable, as far as that matters: an empty segment that comes back does no harm.
    pub(super) fn sync_folder(&self) {
        if let Err(error) = self.disk.sync_dir(&self.folder) {
            tracing::warn!(%error, "cannot make the log folder durable");
        }
    }

    /// Ends the thread, and removes the segment that was made for nothing.
    pub(super) fn stop(&mut self) {
        self.orders = None;
        if self.ordered
            && let Ok(prepared) = self.receive()
        {
            self.discard(&prepared.path, prepared.bytes);
        }
        if self.maker.take().is_some_and(|maker| maker.join().is_err()) {
            tracing::error!("the thread that makes log segments panicked");
        }
    }
}

/// Whether a file that was to be removed is no longer there.
pub(super) fn is_gone(removed: &io::Result<()>) -> bool {
    match removed {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

fn make(disk: &dyn Disk, folder: &Path, number: u64, bytes: u64) -> io::Result<Prepared> {
    let path = folder.join(format::name(number));
    match try_make(disk, folder, &path, bytes) {
        Ok(file) => Ok(Prepared { number, file, path, bytes }),
        Err(error) => {
            // A full disk should not fill up with what is left of attempts. If this fails too, the next start does it.
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
