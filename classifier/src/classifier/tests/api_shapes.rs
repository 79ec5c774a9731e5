//! The shapes of upstream APIs inside tool results: failures that are not flagged, and data that only resembles
//! failures.

use super::*;

/// Checks JSON or prose as the text of a tool result that is not flagged.
#[track_caller]
fn check_unflagged(cases: &[(&str, &str)]) {
    let records: Vec<(String, &str)> =
        cases.iter().map(|(text, expected)| (in_tool_result(text, Some(false)), *expected)).collect();
    let borrowed: Vec<(&str, &str)> =
        records.iter().map(|(record, expected)| (record.as_str(), *expected)).collect();
    check_outcomes(&borrowed);
}

#[test]
fn apis_say_it_in_many_shapes() {
    check_unflagged(&[
        (r#"{"ok":false,"error":"invalid_auth"}"#, "PERMISSION hidden"),
        (r#"{"ok":false,"error_code":404,"description":"Not Found: chat is gone"}"#, "NOT_FOUND hidden"),
        (r#"{"success":0,"message":"Permission denied for bob"}"#, "PERMISSION hidden"),
        (r#"{"success":"false","error":"Too many requests"}"#, "RATE_LIMIT hidden"),
        (
            r#"{"success":false,"errors":[{"code":7003,"message":"Zone not found"}],"messages":[],"result":null}"#,
            "NOT_FOUND hidden",
        ),
        (r#"{"exito":false,"mensaje":"Acceso denegado: permission denied"}"#, "PERMISSION hidden"),
        (r#"{"status":"error","message":"Rate limit exceeded"}"#, "RATE_LIMIT hidden"),
        (r#"{"status":"failed","message":"Invalid date: must be in the future"}"#, "VALIDATION hidden"),
        (r#"{"status":"fail","data":{"title":"title is required"}}"#, "VALIDATION hidden"),
        (r#"{"error":true,"message":"Unauthorized"}"#, "PERMISSION hidden"),
        (r#"{"is_error":true,"error_description":"The token expired"}"#, "PERMISSION hidden"),
        (r#"{"error":"invalid_grant","error_description":"Refresh token revoked"}"#, "PERMISSION hidden"),
        (r#"{"error":"Project 'apollo' not found"}"#, "NOT_FOUND hidden"),
        (r#"{"errore":"Utente sconosciuto: user not found"}"#, "NOT_FOUND hidden"),
        (
            r#"{"data":null,"errors":[{"message":"Argument 'first' must be an integer","locations":[{"line":1,"column":9}]}]}"#,
            "VALIDATION hidden",
        ),
        (
            r#"{"data":{"repository":null},"errors":[{"type":"NOT_FOUND","path":["repository"],"message":"Could not resolve to a Repository"}]}"#,
            "NOT_FOUND hidden",
        ),
        (
            r#"{"errors":[{"status":"403","title":"Forbidden","detail":"Missing scope"}]}"#,
            "PERMISSION hidden",
        ),
        (r#"{"errorMessages":["Issue does not exist."],"errors":{}}"#, "NOT_FOUND hidden"),
        (
            r#"{"type":"https://api.example.test/problems/out-of-stock","title":"Not Found","status":404,"detail":"SKU 7 is unknown"}"#,
            "NOT_FOUND hidden",
        ),
        (r#"{"detail":"Not authenticated"}"#, "PERMISSION hidden"),
        (
            r#"{"detail":[{"type":"missing","loc":["body","name"],"msg":"Field required","input":{}}]}"#,
            "VALIDATION hidden",
        ),
        (
            r#"{"message":"Not Found","documentation_url":"https://docs.example.test/rest","status":"404"}"#,
            "NOT_FOUND hidden",
        ),
        (
            r#"{"statusCode":500,"error":"Internal Server Error","message":"Internal server error"}"#,
            "INTERNAL hidden",
        ),
        (
            r#"{"timestamp":"2026-05-04T08:00:00Z","status":403,"error":"Forbidden","path":"/orders"}"#,
            "PERMISSION hidden",
        ),
        (
            r#"{"__type":"com.example#ResourceNotFoundException","message":"Requested table not found"}"#,
            "NOT_FOUND hidden",
        ),
        (r#"{"Code":"AccessDenied","Message":"Access Denied"}"#, "PERMISSION hidden"),
        (
            r#"{"Error":{"Code":"ThrottlingException","Message":"Rate exceeded"},"ResponseMetadata":{"RetryAttempts":4}}"#,
            "RATE_LIMIT hidden",
        ),
        (
            r#"{"error":{"code":403,"message":"The caller does not have permission","status":"PERMISSION_DENIED"}}"#,
            "PERMISSION hidden",
        ),
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "INTERNAL hidden"),
        (
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"web\" not found","reason":"NotFound","code":404}"#,
            "NOT_FOUND hidden",
        ),
        (
            r#"{"object":"error","status":400,"code":"validation_error","message":"body failed validation"}"#,
            "VALIDATION hidden",
        ),
        (r#"{"message":"Unknown Channel","code":10003}"#, "NOT_FOUND hidden"),
        (
            r#"[{"error":{"code":404,"message":"Entity was not found","status":"NOT_FOUND"}}]"#,
            "NOT_FOUND hidden",
        ),
        (r#"{"result":"{\"error\":\"Access denied\"}"}"#, "PERMISSION hidden"),
        (r#"{"fault":{"faultstring":"Access denied","detail":{"errorcode":"x"}}}"#, "PERMISSION hidden"),
        (r#"{"errors":{"name":["is required"]}}"#, "VALIDATION hidden"),
        (r#"{"errcode":40001,"errmsg":"access denied"}"#, "PERMISSION hidden"),
        (r#"[{"type":"text","text":"Error: access denied"}]"#, "PERMISSION hidden"),
    ]);
}

/// A false alarm is as bad as a miss: information about other things that a tool returns is data.
#[test]
fn data_that_talks_about_errors_is_no_failure() {
    check_unflagged(&[
        (r#"{"id":41,"name":"deploy","status":"failed","failure_reason":"script_failure"}"#, "ok"),
        (r#"{"run":{"status":"error","message":"exit 1"}}"#, "ok"),
        (r#"{"status":"ERROR","conditions":[{"metric":"coverage","status":"ERROR"}]}"#, "ok"),
        (r#"{"jobs":[{"success":false,"error":"boom"},{"success":true}]}"#, "ok"),
        (r#"[{"id":1,"error":"timeout"},{"id":2,"error":null}]"#, "ok"),
        (r#"[{"level":"error","message":"connection refused"}]"#, "ok"),
        (r#"{"errors":[{"line":3,"message":"unused variable","severity":"warning"}],"warnings":[]}"#, "ok"),
        (r#"{"errors":[],"data":{"user":{"name":"Ann"}}}"#, "ok"),
        (r#"{"data":{"user":{"name":"Ann"}},"errors":[{"message":"avatar is down"}]}"#, "ok"),
        (r#"{"error":null,"rows":[]}"#, "ok"),
        (r#"{"error":"none","value":3}"#, "ok"),
        (r#"{"error":"","value":3}"#, "ok"),
        (r#"{"error":false,"message":"saved"}"#, "ok"),
        (r#"{"ok":true,"error":"previous run failed"}"#, "ok"),
        (r#"{"status":"completed","error":"exit status 1","steps":[{"name":"build"}]}"#, "ok"),
        (r#"{"code":200,"message":"success","data":{"n":1}}"#, "ok"),
        (r#"{"code":0,"msg":"ok"}"#, "ok"),
        (r#"{"message":"No matching documents","documents":[]}"#, "ok"),
        (r#"{"title":"Not Found page","status":"published","body":"404"}"#, "ok"),
        (r#"{"statusCode":200,"message":"fine"}"#, "ok"),
        (r#"{"url":"https://example.test/x","status":404,"latency":12}"#, "ok"),
        (r#"{"valid":false,"issues":["name is missing"]}"#, "ok"),
        (r#"{"success":true,"results":[{"title":"x","error":"permission denied"}]}"#, "ok"),
        (r#"{"logs":[{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"boom"}}]}"#, "ok"),
        (r#"{"config":{"retries":3,"on_error":"fail"},"timeout":30}"#, "ok"),
        (r#"{"detail":"A quiet room with a view","price":90}"#, "ok"),
        (r#"{"event":"deploy","level":"error","message":"rollback done","service":"web"}"#, "ok"),
        (r#"{"errors":{"timeout":2,"refused":1}}"#, "ok"),
        (r#"{"errcode":0,"errmsg":"ok"}"#, "ok"),
        (r#"{"log":"ERROR: connection refused"}"#, "ok"),
        (r#"{"job_id":"j-1","status":"failed","error":"exit 1","started":"08:00","finished":"08:01"}"#, "ok"),
        (r#"{"kind":"Event","status":"Failure","message":"x","metadata":{"name":"e"}}"#, "ok"),
        (r#"{"code":"CHF","message":"12.50"}"#, "ok"),
        ("All 12 checks passed, 0 errors", "ok"),
    ]);
}

/// Under `isError: true` there is exactly one failure, whatever the texts contain.
#[test]
fn a_flagged_result_is_one_failure() {
    let texts = [
        "it broke",
        "",
        r#"{"success":true}"#,
        r#"{"n":1}"#,
        r#"[{"success":false,"error":{"code":"TOKEN_EXPIRED"}},{"success":false,"error":{"code":"TOKEN_EXPIRED"}}]"#,
        r#"{"status":"completed"}"#,
        r#"{"error":{"code":"not_found","message":"gone"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"data":{"error":{"code":"E_X","message":"deep"}}}"#,
        "GitLab says: 401 Unauthorized\n{\"message\":\"401 Unauthorized\"}",
        "not {json",
    ];
    for text in texts {
        let record = in_tool_result(text, Some(true));
        assert_eq!(outcomes(&record).len(), 1, "{record}: {:?}", outcomes(&record));
        assert!(!outcomes(&record)[0].contains("hidden"), "{record}");
    }
    check_outcomes(&[(
        r#"{"content":[{"type":"text","text":"Access denied"},{"type":"text","text":"Not found"}],"isError":true}"#,
        "PERMISSION",
    )]);
}

#[test]
fn python_dumps_write_snake_case() {
    check_outcomes(&[
        (r#"{"content":[{"type":"text","text":"Permission denied"}],"is_error":true}"#, "PERMISSION"),
        (r#"{"content":[{"type":"text","content":"Permission denied"}],"is_error":true}"#, "PERMISSION"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structured_content":{"error":"User 7 not found"},"is_error":false}}"#,
            "NOT_FOUND hidden",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structured_content":{"n":1},"is_error":false}}"#,
            "ok",
        ),
    ]);
}

#[test]
fn a_body_behind_words_belongs_to_the_same_failure() {
    let text = "Error: upstream answered 403 Forbidden {\"error\":{\"code\":\"ip_blocked\",\"message\":\"Your address is blocked\"}}";
    let json = event(&in_tool_result(text, Some(true)));
    assert_eq!((&json["code"], &json["message"]), (&"ip_blocked".into(), &text.into()));
    let envelope =
        r#"Error executing tool add: {"success":false,"error":{"code":"TOKEN_EXPIRED","message":"m"}}"#;
    assert_eq!(event(&in_tool_result(envelope, Some(true)))["canonical"], "TOKEN_EXPIRED");
    check_outcomes(&[(&in_tool_result(text, None), "PERMISSION hidden")]);
}

#[test]
fn the_slug_of_an_error_is_its_code() {
    let code = |text: &str| event(&in_tool_result(text, Some(false)))["code"].clone();
    assert_eq!(code(r#"{"ok":false,"error":"channel_not_found"}"#), "channel_not_found");
    assert_eq!(code(r#"{"error":"invalid_scope","error_description":"no such scope"}"#), "invalid_scope");
    assert_eq!(
        code(r#"{"__type":"com.example#ExpiredTokenException","message":"m"}"#),
        "ExpiredTokenException"
    );
    assert_eq!(
        code(r#"{"errors":[{"message":"m","extensions":{"code":"BAD_USER_INPUT"}}]}"#),
        "BAD_USER_INPUT"
    );
}

#[test]
fn replies_without_a_frame_and_log_records() {
    check_outcomes(&[
        (r#"{"code":-32603,"message":"Session not found: 7e-2","data":null}"#, "PROTOCOL"),
        (r#"{"level":"error","status":"error","message":"Permission denied"}"#, "PERMISSION"),
        (r#"{"level":"info","status":"failed","message":"job 7 ended"}"#, "? no_envelope"),
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "INTERNAL"),
        (r#"{"error":"invalid_token","error_description":"expired"}"#, "PERMISSION"),
        (r#"{"level":"warn","mcp.error.code":-32602,"mcp.error.message":"tool not found"}"#, "NOT_FOUND"),
        (r#"{"level":"info","code":"STARTED_UP","message":"up"}"#, "? no_envelope"),
        (r#"{"level":"ERROR","msg":"tool call failed","tool":"x","err":"access denied"}"#, "PERMISSION"),
        (
            r#"{"level":50,"msg":"tool failed","err":{"type":"Error","message":"access denied"}}"#,
            "PERMISSION",
        ),
        (r#"{"level":"error","msg":"access denied","tool":"x"}"#, "PERMISSION"),
        (r#"{"level":"error","msg":"disk is full"}"#, "? no_envelope"),
    ]);
}

#[test]
fn a_task_is_pending_until_it_ends() {
    check_outcomes(&[
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t-1","status":"working"}}"#,
            "pending",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t-1","status":"input_required"}}}"#,
            "pending",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t-1","status":"submitted"}}"#,
            "pending",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"result":{"taskId":"t-1","status":"completed","result":{"content":[{"type":"text","text":"Access denied"}],"isError":true}}}"#,
            "PERMISSION",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"result":{"taskId":"t-1","status":"completed","result":{"content":[{"type":"text","text":"fine"}]}}}"#,
            "ok",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"result":{"taskId":"t-1","status":"failed","error":{"code":-32603,"message":"Rate limit exceeded"}}}"#,
            "RATE_LIMIT",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-1","status":"failed","statusMessage":"Permission denied"}}"#,
            "PERMISSION",
        ),
        (r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#, "? not_a_reply"),
    ]);
}

#[test]
fn vendors_have_shapes_of_their_own() {
    check_unflagged(&[
        (r#"{"detail":{"error":"This exceeds the usage limit of your plan"}}"#, "RATE_LIMIT hidden"),
        (
            r#"{"name":"UNPROCESSABLE_ENTITY","message":"Not possible.","debug_id":"7","details":[{"issue":"X"}]}"#,
            "VALIDATION hidden",
        ),
        (r#"{"cod":"404","message":"town not found"}"#, "NOT_FOUND hidden"),
        (r#"{"result":false,"code":77,"message":"Request rejected by rate limit"}"#, "RATE_LIMIT hidden"),
        (
            r#"{"status":404,"message":"Shop 'a' not found","results":{"message":"Shop 'a' not found","type":"Exception"},"duration":0}"#,
            "NOT_FOUND hidden",
        ),
        (r#"{"status":404,"message":"of the page","results":[{"a":1}]}"#, "ok"),
        (r#"{"error":"","message":"","success":true}"#, "ok"),
        (r#"{"success":true,"error":{}}"#, "ok"),
        (r#"{"data":{"errors":{"nodes":[{"message":"timeout"}]}},"errors":[]}"#, "ok"),
    ]);
    check_outcomes(&[
        (r#"{"code":9,"error":{"log_id":"7"},"msg":"Invalid access token"}"#, "PERMISSION"),
        (r#"{"errorMessage":"Failed to connect: connection refused","errorDetails":{}}"#, "INTERNAL"),
        (r#"{"@l":"Error","@x":"System.TimeoutException: no answer","ToolName":"route"}"#, "INTERNAL"),
        (r#"{"type":"error","message":"Reconnecting... 2/5 (stream disconnected)"}"#, "? not_a_reply"),
        (
            r#"{"level":"warn","msg":"request failed, will retry","error":"connection refused"}"#,
            "? not_a_reply",
        ),
    ]);
}
