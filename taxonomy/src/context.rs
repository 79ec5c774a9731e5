//! Where a record says who, what, where and when: the usual names of context fields, and one pass over an
//! object that sorts its fields into slots.
//!
//! Names are data: [`NAMES`] lists each known key with the slot it fills, operators add their own. Of
//! several names for the same thing the one listed first wins, whatever the order in the record.

use crate::category::words;
use crate::json::{Json, Place};
use crate::known::Known;
use std::borrow::Cow;
use std::fmt;

words! {
    /// A context field that a record may carry under several names.
    Field {
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
pub(crate) const FIELDS: usize = Field::ALL.len();

/// The context fields of a record, as written.
pub(crate) type Fields<'t> = [Option<Json<'t>>; FIELDS];

/// Of a record that says nothing.
pub(crate) static NO_FIELDS: Fields<'static> = [None; FIELDS];

/// The keys that make up envelopes, and those that loggers wrap them in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
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
}

const PARTS: usize = Part::Tool as usize + 1;

/// What a key is to us; a few are two things.
#[derive(Debug, Clone, Copy)]
struct Role {
    part: Option<Part>,
    /// The field, and its rank among the names of that field: the lowest wins.
    field: Option<(Field, u8)>,
}

const PART_NAMES: [(&str, Part); PARTS] = [
    ("success", Part::Success),
    ("error", Part::Error),
    ("result", Part::Result),
    ("results", Part::Results),
    ("warnings", Part::Warnings),
    ("confirmation", Part::Confirmation),
    ("jsonrpc", Part::Jsonrpc),
    ("id", Part::Id),
    ("event", Part::Event),
    ("content", Part::Content),
    ("isError", Part::IsError),
    ("structuredContent", Part::StructuredContent),
    ("resultType", Part::ResultType),
    ("code", Part::Code),
    ("_meta", Part::Meta),
    ("response", Part::Response),
    ("envelope", Part::Envelope),
    ("body", Part::Body),
    ("payload", Part::Payload),
    ("data", Part::Data),
    ("message", Part::Message),
    ("msg", Part::Msg),
    ("log", Part::Log),
    ("method", Part::Method),
    ("tool", Part::Tool),
];

/// The usual names of context fields, best first.
const NAMES: [(Field, &[&str]); FIELDS] = [
    (Field::Time, &["timestamp", "time", "ts", "@timestamp"]),
    (Field::Service, &["service", "service.name", "service_name", "app"]),
    (Field::ServiceVersion, &["service_version", "service.version", "version"]),
    (Field::Environment, &["environment", "env", "deployment.environment", "deployment.environment.name"]),
    (
        Field::Client,
        &["client", "client_id", "user", "user_id", "agent", "agent_id", "tenant", "tenant_id", "api_key_id"],
    ),
    (Field::Operation, &["operation", "op", "tool", "method"]),
    (Field::RequestId, &["request_id", "requestId"]),
    (Field::SessionId, &["session_id", "sessionId", "mcp.session.id"]),
    (Field::TraceId, &["trace_id", "traceId", "trace.id"]),
    (Field::SpanId, &["span_id", "spanId", "span.id"]),
    (Field::Duration, &["duration_ms", "durationMs", "latency_ms", "elapsed_ms"]),
    (Field::HttpStatus, &["http_status", "statusCode", "status_code", "http.response.status_code", "status"]),
    (Field::Dialect, &["dialect"]),
];

/// The usual names of a field, best first.
pub(crate) fn usual_names(field: Field) -> impl Iterator<Item = &'static str> {
    NAMES[field as usize].1.iter().copied()
}

/// HTTP verbs stand in `method` of access logs; they are no operations.
const HTTP_VERBS: [&str; 9] =
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"];

/// Every key we know, with what it is to us.
#[derive(Debug, Clone)]
pub(crate) struct Names(Known<Role>);

impl Names {
    /// The usual names, and an operator's own before them.
    pub(crate) fn new(own: &[(String, Field)]) -> Self {
        let parts = PART_NAMES.map(|(name, part)| (name.to_owned(), Role { part: Some(part), field: None }));
        let mut names = Known::new(parts);
        let mut add = |name: &str, field, rank| {
            let part = names.get(name).and_then(|role| role.part);
            names.insert(name.to_owned(), Role { part, field: Some((field, rank)) });
        };
        for (field, usual) in NAMES {
            for (name, rank) in usual.iter().zip(1..) {
                add(name, field, rank);
            }
        }
        for (name, field) in own {
            add(name, *field, 0);
        }
        Self(names)
    }

    /// True for a field that nothing else reads, or that says something beside the envelope.
    pub(crate) fn is_attribute(&self, key: &str, value: Json<'_>) -> bool {
        match self.0.get(key) {
            None => key != "details" && !value.is_null(),
            Some(Role { part: Some(Part::Id | Part::Msg | Part::Message | Part::Event), .. }) => {
                let is_words = |text: &str| !text.trim_ascii_start().starts_with(['{', '[']);
                value.as_i64().is_some() || value.as_str().is_some_and(is_words)
            }
            Some(_) => false,
        }
    }

    /// Sorts the fields of an object into slots.
    pub(crate) fn sort<'t>(&self, object: Json<'t>) -> Sorted<'t> {
        let mut sorted = Sorted {
            object,
            has_unknown: false,
            has_fields: false,
            parts: [None; PARTS],
            fields: [None; FIELDS],
        };
        let mut ranks = [u8::MAX; FIELDS];
        for (key, value, place) in object.fields().with_places() {
            let Some(role) = self.0.get(key) else {
                sorted.has_unknown = true;
                continue;
            };
            if value.is_null() {
                continue;
            }
            if let Some(part) = role.part {
                sorted.parts[part as usize] = Some(place);
            }
            if let Some((field, rank)) = role.field
                && rank <= ranks[field as usize]
                && usable(field, key, value)
            {
                ranks[field as usize] = rank;
                sorted.fields[field as usize] = Some(value);
                sorted.has_fields = true;
            }
        }
        sorted
    }
}

/// Operations are hardly ever written in capitals, so one look is enough for most.
fn is_http_verb(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase()) && HTTP_VERBS.contains(&text)
}

/// A value that can be what its name promises; another name may still have one.
fn usable(field: Field, key: &str, value: Json<'_>) -> bool {
    match field {
        Field::Operation => value.as_str().is_some_and(|text| key != "method" || !is_http_verb(text)),
        Field::HttpStatus => http_status(value).is_some(),
        _ => true,
    }
}

/// An HTTP status, written as a number or as its digits.
pub(crate) fn http_status(value: Json<'_>) -> Option<u16> {
    let number = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())?;
    u16::try_from(number).ok().filter(|status| (100..=599).contains(status))
}

/// The fields of one object, by what they are to us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sorted<'t> {
    /// The object itself.
    pub(crate) object: Json<'t>,
    /// There are keys that are nothing to us.
    has_unknown: bool,
    /// There are context fields.
    has_fields: bool,
    parts: [Option<Place>; PARTS],
    pub(crate) fields: Fields<'t>,
}

impl<'t> Sorted<'t> {
    /// The value of a part that is there and not null.
    #[inline]
    pub(crate) fn part(&self, part: Part) -> Option<Json<'t>> {
        self.object.at(self.parts[part as usize]?)
    }

    /// True when the object may have attributes.
    pub(crate) fn has_attributes(&self) -> bool {
        let beside = [Part::Id, Part::Msg, Part::Message, Part::Event];
        self.has_unknown || beside.into_iter().any(|part| self.parts[part as usize].is_some())
    }

    pub(crate) fn field(&self, field: Field) -> Option<Json<'t>> {
        self.fields[field as usize]
    }
}

/// What an outer record says holds; an inner one fills the gaps. Hardly ever do both say something, so
/// hardly ever is anything copied.
pub(crate) fn filled<'s, 't>(outer: &'s Fields<'t>, inner: &'s Sorted<'t>) -> Cow<'s, Fields<'t>> {
    if !inner.has_fields {
        return Cow::Borrowed(outer);
    }
    if std::ptr::eq(outer, &NO_FIELDS) {
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

    fn text_of(json: &str, field: Field) -> Option<String> {
        let names = Names::new(&[("svc".to_owned(), Field::Service)]);
        Parser::new(64)
            .parse(json.as_bytes(), |json| {
                names.sort(json).field(field).and_then(Json::as_str).map(str::to_owned)
            })
            .expect(json)
    }

    #[test]
    fn the_best_name_wins_whatever_the_order() {
        assert_eq!(text_of(r#"{"app":"a","service":"b"}"#, Field::Service).as_deref(), Some("b"));
        assert_eq!(text_of(r#"{"service":"b","app":"a"}"#, Field::Service).as_deref(), Some("b"));
        assert_eq!(text_of(r#"{"service":"b","svc":"own"}"#, Field::Service).as_deref(), Some("own"));
    }

    #[test]
    fn an_http_verb_is_no_operation() {
        assert_eq!(text_of(r#"{"method":"GET"}"#, Field::Operation), None);
        assert_eq!(text_of(r#"{"method":"tools/call"}"#, Field::Operation).as_deref(), Some("tools/call"));
        assert_eq!(text_of(r#"{"method":"POST","tool":"echo"}"#, Field::Operation).as_deref(), Some("echo"));
        assert_eq!(text_of(r#"{"operation":"DELETE"}"#, Field::Operation).as_deref(), Some("DELETE"));
    }

    #[test]
    fn a_word_is_no_status() {
        assert_eq!(text_of(r#"{"status":"completed"}"#, Field::HttpStatus), None);
        assert_eq!(text_of(r#"{"status":"401"}"#, Field::HttpStatus).as_deref(), Some("401"));
    }

    #[test]
    fn every_part_has_its_own_slot() {
        for (index, (_, part)) in PART_NAMES.iter().enumerate() {
            assert_eq!(*part as usize, index);
        }
        for (index, (field, _)) in NAMES.iter().enumerate() {
            assert_eq!(*field as usize, index);
        }
    }
}
