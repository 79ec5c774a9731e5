//! The counters of the collector: one closed list, updated once per request and not per record.
//!
//! Every rejection and every drop is counted by its reason; nothing is lost without being counted.

mod category_counts;
mod local_inputs;

pub use category_counts::CategoryCounts;
pub use local_inputs::{FileCounters, StdinCounters};

use crate::rejection::{Rejection, RejectionReason};
use crate::source::Source;
use classifier::{Category, UnrecognizedReason};
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only increases.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to the counter.
    pub fn add(&self, count: u64) {
        if count > 0 {
            self.0.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Returns the value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that can rise and fall.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Sets the value.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns the value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The names of the reasons for which records could not be used: those of the classifier, and one of the OTLP
/// parsers.
pub const RECORD_REASONS: [&str; 10] = [
    UnrecognizedReason::NotJson { at: 0 }.as_str(),
    UnrecognizedReason::InvalidUtf8.as_str(),
    UnrecognizedReason::TooLong.as_str(),
    UnrecognizedReason::TooDeep.as_str(),
    UnrecognizedReason::NoEnvelope.as_str(),
    UnrecognizedReason::NotAReply.as_str(),
    UnrecognizedReason::RepeatedState.as_str(),
    UnrecognizedReason::TooManyLevels.as_str(),
    UnrecognizedReason::TooManyEvents.as_str(),
    MALFORMED,
];

/// The reason of a span or log record whose bytes cannot be parsed.
pub(crate) const MALFORMED: &str = "malformed";

/// Returns the index of a reason in [`RECORD_REASONS`].
pub(crate) fn reason_index(word: &str) -> usize {
    RECORD_REASONS.iter().position(|known| *known == word).unwrap_or(RECORD_REASONS.len() - 1)
}

/// The counts of one request, which are added to the counters when it is durable.
#[derive(Debug, Clone, Default)]
pub struct RequestCounts {
    /// Lines, spans or log records that could be read.
    pub accepted: u64,
    /// Lines, spans or log records that hold no outcome that the classifier recognizes.
    pub unrecognized: u64,
    /// Lines, spans or log records that could not be read.
    pub rejected: u64,
    /// Records that could not be used, by reason as in [`RECORD_REASONS`].
    pub reasons: [u64; RECORD_REASONS.len()],
    /// Errors, warnings and audit events.
    pub events: u64,
    /// Errors, warnings and audit events, by category.
    pub categories: CategoryCounts,
    /// Calls, successful or not.
    pub calls: u64,
    /// Data points of metrics that do not describe calls.
    pub ignored: u64,
    /// Events past the budget of their service that have no row of their own.
    pub over_budget: u64,
    /// Events and calls that had been sent before.
    pub duplicates: u64,
    /// Events whose time was unusable and became the time of arrival.
    pub times_replaced: u64,
}

/// Declares the counters of a source, including those to which the counts of requests are added.
macro_rules! source_counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// The counters of one receiver.
        #[derive(Debug, Default)]
        pub struct SourceCounters {
            /// Requests that were received, including rejected ones.
            pub requests: Counter,
            /// Bytes of bodies as they were received.
            pub wire_bytes: Counter,
            /// Bytes of bodies after decompression.
            pub body_bytes: Counter,
            /// Requests that were rejected, by reason as in [`RejectionReason::ALL`].
            pub rejected_requests: [Counter; RejectionReason::ALL.len()],
            /// Records that could not be used, by reason as in [`RECORD_REASONS`].
            pub reasons: [Counter; RECORD_REASONS.len()],
            /// Events by category, as in [`Category::ALL`].
            pub categories: [Counter; Category::ALL.len()],
            $($(#[$doc])* pub $name: Counter,)+
        }

        impl SourceCounters {
            /// Adds the counts of a durable request.
            pub fn add(&self, counts: &RequestCounts) {
                $(self.$name.add(counts.$name);)+
                for (counter, count) in self.reasons.iter().zip(counts.reasons) {
                    counter.add(count);
                }
                for (category, count) in counts.categories.iter() {
                    self.categories[category as usize].add(count);
                }
            }
        }
    };
}

source_counters! {
    /// Lines, spans or log records that could be read.
    accepted,
    /// Those that held nothing of ours.
    unrecognized,
    /// Those that could not be read.
    rejected,
    /// Errors, warnings and audit events.
    events,
    /// Calls.
    calls,
    /// Data points of metrics that tell of no calls.
    ignored,
    /// Events past the budget of their service that have no row of their own.
    over_budget,
    /// Events and calls that had been sent before.
    duplicates,
    /// Events whose time was unusable.
    times_replaced,
}

/// All counters of the collector.
#[derive(Debug, Default)]
pub struct Counters {
    sources: [SourceCounters; Source::ALL.len()],
    /// Rejected records of which no sample was kept, because the limit of samples was reached.
    pub samples_dropped: Counter,
    /// Requests that were answered with the response to an earlier one, because of their `Idempotency-Key`.
    pub idempotent_replays: Counter,
    /// Panics that were caught before they could affect other requests.
    pub panics: Counter,
    /// Records of the WAL that were durable but could not be read back.
    pub unreadable_records: Counter,
    /// The counters of tailed log files.
    pub files: FileCounters,
    /// The counters of standard input.
    pub stdin: StdinCounters,
}

impl Counters {
    /// Returns the counters of one receiver.
    #[must_use]
    pub fn of(&self, source: Source) -> &SourceCounters {
        &self.sources[source as usize]
    }

    /// Counts a rejection; all rejections are counted here.
    pub fn record_rejection(&self, source: Source, rejection: &Rejection) {
        self.of(source).rejected_requests[rejection.reason as usize].add(1);
        // The detail is only for the sender: it may quote the request, and diagnostics must not hold secrets.
        tracing::debug!(source = source.as_str(), reason = rejection.reason.as_str(), "request rejected");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_own_place() {
        for (index, reason) in RejectionReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }

    #[test]
    fn refusals_are_counted_by_source_and_cause() {
        let counters = Counters::default();
        counters.record_rejection(
            Source::OtlpLogs,
            &Rejection::new(RejectionReason::TooLarge, "a body of 99 MiB"),
        );
        assert_eq!(
            counters.of(Source::OtlpLogs).rejected_requests[RejectionReason::TooLarge as usize].get(),
            1
        );
        assert_eq!(
            counters.of(Source::Envelopes).rejected_requests[RejectionReason::TooLarge as usize].get(),
            0
        );
    }
}
