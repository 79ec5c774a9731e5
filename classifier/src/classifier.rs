//! The classifier reads records, spans and log records one after another and passes events and calls to a sink.
//!
//! [`Rules`] holds everything that does not change from record to record and is shared between threads.
//! [`Classifier`] holds the buffers of one thread. It reuses them from record to record, so that fields are
//! hardly ever allocated.

mod call_points;
mod conformance;
mod emitter;
mod event_attributes;
mod event_builder;
mod event_context;
mod failure_fields;
mod plain_call;
mod telemetry;
mod telemetry_context;

use crate::context::KeyNames;
use crate::dialect::Dialect;
use crate::envelope::{EnvelopeFinder, Scope, Stream};
use crate::event::Sink;
use crate::json::{Json, Parser};
use crate::limits::{Limits, MAX_ENVELOPE_LEVELS};
use crate::logfmt;
use crate::reason::UnrecognizedReason;
use crate::redact::{HashKey, Redactor};
use crate::registry::Registry;
use crate::request_tracker::RequestTracker;
use crate::telemetry::attributes::AttributeNames;
use emitter::Emitter;
use event_builder::{EventBuilder, Scratch};
use std::sync::Arc;

/// Keys of details and attributes that no error model names, but that many records and spans have. The redactor
/// classifies them in advance.
const COMMON_KEYS: [&str; 32] = [
    "type",
    "hint",
    "level",
    "severity",
    "audit",
    "method",
    "path",
    "logger",
    "host",
    "caller",
    "stream",
    "id",
    "error.type",
    "exception.type",
    "exception.message",
    "exception.stacktrace",
    "status.message",
    "span.name",
    "event.name",
    "body",
    "mcp.method.name",
    "mcp.protocol.version",
    "gen_ai.operation.name",
    "gen_ai.tool.type",
    "gen_ai.tool.call.result",
    "gen_ai.tool.call.arguments",
    "network.transport",
    "network.protocol.name",
    "rpc.system",
    "rpc.method",
    "server.address",
    "server.port",
];

/// Everything that does not change from record to record: the registry, redaction, key names and limits.
#[derive(Debug, Clone)]
pub struct Rules {
    registry: Registry,
    redactor: Redactor,
    names: KeyNames,
    attribute_names: AttributeNames,
    limits: Limits,
}

impl Rules {
    /// Creates the rules from a registry, with the key of the token hash.
    #[must_use]
    pub fn new(registry: Registry, hash_key: HashKey, limits: Limits) -> Self {
        let mut redactor = Redactor::new(hash_key, &registry.operator().redaction);
        let detail_keys =
            registry.entries().iter().flat_map(|entry| &entry.details).map(|field| field.name.as_str());
        redactor.judge(detail_keys.chain(COMMON_KEYS));
        let operator_fields = &registry.operator().fields;
        let (names, attribute_names) = (KeyNames::new(operator_fields), AttributeNames::new(operator_fields));
        Self { redactor, names, attribute_names, registry, limits }
    }

    /// Returns the limits in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the registry in use.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the redactor in use.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

/// The origin of a record, with defaults for values that the record itself does not state.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordOrigin<'a> {
    /// The receiver or file that the record came from.
    pub source: Option<&'a str>,
    /// The service, for records that name none.
    pub service: Option<&'a str>,
    /// The environment, for records that name none.
    pub environment: Option<&'a str>,
    /// The dialect, for records that name none.
    pub dialect: Option<Dialect>,
    /// The time of arrival, in microseconds since 1970.
    pub arrival: i64,
    /// The seed of event ids. It is equal for a record that is sent again, and different for any other
    /// record.
    pub identity: u128,
}

/// Turns records, spans and log records into events.
pub struct Classifier {
    rules: Arc<Rules>,
    /// One parser for the record, and one for each envelope level that may be opened below it.
    parsers: Vec<Parser>,
    /// A buffer for logfmt values that are written with escapes.
    unescaped: Vec<u8>,
    scratch: Scratch,
}

impl Classifier {
    /// Creates a classifier with empty buffers. They grow to the size that records need and are then reused.
    #[must_use]
    pub fn new(rules: Arc<Rules>) -> Self {
        let levels = rules.limits.envelope_levels.min(MAX_ENVELOPE_LEVELS);
        Self {
            parsers: (0..=levels).map(|_| Parser::new(rules.limits.json_depth)).collect(),
            scratch: Scratch::new(rules.limits.json_depth),
            rules,
            unescaped: Vec::new(),
        }
    }

    /// Classifies one record: a line of JSON, logfmt or text. Blank lines are skipped.
    pub fn classify(&mut self, record: &[u8], origin: &RecordOrigin<'_>, sink: &mut impl Sink) {
        self.classify_record(record, origin, None, sink);
    }

    /// Classifies one record of a stream whose records belong together: replies are paired with their requests, tool
    /// results with their calls, and a task that is polled counts once. `tracker` belongs to the stream and holds the
    /// state for that.
    pub fn classify_stream(
        &mut self,
        record: &[u8],
        origin: &RecordOrigin<'_>,
        tracker: &mut RequestTracker,
        sink: &mut impl Sink,
    ) {
        self.classify_record(record, origin, Some(tracker), sink);
    }

    fn classify_record(
        &mut self,
        record: &[u8],
        origin: &RecordOrigin<'_>,
        tracker: Option<&mut RequestTracker>,
        sink: &mut impl Sink,
    ) {
        let record = trim(record);
        if record.is_empty() {
            return;
        }
        if let Err(reason) = self.search_record(record, origin, tracker, sink) {
            sink.unrecognized(reason);
        }
    }

    fn search_record(
        &mut self,
        record: &[u8],
        origin: &RecordOrigin<'_>,
        tracker: Option<&mut RequestTracker>,
        sink: &mut impl Sink,
    ) -> Result<(), UnrecognizedReason> {
        if record.len() > self.rules.limits.line_bytes {
            return Err(UnrecognizedReason::TooLong);
        }
        let Self { rules, parsers, unescaped, scratch } = self;
        let mut emitter = Emitter::new(EventBuilder::new(rules, origin, None), scratch, sink);
        let stream = tracker.map(|tracker| Stream { tracker, redactor: &rules.redactor });
        let mut finder =
            EnvelopeFinder { registry: &rules.registry, names: &rules.names, visitor: &mut emitter, stream };
        let Some((parser, deeper)) = parsers.split_first_mut() else {
            return Err(UnrecognizedReason::TooManyLevels);
        };
        let search = |json: Json<'_>| finder.search_record(json, &Scope::EMPTY, deeper);
        let searched = match record[0] {
            b'{' | b'"' => return parser.parse(record, search),
            b'[' => parser.parse(record, search),
            _ => parse_logfmt(record, parser, unescaped, search),
        };
        match searched {
            Err(reason @ (UnrecognizedReason::NotJson { .. } | UnrecognizedReason::PlainText)) => {
                search_line(record, &mut finder, parsers, reason)
            }
            searched => searched,
        }
    }
}

/// Searches a line that is neither JSON nor logfmt. If nothing is found, `reason` is reported, which says what is
/// wrong with the line.
fn search_line<S: Sink>(
    record: &[u8],
    finder: &mut EnvelopeFinder<'_, Emitter<'_, S>>,
    parsers: &mut [Parser],
    reason: UnrecognizedReason,
) -> Result<(), UnrecognizedReason> {
    let text = std::str::from_utf8(record).map_err(|_| UnrecognizedReason::InvalidUtf8)?;
    finder.search_line(text, &Scope::EMPTY, parsers).map_err(|other| match other {
        UnrecognizedReason::NoEnvelope if is_bracketed_text(record) => UnrecognizedReason::PlainText,
        UnrecognizedReason::NoEnvelope => reason,
        other => other,
    })
}

/// Returns true for a line such as `[INFO] started`, which starts like a JSON array and is none.
fn is_bracketed_text(record: &[u8]) -> bool {
    let rest = record.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    rest.and_then(<[u8]>::first).is_some_and(u8::is_ascii_uppercase)
}

/// Strips the byte-order mark and surrounding white space.
fn trim(record: &[u8]) -> &[u8] {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    let record = record.strip_prefix(BYTE_ORDER_MARK).unwrap_or(record);
    record.trim_ascii()
}

/// Parses a line that does not start like JSON as logfmt.
fn parse_logfmt(
    record: &[u8],
    parser: &mut Parser,
    unescaped: &mut Vec<u8>,
    search: impl FnOnce(Json<'_>),
) -> Result<(), UnrecognizedReason> {
    let text = std::str::from_utf8(record).map_err(|_| UnrecognizedReason::InvalidUtf8)?;
    unescaped.resize(unescaped.len().max(text.len()), 0);
    let read = parser.build_object(|object| logfmt::parse(text, unescaped, object), search);
    // A bare number or word is valid JSON, but never an envelope.
    let is_scalar = || matches!(text, "null" | "true" | "false") || text.parse::<f64>().is_ok();
    read.ok_or_else(
        || {
            if is_scalar() { UnrecognizedReason::NoEnvelope } else { UnrecognizedReason::PlainText }
        },
    )
}

#[cfg(test)]
mod tests;
