//! Counters and durations of statements, by endpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The upper bounds of the histogram in [`EndpointStats::buckets`], in milliseconds.
pub const DURATION_BOUNDS_MS: [u64; 12] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000];

/// The endpoint that receives a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `POST /api/v1/sql`.
    Http,
    /// The PostgreSQL protocol.
    Postgres,
    /// Arrow Flight SQL.
    Flight,
    /// A live tail, which queries the newest events when it begins.
    Tail,
    /// The process itself, as in `faultline sql` on a data directory.
    Local,
}

impl Endpoint {
    /// All endpoints.
    pub const ALL: [Self; 5] = [Self::Http, Self::Postgres, Self::Flight, Self::Tail, Self::Local];

    /// Returns a short, stable name, which metrics use as a label.
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

/// The outcome of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The client received all rows.
    Succeeded,
    /// The statement was rejected or failed.
    Failed,
    /// The client stopped reading before the end.
    Cancelled,
}

/// Statistics of the statements that came through one endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointStats {
    /// The number of statements that succeeded.
    pub succeeded: u64,
    /// The number of statements that were rejected or failed.
    pub failed: u64,
    /// The number of statements that the client abandoned before their end.
    pub cancelled: u64,
    /// The sum of all durations.
    pub time: Duration,
    /// For each of [`DURATION_BOUNDS_MS`], the number of statements that took at most that long.
    pub buckets: [u64; DURATION_BOUNDS_MS.len()],
}

#[derive(Debug, Default)]
pub(crate) struct Stats([Counters; Endpoint::ALL.len()]);

#[derive(Debug, Default)]
struct Counters {
    outcomes: [AtomicU64; 3],
    micros: AtomicU64,
    /// A histogram that is not cumulative: each statement is counted in the first bucket that it fits in.
    buckets: [AtomicU64; DURATION_BOUNDS_MS.len()],
}

impl Stats {
    pub(crate) fn count(&self, endpoint: Endpoint, outcome: Outcome, took: Duration) {
        let counters = &self.0[endpoint as usize];
        counters.outcomes[outcome as usize].fetch_add(1, Relaxed);
        counters.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
        let index = DURATION_BOUNDS_MS.partition_point(|bound| Duration::from_millis(*bound) < took);
        if let Some(bucket) = counters.buckets.get(index) {
            bucket.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn snapshot(&self, endpoint: Endpoint) -> EndpointStats {
        let counters = &self.0[endpoint as usize];
        let [succeeded, failed, cancelled] = counters.outcomes.each_ref().map(|count| count.load(Relaxed));
        let mut sum = 0;
        let buckets = counters.buckets.each_ref().map(|count| {
            sum += count.load(Relaxed);
            sum
        });
        let time = Duration::from_micros(counters.micros.load(Relaxed));
        EndpointStats { succeeded, failed, cancelled, time, buckets }
    }
}

/// Measures a running statement and counts it once, when it ends or is abandoned.
#[derive(Debug)]
pub(crate) struct StatementTimer {
    stats: Option<Arc<Stats>>,
    endpoint: Endpoint,
    started: Instant,
}

impl StatementTimer {
    pub(crate) fn new(stats: Arc<Stats>, endpoint: Endpoint, started: Instant) -> Self {
        Self { stats: Some(stats), endpoint, started }
    }

    pub(crate) fn finish(&mut self, outcome: Outcome) {
        if let Some(stats) = self.stats.take() {
            stats.count(self.endpoint, outcome, self.started.elapsed());
        }
    }
}

impl Drop for StatementTimer {
    fn drop(&mut self) {
        self.finish(Outcome::Cancelled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_by_endpoint_outcome_and_duration() {
        let stats = Stats::default();
        stats.count(Endpoint::Http, Outcome::Succeeded, Duration::from_millis(5));
        stats.count(Endpoint::Http, Outcome::Failed, Duration::from_millis(6));
        stats.count(Endpoint::Http, Outcome::Cancelled, Duration::from_secs(60));
        let http = stats.snapshot(Endpoint::Http);
        assert_eq!((http.succeeded, http.failed, http.cancelled), (1, 1, 1));
        assert_eq!(http.time, Duration::from_millis(60_011));
        assert_eq!((http.buckets[0], http.buckets[1], http.buckets[11]), (1, 2, 2));
        assert_eq!(stats.snapshot(Endpoint::Flight), EndpointStats::default());
    }
}
