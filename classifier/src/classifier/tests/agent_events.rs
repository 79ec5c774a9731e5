//! Tool calls that agent hosts report: each is one call, and a failure if the host says so.

use super::telemetry::*;
use serde_json::json;

#[track_caller]
fn check(body: &serde_json::Value, input: &serde_json::Value, expected: &[&str]) -> TelemetrySink {
    let output = classify_log_with(|record| record.severity = 9, body, input);
    assert_eq!(output.summaries.0, expected, "{body} {input}");
    output
}

#[test]
fn claude_code_says_success_in_words() {
    check(
        &json!("claude_code.tool_result"),
        &json!({"event.name": "tool_result", "tool_name": "mcp__crm__find", "success": "true", "duration_ms": "41"}),
        &["call ok jsonrpc mcp__crm__find"],
    );
    let output = check(
        &json!("claude_code.tool_result"),
        &json!({
            "event.name": "tool_result", "event.timestamp": "2026-11-16T09:20:31Z", "tool_name": "mcp__crm__find",
            "success": "false", "duration_ms": "41", "session.id": "s-9", "error": "Request timed out",
        }),
        &["error jsonrpc tool_error INTERNAL_TIMEOUT inferred", "call failed jsonrpc mcp__crm__find"],
    );
    output.check(&json!({
        "operation": "mcp__crm__find", "session_id": "s-9", "duration_us": 41_000, "message": "Request timed out",
        "hidden": false,
    }));
}

#[test]
fn the_tool_of_a_server_may_stand_in_the_details() {
    check(
        &json!("claude_code.tool_result"),
        &json!({
            "tool_name": "mcp_tool", "success": "false",
            "tool_parameters": r#"{"mcp_server_name":"crm","mcp_tool_name":"merge"}"#,
        }),
        &["error jsonrpc tool_error UNKNOWN_TOOL_ERROR", "call failed jsonrpc merge"],
    );
    check(
        &json!("claude_code.tool_result"),
        &json!({"tool_name": "Bash", "success": "true", "tool_parameters": r#"{"mcp_tool_name":"merge"}"#}),
        &["call ok jsonrpc Bash"],
    );
}

#[test]
fn codex_has_texts_throughout_and_no_time() {
    let output = classify_log_with(
        |record| (record.time_ns, record.observed_ns) = (0, START),
        &json!(null),
        &json!({
            "event.name": "codex.tool_result", "tool_name": "crm.merge", "call_id": "call_7", "conversation.id": "c-1",
            "success": "false", "duration_ms": "12", "output": "no such customer: 'x'",
        }),
    );
    assert_eq!(
        output.summaries.0,
        ["error jsonrpc tool_error NOT_FOUND_RESOURCE inferred", "call failed jsonrpc crm.merge"]
    );
    output.check(&json!({
        "request_id": "call_7", "session_id": "c-1", "time": "2026-11-16T09:20:30Z", "message": "no such customer: 'x'",
    }));
}

#[test]
fn gemini_names_functions_and_sorts_of_failures() {
    check(
        &json!("Tool call: merge. Success: true."),
        &json!({"event.name": "gemini_cli.tool_call", "function_name": "merge", "success": true}),
        &["call ok jsonrpc merge"],
    );
    let output = check(
        &json!("Tool call: merge. Success: false."),
        &json!({
            "event.name": "gemini_cli.tool_call", "function_name": "merge", "success": false, "duration_ms": 7,
            "error": "access denied by the sandbox", "error_type": "access_denied",
        }),
        &["error jsonrpc tool_error PERMISSION_DENIED inferred", "call failed jsonrpc merge"],
    );
    output.check(&json!({"duration_us": 7_000}));
}

#[test]
fn the_name_may_be_a_field_of_the_record() {
    let output = classify_log_with(
        |record| record.event_name = "codex.tool_result",
        &json!(null),
        &json!({"tool_name": "shell", "success": false}),
    );
    assert_eq!(output.summaries.0[0], "error jsonrpc tool_error UNKNOWN_TOOL_ERROR");
}

#[test]
fn other_records_with_such_fields_are_no_calls() {
    for (body, input) in [
        (json!("saved"), json!({"event.name": "app.saved", "success": "false", "tool_name": "x"})),
        (json!("claude_code.tool_result"), json!({"tool_name": "x"})),
        (json!("claude_code.tool_result"), json!({"tool_name": "x", "success": "maybe"})),
        (json!("claude_code.tool_decision"), json!({"tool_name": "x", "success": "false"})),
    ] {
        check(&body, &input, &["? no_envelope"]);
    }
}

/// An error text may itself be the reply that failed.
#[test]
fn an_error_that_is_a_reply_is_looked_into() {
    check(
        &json!("claude_code.tool_result"),
        &json!({
            "tool_name": "buy", "success": "false",
            "error": r#"{"success":false,"error":{"code":"RATE_LIMIT_EXCEEDED","message":"slow down"}}"#,
        }),
        &["error mcp-aql RATE_LIMIT_EXCEEDED RATE_LIMIT_EXCEEDED", "call failed mcp-aql buy"],
    );
}
