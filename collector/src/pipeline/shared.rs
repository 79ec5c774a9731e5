//! What the workers and the way in share.

use super::admission::Admission;
use super::call_points::CumulativeSeries;
use super::dedup::DedupWindow;
use super::idempotency::IdempotencyKeys;
use super::inflight_epochs::InflightEpochs;
use super::reports::CallReports;
use super::sample_limiter::SampleLimiter;
use super::span_reports::SpanReports;
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

/// Microseconds since 1970, now.
pub type Clock = fn() -> i64;

/// How far beyond a sample a secret is looked for.
const SAMPLE_MARGIN: usize = 1024;
/// A failing log is `last_wal_probe` with no more than this: it is written for nothing.
const MAX_WAL_PROBE_BYTES: usize = 1 << 20;

/// Shared by all; what changes in it is atomic or behind a short lock.
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
    /// Which spans and log records tell of the same call.
    pub(super) call_reports: CallReports,
    /// Cumulative series of calls.
    pub(super) call_series: CumulativeSeries,
    /// Operations whose calls are counted by spans.
    pub(super) span_reports: SpanReports,
    pub(super) inflight_epochs: Arc<InflightEpochs>,
    pub(super) idempotency: IdempotencyKeys,
    pub(super) sample_limiter: SampleLimiter,
    /// Nothing new is taken.
    pub(super) closing: AtomicBool,
    /// Everything is still taken, but better not sent.
    pub(super) shutdown_announced: AtomicBool,
    /// Where records wait for the log.
    pub(super) wal_admission: Arc<Admission>,
    clock: Clock,
    /// When a failing log was last `last_wal_probe` for the sake of somebody who asked.
    last_wal_probe: AtomicI64,
    /// The largest record that was refused since one was taken: where that does not fit, nothing smaller proves much.
    pub(super) largest_rejected_record: AtomicUsize,
    /// Identities of requests without one: random from start to start, counted within.
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

    /// How large a record to try a failing log with; none until refused senders come back, too.
    pub(super) fn wal_probe_bytes(&self) -> Option<usize> {
        let (last, now) = (self.last_wal_probe.load(Ordering::Relaxed), self.now());
        let is_time = u128::from(now.abs_diff(last)) >= self.limits.retry_after.as_micros()
            && self.last_wal_probe.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        is_time.then(|| self.largest_rejected_record.load(Ordering::Relaxed).min(MAX_WAL_PROBE_BYTES))
    }

    /// An identity that no other request has.
    pub(super) fn next_identity(&self) -> u128 {
        xxh3_128_with_seed(&self.seed, self.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes a durable record readable.
    pub(super) fn publish(&self, record: Result<BufferedRecord, CodecError>) {
        match record {
            Ok(record) => self.hot.publish(record),
            Err(error) => {
                self.counters.unreadable_records.add(1);
                tracing::error!("a record is durable but cannot be read back: {error}");
            }
        }
    }

    /// The beginning of a record that could not be used, without its secrets.
    pub(super) fn redacted_sample(&self, record: &[u8]) -> String {
        let limit = self.limits.reject_sample_bytes;
        // Redacted with a margin, then cut by as much: half a secret would not be known for one. Redaction
        // shortens, so the margin is taken off whatever is left.
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

    /// A record that was refused because of an earlier one shares the reason, as far as it is still the case.
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

    /// What a sender is told when its record is not stored.
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
