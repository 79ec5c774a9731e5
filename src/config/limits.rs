//! Limits on how senders and records can load the server: `limit.body_bytes` in the file, `--limit-body-bytes` on the
//! command line, `FAULTLINE_LIMIT_BODY_BYTES` in the environment.
//!
//! The libraries define all limits and their defaults (`classifier::Limits`, `collector::Limits`). Only those that an
//! operator has a reason to change are settings; the others stay constants, each with its reason beside it. The limits
//! of queries are in [`super::query_limits`], those of the store in [`super::storage`].
//!
//! Invariant: limits that contradict each other prevent the start.

use crate::cli::units::{ByteSize, Count, HumanDuration};
use classifier::LimitConstraint;

const RECORD_DEFAULTS: classifier::Limits = classifier::Limits::DEFAULT;
const INGEST_DEFAULTS: collector::Limits = collector::Limits::DEFAULT;

/// Declares the flags: help text, name, type, default and environment variable of each.
macro_rules! limits {
    ($($(#[$about:meta])* $name:ident: $kind:ident = $default:expr, $variable:literal;)+) => {
        /// The flags for all limits on ingest. They are only in the long help, because few people ever need one.
        #[derive(Debug, clap::Args)]
        #[command(next_help_heading = "Limits")]
        pub(crate) struct IngestLimitArgs {
            $(
                $(#[$about])*
                #[arg(long, value_name = $kind::VALUE_NAME, default_value_t = $kind($default), env = $variable, hide_short_help = true)]
                $name: $kind,
            )+
        }
    };
}

limits! {
    /// Largest compressed request body.
    limit_compressed_bytes: ByteSize = INGEST_DEFAULTS.compressed_bytes, "FAULTLINE_LIMIT_COMPRESSED_BYTES";
    /// Largest request body after decompression.
    limit_body_bytes: ByteSize = INGEST_DEFAULTS.body_bytes, "FAULTLINE_LIMIT_BODY_BYTES";
    /// Size above which a request counts as large; large requests are processed one at a time.
    limit_large_bytes: ByteSize = INGEST_DEFAULTS.large_bytes, "FAULTLINE_LIMIT_LARGE_BYTES";
    /// Memory for the bodies of all requests in progress.
    limit_inflight_bytes: ByteSize = INGEST_DEFAULTS.inflight_bytes, "FAULTLINE_LIMIT_INFLIGHT_BYTES";
    /// Number of requests in progress at the same time.
    limit_requests: Count = INGEST_DEFAULTS.requests, "FAULTLINE_LIMIT_REQUESTS";
    /// Number of open connections on each listener except PostgreSQL's; each uses a file descriptor.
    limit_connections: Count = INGEST_DEFAULTS.connections, "FAULTLINE_LIMIT_CONNECTIONS";
    /// Number of open connections from one address on each listener except PostgreSQL's.
    limit_connections_per_address: Count = INGEST_DEFAULTS.connections_per_address, "FAULTLINE_LIMIT_CONNECTIONS_PER_ADDRESS";
    /// Time after which an idle connection is closed.
    limit_idle_timeout: HumanDuration = INGEST_DEFAULTS.idle_timeout, "FAULTLINE_LIMIT_IDLE_TIMEOUT";
    /// Longest time to receive the head of a request.
    limit_head_timeout: HumanDuration = INGEST_DEFAULTS.head_timeout, "FAULTLINE_LIMIT_HEAD_TIMEOUT";
    /// Longest time to receive a request body.
    limit_body_timeout: HumanDuration = INGEST_DEFAULTS.body_timeout, "FAULTLINE_LIMIT_BODY_TIMEOUT";
    /// Number of idempotency keys that are remembered for a day.
    limit_idempotency_keys: Count = INGEST_DEFAULTS.idempotency_keys, "FAULTLINE_LIMIT_IDEMPOTENCY_KEYS";
    /// Number of spans and log records that are remembered to recognize repeated ones; they are in memory twice.
    limit_dedup_entries: Count = INGEST_DEFAULTS.dedup_entries, "FAULTLINE_LIMIT_DEDUP_ENTRIES";
    /// Number of metric series in total; further ones are counted under _other.
    limit_series: Count = INGEST_DEFAULTS.series, "FAULTLINE_LIMIT_SERIES";
    /// Number of services that have metric series of their own.
    limit_services: Count = INGEST_DEFAULTS.services, "FAULTLINE_LIMIT_SERVICES";
    /// Longest line; a longer one is rejected.
    limit_line_bytes: ByteSize = RECORD_DEFAULTS.line_bytes, "FAULTLINE_LIMIT_LINE_BYTES";
    /// Longest message; the rest is cut off.
    limit_message_bytes: ByteSize = RECORD_DEFAULTS.message_bytes, "FAULTLINE_LIMIT_MESSAGE_BYTES";
}

impl IngestLimitArgs {
    /// Returns the limits on one record, for the classifier.
    pub(crate) fn record_limits(&self) -> classifier::Limits {
        classifier::Limits {
            line_bytes: self.limit_line_bytes.0,
            message_bytes: self.limit_message_bytes.0,
            ..RECORD_DEFAULTS
        }
    }

    /// Returns the limits on senders, for the collector.
    pub(crate) fn ingest_limits(&self) -> collector::Limits {
        collector::Limits {
            compressed_bytes: self.limit_compressed_bytes.0,
            body_bytes: self.limit_body_bytes.0,
            large_bytes: self.limit_large_bytes.0,
            inflight_bytes: self.limit_inflight_bytes.0,
            requests: self.limit_requests.0,
            connections: self.limit_connections.0,
            connections_per_address: self.limit_connections_per_address.0,
            idle_timeout: self.limit_idle_timeout.0,
            head_timeout: self.limit_head_timeout.0,
            body_timeout: self.limit_body_timeout.0,
            idempotency_keys: self.limit_idempotency_keys.0,
            dedup_entries: self.limit_dedup_entries.0,
            series: self.limit_series.0,
            services: self.limit_services.0,
            ..INGEST_DEFAULTS
        }
    }

    /// Checks that the limits are consistent; a conflict is reported with the names of the settings.
    pub(crate) fn validate(&self) -> Result<(), LimitConflict> {
        self.check_all().map_err(|constraint| LimitConflict::new(&constraint, |name| format!("limit_{name}")))
    }

    /// Checks the limits of each library, and those that relate limits of different libraries.
    fn check_all(&self) -> Result<(), LimitConstraint> {
        let (record, ingest) = (self.record_limits(), self.ingest_limits());
        record.check()?;
        ingest.check()?;
        let (line, body) = (("line_bytes", record.line_bytes), ("body_bytes", ingest.body_bytes));
        LimitConstraint::check(&[LimitConstraint::fits(line, body, "a line is part of a body")])
    }
}

/// Limits that contradict each other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LimitConflict {
    /// The ids of the flags that set them.
    pub(crate) flags: Vec<String>,
    /// A message with the contradiction and its remedy.
    pub(crate) message: String,
}

impl LimitConflict {
    /// Reports a violated constraint; `flag` turns the name of a limit into the id of its flag.
    pub(crate) fn new(constraint: &LimitConstraint, flag: impl Fn(&str) -> String) -> Self {
        let message = constraint.describe(|name| super::setting_key(&flag(name)));
        Self { flags: constraint.names().map(flag).collect(), message }
    }
}

impl std::fmt::Display for LimitConflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "these settings contradict each other: {}", self.message)
    }
}

impl std::error::Error for LimitConflict {}
