//! The closed list of metrics: every name, with its labels and what it says. Everything else derives from it: what is
//! exported, the page `docs/metrics.md`, and the test that rules and dashboards name nothing else.

use prometheus::proto::MetricType;

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// What sources of dashboards call it, after an `@`: the name of its constant here.
    pub word: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: MetricType,
    /// The names of its labels, in the order in which values are given.
    pub labels: &'static [&'static str],
    /// What it says, in one sentence.
    pub about: &'static str,
}

/// Labels whose values come from what was sent. Where there are too many of them, the rest is [`OTHER`].
pub const LEARNT: [&str; 6] = ["service", "code", "operation", "metric", "required_trust", "actual_trust"];

/// The value of a label that has too many.
pub const OTHER: &str = "_other";

/// The value of a label that was not sent.
pub const UNKNOWN: &str = "_unknown";

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $about:literal;)+) => {
        $(
            #[doc = $about]
            pub const $constant: Metric = Metric {
                word: stringify!($constant),
                name: $name,
                kind: MetricType::$kind,
                labels: &[$($label),*],
                about: $about,
            };
        )+

        /// All of them, in the order of the page.
        pub const ALL: &[Metric] = &[$($constant),+];
    };
}

metrics! {
    EVENTS = COUNTER "faultline_events_total" ["service", "category", "code", "kind", "dialect"]
        "Errors, warnings and audit events, by their code in the cross-dialect taxonomy.";
    CATEGORY_EVENTS = COUNTER "faultline_category_events_total" ["service", "category", "kind"]
        "The same by category alone.";
    REQUESTS = COUNTER "faultline_requests_total" ["service", "outcome"]
        "Calls by how they went; hidden ones failed in a reply that its protocol calls a success.";
    OPERATION_DURATION = HISTOGRAM "faultline_operation_duration_seconds" ["service", "operation"]
        "How long calls took, of those that say so.";
    QUOTA_USAGE = GAUGE "faultline_quota_usage_ratio" ["service", "metric"]
        "The used share of a quota, of the client that has used most; gone when the quota starts anew, or after an hour without word.";
    QUOTA_EVENTS = COUNTER "faultline_quota_events_total" ["service", "metric", "level"]
        "What was said about quotas, by how far they had got.";
    QUOTA_RESET = GAUGE "faultline_quota_reset_timestamp_seconds" ["service", "metric"]
        "When a quota starts anew, as was said last; gone when it has.";
    TRUST_DENIALS = COUNTER "faultline_trust_denials_total" ["service", "operation", "required_trust", "actual_trust"]
        "Denials for want of trust.";
    DANGER_DENIALS = COUNTER "faultline_danger_denials_total" ["service", "operation", "danger_level"]
        "Denials because the operation is too dangerous.";
    CONFIRMATIONS = COUNTER "faultline_confirmations_total" ["service", "state"]
        "Steps in the life of confirmations.";
    TOKEN_EVENTS = COUNTER "faultline_token_events_total" ["service", "state"]
        "What happened to confirmation tokens; a replayed one is a security signal.";
    FINDINGS = COUNTER "faultline_findings_total" ["service", "finding"]
        "What servers could do better about their errors; unregistered codes are drift of the taxonomy.";
    NEW_GROUPS = COUNTER "faultline_new_groups_total" ["service"]
        "Groups of errors that were not seen before.";
    OVER_BUDGET = COUNTER "faultline_over_budget_events_total" ["service"]
        "Events past the budget of their service that have no row of their own: the row of one of their like represents them.";
    UNRECOGNIZED = COUNTER "faultline_unrecognized_total" ["source", "reason"]
        "Records of which nothing could be made, by why.";

    RECEIVED_REQUESTS = COUNTER "faultline_received_requests_total" ["source"]
        "Requests that came, refused ones included.";
    RECEIVED_BYTES = COUNTER "faultline_received_bytes_total" ["source"]
        "Bytes that came, as they came.";
    RECEIVED_RECORDS = COUNTER "faultline_received_records_total" ["source"]
        "Lines, spans and log records that are stored or counted, unreadable ones included.";
    REPEATED_RECORDS = COUNTER "faultline_repeated_records_total" ["source"]
        "Events and calls that had been sent before, and are stored once.";
    REPLACED_TIMES = COUNTER "faultline_replaced_times_total" ["source"]
        "Events whose time was unusable and became the time of arrival.";
    REFUSED_REQUESTS = COUNTER "faultline_refused_requests_total" ["source", "reason"]
        "Requests that were refused, by why.";
    ANSWERED_AGAIN = COUNTER "faultline_answered_again_total" []
        "Requests that were answered as before, by their Idempotency-Key.";
    SAMPLES_DROPPED = COUNTER "faultline_samples_dropped_total" []
        "Unusable records of which no sample was kept, because there were many.";
    PANICS = COUNTER "faultline_panics_total" []
        "Defects that were caught before they could do harm.";
    UNREADABLE_RECORDS = COUNTER "faultline_unreadable_records_total" []
        "Records of the log that are durable but could not be read back.";
    CONNECTIONS = GAUGE "faultline_connections" []
        "Connections that are open.";
    CONNECTIONS_OPENED = COUNTER "faultline_connections_opened_total" []
        "Connections that were opened.";
    CONNECTIONS_REFUSED = COUNTER "faultline_connections_refused_total" ["reason"]
        "Connections closed at once because too many were open: in total, or of one address.";
    CONNECTIONS_RESERVED = COUNTER "faultline_connections_reserved_total" []
        "Connections admitted to the reserve that only health probes can use, because too many were open.";
    DENIED = COUNTER "faultline_denied_total" ["reason"]
        "Requests and connections that were not let in, by why.";
    TLS_FAILURES = COUNTER "faultline_tls_failures_total" []
        "Connections that were given up because they could not be encrypted.";
    TLS_EXPIRY = GAUGE "faultline_tls_certificate_expiry_timestamp_seconds" []
        "When the certificate of the listeners ends; only with one.";
    FILES_OPEN = GAUGE "faultline_files_open" []
        "Log files that are being read.";
    FILES_WAITING = GAUGE "faultline_files_waiting" []
        "Log files that are there and not read yet: unreadable, still being written, perhaps a copy, or too many at once.";
    FILE_LINES = COUNTER "faultline_file_lines_total" []
        "Lines of log files that were stored.";
    FILE_BYTES = COUNTER "faultline_file_bytes_total" []
        "Their bytes, unpacked.";
    FILE_LAG = GAUGE "faultline_file_lag_bytes" []
        "What open log files hold and is not stored yet; archives, whose length nobody knows, are left out.";
    FILE_CHANGES = COUNTER "faultline_file_changes_total" ["change"]
        "What became of log files: rotated, truncated, copied, or an archive that was read to its end.";
    FILES_UNREADABLE = COUNTER "faultline_files_unreadable_total" []
        "Times that a log file could not be read; it is tried again.";
    FILE_RECORDS_SKIPPED = COUNTER "faultline_file_records_skipped_total" []
        "Records of log files that were left out because they alone were refused.";
    STDIN_LINES = COUNTER "faultline_stdin_lines_total" ["outcome"]
        "Lines of standard input: stored, or dropped for want of room; with --tee those were passed on all the same.";
    STDIN_BYTES = COUNTER "faultline_stdin_bytes_total" []
        "Bytes of standard input.";
    READY = GAUGE "faultline_ready" []
        "1 when a request would be taken now, and the tables can be read.";

    LOG_BYTES = GAUGE "faultline_log_bytes" []
        "What the log takes on disk.";
    LOG_LIMIT = GAUGE "faultline_log_limit_bytes" []
        "What the log may take on disk; then senders are told to come back later.";
    LOG_SEGMENTS = GAUGE "faultline_log_segments" []
        "Files of the log.";
    LOG_FULL = GAUGE "faultline_log_full" []
        "1 when the log has reached its limit.";
    LOG_FAILING = GAUGE "faultline_log_failing" []
        "1 when the newest records could not be made durable.";
    LOG_RECORDS = COUNTER "faultline_log_records_total" []
        "Records that were made durable.";
    LOG_WRITTEN = COUNTER "faultline_log_written_bytes_total" []
        "Their bytes.";
    LOG_FSYNC = HISTOGRAM "faultline_log_fsync_seconds" []
        "How long it took to make a group of records durable.";
    LOG_FSYNC_MAX = GAUGE "faultline_log_fsync_max_seconds" []
        "How long the longest of those took.";
    LOG_REFUSED = COUNTER "faultline_log_refused_total" ["reason"]
        "Records that the log refused, by why.";
    HOT_BYTES = GAUGE "faultline_hot_bytes" []
        "The newest rows in memory.";
    HOT_EVENTS = GAUGE "faultline_hot_events" []
        "Events among them.";
    HOT_EVICTED = COUNTER "faultline_hot_evicted_records_total" []
        "Records that had to make room in memory; they are read from the log.";
    UNSEALED = GAUGE "faultline_unsealed_seconds" []
        "How long the oldest row in memory has waited to be sealed.";
    SEALS = COUNTER "faultline_seals_total" []
        "Times that rows were sealed into the tables.";
    SEAL_SECONDS = COUNTER "faultline_seal_seconds_total" []
        "How long that took.";
    SEAL_MAX = GAUGE "faultline_seal_max_seconds" []
        "How long the longest took.";
    SEALED_ROWS = COUNTER "faultline_sealed_rows_total" []
        "Rows that were sealed.";
    SEALED_BYTES = COUNTER "faultline_sealed_bytes_total" []
        "What they take in the tables.";
    SEALED_FILES = COUNTER "faultline_sealed_files_total" []
        "Files that were written for them.";
    SEAL_FAILURES = COUNTER "faultline_seal_failures_total" []
        "Times that sealing failed; the log keeps the rows.";
    SEAL_FAILING = GAUGE "faultline_seal_failing" []
        "1 when sealing failed and has not worked since.";
    COMPACTED_FILES = COUNTER "faultline_compacted_files_total" []
        "Small files that were merged into larger ones.";
    COMPACTED_BYTES = COUNTER "faultline_compacted_bytes_total" []
        "Bytes that were merged.";
    EXPIRED_FILES = COUNTER "faultline_expired_files_total" []
        "Files that left a table because of their age or its size.";
    EXPIRED_ROWS = COUNTER "faultline_expired_rows_total" ["table"]
        "Rows that retention removed from a table, because of their age or its size.";
    EXPIRED_PARTITIONS = COUNTER "faultline_expired_partitions_total" ["table"]
        "Partitions (days) of a table from which retention removed rows, counted at each removal.";
    VACUUMED_FILES = COUNTER "faultline_vacuumed_files_total" []
        "Files of no table any more that were deleted.";
    VACUUMED_BYTES = COUNTER "faultline_vacuumed_bytes_total" []
        "Their bytes.";
    CHECKPOINTS = COUNTER "faultline_checkpoints_total" []
        "Checkpoints of the tables.";
    MAINTENANCE_HELD = GAUGE "faultline_maintenance_held" []
        "1 while nothing is removed because of its age, since the clock jumped and is not trusted yet.";
    CLOCK_JUMPS = COUNTER "faultline_clock_jumps_total" []
        "Times that the clock was found to have jumped by more than a day.";
    CLOCK_OFFSET = GAUGE "faultline_clock_offset_seconds" []
        "By how much the clock differs from what is expected of it by the time that has passed.";
    UPKEEP_SECONDS = COUNTER "faultline_upkeep_seconds_total" []
        "How long compaction, retention and vacuum took.";
    UPKEEP_FAILURES = COUNTER "faultline_upkeep_failures_total" []
        "Times that one of them failed.";
    TABLE_FILES = GAUGE "faultline_table_files" ["table"]
        "Files of a table.";
    TABLE_ROWS = GAUGE "faultline_table_rows" ["table"]
        "Its sealed rows.";
    TABLE_BYTES = GAUGE "faultline_table_bytes" ["table"]
        "What they take on disk.";

    QUERIES = COUNTER "faultline_queries_total" ["door", "outcome"]
        "Statements that were run, by where they came in and how they ended.";
    QUERY_DURATION = HISTOGRAM "faultline_query_duration_seconds" ["door"]
        "How long statements ran, until their last row was taken.";
    QUERIES_RUNNING = GAUGE "faultline_queries_running" []
        "Statements that are running.";

    SERIES = GAUGE "faultline_series" []
        "Series of services that are exported, each bucket counted.";
    SERIES_LIMIT = GAUGE "faultline_series_limit" []
        "How many there can be.";
    CAPPED_LABELS = COUNTER "faultline_capped_labels_total" ["metric"]
        "Times that a label was replaced by _other, because there were too many values.";
    BUILD_INFO = GAUGE "faultline_build_info" ["version"]
        "1; the version is the label.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_follow_the_conventions_and_are_used_once() {
        let mut names = HashSet::new();
        for Metric { name, kind, about, .. } in ALL {
            assert!(names.insert(name), "{name} is there twice");
            assert!(name.starts_with("faultline_") && about.ends_with('.'), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == MetricType::COUNTER, "{name}");
        }
    }
}
