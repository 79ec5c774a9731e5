//! Extracts the context of an event (client, service, operation, time and ids) from the fields around its envelope.

use super::event_builder::EventBuilder;
use crate::context::{ContextField, millis_with_unit};
use crate::details::{DetailKey, Details};
use crate::envelope::Scope;
use crate::event::{Context, TimeSource};
use crate::json::Json;
use crate::limits::{MAX_FUTURE_US, truncate_str};
use crate::redact::CleanNames;
use crate::time;
use std::borrow::Cow;

/// The part of the context by which calls are grouped.
pub(super) struct CallContext<'a> {
    pub(super) time: i64,
    pub(super) time_source: TimeSource,
    pub(super) service: Option<Cow<'a, str>>,
    pub(super) environment: Option<Cow<'a, str>>,
    pub(super) operation: Option<Cow<'a, str>>,
    pub(super) duration_us: Option<i64>,
}

impl<'e> EventBuilder<'e> {
    /// Reads and redacts the context of a call. `details` may name the operation when the record does not.
    pub(super) fn call_context<'a>(
        &self,
        scope: &Scope<'a>,
        details: Option<&Details<'a>>,
        clean_names: &mut CleanNames,
    ) -> CallContext<'a>
    where
        'e: 'a,
    {
        let of = |field: ContextField| scope.fields[field as usize];
        let (time, time_source) = self.time(of(ContextField::Time));
        let in_details = || details.and_then(|details| details.get(DetailKey::Operation));
        let operation = match scope.operation {
            Some(operation) => {
                Some(redact_and_remember(Cow::Borrowed(operation), clean_names, |text| self.redact_cow(text)))
            }
            None => self
                .recurring_name(of(ContextField::Operation), clean_names)
                .or_else(|| self.recurring_name(in_details(), clean_names)),
        };
        let service = self.recurring_name(of(ContextField::Service), clean_names);
        let environment = self.recurring_name(of(ContextField::Environment), clean_names);
        CallContext {
            time,
            time_source,
            service: service.or(self.origin.service.map(Cow::Borrowed)),
            environment: environment.or(self.origin.environment.map(Cow::Borrowed)),
            operation,
            duration_us: self
                .telemetry
                .and_then(|telemetry| telemetry.duration_us)
                .or_else(|| of(ContextField::Duration).and_then(millis_to_micros)),
        }
    }

    /// Reads and redacts the whole context. `details` may name what the record does not.
    pub(super) fn context<'a>(
        &self,
        scope: &Scope<'a>,
        details: &Details<'a>,
        clean_names: &mut CleanNames,
    ) -> Context<'a>
    where
        'e: 'a,
    {
        let call = self.call_context(scope, Some(details), clean_names);
        let of = |field: ContextField| scope.fields[field as usize];
        let request_id =
            of(ContextField::RequestId).or(details.get(DetailKey::RequestId)).or(scope.request_id);
        Context {
            time: call.time,
            time_source: call.time_source,
            service: call.service,
            service_version: self.field(scope, ContextField::ServiceVersion),
            environment: call.environment,
            client: self.client(of(ContextField::Client), clean_names),
            operation: call.operation,
            request_id: self.identifier(request_id),
            session_id: self.identifier(of(ContextField::SessionId)),
            trace_id: self.identifier(of(ContextField::TraceId)),
            span_id: self.identifier(of(ContextField::SpanId)),
            span_kind: self.telemetry.and_then(|telemetry| telemetry.span_kind),
            duration_us: call.duration_us,
            source: self.origin.source,
        }
    }

    /// Returns a context field as a redacted name.
    fn field<'a>(&self, scope: &Scope<'a>, field: ContextField) -> Option<Cow<'a, str>>
    where
        'e: 'a,
    {
        scope.fields[field as usize].and_then(text_of).map(|text| self.redact_cow(text))
    }

    /// Returns an id as a redacted name. An id of digits alone is never treated as a card number.
    fn identifier<'a>(&self, value: Option<Json<'a>>) -> Option<Cow<'a, str>>
    where
        'e: 'a,
    {
        const LONGEST: usize = 40;
        let is_number = |text: &str| text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_digit());
        let text = text_of(value?)?;
        Some(if is_number(&text) { text } else { self.redact_cow(text) })
    }

    fn redact_cow<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str>
    where
        'e: 'a,
    {
        match text {
            Cow::Borrowed(text) => self.redact_and_truncate(text, self.rules.limits.name_bytes),
            Cow::Owned(text) => Cow::Owned(self.redact_name(&text).into_owned()),
        }
    }

    /// Returns a redacted name. Such names have few distinct values, so most of them are in the cache already.
    fn recurring_name<'a>(
        &self,
        value: Option<Json<'a>>,
        clean_names: &mut CleanNames,
    ) -> Option<Cow<'a, str>>
    where
        'e: 'a,
    {
        match value?.as_str() {
            Some(text) if clean_names.knows(text) => Some(Cow::Borrowed(text)),
            _ => Some(redact_and_remember(text_of(value?)?, clean_names, |text| self.redact_cow(text))),
        }
    }

    fn client<'a>(&self, value: Option<Json<'a>>, clean_names: &mut CleanNames) -> Option<Cow<'a, str>>
    where
        'e: 'a,
    {
        match value?.as_str() {
            Some(text) if clean_names.knows(text) => Some(Cow::Borrowed(text)),
            _ => Some(redact_and_remember(text_of(value?)?, clean_names, |text| match text {
                Cow::Borrowed(text) => {
                    self.rules.redactor.client(truncate_str(text, self.rules.limits.name_bytes))
                }
                Cow::Owned(text) => Cow::Owned(self.rules.redactor.client(&text).into_owned()),
            })),
        }
    }

    /// Returns the record's own time, or the time of arrival when the record has none or an impossible one.
    fn time(&self, value: Option<Json<'_>>) -> (i64, TimeSource) {
        let arrival = self.origin.arrival;
        let stated = self.telemetry.and_then(|telemetry| time_of(telemetry.time_ns));
        let observed = || self.telemetry.and_then(|telemetry| time_of(telemetry.observed_ns));
        match stated.or_else(|| value.map(time::read)).or_else(observed) {
            None => (arrival, TimeSource::Arrival),
            Some(Some(time)) if time <= arrival.saturating_add(MAX_FUTURE_US) => (time, TimeSource::Record),
            Some(_) => (arrival, TimeSource::Replaced),
        }
    }
}

/// Converts nanoseconds to microseconds. The outer option is `None` when no time is stated, the inner one
/// when it is out of range.
fn time_of(nanos: u64) -> Option<Option<i64>> {
    (nanos > 0).then(|| i64::try_from(nanos / 1_000).ok())
}

/// Redacts a name, and caches it when redaction leaves it unchanged.
fn redact_and_remember<'a>(
    text: Cow<'a, str>,
    clean_names: &mut CleanNames,
    redact: impl FnOnce(Cow<'a, str>) -> Cow<'a, str>,
) -> Cow<'a, str> {
    let Cow::Borrowed(name) = text else { return redact(text) };
    let redact_cow = redact(text);
    // A cached name needs no trimming later on.
    if redact_cow == name.trim_ascii() {
        clean_names.remember(name);
    }
    redact_cow
}

/// Returns a name as text. A name may be a number, or an object that has a `name` or an `id`.
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

/// Converts milliseconds, written as a number or a text, to microseconds.
#[allow(clippy::cast_possible_truncation)]
fn millis_to_micros(value: Json<'_>) -> Option<i64> {
    let written = |text: &str| text.trim().parse().ok().or_else(|| millis_with_unit(text));
    let millis = value.as_f64().or_else(|| written(value.as_str()?))?;
    let sane = millis.is_finite() && (0.0..1e12).contains(&millis);
    sane.then_some((millis * 1000.0).round() as i64)
}
