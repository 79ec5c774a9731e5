//! Who, where and when: the context of an event, from the fields around its envelope.

use super::build::Builder;
use crate::context::Field;
use crate::details::{Details, Key};
use crate::envelope::Scope;
use crate::event::{Context, TimeSource};
use crate::json::Json;
use crate::limits::{FUTURE_US, cut};
use crate::redact::CleanNames;
use crate::time;
use std::borrow::Cow;

/// Where and when: what calls are counted by.
pub(super) struct Place<'a> {
    pub(super) time: i64,
    pub(super) time_source: TimeSource,
    pub(super) service: Option<Cow<'a, str>>,
    pub(super) environment: Option<Cow<'a, str>>,
    pub(super) operation: Option<Cow<'a, str>>,
    pub(super) duration_us: Option<i64>,
}

impl<'e> Builder<'e> {
    /// Reads and redacts the place; `details` may name the operation when the record does not.
    pub(super) fn place<'a>(
        &self,
        scope: &Scope<'a>,
        details: Option<&Details<'a>>,
        clean: &mut CleanNames,
    ) -> Place<'a>
    where
        'e: 'a,
    {
        let of = |field: Field| scope.fields[field as usize];
        let (time, time_source) = self.time(of(Field::Time));
        let in_details = || details.and_then(|details| details.get(Key::Operation));
        let operation = match scope.operation {
            Some(operation) => Some(learned(Cow::Borrowed(operation), clean, |text| self.redacted(text))),
            None => {
                self.recurring(of(Field::Operation), clean).or_else(|| self.recurring(in_details(), clean))
            }
        };
        let service = self.recurring(of(Field::Service), clean);
        let environment = self.recurring(of(Field::Environment), clean);
        Place {
            time,
            time_source,
            service: service.or(self.origin.service.map(Cow::Borrowed)),
            environment: environment.or(self.origin.environment.map(Cow::Borrowed)),
            operation,
            duration_us: self
                .frame
                .and_then(|frame| frame.duration_us)
                .or_else(|| of(Field::Duration).and_then(micros)),
        }
    }

    /// Reads and redacts the whole context; `details` may name what the record does not.
    pub(super) fn context<'a>(
        &self,
        scope: &Scope<'a>,
        details: &Details<'a>,
        clean: &mut CleanNames,
    ) -> Context<'a>
    where
        'e: 'a,
    {
        let place = self.place(scope, Some(details), clean);
        let of = |field: Field| scope.fields[field as usize];
        let request_id = of(Field::RequestId).or(details.get(Key::RequestId));
        Context {
            time: place.time,
            time_source: place.time_source,
            service: place.service,
            service_version: self.field(scope, Field::ServiceVersion),
            environment: place.environment,
            client: self.client(of(Field::Client), clean),
            operation: place.operation,
            request_id: self.identifier(request_id),
            session_id: self.identifier(of(Field::SessionId)),
            trace_id: self.identifier(of(Field::TraceId)),
            span_id: self.identifier(of(Field::SpanId)),
            span_kind: self.frame.and_then(|frame| frame.span_kind),
            duration_us: place.duration_us,
            source: self.origin.source,
        }
    }

    /// A context field as a redacted name.
    fn field<'a>(&self, scope: &Scope<'a>, field: Field) -> Option<Cow<'a, str>>
    where
        'e: 'a,
    {
        scope.fields[field as usize].and_then(text_of).map(|text| self.redacted(text))
    }

    /// An id as a redacted name; one of digits alone is no card number, whatever its digits are.
    fn identifier<'a>(&self, value: Option<Json<'a>>) -> Option<Cow<'a, str>>
    where
        'e: 'a,
    {
        const LONGEST: usize = 40;
        let is_number = |text: &str| text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_digit());
        let text = text_of(value?)?;
        Some(if is_number(&text) { text } else { self.redacted(text) })
    }

    fn redacted<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str>
    where
        'e: 'a,
    {
        match text {
            Cow::Borrowed(text) => self.shortened(text, self.rules.limits.name_bytes),
            Cow::Owned(text) => Cow::Owned(self.name(&text).into_owned()),
        }
    }

    /// The same, for a name of which there are few: most are known already.
    fn recurring<'a>(&self, value: Option<Json<'a>>, clean: &mut CleanNames) -> Option<Cow<'a, str>>
    where
        'e: 'a,
    {
        match value?.as_str() {
            Some(text) if clean.knows(text) => Some(Cow::Borrowed(text)),
            _ => Some(learned(text_of(value?)?, clean, |text| self.redacted(text))),
        }
    }

    fn client<'a>(&self, value: Option<Json<'a>>, clean: &mut CleanNames) -> Option<Cow<'a, str>>
    where
        'e: 'a,
    {
        match value?.as_str() {
            Some(text) if clean.knows(text) => Some(Cow::Borrowed(text)),
            _ => Some(learned(text_of(value?)?, clean, |text| match text {
                Cow::Borrowed(text) => self.rules.redactor.client(cut(text, self.rules.limits.name_bytes)),
                Cow::Owned(text) => Cow::Owned(self.rules.redactor.client(&text).into_owned()),
            })),
        }
    }

    /// The record's own time, unless it cannot be one.
    fn time(&self, value: Option<Json<'_>>) -> (i64, TimeSource) {
        let arrival = self.origin.arrival;
        let said = self.frame.and_then(|frame| time_of(frame.time_ns));
        let observed = || self.frame.and_then(|frame| time_of(frame.observed_ns));
        match said.or_else(|| value.map(time::read)).or_else(observed) {
            None => (arrival, TimeSource::Arrival),
            Some(Some(time)) if time <= arrival.saturating_add(FUTURE_US) => (time, TimeSource::Record),
            Some(_) => (arrival, TimeSource::Replaced),
        }
    }
}

/// A time in nanoseconds, if it is said and can be one.
fn time_of(nanos: u64) -> Option<Option<i64>> {
    (nanos > 0).then(|| i64::try_from(nanos / 1_000).ok())
}

/// Redacts a name, and remembers one that stays as it is.
fn learned<'a>(
    text: Cow<'a, str>,
    clean: &mut CleanNames,
    redact: impl FnOnce(Cow<'a, str>) -> Cow<'a, str>,
) -> Cow<'a, str> {
    let Cow::Borrowed(name) = text else { return redact(text) };
    let redacted = redact(text);
    // What is known need not be trimmed again.
    if redacted == name.trim_ascii() {
        clean.remember(name);
    }
    redacted
}

/// A name may be a number, or an object that has a name.
fn text_of(value: Json<'_>) -> Option<Cow<'_, str>> {
    if let Some(text) = value.as_str() {
        let text = text.trim_ascii();
        return (!text.is_empty()).then_some(Cow::Borrowed(text));
    }
    if let Some(number) = value.as_i64() {
        return Some(Cow::Owned(number.to_string()));
    }
    let name = value.get("name").or_else(|| value.get("id"))?.as_str()?;
    Some(Cow::Borrowed(name))
}

/// Milliseconds, as a number or a text, in microseconds.
#[allow(clippy::cast_possible_truncation)]
fn micros(value: Json<'_>) -> Option<i64> {
    let millis = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    let sane = millis.is_finite() && (0.0..1e12).contains(&millis);
    sane.then_some((millis * 1000.0).round() as i64)
}
