//! The bounds of everything that others can make us do, as they are set: `limit.body_bytes` in the file,
//! `--limit-body-bytes`, `FAULTLINE_LIMIT_BODY_BYTES`.
//!
//! What they mean and what they are by default stands in the libraries (`taxonomy`, `collector`); queries have theirs in
//! [`crate::patience`], the store in [`crate::opened`]. What always holds: bounds that do not fit together stop the start.

use crate::quantity::{Bytes, Count, Time};
use taxonomy::Relation;

const RECORD: taxonomy::Limits = taxonomy::Limits::DEFAULT;
const SENDERS: collector::Limits = collector::Limits::DEFAULT;

/// Declares the settings: the sentence, the name, what it is, the default, and the variable.
macro_rules! limits {
    ($($(#[$about:meta])* $name:ident: $kind:ident = $default:expr, $variable:literal;)+) => {
        /// Every bound that can be set. They are for the long help: most people never need one.
        #[derive(Debug, clap::Args)]
        #[command(next_help_heading = "Limits")]
        pub(crate) struct Limits {
            $(
                $(#[$about])*
                #[arg(long, value_name = $kind::NAME, default_value_t = $kind($default), env = $variable, hide_short_help = true)]
                $name: $kind,
            )+
        }
    };
}

limits! {
    /// A compressed body, as it arrives.
    limit_compressed_bytes: Bytes = SENDERS.compressed_bytes, "FAULTLINE_LIMIT_COMPRESSED_BYTES";
    /// A body, decompressed.
    limit_body_bytes: Bytes = SENDERS.body_bytes, "FAULTLINE_LIMIT_BODY_BYTES";
    /// The rows of one request, which may be more than its body; they stand in memory three times.
    limit_batch_bytes: Bytes = SENDERS.batch_bytes, "FAULTLINE_LIMIT_BATCH_BYTES";
    /// Requests above this are worked on one at a time.
    limit_large_bytes: Bytes = SENDERS.large_bytes, "FAULTLINE_LIMIT_LARGE_BYTES";
    /// How long a request above that waits for its turn.
    limit_large_wait: Time = SENDERS.large_wait, "FAULTLINE_LIMIT_LARGE_WAIT";
    /// Records in memory that the disk has not taken yet.
    limit_unwritten_bytes: Bytes = SENDERS.unwritten_bytes, "FAULTLINE_LIMIT_UNWRITTEN_BYTES";
    /// The bodies of all requests at once, in memory.
    limit_inflight_bytes: Bytes = SENDERS.inflight_bytes, "FAULTLINE_LIMIT_INFLIGHT_BYTES";
    /// Requests at once.
    limit_requests: Count = SENDERS.requests, "FAULTLINE_LIMIT_REQUESTS";
    /// Connections at once, on each listener but PostgreSQL's; each is an open file.
    limit_connections: Count = SENDERS.connections, "FAULTLINE_LIMIT_CONNECTIONS";
    /// Connections of one address at once, on each listener but PostgreSQL's.
    limit_connections_per_address: Count = SENDERS.connections_per_address, "FAULTLINE_LIMIT_CONNECTIONS_PER_ADDRESS";
    /// How long a connection may be idle before it is closed.
    limit_idle_timeout: Time = SENDERS.idle_timeout, "FAULTLINE_LIMIT_IDLE_TIMEOUT";
    /// How long the head of a request may take.
    limit_head_timeout: Time = SENDERS.head_timeout, "FAULTLINE_LIMIT_HEAD_TIMEOUT";
    /// How long a sender may pause within a body.
    limit_body_pause: Time = SENDERS.body_pause, "FAULTLINE_LIMIT_BODY_PAUSE";
    /// How long a body may take.
    limit_body_timeout: Time = SENDERS.body_timeout, "FAULTLINE_LIMIT_BODY_TIMEOUT";
    /// How long a request waits for room before it is refused.
    limit_park: Time = SENDERS.park, "FAULTLINE_LIMIT_PARK";
    /// When a refused sender is told to come back.
    limit_retry_after: Time = SENDERS.retry_after, "FAULTLINE_LIMIT_RETRY_AFTER";
    /// Idempotency keys that are remembered for a day.
    limit_keys: Count = SENDERS.keys, "FAULTLINE_LIMIT_KEYS";
    /// Their answers, in memory; the oldest are forgotten first.
    limit_key_bytes: Bytes = SENDERS.key_bytes, "FAULTLINE_LIMIT_KEY_BYTES";
    /// Spans and log records that are remembered to be known when they come again; in memory, twice.
    limit_repeats: Count = SENDERS.repeats, "FAULTLINE_LIMIT_REPEATS";
    /// Rejected lines that an answer lists.
    limit_rejected_listed: Count = SENDERS.rejected_listed, "FAULTLINE_LIMIT_REJECTED_LISTED";
    /// Samples of what could not be read that are stored in a minute.
    limit_rejects_per_minute: Count = SENDERS.rejects_per_minute, "FAULTLINE_LIMIT_REJECTS_PER_MINUTE";
    /// How much of it is kept of each.
    limit_reject_sample_bytes: Bytes = SENDERS.reject_sample_bytes, "FAULTLINE_LIMIT_REJECT_SAMPLE_BYTES";
    /// Attributes of a span, log record or resource; the rest are not read.
    limit_attributes: Count = SENDERS.attributes, "FAULTLINE_LIMIT_ATTRIBUTES";
    /// How deep an attribute may be nested; the rest is cut off.
    limit_value_depth: Count = SENDERS.value_depth, "FAULTLINE_LIMIT_VALUE_DEPTH";
    /// How long a stop waits for connections to finish.
    limit_drain: Time = SENDERS.drain, "FAULTLINE_LIMIT_DRAIN";
    /// Metric series in all; what is beyond is counted under _other.
    limit_series: Count = SENDERS.series, "FAULTLINE_LIMIT_SERIES";
    /// Services that metrics tell apart.
    limit_services: Count = SENDERS.services, "FAULTLINE_LIMIT_SERVICES";
    /// Operations that metrics remember to be reported by their server, so that a call counts once.
    limit_operations: Count = SENDERS.operations, "FAULTLINE_LIMIT_OPERATIONS";
    /// A line; a longer one is rejected.
    limit_line_bytes: Bytes = RECORD.line_bytes, "FAULTLINE_LIMIT_LINE_BYTES";
    /// How deep JSON may be nested.
    limit_json_depth: Count = RECORD.json_depth, "FAULTLINE_LIMIT_JSON_DEPTH";
    /// Events of one record; the rest are counted.
    limit_events_per_record: Count = RECORD.events_per_record, "FAULTLINE_LIMIT_EVENTS_PER_RECORD";
    /// A message; the rest is cut off.
    limit_message_bytes: Bytes = RECORD.message_bytes, "FAULTLINE_LIMIT_MESSAGE_BYTES";
    /// How much of a message makes its template, and so its group.
    limit_template_bytes: Bytes = RECORD.template_bytes, "FAULTLINE_LIMIT_TEMPLATE_BYTES";
    /// The details, and the attributes, of one event.
    limit_details_bytes: Bytes = RECORD.details_bytes, "FAULTLINE_LIMIT_DETAILS_BYTES";
    /// The attributes of all events of one record.
    limit_attribute_bytes_per_record: Bytes = RECORD.attribute_bytes_per_record, "FAULTLINE_LIMIT_ATTRIBUTE_BYTES_PER_RECORD";
    /// Names of services, operations, clients and codes.
    limit_name_bytes: Bytes = RECORD.name_bytes, "FAULTLINE_LIMIT_NAME_BYTES";
}

impl Limits {
    /// What one record may cost.
    pub(crate) fn of_records(&self) -> taxonomy::Limits {
        taxonomy::Limits {
            line_bytes: self.limit_line_bytes.0,
            json_depth: self.limit_json_depth.0,
            events_per_record: self.limit_events_per_record.0,
            message_bytes: self.limit_message_bytes.0,
            template_bytes: self.limit_template_bytes.0,
            details_bytes: self.limit_details_bytes.0,
            attribute_bytes_per_record: self.limit_attribute_bytes_per_record.0,
            name_bytes: self.limit_name_bytes.0,
            ..RECORD
        }
    }

    /// What senders may cost.
    pub(crate) fn of_senders(&self) -> collector::Limits {
        collector::Limits {
            compressed_bytes: self.limit_compressed_bytes.0,
            body_bytes: self.limit_body_bytes.0,
            batch_bytes: self.limit_batch_bytes.0,
            large_bytes: self.limit_large_bytes.0,
            large_wait: self.limit_large_wait.0,
            unwritten_bytes: self.limit_unwritten_bytes.0,
            inflight_bytes: self.limit_inflight_bytes.0,
            requests: self.limit_requests.0,
            connections: self.limit_connections.0,
            connections_per_address: self.limit_connections_per_address.0,
            idle_timeout: self.limit_idle_timeout.0,
            head_timeout: self.limit_head_timeout.0,
            body_pause: self.limit_body_pause.0,
            body_timeout: self.limit_body_timeout.0,
            park: self.limit_park.0,
            retry_after: self.limit_retry_after.0,
            keys: self.limit_keys.0,
            key_bytes: self.limit_key_bytes.0,
            repeats: self.limit_repeats.0,
            rejected_listed: self.limit_rejected_listed.0,
            rejects_per_minute: self.limit_rejects_per_minute.0,
            reject_sample_bytes: self.limit_reject_sample_bytes.0,
            attributes: self.limit_attributes.0,
            value_depth: self.limit_value_depth.0,
            drain: self.limit_drain.0,
            series: self.limit_series.0,
            services: self.limit_services.0,
            operations: self.limit_operations.0,
            ..SENDERS
        }
    }

    /// Whether the bounds fit together, told by their flags.
    pub(crate) fn fit_together(&self) -> Result<(), Conflict> {
        self.check().map_err(|relation| Conflict::of(&relation, |name| format!("limit_{name}")))
    }

    /// Whether the bounds fit together, those of different libraries too.
    fn check(&self) -> Result<(), Relation> {
        let (records, senders) = (self.of_records(), self.of_senders());
        records.check()?;
        senders.check()?;
        let (line, body) = (("line_bytes", records.line_bytes), ("body_bytes", senders.body_bytes));
        Relation::check(&[Relation::fits(line, body, "a line is part of a body")])
    }
}

/// Bounds that do not fit together, by the flags that set them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The names of the flags.
    pub(crate) flags: Vec<String>,
    /// What is wrong, and what to do.
    pub(crate) what: String,
}

impl Conflict {
    /// A relation of bounds that flags of these names set.
    pub(crate) fn of(relation: &Relation, flag: impl Fn(&str) -> String) -> Self {
        let what = relation.told(|name| crate::settings::key(&flag(name)));
        Self { flags: relation.names().map(flag).collect(), what }
    }
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "these settings do not fit together: {}", self.what)
    }
}

impl std::error::Error for Conflict {}
