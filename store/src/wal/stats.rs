//! Counters of the WAL for metrics. They are updated without locks and can be read at any time.
use super::CommitError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The upper bounds of the buckets of [`WalStats::fsync_buckets`], in microseconds. The last bucket has no bound.
pub const FSYNC_BOUNDS: [u64; 13] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000];

/// The counters of the WAL at one point in time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalStats {
    /// The size of all segments on disk, including preallocated bytes.
    pub bytes: u64,
    /// The number of segments on disk, including the prepared one.
    pub segments: u64,
    /// The number of records made durable since the start.
    pub records: u64,
    /// The number of payload bytes made durable since the start.
    pub record_bytes: u64,
    /// The number of groups made durable since the start. Each cost one fdatasync.
    pub commits: u64,
    /// The time spent in fdatasync, in microseconds.
    pub fsync_micros: u64,
    /// The duration of the longest fdatasync, in microseconds.
    pub fsync_max_micros: u64,
    /// The number of fdatasyncs in each bucket, not cumulative, with the bounds [`FSYNC_BOUNDS`].
    pub fsync_buckets: [u64; FSYNC_BOUNDS.len() + 1],
    /// The number of records rejected because the WAL had reached its size limit.
    pub rejected_full: u64,
    /// The number of records rejected because the disk was full.
    pub rejected_no_space: u64,
    /// The number of records rejected because the disk failed.
    pub rejected_io: u64,
    /// The number of records rejected because the WAL was not where it was opened.
    pub rejected_displaced: u64,
    /// The number of records rejected because an earlier one failed.
    pub rejected_stale: u64,
    /// The number of records rejected because they are too large.
    pub rejected_too_large: u64,
    /// True if the newest group was rejected because the WAL had reached its size limit.
    pub full: bool,
    /// True if the newest group was rejected because the WAL is not where it was opened.
    pub displaced: bool,
    /// True if the newest group was rejected for any reason.
    pub failing: bool,
    /// The newest failure, as text. It is kept after recovery.
    pub last_error: Option<String>,
}

/// The counters while the WAL is open.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) bytes: AtomicU64,
    pub(super) segments: AtomicU64,
    records: AtomicU64,
    record_bytes: AtomicU64,
    commits: AtomicU64,
    fsync_micros: AtomicU64,
    fsync_max_micros: AtomicU64,
    fsync_buckets: [AtomicU64; FSYNC_BOUNDS.len() + 1],
    rejected_full: AtomicU64,
    rejected_no_space: AtomicU64,
    rejected_io: AtomicU64,
    rejected_displaced: AtomicU64,
    rejected_stale: AtomicU64,
    rejected_too_large: AtomicU64,
    pub(super) full: AtomicBool,
    displaced: AtomicBool,
    failing: AtomicBool,
    last_error: Mutex<Option<String>>,
}

impl Counters {
    pub(super) fn committed(&self, records: u64, bytes: u64, fsync: Duration) {
        let micros = u64::try_from(fsync.as_micros()).unwrap_or(u64::MAX);
        self.records.fetch_add(records, Relaxed);
        self.record_bytes.fetch_add(bytes, Relaxed);
        self.commits.fetch_add(1, Relaxed);
        self.fsync_micros.fetch_add(micros, Relaxed);
        self.fsync_max_micros.fetch_max(micros, Relaxed);
        self.fsync_buckets[FSYNC_BOUNDS.partition_point(|bound| *bound < micros)].fetch_add(1, Relaxed);
        self.full.store(false, Relaxed);
        self.displaced.store(false, Relaxed);
        if self.failing.swap(false, Relaxed) {
            tracing::info!("the log takes records again");
        }
    }

    pub(super) fn refused(&self, records: u64, error: &CommitError) {
        let counter = match error {
            CommitError::Full => &self.rejected_full,
            CommitError::NoSpace => &self.rejected_no_space,
            CommitError::Io(_) => &self.rejected_io,
            CommitError::Displaced(_) => &self.rejected_displaced,
            CommitError::TooLarge => &self.rejected_too_large,
            CommitError::Stale | CommitError::Closed => &self.rejected_stale,
        };
        counter.fetch_add(records, Relaxed);
    }

    /// Records the reason why a group failed.
    pub(super) fn failed(&self, error: &CommitError) {
        self.full.store(matches!(error, CommitError::Full), Relaxed);
        self.displaced.store(matches!(error, CommitError::Displaced(_)), Relaxed);
        if !self.failing.swap(true, Relaxed) {
            tracing::warn!(%error, "the log refuses records");
        }
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }

    pub(super) fn read(&self) -> WalStats {
        WalStats {
            bytes: self.bytes.load(Relaxed),
            segments: self.segments.load(Relaxed),
            records: self.records.load(Relaxed),
            record_bytes: self.record_bytes.load(Relaxed),
            commits: self.commits.load(Relaxed),
            fsync_micros: self.fsync_micros.load(Relaxed),
            fsync_max_micros: self.fsync_max_micros.load(Relaxed),
            fsync_buckets: self.fsync_buckets.each_ref().map(|bucket| bucket.load(Relaxed)),
            rejected_full: self.rejected_full.load(Relaxed),
            rejected_no_space: self.rejected_no_space.load(Relaxed),
            rejected_io: self.rejected_io.load(Relaxed),
            rejected_displaced: self.rejected_displaced.load(Relaxed),
            rejected_stale: self.rejected_stale.load(Relaxed),
            rejected_too_large: self.rejected_too_large.load(Relaxed),
            full: self.full.load(Relaxed),
            displaced: self.displaced.load(Relaxed),
            failing: self.failing.load(Relaxed),
            last_error: self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
