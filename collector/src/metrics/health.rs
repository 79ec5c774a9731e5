//! The metrics of the collector that are no metrics of services, read from where they are counted anyway.

use super::names;
use crate::counters::{Counters, RECORD_REASONS, SourceCounters};
use crate::pipeline::Pipeline;
use crate::rejection::RejectionReason;
use crate::source::Source;
use crate::status_api;
use classifier::Category;
use metrics::{Metric, MetricSource, Samples};
use store::maintenance::Maintenance;

/// The parts of the collector that count.
pub(super) struct CollectorMetrics {
    pub(super) pipeline: Pipeline,
    pub(super) maintenance: Maintenance,
}

impl MetricSource for CollectorMetrics {
    fn metrics(&self) -> &'static [Metric] {
        names::ALL
    }

    /// Adds everything except the metrics of services: their series are many, and the exporter writes them itself.
    fn collect(&self, samples: &mut Samples) {
        self.collect_sources(samples);
        self.collect_files(samples);
        self.collect_stdin(samples);
        self.collect_server(samples);
        self.collect_series(samples);
    }
}

impl CollectorMetrics {
    fn collect_sources(&self, samples: &mut Samples) {
        let counters = self.pipeline.counters();
        let by_source = |read: fn(&SourceCounters) -> u64| {
            Source::ALL.map(|source| (source.as_str(), read(counters.of(source))))
        };
        samples.counts(names::RECEIVED_REQUESTS, by_source(|source| source.requests.get()));
        samples.counts(names::RECEIVED_BYTES, by_source(|source| source.wire_bytes.get()));
        samples.counts(names::DECOMPRESSED_BYTES, by_source(|source| source.body_bytes.get()));
        let received = by_source(|source| source.accepted.get() + source.rejected.get());
        samples.counts(names::RECEIVED_RECORDS, received);
        samples.counts(names::ACCEPTED_RECORDS, by_source(|source| source.accepted.get()));
        samples.counts(names::REJECTED_RECORDS, by_source(|source| source.rejected.get()));
        samples.counts(names::RECEIVED_CALLS, by_source(|source| source.calls.get()));
        samples.counts(names::COALESCED_EVENTS, by_source(|source| source.over_budget.get()));
        samples.counts(names::IGNORED_POINTS, by_source(|source| source.ignored.get()));
        samples.counts(names::DUPLICATE_RECORDS, by_source(|source| source.duplicates.get()));
        samples.counts(names::REPLACED_TIMESTAMPS, by_source(|source| source.times_replaced.get()));
        self.collect_by_word(names::REJECTED_REQUESTS, rejection_counts, samples);
        self.collect_by_word(names::UNRECOGNIZED, unrecognized_counts, samples);
        self.collect_by_word(names::RECEIVED_EVENTS, category_counts, samples);
    }

    /// Adds a count that each source has for each word of a list.
    fn collect_by_word<const WORDS: usize>(
        &self,
        metric: Metric,
        read: fn(&SourceCounters) -> [(&'static str, u64); WORDS],
        samples: &mut Samples,
    ) {
        let of_source = |source: Source| {
            let words = read(self.pipeline.counters().of(source));
            words.map(|(word, count)| ([source.as_str(), word], count))
        };
        samples.counts_by(metric, Source::ALL.into_iter().flat_map(of_source));
    }

    fn collect_files(&self, samples: &mut Samples) {
        let Counters { files, .. } = self.pipeline.counters();
        samples.count(names::FILES_OPEN, files.open.get());
        samples.count(names::FILES_WAITING, files.waiting.get());
        samples.count(names::FILE_LINES, files.lines.get());
        samples.count(names::FILE_BYTES, files.bytes.get());
        samples.count(names::FILE_LAG, files.lag.get());
        let changes = [
            ("rotated", files.rotations.get()),
            ("truncated", files.truncations.get()),
            ("copied", files.copies.get()),
            ("archived", files.archives.get()),
        ];
        samples.counts(names::FILE_CHANGES, changes);
        samples.count(names::FILE_READ_ERRORS, files.unreadable.get());
        samples.count(names::FILE_RECORDS_SKIPPED, files.skipped.get());
    }

    fn collect_stdin(&self, samples: &mut Samples) {
        let Counters { stdin, .. } = self.pipeline.counters();
        let lines = [("stored", stdin.lines.get()), ("dropped", stdin.dropped.get())];
        samples.counts(names::STDIN_LINES, lines);
        samples.count(names::STDIN_BYTES, stdin.bytes.get());
    }

    fn collect_server(&self, samples: &mut Samples) {
        let counters = self.pipeline.counters();
        samples.flag(names::READY, status_api::is_ready(&self.pipeline, &self.maintenance));
        samples.count(names::IDEMPOTENT_REPLAYS, counters.idempotent_replays.get());
        samples.count(names::REJECT_SAMPLES_DROPPED, counters.samples_dropped.get());
        samples.count(names::PANICS, counters.panics.get());
        samples.count(names::WAL_UNREADABLE_RECORDS, counters.unreadable_records.get());
        samples.counts(names::BUILD_INFO, [(env!("CARGO_PKG_VERSION"), 1)]);
    }

    fn collect_series(&self, samples: &mut Samples) {
        let registry = self.pipeline.metrics().current();
        samples.count(names::SERIES, registry.series() as u64);
        samples.count(names::SERIES_LIMIT, registry.series_limits.max_series() as u64);
        samples.counts(names::CAPPED_LABELS, registry.capped());
    }
}

fn rejection_counts(source: &SourceCounters) -> [(&'static str, u64); RejectionReason::ALL.len()] {
    RejectionReason::ALL.map(|reason| (reason.as_str(), source.rejected_requests[reason as usize].get()))
}

fn unrecognized_counts(source: &SourceCounters) -> [(&'static str, u64); RECORD_REASONS.len()] {
    std::array::from_fn(|index| (RECORD_REASONS[index], source.reasons[index].get()))
}

fn category_counts(source: &SourceCounters) -> [(&'static str, u64); Category::ALL.len()] {
    std::array::from_fn(|index| (Category::ALL[index].as_str(), source.categories[index].get()))
}
