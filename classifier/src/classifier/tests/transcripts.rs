//! Lines of agent hosts' transcripts: failures, successes and lines that are not replies.

use super::*;

#[test]
fn claude_code() {
    check_outcomes(&[
        (
            r#"{"type":"user","sessionId":"s-9","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":"Permission denied: /srv/x"}]}}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":[{"type":"text","text":"File not found"}]}]}}"#,
            "NOT_FOUND",
        ),
        (
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"src/a.rs:3: bail!(\"permission denied\")"}]}}"#,
            "ok",
        ),
        (
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"fine"},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"Access denied"}]}}"#,
            "ok, PERMISSION",
        ),
        (
            r#"{"type":"user","tool_result_meta":[{"id":"toolu_2","non_execution_kind":"permission-rule"}],"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":"This command may not run here."}]}}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Error: I could not do it"}]}}"#,
            "? not_a_reply",
        ),
        (r#"{"type":"user","message":{"role":"user","content":"Error: it failed"}}"#, "? not_a_reply"),
        (
            r#"{"type":"system","subtype":"api_retry","attempt":1,"error":"rate_limit","error_status":429}"#,
            "? not_a_reply",
        ),
        (r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}"#, "? not_a_reply"),
        (
            r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["Session not found: 3"]}"#,
            "PROTOCOL",
        ),
        (
            r#"{"type":"assistant","isApiErrorMessage":true,"message":{"role":"assistant","content":[{"type":"text","text":"API Error: Rate limit exceeded"}]}}"#,
            "RATE_LIMIT",
        ),
    ]);
}

#[test]
fn codex() {
    check_outcomes(&[
        (
            r#"{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"ls","aggregated_output":"error.log","exit_code":0,"status":"completed"}}"#,
            "ok",
        ),
        (
            r#"{"type":"item.completed","item":{"id":"i1","type":"mcp_tool_call","server":"maps","tool":"route","status":"failed","error":{"message":"Permission denied"},"result":null}}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"item.completed","item":{"id":"i1","type":"mcp_tool_call","server":"maps","tool":"route","status":"failed","error":"Access denied","result":null}}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"item.completed","item":{"id":"i1","type":"mcp_tool_call","server":"maps","tool":"route","status":"completed","error":null,"result":{"content":[{"type":"text","text":"{\"error\":\"Access denied\"}"}]}}}"#,
            "PERMISSION hidden",
        ),
        (
            r#"{"type":"item.completed","item":{"id":"i1","type":"mcp_tool_call","server":"maps","tool":"route","status":"completed","error":null,"result":{"content":[{"type":"text","text":"12 km"}]}}}"#,
            "ok",
        ),
        (
            r#"{"type":"item.started","item":{"id":"i1","type":"mcp_tool_call","server":"maps","tool":"route","status":"in_progress"}}"#,
            "? not_a_reply",
        ),
        (
            r#"{"type":"event_msg","payload":{"type":"mcp_tool_call_end","call_id":"c1","invocation":{"server":"maps","tool":"route"},"duration":{"secs":1,"nanos":5000000},"result":{"Err":"Permission denied"}}}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"event_msg","payload":{"type":"mcp_tool_call_end","call_id":"c1","invocation":{"server":"maps","tool":"route"},"result":{"Ok":{"content":[{"type":"text","text":"Access denied"}],"isError":true}}}}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"Process exited with code 0\nOutput:\nfix the error path"}}"#,
            "ok",
        ),
    ]);
    let json = event(
        r#"{"type":"event_msg","payload":{"type":"mcp_tool_call_end","call_id":"c1","invocation":{"server":"maps","tool":"route"},"duration":{"secs":1,"nanos":5000000},"result":{"Err":"Permission denied"}}}"#,
    );
    assert_eq!((&json["service"], &json["operation"]), (&"maps".into(), &"route".into()));
    assert_eq!((&json["duration_us"], &json["request_id"]), (&1_005_000.into(), &"c1".into()));
}

#[test]
fn other_hosts_and_message_formats() {
    check_outcomes(&[
        (
            r#"{"type":"tool_result","tool_id":"t1","status":"error","output":"Denied.","error":{"type":"policy_violation","message":"Permission denied by policy"}}"#,
            "PERMISSION",
        ),
        (r#"{"type":"tool_result","tool_id":"t1","status":"success","output":"fine"}"#, "ok"),
        (
            r#"{"type":"tool_use","tool_name":"read","tool_id":"t1","parameters":{"path":"error.log"}}"#,
            "? not_a_reply",
        ),
        (
            r#"{"type":"message.part.updated","properties":{"part":{"type":"tool","callID":"c","tool":"read","state":{"status":"error","error":"File not found: /x","time":{"start":1000,"end":1500}}}}}"#,
            "NOT_FOUND",
        ),
        (
            r#"{"type":"message.part.updated","properties":{"part":{"type":"tool","callID":"c","tool":"read","state":{"status":"running","input":{"q":"error"}}}}}"#,
            "? not_a_reply",
        ),
        (
            r#"{"type":"message.part.updated","properties":{"part":{"type":"tool","callID":"c","tool":"read","state":{"status":"completed","output":"text"}}}}"#,
            "ok",
        ),
        (
            r#"{"type":"tool_use","part":{"tool":"note","state":{"status":"error","error":"{\"error\":\"Note not found\"}"}}}"#,
            "NOT_FOUND",
        ),
        (r#"{"type":"tool-output-error","toolCallId":"c","errorText":"Access denied"}"#, "PERMISSION"),
        (r#"{"type":"tool-output-available","toolCallId":"c","output":{"n":1}}"#, "ok"),
        (
            r#"{"role":"assistant","parts":[{"type":"tool-getWeather","toolCallId":"c","state":"output-error","errorText":"City not found"}]}"#,
            "NOT_FOUND",
        ),
        (
            r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"x","output":{"type":"error-text","value":"Access denied"}}]}"#,
            "PERMISSION",
        ),
        (
            r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"x","output":{"type":"text","value":"sunny"}}]}"#,
            "ok",
        ),
        (
            r#"{"role":"tool","tool_call_id":"c","name":"x","content":"Error: user not found"}"#,
            "NOT_FOUND hidden",
        ),
        (
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"mcp_tool_result","tool_use_id":"m","is_error":true,"content":[{"type":"text","text":"Access denied"}]}}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"mcp_call","id":"m1","name":"route","server_label":"maps","arguments":"{}","output":null,"error":"Access denied"}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"mcp_call","id":"m1","name":"route","server_label":"maps","arguments":"{}","output":"12 km","error":null}"#,
            "ok",
        ),
        (
            r#"{"type":"response.output_item.done","item":{"type":"mcp_call","id":"m1","name":"route","server_label":"maps","error":{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"Access denied"}]}}}"#,
            "PERMISSION",
        ),
        (
            r#"{"role":"user","content":[{"toolResult":{"toolUseId":"b1","status":"error","content":[{"text":"Access denied"}]}}]}"#,
            "PERMISSION",
        ),
        (
            r#"{"role":"user","parts":[{"functionResponse":{"name":"route","response":{"error":"Route not found"}}}]}"#,
            "NOT_FOUND",
        ),
        (
            r#"{"type":"message","message":{"role":"toolResult","toolName":"exec","isError":false,"content":[{"type":"text","text":"sh: command not found"}],"details":{"exitCode":127}}}"#,
            "NOT_FOUND hidden",
        ),
        (
            r#"{"role":"user","content":[{"type":"toolResponse","id":"r1","toolResult":{"status":"error","error":"Access denied"}}]}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"web_search_tool_result","tool_use_id":"w","content":{"type":"web_search_tool_result_error","error_code":"too_many_requests"}}"#,
            "RATE_LIMIT",
        ),
    ]);
}

#[test]
fn sessions_and_whole_responses() {
    check_outcomes(&[
        (r#"{"type":"event_msg","payload":{"type":"error","message":"Access denied"}}"#, "PERMISSION"),
        (
            r#"{"type":"event_msg","payload":{"type":"agent_message","message":"Error: access denied"}}"#,
            "? not_a_reply",
        ),
        (
            r#"{"id":"r","object":"response","status":"completed","output":[{"type":"mcp_call","id":"m","name":"x","server_label":"s","error":"access denied","output":null}]}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"mcpToolCall":{"args":{"toolName":"x"},"result":{"error":{"message":"access denied"}}}}}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"mcpToolCall":{"args":{"toolName":"x"},"result":{"rejected":{"reason":"no"}}}}}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"readToolCall":{"args":{"path":"error.log"},"result":{"success":{"content":"3 lines"}}}}}"#,
            "ok",
        ),
        (
            r#"{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"readToolCall":{"args":{"path":"error.log"}}}}"#,
            "? not_a_reply",
        ),
    ]);
}

/// The same words in records that are not transcripts keep their meaning.
#[test]
fn other_records_with_a_type_are_no_transcripts() {
    check_outcomes(&[
        (r#"{"type":"user","id":7,"name":"Ann"}"#, "? no_envelope"),
        (r#"{"type":"tool","success":false,"error":{"code":"TOKEN_EXPIRED"}}"#, "TOKEN"),
        (r#"{"type":"access","status":503}"#, "INTERNAL"),
        (r#"{"type":"system","error":"Permission denied"}"#, "PERMISSION"),
        (r#"{"role":"admin","error":"Permission denied"}"#, "PERMISSION"),
    ]);
}

#[test]
fn deep_and_large_transcripts_are_survived() {
    let deep = format!(
        r#"{{"type":"assistant","message":{}{}"#,
        r#"{"message":"#.repeat(50),
        "{}".to_owned() + &"}".repeat(51)
    );
    assert_eq!(outcomes(&deep), ["? not_a_reply"]);
    let item = r#"{"type":"tool_result","tool_use_id":"a","content":"fine"}"#;
    let wide = format!(
        r#"{{"type":"user","message":{{"role":"user","content":[{}]}}}}"#,
        vec![item; 9_000].join(",")
    );
    assert_eq!(outcomes(&wide).len(), 9_000);
}

#[test]
fn frameworks_and_editors_mark_failures_in_their_own_way() {
    check_outcomes(&[
        (
            r#"{"type":"gemini","toolCalls":[{"id":"c1","name":"read_page","args":{},"status":"error","result":[{"functionResponse":{"id":"c1","name":"read_page","response":{"error":"Page 7 not found"}}}]}]}"#,
            "NOT_FOUND",
        ),
        (
            r#"{"kind":"request","parts":[{"part_kind":"retry-prompt","tool_name":"route","tool_call_id":"c2","content":[{"type":"missing","loc":["to"],"msg":"Field required","input":{}}]}]}"#,
            "VALIDATION",
        ),
        (
            r#"{"kind":"request","parts":[{"part_kind":"tool-return","tool_name":"route","tool_call_id":"c2","content":"by train"}]}"#,
            "ok",
        ),
        (
            r#"{"type":"ToolCallExecutionEvent","source":"a","content":[{"call_id":"c3","name":"route","is_error":true,"content":"Client error '403 Forbidden'"}]}"#,
            "PERMISSION",
        ),
        (
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c4","output":"{\"output\":\"bash: yak: command not found\",\"metadata\":{\"exit_code\":127}}"}}"#,
            "NOT_FOUND hidden",
        ),
        (
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c4","output":"{\"output\":\"error.log\",\"metadata\":{\"exit_code\":0}}"}}"#,
            "ok",
        ),
        (
            r#"{"type":"tool","callID":"c5","tool":"bash","state":{"status":"completed","output":"'yak' is not recognized as an internal or external command","metadata":{"exit":1}}}"#,
            "NOT_FOUND hidden",
        ),
        (
            r#"{"role":"user","content":[{"type":"text","text":"[use_mcp_tool for 'maps'] Result:"},{"type":"text","text":"Error executing MCP tool:\nPermission denied for route"}]}"#,
            "PERMISSION hidden",
        ),
        (
            r#"{"role":"user","content":[{"type":"text","text":"[use_mcp_tool for 'maps'] Result:\nby train"}]}"#,
            "ok",
        ),
    ]);
}
