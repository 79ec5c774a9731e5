//! The metrics of the write-ahead log, the buffer, the flusher, maintenance and the tables.

use crate::Table;
use crate::delta::Expired;
use crate::hot::Hot;
use crate::maintenance::{Maintenance, MaintenanceStats, TableSize};
use crate::wal::{FSYNC_BOUNDS, Wal, WalStats};
use metrics::{Histogram, Metric, MetricSource, Samples};
use std::sync::Arc;

metrics::metrics! {
    WAL_GROUP = "wal" {
        WAL_BYTES = Gauge "faultline_wal_bytes" []
            "Size of the write-ahead log on disk.";
        WAL_LIMIT = Gauge "faultline_wal_limit_bytes" []
            "Largest size of the write-ahead log on disk; at this size, ingest requests are rejected.";
        WAL_SEGMENTS = Gauge "faultline_wal_segments" []
            "Segment files of the write-ahead log.";
        WAL_FULL = Gauge "faultline_wal_full" []
            "1 when the write-ahead log has reached its largest size.";
        WAL_FAILING = Gauge "faultline_wal_failing" []
            "1 when the newest records could not be written to the write-ahead log.";
        WAL_RECORDS = Counter "faultline_wal_records_total" []
            "Records that were written to the write-ahead log and synced.";
        WAL_WRITTEN_BYTES = Counter "faultline_wal_written_bytes_total" []
            "Bytes that were written to the write-ahead log and synced.";
        WAL_FSYNC = Histogram "faultline_wal_fsync_seconds" []
            "Time to write and sync a group of records to the write-ahead log.";
        WAL_FSYNC_MAX = Gauge "faultline_wal_fsync_max_seconds" []
            "Longest time to write and sync a group of records to the write-ahead log.";
        WAL_REJECTED_RECORDS = Counter "faultline_wal_rejected_records_total" ["reason"]
            "Records that the write-ahead log rejected, by reason.";
    }
    BUFFER_GROUP = "buffer" {
        BUFFER_RECORDS = Gauge "faultline_buffer_records" []
            "Records of the write-ahead log whose rows are buffered.";
        BUFFER_BYTES = Gauge "faultline_buffer_bytes" []
            "Memory of buffered rows, which are not yet flushed to Parquet.";
        BUFFER_EVENTS = Gauge "faultline_buffer_events" []
            "Events among the buffered rows, which are not yet flushed to Parquet.";
        BUFFER_EVICTED_RECORDS = Counter "faultline_buffer_evicted_records_total" []
            "Records that were evicted from the buffer before their flush; they are read from the write-ahead log.";
        BUFFER_AGE = Gauge "faultline_buffer_age_seconds" []
            "Age of the oldest buffered row, which waits to be flushed.";
    }
    FLUSH_GROUP = "flush" {
        FLUSHES = Counter "faultline_flushes_total" []
            "Flushes of buffered rows to the tables.";
        FLUSH_SECONDS = Counter "faultline_flush_seconds_total" []
            "Time that flushes took in total.";
        FLUSH_MAX = Gauge "faultline_flush_max_seconds" []
            "Time that the longest flush took.";
        FLUSHED_RECORDS = Counter "faultline_flushed_records_total" []
            "Records of the write-ahead log whose rows were flushed to the tables.";
        FLUSHED_ROWS = Counter "faultline_flushed_rows_total" []
            "Rows that were flushed to the tables.";
        FLUSHED_BYTES = Counter "faultline_flushed_bytes_total" []
            "Bytes of Parquet files that flushes wrote.";
        FLUSHED_FILES = Counter "faultline_flushed_files_total" []
            "Parquet files that flushes wrote.";
        FLUSH_COMMITS = Counter "faultline_flush_commits_total" []
            "Commits of flushes to the tables.";
        FLUSH_UNREADABLE_RECORDS = Counter "faultline_flush_unreadable_records_total" []
            "Records of the write-ahead log that a flush could not read, and left out.";
        FLUSH_FAILURES = Counter "faultline_flush_failures_total" []
            "Flushes that failed; their rows stay in the write-ahead log.";
        FLUSH_FAILING = Gauge "faultline_flush_failing" []
            "1 when the newest flush failed.";
    }
    MAINTENANCE_GROUP = "maintenance" {
        MAINTENANCE_ROUNDS = Counter "faultline_maintenance_rounds_total" []
            "Rounds of compaction, retention and vacuum over all tables.";
        COMPACTED_FILES = Counter "faultline_compacted_files_total" []
            "Small files that compaction merged into larger ones.";
        COMPACTED_BYTES = Counter "faultline_compacted_bytes_total" []
            "Bytes of the larger files that compaction wrote.";
        COMPACTION_WRITTEN_FILES = Counter "faultline_compaction_written_files_total" []
            "Larger files that compaction wrote.";
        EXPIRED_FILES = Counter "faultline_expired_files_total" []
            "Files that retention removed from a table because of its age or its size.";
        VACUUMED_FILES = Counter "faultline_vacuumed_files_total" []
            "Files that vacuum deleted because no table uses them.";
        VACUUMED_BYTES = Counter "faultline_vacuumed_bytes_total" []
            "Bytes of the files that vacuum deleted.";
        CHECKPOINTS = Counter "faultline_checkpoints_total" []
            "Checkpoints that were written to the logs of the tables.";
        REMOVED_TABLE_LOG_FILES = Counter "faultline_removed_table_log_files_total" []
            "Files of the logs of the tables that were deleted, because a checkpoint replaces them.";
        MAINTENANCE_PAUSED = Gauge "faultline_maintenance_paused" []
            "1 while retention and vacuum are paused because the clock jumped and is not trusted yet.";
        CLOCK_JUMPS = Counter "faultline_clock_jumps_total" []
            "Jumps of the clock by more than a day.";
        CLOCK_OFFSET = Gauge "faultline_clock_offset_seconds" []
            "Difference between the clock and the time that is expected from elapsed time.";
        MAINTENANCE_SECONDS = Counter "faultline_maintenance_seconds_total" []
            "Time that compaction, retention and vacuum took in total.";
        MAINTENANCE_FAILURES = Counter "faultline_maintenance_failures_total" []
            "Failures of compaction, retention or vacuum.";
    }
    TABLE_GROUP = "tables" by "table" {
        TABLE_FILES = Gauge "faultline_table_files" ["table"]
            "Files of a table.";
        TABLE_ROWS = Gauge "faultline_table_rows" ["table"]
            "Rows of a table that are flushed to Parquet.";
        TABLE_BYTES = Gauge "faultline_table_bytes" ["table"]
            "Size of the Parquet files of a table on disk.";
        EXPIRED_ROWS = Counter "faultline_expired_rows_total" ["table"]
            "Rows that retention removed from a table, because of their age or its size.";
        EXPIRED_PARTITIONS = Counter "faultline_expired_partitions_total" ["table"]
            "Partitions (days) of a table from which retention removed rows, counted at each removal.";
    }
}

/// The parts of the store that count.
#[derive(Debug)]
pub struct StoreMetrics {
    /// The write-ahead log.
    pub wal: Wal,
    /// The largest size of the write-ahead log on disk, in bytes.
    pub wal_limit: u64,
    /// The buffered rows.
    pub hot: Arc<Hot>,
    /// The flusher and maintenance.
    pub maintenance: Maintenance,
}

impl MetricSource for StoreMetrics {
    fn metrics(&self) -> &'static [Metric] {
        ALL
    }

    fn collect(&self, samples: &mut Samples) {
        samples.count(WAL_LIMIT, self.wal_limit);
        collect_wal(&self.wal.stats(), samples);
        self.collect_buffer(samples);
        let stats = self.maintenance.stats();
        collect_flushes(&stats, samples);
        collect_maintenance(&stats, samples);
        collect_tables(&stats, samples);
    }
}

impl StoreMetrics {
    fn collect_buffer(&self, samples: &mut Samples) {
        let size = self.hot.size();
        samples.count(BUFFER_RECORDS, size.records);
        samples.count(BUFFER_BYTES, size.bytes as u64);
        samples.count(BUFFER_EVENTS, size.events);
        samples.count(BUFFER_EVICTED_RECORDS, size.evicted);
        samples.number(BUFFER_AGE, self.hot.age().unwrap_or_default().as_secs_f64());
    }
}

fn collect_wal(wal: &WalStats, samples: &mut Samples) {
    samples.count(WAL_BYTES, wal.bytes);
    samples.count(WAL_SEGMENTS, wal.segments);
    samples.flag(WAL_FULL, wal.full);
    samples.flag(WAL_FAILING, wal.failing);
    samples.count(WAL_RECORDS, wal.records);
    samples.count(WAL_WRITTEN_BYTES, wal.record_bytes);
    samples.number(WAL_FSYNC_MAX, micros_to_seconds(wal.fsync_max_micros));
    let rejected = [
        ("full", wal.rejected_full),
        ("no_space", wal.rejected_no_space),
        ("io", wal.rejected_io),
        ("displaced", wal.rejected_displaced),
        ("stale", wal.rejected_stale),
        ("too_large", wal.rejected_too_large),
    ];
    samples.counts(WAL_REJECTED_RECORDS, rejected);
    samples.histograms(WAL_FSYNC, [([], fsync_histogram(wal))]);
}

fn fsync_histogram(wal: &WalStats) -> Histogram {
    let mut sum = 0;
    let buckets = FSYNC_BOUNDS.iter().zip(wal.fsync_buckets).map(|(bound, count)| {
        sum += count;
        (micros_to_seconds(*bound), sum)
    });
    Histogram {
        buckets: buckets.collect(),
        count: wal.fsync_buckets.iter().sum(),
        sum: micros_to_seconds(wal.fsync_micros),
    }
}

fn collect_flushes(stats: &MaintenanceStats, samples: &mut Samples) {
    samples.count(FLUSHES, stats.flushes);
    samples.number(FLUSH_SECONDS, stats.flush_time.as_secs_f64());
    samples.number(FLUSH_MAX, stats.longest_flush.as_secs_f64());
    samples.count(FLUSHED_RECORDS, stats.records);
    samples.count(FLUSHED_ROWS, stats.flushed.rows);
    samples.count(FLUSHED_BYTES, stats.flushed.bytes);
    samples.count(FLUSHED_FILES, stats.flushed.files);
    samples.count(FLUSH_COMMITS, stats.flushed.commits);
    samples.count(FLUSH_UNREADABLE_RECORDS, stats.flushed.unreadable);
    samples.count(FLUSH_FAILURES, stats.flush_failures);
    samples.flag(FLUSH_FAILING, stats.is_flush_failing);
}

fn collect_maintenance(stats: &MaintenanceStats, samples: &mut Samples) {
    let MaintenanceStats { results, clock, .. } = stats;
    samples.count(MAINTENANCE_ROUNDS, stats.rounds);
    samples.count(COMPACTED_FILES, results.merged);
    samples.count(COMPACTED_BYTES, results.merged_bytes);
    samples.count(COMPACTION_WRITTEN_FILES, results.merged_into);
    samples.count(EXPIRED_FILES, results.expired.files);
    samples.count(VACUUMED_FILES, results.vacuumed.files);
    samples.count(VACUUMED_BYTES, results.vacuumed.bytes);
    samples.count(CHECKPOINTS, results.checkpoints);
    samples.count(REMOVED_TABLE_LOG_FILES, results.log_files);
    samples.flag(MAINTENANCE_PAUSED, clock.is_held);
    samples.count(CLOCK_JUMPS, clock.jumps);
    samples.number(CLOCK_OFFSET, clock.offset_us as f64 / 1e6);
    samples.number(MAINTENANCE_SECONDS, stats.maintenance_time.as_secs_f64());
    samples.count(MAINTENANCE_FAILURES, stats.maintenance_failures);
}

fn collect_tables(stats: &MaintenanceStats, samples: &mut Samples) {
    let expired = |read: fn(&Expired) -> u64| {
        let expired = Table::ALL.into_iter().zip(&stats.expired);
        expired.map(move |(table, expired)| (table.name(), read(expired)))
    };
    samples.counts(EXPIRED_ROWS, expired(|expired| expired.rows));
    samples.counts(EXPIRED_PARTITIONS, expired(|expired| expired.days));
    // There are no sizes while the tables cannot be opened.
    let Some(tables) = &stats.tables else { return };
    let sizes = |read: fn(&TableSize) -> u64| {
        Table::ALL.into_iter().zip(tables).map(move |(table, size)| (table.name(), read(size)))
    };
    samples.counts(TABLE_FILES, sizes(|size| size.files));
    samples.counts(TABLE_ROWS, sizes(|size| size.rows));
    samples.counts(TABLE_BYTES, sizes(|size| size.bytes));
}

fn micros_to_seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
