//! OTLP/JSON, into the same views as the wire format.
//!
//! The request is never held as a tree: its lists are walked over raw slices of the text, so that what one
//! record costs is bounded, and a record that cannot be read is rejected alone. The structs hold the subset
//! that we read; other fields are ignored, and `null` is the same as absent.

mod fields;
mod scalar;
mod value;

use super::events::Events;
use super::{MALFORMED, Signal, id, severity, span_kind, span_status};
use crate::receive::records::Records;
use crate::{Cause, Refusal};
use fields::{Attributes, EventFields, LogFields, OfRequest, OfResource, OfScope, SpanFields, each};
use scalar::{Read, Scalar, hex};
use serde_json::value::RawValue;
use std::borrow::Cow;
use taxonomy::signal::{Attribute, LogRecord, Resource, Span};
use taxonomy::{mend_numbers, mend_surrogates};
use value::Values;

/// The names of enum values; their place is their number.
const SPAN_KINDS: [&str; 6] = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"];
const STATUS_CODES: [&str; 3] = ["UNSET", "OK", "ERROR"];
/// Each stands for four numbers: `INFO`, `INFO2`, `INFO3`, `INFO4`.
const SEVERITIES: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

/// Hands every span of `body` over.
pub(super) fn read_traces(body: &[u8], records: &mut impl Records) -> Result<(), Refusal> {
    read(body, Signal::Traces, records)
}

/// Hands every log record of `body` over.
pub(super) fn read_logs(body: &[u8], records: &mut impl Records) -> Result<(), Refusal> {
    read(body, Signal::Logs, records)
}

fn read(body: &[u8], signal: Signal, records: &mut impl Records) -> Result<(), Refusal> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Refusal::new(Cause::Unreadable, "not an OTLP request in JSON: it must be an object"));
    }
    // Half a character is not worth a span, nor is a number that is too large.
    let body = mend_surrogates(body);
    let body = mend_numbers(&body);
    let request: OfRequest<'_> = serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
    let Some(resources) = request.list(signal).map_err(|what| Refusal::new(Cause::Unreadable, what))? else {
        return Ok(());
    };
    let values = Values::new(records.limits());
    let mut walk = Walk { signal, values, number: 0, attributes: Vec::new(), events: Events::default() };
    each(resources, |resource| walk.resource(resource, records)).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    Refusal::new(Cause::Unreadable, format!("not an OTLP request in JSON: {}", mistake(error)))
}

/// What is wrong, without the text that it is wrong about: details are stored, and that may be a secret.
fn mistake(error: &serde_json::Error) -> String {
    let said = error.to_string();
    match (said.find('"'), said.rfind('"')) {
        (Some(from), Some(to)) if from < to => format!("{}\"..\"{}", &said[..from], &said[to + 1..]),
        _ => said,
    }
}

struct Walk<'a> {
    signal: Signal,
    values: Values,
    /// Records so far.
    number: u64,
    /// The lists of one record; kept to be used again.
    attributes: Vec<Attribute<'a>>,
    events: Events<'a>,
}

impl<'a> Walk<'a> {
    fn resource(&mut self, mut of: OfResource<'a>, records: &mut impl Records) -> Read<()> {
        self.values.begin();
        let mut attributes = Vec::new();
        let given = of.resource.take().and_then(|resource| resource.attributes);
        self.values.push(given, &mut attributes)?;
        let Some(scopes) = of.list(self.signal) else { return Ok(()) };
        each(scopes, |scope: OfScope<'a>| match scope.list(self.signal) {
            Some(list) => each(list, |record| {
                self.record(record, &Resource { attributes: &attributes }, records);
                Ok(())
            }),
            None => Ok(()),
        })
    }

    fn record(&mut self, record: &'a RawValue, resource: &Resource<'_>, records: &mut impl Records) {
        self.number += 1;
        self.values.begin();
        let read = match self.signal {
            Signal::Traces => self.span(record, resource, records),
            Signal::Logs => self.log(record, resource, records),
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
        records: &mut impl Records,
    ) -> Read<()> {
        let fields: SpanFields<'a> = serde_json::from_str(record.get())?;
        self.read_attributes(fields.attributes)?;
        self.read_events(fields.events)?;
        let name = text(fields.name, "name")?;
        let status = fields.status.unwrap_or_default();
        let message = text(status.message, "status.message")?;
        let span = Span {
            trace_id: id_of(fields.trace_id, "traceId")?,
            span_id: id_of(fields.span_id, "spanId")?,
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

    fn log(&mut self, record: &'a RawValue, resource: &Resource<'_>, records: &mut impl Records) -> Read<()> {
        let fields: LogFields<'a> = serde_json::from_str(record.get())?;
        self.read_attributes(fields.attributes)?;
        let body = fields.body.map(|body| self.values.value(body)).transpose()?;
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

    fn read_attributes(&mut self, attributes: Attributes<'a>) -> Read<()> {
        self.attributes.clear();
        self.values.push(attributes, &mut self.attributes)
    }

    fn read_events(&mut self, events: Option<&'a RawValue>) -> Read<()> {
        self.events.clear();
        let Some(events) = events else { return Ok(()) };
        each(events, |event: Option<EventFields<'a>>| match event {
            Some(event) if self.events.len() < self.values.kept() => self.read_event(event),
            _ => Ok(()),
        })
    }

    fn read_event(&mut self, event: EventFields<'a>) -> Read<()> {
        let first = self.events.attributes.len();
        self.values.push(event.attributes, &mut self.events.attributes)?;
        let (time_ns, name) = (time(event.time_unix_nano, "timeUnixNano")?, text(event.name, "name")?);
        self.events.push(time_ns, name, first);
        Ok(())
    }
}

fn text<'a>(given: Option<Scalar<'a>>, field: &str) -> Read<Cow<'a, str>> {
    given.map_or(Ok(Cow::Borrowed("")), |given| given.text(field))
}

fn time(given: Option<Scalar<'_>>, field: &str) -> Read<u64> {
    given.map_or(Ok(0), |given| given.unsigned(field))
}

fn choice(given: Option<Scalar<'_>>, field: &str, named: fn(&str) -> Option<i64>) -> Read<i64> {
    given.map_or(Ok(0), |given| given.choice(field, named))
}

fn id_of<const N: usize>(given: Option<Scalar<'_>>, field: &str) -> Read<Option<[u8; N]>> {
    Ok(hex::<N>(&text(given, field)?).and_then(|bytes| id(&bytes)))
}

fn kind_of(name: &str) -> Option<i64> {
    place(name.strip_prefix("SPAN_KIND_")?, &SPAN_KINDS)
}

fn status_of(name: &str) -> Option<i64> {
    place(name.strip_prefix("STATUS_CODE_")?, &STATUS_CODES)
}

/// `INFO` is 9, `INFO2` is 10, and so on.
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
