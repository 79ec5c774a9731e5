//! The telemetry around an envelope: what a span or a log record says holds, an envelope in it fills the gaps.

use super::Origin;
use super::build::{Builder, Scratch};
use crate::context::{self, Field, Fields};
use crate::envelope::looks_like_json;
use crate::json::{Json, Parser, Single};
use crate::redact::comma;
use crate::signal::clues::{Clue, Clues, single};
use crate::signal::{Attribute, LogRecord, Span, SpanStatus, Value};
use std::borrow::Cow;
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

/// What one span or log record says, beside the failure itself.
pub(super) struct Frame<'a> {
    pub(super) fields: &'a Fields<'a>,
    pub(super) span_kind: Option<&'a str>,
    pub(super) duration_us: Option<i64>,
    /// When it happened, in nanoseconds; zero is "not said".
    pub(super) time_ns: u64,
    /// When it was first seen: counts when nothing in the record says when it happened.
    pub(super) observed_ns: u64,
    /// Spans know whether their failures are hidden; for log records the envelope decides.
    pub(super) hidden: Option<bool>,
    /// Whether each reply in it counts as a call.
    pub(super) counts_replies: bool,
    /// What attributes say in words.
    pub(super) message: Option<&'a str>,
    /// What else was said in words, and where: the status message of a span, the text of a log body.
    pub(super) words: Option<(&'static str, &'a str)>,
    pub(super) identity: Identity,
    pub(super) attributes: &'a [Attribute<'a>],
    pub(super) clues: &'a Clues<'a>,
    /// What it says outside of its attributes, under the names that conventions give it.
    pub(super) beside: [Option<(&'static str, &'a str)>; 5],
}

/// Where the words of a span and of a log record stand; their names as attributes.
pub(super) const STATUS_MESSAGE: &str = "status.message";
pub(super) const BODY: &str = "body";

impl<'a> Frame<'a> {
    /// Of a span; `fields` are its own.
    pub(super) fn of_span(
        span: &Span<'a>,
        clues: &'a Clues<'a>,
        fields: &'a Fields<'a>,
        origin: &Origin<'_>,
    ) -> Self {
        let is_own = |one: &Attribute<'_>| span.attributes.iter().any(|other| std::ptr::eq(other, one));
        let of_event =
            |clue| clues.get(clue).filter(|attribute| !is_own(attribute)).and_then(|_| clues.text(clue));
        let words = said(span.status_message).map(|text| (STATUS_MESSAGE, text));
        Self {
            fields,
            span_kind: span.kind.as_str(),
            duration_us: duration_us(span),
            time_ns: if span.end_ns > 0 { span.end_ns } else { span.start_ns },
            observed_ns: 0,
            hidden: Some(span.status != SpanStatus::Error),
            counts_replies: false,
            message: clues.message(),
            words,
            identity: match (span.trace_id, span.span_id) {
                (Some(trace_id), Some(span_id)) => Identity::Span { trace_id, span_id },
                _ => Identity::Origin(origin.identity),
            },
            attributes: span.attributes,
            clues,
            beside: [
                clues.fields[Field::Operation as usize]
                    .and_then(|_| said(span.name))
                    .map(|name| ("span.name", name)),
                of_event(Clue::ExceptionType).map(|class| ("exception.type", class)),
                of_event(Clue::ExceptionMessage).map(|message| ("exception.message", message)),
                of_event(Clue::Stacktrace).map(|trace| ("exception.stacktrace", trace)),
                words,
            ],
        }
    }

    /// Of a log record; `fields` are its own, `body` is the text of its body.
    pub(super) fn of_log(
        record: &LogRecord<'a>,
        clues: &'a Clues<'a>,
        fields: &'a Fields<'a>,
        body: &'a str,
        origin: &Origin<'_>,
    ) -> Self {
        let words = record.body.and_then(Value::as_text).and_then(said).map(|text| (BODY, text));
        Self {
            fields,
            span_kind: None,
            duration_us: None,
            time_ns: record.time_ns,
            observed_ns: record.observed_ns,
            hidden: None,
            // What belongs to a span is counted there.
            counts_replies: record.span_id.is_none(),
            message: clues.message(),
            words,
            identity: Identity::of_log(record, clues, body, origin),
            attributes: record.attributes,
            clues,
            beside: [said(record.event_name).map(|name| ("event.name", name)), words, None, None, None],
        }
    }

    /// The words around an envelope that stands at a place, and has none itself.
    pub(super) fn words_around(&self, place: &str) -> Option<&'a str> {
        let elsewhere = self.words.filter(|(at, _)| *at != place).map(|(_, text)| text);
        self.message.or(elsewhere).filter(|text| !looks_like_json(text))
    }
}

/// A text that says something.
pub(super) fn said(text: &str) -> Option<&str> {
    let text = text.trim_ascii();
    (!text.is_empty()).then_some(text)
}

fn duration_us(span: &Span<'_>) -> Option<i64> {
    let nanos = span.end_ns.checked_sub(span.start_ns).filter(|_| span.start_ns > 0)?;
    i64::try_from(nanos / 1_000).ok()
}

/// Where in the telemetry something is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    /// The name of the attribute, `body`, or another place.
    pub(super) place: &'a str,
    /// The attribute that is read, and need not be kept once more.
    pub(super) consumed: Option<&'a Attribute<'a>>,
    /// The text that is read as the message.
    pub(super) message: Option<&'a str>,
}

impl Reading<'_> {
    pub(super) const NOWHERE: Self = Self { place: "", consumed: None, message: None };
}

/// What makes an event's id the same when the same thing is sent again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Identity {
    /// The place in a trace.
    Span { trace_id: [u8; 16], span_id: [u8; 8] },
    /// When and what, and where as far as that is known. Hashed once: a body may be large, and tell of much.
    Log { trace_id: [u8; 16], span_id: [u8; 8], time_ns: u64, service: u128, body: u128 },
    /// What the receiver gave it.
    Origin(u128),
}

impl Identity {
    /// Two records are the same only when their time and body are. Without ids, and without either of
    /// these, nothing tells one record from the next.
    fn of_log(record: &LogRecord<'_>, clues: &Clues<'_>, body: &str, origin: &Origin<'_>) -> Self {
        let time_ns = if record.time_ns > 0 { record.time_ns } else { record.observed_ns };
        if record.span_id.is_none() && (body.is_empty() || time_ns == 0) {
            return Self::Origin(origin.identity);
        }
        let service = clues.fields[Field::Service as usize].and_then(|service| service.value.as_text());
        Self::Log {
            trace_id: record.trace_id.unwrap_or_default(),
            span_id: record.span_id.unwrap_or_default(),
            time_ns,
            service: xxh3_128(service.unwrap_or_default().as_bytes()),
            body: xxh3_128(body.as_bytes()),
        }
    }

    /// The id of the event at a place among those of its record.
    pub(super) fn event_id(&self, canonical: &str, index: usize, buffer: &mut Vec<u8>) -> u128 {
        buffer.clear();
        match self {
            Self::Origin(identity) => return xxh3_128_with_seed(&identity.to_le_bytes(), index as u64),
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

/// Ids as telemetry writes them: hex, in small letters.
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

/// The context fields of a span or a record, as values of their own.
pub(super) struct OwnFields<'a>([Option<Single<'a>>; context::FIELDS]);

impl<'a> OwnFields<'a> {
    pub(super) fn new(clues: &Clues<'a>, ids: &'a HexIds) -> Self {
        let text = |hex: &'a [u8]| std::str::from_utf8(hex).ok().map(Single::text);
        let mut own = Self(clues.fields.map(|attribute| attribute.map(|attribute| single(&attribute.value))));
        own.set(Field::TraceId, ids.trace.as_ref().and_then(|hex| text(hex)));
        own.set(Field::SpanId, ids.span.as_ref().and_then(|hex| text(hex)));
        own
    }

    /// Sets a field to what is certain, when there is that.
    pub(super) fn set(&mut self, field: Field, value: Option<Single<'a>>) {
        let slot = &mut self.0[field as usize];
        *slot = value.or(*slot);
    }

    /// Sets a field that no attribute gives.
    pub(super) fn fill_gap(&mut self, field: Field, value: Option<Single<'a>>) {
        let slot = &mut self.0[field as usize];
        *slot = slot.or(value);
    }

    pub(super) fn json(&self) -> Fields<'_> {
        self.0.each_ref().map(|single| single.as_ref().map(Single::json))
    }
}

impl<'e> Builder<'e> {
    /// Writes what the telemetry carries beside what is read, once for all events of it; without braces.
    pub(super) fn carry(&self, frame: &Frame<'e>, scratch: &mut Scratch) {
        if scratch.is_carried {
            return;
        }
        scratch.is_carried = true;
        scratch.carried.clear();
        let mut first = true;
        let Scratch { carried: out, spare, .. } = scratch;
        for attribute in frame.attributes.iter().filter(|attribute| !self.is_consumed(frame, attribute)) {
            if out.len() > self.rules.limits.details_bytes {
                comma(out, &mut first);
                out.push_str("\"_truncated\":true");
                return;
            }
            self.carry_value(out, &mut first, &attribute.key, &attribute.value, spare);
        }
        let is_read = |key: &str, text: &str| key == self.reading.place || self.is_message(text);
        for (key, text) in frame.beside.into_iter().flatten().filter(|(key, text)| !is_read(key, text)) {
            self.carry_text(out, &mut first, key, text);
        }
    }

    fn is_message(&self, text: &str) -> bool {
        self.reading.message.is_some_and(|message| std::ptr::eq(message, text))
    }

    fn is_consumed(&self, frame: &Frame<'e>, attribute: &Attribute<'_>) -> bool {
        let is = |other: &Attribute<'_>| std::ptr::eq(other, attribute);
        frame.clues.fields.into_iter().flatten().chain(self.reading.consumed).any(is)
            || attribute.value.as_text().is_some_and(|text| self.is_message(text))
    }

    fn carry_value(
        &self,
        out: &mut String,
        first: &mut bool,
        key: &str,
        value: &Value<'_>,
        spare: &mut Parser,
    ) {
        let limits = &self.rules.limits;
        match value {
            Value::Empty => {}
            Value::Text(text) => self.carry_text(out, first, key, text),
            Value::Json(text) => {
                let write = |json: Json<'_>| {
                    self.rules.redactor.field(out, first, &self.key(key), json, limits.details_bytes);
                };
                let fits = text.len() <= limits.line_bytes;
                if !fits || spare.parse(text.as_bytes(), write).is_err() {
                    self.carry_text(out, first, key, text);
                }
            }
            scalar => {
                let json = single(scalar);
                self.rules.redactor.field(out, first, &self.key(key), json.json(), limits.details_bytes);
            }
        }
    }

    fn carry_text(&self, out: &mut String, first: &mut bool, key: &str, text: &str) {
        let end = self.rules.limits.details_bytes;
        let short;
        let mut text = text;
        if text.len() > end {
            short = self.shortened(text, end);
            text = &short;
        }
        self.rules.redactor.field(out, first, &self.key(key), Single::text(text).json(), end);
    }

    /// A key, which is redacted where it is written, cut to a bounded length.
    fn key<'k>(&self, key: &'k str) -> Cow<'k, str> {
        if key.len() > self.rules.limits.name_bytes { self.name(key) } else { key.into() }
    }
}
