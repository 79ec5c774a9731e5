//! OTLP requests for tests, built with the official types.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

pub(crate) const TRACE_ID: [u8; 16] = [0xAB; 16];
pub(crate) const SPAN_ID: [u8; 8] = [0xCD; 8];

pub(crate) fn any(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

pub(crate) fn text(text: &str) -> AnyValue {
    any(Value::StringValue(text.to_owned()))
}

pub(crate) fn attribute(key: &str, value: AnyValue) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

pub(crate) fn list(values: Vec<AnyValue>) -> AnyValue {
    any(Value::ArrayValue(ArrayValue { values }))
}

pub(crate) fn map(values: Vec<KeyValue>) -> AnyValue {
    any(Value::KvlistValue(KeyValueList { values }))
}

/// Returns attributes with one value of each kind.
pub(crate) fn attributes() -> Vec<KeyValue> {
    vec![
        attribute("text", text("line\n\"quoted\" \u{1F600}")),
        attribute("int", any(Value::IntValue(-32602))),
        attribute("large", any(Value::IntValue(i64::MIN))),
        attribute("double", any(Value::DoubleValue(0.25))),
        attribute("yes", any(Value::BoolValue(true))),
        attribute("no", any(Value::BoolValue(false))),
        attribute("bytes", any(Value::BytesValue(b"plain".to_vec()))),
        attribute("raw", any(Value::BytesValue(vec![0xFF, 0, 1]))),
        attribute(
            "list",
            list(vec![text("a\"b"), any(Value::IntValue(7)), list(vec![]), AnyValue::default()]),
        ),
        attribute(
            "map",
            map(vec![attribute("k\n", any(Value::BoolValue(true))), attribute("m", map(vec![]))]),
        ),
        attribute("empty", AnyValue::default()),
        KeyValue { key: "none".to_owned(), ..KeyValue::default() },
    ]
}

pub(crate) fn resource(service: &str) -> Option<Resource> {
    let attributes = vec![attribute("service.name", text(service))];
    Some(Resource { attributes, dropped_attributes_count: 1, ..Resource::default() })
}

fn scope() -> Option<InstrumentationScope> {
    Some(InstrumentationScope { name: "scope".to_owned(), version: "1".to_owned(), ..Default::default() })
}

pub(crate) fn span() -> Span {
    Span {
        trace_id: TRACE_ID.to_vec(),
        span_id: SPAN_ID.to_vec(),
        trace_state: "a=b".to_owned(),
        parent_span_id: vec![1; 8],
        flags: 0x101,
        name: "tools/call get-weather".to_owned(),
        kind: 2,
        start_time_unix_nano: 1_700_000_000_000_000_000,
        end_time_unix_nano: 1_700_000_000_000_000_500,
        attributes: attributes(),
        dropped_attributes_count: 3,
        events: vec![
            Event {
                time_unix_nano: 5,
                name: "exception".to_owned(),
                attributes: vec![attribute("exception.type", text("ValueError"))],
                dropped_attributes_count: 9,
            },
            Event {
                name: "second".to_owned(),
                attributes: vec![attribute("a", text("b"))],
                ..Event::default()
            },
        ],
        links: vec![Link { trace_id: vec![1; 16], ..Link::default() }],
        status: Some(Status { message: "it broke".to_owned(), code: 2 }),
        ..Span::default()
    }
}

pub(crate) fn log() -> LogRecord {
    LogRecord {
        time_unix_nano: 11,
        observed_time_unix_nano: 12,
        severity_number: 17,
        severity_text: "ERROR".to_owned(),
        body: Some(text("{\"success\":false}")),
        attributes: attributes(),
        flags: 1,
        trace_id: TRACE_ID.to_vec(),
        span_id: SPAN_ID.to_vec(),
        event_name: "failed".to_owned(),
        ..LogRecord::default()
    }
}

pub(crate) fn traces(spans: Vec<Span>) -> ExportTraceServiceRequest {
    let scope_spans = vec![ScopeSpans { scope: scope(), spans, schema_url: "u".to_owned() }];
    let one = ResourceSpans { resource: resource("shop"), scope_spans, schema_url: "u".to_owned() };
    ExportTraceServiceRequest { resource_spans: vec![one] }
}

pub(crate) fn logs(log_records: Vec<LogRecord>) -> ExportLogsServiceRequest {
    let scope_logs = vec![ScopeLogs { scope: scope(), log_records, schema_url: "u".to_owned() }];
    let one = ResourceLogs { resource: resource("shop"), scope_logs, schema_url: "u".to_owned() };
    ExportLogsServiceRequest { resource_logs: vec![one] }
}

/// Returns the views that [`attributes`] must be decoded to.
pub(crate) fn attribute_views() -> Vec<classifier::telemetry::Attribute<'static>> {
    use classifier::telemetry::{Attribute, Value};
    let view = |key: &'static str, value| Attribute { key: key.into(), value };
    vec![
        view("text", Value::Text("line\n\"quoted\" \u{1F600}".into())),
        view("int", Value::Int(-32602)),
        view("large", Value::Int(i64::MIN)),
        view("double", Value::Double(0.25)),
        view("yes", Value::Bool(true)),
        view("no", Value::Bool(false)),
        view("bytes", Value::Text("plain".into())),
        view("raw", Value::Json("\"/wAB\"".into())),
        view("list", Value::Json("[\"a\\\"b\",7,[],null]".into())),
        view("map", Value::Json("{\"k\\n\":true,\"m\":{}}".into())),
        view("empty", Value::Empty),
        view("none", Value::Empty),
    ]
}

/// Returns the view that [`span`] in [`traces`] must be decoded to.
pub(crate) fn span_view() -> String {
    use classifier::telemetry::{Attribute, Resource, Span, SpanEvent, SpanKind, SpanStatus, Value};
    let text = |key: &'static str, text: &'static str| Attribute {
        key: key.into(),
        value: Value::Text(text.into()),
    };
    let span = Span {
        trace_id: Some(TRACE_ID),
        span_id: Some(SPAN_ID),
        parent_span_id: Some([1; 8]),
        kind: SpanKind::Server,
        name: "tools/call get-weather",
        start_ns: 1_700_000_000_000_000_000,
        end_ns: 1_700_000_000_000_000_500,
        status: SpanStatus::Error,
        status_message: "it broke",
        attributes: &attribute_views(),
        events: &[
            SpanEvent { time_ns: 5, name: "exception", attributes: &[text("exception.type", "ValueError")] },
            SpanEvent { time_ns: 0, name: "second", attributes: &[text("a", "b")] },
        ],
    };
    format!("{span:#?} {:#?}", Resource { attributes: &[text("service.name", "shop")] })
}

/// Returns the view that [`log`] in [`logs`] must be decoded to.
pub(crate) fn log_view() -> String {
    use classifier::telemetry::{Attribute, LogRecord, Resource, Value};
    let record = LogRecord {
        time_ns: 11,
        observed_ns: 12,
        severity: 17,
        event_name: "failed",
        body: Some(&Value::Text("{\"success\":false}".into())),
        attributes: &attribute_views(),
        trace_id: Some(TRACE_ID),
        span_id: Some(SPAN_ID),
    };
    let service = Attribute { key: "service.name".into(), value: Value::Text("shop".into()) };
    format!("{record:#?} {:#?}", Resource { attributes: &[service] })
}
