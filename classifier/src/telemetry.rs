//! Spans and log records, as telemetry reports them: one view for every wire format.
//!
//! A receiver reads its bytes into these borrowed views and hands them to [`Classifier::span`] and
//! [`Classifier::log`](crate::Classifier::log); what telemetry means is decided here, what its bytes look like
//! is not known here.
//!
//! [`Classifier::span`]: crate::Classifier::span

pub(crate) mod agent_event;
pub(crate) mod attributes;
pub(crate) mod failure;
pub(crate) mod grpc;
mod span_role;

use std::borrow::Cow;

/// What an attribute or a log body holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value<'a> {
    /// Nothing.
    #[default]
    Empty,
    /// A text; bytes that are UTF-8 count as one.
    Text(Cow<'a, str>),
    /// A whole number.
    Int(i64),
    /// A number.
    Double(f64),
    /// A truth value.
    Bool(bool),
    /// A list, a map or other bytes, as JSON text.
    Json(Cow<'a, str>),
}

impl Value<'_> {
    /// The text, when it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text that JSON may stand in: a text that looks like it, or JSON itself.
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

/// A name and what it holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attribute<'a> {
    /// The name.
    pub key: Cow<'a, str>,
    /// What it holds.
    pub value: Value<'a>,
}

/// Who reports: what all spans or records of one resource share.
#[derive(Debug, Clone, Copy, Default)]
pub struct Resource<'a> {
    /// `service.name` and so on.
    pub attributes: &'a [Attribute<'a>],
}

/// The side of a call that a span reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpanKind {
    /// The sender does not say.
    #[default]
    Unspecified,
    /// Work inside a service.
    Internal,
    /// The side that answers.
    Server,
    /// The side that asks.
    Client,
    /// Puts a message into a queue.
    Producer,
    /// Takes a message out of a queue.
    Consumer,
}

impl SpanKind {
    /// As a column value; absent when the sender does not say.
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

    /// True for the side that answers calls.
    pub(crate) const fn is_receiving_side(self) -> bool {
        matches!(self, Self::Server | Self::Consumer)
    }
}

/// What a span says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpanStatus {
    /// Nothing.
    #[default]
    Unset,
    /// It worked.
    Ok,
    /// It failed.
    Error,
}

/// One span. Times are nanoseconds since 1970; zero is "not said".
#[derive(Debug, Clone, Copy, Default)]
pub struct Span<'a> {
    /// The trace; absent when it is not 16 bytes, or all zero.
    pub trace_id: Option<[u8; 16]>,
    /// The span; absent when it is not 8 bytes, or all zero.
    pub span_id: Option<[u8; 8]>,
    /// The span that this one is a part of; absent when it is not 8 bytes, or all zero.
    pub parent_span_id: Option<[u8; 8]>,
    /// The side of the call.
    pub kind: SpanKind,
    /// Its name.
    pub name: &'a str,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What it says about itself.
    pub status: SpanStatus,
    /// And in which words.
    pub status_message: &'a str,
    /// What it carries.
    pub attributes: &'a [Attribute<'a>],
    /// What happened during it.
    pub events: &'a [SpanEvent<'a>],
}

/// Something that happened during a span.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpanEvent<'a> {
    /// When, in nanoseconds since 1970.
    pub time_ns: u64,
    /// What: `exception`, for one.
    pub name: &'a str,
    /// What it carries.
    pub attributes: &'a [Attribute<'a>],
}

/// One data point of a histogram of calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallPoint<'a> {
    /// The side that measured.
    pub side: SpanKind,
    /// When it was taken, in nanoseconds since 1970; zero is "not said".
    pub time_ns: u64,
    /// How many calls it tells of.
    pub calls: u64,
    /// What is alike about them.
    pub attributes: &'a [Attribute<'a>],
}

/// One log record. Times are nanoseconds since 1970; zero is "not said".
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRecord<'a> {
    /// When it happened.
    pub time_ns: u64,
    /// When a collector first saw it.
    pub observed_ns: u64,
    /// 1 (trace) to 24 (fatal); 17 and above are errors; 0 is "not said".
    pub severity: i32,
    /// What kind of event it is, for records that are events.
    pub event_name: &'a str,
    /// What was logged.
    pub body: Option<&'a Value<'a>>,
    /// What it carries.
    pub attributes: &'a [Attribute<'a>],
    /// The trace it belongs to.
    pub trace_id: Option<[u8; 16]>,
    /// The span it belongs to.
    pub span_id: Option<[u8; 8]>,
}
