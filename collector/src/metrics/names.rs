//! The metrics of the collector: of services, of the sources of records, of tailed files and of the server itself.

/// Labels whose values come from senders. When a metric has too many values of one, further values become [`OTHER`].
pub const DYNAMIC_LABELS: [&str; 6] =
    ["service", "code", "operation", "metric", "required_trust", "actual_trust"];

/// The value that replaces further values of a label which has too many.
pub const OTHER: &str = "_other";

/// The value of a label for which the sender gave none.
pub const UNKNOWN: &str = "_unknown";

metrics::metrics! {
    SERVICE_GROUP = "services" by "service" {
        EVENTS = Counter "faultline_events_total" ["service", "category", "code", "kind", "dialect"]
            "Errors, warnings and audit events, by their code in the cross-dialect taxonomy.";
        CATEGORY_EVENTS = Counter "faultline_category_events_total" ["service", "category", "kind", "fault"]
            "Errors, warnings and audit events, by category and by the party at fault; protocol probes are left out.";
        REQUESTS = Counter "faultline_requests_total" ["service", "outcome"]
            "Calls by outcome; a hidden failure was in a reply that its protocol calls a success.";
        UNVERIFIED_CALLS = Counter "faultline_unverified_calls_total" ["service"]
            "Tool calls that count as ok although the content of their reply was not captured, so that a hidden failure would not be seen.";
        OPERATION_DURATION = Histogram "faultline_operation_duration_seconds" ["service", "operation"]
            "Duration of calls that report one.";
        QUOTA_USAGE = Gauge "faultline_quota_usage_ratio" ["service", "metric"]
            "Used share of a quota, for the client that has used most; removed at the reset of the quota, or after an hour without reports.";
        QUOTA_EVENTS = Counter "faultline_quota_events_total" ["service", "metric", "level"]
            "Events that report a quota, by the level of its use.";
        QUOTA_RESET = Gauge "faultline_quota_reset_timestamp_seconds" ["service", "metric"]
            "Time at which a quota resets, as reported last; removed when that time has passed.";
        TRUST_DENIALS = Counter "faultline_trust_denials_total" ["service", "operation", "required_trust", "actual_trust"]
            "Operations that were denied because the caller's trust level was too low.";
        DANGER_DENIALS = Counter "faultline_danger_denials_total" ["service", "operation", "danger_level"]
            "Operations that were denied because they are too dangerous.";
        CONFIRMATIONS = Counter "faultline_confirmations_total" ["service", "state"]
            "Confirmations that were required, granted, used, expired or revoked, by state.";
        TOKEN_EVENTS = Counter "faultline_token_events_total" ["service", "state"]
            "Events of confirmation tokens, by state; a replayed token is a security signal.";
        FINDINGS = Counter "faultline_findings_total" ["service", "finding"]
            "Events with a conformance finding, by finding; unregistered codes show drift of the taxonomy.";
        NEW_GROUPS = Counter "faultline_new_groups_total" ["service"]
            "Error groups that were never seen before.";
        OVER_BUDGET = Counter "faultline_over_budget_events_total" ["service"]
            "Events beyond the budget of their service that were coalesced: they share the row of another event.";
    }
    SOURCE_GROUP = "sources" by "source" {
        RECEIVED_REQUESTS = Counter "faultline_received_requests_total" ["source"]
            "Requests that were received, including rejected ones.";
        REJECTED_REQUESTS = Counter "faultline_rejected_requests_total" ["source", "reason"]
            "Requests that were rejected, by reason.";
        RECEIVED_BYTES = Counter "faultline_received_bytes_total" ["source"]
            "Bytes that were received, before decompression.";
        DECOMPRESSED_BYTES = Counter "faultline_decompressed_bytes_total" ["source"]
            "Bytes of received requests, after decompression.";
        RECEIVED_RECORDS = Counter "faultline_received_records_total" ["source"]
            "Lines, spans and log records that were stored or counted, including unreadable ones.";
        ACCEPTED_RECORDS = Counter "faultline_accepted_records_total" ["source"]
            "Lines, spans and log records that could be read.";
        REJECTED_RECORDS = Counter "faultline_rejected_records_total" ["source"]
            "Lines, spans and log records that could not be read.";
        UNRECOGNIZED = Counter "faultline_unrecognized_total" ["source", "reason"]
            "Records in which no response envelope was recognized, by reason.";
        RECEIVED_EVENTS = Counter "faultline_received_events_total" ["source", "category"]
            "Errors, warnings and audit events that were received, by category.";
        RECEIVED_CALLS = Counter "faultline_received_calls_total" ["source"]
            "Calls that were received.";
        COALESCED_EVENTS = Counter "faultline_coalesced_events_total" ["source"]
            "Events beyond the budget of their service that share the row of another event.";
        IGNORED_POINTS = Counter "faultline_ignored_data_points_total" ["source"]
            "Data points of OTLP metrics that tell of no calls and are not stored.";
        DUPLICATE_RECORDS = Counter "faultline_duplicate_records_total" ["source"]
            "Events and calls that had been sent before, and were not stored again.";
        REPLACED_TIMESTAMPS = Counter "faultline_replaced_timestamps_total" ["source"]
            "Events whose time was unusable and was replaced by the time of arrival.";
    }
    FILE_GROUP = "files" {
        FILES_OPEN = Gauge "faultline_files_open" []
            "Log files that are open for tailing.";
        FILES_WAITING = Gauge "faultline_files_waiting" []
            "Log files that match but are not read yet: unreadable, still being written, a possible copy, or over the limit of open files.";
        FILE_LINES = Counter "faultline_file_lines_total" []
            "Lines of tailed log files that were stored.";
        FILE_BYTES = Counter "faultline_file_bytes_total" []
            "Bytes of tailed log files that were stored, after decompression.";
        FILE_LAG = Gauge "faultline_file_lag_bytes" []
            "Bytes of open log files that are not stored yet; archives are left out, because their length is unknown.";
        FILE_CHANGES = Counter "faultline_file_changes_total" ["change"]
            "Changes of tailed log files: rotations, truncations, copies, and archives that were read to their end.";
        FILE_READ_ERRORS = Counter "faultline_file_read_errors_total" []
            "Failed attempts to read a log file; each is retried.";
        FILE_RECORDS_SKIPPED = Counter "faultline_file_records_skipped_total" []
            "Records of log files that were skipped because they were rejected by themselves.";
    }
    STDIN_GROUP = "stdin" {
        STDIN_LINES = Counter "faultline_stdin_lines_total" ["outcome"]
            "Lines of standard input, stored, or dropped because they could not be stored in time; with --tee, dropped lines were still passed on.";
        STDIN_BYTES = Counter "faultline_stdin_bytes_total" []
            "Bytes that were read from standard input.";
    }
    SERVER_GROUP = "server" {
        READY = Gauge "faultline_ready" []
            "1 when the server accepts requests and its tables are readable.";
        IDEMPOTENT_REPLAYS = Counter "faultline_idempotent_replays_total" []
            "Requests that repeated an Idempotency-Key and got the stored response.";
        REJECT_SAMPLES_DROPPED = Counter "faultline_reject_samples_dropped_total" []
            "Rejected records of which no sample was stored, because the limit of samples was reached.";
        PANICS = Counter "faultline_panics_total" []
            "Internal defects that were caught before they could affect other requests.";
        WAL_UNREADABLE_RECORDS = Counter "faultline_wal_unreadable_records_total" []
            "Records of the write-ahead log that are durable but could not be read back.";
        BUILD_INFO = Gauge "faultline_build_info" ["version"]
            "Always 1; the label is the version of the program.";
    }
    SERIES_GROUP = "series" {
        SERIES = Gauge "faultline_series" []
            "Metric series that are exported for services; each bucket of a histogram counts.";
        SERIES_LIMIT = Gauge "faultline_series_limit" []
            "Largest number of metric series for services.";
        CAPPED_LABELS = Counter "faultline_capped_labels_total" ["metric"]
            "Label values that were replaced by _other because there were too many.";
    }
}
