//! The span or log record that encloses an envelope.
//!
//! Its own context fields take precedence; those of the envelope fill the gaps.

use super::RecordOrigin;
use super::event_builder::{EventBuilder, Scratch};
use crate::context::{self, ContextField, ContextFields};
use crate::envelope::looks_like_json;
use crate::json::{Json, Parser, ScalarNode};
use crate::redact::comma;
use crate::telemetry::attributes::{AttributeKey, IndexedAttributes, to_scalar};
use crate::telemetry::{Attribute, LogRecord, Span, SpanStatus, Value};
use std::borrow::Cow;
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

/// The context that one span or log record provides for the failures in it.
pub(super) struct TelemetryContext<'a> {
    pub(super) fields: &'a ContextFields<'a>,
    pub(super) span_kind: Option<&'a str>,
    pub(super) duration_us: Option<i64>,
    /// The time of the event in nanoseconds; zero when it is not stated.
    pub(super) time_ns: u64,
    /// The time at which a collector first saw it, in nanoseconds. It is used when nothing else states a time.
    pub(super) observed_ns: u64,
    /// True if failures are hidden. A span's status determines that; for log records it is `None` and the envelope
    /// decides.
    pub(super) hidden: Option<bool>,
    /// True if each reply counts as a call.
    pub(super) counts_replies: bool,
    /// The message that attributes provide.
    pub(super) message: Option<&'a str>,
    /// The other text and its attribute name: the status message of a span, or the text of a log body.
    pub(super) own_text: Option<(&'static str, &'a str)>,
    pub(super) identity: EventIdentity,
    pub(super) attributes: &'a [Attribute<'a>],
    pub(super) indexed: &'a IndexedAttributes<'a>,
    /// Texts from outside the attributes, under the attribute names that conventions give them.
    pub(super) extra_texts: [Option<(&'static str, &'a str)>; 5],
}

/// The attribute names under which the status message of a span and the body of a log record are stored.
pub(super) const STATUS_MESSAGE: &str = "status.message";
pub(super) const BODY: &str = "body";

impl<'a> TelemetryContext<'a> {
    /// Creates the context of a span; `fields` are its context fields.
    pub(super) fn from_span(
        span: &Span<'a>,
        attributes: &'a IndexedAttributes<'a>,
        fields: &'a ContextFields<'a>,
        origin: &RecordOrigin<'_>,
    ) -> Self {
        let is_span_attribute =
            |one: &Attribute<'_>| span.attributes.iter().any(|other| std::ptr::eq(other, one));
        let from_event = |clue| {
            attributes
                .get(clue)
                .filter(|attribute| !is_span_attribute(attribute))
                .and_then(|_| attributes.text(clue))
        };
        let own_text =
            non_blank(span.status_message).map(|text| (STATUS_MESSAGE, without_empty_message(text)));
        Self {
            fields,
            span_kind: attributes.side(span.kind).as_str(),
            duration_us: duration_us(span),
            time_ns: if span.end_ns > 0 { span.end_ns } else { span.start_ns },
            observed_ns: 0,
            hidden: Some(span.status != SpanStatus::Error),
            counts_replies: false,
            message: attributes.message(),
            own_text,
            identity: match (span.trace_id, span.span_id) {
                (Some(trace_id), Some(span_id)) => EventIdentity::Span { trace_id, span_id },
                _ => EventIdentity::Record(origin.identity),
            },
            attributes: span.attributes,
            indexed: attributes,
            extra_texts: [
                attributes.fields[ContextField::Operation as usize]
                    .and_then(|_| non_blank(span.name))
                    .map(|name| ("span.name", name)),
                from_event(AttributeKey::ExceptionType).map(|class| ("exception.type", class)),
                from_event(AttributeKey::ExceptionMessage).map(|message| ("exception.message", message)),
                from_event(AttributeKey::Stacktrace).map(|trace| ("exception.stacktrace", trace)),
                own_text,
            ],
        }
    }

    /// Creates the context of a span of which only its call is passed on, and no event.
    pub(super) fn of_plain_call(
        span: &Span<'a>,
        attributes: &'a IndexedAttributes<'a>,
        fields: &'a ContextFields<'a>,
    ) -> Self {
        Self {
            fields,
            span_kind: attributes.side(span.kind).as_str(),
            duration_us: duration_us(span),
            time_ns: if span.end_ns > 0 { span.end_ns } else { span.start_ns },
            observed_ns: 0,
            hidden: None,
            counts_replies: false,
            message: None,
            own_text: None,
            identity: EventIdentity::Record(0),
            attributes: span.attributes,
            indexed: attributes,
            extra_texts: [None; 5],
        }
    }

    /// Creates the context of a log record; `fields` are its context fields, `body` is the text of its body.
    pub(super) fn from_log(
        record: &LogRecord<'a>,
        attributes: &'a IndexedAttributes<'a>,
        fields: &'a ContextFields<'a>,
        body: &'a str,
        origin: &RecordOrigin<'_>,
    ) -> Self {
        let own_text = record.body.and_then(Value::as_text).and_then(non_blank).map(|text| (BODY, text));
        Self {
            fields,
            span_kind: None,
            duration_us: None,
            time_ns: record.time_ns,
            observed_ns: record.observed_ns,
            hidden: None,
            // The calls of a log record that belongs to a span are counted by the span.
            counts_replies: record.span_id.is_none(),
            message: attributes.message(),
            own_text,
            identity: EventIdentity::from_log(record, attributes, body, origin),
            attributes: record.attributes,
            indexed: attributes,
            extra_texts: [
                non_blank(record.event_name).map(|name| ("event.name", name)),
                own_text,
                None,
                None,
                None,
            ],
        }
    }

    /// Returns the message for an envelope that has none, which was found in the text called `name`.
    pub(super) fn enclosing_message(&self, name: &str) -> Option<&'a str> {
        let other_text = self.own_text.filter(|(at, _)| *at != name).map(|(_, text)| text);
        self.message.or(other_text).filter(|text| !looks_like_json(text))
    }
}

/// Trims a text; returns `None` when nothing is left.
pub(super) fn non_blank(text: &str) -> Option<&str> {
    let text = text.trim_ascii();
    (!text.is_empty()).then_some(text)
}

/// Removes the colon after the class of an exception that has no message: `TimeoutError: `.
fn without_empty_message(text: &str) -> &str {
    let is_name = |text: &&str| text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_'));
    text.strip_suffix(':').filter(is_name).unwrap_or(text)
}

fn duration_us(span: &Span<'_>) -> Option<i64> {
    let nanos = span.end_ns.checked_sub(span.start_ns).filter(|_| span.start_ns > 0)?;
    i64::try_from(nanos / 1_000).ok()
}

/// The location in the telemetry that an envelope or a message is read from.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyLocation<'a> {
    /// The name of the attribute, `body`, or `status.message`.
    pub(super) name: &'a str,
    /// The attribute that is read, which is not stored a second time.
    pub(super) attribute: Option<&'a Attribute<'a>>,
    /// The text that is used as the message.
    pub(super) message: Option<&'a str>,
}

impl ReplyLocation<'_> {
    pub(super) const NONE: Self = Self { name: "", attribute: None, message: None };
}

/// The identity of a span or log record. It makes the ids of its events equal when it is sent again.
#[derive(Debug, Clone, Copy)]
pub(super) enum EventIdentity {
    /// A span is identified by its trace and its own id.
    Span { trace_id: [u8; 16], span_id: [u8; 8] },
    /// A log record is identified by its ids as far as they are known, its time, its service and its body.
    /// The texts are hashed once, because a body may be large and yield many events.
    Log { trace_id: [u8; 16], span_id: [u8; 8], time_ns: u64, service: u128, body: u128 },
    /// Anything else is identified by the identity that the receiver assigned to the record.
    Record(u128),
}

impl EventIdentity {
    /// Returns the identity of a log record. Two records are the same only if their time and body are equal. Without
    /// ids, and without a time or a body, nothing distinguishes one record from the next.
    fn from_log(
        record: &LogRecord<'_>,
        attributes: &IndexedAttributes<'_>,
        body: &str,
        origin: &RecordOrigin<'_>,
    ) -> Self {
        let time_ns = if record.time_ns > 0 { record.time_ns } else { record.observed_ns };
        if record.span_id.is_none() && (body.is_empty() || time_ns == 0) {
            return Self::Record(origin.identity);
        }
        let service =
            attributes.fields[ContextField::Service as usize].and_then(|service| service.value.as_text());
        Self::Log {
            trace_id: record.trace_id.unwrap_or_default(),
            span_id: record.span_id.unwrap_or_default(),
            time_ns,
            service: xxh3_128(service.unwrap_or_default().as_bytes()),
            body: xxh3_128(body.as_bytes()),
        }
    }

    /// Returns the id of the event with this index among the events of its record.
    pub(super) fn event_id(&self, canonical: &str, index: usize, buffer: &mut Vec<u8>) -> u128 {
        buffer.clear();
        match self {
            Self::Record(identity) => return xxh3_128_with_seed(&identity.to_le_bytes(), index as u64),
            Self::Span { trace_id, span_id } => {
                buffer.extend_from_slice(b"span");
                buffer.extend_from_slice(trace_id);
                buffer.extend_from_slice(span_id);
            }
            Self::Log { trace_id, span_id, time_ns, service, body } => {
                buffer.extend_from_slice(b"log");
                buffer.extend_from_slice(trace_id);
                buffer.extend_from_slice(span_id);
                buffer.extend_from_slice(&time_ns.to_le_bytes());
                buffer.extend_from_slice(&service.to_le_bytes());
                buffer.extend_from_slice(&body.to_le_bytes());
            }
        }
        buffer.extend_from_slice(&(index as u64).to_le_bytes());
        buffer.extend_from_slice(canonical.as_bytes());
        xxh3_128(buffer)
    }
}

/// Trace and span ids in lower-case hex, as telemetry writes them.
pub(super) struct HexIds {
    trace: Option<[u8; 32]>,
    span: Option<[u8; 16]>,
}

impl HexIds {
    pub(super) fn new(trace_id: Option<[u8; 16]>, span_id: Option<[u8; 8]>) -> Self {
        Self { trace: trace_id.map(|id| hex(&id)), span: span_id.map(|id| hex(&id)) }
    }
}

fn hex<const N: usize>(bytes: &[u8]) -> [u8; N] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'0'; N];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    text
}

/// The context fields of a span or log record, as standalone values.
pub(super) struct TelemetryFields<'a>([Option<ScalarNode<'a>>; context::FIELD_COUNT]);

impl<'a> TelemetryFields<'a> {
    pub(super) fn new(attributes: &IndexedAttributes<'a>, ids: &'a HexIds) -> Self {
        let text = |hex: &'a [u8]| std::str::from_utf8(hex).ok().map(ScalarNode::text);
        let mut fields =
            Self(attributes.fields.map(|attribute| attribute.map(|attribute| to_scalar(&attribute.value))));
        fields.set(ContextField::TraceId, ids.trace.as_ref().and_then(|hex| text(hex)));
        fields.set(ContextField::SpanId, ids.span.as_ref().and_then(|hex| text(hex)));
        fields
    }

    /// Overrides a field when there is a value.
    pub(super) fn set(&mut self, field: ContextField, value: Option<ScalarNode<'a>>) {
        let slot = &mut self.0[field as usize];
        *slot = value.or(*slot);
    }

    /// Sets a field when no attribute provides it.
    pub(super) fn fill_gap(&mut self, field: ContextField, value: Option<ScalarNode<'a>>) {
        let slot = &mut self.0[field as usize];
        *slot = slot.or(value);
    }

    pub(super) fn as_json(&self) -> ContextFields<'_> {
        self.0.each_ref().map(|single| single.as_ref().map(ScalarNode::as_json))
    }
}

impl<'e> EventBuilder<'e> {
    /// Writes the attributes of the telemetry that are not stored elsewhere, without braces. It does so once
    /// for all events of a record.
    pub(super) fn write_telemetry_attributes(&self, telemetry: &TelemetryContext<'e>, scratch: &mut Scratch) {
        if scratch.has_telemetry_attributes {
            return;
        }
        scratch.has_telemetry_attributes = true;
        scratch.telemetry_attributes.clear();
        let mut first = true;
        let Scratch { telemetry_attributes: out, spare_parser, .. } = scratch;
        for attribute in
            telemetry.attributes.iter().filter(|attribute| !self.is_already_stored(telemetry, attribute))
        {
            if out.len() > self.rules.limits.details_bytes {
                comma(out, &mut first);
                out.push_str("\"_truncated\":true");
                return;
            }
            self.write_value(out, &mut first, &attribute.key, &attribute.value, spare_parser);
        }
        let is_already_read = |key: &str, text: &str| key == self.location.name || self.is_message(text);
        for (key, text) in
            telemetry.extra_texts.into_iter().flatten().filter(|(key, text)| !is_already_read(key, text))
        {
            self.write_text(out, &mut first, key, text);
        }
    }

    fn is_message(&self, text: &str) -> bool {
        self.location.message.is_some_and(|message| std::ptr::eq(message, text))
    }

    fn is_already_stored(&self, telemetry: &TelemetryContext<'e>, attribute: &Attribute<'_>) -> bool {
        let is = |other: &Attribute<'_>| std::ptr::eq(other, attribute);
        telemetry.indexed.fields.into_iter().flatten().chain(self.location.attribute).any(is)
            || attribute.value.as_text().is_some_and(|text| self.is_message(text))
    }

    fn write_value(
        &self,
        out: &mut String,
        first: &mut bool,
        key: &str,
        value: &Value<'_>,
        spare_parser: &mut Parser,
    ) {
        let limits = &self.rules.limits;
        match value {
            Value::Empty => {}
            Value::Text(text) => self.write_text(out, first, key, text),
            Value::Json(text) => {
                let write = |json: Json<'_>| {
                    self.rules.redactor.field(
                        out,
                        first,
                        &self.truncate_key(key),
                        json,
                        limits.details_bytes,
                    );
                };
                let fits = text.len() <= limits.line_bytes;
                if !fits || spare_parser.parse(text.as_bytes(), write).is_err() {
                    self.write_text(out, first, key, text);
                }
            }
            scalar => {
                let json = to_scalar(scalar);
                self.rules.redactor.field(
                    out,
                    first,
                    &self.truncate_key(key),
                    json.as_json(),
                    limits.details_bytes,
                );
            }
        }
    }

    fn write_text(&self, out: &mut String, first: &mut bool, key: &str, text: &str) {
        let end = self.rules.limits.details_bytes;
        let short;
        let mut text = text;
        if text.len() > end {
            short = self.redact_and_truncate(text, end);
            text = &short;
        }
        self.rules.redactor.field(out, first, &self.truncate_key(key), ScalarNode::text(text).as_json(), end);
    }

    /// Truncates a key. It is redacted where it is written.
    fn truncate_key<'k>(&self, key: &'k str) -> Cow<'k, str> {
        if key.len() > self.rules.limits.name_bytes { self.redact_name(key) } else { key.into() }
    }
}
