//! Spans and log records: one borrowed view for every wire format of telemetry.
//!
//! A receiver decodes its bytes into these views and passes them to [`Classifier::span`] and
//! [`Classifier::log`](crate::Classifier::log). The meaning of telemetry is decided here, independently of
//! its encoding.
//!
//! [`Classifier::span`]: crate::Classifier::span

pub(crate) mod agent_event;
pub(crate) mod attributes;
pub(crate) mod failure;
pub(crate) mod grpc;
mod span_role;

use std::borrow::Cow;

/// The value of an attribute or a log body.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value<'a> {
    /// No value.
    #[default]
    Empty,
    /// A text, or bytes that are valid UTF-8.
    Text(Cow<'a, str>),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// A boolean.
    Bool(bool),
    /// A list, a map or other bytes, as JSON text.
    Json(Cow<'a, str>),
}

impl Value<'_> {
    /// Returns the text if the value is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a text that may hold JSON: a text that looks like it, or JSON itself.
    pub(crate) fn as_json_text(&self) -> Option<&str> {
        let looks_like_json =
            |text: &str| matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'[' | b'"'));
        match self {
            Self::Text(text) if looks_like_json(text) => Some(text),
            Self::Json(text) => Some(text),
            _ => None,
        }
    }
}

/// A name with a value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attribute<'a> {
    /// The name.
    pub key: Cow<'a, str>,
    /// The value.
    pub value: Value<'a>,
}

/// The source of telemetry: the attributes that all spans or records of one resource share.
#[derive(Debug, Clone, Copy, Default)]
pub struct Resource<'a> {
    /// The attributes, such as `service.name`.
    pub attributes: &'a [Attribute<'a>],
}

/// The side of a call that a span reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpanKind {
    /// The sender does not state a kind.
    #[default]
    Unspecified,
    /// Work inside a service.
    Internal,
    /// The side that receives the request.
    Server,
    /// The side that sends the request.
    Client,
    /// The side that puts a message into a queue.
    Producer,
    /// The side that takes a message out of a queue.
    Consumer,
}

impl SpanKind {
    /// Returns the kind as a column value; `None` if the sender does not state it.
    #[must_use]
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Unspecified => None,
            Self::Internal => Some("internal"),
            Self::Server => Some("server"),
            Self::Client => Some("client"),
            Self::Producer => Some("producer"),
            Self::Consumer => Some("consumer"),
        }
    }

    /// Reports whether this is the side that receives calls.
    pub(crate) const fn is_receiving_side(self) -> bool {
        matches!(self, Self::Server | Self::Consumer)
    }
}

/// The status of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpanStatus {
    /// The span does not state a status.
    #[default]
    Unset,
    /// The operation succeeded.
    Ok,
    /// The operation failed.
    Error,
}

/// One span. Times are nanoseconds since 1970; zero means unknown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span<'a> {
    /// The trace id; absent if it is not 16 bytes, or all zero.
    pub trace_id: Option<[u8; 16]>,
    /// The span id; absent if it is not 8 bytes, or all zero.
    pub span_id: Option<[u8; 8]>,
    /// The id of the parent span; absent if it is not 8 bytes, or all zero.
    pub parent_span_id: Option<[u8; 8]>,
    /// The side of the call.
    pub kind: SpanKind,
    /// The name of the span.
    pub name: &'a str,
    /// The start time.
    pub start_ns: u64,
    /// The end time.
    pub end_ns: u64,
    /// The status.
    pub status: SpanStatus,
    /// The status message.
    pub status_message: &'a str,
    /// The attributes.
    pub attributes: &'a [Attribute<'a>],
    /// The events during the span.
    pub events: &'a [SpanEvent<'a>],
}

/// An event during a span.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpanEvent<'a> {
    /// The time in nanoseconds since 1970.
    pub time_ns: u64,
    /// The name of the event, such as `exception`.
    pub name: &'a str,
    /// The attributes.
    pub attributes: &'a [Attribute<'a>],
}

/// One data point of a histogram of calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallPoint<'a> {
    /// The side of the calls that took the measurement.
    pub side: SpanKind,
    /// The time of the data point in nanoseconds since 1970; zero means unknown.
    pub time_ns: u64,
    /// The number of calls.
    pub calls: u64,
    /// The attributes that the calls share.
    pub attributes: &'a [Attribute<'a>],
}

/// One log record. Times are nanoseconds since 1970; zero means unknown.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRecord<'a> {
    /// The time of the event.
    pub time_ns: u64,
    /// The time at which a collector first saw the record.
    pub observed_ns: u64,
    /// The severity, from 1 (trace) to 24 (fatal); 17 and above are errors; 0 means unknown.
    pub severity: i32,
    /// The name of the event, for records that are events.
    pub event_name: &'a str,
    /// The body of the record.
    pub body: Option<&'a Value<'a>>,
    /// The attributes.
    pub attributes: &'a [Attribute<'a>],
    /// The trace that the record belongs to.
    pub trace_id: Option<[u8; 16]>,
    /// The span that the record belongs to.
    pub span_id: Option<[u8; 8]>,
}
