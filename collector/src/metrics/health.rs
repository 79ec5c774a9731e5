//! Metrics of the health of the server itself, read at each scrape from where they are counted anyway.

use super::family::{empty, series};
use super::names::{self, Metric};
use super::proto_values;
use crate::counters::{Counters, RECORD_REASONS, SourceCounters};
use crate::pipeline::Pipeline;
use crate::rejection::RejectionReason;
use crate::source::Source;
use crate::status_api;
use auth::listener::{ConnectionStats, ListenerProtocol, ProtocolStats};
use auth::tls::Tls;
use auth::{Authenticator, ConnectionLimit};
use prometheus::proto::MetricFamily;
use std::sync::Arc;
use std::time::Duration;
use store::Table;
use store::delta::Expired;
use store::maintenance::{Maintenance, MaintenanceStats};
use store::wal::{FSYNC_BOUNDS, WalStats};

/// The statistics of queries since the start of the server.
#[derive(Debug, Default)]
pub struct QueryStats {
    /// The number of queries that are running.
    pub running: u64,
    /// The statistics of each protocol.
    pub protocols: Vec<ProtocolQueryStats>,
}

/// The statistics of the queries of one protocol.
#[derive(Debug, Default)]
pub struct ProtocolQueryStats {
    /// The name of the protocol.
    pub protocol: &'static str,
    /// Queries that succeeded.
    pub succeeded: u64,
    /// Queries that were rejected or failed.
    pub failed: u64,
    /// Queries that were stopped before they had ended.
    pub stopped: u64,
    /// The total duration of all queries.
    pub time: Duration,
    /// For each bound in milliseconds, the number of queries that took at most that long.
    pub within: Vec<(u64, u64)>,
}

/// The sources of the metrics of endpoints: access, connections, TLS and queries.
pub struct EndpointMetrics {
    /// The authenticator, which counts denials.
    pub authenticator: Arc<Authenticator>,
    /// The statistics of connections.
    pub connections: Arc<ConnectionStats>,
    /// The TLS configuration of the listeners, if there is one.
    pub tls: Option<Arc<Tls>>,
    /// Returns the statistics of queries.
    pub queries: Box<dyn Fn() -> QueryStats + Send + Sync>,
}

impl EndpointMetrics {
    fn collect(&self, families: &mut Families) {
        self.collect_connections(families);
        let denied =
            self.authenticator.denial_counts().map(|(reason, count)| (vec![reason.as_str()], to_f64(count)));
        families.labeled(&names::AUTH_DENIALS, denied);
        families.scalar(&names::TLS_FAILURES, to_f64(self.tls.as_ref().map_or(0, |tls| tls.failures())));
        if let Some(expires) = self.tls.as_ref().and_then(|tls| tls.expires_at()) {
            families.scalar(&names::TLS_EXPIRY, expires as f64);
        }
        collect_queries(&(self.queries)(), families);
    }

    fn collect_connections(&self, families: &mut Families) {
        let by_protocol = |read: fn(&ProtocolStats) -> u64| {
            let counts = self.connections.by_protocol(read);
            counts.map(|(protocol, count)| (vec![protocol.as_str()], to_f64(count)))
        };
        families.labeled(&names::CONNECTIONS, by_protocol(ProtocolStats::open));
        families.labeled(&names::CONNECTIONS_OPENED, by_protocol(ProtocolStats::opened));
        families.labeled(&names::CONNECTIONS_RESERVED, by_protocol(ProtocolStats::reserved));
        families.labeled(&names::CONNECTION_ACCEPT_ERRORS, by_protocol(ProtocolStats::accept_errors));
        let rejected = ListenerProtocol::ALL.into_iter().flat_map(|protocol| {
            ConnectionLimit::ALL.map(|limit| {
                let count = self.connections.of(protocol).rejected_by(limit);
                (vec![protocol.as_str(), limit.as_str()], to_f64(count))
            })
        });
        families.labeled(&names::CONNECTIONS_REJECTED, rejected);
    }
}

/// Collects the health metrics from the parts of the server.
pub(super) struct HealthCollector {
    pub(super) pipeline: Pipeline,
    pub(super) maintenance: Maintenance,
    /// The largest size of the WAL on disk, in bytes.
    pub(super) wal_limit: u64,
    pub(super) endpoints: EndpointMetrics,
}

impl HealthCollector {
    pub(super) fn collect(&self) -> Vec<MetricFamily> {
        let mut families = Families::default();
        self.collect_received(&mut families);
        self.collect_inputs(&mut families);
        self.collect_process(&mut families);
        collect_wal(&self.pipeline.wal_stats(), self.wal_limit, &mut families);
        self.collect_buffer(&mut families);
        collect_maintenance(&self.maintenance.stats(), &mut families);
        self.endpoints.collect(&mut families);
        families.0
    }

    fn collect_received(&self, families: &mut Families) {
        let counters = self.pipeline.counters();
        let by_source = |read: fn(&SourceCounters) -> u64| {
            Source::ALL.map(|source| (vec![source.as_str()], to_f64(read(counters.of(source)))))
        };
        families.labeled(&names::RECEIVED_REQUESTS, by_source(|source| source.requests.get()));
        families.labeled(&names::RECEIVED_BYTES, by_source(|source| source.wire_bytes.get()));
        families.labeled(
            &names::RECEIVED_RECORDS,
            by_source(|source| source.accepted.get() + source.rejected.get()),
        );
        families.labeled(&names::IGNORED_POINTS, by_source(|source| source.ignored.get()));
        families.labeled(&names::DUPLICATE_RECORDS, by_source(|source| source.duplicates.get()));
        families.labeled(&names::REPLACED_TIMESTAMPS, by_source(|source| source.times_replaced.get()));
        let by_word = |words: &'static [&'static str], read: fn(&SourceCounters, usize) -> u64| {
            Source::ALL.into_iter().flat_map(move |source| {
                let counters = counters.of(source);
                let word = move |(index, word): (usize, &&'static str)| {
                    (vec![source.as_str(), *word], to_f64(read(counters, index)))
                };
                words.iter().enumerate().map(word)
            })
        };
        const REASONS: [&str; RejectionReason::ALL.len()] = {
            let mut words = [""; RejectionReason::ALL.len()];
            let mut index = 0;
            while index < words.len() {
                words[index] = RejectionReason::ALL[index].as_str();
                index += 1;
            }
            words
        };
        families.labeled(
            &names::REJECTED_REQUESTS,
            by_word(&REASONS, |source, at| source.rejected_requests[at].get()),
        );
        families
            .labeled(&names::UNRECOGNIZED, by_word(&RECORD_REASONS, |source, at| source.reasons[at].get()));
    }

    /// Collects the metrics of tailed files and of standard input.
    fn collect_inputs(&self, families: &mut Families) {
        let Counters { files, stdin, .. } = self.pipeline.counters();
        families.scalar(&names::FILES_OPEN, to_f64(files.open.get()));
        families.scalar(&names::FILES_WAITING, to_f64(files.waiting.get()));
        families.scalar(&names::FILE_LINES, to_f64(files.lines.get()));
        families.scalar(&names::FILE_BYTES, to_f64(files.bytes.get()));
        families.scalar(&names::FILE_LAG, to_f64(files.lag.get()));
        let changes = [
            ("rotated", &files.rotations),
            ("truncated", &files.truncations),
            ("copied", &files.copies),
            ("archived", &files.archives),
        ];
        families
            .labeled(&names::FILE_CHANGES, changes.map(|(word, count)| (vec![word], to_f64(count.get()))));
        families.scalar(&names::FILE_READ_ERRORS, to_f64(files.unreadable.get()));
        families.scalar(&names::FILE_RECORDS_SKIPPED, to_f64(files.skipped.get()));
        let lines = [("stored", &stdin.lines), ("dropped", &stdin.dropped)];
        families.labeled(&names::STDIN_LINES, lines.map(|(word, count)| (vec![word], to_f64(count.get()))));
        families.scalar(&names::STDIN_BYTES, to_f64(stdin.bytes.get()));
    }

    fn collect_process(&self, families: &mut Families) {
        let counters = self.pipeline.counters();
        families.scalar(&names::IDEMPOTENT_REPLAYS, to_f64(counters.idempotent_replays.get()));
        families.scalar(&names::REJECT_SAMPLES_DROPPED, to_f64(counters.samples_dropped.get()));
        families.scalar(&names::PANICS, to_f64(counters.panics.get()));
        families.scalar(&names::WAL_UNREADABLE_RECORDS, to_f64(counters.unreadable_records.get()));
        families.scalar(&names::READY, bool_to_f64(status_api::is_ready(&self.pipeline, &self.maintenance)));
        families.labeled(&names::BUILD_INFO, [(vec![env!("CARGO_PKG_VERSION")], 1.0)]);
    }

    fn collect_buffer(&self, families: &mut Families) {
        let hot = self.pipeline.hot();
        let size = hot.size();
        families.scalar(&names::BUFFER_BYTES, to_f64(size.bytes as u64));
        families.scalar(&names::BUFFER_EVENTS, to_f64(size.events));
        families.scalar(&names::BUFFER_EVICTED_RECORDS, to_f64(size.evicted));
        families.scalar(&names::BUFFER_AGE, hot.age().unwrap_or_default().as_secs_f64());
    }
}

fn collect_wal(wal: &WalStats, limit: u64, families: &mut Families) {
    families.scalar(&names::WAL_BYTES, to_f64(wal.bytes));
    families.scalar(&names::WAL_LIMIT, to_f64(limit));
    families.scalar(&names::WAL_SEGMENTS, to_f64(wal.segments));
    families.scalar(&names::WAL_FULL, bool_to_f64(wal.full));
    families.scalar(&names::WAL_FAILING, bool_to_f64(wal.failing));
    families.scalar(&names::WAL_RECORDS, to_f64(wal.records));
    families.scalar(&names::WAL_WRITTEN_BYTES, to_f64(wal.record_bytes));
    families.scalar(&names::WAL_FSYNC_MAX, to_f64(wal.fsync_max_micros) / 1e6);
    let refused = [
        ("full", wal.refused_full),
        ("no_space", wal.refused_no_space),
        ("io", wal.refused_io),
        ("displaced", wal.refused_displaced),
        ("stale", wal.refused_stale),
        ("too_large", wal.refused_too_large),
    ];
    families
        .labeled(&names::WAL_REJECTED_RECORDS, refused.map(|(reason, count)| (vec![reason], to_f64(count))));
    let mut sum = 0;
    let within = FSYNC_BOUNDS.iter().zip(wal.fsync_buckets).map(|(bound, count)| {
        sum += count;
        (to_f64(*bound) / 1e6, sum)
    });
    let histogram = proto_values::cumulative_histogram(
        within,
        wal.fsync_buckets.iter().sum(),
        to_f64(wal.fsync_micros) / 1e6,
    );
    families.histograms(&names::WAL_FSYNC, [(vec![], histogram)]);
}

fn collect_maintenance(stats: &MaintenanceStats, families: &mut Families) {
    let MaintenanceStats { flushed, kept, .. } = stats;
    families.scalar(&names::FLUSHES, to_f64(stats.flushes));
    families.scalar(&names::FLUSH_SECONDS, stats.flush_time.as_secs_f64());
    families.scalar(&names::FLUSH_MAX, stats.longest_flush.as_secs_f64());
    families.scalar(&names::FLUSHED_ROWS, to_f64(flushed.rows));
    families.scalar(&names::FLUSHED_BYTES, to_f64(flushed.bytes));
    families.scalar(&names::FLUSHED_FILES, to_f64(flushed.files));
    families.scalar(&names::FLUSH_FAILURES, to_f64(stats.flush_failures));
    families.scalar(&names::FLUSH_FAILING, bool_to_f64(stats.is_flush_failing));
    families.scalar(&names::COMPACTED_FILES, to_f64(kept.merged));
    families.scalar(&names::COMPACTED_BYTES, to_f64(kept.merged_bytes));
    families.scalar(&names::EXPIRED_FILES, to_f64(kept.expired.files));
    let by_table = |read: fn(&Expired) -> u64| {
        let expired = Table::ALL.into_iter().zip(&stats.expired);
        expired.map(move |(table, expired)| (vec![table.name()], to_f64(read(expired))))
    };
    families.labeled(&names::EXPIRED_ROWS, by_table(|expired| expired.rows));
    families.labeled(&names::EXPIRED_PARTITIONS, by_table(|expired| expired.days));
    families.scalar(&names::VACUUMED_FILES, to_f64(kept.vacuumed.files));
    families.scalar(&names::VACUUMED_BYTES, to_f64(kept.vacuumed.bytes));
    families.scalar(&names::CHECKPOINTS, to_f64(kept.checkpoints));
    families.scalar(&names::MAINTENANCE_PAUSED, bool_to_f64(stats.clock.is_held));
    families.scalar(&names::CLOCK_JUMPS, to_f64(stats.clock.jumps));
    families.scalar(&names::CLOCK_OFFSET, stats.clock.offset_us as f64 / 1e6);
    families.scalar(&names::MAINTENANCE_SECONDS, stats.maintenance_time.as_secs_f64());
    families.scalar(&names::MAINTENANCE_FAILURES, to_f64(stats.maintenance_failures));
    let Some(tables) = &stats.tables else { return };
    let by_table = |read: fn(&store::maintenance::TableSize) -> u64| {
        Table::ALL.into_iter().zip(tables).map(move |(table, size)| (vec![table.name()], to_f64(read(size))))
    };
    families.labeled(&names::TABLE_FILES, by_table(|size| size.files));
    families.labeled(&names::TABLE_ROWS, by_table(|size| size.rows));
    families.labeled(&names::TABLE_BYTES, by_table(|size| size.bytes));
}

fn collect_queries(queries: &QueryStats, families: &mut Families) {
    families.scalar(&names::QUERIES_RUNNING, to_f64(queries.running));
    let outcomes = queries.protocols.iter().flat_map(|stats| {
        let ends = [("ok", stats.succeeded), ("failed", stats.failed), ("stopped", stats.stopped)];
        ends.map(|(outcome, count)| (vec![stats.protocol, outcome], to_f64(count)))
    });
    families.labeled(&names::QUERIES, outcomes);
    let durations = queries.protocols.iter().map(|stats| {
        let within = stats.within.iter().map(|(bound, count)| (to_f64(*bound) / 1e3, *count));
        let count = stats.succeeded + stats.failed + stats.stopped;
        (vec![stats.protocol], proto_values::cumulative_histogram(within, count, stats.time.as_secs_f64()))
    });
    families.histograms(&names::QUERY_DURATION, durations);
}

/// The metrics that are being collected.
#[derive(Default)]
pub(super) struct Families(pub(super) Vec<MetricFamily>);

impl Families {
    /// Adds a metric without labels.
    pub(super) fn scalar(&mut self, metric: &Metric, value: f64) {
        self.labeled(metric, [(Vec::new(), value)]);
    }

    /// Adds a metric with labels.
    pub(super) fn labeled<'v>(
        &mut self,
        metric: &Metric,
        values: impl IntoIterator<Item = (Vec<&'v str>, f64)>,
    ) {
        let of_values = |(labels, number): (Vec<&'v str>, f64)| {
            let mut series = series(metric, labels);
            proto_values::set_number(metric.kind, number, &mut series);
            series
        };
        self.push(metric, values.into_iter().map(of_values).collect());
    }

    fn histograms<'v>(
        &mut self,
        metric: &Metric,
        histograms: impl IntoIterator<Item = (Vec<&'v str>, prometheus::proto::Histogram)>,
    ) {
        let of_histogram = |(labels, histogram): (Vec<&'v str>, _)| {
            let mut series = series(metric, labels);
            series.set_histogram(histogram);
            series
        };
        self.push(metric, histograms.into_iter().map(of_histogram).collect());
    }

    fn push(&mut self, metric: &Metric, series: Vec<prometheus::proto::Metric>) {
        let mut family = empty(metric);
        family.set_metric(series);
        self.0.push(family);
    }
}

fn bool_to_f64(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Converts a count to a float, which is exact up to 2^53.
pub(super) fn to_f64(count: u64) -> f64 {
    count as f64
}
