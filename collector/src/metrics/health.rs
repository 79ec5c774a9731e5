//! Our own health, as metrics: read where it is counted anyway, when somebody asks.

use super::family::{empty, series};
use super::names::{self, Metric};
use super::value;
use crate::counters::{Counters, RECORD_REASONS, SourceCounters};
use crate::pipeline::Pipeline;
use crate::receive::server::Connections;
use crate::refusal::Cause;
use crate::source::Source;
use crate::web;
use access::Gate;
use access::tls::Tls;
use prometheus::proto::MetricFamily;
use std::sync::Arc;
use std::time::Duration;
use store::Table;
use store::keeper::{Keeper, KeeperStats};
use store::lake::Expired;
use store::log::{FSYNC_BOUNDS, LogStats};

/// What queries did so far.
#[derive(Debug, Default)]
pub struct Queries {
    /// How many are running.
    pub running: u64,
    /// By where they came in.
    pub doors: Vec<QueriesOfDoor>,
}

/// What the queries of one door did so far.
#[derive(Debug, Default)]
pub struct QueriesOfDoor {
    /// Its name.
    pub door: &'static str,
    /// Queries that were answered.
    pub answered: u64,
    /// Queries that were refused, or went wrong.
    pub failed: u64,
    /// Queries that were left before they had ended.
    pub stopped: u64,
    /// How long all of them ran.
    pub time: Duration,
    /// How many ran at most so many milliseconds.
    pub within: Vec<(u64, u64)>,
}

/// Who comes in, and what they do there.
pub struct Doors {
    /// Who is let in.
    pub gate: Arc<Gate>,
    /// How many come.
    pub connections: Arc<Connections>,
    /// What they encrypt with.
    pub tls: Option<Arc<Tls>>,
    /// What was asked so far.
    pub queries: Box<dyn Fn() -> Queries + Send + Sync>,
}

impl Doors {
    fn collect(&self, families: &mut Families) {
        families.one(&names::CONNECTIONS, float(self.connections.open()));
        families.one(&names::CONNECTIONS_OPENED, float(self.connections.opened()));
        let refused = self.connections.refused_by_reason();
        let refused = refused.map(|(full, count)| (vec![full.as_str()], float(count)));
        families.many(&names::CONNECTIONS_REFUSED, refused);
        families.one(&names::CONNECTIONS_RESERVED, float(self.connections.reserved()));
        let denied = self.gate.denials().map(|(reason, count)| (vec![reason.as_str()], float(count)));
        families.many(&names::DENIED, denied);
        families.one(&names::TLS_FAILURES, float(self.tls.as_ref().map_or(0, |tls| tls.failures())));
        if let Some(expires) = self.tls.as_ref().and_then(|tls| tls.expires()) {
            families.one(&names::TLS_EXPIRY, expires as f64);
        }
        of_queries(&(self.queries)(), families);
    }
}

/// What is looked at.
pub(super) struct Health {
    pub(super) pipeline: Pipeline,
    pub(super) keeper: Keeper,
    /// What the log may take on disk.
    pub(super) log_limit: u64,
    pub(super) doors: Doors,
}

impl Health {
    pub(super) fn collect(&self) -> Vec<MetricFamily> {
        let mut families = Families::default();
        self.received(&mut families);
        self.read(&mut families);
        self.process(&mut families);
        of_log(&self.pipeline.log_stats(), self.log_limit, &mut families);
        self.hot(&mut families);
        of_keeper(&self.keeper.stats(), &mut families);
        self.doors.collect(&mut families);
        families.0
    }

    fn received(&self, families: &mut Families) {
        let counters = self.pipeline.counters();
        let by_source = |read: fn(&SourceCounters) -> u64| {
            Source::ALL.map(|source| (vec![source.as_str()], float(read(counters.of(source)))))
        };
        families.many(&names::RECEIVED_REQUESTS, by_source(|source| source.requests.get()));
        families.many(&names::RECEIVED_BYTES, by_source(|source| source.wire_bytes.get()));
        families.many(
            &names::RECEIVED_RECORDS,
            by_source(|source| source.accepted.get() + source.rejected.get()),
        );
        families.many(&names::REPEATED_RECORDS, by_source(|source| source.repeats.get()));
        families.many(&names::REPLACED_TIMES, by_source(|source| source.times_replaced.get()));
        let by_word = |words: &'static [&'static str], read: fn(&SourceCounters, usize) -> u64| {
            Source::ALL.into_iter().flat_map(move |source| {
                let counters = counters.of(source);
                let word = move |(place, word): (usize, &&'static str)| {
                    (vec![source.as_str(), *word], float(read(counters, place)))
                };
                words.iter().enumerate().map(word)
            })
        };
        const CAUSES: [&str; Cause::ALL.len()] = {
            let mut words = [""; Cause::ALL.len()];
            let mut place = 0;
            while place < words.len() {
                words[place] = Cause::ALL[place].as_str();
                place += 1;
            }
            words
        };
        families.many(&names::REFUSED_REQUESTS, by_word(&CAUSES, |source, at| source.refused[at].get()));
        families.many(&names::UNRECOGNIZED, by_word(&RECORD_REASONS, |source, at| source.reasons[at].get()));
    }

    /// What we read ourselves.
    fn read(&self, families: &mut Families) {
        let Counters { files, stdin, .. } = self.pipeline.counters();
        families.one(&names::FILES_OPEN, float(files.open.get()));
        families.one(&names::FILES_WAITING, float(files.waiting.get()));
        families.one(&names::FILE_LINES, float(files.lines.get()));
        families.one(&names::FILE_BYTES, float(files.bytes.get()));
        families.one(&names::FILE_LAG, float(files.lag.get()));
        let changes = [
            ("rotated", &files.rotations),
            ("truncated", &files.truncations),
            ("copied", &files.copies),
            ("archived", &files.archives),
        ];
        families.many(&names::FILE_CHANGES, changes.map(|(word, count)| (vec![word], float(count.get()))));
        families.one(&names::FILES_UNREADABLE, float(files.unreadable.get()));
        families.one(&names::FILE_RECORDS_SKIPPED, float(files.skipped.get()));
        let lines = [("stored", &stdin.lines), ("dropped", &stdin.dropped)];
        families.many(&names::STDIN_LINES, lines.map(|(word, count)| (vec![word], float(count.get()))));
        families.one(&names::STDIN_BYTES, float(stdin.bytes.get()));
    }

    fn process(&self, families: &mut Families) {
        let counters = self.pipeline.counters();
        families.one(&names::ANSWERED_AGAIN, float(counters.answered_again.get()));
        families.one(&names::SAMPLES_DROPPED, float(counters.samples_dropped.get()));
        families.one(&names::PANICS, float(counters.panics.get()));
        families.one(&names::UNREADABLE_RECORDS, float(counters.unreadable_records.get()));
        families.one(&names::READY, flag(web::is_ready(&self.pipeline, &self.keeper)));
        families.many(&names::BUILD_INFO, [(vec![env!("CARGO_PKG_VERSION")], 1.0)]);
    }

    fn hot(&self, families: &mut Families) {
        let hot = self.pipeline.hot();
        let size = hot.size();
        families.one(&names::HOT_BYTES, float(size.bytes as u64));
        families.one(&names::HOT_EVENTS, float(size.events));
        families.one(&names::HOT_EVICTED, float(size.evicted));
        families.one(&names::UNSEALED, hot.age().unwrap_or_default().as_secs_f64());
    }
}

fn of_log(log: &LogStats, limit: u64, families: &mut Families) {
    families.one(&names::LOG_BYTES, float(log.bytes));
    families.one(&names::LOG_LIMIT, float(limit));
    families.one(&names::LOG_SEGMENTS, float(log.segments));
    families.one(&names::LOG_FULL, flag(log.full));
    families.one(&names::LOG_FAILING, flag(log.failing));
    families.one(&names::LOG_RECORDS, float(log.records));
    families.one(&names::LOG_WRITTEN, float(log.record_bytes));
    families.one(&names::LOG_FSYNC_MAX, float(log.fsync_max_micros) / 1e6);
    let refused = [
        ("full", log.refused_full),
        ("no_space", log.refused_no_space),
        ("io", log.refused_io),
        ("displaced", log.refused_displaced),
        ("stale", log.refused_stale),
        ("too_large", log.refused_too_large),
    ];
    families.many(&names::LOG_REFUSED, refused.map(|(reason, count)| (vec![reason], float(count))));
    let mut sum = 0;
    let within = FSYNC_BOUNDS.iter().zip(log.fsync_buckets).map(|(bound, count)| {
        sum += count;
        (float(*bound) / 1e6, sum)
    });
    let histogram = value::buckets(within, log.fsync_buckets.iter().sum(), float(log.fsync_micros) / 1e6);
    families.histograms(&names::LOG_FSYNC, [(vec![], histogram)]);
}

fn of_keeper(stats: &KeeperStats, families: &mut Families) {
    let KeeperStats { sealed, kept, .. } = stats;
    families.one(&names::SEALS, float(stats.seals));
    families.one(&names::SEAL_SECONDS, stats.seal_time.as_secs_f64());
    families.one(&names::SEAL_MAX, stats.longest_seal.as_secs_f64());
    families.one(&names::SEALED_ROWS, float(sealed.rows));
    families.one(&names::SEALED_BYTES, float(sealed.bytes));
    families.one(&names::SEALED_FILES, float(sealed.files));
    families.one(&names::SEAL_FAILURES, float(stats.seal_failures));
    families.one(&names::SEAL_FAILING, flag(stats.is_seal_failing));
    families.one(&names::COMPACTED_FILES, float(kept.merged));
    families.one(&names::COMPACTED_BYTES, float(kept.merged_bytes));
    families.one(&names::EXPIRED_FILES, float(kept.expired.files));
    let by_table = |read: fn(&Expired) -> u64| {
        let expired = Table::ALL.into_iter().zip(&stats.expired);
        expired.map(move |(table, expired)| (vec![table.name()], float(read(expired))))
    };
    families.many(&names::EXPIRED_ROWS, by_table(|expired| expired.rows));
    families.many(&names::EXPIRED_PARTITIONS, by_table(|expired| expired.days));
    families.one(&names::VACUUMED_FILES, float(kept.vacuumed.files));
    families.one(&names::VACUUMED_BYTES, float(kept.vacuumed.bytes));
    families.one(&names::CHECKPOINTS, float(kept.checkpoints));
    families.one(&names::MAINTENANCE_HELD, flag(stats.clock.is_held));
    families.one(&names::CLOCK_JUMPS, float(stats.clock.jumps));
    families.one(&names::CLOCK_OFFSET, stats.clock.offset_us as f64 / 1e6);
    families.one(&names::UPKEEP_SECONDS, stats.upkeep_time.as_secs_f64());
    families.one(&names::UPKEEP_FAILURES, float(stats.upkeep_failures));
    let Some(tables) = &stats.tables else { return };
    let by_table = |read: fn(&store::keeper::TableSize) -> u64| {
        Table::ALL.into_iter().zip(tables).map(move |(table, size)| (vec![table.name()], float(read(size))))
    };
    families.many(&names::TABLE_FILES, by_table(|size| size.files));
    families.many(&names::TABLE_ROWS, by_table(|size| size.rows));
    families.many(&names::TABLE_BYTES, by_table(|size| size.bytes));
}

fn of_queries(queries: &Queries, families: &mut Families) {
    families.one(&names::QUERIES_RUNNING, float(queries.running));
    let outcomes = queries.doors.iter().flat_map(|of| {
        let ends = [("ok", of.answered), ("failed", of.failed), ("stopped", of.stopped)];
        ends.map(|(outcome, count)| (vec![of.door, outcome], float(count)))
    });
    families.many(&names::QUERIES, outcomes);
    let durations = queries.doors.iter().map(|of| {
        let within = of.within.iter().map(|(bound, count)| (float(*bound) / 1e3, *count));
        let count = of.answered + of.failed + of.stopped;
        (vec![of.door], value::buckets(within, count, of.time.as_secs_f64()))
    });
    families.histograms(&names::QUERY_DURATION, durations);
}

/// Metrics in the making.
#[derive(Default)]
pub(super) struct Families(pub(super) Vec<MetricFamily>);

impl Families {
    /// A metric without labels.
    pub(super) fn one(&mut self, metric: &Metric, value: f64) {
        self.many(metric, [(Vec::new(), value)]);
    }

    /// A metric with labels.
    pub(super) fn many<'v>(
        &mut self,
        metric: &Metric,
        values: impl IntoIterator<Item = (Vec<&'v str>, f64)>,
    ) {
        let of_values = |(labels, number): (Vec<&'v str>, f64)| {
            let mut series = series(metric, labels);
            value::number(metric.kind, number, &mut series);
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

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Counts stay exact in a float up to 2^53.
pub(super) fn float(count: u64) -> f64 {
    count as f64
}
