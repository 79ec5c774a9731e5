//! Helpers for span and log record tests, and the rules that both must satisfy: no secrets, stable ids, bounds.

use super::*;
use crate::telemetry::{Attribute, LogRecord, Resource, Span, SpanEvent, SpanKind, SpanStatus, Value};
use proptest::prelude::*;
use serde_json::json;

pub(super) fn value(json: &serde_json::Value) -> Value<'static> {
    match json {
        serde_json::Value::Null => Value::Empty,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => {
            number.as_i64().map_or_else(|| Value::Double(number.as_f64().expect("a number")), Value::Int)
        }
        serde_json::Value::String(text) => Value::Text(text.clone().into()),
        other => Value::Json(other.to_string().into()),
    }
}

/// Returns the attributes that a JSON object describes.
pub(super) fn attributes(json: &serde_json::Value) -> Vec<Attribute<'static>> {
    let fields = json.as_object().expect("an object");
    fields.iter().map(|(key, json)| Attribute { key: key.clone().into(), value: value(json) }).collect()
}

/// A sink that also keeps failed calls, because the call of a span does not repeat its event.
#[derive(Default)]
pub(super) struct TelemetrySink {
    pub(super) summaries: SummarySink,
    pub(super) events: JsonSink,
}

impl Sink for TelemetrySink {
    fn event(&mut self, event: &Event<'_>) {
        self.summaries.event(event);
        self.events.event(event);
    }

    fn call(&mut self, call: &Call<'_>) {
        let kind = call.span_kind.map(|kind| format!(" {kind}")).unwrap_or_default();
        let operation = call.operation.map(|operation| format!(" {operation}")).unwrap_or_default();
        self.summaries.0.push(format!("call {} {}{kind}{operation}", call.outcome, call.dialect));
    }

    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        self.summaries.unrecognized(reason);
    }
}

impl TelemetrySink {
    /// Returns the only event.
    #[track_caller]
    pub(super) fn event(&self) -> &serde_json::Value {
        assert_eq!(self.events.0.len(), 1, "{:?}", self.summaries.0);
        &self.events.0[0]
    }

    /// Checks some fields of the only event; `null` means absent.
    #[track_caller]
    pub(super) fn check(&self, expected: &serde_json::Value) {
        for (key, value) in expected.as_object().expect("an object") {
            assert_eq!(self.event().get(key).unwrap_or(&serde_json::Value::Null), value, "{key}");
        }
    }
}

pub(super) const TRACE: Option<[u8; 16]> = Some([0xAB; 16]);
pub(super) const SPAN: Option<[u8; 8]> = Some([0xC1; 8]);
/// The start of a call in nanoseconds, on a day in 2026. The end is 2.5 ms later.
pub(super) const START: u64 = 1_794_820_830_000_000_000;
pub(super) const END: u64 = START + 2_500_000;

/// Classifies a server span. `change` adapts it to the test.
pub(super) fn classify_server_span(
    change: impl FnOnce(&mut Span<'_>),
    input: &serde_json::Value,
) -> TelemetrySink {
    let attributes = attributes(input);
    let mut span = Span {
        trace_id: TRACE,
        span_id: SPAN,
        kind: SpanKind::Server,
        name: "tools/call",
        start_ns: START,
        end_ns: END,
        ..Span::default()
    };
    span.attributes = &attributes;
    change(&mut span);
    classify_span(&span)
}

pub(super) fn classify_span(span: &Span<'_>) -> TelemetrySink {
    let resource = attributes(&json!({"service.name": "shop", "host.name": "n1"}));
    let mut output = TelemetrySink::default();
    Classifier::new(rules("")).span(span, &Resource { attributes: &resource }, &origin(), &mut output);
    output
}

/// Classifies a log record without ids.
pub(super) fn classify_log_with(
    change: impl FnOnce(&mut LogRecord<'_>),
    body: &serde_json::Value,
    input: &serde_json::Value,
) -> TelemetrySink {
    let (attributes, body) = (attributes(input), value(body));
    let mut record = LogRecord { time_ns: START, body: Some(&body), ..LogRecord::default() };
    record.attributes = &attributes;
    change(&mut record);
    classify_log(&record, &origin())
}

pub(super) fn classify_log(record: &LogRecord<'_>, origin: &RecordOrigin<'_>) -> TelemetrySink {
    let resource = attributes(&json!({"service.name": "shop"}));
    let mut output = TelemetrySink::default();
    Classifier::new(rules("")).log(record, &Resource { attributes: &resource }, origin, &mut output);
    output
}

#[test]
fn no_canary_comes_out_of_any_field() {
    for secret in hostile_input::CANARY_SECRETS {
        let with_secret = |text: &str| format!("{text} {secret} end");
        let input = json!({
            "rpc.response.status_code": "-32602",
            "gen_ai.tool.name": with_secret("tool"),
            "mcp.session.id": with_secret("s"),
            "jsonrpc.request.id": with_secret("r"),
            "enduser.id": with_secret("u"),
            "exception.type": with_secret("T"),
            "exception.stacktrace": with_secret("at x"),
            "http.url": with_secret("u"),
            "list": [with_secret("a"), {"k": with_secret("b")}],
            "text": json!({"nested": with_secret("c")}).to_string(),
            (with_secret("key")): 1,
        });
        let attributes = attributes(&input);
        let resource = telemetry::attributes(&json!({
            "service.name": with_secret("svc"), "service.version": with_secret("1"),
            "deployment.environment": with_secret("prod"), (with_secret("key")): with_secret("x"),
        }));
        let resource = Resource { attributes: &resource };
        let (name, message) = (with_secret("name"), with_secret("message"));
        let event = SpanEvent { time_ns: 1, name: &name, attributes: &attributes };
        let exception = SpanEvent { name: "exception", ..event };
        let envelope = json!({"success": false, "error": {"code": "ODD", "message": with_secret("m")}, "host": with_secret("h"), (with_secret("k")): 1});
        let bodies = [
            value(&json!(with_secret("failed"))),
            value(&envelope),
            value(&json!(format!("error={secret} x=\"{}\"", with_secret("y")))),
        ];
        let mut output = TelemetrySink::default();
        let mut classifier = Classifier::new(rules(""));
        for status in [SpanStatus::Error, SpanStatus::Unset] {
            for events in [&[event][..], &[exception], &[]] {
                for attributes in [&attributes[..], &[]] {
                    let span = Span {
                        name: &name,
                        status,
                        status_message: &message,
                        attributes,
                        events,
                        ..Span::default()
                    };
                    classifier.span(&span, &resource, &origin(), &mut output);
                }
            }
        }
        for body in &bodies {
            for attributes in [&attributes[..], &[]] {
                let record = LogRecord {
                    severity: 17,
                    event_name: &name,
                    body: Some(body),
                    attributes,
                    ..LogRecord::default()
                };
                classifier.log(&record, &resource, &origin(), &mut output);
            }
        }
        assert!(output.events.0.len() >= 12, "{}", output.events.0.len());
        for event in output.events.0 {
            let text = event.to_string().to_lowercase();
            assert!(!text.contains("canary"), "{secret} in {text}");
        }
        for summary in output.summaries.0 {
            assert!(!summary.to_lowercase().contains("canary"), "{secret} in {summary}");
        }
    }
}

/// Arguments and similar values often arrive as JSON in a text.
#[test]
fn secrets_are_known_by_their_keys() {
    let input = json!({
        "error.type": "x", "api_key": "hunter2", "token": "hunter2", "args": {"password": "hunter2"},
        "gen_ai.tool.call.arguments": r#"{"user":"u","password":"hunter2","nested":{"api_key": "hunter2"}}"#,
    });
    let output = classify_server_span(|span| span.status_message = r#"{"password":"hunter2"}"#, &input);
    assert!(!output.event().to_string().contains("hunter2"), "{}", output.event());
    let output =
        classify_log_with(|record| record.severity = 17, &json!(r#"{"a":{"password":"hunter2"}}"#), &input);
    assert!(!output.event().to_string().contains("hunter2"), "{}", output.event());
}

#[test]
fn a_span_that_is_sent_again_has_the_same_ids() {
    let ids = |trace: u8, code: &str, identity: u128| {
        let attributes = attributes(&json!({"rpc.response.status_code": code}));
        let span =
            Span { trace_id: Some([trace; 16]), span_id: SPAN, attributes: &attributes, ..Span::default() };
        let mut sink = JsonSink::default();
        let origin = RecordOrigin { identity, ..origin() };
        Classifier::new(rules("")).span(&span, &Resource::default(), &origin, &mut sink);
        sink.0[0]["event_id"].clone()
    };
    assert_eq!(ids(1, "-32602", 1), ids(1, "-32602", 2), "whatever the request it came in");
    assert_ne!(ids(1, "-32602", 1), ids(2, "-32602", 1));
    assert_ne!(ids(1, "-32602", 1), ids(1, "-32603", 1), "another canonical code");
}

#[test]
fn a_span_without_ids_has_the_identity_of_its_origin() {
    let ids = |identity: u128| {
        let span = Span { status: SpanStatus::Error, trace_id: TRACE, ..Span::default() };
        let mut sink = JsonSink::default();
        let origin = RecordOrigin { identity, ..origin() };
        Classifier::new(rules("")).span(&span, &Resource::default(), &origin, &mut sink);
        sink.0[0]["event_id"].clone()
    };
    assert_eq!(ids(1), ids(1));
    assert_ne!(ids(1), ids(2));
}

#[test]
fn log_records_are_the_same_only_with_time_and_body() {
    let id = |trace_id, span_id, time_ns, body: &str, identity| {
        let body = Value::Text(body.to_owned().into());
        let record =
            LogRecord { trace_id, span_id, time_ns, severity: 17, body: Some(&body), ..LogRecord::default() };
        let output = classify_log(&record, &RecordOrigin { identity, ..origin() });
        output.event()["event_id"].clone()
    };
    for (trace, span) in [(TRACE, SPAN), (None, None)] {
        let first = id(trace, span, START, "boom a", 1);
        assert_eq!(id(trace, span, START, "boom a", 2), first, "whatever the request it came in");
        assert_ne!(id(trace, span, START + 1, "boom a", 1), first);
        assert_ne!(id(trace, span, START, "boom b", 1), first);
    }
    assert_ne!(id(None, None, START, "", 1), id(None, None, START, "", 2), "nothing else tells them apart");
    assert_ne!(id(None, None, 0, "boom", 1), id(None, None, 0, "boom", 2), "nothing else tells them apart");
}

#[test]
fn texts_over_the_bounds_are_counted_and_not_looked_into() {
    let long = format!("{{\"success\":false,\"x\":\"{}\"}}", "x".repeat(1 << 20));
    let output = classify_server_span(|_| (), &json!({"gen_ai.tool.call.result": long}));
    assert_eq!(output.summaries.0, ["? too_long", "call ok unknown server tools/call"]);
    let deep = "[".repeat(100_000);
    let output = classify_server_span(|_| (), &json!({"gen_ai.tool.call.result": deep}));
    assert_eq!(output.summaries.0, ["? too_deep", "call ok unknown server tools/call"]);
    assert_eq!(classify_log_with(|_| (), &json!(long), &json!({})).summaries.0, ["? too_long"]);
    assert_eq!(classify_log_with(|_| (), &json!(deep), &json!({})).summaries.0, ["? too_deep"]);
    let nested =
        (0..8).fold(r#"{"success":false}"#.to_owned(), |inner, _| json!({"result": inner}).to_string());
    let output = classify_server_span(|_| (), &json!({"gen_ai.tool.call.result": nested}));
    assert_eq!(output.summaries.0, ["? too_many_levels", "call ok unknown server tools/call"]);
}

#[test]
fn what_many_events_write_is_bounded() {
    let items = vec![r#"{"result":{"success":false,"error":{"code":"INTERNAL_ERROR"}}}"#; 16_000].join(",");
    let result = format!(r#"{{"success":true,"results":[{items}]}}"#);
    let mut input =
        json!({"gen_ai.tool.call.result": result, "exception.stacktrace": "at f\n".repeat(100_000)});
    for n in 0..200 {
        input[format!("key{n}")] = "x".repeat(5_000).into();
    }
    let output = classify_server_span(|_| (), &input);
    let bytes: usize = output.events.0.iter().map(|event| event.to_string().len()).sum();
    assert_eq!(output.events.0.len(), 16_000);
    assert!(bytes < 20 << 20, "{bytes}");
    assert!(output.events.0[0]["attributes"]["_truncated"].as_bool().expect("a mark"));
}

fn any_value() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        Just(Value::Empty),
        any::<i64>().prop_map(Value::Int),
        (-32_100_i64..600).prop_map(Value::Int),
        any::<f64>().prop_map(Value::Double),
        any::<bool>().prop_map(Value::Bool),
        "\\PC{0,40}".prop_map(|text| Value::Text(text.into())),
        hostile_input::near_envelope().prop_map(|json| Value::Text(json.to_string().into())),
        hostile_input::near_envelope().prop_map(|json| Value::Json(json.to_string().into())),
        "\\PC{0,20}".prop_map(|text| Value::Json(text.into())),
        prop::sample::select(vec![
            "OK",
            "NOT_FOUND",
            "tool_error",
            "_OTHER",
            "-32602",
            "grpc",
            "404",
            "a.b.CError"
        ])
        .prop_map(|text| Value::Text(text.into())),
    ]
}

fn any_attributes() -> impl Strategy<Value = Vec<Attribute<'static>>> {
    let known = prop::sample::select(vec![
        "gen_ai.tool.call.result",
        "traceloop.entity.output",
        "mcp.tool.result.content",
        "error.code",
        "rpc.response.status_code",
        "rpc.status_code",
        "rpc.system",
        "error.type",
        "error.message",
        "exception.type",
        "exception.message",
        "exception.stacktrace",
        "http.response.status_code",
        "service.name",
        "gen_ai.tool.name",
        "mcp.method.name",
        "enduser.id",
        "password",
    ])
    .prop_map(str::to_owned);
    let key = prop_oneof![known, "\\PC{0,12}"];
    let attribute = (key, any_value()).prop_map(|(key, value)| Attribute { key: key.into(), value });
    prop::collection::vec(attribute, 0..10)
}

proptest! {
    #[test]
    fn any_span_gives_the_same_valid_json_twice(
        input in any_attributes(), other in any_attributes(), resource in any_attributes(),
        status in 0..3, times in any::<(u64, u64)>(), words in "\\PC{0,30}", has_ids in any::<bool>(),
    ) {
        let events = [SpanEvent { time_ns: times.0, name: "exception", attributes: &other }];
        let span = Span {
            trace_id: TRACE.filter(|_| has_ids),
            span_id: SPAN,
            name: &words,
            start_ns: times.0,
            end_ns: times.1,
            status: [SpanStatus::Unset, SpanStatus::Ok, SpanStatus::Error][usize::try_from(status).expect("small")],
            status_message: &words,
            attributes: &input,
            events: &events,
            ..Span::default()
        };
        let run = || {
            let mut output = TelemetrySink::default();
            Classifier::new(rules("")).span(&span, &Resource { attributes: &resource }, &origin(), &mut output);
            output.events.0
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn any_log_record_gives_the_same_valid_json_twice(
        input in any_attributes(), resource in any_attributes(), body in any_value(),
        severity in any::<i32>(), times in any::<(u64, u64)>(), words in "\\PC{0,30}",
    ) {
        let record = LogRecord {
            time_ns: times.0,
            observed_ns: times.1,
            severity,
            event_name: &words,
            body: Some(&body),
            attributes: &input,
            ..LogRecord::default()
        };
        let run = || {
            let mut output = TelemetrySink::default();
            Classifier::new(rules("")).log(&record, &Resource { attributes: &resource }, &origin(), &mut output);
            output.events.0
        };
        prop_assert_eq!(run(), run());
    }
}
