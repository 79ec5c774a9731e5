//! Every shape of an envelope, and the wrappers around it.

use super::*;

const PAUSE: &str = r#"{"success":false,"error":{"code":"RATE_LIMIT_QUOTA_PAUSE","message":"Quota pause threshold reached"}}"#;

#[test]
fn mcp_aql() {
    check(PAUSE, &["error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE"]);
    check(
        r#"{"success":"false","error":{"code":"INTERNAL_ERROR"}}"#,
        &["error mcp-aql INTERNAL_ERROR INTERNAL_ERROR"],
    );
    check(r#"{"success":true,"data":{"n":1}}"#, &["ok mcp-aql"]);
    check(r#"{"success":"true"}"#, &["ok mcp-aql"]);
    check(
        r#"{"success":false,"error":"Unknown operation: x"}"#,
        &["error mcp-aql - NOT_FOUND_OPERATION inferred"],
    );
    check(r#"{"success":false,"error":"boom"}"#, &["error mcp-aql - UNKNOWN_ERROR"]);
    check(r#"{"success":false}"#, &["error mcp-aql - UNKNOWN_ERROR"]);
    check(
        r#"{"success":true,"error":{"code":"CONFLICT_VERSION_MISMATCH"}}"#,
        &["error mcp-aql CONFLICT_VERSION_MISMATCH CONFLICT_VERSION_MISMATCH hidden"],
    );
}

/// Some loggers add a `success` field of their own, or omit the `error` object.
#[test]
fn mcp_aql_as_loggers_write_it() {
    check(
        &format!(r#"{{"success":false,"tool":"x","response":{PAUSE}}}"#),
        &["error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE"],
    );
    check(
        &format!(r#"{{"success":true,"tool":"x","response":{PAUSE}}}"#),
        &["error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE hidden"],
    );
    check(r#"{"success":true,"result":{"error":"none","items":[]}}"#, &["ok mcp-aql"]);
    check(
        r#"{"success":false,"code":"TOKEN_INVALID","message":"m"}"#,
        &["error mcp-aql TOKEN_INVALID TOKEN_INVALID"],
    );
    check(
        r#"{"success":false,"message":"too many requests"}"#,
        &["error mcp-aql - RATE_LIMIT_EXCEEDED inferred"],
    );
    check(r#"{"success":false,"data":null,"error":null}"#, &["error mcp-aql - UNKNOWN_ERROR"]);
}

#[test]
fn warnings_come_with_a_success() {
    check(
        r#"{"success":true,"data":1,"warnings":[{"code":"RATE_LIMIT_QUOTA_WARNING","message":"Approaching quota limit"},{"code":"VALIDATION_TRUNCATED_WARNING"},"careful"]}"#,
        &[
            "ok mcp-aql",
            "warning mcp-aql RATE_LIMIT_QUOTA_WARNING RATE_LIMIT_QUOTA_WARNING",
            "warning mcp-aql VALIDATION_TRUNCATED_WARNING VALIDATION_TRUNCATED_WARNING",
            "warning mcp-aql - UNKNOWN_ERROR",
        ],
    );
}

#[test]
fn batches_count_each_item() {
    check(
        r#"{"success":true,"results":[{"index":0,"operation":"a","result":{"success":true}},{"index":1,"operation":"b","result":{"success":false,"error":{"code":"PERMISSION_DENIED"}}},{"index":2,"operation":"c","result":{"success":false,"error":{"code":"CONFIRMATION_REQUIRED"}}}],"summary":{"total":3,"succeeded":1,"failed":2}}"#,
        &[
            "ok mcp-aql",
            "error mcp-aql PERMISSION_DENIED PERMISSION_DENIED hidden #1",
            "error mcp-aql CONFIRMATION_REQUIRED CONFIRMATION_REQUIRED hidden #2",
        ],
    );
    check(
        r#"{"success":false,"error":{"code":"BATCH_PARTIAL_FAILURE","message":"2 of 5","details":{"total":5,"succeeded":3,"failed":2,"errors":[{"index":1,"code":"NOT_FOUND_RESOURCE","message":"x"},{"index":4,"code":"TOKEN_EXPIRED","message":"y"}]}}}"#,
        &[
            "error mcp-aql NOT_FOUND_RESOURCE NOT_FOUND_RESOURCE #1",
            "error mcp-aql TOKEN_EXPIRED TOKEN_EXPIRED #4",
            "ok mcp-aql x3",
        ],
    );
    check(
        r#"{"success":false,"error":{"code":"BATCH_PARTIAL_FAILURE","message":"2 of 5 operations failed"}}"#,
        &["error mcp-aql BATCH_PARTIAL_FAILURE UNKNOWN_BATCH_PARTIAL_FAILURE"],
    );
}

#[test]
fn audit_events_are_no_failures() {
    for event in ["TOKEN_ISSUED", "TOKEN_VALIDATED", "TOKEN_REVOKED", "CONFIRMATION_GRANTED"] {
        check(
            &format!(r#"{{"event":"{event}","token":"conf_x1"}}"#),
            &[&format!("audit mcp-aql {event} {event}")],
        );
    }
    check(r#"{"event":"TOKEN_SOMETHING"}"#, &["? no_envelope"]);
}

#[test]
fn json_rpc() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params"}}"#,
        &["error jsonrpc -32602 VALIDATION_INVALID_PARAMS"],
    );
    check(r#"{"jsonrpc":"2.0","id":1,"error":"down"}"#, &["error jsonrpc - UNKNOWN_ERROR"]);
    check(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#, &["ok jsonrpc"]);
    check(r#"{"jsonrpc":"2.0","id":1,"result":null}"#, &["ok jsonrpc"]);
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}"#,
        &["input_required jsonrpc"],
    );
    check(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#, &["ok jsonrpc"]);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, &["? not_a_reply"]);
    check(
        r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}},7]"#,
        &["ok jsonrpc", "error jsonrpc -32601 NOT_FOUND_OPERATION", "? no_envelope"],
    );
}

#[test]
fn the_numeric_model_hides_in_results() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":{"error":{"code":3002,"message":"Too slow","retryable":true}}}"#,
        &["error mcp-reference 3002 INTERNAL_TIMEOUT hidden"],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":2001,"message":"Bad","data":{"retryable":false,"field":"a"}}}"#,
        &["error mcp-reference 2001 VALIDATION_ERROR"],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":{"error":{"code":2999,"message":"Odd","retryable":false}}}"#,
        &["error mcp-reference 2999 VALIDATION_UNREGISTERED hidden"],
    );
}

#[test]
fn tool_results_are_looked_into() {
    let pause = "error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE";
    let hidden = format!("{pause} hidden");
    check(&in_tool_result(PAUSE, Some(false)), &[&hidden]);
    check(&in_tool_result(PAUSE, None), &[&hidden]);
    check(&in_tool_result(PAUSE, Some(true)), &[pause]);
    check(&in_tool_result(r#"{"success":true}"#, Some(false)), &["ok mcp-aql"]);
    check(&in_tool_result("sunny", Some(false)), &["ok jsonrpc"]);
    check(&in_tool_result(r#"{"temperature":3}"#, None), &["ok jsonrpc"]);
    check(
        &in_tool_result("Invalid date: must be later", Some(true)),
        &["error jsonrpc tool_error VALIDATION_ERROR inferred"],
    );
    check(&in_tool_result("it broke", Some(true)), &["error jsonrpc tool_error UNKNOWN_TOOL_ERROR"]);
    check(
        r#"{"content":[{"type":"text","text":"Too many requests"}],"isError":true}"#,
        &["error jsonrpc tool_error RATE_LIMIT_EXCEEDED inferred"],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}"#,
        &["error jsonrpc tool_error UNKNOWN_TOOL_ERROR"],
    );
}

#[test]
fn structured_content_is_not_counted_twice() {
    let text = serde_json::to_string(PAUSE).expect("text");
    let both = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{PAUSE}}}}}"#
    );
    check(&both, &["error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE hidden"]);
    let only_text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{{"a":1}}}}}}"#
    );
    check(&only_text, &["error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE hidden"]);
}

#[test]
fn agent_skills() {
    check(
        r#"{"error":{"code":"not_found","type":"SkillNotFoundError","message":"Skill 'a.b' not found.","hint":"List them."},"trace_id":"abc-1"}"#,
        &["error agent-skills not_found NOT_FOUND_OPERATION"],
    );
    check(
        r#"{"id":3,"error":{"code":"rate_limited","message":"Slow down","type":"X","status":429}}"#,
        &["error agent-skills rate_limited RATE_LIMIT_EXCEEDED"],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no","data":{"agent_skills_code":"conformance_unmet","type":"BindingExecutionError"}}}"#,
        &["error agent-skills conformance_unmet CONFLICT_CONFORMANCE_UNMET"],
    );
    check(
        r#"{"error":"StepTimeoutError: step 'x' took too long","code":"step_timeout"}"#,
        &["error agent-skills step_timeout INTERNAL_TIMEOUT"],
    );
    check(
        &in_tool_result(
            r#"{"error":"CapabilityNotFoundError: gone","code":"not_found","tool":"text.cut"}"#,
            None,
        ),
        &["error agent-skills not_found NOT_FOUND_OPERATION hidden"],
    );
    check(
        r#"{"error":{"code":"safety_denied","type":"SafetyTrustLevelError","message":"Trust too low","hint":"h"}}"#,
        &["error agent-skills safety_denied PERMISSION_TRUST_LEVEL_INSUFFICIENT"],
    );
    check(
        r#"{"error":{"code":"safety_denied","type":"GateDeniedError","message":"No","hint":"h"}}"#,
        &["error agent-skills safety_denied PERMISSION_DANGER_LEVEL_DENIED"],
    );
    check(r#"{"id":3,"result":{"text":"done"}}"#, &["ok agent-skills"]);
}

#[test]
fn other_codes() {
    check(
        r#"{"error":{"code":"ACME_MCP_VALIDATION_INVALID_THING","category":"validation","message":"no"}}"#,
        &["error unknown ACME_MCP_VALIDATION_INVALID_THING VALIDATION_ACME_MCP_VALIDATION_INVALID_THING"],
    );
    check(
        r#"{"error":{"code":"INTROSPECTION_FAILED","message":"x"}}"#,
        &["error unknown INTROSPECTION_FAILED INTERNAL_INTROSPECTION_FAILED"],
    );
    check(
        r#"{"error":{"code":"UNKNOWN_THING","message":"x"}}"#,
        &["error unknown UNKNOWN_THING UNKNOWN_THING"],
    );
    check(r#"{"level":"info","code":"SYSTEM_STARTED","message":"up"}"#, &["? no_envelope"]);
    check(
        r#"{"event":"TOKEN_VALIDATED","success":false,"token":"conf_a"}"#,
        &["audit mcp-aql TOKEN_VALIDATED TOKEN_VALIDATED"],
    );
    check(
        r#"{"id":3,"result":{"error":{"code":4001,"message":"m","retryable":false}}}"#,
        &["error mcp-reference 4001 INTERNAL_ADAPTER_ERROR hidden"],
    );
    check(
        r#"{"error":{"code":"VALIDATION_NEW_THING","message":"x"}}"#,
        &["error unknown VALIDATION_NEW_THING VALIDATION_NEW_THING"],
    );
    check(
        r#"{"error":{"code":"E_WHATEVER","message":"permission denied for x"}}"#,
        &["error unknown E_WHATEVER PERMISSION_DENIED inferred"],
    );
    check(
        r#"{"error":{"code":"E_WHATEVER","message":"hm"}}"#,
        &["error unknown E_WHATEVER UNKNOWN_UNREGISTERED"],
    );
    check(
        r#"{"error":{"code":"rate_limit_exceeded","message":"hm"}}"#,
        &["error unknown rate_limit_exceeded RATE_LIMIT_EXCEEDED inferred"],
    );
    check(
        r#"{"error":{"code":"RATE_LIMIT_EXCEEDED","message":"m"}}"#,
        &["error mcp-aql RATE_LIMIT_EXCEEDED RATE_LIMIT_EXCEEDED"],
    );
    check(
        r#"{"code":"RATE_LIMIT_EXCEEDED","message":"API rate limit exceeded"}"#,
        &["error mcp-aql RATE_LIMIT_EXCEEDED RATE_LIMIT_EXCEEDED"],
    );
    check(
        r#"{"level":"error","error":"connection refused"}"#,
        &["error unknown - INTERNAL_UPSTREAM_UNAVAILABLE inferred"],
    );
    check(
        r#"{"error":{"code":-32700,"message":"Parse error"}}"#,
        &["error jsonrpc -32700 PROTOCOL_PARSE_ERROR"],
    );
    check(r#"{"error":null,"status":200}"#, &["ok http"]);
}

#[test]
fn a_batch_error_is_its_items_wherever_it_is_sent() {
    let batch = r#"{"code":"BATCH_PARTIAL_FAILURE","message":"1 of 2","details":{"succeeded":1,"errors":[{"index":1,"code":"TOKEN_EXPIRED","message":"m"}]}}"#;
    let item = "TOKEN_EXPIRED TOKEN_EXPIRED";
    check(&format!(r#"{{"error":{batch}}}"#), &[&format!("error mcp-aql {item} #1"), "ok mcp-aql"]);
    check(
        &format!(r#"{{"jsonrpc":"2.0","id":1,"error":{batch}}}"#),
        &[&format!("error mcp-aql {item} #1"), "ok mcp-aql"],
    );
    check(
        &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"error":{batch}}}}}"#),
        &[&format!("error mcp-aql {item} hidden #1"), "ok mcp-aql"],
    );
}

#[test]
fn no_failure_hides_behind_a_success() {
    let failed = r#"{\"success\":false,\"error\":{\"code\":\"TOKEN_EXPIRED\"}}"#;
    let expired = "error mcp-aql TOKEN_EXPIRED TOKEN_EXPIRED hidden";
    check(
        &format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{{\"success\":true}}"}},{{"type":"text","text":"{failed}"}}]}}}}"#
        ),
        &["ok mcp-aql", expired],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":[{"success":false,"error":{"code":"TOKEN_EXPIRED"}}]}"#,
        &[expired],
    );
    check(&format!(r#"{{"success":true,"response":"{failed}"}}"#), &[expired]);
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":{"error":"permission denied"}}"#,
        &["error unknown - PERMISSION_DENIED hidden inferred"],
    );
    let deep = (0..5).fold("{\"success\":false}".to_owned(), |inner, _| in_tool_result(&inner, None));
    check(&deep, &["? too_many_levels"]);
}

#[test]
fn lists_of_replies_are_opened() {
    let expired = "error mcp-aql TOKEN_EXPIRED TOKEN_EXPIRED";
    let list = r#"[{"success":true},{"success":false,"error":{"code":"TOKEN_EXPIRED"}},{"note":1}]"#;
    check(&format!(r#"{{"body":{list}}}"#), &["ok mcp-aql", expired]);
    check(
        &format!(r#"{{"message":{}}}"#, serde_json::to_string(list).expect("text")),
        &["ok mcp-aql", expired],
    );
}

#[test]
fn errors_that_were_encoded_once_more_are_opened() {
    let error = r#""{\"code\":\"TOKEN_EXPIRED\",\"message\":\"m\"}""#;
    check(&format!(r#"{{"success":false,"error":{error}}}"#), &["error mcp-aql TOKEN_EXPIRED TOKEN_EXPIRED"]);
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":"{\"code\":-32601,\"message\":\"Method not found\"}"}"#,
        &["error jsonrpc -32601 NOT_FOUND_OPERATION"],
    );
}

#[test]
fn a_profile_keeps_the_numbers_of_json_rpc() {
    let profile = "[profiles.services]\ns = \"mcp-reference\"";
    let reply = |code: i64| {
        format!(r#"{{"service":"s","jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"boom"}}}}"#)
    };
    check_with(profile, &reply(-32603), &["error mcp-reference -32603 INTERNAL_ERROR"]);
    check_with(profile, &reply(-32602), &["error mcp-reference -32602 VALIDATION_INVALID_PARAMS"]);
}

/// Shapes of APIs that no dialect describes, as adapters pass them on.
#[test]
fn strangers() {
    check(
        r#"{"error":{"code":404,"status":"NOT_FOUND","message":"Requested entity was lost"}}"#,
        &["error unknown 404 NOT_FOUND_RESOURCE inferred"],
    );
    check(
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"Number of tokens has exceeded your allowance"}}"#,
        &["error unknown - RATE_LIMIT_EXCEEDED inferred"],
    );
    check(
        r#"{"error":{"message":"You sent too much","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
        &["error unknown rate_limit_exceeded RATE_LIMIT_EXCEEDED inferred"],
    );
    check(r#"{"level":"error","error":{"name":"X"}}"#, &["error unknown - UNKNOWN_ERROR"]);
    check(r#"{"data":{"walls":[{"status":404}]},"errors":[]}"#, &["? no_envelope"]);
}

#[test]
fn a_status_is_better_than_nothing() {
    check(r#"{"path":"/a","status":404}"#, &["error http - NOT_FOUND_RESOURCE inferred"]);
    check(r#"{"http_status":503,"status":"failed"}"#, &["error http - INTERNAL_ERROR inferred"]);
    check(r#"{"statusCode":"429"}"#, &["error http - RATE_LIMIT_EXCEEDED inferred"]);
    check(r#"{"status":418}"#, &["error http - VALIDATION_INVALID_TYPE inferred"]);
    check(
        r#"{"ts":"2026-03-11T10:21:07Z","event":"service.web.page.fetch","status":"completed","http_status":200,"duration_ms":595.7}"#,
        &["ok http"],
    );
    check(
        r#"level=INFO msg="tool call" audit=true user=u-17 tool=echo status=401 request_id=r1"#,
        &["error http - PERMISSION_DENIED inferred"],
    );
    check("level=INFO msg=\"tool call\" status=200", &["ok http"]);
    check("level=INFO msg=starting", &["? no_envelope"]);
    check(
        r#"{"log":"{\"path\":\"/x\",\"status\":500}\n","stream":"stdout"}"#,
        &["error http - INTERNAL_ERROR inferred"],
    );
}

#[test]
fn wrappers_are_opened_in_order() {
    let pause = "error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE";
    let wrappers = [
        "response", "result", "envelope", "body", "payload", "event", "data", "message", "msg", "log",
        "error",
    ];
    for wrapper in wrappers {
        check(&format!(r#"{{"level":"info","{wrapper}":{PAUSE}}}"#), &[pause]);
        let text = serde_json::to_string(&format!("\n {PAUSE}")).expect("text");
        check(&format!(r#"{{"level":"info","{wrapper}":{text}}}"#), &[pause]);
    }
    check(&format!(r#"{{"msg":{{"success":true}},"response":{PAUSE}}}"#), &[pause]);
    check(&serde_json::to_string(PAUSE).expect("text"), &[pause]);
    check(&format!("\u{feff}{PAUSE}"), &[pause]);
    check_with("[find]\npaths = [\"k8s.payload\"]", &format!(r#"{{"k8s":{{"payload":{PAUSE}}}}}"#), &[pause]);
    check(&format!(r#"{{"k8s":{{"payload":{PAUSE}}}}}"#), &["? no_envelope"]);
}

#[test]
fn only_so_many_levels_are_opened() {
    let nest =
        |levels: usize| (0..levels).fold(PAUSE.to_owned(), |inner, _| format!(r#"{{"data":{inner}}}"#));
    let pause = "error mcp-aql RATE_LIMIT_QUOTA_PAUSE RATE_LIMIT_QUOTA_PAUSE";
    check(&nest(4), &[pause]);
    check(&nest(5), &["? too_many_levels"]);
    let encode = |levels: usize| {
        let in_log = |inner: String| format!(r#"{{"log":{}}}"#, serde_json::to_string(&inner).expect("text"));
        (0..levels).fold(PAUSE.to_owned(), |inner, _| in_log(inner))
    };
    check(&encode(4), &[pause]);
    check(&encode(5), &["? too_many_levels"]);
}

#[test]
fn what_is_nothing_is_said_to_be_nothing() {
    for record in [
        "{}",
        "[]",
        "{\"a\":1}",
        "\"text\"",
        "{\"level\":\"info\",\"message\":\"started\"}",
        "{\"success\":null}",
        "null",
        "17",
        "true",
    ] {
        check(record, &["? no_envelope"]);
    }
    for record in ["", "   ", "\u{feff}", "\r"] {
        check(record, &[]);
    }
}

/// A text that was truncated inside an emoji is valid JSON with a lone surrogate. The event must survive, even though
/// the character is lost.
#[test]
fn half_a_character_costs_nothing_else() {
    check(
        r#"{"success":false,"error":{"code":"INTERNAL_ERROR","message":"cut \ud83d"}}"#,
        &["error mcp-aql INTERNAL_ERROR INTERNAL_ERROR"],
    );
}
