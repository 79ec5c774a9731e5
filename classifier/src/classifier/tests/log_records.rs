//! Log records: envelopes in their body, exceptions and codes, and the cases in which a record is a call.

use super::telemetry::*;
use super::*;
use crate::telemetry::LogRecord;
use serde_json::json;

const DENIED: &str = r#"{"success":false,"error":{"code":"PERMISSION_DENIED","message":"no"}}"#;

#[track_caller]
fn check(severity: i32, body: &serde_json::Value, input: &serde_json::Value, expected: &[&str]) {
    let output = classify_log_with(|record| record.severity = severity, body, input);
    assert_eq!(output.summaries.0, expected, "{body} {input}");
}

fn in_span(record: &mut LogRecord<'_>) {
    (record.trace_id, record.span_id) = (TRACE, SPAN);
}

#[test]
fn a_body_is_read_like_a_line() {
    let map: serde_json::Value = serde_json::from_str(DENIED).expect(DENIED);
    for body in [json!(DENIED), map.clone(), json!({"response": map}), json!([map])] {
        check(
            9,
            &body,
            &json!({}),
            &["error mcp-aql PERMISSION_DENIED PERMISSION_DENIED", "call failed mcp-aql"],
        );
    }
    check(9, &json!(r#"{"success":true}"#), &json!({}), &["call ok mcp-aql"]);
    check(
        9,
        &json!("level=INFO msg=\"tool call\" tool=echo status=401"),
        &json!({}),
        &["error http - PERMISSION_DENIED inferred", "call failed http echo"],
    );
    check(
        9,
        &json!(in_tool_result(DENIED, None)),
        &json!({}),
        &["error mcp-aql PERMISSION_DENIED PERMISSION_DENIED hidden", "call hidden mcp-aql"],
    );
}

#[test]
fn the_span_counts_the_calls_of_its_logs() {
    let output = classify_log_with(in_span, &json!(DENIED), &json!({"gen_ai.tool.name": "buy"}));
    assert_eq!(output.summaries.0, ["error mcp-aql PERMISSION_DENIED PERMISSION_DENIED"]);
    output.check(&json!({"operation": "buy", "trace_id": "ab".repeat(16), "span_id": "c1".repeat(8)}));
    assert_eq!(classify_log_with(in_span, &json!(r#"{"success":true}"#), &json!({})).summaries.0, [""; 0]);
}

#[test]
fn a_record_with_nothing_of_ours_says_so() {
    for body in [json!("started"), json!("[INFO] started"), json!({"msg": "started"}), json!(7), json!(null)]
    {
        check(9, &body, &json!({"k": "v"}), &["? no_envelope"]);
    }
    check(9, &json!(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#), &json!({}), &["? not_a_reply"]);
    assert_eq!(classify_log(&LogRecord::default(), &origin()).summaries.0, ["? no_envelope"]);
}

#[test]
fn an_error_is_classified_by_its_words() {
    check(
        17,
        &json!("connection refused"),
        &json!({}),
        &["error unknown - INTERNAL_UPSTREAM_UNAVAILABLE inferred"],
    );
    check(16, &json!("connection refused"), &json!({}), &["? no_envelope"]);
    check(
        21,
        &json!("[ERROR] request timed out"),
        &json!({}),
        &["error unknown - INTERNAL_TIMEOUT inferred"],
    );
    check(17, &json!(null), &json!({}), &["error unknown - UNKNOWN_ERROR"]);
    let output = classify_log_with(
        |record| record.severity = 17,
        &json!({"msg": "request timed out", "tool": "buy", "shard": 3}),
        &json!({"k": "v"}),
    );
    assert_eq!(output.summaries.0, ["error unknown - INTERNAL_TIMEOUT inferred"]);
    output.check(&json!({
        "message": "request timed out", "operation": "buy", "attributes": {"k": "v", "body": {"msg": "request timed out", "shard": 3}},
    }));
    let output = classify_log_with(
        |record| record.severity = 17,
        &json!("level=error msg=\"access denied\""),
        &json!({}),
    );
    output.check(&json!({"message": "access denied", "canonical": "PERMISSION_DENIED", "hidden": false}));
    check(17, &json!(r#"{"success":true}"#), &json!({}), &["call ok mcp-aql"]);
}

#[test]
fn exceptions_stand_in_attributes() {
    let output = classify_log_with(
        |record| record.event_name = "exception",
        &json!("could not buy"),
        &json!({"exception.type": "ValueError", "exception.message": "Invalid id", "exception.stacktrace": "at f"}),
    );
    assert_eq!(output.summaries.0, ["error unknown - VALIDATION_ERROR inferred"]);
    output.check(&json!({
        "message": "Invalid id", "hidden": false, "service": "shop", "time": "2026-11-16T09:20:30Z",
        "attributes": {
            "exception.type": "ValueError", "exception.stacktrace": "at f", "event.name": "exception",
            "body": "could not buy",
        },
    }));
}

#[test]
fn codes_stand_in_attributes() {
    check(
        9,
        &json!("no"),
        &json!({"rpc.jsonrpc.error_code": -32601}),
        &["error jsonrpc -32601 NOT_FOUND_OPERATION"],
    );
    check(
        9,
        &json!("no"),
        &json!({"http.response.status_code": 429}),
        &["error http - RATE_LIMIT_EXCEEDED inferred"],
    );
    check(9, &json!("done"), &json!({"http.response.status_code": 200}), &["? no_envelope"]);
    check(
        9,
        &json!("done"),
        &json!({"gen_ai.tool.call.result": DENIED}),
        &["error mcp-aql PERMISSION_DENIED PERMISSION_DENIED", "call failed mcp-aql"],
    );
    // A reply that succeeded does not hide a failure that attributes state.
    check(
        9,
        &json!(r#"{"success":true}"#),
        &json!({"error.code": -32603}),
        &["call ok mcp-aql", "error jsonrpc -32603 INTERNAL_ERROR"],
    );
}

#[test]
fn audit_events_come_as_logs() {
    let output =
        classify_log_with(in_span, &json!({"event": "TOKEN_ISSUED", "token": "conf_x1"}), &json!({}));
    assert_eq!(output.summaries.0, ["audit mcp-aql TOKEN_ISSUED TOKEN_ISSUED"]);
    assert!(!output.event().to_string().contains("conf_x1"));
}

#[test]
fn a_record_tells_its_time() {
    let at = |time_ns, observed_ns, body: serde_json::Value| {
        let output = classify_log_with(
            |record| (record.time_ns, record.observed_ns, record.severity) = (time_ns, observed_ns, 17),
            &body,
            &json!({}),
        );
        output.event()["time"].clone()
    };
    let stamped = json!({"timestamp": "2025-01-01T00:00:00Z", "success": false});
    assert_eq!(at(START, 1, json!("boom")), "2026-11-16T09:20:30Z");
    assert_eq!(at(START, 1, stamped.clone()), "2026-11-16T09:20:30Z");
    assert_eq!(at(0, START, stamped), "2025-01-01T00:00:00Z", "the body knows better than who saw it first");
    assert_eq!(at(0, START, json!("boom")), "2026-11-16T09:20:30Z");
    assert_eq!(at(0, 0, json!("boom")), json!(null), "the time of arrival");
}
