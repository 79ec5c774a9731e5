//! Tests of OTLP/JSON in every allowed spelling, field by field, and with arbitrary bytes.

use super::super::test_data;
use super::*;
use crate::receivers::record_consumer::test_consumer::TestConsumer;
use proptest::prelude::*;
use serde_json::json;

fn traces(body: &str) -> TestConsumer {
    let mut records = TestConsumer::default();
    read_traces(body.as_bytes(), &mut records).unwrap();
    records
}

fn logs(body: &str) -> TestConsumer {
    let mut records = TestConsumer::default();
    read_logs(body.as_bytes(), &mut records).unwrap();
    records
}

/// Returns the attributes of the samples as OTLP/JSON, with additional unknown keys.
fn attributes() -> serde_json::Value {
    json!([
        {"key": "text", "value": {"stringValue": "line\n\"quoted\" \u{1F600}", "unknown": [1]}},
        {"key": "int", "value": {"intValue": "-32602"}},
        {"key": "large", "value": {"intValue": i64::MIN}},
        {"key": "double", "value": {"doubleValue": 0.25}},
        {"key": "yes", "value": {"boolValue": true}, "x": null},
        {"key": "no", "value": {"boolValue": false}},
        {"key": "bytes", "value": {"bytesValue": "cGxhaW4="}},
        {"key": "raw", "value": {"bytesValue": "/wAB"}},
        {"key": "list", "value": {"arrayValue": {"values": [
            {"stringValue": "a\"b"}, {"intValue": "7"}, {"arrayValue": {}}, {}
        ]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [
            {"key": "k\n", "value": {"boolValue": true}}, {"key": "m", "value": {"kvlistValue": {"values": []}}}
        ]}}},
        {"key": "empty", "value": {}},
        {"key": "none", "value": null},
    ])
}

fn span() -> serde_json::Value {
    json!({
        "traceId": "ABABABABABABABABABABABABABABABAB", "spanId": "cdcdcdcdcdcdcdcd", "parentSpanId": "0101010101010101",
        "name": "tools/call get-weather", "kind": 2, "flags": 257, "traceState": null,
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": 1_700_000_000_000_000_500_u64,
        "attributes": attributes(),
        "events": [
            {"timeUnixNano": "5", "name": "exception",
             "attributes": [{"key": "exception.type", "value": {"stringValue": "ValueError"}}]},
            null,
            {"name": "second", "attributes": [{"key": "a", "value": {"stringValue": "b"}}]},
        ],
        "status": {"code": "STATUS_CODE_ERROR", "message": "it broke"}, "links": [{}],
    })
}

fn resource() -> serde_json::Value {
    json!({"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}], "droppedAttributesCount": 1})
}

fn spans(spans: &[serde_json::Value]) -> String {
    let scopes = json!([{"scope": {"name": "s"}, "spans": spans, "schemaUrl": "u"}]);
    json!({"resourceSpans": [{"resource": resource(), "scopeSpans": scopes}], "unknown": {"a": []}})
        .to_string()
}

fn log_records(records: &[serde_json::Value]) -> String {
    json!({"resourceLogs": [{"resource": resource(), "scopeLogs": [{"logRecords": records}]}]}).to_string()
}

#[test]
fn every_field_of_a_span() {
    let records = traces(&spans(&[span(), span()]));
    assert_eq!(records.signals, [test_data::span_view(), test_data::span_view()]);
    assert!(records.rejected.is_empty());
}

#[test]
fn every_field_of_a_log_record() {
    let record = json!({
        "timeUnixNano": "11", "observedTimeUnixNano": 12, "severityNumber": 17, "severityText": "ERROR",
        "body": {"stringValue": "{\"success\":false}"}, "attributes": attributes(), "eventName": "failed",
        "traceId": "abababababababababababababababab", "spanId": "CDCDCDCDCDCDCDCD",
    });
    let records = logs(&log_records(&[record]));
    assert_eq!(records.signals, [test_data::log_view()], "{:?}", records.rejected);
}

/// A request with a resource after its scopes. `serde_json` sorts keys, so this one is written by hand.
#[test]
fn a_resource_may_come_last() {
    let body = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}],"resource":{}}}]}}"#,
        span(),
        resource()
    );
    assert_eq!(traces(&body).signals, [test_data::span_view()]);
}

#[test]
fn enum_values_by_name_and_number() {
    for (given, expected) in [
        (json!("SPAN_KIND_CLIENT"), "Client"),
        (json!("SPAN_KIND_NEW"), "Unspecified"),
        (json!("5"), "Consumer"),
        (json!(5), "Consumer"),
        (json!(99), "Unspecified"),
        (json!(null), "Unspecified"),
    ] {
        let text = traces(&spans(&[json!({"kind": given})])).signals.remove(0);
        assert!(text.contains(&format!("kind: {expected}")), "{given}: {text}");
    }
    for (given, expected) in [
        (json!("SEVERITY_NUMBER_TRACE"), 1),
        (json!("SEVERITY_NUMBER_INFO2"), 10),
        (json!("SEVERITY_NUMBER_FATAL4"), 24),
        (json!("SEVERITY_NUMBER_UNSPECIFIED"), 0),
        (json!(13), 13),
        (json!(77), 0),
    ] {
        let text = logs(&log_records(&[json!({"severityNumber": given})])).signals.remove(0);
        assert!(text.contains(&format!("severity: {expected},")), "{given}: {text}");
    }
}

#[test]
fn numbers_that_json_cannot_write() {
    for (given, expected) in
        [(json!("NaN"), "NaN"), (json!("Infinity"), "inf"), (json!("-Infinity"), "-inf"), (json!(2), "2.0")]
    {
        let record = json!({"body": {"doubleValue": given}});
        let text = logs(&log_records(&[record])).signals.remove(0);
        assert!(text.contains(&format!("{expected},")), "{text}");
    }
    let list =
        json!({"arrayValue": {"values": [{"doubleValue": "NaN"}, {"doubleValue": 1.5}, {"intValue": "x"}]}});
    let text = logs(&log_records(&[json!({"body": list})])).signals.remove(0);
    assert!(text.contains(r#"[\"NaN\",1.5,null]"#), "{text}");
}

#[test]
fn a_record_that_cannot_be_read_costs_only_itself() {
    for bad in [
        json!(7),
        json!({"name": 7}),
        json!({"kind": {}}),
        json!({"startTimeUnixNano": "soon"}),
        json!({"startTimeUnixNano": -1}),
        json!({"attributes": {}}),
        json!({"attributes": [{"key": "k", "value": {"intValue": "x"}}]}),
        json!({"attributes": [{"key": "k", "value": {"bytesValue": "*"}}]}),
        json!({"events": 5}),
        json!({"status": "bad"}),
    ] {
        let records = traces(&spans(&[span(), bad.clone(), span()]));
        assert_eq!((records.signals.len(), records.rejected.len()), (2, 1), "{bad}");
        assert_eq!((records.rejected[0].0, records.rejected[0].1), (2, "malformed"));
    }
}

#[test]
fn a_request_that_cannot_be_read_says_where() {
    for (body, part) in [
        ("", "must be an object"),
        ("{\n  \"resourceSpans\": [}", "line 2 column"),
        ("{\"resourceSpans\": 5}", "expected a list"),
        ("{\"resourceSpans\": [{\"scopeSpans\": {}}]}", "expected a list"),
        ("[[]]", "must be an object"),
        ("{} x", "line 1 column 4"),
        ("{\"resourceLogs\": []}", "/v1/logs"),
        ("{\"resourceMetrics\": []}", "another signal"),
    ] {
        let rejection = read_traces(body.as_bytes(), &mut TestConsumer::default()).unwrap_err();
        assert_eq!(rejection.reason, RejectionReason::Unreadable);
        assert!(rejection.detail.contains(part), "{body}: {}", rejection.detail);
    }
    assert!(read_traces(b"{\"resourceSpans\":[{\"x\":\"\xff\"}]}", &mut TestConsumer::default()).is_err());
    assert_eq!(traces("{}"), TestConsumer::default());
    assert_eq!(traces("{\"resourceSpans\":null}"), TestConsumer::default());
    assert_eq!(traces("{\"resourceSpans\":[{},{\"scopeSpans\":[{}]}]}"), TestConsumer::default());
}

#[test]
fn deep_and_long_values_are_bounded() {
    let deep =
        (0..40).fold(json!({"stringValue": "x"}), |value, _| json!({"arrayValue": {"values": [value]}}));
    let text = logs(&log_records(&[json!({"body": deep})])).signals.remove(0);
    assert!(text.contains(&format!("{}null{}", "[".repeat(32), "]".repeat(32))), "{text}");

    let open = "{\"arrayValue\":{\"values\":[".repeat(50_000);
    let body = format!("{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{\"body\":{open}");
    assert!(read_logs(body.as_bytes(), &mut TestConsumer::default()).is_err());

    let many = vec![json!({"key": "k"}); 5000];
    let text = traces(&spans(&[json!({"attributes": many})])).signals.remove(0);
    assert_eq!(text.matches("\"k\"").count(), TestConsumer::default().limits.attributes);
    let many = vec![json!({"name": "e"}); 5000];
    let text = traces(&spans(&[json!({"events": many})])).signals.remove(0);
    assert_eq!(text.matches("SpanEvent").count(), TestConsumer::default().limits.attributes);
}

#[test]
fn a_request_cut_anywhere_neither_panics_nor_hangs() {
    let body = spans(&[span()]);
    for cut in (0..body.len()).filter(|cut| body.is_char_boundary(*cut)) {
        assert!(read_traces(&body.as_bytes()[..cut], &mut TestConsumer::default()).is_err(), "{cut}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read(body in ".{0,200}") {
        let _ = read_traces(body.as_bytes(), &mut TestConsumer::default());
        let _ = read_logs(format!("{{\"resourceLogs\":[{body}]}}").as_bytes(), &mut TestConsumer::default());
    }
}
