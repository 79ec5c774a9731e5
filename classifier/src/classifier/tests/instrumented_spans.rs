//! Spans as the instrumentations of current SDKs send them: which of them are calls, of which tool, with which reply.

use super::spans::{PAUSE, status};
use super::telemetry::*;
use super::*;
use crate::telemetry::{Resource, Span, SpanKind, SpanStatus};
use serde_json::json;

/// Checks the tool and the side that the call of a span reports.
#[track_caller]
fn check_call(kind: SpanKind, name: &str, input: &serde_json::Value, expected: &str) {
    let attributes = attributes(input);
    let span = Span { kind, name, attributes: &attributes, ..Span::default() };
    let output = classify_span(&span);
    assert_eq!(output.summaries.0.last().map(String::as_str), Some(expected), "{name} {input}");
}

#[test]
fn a_tool_may_stand_only_in_the_name_of_the_span() {
    let method = json!({"mcp.method.name": "tools/call"});
    check_call(SpanKind::Client, "MCP send tools/call merge", &method, "call ok jsonrpc client merge");
    check_call(SpanKind::Server, "tools/call merge", &method, "call ok jsonrpc server merge");
    check_call(SpanKind::Client, "MCP send tools/call", &method, "call ok jsonrpc client tools/call");
    let list = json!({"mcp.method.name": "tools/list"});
    check_call(SpanKind::Client, "MCP send tools/list", &list, "call ok jsonrpc client tools/list");
    let named = json!({"mcp.method.name": "tools/call", "gen_ai.tool.name": "buy"});
    check_call(SpanKind::Server, "tools/call merge", &named, "call ok jsonrpc server buy");
}

#[test]
fn instrumentations_name_tools_in_their_own_ways() {
    let client = json!({"traceloop.span.kind": "tool", "traceloop.entity.name": "merge"});
    check_call(SpanKind::Internal, "merge.tool", &client, "call ok unknown client merge");
    let server = json!({
        "traceloop.span.kind": "tool", "traceloop.entity.name": "merge", "traceloop.workflow.name": "crm.mcp",
    });
    check_call(SpanKind::Internal, "merge.tool", &server, "call ok unknown server merge");
    let open_inference =
        json!({"openinference.span.kind": "TOOL", "tool.name": "merge", "output.value": "done"});
    check_call(SpanKind::Internal, "merge", &open_inference, "call ok unknown internal merge");
    let sentry = json!({"mcp.tool.name": "merge", "mcp.method.name": "tools/call"});
    check_call(SpanKind::Server, "tools/call merge", &sentry, "call ok jsonrpc server merge");
    let vercel = json!({"ai.toolCall.name": "merge"});
    check_call(SpanKind::Internal, "ai.toolCall", &vercel, "call ok jsonrpc internal merge");
}

#[test]
fn spans_around_a_call_are_none() {
    let method = attributes(&json!({"mcp.method.name": "tools/call"}));
    let delegate =
        Span { kind: SpanKind::Internal, name: "delegate merge", attributes: &method, ..Span::default() };
    assert_eq!(classify_span(&delegate).summaries.0, [""; 0]);
    for role in ["server", "session", "workflow", "agent", "LLM"] {
        let input = attributes(&json!({"traceloop.span.kind": role, "traceloop.entity.name": "crm"}));
        let span = Span { kind: SpanKind::Internal, name: "crm", attributes: &input, ..Span::default() };
        assert_eq!(classify_span(&span).summaries.0, [""; 0], "{role}");
    }
}

/// The streams and servers that a call of `OpenLLMetry` travels through fail with it, but are not what was called.
#[test]
fn a_part_of_a_call_is_no_operation_and_tells_its_side() {
    let failed = in_tool_result("Customer 17 is not there", Some(true));
    for input in [
        json!({"mcp.response.value": failed, "mcp.request.id": "3"}),
        json!({"traceloop.span.kind": "server", "traceloop.entity.name": "mcp.server", "mcp.response.value": failed}),
    ] {
        let attributes = attributes(&input);
        let span =
            Span { kind: SpanKind::Internal, name: "stream", attributes: &attributes, ..Span::default() };
        let output = classify_span(&span);
        let event = output.event();
        assert_eq!((&event["operation"], &event["span_kind"]), (&json!(null), &json!("server")), "{event}");
    }
}

#[test]
fn an_exception_without_a_message_is_its_class() {
    let output = classify_server_span(
        |span| (span.status, span.status_message) = (SpanStatus::Error, "TimeoutError: "),
        &json!({"mcp.method.name": "tools/call", "gen_ai.tool.name": "merge"}),
    );
    output.check(&json!({"message": "TimeoutError", "category": "INTERNAL"}));
}

/// A model may write about failures, so only the output of tools and servers is a reply.
#[test]
fn only_tools_and_servers_reply() {
    for (role, key) in [
        ("workflow", "traceloop.entity.output"),
        ("agent", "traceloop.entity.output"),
        ("task", "traceloop.entity.output"),
    ] {
        let input = attributes(&json!({"traceloop.span.kind": role, (key): PAUSE}));
        let span = Span { attributes: &input, ..Span::default() };
        assert_eq!(classify_span(&span).summaries.0, [""; 0], "{role}");
    }
    for role in ["LLM", "CHAIN", "AGENT"] {
        let input = attributes(&json!({"openinference.span.kind": role, "output.value": PAUSE}));
        let span = Span { attributes: &input, ..Span::default() };
        assert_eq!(classify_span(&span).summaries.0, [""; 0], "{role}");
    }
    for input in [
        json!({"openinference.span.kind": "TOOL", "tool.name": "buy", "output.value": PAUSE}),
        json!({"traceloop.span.kind": "tool", "traceloop.entity.name": "buy", "traceloop.entity.output": PAUSE}),
        json!({"traceloop.span.kind": "server", "mcp.response.value": PAUSE}),
        json!({"mcp.response.value": in_tool_result(PAUSE, None)}),
    ] {
        let attributes = attributes(&input);
        let span = Span { attributes: &attributes, ..Span::default() };
        assert_eq!(
            classify_span(&span).summaries.0[0],
            "error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE hidden",
            "{input}"
        );
    }
}

/// A sink that keeps, for each call, whether it is unverified.
#[derive(Default)]
struct UnverifiedCalls(Vec<bool>);

impl Sink for UnverifiedCalls {
    fn event(&mut self, _: &Event<'_>) {}
    fn call(&mut self, call: &Call<'_>) {
        self.0.push(call.is_unverified);
    }
    fn unrecognized(&mut self, _: UnrecognizedReason) {}
}

#[test]
fn a_success_that_nobody_saw_is_unverified() {
    let is_unverified = |kind, status, input: &serde_json::Value| {
        let attributes = attributes(input);
        let span = Span { kind, status, name: "x", attributes: &attributes, ..Span::default() };
        let mut sink = UnverifiedCalls::default();
        Classifier::new(rules("")).span(&span, &Resource::default(), &origin(), &mut sink);
        sink.0
    };
    let server = |input| is_unverified(SpanKind::Server, SpanStatus::Unset, &input);
    assert_eq!(server(json!({"gen_ai.tool.name": "buy"})), [true]);
    assert_eq!(server(json!({"mcp.method.name": "tools/call"})), [true]);
    assert_eq!(server(json!({"gen_ai.tool.name": "buy", "gen_ai.tool.call.result": "bought"})), [false]);
    assert_eq!(server(json!({"mcp.method.name": "tools/list"})), [false], "no tool was called");
    assert_eq!(server(json!({"http.response.status_code": 200})), [false], "no tool was called");
    assert_eq!(server(json!({"gen_ai.tool.name": "buy", "error.type": "tool_error"})), [false], "it failed");
}

/// Checks the summary of a span whose only attributes are those of `OpenLLMetry` and a captured output.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "callers pass literals")]
fn check_output(status: SpanStatus, key: &str, output: serde_json::Value, expected: &str, message: &str) {
    let input = attributes(&json!({
        "traceloop.span.kind": "tool", "traceloop.entity.name": "merge", (key): output.clone(),
    }));
    let span = Span { status, name: "merge.tool", attributes: &input, ..Span::default() };
    let output_of_span = classify_span(&span);
    assert_eq!(output_of_span.summaries.0[0], expected, "{output}");
    assert_eq!(output_of_span.event()["message"], message, "{output}");
}

#[test]
fn outputs_come_in_wrappers_of_the_instrumentation() {
    let entity = "traceloop.entity.output";
    let denied = "error jsonrpc tool_error PERMISSION_DENIED inferred";
    for output in [
        json!(json!({"result": "Permission denied", "is_error": true}).to_string()),
        json!(json!([{"type": "text", "content": "Permission denied"}]).to_string()),
        json!(
            json!({"content": [{"type": "text", "text": "Permission denied"}], "isError": true}).to_string()
        ),
        json!(json!({"output": "Permission denied", "is_error": true}).to_string()),
        json!([{"type": "text", "text": "Permission denied"}]),
    ] {
        check_output(SpanStatus::Error, entity, output, denied, "Permission denied");
    }
    let hidden = "error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE hidden";
    for output in [
        json!(json!({"result": PAUSE}).to_string()),
        json!(json!({"output": PAUSE}).to_string()),
        json!(json!([{"type": "text", "content": PAUSE}]).to_string()),
    ] {
        check_output(SpanStatus::Ok, entity, output.clone(), hidden, "Quota pause threshold reached");
    }
}

/// The C# SDK stores the content of a failed reply in the status message.
#[test]
fn the_status_may_hold_the_content() {
    const CONTENT: &str = r#"[{"type":"text","text":"Order 7 was not found"}]"#;
    let output = classify_server_span(
        |span| (span.status, span.status_message) = (SpanStatus::Error, CONTENT),
        &json!({"mcp.method.name": "tools/call", "gen_ai.tool.name": "merge", "error.type": "tool_error"}),
    );
    assert_eq!(
        output.summaries.0,
        ["error jsonrpc tool_error NOT_FOUND_RESOURCE inferred", "call failed jsonrpc server merge"]
    );
    output.check(&json!({"message": "Order 7 was not found"}));
}

/// The output of a tool without an error flag counts as a failure if it states one, and not if it is data.
#[test]
fn unflagged_words_may_be_a_hidden_failure() {
    let server = |result: &str| {
        let input = json!({"gen_ai.tool.name": "merge", "gen_ai.tool.call.result": result});
        classify_server_span(|_| (), &input).summaries.0
    };
    let content = |text: &str| json!([{"type": "text", "text": text}]).to_string();
    for text in ["Error: customer 17 not found", "Failed to merge: customer 17 not found"] {
        for result in [text.to_owned(), content(text)] {
            let said = server(&result);
            assert_eq!(said.last().map(String::as_str), Some("call hidden jsonrpc server merge"), "{result}");
            assert!(said[0].contains("NOT_FOUND_RESOURCE hidden"), "{said:?}");
        }
    }
    for text in ["3 errors were found in the log", "merged", "Error handling in this guide covers retries."] {
        for result in [text.to_owned(), content(text)] {
            assert_eq!(server(&result), ["call ok jsonrpc server merge"], "{result}");
        }
    }
}

/// Middleware can store the whole result as an attribute; its text is then the message of the failure.
#[test]
fn a_captured_result_gives_a_failed_call_its_words() {
    let result = json!({"content": [{"type": "text", "text": "Error executing tool merge: disk quota exceeded"}], "isError": true});
    let output = classify_server_span(
        status(SpanStatus::Error),
        &json!({
            "mcp.method.name": "tools/call", "gen_ai.tool.name": "merge", "error.type": "tool_error",
            "gen_ai.tool.call.result": result.to_string(),
        }),
    );
    assert_eq!(output.summaries.0.len(), 2, "{:?}", output.summaries.0);
    output.check(&json!({"code": "tool_error", "category": "RATE_LIMIT", "hidden": false}));
}
