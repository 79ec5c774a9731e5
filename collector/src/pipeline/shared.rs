//! What the workers and the way in share.

use super::epochs::Epochs;
use super::gate::Gate;
use super::keys::Keys;
use super::repeats::Repeats;
use super::samples::Samples;
use super::{Parts, StartError};
use crate::budget::Budgets;
use crate::counters::Counters;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::refusal::{Cause, Refusal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use store::codec::{CodecError, Decoder};
use store::hot::{Hot, HotRecord};
use store::log::{CommitError, Log};
use taxonomy::Rules;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Microseconds since 1970, now.
pub type Clock = fn() -> i64;

/// How far beyond a sample a secret is looked for.
const SAMPLE_MARGIN: usize = 1024;
/// A failing log is tried with no more than this: it is written for nothing.
const LARGEST_TRY: usize = 1 << 20;

/// Shared by all; what changes in it is atomic or behind a short lock.
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) rules: Arc<Rules>,
    pub(super) log: Log,
    pub(super) hot: Arc<Hot>,
    pub(super) decoder: Arc<Decoder>,
    pub(super) counters: Counters,
    pub(super) metrics: Arc<Metrics>,
    pub(super) budgets: Budgets,
    pub(super) repeats: Repeats,
    pub(super) epochs: Arc<Epochs>,
    pub(super) keys: Keys,
    pub(super) samples: Samples,
    /// Nothing new is taken.
    pub(super) closing: AtomicBool,
    /// Everything is still taken, but better not sent.
    pub(super) stopping_soon: AtomicBool,
    /// Where records wait for the log.
    pub(super) unwritten: Arc<Gate>,
    clock: Clock,
    /// When a failing log was last tried for the sake of somebody who asked.
    tried: AtomicI64,
    /// The largest record that was refused since one was taken: where that does not fit, nothing smaller proves much.
    pub(super) refused_bytes: AtomicUsize,
    /// Identities of requests without one: random from start to start, counted within.
    seed: [u8; 16],
    requests: AtomicU64,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Result<Self, StartError> {
        let Parts { limits, rules, log, hot, clock, workers: _ } = parts;
        let mut seed = [0; 16];
        getrandom::fill(&mut seed).map_err(std::io::Error::from)?;
        Ok(Self {
            limits,
            metrics: Arc::new(Metrics::new(rules.registry(), &limits)),
            rules,
            budgets: Budgets::default(),
            log,
            hot,
            decoder: Arc::new(Decoder::current()?),
            counters: Counters::default(),
            repeats: Repeats::new(limits.repeat_window, limits.repeats),
            epochs: Arc::default(),
            keys: Keys::new(&limits),
            samples: Samples::new(limits.rejects_per_minute),
            closing: AtomicBool::new(false),
            stopping_soon: AtomicBool::new(false),
            unwritten: Gate::new(limits.unwritten_bytes),
            clock,
            tried: AtomicI64::new(0),
            refused_bytes: AtomicUsize::new(0),
            seed,
            requests: AtomicU64::new(0),
        })
    }

    pub(super) fn now(&self) -> i64 {
        (self.clock)()
    }

    /// How large a record to try a failing log with; none until refused senders come back, too.
    pub(super) fn bytes_to_try(&self) -> Option<usize> {
        let (last, now) = (self.tried.load(Ordering::Relaxed), self.now());
        let is_time = u128::from(now.abs_diff(last)) >= self.limits.retry_after.as_micros()
            && self.tried.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        is_time.then(|| self.refused_bytes.load(Ordering::Relaxed).min(LARGEST_TRY))
    }

    /// An identity that no other request has.
    pub(super) fn next_identity(&self) -> u128 {
        xxh3_128_with_seed(&self.seed, self.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes a durable record readable.
    pub(super) fn publish(&self, record: Result<HotRecord, CodecError>) {
        match record {
            Ok(record) => self.hot.publish(record),
            Err(error) => {
                self.counters.unreadable_records.add(1);
                tracing::error!("a record is durable but cannot be read back: {error}");
            }
        }
    }

    /// The beginning of a record that could not be used, without its secrets.
    pub(super) fn sample_of(&self, record: &[u8]) -> String {
        let limit = self.limits.reject_sample_bytes;
        // Redacted with a margin, then cut by as much: half a secret would not be known for one. Redaction
        // shortens, so the margin is taken off whatever is left.
        let window = record.len().min(limit + SAMPLE_MARGIN);
        let margin = if window < record.len() { SAMPLE_MARGIN } else { 0 };
        let start = String::from_utf8_lossy(&record[..window]);
        let clean = self.rules.redactor().text(&start);
        clean[..clean.floor_char_boundary(limit.min(clean.len().saturating_sub(margin)))].to_owned()
    }

    pub(super) fn later(&self, cause: Cause, detail: impl Into<String>) -> Refusal {
        Refusal::later(cause, detail, self.limits.retry_after)
    }

    pub(super) fn stopping(&self) -> Refusal {
        self.later(Cause::ShuttingDown, "the collector is stopping")
    }

    /// A record that was refused because of an earlier one shares the cause, as far as it is still the case.
    fn refusal_of_stale(&self) -> Refusal {
        let log = self.log.stats();
        let cause = match (log.full, log.failing) {
            _ if log.displaced => Cause::DirectoryLost,
            (true, _) => Cause::LogFull,
            (_, true) => Cause::DiskFailed,
            _ => Cause::Busy,
        };
        let error = log.last_error.map(|error| format!(": {error}")).unwrap_or_default();
        self.later(cause, format!("an earlier request could not be stored{error}"))
    }

    /// What a sender is told when its record is not stored.
    pub(super) fn refusal_of(&self, error: &CommitError) -> Refusal {
        match error {
            CommitError::Full => self.later(Cause::LogFull, "the log has reached its limit on disk"),
            CommitError::Displaced(_) => self.later(Cause::DirectoryLost, error.to_string()),
            CommitError::NoSpace | CommitError::Io(_) => self.later(Cause::DiskFailed, error.to_string()),
            CommitError::Stale => self.refusal_of_stale(),
            CommitError::TooLarge => Refusal::new(Cause::TooLarge, error.to_string()),
            CommitError::Closed => self.stopping(),
        }
    }
}
