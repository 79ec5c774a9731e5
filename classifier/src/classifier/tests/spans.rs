//! Spans: the replies in them, codes, exceptions and statuses, and the one call that each span is.

use super::telemetry::*;
use super::*;
use crate::telemetry::{Attribute, Resource, Span, SpanEvent, SpanKind, SpanStatus, Value};
use serde_json::json;

pub(super) const PAUSE: &str = r#"{"success":false,"error":{"code":"RATE_LIMIT_QUOTA_PAUSE","message":"Quota pause threshold reached"}}"#;

pub(super) fn status(status: SpanStatus) -> impl FnOnce(&mut Span<'_>) {
    move |span| span.status = status
}

/// Checks the summary of a server span with this status.
#[track_caller]
pub(super) fn check(status: SpanStatus, input: &serde_json::Value, expected: &[&str]) {
    let output = classify_server_span(|span| span.status = status, input);
    assert_eq!(output.summaries.0, expected, "{input}");
}

#[test]
fn status_alone_decides_nothing() {
    check(
        SpanStatus::Unset,
        &json!({"rpc.response.status_code": "-32602"}),
        &["error jsonrpc -32602 VALIDATION_INVALID_PARAMS hidden", "call hidden jsonrpc server tools/call"],
    );
    check(
        SpanStatus::Ok,
        &json!({"gen_ai.tool.call.result": PAUSE, "gen_ai.tool.name": "buy"}),
        &[
            "error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE hidden",
            "call hidden mcp-aql server buy",
        ],
    );
    check(SpanStatus::Unset, &json!({"gen_ai.tool.name": "buy"}), &["call ok jsonrpc server buy"]);
    check(
        SpanStatus::Error,
        &json!({}),
        &["error unknown - UNKNOWN_ERROR", "call failed unknown server tools/call"],
    );
}

#[test]
fn replies_are_found_wherever_they_are_kept() {
    for key in ["gen_ai.tool.call.result", "traceloop.entity.output", "mcp.tool.result.content"] {
        let in_result = in_tool_result(PAUSE, Some(false));
        let content = json!([{"type": "text", "text": PAUSE}]);
        for reply in [
            json!(PAUSE),
            json!(in_result),
            json!(content.to_string()),
            content,
            json!(json!(PAUSE).to_string()),
            json!([PAUSE]),
            json!(json!([PAUSE]).to_string()),
        ] {
            check(
                SpanStatus::Error,
                &json!({key: reply}),
                &[
                    "error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE",
                    "call failed mcp-aql server tools/call",
                ],
            );
        }
    }
    let output = classify_server_span(|span| span.status_message = PAUSE, &json!({}));
    assert_eq!(output.summaries.0[0], "error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE hidden");
    let reply = attributes(&json!({"anything": PAUSE}));
    let events = [SpanEvent { time_ns: 0, name: "reply", attributes: &reply }];
    let span = Span { events: &events, ..Span::default() };
    assert_eq!(
        classify_span(&span).summaries.0,
        ["error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE hidden"],
        "no call: an internal span without marks"
    );
}

#[test]
fn what_is_said_twice_is_one_event() {
    let exception = attributes(&json!({"exception.message": PAUSE, "exception.type": "McpError"}));
    let events = [SpanEvent { time_ns: 0, name: "exception", attributes: &exception }];
    let input = attributes(&json!({
        "gen_ai.tool.call.result": PAUSE, "traceloop.entity.output": PAUSE, "error.code": "RATE_LIMIT_QUOTA_PAUSE",
        "error.type": "tool_error", "http.response.status_code": 429,
    }));
    let span = Span {
        status: SpanStatus::Error,
        status_message: PAUSE,
        attributes: &input,
        events: &events,
        ..Span::default()
    };
    assert_eq!(
        classify_span(&span).summaries.0,
        ["error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE"]
    );
}

#[test]
fn a_reply_that_worked_does_not_hide_what_failed() {
    let worked = r#"{"success":true}"#;
    check(
        SpanStatus::Unset,
        &json!({"gen_ai.tool.call.result": worked}),
        &["call ok mcp-aql server tools/call"],
    );
    check(
        SpanStatus::Unset,
        &json!({"gen_ai.tool.call.result": worked, "traceloop.entity.output": PAUSE}),
        &[
            "error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE hidden",
            "call hidden mcp-aql server tools/call",
        ],
    );
    check(
        SpanStatus::Error,
        &json!({"gen_ai.tool.call.result": worked}),
        &["error unknown - UNKNOWN_ERROR", "call failed unknown server tools/call"],
    );
}

#[test]
fn a_batch_is_one_call() {
    let batch = r#"{"success":true,"results":[{"index":0,"operation":"a","result":{"success":true}},{"index":1,"operation":"b","result":{"success":false,"error":{"code":"PERMISSION_DENIED","message":"no"}}},{"index":2,"result":{"success":false,"error":{"code":"CONFIRMATION_REQUIRED"}}}]}"#;
    check(
        SpanStatus::Unset,
        &json!({"gen_ai.tool.call.result": batch, "gen_ai.tool.name": "many"}),
        &[
            "error mcp-aql PERMISSION_DENIED PERMISSION_DENIED hidden #1",
            "error mcp-aql CONFIRMATION_REQUIRED CONFIRMATION_REQUIRED hidden #2",
            "call hidden mcp-aql server many",
        ],
    );
    let warned = r#"{"success":true,"warnings":[{"code":"RATE_LIMIT_QUOTA_WARNING","message":"soon"}]}"#;
    check(
        SpanStatus::Unset,
        &json!({"gen_ai.tool.call.result": warned}),
        &[
            "warning mcp-aql RATE_LIMIT_QUOTA_WARNING RATE_LIMIT_QUOTA_WARNING",
            "call ok mcp-aql server tools/call",
        ],
    );
    check(
        SpanStatus::Unset,
        &json!({"gen_ai.tool.call.result": r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}"#}),
        &["call input_required jsonrpc server tools/call"],
    );
}

#[test]
fn only_some_spans_are_calls() {
    let calls =
        |kind, input: serde_json::Value| classify_server_span(|span| span.kind = kind, &input).summaries.0;
    for kind in [SpanKind::Client, SpanKind::Internal, SpanKind::Producer, SpanKind::Unspecified] {
        assert_eq!(calls(kind, json!({"http.response.status_code": 200})), [""; 0], "{kind:?}");
        assert_eq!(
            calls(kind, json!({"error.type": "500"})),
            ["error http - INTERNAL_ERROR hidden inferred"]
        );
    }
    assert_eq!(calls(SpanKind::Server, json!({})), ["call ok unknown server tools/call"]);
    assert_eq!(calls(SpanKind::Consumer, json!({})), ["call ok unknown consumer tools/call"]);
    assert_eq!(calls(SpanKind::Client, json!({"mcp.method.name": "ping"})), ["call ok jsonrpc client ping"]);
    assert_eq!(calls(SpanKind::Unspecified, json!({"gen_ai.tool.name": "x"})), ["call ok jsonrpc x"]);
}

#[test]
fn codes_come_in_all_generations() {
    for key in [
        "error.code",
        "mcp.error.code",
        "rpc.response.status_code",
        "rpc.status_code",
        "rpc.jsonrpc.error_code",
    ] {
        for code in [json!(-32601), json!("-32601"), json!(-32601.0), json!(" -32601 ")] {
            check(
                SpanStatus::Error,
                &json!({key: code}),
                &["error jsonrpc -32601 NOT_FOUND_OPERATION", "call failed jsonrpc server tools/call"],
            );
        }
        for code in [json!(0), json!("0"), json!("OK"), json!("200"), json!(""), json!(null), json!([1])] {
            check(SpanStatus::Unset, &json!({key: code}), &["call ok unknown server tools/call"]);
        }
    }
    check(
        SpanStatus::Unset,
        &json!({"error.code": 0, "rpc.jsonrpc.error_code": -32603}),
        &["error jsonrpc -32603 INTERNAL_ERROR hidden", "call hidden jsonrpc server tools/call"],
    );
    check(
        SpanStatus::Error,
        &json!({"error.code": "CONFLICT_VERSION_MISMATCH"}),
        &[
            "error mcp-aql CONFLICT_VERSION_MISMATCH CONFLICT_VERSION_MISMATCH",
            "call failed mcp-aql server tools/call",
        ],
    );
    check(
        SpanStatus::Error,
        &json!({"mcp.error.code": 2001}),
        &["error jsonrpc 2001 UNKNOWN_UNREGISTERED", "call failed jsonrpc server tools/call"],
    );
}

#[test]
fn grpc_has_statuses_of_its_own() {
    for (input, expected) in [
        (json!({"rpc.system": "grpc", "rpc.status_code": 5}), "5 NOT_FOUND_RESOURCE"),
        (json!({"rpc.system": "grpc", "rpc.grpc.status_code": 4}), "4 INTERNAL_TIMEOUT"),
        (json!({"rpc.response.status_code": "NOT_FOUND"}), "NOT_FOUND NOT_FOUND_RESOURCE"),
        (json!({"rpc.response.status_code": "DEADLINE_EXCEEDED"}), "DEADLINE_EXCEEDED INTERNAL_TIMEOUT"),
        (
            json!({"rpc.system.name": "grpc", "rpc.response.status_code": "PERMISSION_DENIED"}),
            "PERMISSION_DENIED PERMISSION_DENIED",
        ),
        (
            json!({"rpc.system": "grpc", "rpc.status_code": 2, "error.message": "connection refused"}),
            "2 INTERNAL_UPSTREAM_UNAVAILABLE",
        ),
    ] {
        let output = classify_server_span(status(SpanStatus::Error), &input);
        assert_eq!(output.summaries.0[0], format!("error unknown {expected} inferred"), "{input}");
        output.check(&json!({"findings": null}));
    }
    let output =
        classify_server_span(status(SpanStatus::Error), &json!({"rpc.system": "grpc", "rpc.status_code": 2}));
    assert_eq!(output.summaries.0[0], "error unknown 2 UNKNOWN_ERROR");
    let output = classify_server_span(
        status(SpanStatus::Error),
        &json!({"rpc.system": "jsonrpc", "rpc.status_code": 5}),
    );
    assert_eq!(output.summaries.0[0], "error jsonrpc 5 UNKNOWN_UNREGISTERED");
    check(
        SpanStatus::Unset,
        &json!({"rpc.system": "grpc", "rpc.status_code": 0}),
        &["call ok unknown server tools/call"],
    );
}

#[test]
fn the_type_of_an_error_may_be_many_things() {
    for (error_type, expected) in [
        (json!("-32602"), "error jsonrpc -32602 VALIDATION_INVALID_PARAMS hidden"),
        (json!(-32602), "error jsonrpc -32602 VALIDATION_INVALID_PARAMS hidden"),
        (json!("tool_error"), "error jsonrpc tool_error UNKNOWN_TOOL_ERROR hidden"),
        (json!("TOKEN_EXPIRED"), "error mcp-aql TOKEN_EXPIRED TOKEN_EXPIRED hidden"),
        (json!("_OTHER"), "error unknown - UNKNOWN_ERROR hidden"),
        (json!("404"), "error http - NOT_FOUND_RESOURCE hidden inferred"),
        (json!("timeout"), "error unknown - INTERNAL_TIMEOUT hidden inferred"),
        (json!("asyncio.TimeoutError"), "error unknown - INTERNAL_TIMEOUT hidden inferred"),
        (json!("FileNotFoundError"), "error unknown - NOT_FOUND_RESOURCE hidden inferred"),
        (json!("java.net.ConnectException"), "error unknown - INTERNAL_UPSTREAM_UNAVAILABLE hidden inferred"),
        (json!("app.skills.SkillNotFoundError"), "error agent-skills - NOT_FOUND_OPERATION hidden"),
    ] {
        let output = classify_server_span(|_| (), &json!({"error.type": error_type}));
        assert_eq!(output.summaries.0[0], expected, "{error_type}");
    }
    check(SpanStatus::Unset, &json!({"error.type": ""}), &["call ok unknown server tools/call"]);
}

/// Spans of the Python SDK for a bad request and for a failed tool.
#[test]
fn sdk_spans() {
    let output = classify_server_span(
        |span| {
            span.status = SpanStatus::Error;
            span.status_message = "Invalid request parameters";
            span.name = "tools/call get-weather";
        },
        &json!({
            "mcp.method.name": "tools/call", "gen_ai.tool.name": "get-weather", "error.type": "-32602",
            "rpc.response.status_code": "-32602", "jsonrpc.request.id": 7, "mcp.session.id": "s-1",
        }),
    );
    assert_eq!(
        output.summaries.0,
        ["error jsonrpc -32602 VALIDATION_INVALID_PARAMS", "call failed jsonrpc server get-weather"]
    );
    output.check(&json!({
        "message": "Invalid request parameters", "operation": "get-weather", "request_id": "7",
        "session_id": "s-1", "findings": null,
        "attributes": {"error.type": "-32602", "mcp.method.name": "tools/call", "span.name": "tools/call get-weather"},
    }));
    let output = classify_server_span(
        status(SpanStatus::Error),
        &json!({"mcp.method.name": "tools/call", "error.type": "tool_error"}),
    );
    output.check(
        &json!({"code": "tool_error", "canonical": "UNKNOWN_TOOL_ERROR", "message": null, "findings": null}),
    );
    let output = classify_server_span(
        status(SpanStatus::Error),
        &json!({"error.type": "tool_error", "gen_ai.tool.call.result": "Invalid departure date: must be in the future."}),
    );
    output.check(&json!({
        "canonical": "VALIDATION_ERROR", "message": "Invalid departure date: must be in the future.",
        "inferred": true, "attributes": null,
    }));
}

#[test]
fn a_tool_that_says_it_failed_has_failed() {
    let output = classify_server_span(
        |_| (),
        &json!({"mcp.tool.result.is_error": true, "mcp.tool.result.content": "No such city: 'x'"}),
    );
    assert_eq!(output.summaries.0[0], "error jsonrpc tool_error NOT_FOUND_RESOURCE hidden inferred");
    output.check(&json!({"message": "No such city: 'x'", "attributes": null}));
    check(
        SpanStatus::Unset,
        &json!({"mcp.tool.result.is_error": false, "mcp.tool.result.content": "Sunny in the city"}),
        &["call ok unknown server tools/call"],
    );
}

#[test]
fn an_unknown_tool_is_not_found() {
    let output = classify_server_span(
        |span| span.status_message = "Unknown tool: x",
        &json!({"rpc.response.status_code": "-32602"}),
    );
    output.check(&json!({"canonical": "NOT_FOUND_OPERATION"}));
}

#[test]
fn exceptions_stand_in_events() {
    let first = attributes(&json!({"exception.type": "KeyError", "exception.message": "'a'"}));
    let last = attributes(&json!({
        "exception.type": "app.PermissionError", "exception.message": "permission denied for 'x'",
        "exception.stacktrace": "at f\nat g password=hunter2",
    }));
    let events = [&first, &last].map(|attributes| SpanEvent { time_ns: 1, name: "exception", attributes });
    let output =
        classify_span(&Span { events: &events, name: "work", kind: SpanKind::Internal, ..Span::default() });
    assert_eq!(output.summaries.0, ["error unknown - PERMISSION_DENIED hidden inferred"]);
    output.check(&json!({
        "message": "permission denied for 'x'",
        "attributes": {"exception.type": "app.PermissionError", "exception.stacktrace": "at f\nat g password=[redacted]"},
    }));
}

#[test]
fn http_statuses_count_when_nothing_better_is_there() {
    check(
        SpanStatus::Unset,
        &json!({"http.response.status_code": 404}),
        &["error http - NOT_FOUND_RESOURCE hidden inferred", "call hidden http server tools/call"],
    );
    check(
        SpanStatus::Error,
        &json!({"http.status_code": "503", "error.type": "503"}),
        &["error http - INTERNAL_ERROR inferred", "call failed http server tools/call"],
    );
    check(SpanStatus::Unset, &json!({"http.status_code": 399}), &["call ok http server tools/call"]);
    let output = classify_server_span(
        |_| (),
        &json!({"http.response.status_code": 200, "gen_ai.tool.call.result": PAUSE}),
    );
    output.check(&json!({"http_status": 200, "canonical": "RATE_LIMIT_QUOTA_PAUSE"}));
}

#[test]
fn context_comes_from_the_span_and_its_resource() {
    let input = attributes(&json!({
        "gen_ai.tool.name": "buy", "rpc.method": "x", "mcp.session.id": "s", "session.id": "t", "user.id": 12,
        "service.name": "not me", "error.type": "boom", "cart": [1, {"password": "hunter2"}], "half": 0.5, "yes": true,
    }));
    let resource = attributes(&json!({
        "service.name": "shop", "service.version": "1.2", "deployment.environment": "old",
        "deployment.environment.name": "prod", "enduser.id": "nobody", "host.name": "n1",
    }));
    let span = Span {
        trace_id: TRACE,
        span_id: SPAN,
        kind: SpanKind::Client,
        name: "execute_tool buy",
        start_ns: START,
        end_ns: END,
        status: SpanStatus::Error,
        attributes: &input,
        ..Span::default()
    };
    let origin =
        RecordOrigin { source: Some("otlp"), service: Some("a"), environment: Some("b"), ..origin() };
    let mut output = TelemetrySink::default();
    Classifier::new(rules("")).span(&span, &Resource { attributes: &resource }, &origin, &mut output);
    output.check(&json!({
        "time": "2026-11-16T09:20:30.0025Z", "service": "shop", "service_version": "1.2", "environment": "prod",
        "client": "12", "operation": "buy", "session_id": "s", "trace_id": "ab".repeat(16),
        "span_id": "c1".repeat(8), "span_kind": "client", "duration_us": 2500, "source": "otlp",
        "attributes": {
            "rpc.method": "x", "session.id": "t", "service.name": "not me", "error.type": "boom",
            "cart": [1, {"password": "[redacted]"}], "half": 0.5, "yes": true, "span.name": "execute_tool buy",
        },
    }));
    let mut output = TelemetrySink::default();
    Classifier::new(rules("")).span(
        &span,
        &Resource::default(),
        &RecordOrigin { service: None, ..origin },
        &mut output,
    );
    output.check(&json!({"service": "not me", "environment": "b"}));
}

#[test]
fn what_is_left_of_a_reply_stands_where_it_stood() {
    let reply = r#"{"jsonrpc":"2.0","id":9,"node":"n2","error":{"code":-32603,"message":"boom"}}"#;
    let output = classify_server_span(
        |_| (),
        &json!({"gen_ai.tool.call.result": reply, "k": "v", "rpc.status_code": -32603}),
    );
    output.check(&json!({
        "attributes": {"gen_ai.tool.call.result": {"id": 9, "node": "n2"}, "k": "v", "rpc.status_code": -32603},
    }));
}

#[test]
fn times_that_cannot_be_are_replaced_or_absent() {
    let at = |start_ns, end_ns| {
        let output = classify_server_span(
            |span| (span.start_ns, span.end_ns) = (start_ns, end_ns),
            &json!({"error.type": "x"}),
        );
        (output.event()["time"].clone(), output.event()["duration_us"].clone())
    };
    assert_eq!(at(START, 0), (json!("2026-11-16T09:20:30Z"), json!(null)));
    assert_eq!(at(0, START), (json!("2026-11-16T09:20:30Z"), json!(null)));
    assert_eq!(at(END, START), (json!("2026-11-16T09:20:30Z"), json!(null)));
    assert_eq!(at(0, 0), (json!(null), json!(null)), "the time of arrival");
    assert_eq!(at(START, u64::MAX).0, json!(null), "far ahead: the time of arrival");
}

#[test]
fn operators_rename_attributes_too() {
    let rules = rules("[fields]\noperation = [\"acme.action\"]\n");
    let input = [
        Attribute { key: "acme.action".into(), value: Value::Text("ship".into()) },
        Attribute { key: "gen_ai.tool.name".into(), value: Value::Text("buy".into()) },
    ];
    let mut output = TelemetrySink::default();
    let span = Span { attributes: &input, ..Span::default() };
    Classifier::new(rules).span(&span, &Resource::default(), &origin(), &mut output);
    assert_eq!(output.summaries.0, ["call ok jsonrpc ship"]);
}

#[test]
fn a_status_that_failed_counts_more_than_one_that_did_not() {
    let output =
        classify_server_span(|_| (), &json!({"http.response.status_code": 200, "error.type": "504"}));
    output.check(&json!({"http_status": 504, "dialect": "http", "canonical": "INTERNAL_ERROR"}));
}
