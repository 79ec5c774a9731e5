//! State that the workers and the [`Pipeline`](super::Pipeline) handle share.

use super::admission::Admission;
use super::call_points::CumulativeSeries;
use super::dedup::DedupWindow;
use super::idempotency::IdempotencyKeys;
use super::inflight_epochs::InflightEpochs;
use super::reports::CallReports;
use super::sample_limiter::SampleLimiter;
use super::span_reports::SpanReports;
use super::traffic_names::TrafficNames;
use super::{Parts, StartError};
use crate::budget::Budgets;
use crate::counters::Counters;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::rejection::{Rejection, RejectionReason};
use classifier::Rules;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use store::codec::{CodecError, Decoder};
use store::hot::{BufferedRecord, Hot};
use store::wal::{CommitError, Wal};
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// A function that returns the current time in microseconds since 1970.
pub type Clock = fn() -> i64;

/// Bytes beyond the end of a sample that are searched for secrets.
const SAMPLE_MARGIN: usize = 1024;
/// The largest record, in bytes, with which a failing WAL is probed: it is written for nothing.
const MAX_WAL_PROBE_BYTES: usize = 1 << 20;

/// State that all workers share. Every mutable part is atomic or behind a lock that is held briefly.
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) rules: Arc<Rules>,
    pub(super) wal: Wal,
    pub(super) hot: Arc<Hot>,
    pub(super) decoder: Arc<Decoder>,
    pub(super) counters: Counters,
    pub(super) metrics: Arc<Metrics>,
    pub(super) budgets: Budgets,
    pub(super) dedup: DedupWindow,
    /// Groups the spans and log records that report the same call.
    pub(super) call_reports: CallReports,
    /// The names of rows of traffic that may be corrected.
    pub(super) traffic_names: TrafficNames,
    /// The last known state of cumulative metric series of calls.
    pub(super) call_series: CumulativeSeries,
    /// Operations whose calls are counted by spans and therefore not by metrics.
    pub(super) span_reports: SpanReports,
    pub(super) inflight_epochs: Arc<InflightEpochs>,
    pub(super) idempotency: IdempotencyKeys,
    pub(super) sample_limiter: SampleLimiter,
    /// True once new requests are rejected.
    pub(super) closing: AtomicBool,
    /// True once shutdown has been announced: requests are still accepted, but readiness fails.
    pub(super) shutdown_announced: AtomicBool,
    /// Bounds the memory of records that wait for the WAL.
    pub(super) wal_admission: Arc<Admission>,
    clock: Clock,
    /// The time at which a failing WAL was last probed.
    last_wal_probe: AtomicI64,
    /// The size of the largest record that was rejected since the last successful write: while a record of that size
    /// does not fit, the success of a smaller one proves little.
    pub(super) largest_rejected_record: AtomicUsize,
    /// The seed for identities of requests without a key: random for each start, combined with `requests`.
    seed: [u8; 16],
    requests: AtomicU64,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Result<Self, StartError> {
        let Parts { limits, rules, wal, hot, clock, workers: _ } = parts;
        let mut seed = [0; 16];
        getrandom::fill(&mut seed).map_err(std::io::Error::from)?;
        Ok(Self {
            limits,
            metrics: Arc::new(Metrics::new(rules.registry(), &limits)),
            rules,
            budgets: Budgets::default(),
            wal,
            hot,
            decoder: Arc::new(Decoder::current()?),
            counters: Counters::default(),
            dedup: DedupWindow::new(limits.dedup_window, limits.dedup_entries),
            call_reports: CallReports::new(limits.dedup_window),
            traffic_names: TrafficNames::default(),
            call_series: CumulativeSeries::default(),
            span_reports: SpanReports::default(),
            inflight_epochs: Arc::default(),
            idempotency: IdempotencyKeys::new(&limits),
            sample_limiter: SampleLimiter::new(limits.rejects_per_minute),
            closing: AtomicBool::new(false),
            shutdown_announced: AtomicBool::new(false),
            wal_admission: Admission::new(limits.unwritten_bytes),
            clock,
            last_wal_probe: AtomicI64::new(0),
            largest_rejected_record: AtomicUsize::new(0),
            seed,
            requests: AtomicU64::new(0),
        })
    }

    pub(super) fn now(&self) -> i64 {
        (self.clock)()
    }

    /// Returns the size of the record with which to probe a failing WAL, or `None` if it was probed less than
    /// `retry_after` ago.
    pub(super) fn wal_probe_bytes(&self) -> Option<usize> {
        let (last, now) = (self.last_wal_probe.load(Ordering::Relaxed), self.now());
        let is_time = u128::from(now.abs_diff(last)) >= self.limits.retry_after.as_micros()
            && self.last_wal_probe.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        is_time.then(|| self.largest_rejected_record.load(Ordering::Relaxed).min(MAX_WAL_PROBE_BYTES))
    }

    /// Returns an identity that no other request has.
    pub(super) fn next_identity(&self) -> u128 {
        xxh3_128_with_seed(&self.seed, self.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Publishes a durable record to the buffer, where queries find it.
    pub(super) fn publish(&self, record: Result<BufferedRecord, CodecError>) {
        match record {
            Ok(record) => self.hot.publish(record),
            Err(error) => {
                self.counters.unreadable_records.add(1);
                tracing::error!("a record is durable but cannot be read back: {error}");
            }
        }
    }

    /// Returns the beginning of a record that could not be used, with its secrets redacted.
    pub(super) fn redacted_sample(&self, record: &[u8]) -> String {
        let limit = self.limits.reject_sample_bytes;
        // The text is redacted with a margin and then cut by as much, because half a secret would not be recognized.
        // Redaction shortens, so the margin is taken off whatever is left.
        let window = record.len().min(limit + SAMPLE_MARGIN);
        let margin = if window < record.len() { SAMPLE_MARGIN } else { 0 };
        let start = String::from_utf8_lossy(&record[..window]);
        let clean = self.rules.redactor().text(&start);
        clean[..clean.floor_char_boundary(limit.min(clean.len().saturating_sub(margin)))].to_owned()
    }

    pub(super) fn retryable(&self, reason: RejectionReason, detail: impl Into<String>) -> Rejection {
        Rejection::retryable(reason, detail, self.limits.retry_after)
    }

    pub(super) fn shutting_down(&self) -> Rejection {
        self.retryable(RejectionReason::ShuttingDown, "the collector is stopping")
    }

    /// Returns the rejection of a record that failed because an earlier one did: it has the reason of the earlier
    /// failure, if that still holds.
    fn rejection_for_stale(&self) -> Rejection {
        let wal = self.wal.stats();
        let reason = match (wal.full, wal.failing) {
            _ if wal.displaced => RejectionReason::DirectoryLost,
            (true, _) => RejectionReason::WalFull,
            (_, true) => RejectionReason::DiskFailed,
            _ => RejectionReason::Busy,
        };
        let error = wal.last_error.map(|error| format!(": {error}")).unwrap_or_default();
        self.retryable(reason, format!("an earlier request could not be stored{error}"))
    }

    /// Returns the rejection that a sender gets when the WAL could not store its record.
    pub(super) fn rejection_for(&self, error: &CommitError) -> Rejection {
        match error {
            CommitError::Full => {
                self.retryable(RejectionReason::WalFull, "the log has reached its limit on disk")
            }
            CommitError::Displaced(_) => self.retryable(RejectionReason::DirectoryLost, error.to_string()),
            CommitError::NoSpace | CommitError::Io(_) => {
                self.retryable(RejectionReason::DiskFailed, error.to_string())
            }
            CommitError::Stale => self.rejection_for_stale(),
            CommitError::TooLarge => Rejection::new(RejectionReason::TooLarge, error.to_string()),
            CommitError::Closed => self.shutting_down(),
        }
    }
}
