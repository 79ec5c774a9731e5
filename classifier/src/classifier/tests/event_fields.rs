//! The fields of an event: meaning, context, quotas, denials and findings, all without secrets.

use super::*;
use serde_json::json;

/// Checks some fields of the only event of a record; `null` means absent.
#[track_caller]
fn check_fields(record: &str, expected: &serde_json::Value) {
    let event = event(record);
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(event.get(key).unwrap_or(&serde_json::Value::Null), value, "{key} of {record}");
    }
}

#[test]
fn collisions_are_decided_by_evidence() {
    let reply = |code: i64, message: &str, data: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"{message}"{data}}}}}"#)
    };
    for (code, message, data, expected) in [
        (-32002, "Tool not found", "", "error erlmcp -32002 NOT_FOUND_OPERATION"),
        (-32002, "Resource not found", "", "error jsonrpc -32002 NOT_FOUND_RESOURCE"),
        (-32001, "Request timed out", "", "error jsonrpc -32001 INTERNAL_TIMEOUT"),
        (-32001, "request timeout", "", "error jsonrpc -32001 INTERNAL_TIMEOUT"),
        (-32001, "Resource not found", "", "error erlmcp -32001 NOT_FOUND_RESOURCE"),
        (-32000, "Connection closed", "", "error jsonrpc -32000 INTERNAL_TRANSPORT_ERROR"),
        (-32000, "weird", "", "error jsonrpc -32000 UNKNOWN_UNREGISTERED"),
        (-32000, "permission denied", "", "error jsonrpc -32000 PERMISSION_DENIED inferred"),
        (-32002, "gone", r#","data":{"tool":"x"}"#, "error erlmcp -32002 NOT_FOUND_OPERATION"),
        (-32002, "gone", r#","data":{"uri":"x"}"#, "error jsonrpc -32002 NOT_FOUND_RESOURCE"),
        (
            -32022,
            "no",
            r#","data":{"supported":["a"],"requested":"b"}"#,
            "error jsonrpc -32022 PROTOCOL_VERSION_UNSUPPORTED",
        ),
        (
            -32021,
            "no",
            r#","data":{"requiredCapabilities":{}}"#,
            "error jsonrpc -32021 PROTOCOL_CAPABILITY_UNSUPPORTED",
        ),
        (-32042, "anything", "", "error jsonrpc -32042 CONFIRMATION_REQUIRED"),
        (-32603, "anything", "", "error jsonrpc -32603 INTERNAL_ERROR"),
        (-32010, "Rate limit exceeded", "", "error erlmcp -32010 RATE_LIMIT_EXCEEDED"),
        (-32010, "nope", "", "error jsonrpc -32010 UNKNOWN_UNREGISTERED"),
        (-32010, "Room 9 is locked by another user", "", "error jsonrpc -32010 CONFLICT_LOCKED inferred"),
        (
            -32042,
            "Payment Required",
            r#","data":{"httpStatus":402}"#,
            "error jsonrpc -32042 RATE_LIMIT_QUOTA_EXHAUSTED inferred",
        ),
        (-32602, "Tool dim_lamp not found", "", "error jsonrpc -32602 NOT_FOUND_OPERATION inferred"),
        (-32602, "gone", r#","data":{"uri":"lamp://7"}"#, "error jsonrpc -32602 NOT_FOUND_RESOURCE"),
        (
            -32602,
            "Structured content does not match the tool's output schema: data/watts must be number",
            "",
            "error jsonrpc -32602 SCHEMA_INVALID_TYPE inferred",
        ),
        (-32603, "API rate limit exceeded", "", "error jsonrpc -32603 RATE_LIMIT_EXCEEDED inferred"),
        (-32603, "Invalid API key", "", "error jsonrpc -32603 PERMISSION_CREDENTIALS_INVALID inferred"),
        (-32603, "Call cancelled by user", "", "error jsonrpc -32603 PROTOCOL_CANCELLED inferred"),
        (-32001, "denied by gateway policy", "", "error jsonrpc -32001 PERMISSION_DENIED inferred"),
        (
            -32002,
            "Client must initialize first",
            "",
            "error jsonrpc -32002 PROTOCOL_NOT_INITIALIZED inferred",
        ),
        (403, "no", "", "error jsonrpc 403 PERMISSION_DENIED inferred"),
        (429, "no", "", "error jsonrpc 429 RATE_LIMIT_EXCEEDED inferred"),
        (
            -32003,
            "over it",
            r#","data":{"http_code":429}"#,
            "error jsonrpc -32003 RATE_LIMIT_EXCEEDED inferred",
        ),
        (
            -32012,
            "Message size exceeds maximum allowed",
            "",
            "error erlmcp -32012 VALIDATION_PAYLOAD_TOO_LARGE",
        ),
        (-32041, "nope", "", "error jsonrpc -32041 UNKNOWN_UNREGISTERED"),
        (-32041, "rate limit hit", "", "error jsonrpc -32041 RATE_LIMIT_EXCEEDED inferred"),
        (-32650, "x", "", "error jsonrpc -32650 PROTOCOL_UNREGISTERED"),
        (4500, "x", "", "error jsonrpc 4500 UNKNOWN_UNREGISTERED"),
        (77, "x", "", "error jsonrpc 77 UNKNOWN_UNREGISTERED"),
    ] {
        check(&reply(code, message, data), &[expected]);
    }
}

#[test]
fn one_code_has_many_spellings() {
    for code in ["-32603", "-32603.0", "\"-32603\"", "\" -32603 \""] {
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"Internal error"}}}}"#),
            &["error jsonrpc -32603 INTERNAL_ERROR"],
        );
    }
}

#[test]
fn a_named_dialect_is_believed() {
    let record = |dialect: &str| {
        format!(
            r#"{{"dialect":"{dialect}","service":"s","response":{{"jsonrpc":"2.0","id":1,"error":{{"code":-32002,"message":"x"}}}}}}"#
        )
    };
    check(&record("erlmcp"), &["error erlmcp -32002 NOT_FOUND_OPERATION"]);
    check(&record("jsonrpc"), &["error jsonrpc -32002 NOT_FOUND_RESOURCE"]);
    check(&record("nonsense"), &["error jsonrpc -32002 UNKNOWN_UNREGISTERED"]);
    let profile = "[profiles.services]\n\"s*\" = \"jsonrpc\"\n\"s\" = \"erlmcp\"";
    let plain = record("").replace(r#""dialect":"","#, "");
    check_with(profile, &plain, &["error erlmcp -32002 NOT_FOUND_OPERATION"]);
    check_with(profile, &plain.replace("\"s\"", "\"s2\""), &["error jsonrpc -32002 NOT_FOUND_RESOURCE"]);
    check_with(
        "[profiles.services]\ns = \"erlmcp\"",
        r#"{"service":"s","jsonrpc":"2.0","id":1,"error":{"code":-32041,"message":"x"}}"#,
        &["error erlmcp -32041 VALIDATION_UNREGISTERED"],
    );
}

#[test]
fn corrections_that_real_emitters_need() {
    let typed = |status: u16| {
        format!(
            r#"{{"success":false,"error":{{"code":"VALIDATION_INVALID_TYPE","message":"x","details":{{"http_status":{status}}}}}}}"#
        )
    };
    check(&typed(429), &["error mcp-aql VALIDATION_INVALID_TYPE RATE_LIMIT_EXCEEDED"]);
    check(&typed(409), &["error mcp-aql VALIDATION_INVALID_TYPE CONFLICT_ALREADY_EXISTS"]);
    check(&typed(400), &["error mcp-aql VALIDATION_INVALID_TYPE VALIDATION_INVALID_TYPE"]);
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: nope"}}"#,
        &["error jsonrpc -32602 NOT_FOUND_OPERATION"],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32054,"message":"Token expired"}}"#,
        &["error erlmcp -32054 PERMISSION_CREDENTIALS_EXPIRED"],
    );
    check_fields(
        r#"{"jsonrpc":"2.0","id":1,"result":{"error":{"code":3001,"message":"x","retryable":true}}}"#,
        &json!({"category": "RATE_LIMIT", "recovery": "back_off"}),
    );
    check_fields(
        r#"{"jsonrpc":"2.0","id":1,"result":{"error":{"code":4001,"message":"x","retryable":false}}}"#,
        &json!({"canonical": "INTERNAL_ADAPTER_ERROR", "retryable": false}),
    );
}

#[test]
fn an_operators_file_comes_first() {
    let file = r#"
        [[code]]
        code = "ORDER_NOT_FOUND"
        category = "NOT_FOUND"
        canonical = "NOT_FOUND_ORDER"
        maps_from = [4001]
        condition = "details.originalError = 'ORDER_NOT_FOUND'"

        [[code]]
        code = "GITHUB_ABUSE_DETECTED"
        category = "RATE_LIMIT"
        maps_from_http = [403]
        condition = "message contains 'abuse'"

        [[code]]
        code = "NOT_FOUND_REPOSITORY"
        maps_from_http = [404]
    "#;
    let adapter = |original: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"error":{{"code":4001,"message":"Adapter error","retryable":false,"details":{{"originalError":"{original}"}}}}}}}}"#
        )
    };
    check_with(file, &adapter("ORDER_NOT_FOUND"), &["error mcp-reference 4001 NOT_FOUND_ORDER hidden"]);
    check_with(file, &adapter("OTHER"), &["error mcp-reference 4001 INTERNAL_ADAPTER_ERROR hidden"]);
    check_with(
        file,
        r#"{"success":false,"error":{"code":"GITHUB_ABUSE_DETECTED","message":"Wait"}}"#,
        &["error mcp-aql GITHUB_ABUSE_DETECTED RATE_LIMIT_GITHUB_ABUSE_DETECTED"],
    );
    let with_status = |code: &str, message: &str, status: u16| {
        format!(
            r#"{{"success":false,"error":{{"code":"{code}","message":"{message}","details":{{"http_status":{status}}}}}}}"#
        )
    };
    let denied = |message: &str| with_status("PERMISSION_DENIED", message, 403);
    let missing = |code: &str| with_status(code, "x", 404);
    check_with(
        file,
        &denied("Abuse seen"),
        &["error mcp-aql PERMISSION_DENIED RATE_LIMIT_GITHUB_ABUSE_DETECTED"],
    );
    check_with(file, &denied("No scope"), &["error mcp-aql PERMISSION_DENIED PERMISSION_DENIED"]);
    check_with(
        file,
        &missing("NOT_FOUND_RESOURCE"),
        &["error mcp-aql NOT_FOUND_RESOURCE NOT_FOUND_REPOSITORY"],
    );
    check_with(file, &missing("TOKEN_INVALID"), &["error mcp-aql TOKEN_INVALID TOKEN_INVALID"]);
    check_with(file, r#"{"status":404}"#, &["error http - NOT_FOUND_REPOSITORY"]);
}

#[test]
fn the_payloads_own_word_on_retries_counts() {
    let reply = |retryable: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"error":{{"code":2001,"message":"x","retryable":{retryable}}}}}}}"#
        )
    };
    check_fields(
        &reply("true"),
        &json!({"retryable": true, "findings": ["retryable_contradiction", "hidden_failure"]}),
    );
    check_fields(&reply("false"), &json!({"retryable": false, "findings": ["hidden_failure"]}));
    check_fields(&reply("null"), &json!({"retryable": false}));
    check_fields(
        r#"{"success":false,"error":{"code":"INTERNAL_ERROR","message":"Internal error: 'x'"}}"#,
        &json!({"retryable": null, "severity": "critical"}),
    );
}

#[test]
fn quotas_are_read() {
    check_fields(
        r#"{"service":"a","response":{"success":false,"error":{"code":"RATE_LIMIT_QUOTA_PAUSE","message":"Quota pause threshold reached","details":{"metric":"cost_per_day","current":48.5,"pause_threshold":48,"hard_stop_threshold":50,"confirmation_token":"quota_continue_z9","expires_at":"2026-01-01T00:00:00Z"}}}}"#,
        &json!({
            "quota_metric": "cost_per_day", "quota_current": 48.5, "quota_limit": 50, "quota_level": "pause",
            "recovery": "confirm", "severity": "error", "category": "RATE_LIMIT",
        }),
    );
    check_fields(
        r#"{"success":false,"error":{"code":"RATE_LIMIT_EXCEEDED","message":"API rate limit exceeded","details":{"limit":5000,"remaining":0,"window":"hour","resets_at":"2026-01-28T13:00:00Z","retry_after_seconds":1847}}}"#,
        &json!({
            "quota_current": 5000, "quota_limit": 5000, "quota_level": "exceeded", "retry_after_s": 1847,
            "resets_at": "2026-01-28T13:00:00Z", "findings": null,
        }),
    );
    check_fields(
        r#"{"jsonrpc":"2.0","id":1,"result":{"error":{"code":3001,"message":"Too many","retryable":true,"details":{"retryAfter":1500}}}}"#,
        &json!({"retry_after_s": 1.5}),
    );
}

#[test]
fn denials_are_read() {
    check_fields(
        r#"{"success":false,"error":{"code":"PERMISSION_TRUST_LEVEL_INSUFFICIENT","message":"Operation 'wipe' requires trust level 'certified', adapter has 'generated'","details":{"operation":"wipe","required_trust":"certified","actual_trust":"generated","danger_level":3}}}"#,
        &json!({
            "required_trust": "certified", "actual_trust": "generated", "danger_level": "dangerous",
            "operation": "wipe", "findings": null,
        }),
    );
    check_fields(
        r#"{"success":false,"error":{"code":"PERMISSION_DANGER_LEVEL_DENIED","message":"x","details":{"operation":"wipe","danger_level":"forbidden","adapter_trust":"validated","minimum_trust_required":"certified"}}}"#,
        &json!({"required_trust": "certified", "actual_trust": "validated", "danger_level": "forbidden"}),
    );
}

#[test]
fn tokens_can_be_followed_from_required_to_used() {
    let hash = |record: &str| event(record)["token_hash"].as_str().map(str::to_owned);
    let required = r#"{"success":false,"error":{"code":"CONFIRMATION_REQUIRED","message":"This operation requires confirmation","details":{"confirmation_token":"conf_abc"}}}"#;
    let offered = r#"{"success":false,"error":{"code":"CONFIRMATION_REQUIRED","message":"m"},"confirmation":{"token":"conf_abc","expires_at":"2026-01-01T00:00:00Z"}}"#;
    let granted = r#"{"event":"CONFIRMATION_GRANTED","token":"conf_abc"}"#;
    let used = r#"{"success":false,"error":{"code":"TOKEN_ALREADY_USED","message":"m","details":{"token":"conf_abc"}}}"#;
    let first = hash(required);
    assert!(first.is_some());
    for record in [offered, granted, used] {
        assert_eq!(hash(record), first, "{record}");
        assert!(!event(record).to_string().contains("conf_abc"), "{record}");
    }
    assert_eq!(event(offered)["details"]["confirmation"]["expires_at"], "2026-01-01T00:00:00Z");
}

#[test]
fn context_is_read_from_its_usual_names() {
    check_fields(
        r#"{"@timestamp":"2026-11-16T10:20:30.5Z","app":"shop","service_version":"1.2","env":"prod","user":{"id":"u-1"},"tool":"buy","requestId":77,"session_id":"s","traceId":"t","spanId":"p","durationMs":1.25,"level":"warn","response":{"success":false,"error":{"code":"INTERNAL_ERROR","message":"x"}}}"#,
        &json!({
            "time": "2026-11-16T10:20:30.5Z", "service": "shop", "service_version": "1.2", "environment": "prod",
            "client": "u-1", "operation": "buy", "request_id": "77", "session_id": "s", "trace_id": "t",
            "span_id": "p", "duration_us": 1250, "attributes": {"level": "warn"},
        }),
    );
    check_fields(
        r#"{"success":false,"error":"Unknown operation: x","_meta":{"requestId":"r-1","durationMs":1.2,"timestamp":"2026-11-16T10:20:30Z"}}"#,
        &json!({"request_id": "r-1", "duration_us": 1200, "time": "2026-11-16T10:20:30Z"}),
    );
    check_fields(
        r#"{"success":false,"error":{"code":"INTERNAL_ERROR","message":"x","details":{"request_id":"r-2","operation":"op"}}}"#,
        &json!({"request_id": "r-2", "operation": "op"}),
    );
}

#[test]
fn a_time_that_cannot_be_is_replaced() {
    struct Source(Option<(i64, crate::TimeSource)>);
    impl Sink for Source {
        fn event(&mut self, event: &Event<'_>) {
            self.0 = Some((event.context.time, event.context.time_source));
        }
        fn call(&mut self, _: &Call<'_>) {}
        fn unrecognized(&mut self, _: UnrecognizedReason) {}
    }
    let time_of = |time: &str| {
        let mut source = Source(None);
        let record = format!(r#"{{{time}"success":false,"error":{{"code":"INTERNAL_ERROR"}}}}"#);
        Classifier::new(rules("")).classify(record.as_bytes(), &origin(), &mut source);
        source.0
    };
    assert_eq!(time_of(""), Some((ARRIVAL, crate::TimeSource::Arrival)));
    assert_eq!(time_of(r#""ts":"soon","#), Some((ARRIVAL, crate::TimeSource::Replaced)));
    assert_eq!(time_of(r#""ts":2500000000,"#), Some((ARRIVAL, crate::TimeSource::Replaced)));
    assert_eq!(time_of(r#""ts":1500000000,"#), Some((1_500_000_000_000_000, crate::TimeSource::Record)));
}

#[test]
fn findings_say_what_could_be_better() {
    let aql = |error: &str| format!(r#"{{"success":false,"error":{error}}}"#);
    for (record, expected) in [
        (aql(r#""boom""#), json!(["string_error"])),
        (aql(r#"{"code":"VALIDATION_NEW","message":"m"}"#), json!(["unregistered_code"])),
        (aql(r#"{"code":"lower","message":"m"}"#), json!(["unregistered_code", "bad_code_format"])),
        (aql(r#"{"code":{},"message":"m"}"#), json!(["bad_code_format"])),
        (aql(r#"{"code":"SCHEMA_INVALID_NAME"}"#), json!(["missing_message"])),
        (
            aql(r#"{"code":"TOKEN_INVALID","message":"Invalid confirmation token"}"#),
            json!(["missing_details"]),
        ),
        (aql(r#"{"code":"NOT_FOUND_RESOURCE","message":"nope"}"#), json!(["template_mismatch"])),
        (
            aql(r#"{"code":"INTERNAL_ERROR","message":"Internal error: 'user not found'"}"#),
            json!(["internal_for_caller_mistake"]),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32056,"message":"access denied"}}"#.to_owned(),
            json!(["reserved_code"]),
        ),
        (
            aql(r#"{"code":"VALIDATION_ERROR","message":"cannot read /srv/app/x.py"}"#),
            json!(["leaky_message"]),
        ),
        (aql(r#"{"code":"VALIDATION_ERROR","message":"KeyError raised"}"#), json!(["leaky_message"])),
        (aql(r#"{"code":"VALIDATION_ERROR","message":"bad bob@example.com"}"#), json!(["secret_in_message"])),
        (aql(r#"{"code":"VALIDATION_TRUNCATED_WARNING","message":"cut"}"#), json!(["warning_in_error"])),
    ] {
        check_fields(&record, &json!({"findings": expected}));
    }
}

#[test]
fn a_warning_is_never_worse_than_a_warning() {
    check_fields(
        r#"{"success":true,"warnings":[{"code":"INTERNAL_ERROR","message":"m","severity":"high"}]}"#,
        &json!({"kind": "warning", "severity": "warning", "details": {"severity": "high"}}),
    );
}

#[test]
fn one_failure_is_one_group() {
    let group = |operation: &str, message: &str| {
        let record = format!(
            r#"{{"service":"a","operation":"{operation}","success":false,"error":{{"code":"NOT_FOUND_RESOURCE","message":"{message}"}}}}"#
        );
        event(&record)["fingerprint"].clone()
    };
    let first = group("get", "Resource 'issue' not found: '17'");
    assert_eq!(group("get", "Resource 'issue' not found: '18'"), first);
    assert_ne!(group("put", "Resource 'issue' not found: '17'"), first);
    assert_ne!(group("get", "Something else"), first);
}

#[test]
fn the_rest_of_an_error_is_kept() {
    check_fields(
        r#"{"error":{"code":"not_found","type":"SkillNotFoundError","message":"m","hint":"List them."},"trace_id":"x","host":"n1"}"#,
        &json!({
            "details": {"type": "SkillNotFoundError", "hint": "List them."},
            "attributes": {"host": "n1"}, "trace_id": "x",
        }),
    );
    check_fields(
        r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32700,"message":"Parse error","data":"at 15"}}"#,
        &json!({"details": "at 15", "attributes": {"id": 9}}),
    );
}

#[test]
fn the_same_record_has_the_same_id_and_each_event_its_own() {
    let ids = |identity: u128| {
        let mut sink = JsonSink::default();
        let record = br#"{"success":true,"warnings":["a","b"]}"#;
        Classifier::new(rules("")).classify(record, &RecordOrigin { identity, ..origin() }, &mut sink);
        sink.0.iter().map(|event| event["event_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(1), ids(1));
    assert_ne!(ids(1), ids(2));
    assert_ne!(ids(1)[0], ids(1)[1]);
}
