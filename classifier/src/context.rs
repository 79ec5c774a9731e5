//! The context fields of a record and their usual names, with one pass over an object that sorts its fields
//! into slots.
//!
//! Names are data: [`FIELD_NAMES`] lists each known key with the slot that it fills, and operators add their
//! own. Of several names for the same field the one listed first takes precedence, whatever the order in the
//! record.

use crate::json::{Json, TapeOffset};
use crate::name_table::NameTable;
use crate::string_enum::string_enum;
use std::borrow::Cow;
use std::fmt;

string_enum! {
    /// A context field that a record may carry under several names.
    ContextField {
        /// When it happened.
        Time = "time",
        /// The server that answered.
        Service = "service",
        /// Its version.
        ServiceVersion = "service_version",
        /// Production, staging, and so on.
        Environment = "environment",
        /// Who asked: a user, agent, tenant or key id.
        Client = "client",
        /// What was asked for.
        Operation = "operation",
        /// The request.
        RequestId = "request_id",
        /// The session.
        SessionId = "session_id",
        /// The trace.
        TraceId = "trace_id",
        /// The span.
        SpanId = "span_id",
        /// How long it took, in milliseconds.
        Duration = "duration_ms",
        /// The HTTP status of the reply.
        HttpStatus = "http_status",
        /// The error model, named by the sender.
        Dialect = "dialect",
    }
}

/// The number of context fields.
pub(crate) const FIELD_COUNT: usize = ContextField::ALL.len();

/// The context fields of a record, as written.
pub(crate) type ContextFields<'t> = [Option<Json<'t>>; FIELD_COUNT];

/// The context fields of a record that has none.
pub(crate) static EMPTY_FIELDS: ContextFields<'static> = [None; FIELD_COUNT];

/// The keys that make up envelopes, and those under which loggers wrap them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnvelopeKey {
    Success,
    Error,
    Result,
    Results,
    Warnings,
    Confirmation,
    Jsonrpc,
    Id,
    Event,
    Content,
    IsError,
    StructuredContent,
    ResultType,
    Code,
    Meta,
    Response,
    Envelope,
    Body,
    Payload,
    Data,
    Message,
    Msg,
    Log,
    Method,
    Tool,
    Type,
    Role,
    TaskId,
}

impl EnvelopeKey {
    /// The keys that are worth keeping as attributes if the value is a plain text or a number.
    const ATTRIBUTES: [Self; 7] =
        [Self::Id, Self::Msg, Self::Message, Self::Event, Self::Type, Self::Role, Self::TaskId];
}

const ENVELOPE_KEY_COUNT: usize = EnvelopeKey::TaskId as usize + 1;

/// The roles of a key; a few keys have both.
#[derive(Debug, Clone, Copy)]
struct KeyRole {
    envelope_key: Option<EnvelopeKey>,
    /// The context field, and the key's rank among the names of that field: the lowest wins.
    field: Option<(ContextField, u8)>,
}

const ENVELOPE_KEY_NAMES: [(&str, EnvelopeKey); ENVELOPE_KEY_COUNT] = [
    ("success", EnvelopeKey::Success),
    ("error", EnvelopeKey::Error),
    ("result", EnvelopeKey::Result),
    ("results", EnvelopeKey::Results),
    ("warnings", EnvelopeKey::Warnings),
    ("confirmation", EnvelopeKey::Confirmation),
    ("jsonrpc", EnvelopeKey::Jsonrpc),
    ("id", EnvelopeKey::Id),
    ("event", EnvelopeKey::Event),
    ("content", EnvelopeKey::Content),
    ("isError", EnvelopeKey::IsError),
    ("structuredContent", EnvelopeKey::StructuredContent),
    ("resultType", EnvelopeKey::ResultType),
    ("code", EnvelopeKey::Code),
    ("_meta", EnvelopeKey::Meta),
    ("response", EnvelopeKey::Response),
    ("envelope", EnvelopeKey::Envelope),
    ("body", EnvelopeKey::Body),
    ("payload", EnvelopeKey::Payload),
    ("data", EnvelopeKey::Data),
    ("message", EnvelopeKey::Message),
    ("msg", EnvelopeKey::Msg),
    ("log", EnvelopeKey::Log),
    ("method", EnvelopeKey::Method),
    ("tool", EnvelopeKey::Tool),
    ("type", EnvelopeKey::Type),
    ("role", EnvelopeKey::Role),
    ("taskId", EnvelopeKey::TaskId),
];

/// Other spellings of the same keys: dumps of Python objects write `snake_case`.
const ENVELOPE_KEY_ALIASES: [(&str, EnvelopeKey); 4] = [
    ("is_error", EnvelopeKey::IsError),
    ("structured_content", EnvelopeKey::StructuredContent),
    ("result_type", EnvelopeKey::ResultType),
    ("task_id", EnvelopeKey::TaskId),
];

/// The usual names of context fields, in order of preference.
const FIELD_NAMES: [(ContextField, &[&str]); FIELD_COUNT] = [
    (ContextField::Time, &["timestamp", "time", "ts", "@timestamp"]),
    (
        ContextField::Service,
        &["service", "service.name", "service_name", "app", "server_name", "serverName", "mcp_server"],
    ),
    (ContextField::ServiceVersion, &["service_version", "service.version", "version"]),
    (
        ContextField::Environment,
        &["environment", "env", "deployment.environment", "deployment.environment.name"],
    ),
    (
        ContextField::Client,
        &["client", "client_id", "user", "user_id", "agent", "agent_id", "tenant", "tenant_id", "api_key_id"],
    ),
    (
        ContextField::Operation,
        &[
            "operation",
            "op",
            "tool",
            "tool_name",
            "toolName",
            "gen_ai.tool.name",
            "mcp.tool.name",
            "function_name",
            "method",
            "mcp.method.name",
        ],
    ),
    (ContextField::RequestId, &["request_id", "requestId"]),
    (ContextField::SessionId, &["session_id", "sessionId", "mcp.session.id", "sessionID"]),
    (ContextField::TraceId, &["trace_id", "traceId", "trace.id"]),
    (ContextField::SpanId, &["span_id", "spanId", "span.id"]),
    (ContextField::Duration, &["duration_ms", "durationMs", "latency_ms", "elapsed_ms", "duration"]),
    (
        ContextField::HttpStatus,
        &[
            "http_status",
            "statusCode",
            "status_code",
            "http.response.status_code",
            "http.status_code",
            "http.status",
            "status",
        ],
    ),
    (ContextField::Dialect, &["dialect"]),
];

/// Returns the usual names of a field, in order of preference.
pub(crate) fn default_names(field: ContextField) -> impl Iterator<Item = &'static str> {
    FIELD_NAMES[field as usize].1.iter().copied()
}

/// The HTTP verbs, which access logs write under `method`. They are not operations.
const HTTP_VERBS: [&str; 9] =
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"];

/// Every known key with its roles.
#[derive(Debug, Clone)]
pub(crate) struct KeyNames(NameTable<KeyRole>);

impl KeyNames {
    /// Creates the table from the usual names and those of the operator, which take precedence.
    pub(crate) fn new(operator_names: &[(String, ContextField)]) -> Self {
        let spellings = ENVELOPE_KEY_NAMES.into_iter().chain(ENVELOPE_KEY_ALIASES);
        let envelope_keys = spellings.map(|(name, envelope_key)| {
            (name.to_owned(), KeyRole { envelope_key: Some(envelope_key), field: None })
        });
        let mut names = NameTable::new(envelope_keys);
        let mut add = |name: &str, field, rank| {
            let envelope_key = names.get(name).and_then(|role| role.envelope_key);
            names.insert(name.to_owned(), KeyRole { envelope_key, field: Some((field, rank)) });
        };
        for (field, names_by_rank) in FIELD_NAMES {
            for (name, rank) in names_by_rank.iter().zip(1..) {
                add(name, field, rank);
            }
        }
        for (name, field) in operator_names {
            add(name, *field, 0);
        }
        Self(names)
    }

    /// Reports whether a field is kept as an attribute: no other part of the classifier reads it, or it adds
    /// to the envelope.
    pub(crate) fn is_attribute(&self, key: &str, value: Json<'_>) -> bool {
        match self.0.get(key) {
            None => key != "details" && !value.is_null(),
            Some(KeyRole { envelope_key: Some(part), .. }) if EnvelopeKey::ATTRIBUTES.contains(&part) => {
                let is_plain_text = |text: &str| !text.trim_ascii_start().starts_with(['{', '[']);
                value.as_i64().is_some() || value.as_str().is_some_and(is_plain_text)
            }
            Some(_) => false,
        }
    }

    /// Sorts the fields of an object into slots.
    pub(crate) fn index<'t>(&self, object: Json<'t>) -> IndexedObject<'t> {
        let mut indexed = IndexedObject {
            json: object,
            has_unknown_keys: false,
            has_context_fields: false,
            envelope_keys: [None; ENVELOPE_KEY_COUNT],
            fields: [None; FIELD_COUNT],
        };
        let mut ranks = [u8::MAX; FIELD_COUNT];
        for (key, value, offset) in object.fields().with_offsets() {
            let Some(role) = self.0.get(key) else {
                indexed.has_unknown_keys = true;
                continue;
            };
            if value.is_null() {
                continue;
            }
            if let Some(envelope_key) = role.envelope_key {
                indexed.envelope_keys[envelope_key as usize] = Some(offset);
            }
            if let Some((field, rank)) = role.field
                && rank <= ranks[field as usize]
                && is_usable(field, key, value)
            {
                ranks[field as usize] = rank;
                indexed.fields[field as usize] = Some(value);
                indexed.has_context_fields = true;
            }
        }
        indexed
    }
}

/// Reports whether a text is an HTTP verb. Operations rarely start with a capital, so one check rules out
/// most.
fn is_http_verb(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase()) && HTTP_VERBS.contains(&text)
}

/// Reports whether a value is valid for its field. If not, another name of the field may have a valid one.
fn is_usable(field: ContextField, key: &str, value: Json<'_>) -> bool {
    match field {
        ContextField::Operation => value.as_str().is_some_and(|text| key != "method" || !is_http_verb(text)),
        ContextField::HttpStatus => http_status(value).is_some(),
        // A bare number under this name may be in seconds or nanoseconds.
        ContextField::Duration => key != "duration" || value.as_str().and_then(millis_with_unit).is_some(),
        _ => true,
    }
}

/// Parses a duration with its unit, `3ms`, `1.5s` or `2m`, into milliseconds.
pub(crate) fn millis_with_unit(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 8] = [
        ("ms", 1.0),
        ("\u{b5}s", 0.001),
        ("us", 0.001),
        ("ns", 0.000_001),
        ("sec", 1_000.0),
        ("s", 1_000.0),
        ("min", 60_000.0),
        ("m", 60_000.0),
    ];
    let text = text.trim();
    let (number, factor) =
        UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim_end(), factor)))?;
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * factor)
}

/// Returns an HTTP status that is written as a number or as a text of digits.
pub(crate) fn http_status(value: Json<'_>) -> Option<u16> {
    let number = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())?;
    u16::try_from(number).ok().filter(|status| (100..=599).contains(status))
}

/// The fields of one object, sorted by role.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexedObject<'t> {
    /// The object itself.
    pub(crate) json: Json<'t>,
    /// True if there are unknown keys.
    has_unknown_keys: bool,
    /// True if there are context fields.
    has_context_fields: bool,
    envelope_keys: [Option<TapeOffset>; ENVELOPE_KEY_COUNT],
    pub(crate) fields: ContextFields<'t>,
}

impl<'t> IndexedObject<'t> {
    /// Returns the value of a key that is present and not null.
    #[inline]
    pub(crate) fn get(&self, key: EnvelopeKey) -> Option<Json<'t>> {
        self.json.value_at(self.envelope_keys[key as usize]?)
    }

    /// Reports whether the object may have attributes.
    pub(crate) fn has_attributes(&self) -> bool {
        self.has_unknown_keys
            || EnvelopeKey::ATTRIBUTES.into_iter().any(|key| self.envelope_keys[key as usize].is_some())
    }

    pub(crate) fn context_field(&self, field: ContextField) -> Option<Json<'t>> {
        self.fields[field as usize]
    }
}

/// Merges the context fields of an object into those of the outer record, which take precedence. Both rarely
/// have fields, so a copy is rarely made.
pub(crate) fn merge_fields<'s, 't>(
    outer: &'s ContextFields<'t>,
    inner: &'s IndexedObject<'t>,
) -> Cow<'s, ContextFields<'t>> {
    if !inner.has_context_fields {
        return Cow::Borrowed(outer);
    }
    if std::ptr::eq(outer, &EMPTY_FIELDS) {
        return Cow::Borrowed(&inner.fields);
    }
    let mut fields = *outer;
    for (field, inner) in fields.iter_mut().zip(&inner.fields) {
        *field = field.or(*inner);
    }
    Cow::Owned(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Parser;

    fn text_of(json: &str, field: ContextField) -> Option<String> {
        let names = KeyNames::new(&[("svc".to_owned(), ContextField::Service)]);
        Parser::new(64)
            .parse(json.as_bytes(), |json| {
                names.index(json).context_field(field).and_then(Json::as_str).map(str::to_owned)
            })
            .expect(json)
    }

    #[test]
    fn the_best_name_wins_whatever_the_order() {
        assert_eq!(text_of(r#"{"app":"a","service":"b"}"#, ContextField::Service).as_deref(), Some("b"));
        assert_eq!(text_of(r#"{"service":"b","app":"a"}"#, ContextField::Service).as_deref(), Some("b"));
        assert_eq!(text_of(r#"{"service":"b","svc":"own"}"#, ContextField::Service).as_deref(), Some("own"));
    }

    #[test]
    fn an_http_verb_is_no_operation() {
        assert_eq!(text_of(r#"{"method":"GET"}"#, ContextField::Operation), None);
        assert_eq!(
            text_of(r#"{"method":"tools/call"}"#, ContextField::Operation).as_deref(),
            Some("tools/call")
        );
        assert_eq!(
            text_of(r#"{"method":"POST","tool":"echo"}"#, ContextField::Operation).as_deref(),
            Some("echo")
        );
        assert_eq!(text_of(r#"{"operation":"DELETE"}"#, ContextField::Operation).as_deref(), Some("DELETE"));
    }

    #[test]
    fn a_word_is_no_status() {
        assert_eq!(text_of(r#"{"status":"completed"}"#, ContextField::HttpStatus), None);
        assert_eq!(text_of(r#"{"status":"401"}"#, ContextField::HttpStatus).as_deref(), Some("401"));
    }

    #[test]
    fn every_part_has_its_own_slot() {
        for (index, (_, envelope_key)) in ENVELOPE_KEY_NAMES.iter().enumerate() {
            assert_eq!(*envelope_key as usize, index);
        }
        for (index, (field, _)) in FIELD_NAMES.iter().enumerate() {
            assert_eq!(*field as usize, index);
        }
    }
}
