//! What was asked so far, by the doors it came in by.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The upper bounds of [`ViaStats::within`], in milliseconds.
pub const BOUNDS_MS: [u64; 12] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000];

/// Where a statement comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// `POST /api/v1/sql`.
    Http,
    /// The PostgreSQL protocol.
    Postgres,
    /// Arrow Flight SQL.
    Flight,
    /// The newest events of a tail.
    Tail,
    /// Within the process.
    Local,
}

impl Via {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Http, Self::Postgres, Self::Flight, Self::Tail, Self::Local];

    /// A short, stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Postgres => "postgres",
            Self::Flight => "flight",
            Self::Tail => "tail",
            Self::Local => "local",
        }
    }
}

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// All rows were taken.
    Answered,
    /// It was refused, or went wrong.
    Failed,
    /// Whoever asked wanted no more.
    Stopped,
}

/// What the statements of one door did so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ViaStats {
    /// How many were answered.
    pub answered: u64,
    /// How many were refused, or went wrong.
    pub failed: u64,
    /// How many were left before they had ended.
    pub stopped: u64,
    /// How long all of them took.
    pub time: Duration,
    /// How many took at most each of [`BOUNDS_MS`].
    pub within: [u64; BOUNDS_MS.len()],
}

#[derive(Debug, Default)]
pub(crate) struct Stats([Counters; Via::ALL.len()]);

#[derive(Debug, Default)]
struct Counters {
    ends: [AtomicU64; 3],
    micros: AtomicU64,
    /// Each statement is in one: the first that it fits in.
    buckets: [AtomicU64; BOUNDS_MS.len()],
}

impl Stats {
    pub(crate) fn count(&self, via: Via, end: End, took: Duration) {
        let counters = &self.0[via as usize];
        counters.ends[end as usize].fetch_add(1, Relaxed);
        counters.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
        let place = BOUNDS_MS.partition_point(|bound| Duration::from_millis(*bound) < took);
        if let Some(bucket) = counters.buckets.get(place) {
            bucket.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn of(&self, via: Via) -> ViaStats {
        let counters = &self.0[via as usize];
        let [answered, failed, stopped] = counters.ends.each_ref().map(|count| count.load(Relaxed));
        let mut sum = 0;
        let within = counters.buckets.each_ref().map(|count| {
            sum += count.load(Relaxed);
            sum
        });
        let time = Duration::from_micros(counters.micros.load(Relaxed));
        ViaStats { answered, failed, stopped, time, within }
    }
}

/// A statement that runs: counted once, when it ends or is left.
#[derive(Debug)]
pub(crate) struct Running {
    stats: Option<Arc<Stats>>,
    via: Via,
    began: Instant,
}

impl Running {
    pub(crate) fn new(stats: Arc<Stats>, via: Via, began: Instant) -> Self {
        Self { stats: Some(stats), via, began }
    }

    pub(crate) fn end(&mut self, end: End) {
        if let Some(stats) = self.stats.take() {
            stats.count(self.via, end, self.began.elapsed());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end(End::Stopped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_by_door_end_and_time() {
        let stats = Stats::default();
        stats.count(Via::Http, End::Answered, Duration::from_millis(5));
        stats.count(Via::Http, End::Failed, Duration::from_millis(6));
        stats.count(Via::Http, End::Stopped, Duration::from_secs(60));
        let http = stats.of(Via::Http);
        assert_eq!((http.answered, http.failed, http.stopped), (1, 1, 1));
        assert_eq!(http.time, Duration::from_millis(60_011));
        assert_eq!((http.within[0], http.within[1], http.within[11]), (1, 2, 2));
        assert_eq!(stats.of(Via::Flight), ViaStats::default());
    }
}
