//! Replies inside the text that loggers and transports add around them.

use super::*;

const DENIED: &str = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Permission denied"}}"#;

#[test]
fn server_sent_events() {
    check_outcomes(&[
        ("event: message", "? not_a_reply"),
        (": ping", "? not_a_reply"),
        ("id: 17", "? not_a_reply"),
        ("data: [DONE]", "? not_a_reply"),
        (&format!("data: {DENIED}"), "PERMISSION"),
        (&format!("data:{DENIED}"), "PERMISSION"),
        (&format!("event: message\ndata: {DENIED}\n\n"), "PERMISSION"),
        (&format!("event: message\r\ndata: {DENIED}\r\n\r\n"), "PERMISSION"),
        (
            "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\ndata: \"error\":{\"code\":-32603,\"message\":\"Access denied\"}}\n",
            "PERMISSION",
        ),
        (
            &format!("id: 1\ndata: {DENIED}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{{}}}}\n\n"),
            "PERMISSION, ok",
        ),
        (
            &serde_json::json!({ "level": "debug", "body": format!("event: message\ndata: {DENIED}\n\n") })
                .to_string(),
            "PERMISSION",
        ),
        ("data: {\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"id\":1}", "? not_a_reply"),
        ("data set was saved", "? not_json"),
        ("id: not one word", "? not_json"),
    ]);
}

#[test]
fn json_behind_a_prefix() {
    let escaped = DENIED.replace('"', "\\\"");
    for prefix in [
        "2026-03-17T21:02:23.123Z [weather] [info] Message from server: ",
        "2026-03-17T21:02:23Z stdout F ",
        "Mar 17 21:02:23 box weather[812]: ",
        "weather-1  | ",
        "[ERROR] 2026-03-17 21:02:23,500 Streamable HTTP error: Error POSTing to endpoint: ",
        "I0317 21:02:23.000000 1 server.go:12] ",
        "2026-03-17T21:02:23Z DEBUG rmcp::service: ",
        "ERROR:mcp.client:reply ",
        "[2026-03-17 21:02:23] [info] <- ",
        "< ",
    ] {
        check_outcomes(&[
            (&format!("{prefix}{DENIED}"), "PERMISSION"),
            (&format!("{prefix}{DENIED} (attempt 1)"), "PERMISSION"),
        ]);
    }
    check_outcomes(&[
        (&format!("2026-03-17T21:02:23Z [weather] [info] Message from server: {escaped}"), "PERMISSION"),
        (
            r#"2026-03-17T21:02:23Z [weather] [info] Message from client: {"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            "? not_a_reply",
        ),
        (
            &serde_json::json!({ "level": "info", "message": format!("Message from server: {DENIED}") })
                .to_string(),
            "PERMISSION",
        ),
        (r#"2026-03-17T21:02:23Z [weather] [info] settings: {"theme":"dark"}"#, "? not_json"),
        (
            r#"API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "INTERNAL",
        ),
    ]);
}

#[test]
fn a_prefix_names_the_time_and_the_server() {
    let json = event(&format!("2026-03-17T21:02:23Z [weather] [error] Message from server: {DENIED}"));
    assert_eq!((&json["time"], &json["service"]), (&"2026-03-17T21:02:23Z".into(), &"weather".into()));
    assert_eq!(json["request_id"], "3");
    let json = event(
        r#"2026-03-17 21:02:23,250 [DEBUG] MCP server "maps": Tool 'route' failed after 3s: Permission denied"#,
    );
    assert_eq!((&json["time"], &json["service"]), (&"2026-03-17T21:02:23.25Z".into(), &"maps".into()));
    assert_eq!((&json["operation"], &json["duration_us"]), (&"route".into(), &3_000_000.into()));
    assert_eq!(json["message"], "Permission denied");
}

#[test]
fn hosts_write_lines_without_json() {
    check_outcomes(&[
        ("Tool 'route' failed after 0s: MCP error -32000: Connection closed", "INTERNAL"),
        ("2026-03-17T21:02:23Z [maps] [error] Server disconnected. See the log for help.", "INTERNAL"),
        (
            r#"2026-03-17T21:02:23Z [DEBUG] MCP server "maps": Tool 'route' completed successfully in 16ms"#,
            "ok",
        ),
        ("2026-03-17 21:02:23.000 [info] Connection state: Running", "? not_json"),
        ("2026-03-17 21:02:23.000 [warning] [server stderr] DeprecationWarning: old", "? not_json"),
        ("mcp: maps failed: MCP client for `maps` failed to start: connection closed", "INTERNAL"),
        ("Error: Tool 'lookup' returned isError:true.", "INTERNAL"),
        ("panic: runtime error: index out of range [3] with length 2", "INTERNAL"),
        ("thread 'main' panicked at src/main.rs:4:9: boom", "INTERNAL"),
        ("Server disconnected", "? not_json"),
        ("the server disconnected the tool 'x' failed", "? not_json"),
        ("not json at all", "? not_json"),
    ]);
}

/// Desktop hosts, editors and gateways write failures of servers without JSON, with tags and marks of their own.
#[test]
fn other_hosts_have_lines_of_their_own() {
    check_outcomes(&[
        (
            &format!(
                "2026-03-17T21:02:23.5Z [maps] [info] Message from server: {DENIED} {{ metadata: undefined }}"
            ),
            "PERMISSION",
        ),
        (
            r#"2026-03-17T21:02:23Z [ERROR] MCP server "maps" Connection failed: spawn maps ENOENT"#,
            "INTERNAL",
        ),
        ("2026-03-17 21:02:23.011 [error] lMCP: Client error for command spawn maps ENOENT", "INTERNAL"),
        (
            "2026-03-17 21:02:23.011 [error] maps: Failed to reload client: MCP error -32000: Connection closed",
            "INTERNAL",
        ),
        ("2026-03-17 21:02:23.011 [info] maps: Successfully called tool 'list_failed_routes'", "ok"),
        ("2026-03-17 21:02:23.011 [info] maps: Found 3 tools", "? not_json"),
        (
            "2026-03-17 21:02:23.011 [error] 401 status sending message to https://maps.example/mcp: Unauthorized",
            "PERMISSION",
        ),
        ("proxy  | 2026-03-17 21:02:23 error: [MCP][maps] Transport error: SSE error: undefined", "INTERNAL"),
        ("proxy  | 2026-03-17 21:02:23 info: [MCP][maps] ✓ Initialized", "? not_json"),
        (
            "2026-03-17T21:02:23Z ERROR [context_server::client] Failed to read the reply: request timed out",
            "INTERNAL",
        ),
        ("2026-03-17T21:02:23Z ERROR [disk::cleaner] Failed to remove a file", "? not_json"),
        ("  > Can't start maps: failed to connect: EOF", "INTERNAL"),
        (
            "E0317 21:02:23.975004 7 server.go:70] mcp tool call failed: MCP error -32603: permission denied",
            "PERMISSION",
        ),
        (
            r#"WARN  server unavailable { key: "maps", error: "MCP error -32000: Connection closed" }"#,
            "INTERNAL",
        ),
    ]);
}

#[test]
fn fields_after_a_prefix_and_some_words() {
    check_outcomes(&[
        (
            "2026-03-17T21:02:23Z info request gateway=a/b http.status=200 gen_ai.tool.name=route mcp.error.code=-32602 mcp.error.message=\"tool not found\" duration=3ms",
            "NOT_FOUND",
        ),
        (
            "2026-03-17T21:02:23Z info request gateway=a/b http.status=200 gen_ai.tool.name=route duration=3ms",
            "ok",
        ),
        ("2026-03-17T21:02:23Z info started with a=b", "? not_json"),
    ]);
}

/// Lines that are built to be expensive take bounded work and yield a reason.
#[test]
fn hostile_lines_are_survived() {
    let cases = [
        "{\"".repeat(200_000),
        format!("x {}", "{\"a\":".repeat(150_000)),
        format!("x {}}}", "{\"a\" ".repeat(150_000)),
        "[info] ".repeat(100_000),
        "2026-03-17T21:02:23Z ".repeat(40_000),
        format!("data: {}", "[".repeat(500_000)),
        "data: {\n".repeat(100_000),
        "event: x\n".repeat(100_000),
        format!("data: {{\"jsonrpc\":\"2.0\",\"result\":{}", "{\"a\":".repeat(100_000)),
        format!("Tool '{}", "x".repeat(900_000)),
        format!("MCP server \"{}", "x".repeat(900_000)),
        "a=b ".repeat(200_000),
        format!("x {}", "{\\\"".repeat(200_000)),
    ];
    for record in cases {
        let found = outcomes(&record);
        assert!(
            !found.is_empty() && found.iter().all(|one| one.starts_with('?')),
            "{} {found:?}",
            &record[..40]
        );
    }
}
