//! Decodes OTLP/JSON to the same views as protobuf.
//!
//! The request is never held as a tree: its lists are walked over raw slices of the text, so that the memory for one
//! record is bounded, and a record that cannot be decoded is rejected alone. The structs have only the fields that are
//! needed; other fields are ignored, and `null` is the same as absent.

mod metrics;
mod scalar;
mod schema;
mod value;

use super::span_events::SpanEventBuffer;
use super::{MALFORMED, Signal, id, severity, span_kind, span_status};
use crate::receivers::otlp::any_value::ValueReader;
use crate::receivers::record_consumer::RecordConsumer;
use crate::{Rejection, RejectionReason};
use classifier::telemetry::{Attribute, LogRecord, Resource, Span};
use classifier::{quote_oversized_numbers, replace_lone_surrogates};
use scalar::{JsonResult, Scalar, hex};
use schema::{
    Attributes, EventFields, ExportRequest, LogFields, ResourceEntry, ScopeEntry, SpanFields, each,
};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The names of enum values; the index of a name is its number.
const SPAN_KINDS: [&str; 6] = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"];
const STATUS_CODES: [&str; 3] = ["UNSET", "OK", "ERROR"];
/// The names of severities; each covers four numbers: `INFO`, `INFO2`, `INFO3`, `INFO4`.
const SEVERITIES: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

/// Passes every span of `body` to `records`.
pub(super) fn read_traces(body: &[u8], records: &mut impl RecordConsumer) -> Result<(), Rejection> {
    read(body, Signal::Traces, records)
}

/// Passes every log record of `body` to `records`.
pub(super) fn read_logs(body: &[u8], records: &mut impl RecordConsumer) -> Result<(), Rejection> {
    read(body, Signal::Logs, records)
}

/// Passes every data point of `body` to `records`.
pub(super) fn read_metrics(body: &[u8], records: &mut impl RecordConsumer) -> Result<(), Rejection> {
    read(body, Signal::Metrics, records)
}

fn read(body: &[u8], signal: Signal, records: &mut impl RecordConsumer) -> Result<(), Rejection> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Rejection::new(
            RejectionReason::Unreadable,
            "not an OTLP request in JSON: it must be an object",
        ));
    }
    // A lone surrogate or an oversized number must not cause a rejection, so both are repaired first.
    let body = replace_lone_surrogates(body);
    let body = quote_oversized_numbers(&body);
    let request: ExportRequest<'_> = serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
    let Some(resources) =
        request.list(signal).map_err(|what| Rejection::new(RejectionReason::Unreadable, what))?
    else {
        return Ok(());
    };
    let values = ValueReader::new(records.limits());
    let mut walk = RequestReader {
        signal,
        values,
        number: 0,
        attributes: Vec::new(),
        events: SpanEventBuffer::default(),
    };
    each(resources, |resource| walk.resource(resource, records)).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Rejection {
    Rejection::new(RejectionReason::Unreadable, format!("not an OTLP request in JSON: {}", mistake(error)))
}

/// Returns the message of a JSON error without the text it quotes: details are stored, and that text may be a secret.
fn mistake(error: &serde_json::Error) -> String {
    let said = error.to_string();
    match (said.find('"'), said.rfind('"')) {
        (Some(from), Some(to)) if from < to => format!("{}\"..\"{}", &said[..from], &said[to + 1..]),
        _ => said,
    }
}

struct RequestReader<'a> {
    signal: Signal,
    values: ValueReader,
    /// The number of records so far.
    number: u64,
    /// The attributes of one record; the list is reused for the next.
    attributes: Vec<Attribute<'a>>,
    events: SpanEventBuffer<'a>,
}

impl<'a> RequestReader<'a> {
    fn resource(&mut self, mut of: ResourceEntry<'a>, records: &mut impl RecordConsumer) -> JsonResult<()> {
        self.values.begin();
        let mut attributes = Vec::new();
        let given = of.resource.take().and_then(|resource| resource.attributes);
        self.values.push_fields(given, &mut attributes)?;
        let Some(scopes) = of.list(self.signal) else { return Ok(()) };
        each(scopes, |scope: ScopeEntry<'a>| match scope.list(self.signal) {
            Some(list) => each(list, |record| {
                self.record(record, &Resource { attributes: &attributes }, records);
                Ok(())
            }),
            None => Ok(()),
        })
    }

    fn record(&mut self, record: &'a RawValue, resource: &Resource<'_>, records: &mut impl RecordConsumer) {
        self.number += 1;
        self.values.begin();
        let read = match self.signal {
            Signal::Traces => self.span(record, resource, records),
            Signal::Logs => self.log(record, resource, records),
            Signal::Metrics => self.metric(record, resource, records),
        };
        if let Err(error) = read {
            let detail =
                format!("{}, counted from where it begins; send it as OTLP defines it", mistake(&error));
            records.reject(self.number, MALFORMED, detail, record.get().as_bytes());
        }
    }

    fn span(
        &mut self,
        record: &'a RawValue,
        resource: &Resource<'_>,
        records: &mut impl RecordConsumer,
    ) -> JsonResult<()> {
        let fields: SpanFields<'a> = serde_json::from_str(record.get())?;
        self.read_attributes(fields.attributes)?;
        self.read_events(fields.events)?;
        let name = text(fields.name, "name")?;
        let status = fields.status.unwrap_or_default();
        let message = text(status.message, "status.message")?;
        let span = Span {
            trace_id: id_of(fields.trace_id, "traceId")?,
            span_id: id_of(fields.span_id, "spanId")?,
            parent_span_id: id_of(fields.parent_span_id, "parentSpanId")?,
            kind: span_kind(choice(fields.kind, "kind", kind_of)?),
            name: &name,
            start_ns: time(fields.start_time_unix_nano, "startTimeUnixNano")?,
            end_ns: time(fields.end_time_unix_nano, "endTimeUnixNano")?,
            status: span_status(choice(status.code, "status.code", status_of)?),
            status_message: &message,
            attributes: &self.attributes,
            events: &self.events.views(),
        };
        records.span(&span, resource);
        Ok(())
    }

    fn log(
        &mut self,
        record: &'a RawValue,
        resource: &Resource<'_>,
        records: &mut impl RecordConsumer,
    ) -> JsonResult<()> {
        let fields: LogFields<'a> = serde_json::from_str(record.get())?;
        self.read_attributes(fields.attributes)?;
        let body = fields.body.map(|body| self.values.value_of_fields(body)).transpose()?;
        let event_name = text(fields.event_name, "eventName")?;
        let record = LogRecord {
            time_ns: time(fields.time_unix_nano, "timeUnixNano")?,
            observed_ns: time(fields.observed_time_unix_nano, "observedTimeUnixNano")?,
            severity: severity(choice(fields.severity_number, "severityNumber", severity_of)?),
            event_name: &event_name,
            body: body.as_ref(),
            attributes: &self.attributes,
            trace_id: id_of(fields.trace_id, "traceId")?,
            span_id: id_of(fields.span_id, "spanId")?,
        };
        records.log(&record, resource);
        Ok(())
    }

    fn read_attributes(&mut self, attributes: Attributes<'a>) -> JsonResult<()> {
        self.attributes.clear();
        self.values.push_fields(attributes, &mut self.attributes)
    }

    fn read_events(&mut self, events: Option<&'a RawValue>) -> JsonResult<()> {
        self.events.clear();
        let Some(events) = events else { return Ok(()) };
        each(events, |event: Option<EventFields<'a>>| match event {
            Some(event) if self.events.len() < self.values.max_attributes() => self.read_event(event),
            _ => Ok(()),
        })
    }

    fn read_event(&mut self, event: EventFields<'a>) -> JsonResult<()> {
        let first = self.events.attributes.len();
        self.values.push_fields(event.attributes, &mut self.events.attributes)?;
        let (time_ns, name) = (time(event.time_unix_nano, "timeUnixNano")?, text(event.name, "name")?);
        self.events.push(time_ns, name, first);
        Ok(())
    }
}

fn text<'a>(given: Option<Scalar<'a>>, field: &str) -> JsonResult<Cow<'a, str>> {
    given.map_or(Ok(Cow::Borrowed("")), |given| given.text(field))
}

fn time(given: Option<Scalar<'_>>, field: &str) -> JsonResult<u64> {
    given.map_or(Ok(0), |given| given.unsigned(field))
}

fn choice(given: Option<Scalar<'_>>, field: &str, named: fn(&str) -> Option<i64>) -> JsonResult<i64> {
    given.map_or(Ok(0), |given| given.choice(field, named))
}

fn id_of<const N: usize>(given: Option<Scalar<'_>>, field: &str) -> JsonResult<Option<[u8; N]>> {
    Ok(hex::<N>(&text(given, field)?).and_then(|bytes| id(&bytes)))
}

fn kind_of(name: &str) -> Option<i64> {
    place(name.strip_prefix("SPAN_KIND_")?, &SPAN_KINDS)
}

fn status_of(name: &str) -> Option<i64> {
    place(name.strip_prefix("STATUS_CODE_")?, &STATUS_CODES)
}

/// Returns the number of a severity name: 9 for `INFO`, 10 for `INFO2`, and so on.
fn severity_of(name: &str) -> Option<i64> {
    let name = name.strip_prefix("SEVERITY_NUMBER_")?;
    let (word, step) = match name.as_bytes().last()? {
        digit @ b'2'..=b'4' => (name.get(..name.len() - 1)?, i64::from(digit - b'1')),
        _ => (name, 0),
    };
    Some(place(word, &SEVERITIES)? * 4 + 1 + step)
}

fn place(name: &str, names: &[&str]) -> Option<i64> {
    names.iter().position(|known| *known == name).and_then(|place| i64::try_from(place).ok())
}

#[cfg(test)]
mod tests;
