//! The closed list of metrics: each with its name, labels and help text. Everything else derives from it: `/metrics`,
//! the page `docs/metrics.md`, and the test that rules and dashboards name no other metric.

use prometheus::proto::MetricType;

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name on `/metrics`.
    pub name: &'static str,
    /// The type: counter, gauge or histogram.
    pub kind: MetricType,
    /// The names of its labels, in the order in which values are given.
    pub labels: &'static [&'static str],
    /// The help text: a sentence that stands alone, because the exporter sorts metrics by name.
    pub help: &'static str,
}

/// Labels whose values come from senders. When a metric has too many values of one, further values become [`OTHER`].
pub const DYNAMIC_LABELS: [&str; 6] =
    ["service", "code", "operation", "metric", "required_trust", "actual_trust"];

/// The value that replaces further values of a label which has too many.
pub const OTHER: &str = "_other";

/// The value of a label for which the sender gave none.
pub const UNKNOWN: &str = "_unknown";

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(
            #[doc = $help]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: MetricType::$kind,
                labels: &[$($label),*],
                help: $help,
            };
        )+

        /// All metrics, in the order of `docs/metrics.md`.
        pub const ALL: &[Metric] = &[$($constant),+];
    };
}

metrics! {
    EVENTS = COUNTER "faultline_events_total" ["service", "category", "code", "kind", "dialect"]
        "Errors, warnings and audit events, by their code in the cross-dialect taxonomy.";
    CATEGORY_EVENTS = COUNTER "faultline_category_events_total" ["service", "category", "kind", "fault"]
        "Errors, warnings and audit events, by category and by the party at fault; protocol probes are left out.";
    REQUESTS = COUNTER "faultline_requests_total" ["service", "outcome"]
        "Calls by outcome; a hidden failure was in a reply that its protocol calls a success.";
    UNVERIFIED_CALLS = COUNTER "faultline_unverified_calls_total" ["service"]
        "Tool calls that count as ok although the content of their reply was not captured, so that a hidden failure would not be seen.";
    OPERATION_DURATION = HISTOGRAM "faultline_operation_duration_seconds" ["service", "operation"]
        "Duration of calls that report one.";
    QUOTA_USAGE = GAUGE "faultline_quota_usage_ratio" ["service", "metric"]
        "Used share of a quota, for the client that has used most; removed at the reset of the quota, or after an hour without reports.";
    QUOTA_EVENTS = COUNTER "faultline_quota_events_total" ["service", "metric", "level"]
        "Events that report a quota, by the level of its use.";
    QUOTA_RESET = GAUGE "faultline_quota_reset_timestamp_seconds" ["service", "metric"]
        "Time at which a quota resets, as reported last; removed when that time has passed.";
    TRUST_DENIALS = COUNTER "faultline_trust_denials_total" ["service", "operation", "required_trust", "actual_trust"]
        "Operations that were denied because the caller's trust level was too low.";
    DANGER_DENIALS = COUNTER "faultline_danger_denials_total" ["service", "operation", "danger_level"]
        "Operations that were denied because they are too dangerous.";
    CONFIRMATIONS = COUNTER "faultline_confirmations_total" ["service", "state"]
        "Confirmations that were required, granted, used, expired or revoked, by state.";
    TOKEN_EVENTS = COUNTER "faultline_token_events_total" ["service", "state"]
        "Events of confirmation tokens, by state; a replayed token is a security signal.";
    FINDINGS = COUNTER "faultline_findings_total" ["service", "finding"]
        "Events with a conformance finding, by finding; unregistered codes show drift of the taxonomy.";
    NEW_GROUPS = COUNTER "faultline_new_groups_total" ["service"]
        "Error groups that were never seen before.";
    OVER_BUDGET = COUNTER "faultline_over_budget_events_total" ["service"]
        "Events beyond the budget of their service that were coalesced: they share the row of another event.";
    UNRECOGNIZED = COUNTER "faultline_unrecognized_total" ["source", "reason"]
        "Records in which no response envelope was recognized, by reason.";

    RECEIVED_REQUESTS = COUNTER "faultline_received_requests_total" ["source"]
        "Requests that were received, including rejected ones.";
    RECEIVED_BYTES = COUNTER "faultline_received_bytes_total" ["source"]
        "Bytes that were received, before decompression.";
    RECEIVED_RECORDS = COUNTER "faultline_received_records_total" ["source"]
        "Lines, spans and log records that were stored or counted, including unreadable ones.";
    IGNORED_POINTS = COUNTER "faultline_ignored_data_points_total" ["source"]
        "Data points of OTLP metrics that tell of no calls and are not stored.";
    DUPLICATE_RECORDS = COUNTER "faultline_duplicate_records_total" ["source"]
        "Events and calls that had been sent before, and were not stored again.";
    REPLACED_TIMESTAMPS = COUNTER "faultline_replaced_timestamps_total" ["source"]
        "Events whose time was unusable and was replaced by the time of arrival.";
    REJECTED_REQUESTS = COUNTER "faultline_rejected_requests_total" ["source", "reason"]
        "Requests that were rejected, by reason.";
    IDEMPOTENT_REPLAYS = COUNTER "faultline_idempotent_replays_total" []
        "Requests that repeated an Idempotency-Key and got the stored response.";
    REJECT_SAMPLES_DROPPED = COUNTER "faultline_reject_samples_dropped_total" []
        "Rejected records of which no sample was stored, because the limit of samples was reached.";
    PANICS = COUNTER "faultline_panics_total" []
        "Internal defects that were caught before they could affect other requests.";
    WAL_UNREADABLE_RECORDS = COUNTER "faultline_wal_unreadable_records_total" []
        "Records of the write-ahead log that are durable but could not be read back.";
    CONNECTIONS = GAUGE "faultline_connections" ["protocol"]
        "Open connections of each listener.";
    CONNECTIONS_OPENED = COUNTER "faultline_connections_opened_total" ["protocol"]
        "Connections that a listener accepted.";
    CONNECTION_ACCEPT_ERRORS = COUNTER "faultline_connection_accept_errors_total" ["protocol"]
        "Times that the operating system could not hand a connection to a listener, as without free file handles.";
    CONNECTIONS_REJECTED = COUNTER "faultline_connections_rejected_total" ["protocol", "reason"]
        "Connections that a listener closed because too many were open: in total, or from one address.";
    CONNECTIONS_RESERVED = COUNTER "faultline_connections_reserved_total" ["protocol"]
        "Connections admitted to the reserve that only health probes can use, because too many were open.";
    AUTH_DENIALS = COUNTER "faultline_auth_denials_total" ["reason"]
        "Requests and connections that authentication or authorization denied, by reason.";
    TLS_FAILURES = COUNTER "faultline_tls_failures_total" []
        "Connections whose TLS handshake failed.";
    TLS_EXPIRY = GAUGE "faultline_tls_certificate_expiry_timestamp_seconds" []
        "Time at which the certificate of the listeners expires; absent without a certificate.";
    FILES_OPEN = GAUGE "faultline_files_open" []
        "Log files that are open for tailing.";
    FILES_WAITING = GAUGE "faultline_files_waiting" []
        "Log files that match but are not read yet: unreadable, still being written, a possible copy, or over the limit of open files.";
    FILE_LINES = COUNTER "faultline_file_lines_total" []
        "Lines of tailed log files that were stored.";
    FILE_BYTES = COUNTER "faultline_file_bytes_total" []
        "Bytes of tailed log files that were stored, after decompression.";
    FILE_LAG = GAUGE "faultline_file_lag_bytes" []
        "Bytes of open log files that are not stored yet; archives are left out, because their length is unknown.";
    FILE_CHANGES = COUNTER "faultline_file_changes_total" ["change"]
        "Changes of tailed log files: rotations, truncations, copies, and archives that were read to their end.";
    FILE_READ_ERRORS = COUNTER "faultline_file_read_errors_total" []
        "Failed attempts to read a log file; each is retried.";
    FILE_RECORDS_SKIPPED = COUNTER "faultline_file_records_skipped_total" []
        "Records of log files that were skipped because they were rejected by themselves.";
    STDIN_LINES = COUNTER "faultline_stdin_lines_total" ["outcome"]
        "Lines of standard input, stored, or dropped because they could not be stored in time; with --tee, dropped lines were still passed on.";
    STDIN_BYTES = COUNTER "faultline_stdin_bytes_total" []
        "Bytes that were read from standard input.";
    READY = GAUGE "faultline_ready" []
        "1 when the server accepts requests and its tables are readable.";

    WAL_BYTES = GAUGE "faultline_wal_bytes" []
        "Size of the write-ahead log on disk.";
    WAL_LIMIT = GAUGE "faultline_wal_limit_bytes" []
        "Largest size of the write-ahead log on disk; at this size, ingest requests are rejected.";
    WAL_SEGMENTS = GAUGE "faultline_wal_segments" []
        "Segment files of the write-ahead log.";
    WAL_FULL = GAUGE "faultline_wal_full" []
        "1 when the write-ahead log has reached its largest size.";
    WAL_FAILING = GAUGE "faultline_wal_failing" []
        "1 when the newest records could not be written to the write-ahead log.";
    WAL_RECORDS = COUNTER "faultline_wal_records_total" []
        "Records that were written to the write-ahead log and synced.";
    WAL_WRITTEN_BYTES = COUNTER "faultline_wal_written_bytes_total" []
        "Bytes that were written to the write-ahead log and synced.";
    WAL_FSYNC = HISTOGRAM "faultline_wal_fsync_seconds" []
        "Time to write and sync a group of records to the write-ahead log.";
    WAL_FSYNC_MAX = GAUGE "faultline_wal_fsync_max_seconds" []
        "Longest time to write and sync a group of records to the write-ahead log.";
    WAL_REJECTED_RECORDS = COUNTER "faultline_wal_rejected_records_total" ["reason"]
        "Records that the write-ahead log rejected, by reason.";
    BUFFER_BYTES = GAUGE "faultline_buffer_bytes" []
        "Memory of buffered rows, which are not yet flushed to Parquet.";
    BUFFER_EVENTS = GAUGE "faultline_buffer_events" []
        "Events among the buffered rows, which are not yet flushed to Parquet.";
    BUFFER_EVICTED_RECORDS = COUNTER "faultline_buffer_evicted_records_total" []
        "Records that were evicted from the buffer before their flush; they are read from the write-ahead log.";
    BUFFER_AGE = GAUGE "faultline_buffer_age_seconds" []
        "Age of the oldest buffered row, which waits to be flushed.";
    FLUSHES = COUNTER "faultline_flushes_total" []
        "Flushes of buffered rows to the tables.";
    FLUSH_SECONDS = COUNTER "faultline_flush_seconds_total" []
        "Time that flushes took in total.";
    FLUSH_MAX = GAUGE "faultline_flush_max_seconds" []
        "Time that the longest flush took.";
    FLUSHED_ROWS = COUNTER "faultline_flushed_rows_total" []
        "Rows that were flushed to the tables.";
    FLUSHED_BYTES = COUNTER "faultline_flushed_bytes_total" []
        "Bytes of Parquet files that flushes wrote.";
    FLUSHED_FILES = COUNTER "faultline_flushed_files_total" []
        "Parquet files that flushes wrote.";
    FLUSH_FAILURES = COUNTER "faultline_flush_failures_total" []
        "Flushes that failed; their rows stay in the write-ahead log.";
    FLUSH_FAILING = GAUGE "faultline_flush_failing" []
        "1 when the newest flush failed.";
    COMPACTED_FILES = COUNTER "faultline_compacted_files_total" []
        "Small files that compaction merged into larger ones.";
    COMPACTED_BYTES = COUNTER "faultline_compacted_bytes_total" []
        "Bytes of the files that compaction merged.";
    EXPIRED_FILES = COUNTER "faultline_expired_files_total" []
        "Files that retention removed from a table because of its age or its size.";
    EXPIRED_ROWS = COUNTER "faultline_expired_rows_total" ["table"]
        "Rows that retention removed from a table, because of their age or its size.";
    EXPIRED_PARTITIONS = COUNTER "faultline_expired_partitions_total" ["table"]
        "Partitions (days) of a table from which retention removed rows, counted at each removal.";
    VACUUMED_FILES = COUNTER "faultline_vacuumed_files_total" []
        "Files that vacuum deleted because no table uses them.";
    VACUUMED_BYTES = COUNTER "faultline_vacuumed_bytes_total" []
        "Bytes of the files that vacuum deleted.";
    CHECKPOINTS = COUNTER "faultline_checkpoints_total" []
        "Checkpoints that were written to the logs of the tables.";
    MAINTENANCE_PAUSED = GAUGE "faultline_maintenance_paused" []
        "1 while retention and vacuum are paused because the clock jumped and is not trusted yet.";
    CLOCK_JUMPS = COUNTER "faultline_clock_jumps_total" []
        "Jumps of the clock by more than a day.";
    CLOCK_OFFSET = GAUGE "faultline_clock_offset_seconds" []
        "Difference between the clock and the time that is expected from elapsed time.";
    MAINTENANCE_SECONDS = COUNTER "faultline_maintenance_seconds_total" []
        "Time that compaction, retention and vacuum took in total.";
    MAINTENANCE_FAILURES = COUNTER "faultline_maintenance_failures_total" []
        "Failures of compaction, retention or vacuum.";
    TABLE_FILES = GAUGE "faultline_table_files" ["table"]
        "Files of a table.";
    TABLE_ROWS = GAUGE "faultline_table_rows" ["table"]
        "Rows of a table that are flushed to Parquet.";
    TABLE_BYTES = GAUGE "faultline_table_bytes" ["table"]
        "Size of the Parquet files of a table on disk.";

    QUERIES = COUNTER "faultline_queries_total" ["protocol", "outcome"]
        "Statements that were run, by protocol and outcome.";
    QUERY_DURATION = HISTOGRAM "faultline_query_duration_seconds" ["protocol"]
        "Duration of statements, from their start until their last row was taken.";
    QUERIES_RUNNING = GAUGE "faultline_queries_running" []
        "Statements that are running.";

    SERIES = GAUGE "faultline_series" []
        "Metric series that are exported for services; each bucket of a histogram counts.";
    SERIES_LIMIT = GAUGE "faultline_series_limit" []
        "Largest number of metric series for services.";
    CAPPED_LABELS = COUNTER "faultline_capped_labels_total" ["metric"]
        "Label values that were replaced by _other because there were too many.";
    BUILD_INFO = GAUGE "faultline_build_info" ["version"]
        "Always 1; the label is the version of the program.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_follow_the_conventions_and_are_used_once() {
        let mut names = HashSet::new();
        for Metric { name, kind, help, .. } in ALL {
            assert!(names.insert(name), "{name} is there twice");
            assert!(name.starts_with("faultline_") && help.ends_with('.'), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == MetricType::COUNTER, "{name}");
        }
    }
}
