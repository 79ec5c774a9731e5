//! Requests of OTLP/JSON, taken apart as a collector would do it.

use classifier::telemetry::{Attribute, LogRecord, Resource, Span, SpanEvent, SpanKind, SpanStatus, Value};
use classifier::{Classifier, RecordOrigin, Sink};
use serde_json::Value as Json;
use std::borrow::Cow;

/// Classifies the spans and log records of a request.
pub(crate) fn classify(classifier: &mut Classifier, request: &Json, sink: &mut impl Sink) {
    for group in items(request, "resourceSpans") {
        let attributes = attributes(&group["resource"]);
        let resource = Resource { attributes: &attributes };
        for span in items(group, "scopeSpans").flat_map(|scope| items(scope, "spans")) {
            classify_span(classifier, span, &resource, sink);
        }
    }
    for group in items(request, "resourceLogs") {
        let attributes = attributes(&group["resource"]);
        let resource = Resource { attributes: &attributes };
        for record in items(group, "scopeLogs").flat_map(|scope| items(scope, "logRecords")) {
            classify_log(classifier, record, &resource, sink);
        }
    }
}

fn classify_span(classifier: &mut Classifier, span: &Json, resource: &Resource<'_>, sink: &mut impl Sink) {
    let own = attributes(span);
    let of_events: Vec<_> =
        items(span, "events").map(|event| (text(event, "name"), attributes(event))).collect();
    let events: Vec<_> =
        of_events.iter().map(|(name, attributes)| SpanEvent { time_ns: 0, name, attributes }).collect();
    let span = Span {
        kind: match span["kind"].as_i64() {
            Some(1) => SpanKind::Internal,
            Some(2) => SpanKind::Server,
            Some(3) => SpanKind::Client,
            Some(4) => SpanKind::Producer,
            Some(5) => SpanKind::Consumer,
            _ => SpanKind::Unspecified,
        },
        name: text(span, "name"),
        start_ns: number(span, "startTimeUnixNano"),
        end_ns: number(span, "endTimeUnixNano"),
        status: match span["status"]["code"].as_i64() {
            Some(1) => SpanStatus::Ok,
            Some(2) => SpanStatus::Error,
            _ => SpanStatus::Unset,
        },
        status_message: text(&span["status"], "message"),
        attributes: &own,
        events: &events,
        ..Span::default()
    };
    classifier.span(&span, resource, &RecordOrigin::default(), sink);
}

fn classify_log(classifier: &mut Classifier, record: &Json, resource: &Resource<'_>, sink: &mut impl Sink) {
    let own = attributes(record);
    let body = value(&record["body"]);
    let record = LogRecord {
        time_ns: number(record, "timeUnixNano"),
        severity: record["severityNumber"]
            .as_i64()
            .and_then(|severity| severity.try_into().ok())
            .unwrap_or(0),
        event_name: text(record, "eventName"),
        body: Some(&body),
        attributes: &own,
        ..LogRecord::default()
    };
    classifier.log(&record, resource, &RecordOrigin::default(), sink);
}

fn items<'j>(json: &'j Json, key: &str) -> impl Iterator<Item = &'j Json> {
    json[key].as_array().into_iter().flatten()
}

fn text<'j>(json: &'j Json, key: &str) -> &'j str {
    json[key].as_str().unwrap_or_default()
}

fn number(json: &Json, key: &str) -> u64 {
    text(json, key).parse().unwrap_or(0)
}

fn attributes(json: &Json) -> Vec<Attribute<'_>> {
    let attribute = |item| Attribute { key: Cow::Borrowed(text(item, "key")), value: value(&item["value"]) };
    items(json, "attributes").map(attribute).collect()
}

/// Returns the value of an attribute or a body; 64-bit numbers may be texts.
fn value(json: &Json) -> Value<'_> {
    let Some((kind, value)) = json.as_object().and_then(|value| value.iter().next()) else {
        return Value::Empty;
    };
    match (kind.as_str(), value) {
        ("stringValue", Json::String(text)) => Value::Text(Cow::Borrowed(text)),
        ("boolValue", Json::Bool(value)) => Value::Bool(*value),
        ("intValue", Json::String(digits)) => digits.parse().map_or(Value::Empty, Value::Int),
        ("intValue", value) => value.as_i64().map_or(Value::Empty, Value::Int),
        ("doubleValue", value) => value.as_f64().map_or(Value::Empty, Value::Double),
        _ => Value::Json(Cow::Owned(value.to_string())),
    }
}
