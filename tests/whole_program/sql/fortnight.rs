//! `examples/fortnight.ndjson`: the log that the cookbook queries. It has two weeks of all ten invented services, five
//! stories that users would want to find in them, and a few unreadable lines.

use classifier::time;
use serde_json::{Value, json};

/// 2026-10-18T00:00:00Z, a Sunday, in microseconds.
const BEGIN: i64 = 1_792_281_600_000_000;
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The number of lines of everyday traffic: about one for each quarter of an hour.
const LINES: i64 = 1_300;

/// Returns the whole log.
pub(super) fn log() -> String {
    let mut lines = everyday();
    for story in [agent_in_a_loop, quota_that_fills_up, confirmations, denials, new_failure] {
        lines.extend(story().iter().map(Value::to_string));
    }
    lines.extend(UNREADABLE.map(str::to_owned));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A truncated line, a malformed one, and one that belongs to no request.
const UNREADABLE: [&str; 3] = [
    r#"{"timestamp":"2026-10-31T21:00:00.000Z","service":"depot-batch","operation":"move_st"#,
    "Traceback (most recent call last):",
    r#"{"level":"info","service":"depot-batch","text":"catalogue reloaded"}"#,
];

fn everyday() -> Vec<String> {
    let mut traffic = demo::Traffic::new(2026);
    let mut line = Vec::new();
    let at = |number: i64| BEGIN + number * (14 * DAY / LINES) + number * 7_919 % 600 * SECOND;
    let next = |number| {
        line.clear();
        traffic = traffic.clone().at(at(number));
        traffic.next_line(&mut line);
        String::from_utf8_lossy(&line).trim_end().to_owned()
    };
    (0..LINES).map(next).collect()
}

/// Returns the log line of a call, without its outcome.
fn call(at: i64, service: &str, operation: &str, client: &str) -> Value {
    json!({
        "timestamp": time::format(at), "service": service, "environment": "production", "operation": operation,
        "client": client, "trace_id": trace_id(at), "duration_ms": 20 + at / SECOND % 50,
    })
}

/// Returns a pseudo-random number that is the same every time.
fn trace_id(at: i64) -> String {
    let at = u128::try_from(at).expect("after 1970");
    format!("{:032x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

fn failed(mut call: Value, code: &str, message: &str, details: &Value) -> Value {
    call["success"] = json!(false);
    call["error"] = json!({"code": code, "message": message, "details": details});
    call
}

/// The failure is in the text of a result that reports success, so no ordinary dashboard shows it.
fn hidden(mut call: Value, code: &str, message: &str, details: &Value) -> Value {
    let envelope = json!({"success": false, "error": {"code": code, "message": message, "details": details}});
    call["jsonrpc"] = json!("2.0");
    call["id"] = json!(7);
    call["result"] = json!({"content": [{"type": "text", "text": envelope.to_string()}], "isError": false});
    call
}

/// On the second Thursday, two agents repeat the same request again and again, although one of them was told not to.
fn agent_in_a_loop() -> Vec<Value> {
    let from = BEGIN + 11 * DAY + 14 * HOUR;
    let missing = |n: i64| {
        let details = json!({"resource_type": "invoice", "resource_id": "INV-4711", "http_status": 404});
        let call = call(from + n * 20 * SECOND, "ledger-adapter", "get_invoice", "planner-7");
        hidden(call, "NOT_FOUND_RESOURCE", "Resource 'invoice' not found: 'INV-4711'", &details)
    };
    let limited = |n: i64| {
        let details = json!({"limit": 100, "remaining": 0, "window": "minute", "retry_after_seconds": 30});
        let call = call(from + HOUR + n * 4 * SECOND, "tracker-adapter", "search_tickets", "triage-bot");
        failed(call, "RATE_LIMIT_EXCEEDED", "API rate limit exceeded", &details)
    };
    (0..25).map(missing).chain((0..12).map(limited)).collect()
}

/// On the last day a tenant uses up its tokens, 9,000 an hour.
fn quota_that_fills_up() -> Vec<Value> {
    let warning = |n: i64| {
        let mut call =
            call(BEGIN + 13 * DAY + (12 + n) * HOUR, "ledger-adapter", "list_invoices", "brightwater");
        let details = json!({
            "metric": "tokens_per_day", "current": 109_000 + n * 9_000, "warn_threshold": 100_000,
            "pause_threshold": 180_000, "hard_stop_threshold": 200_000,
        });
        call["success"] = json!(true);
        call["warnings"] = json!([{"code": "RATE_LIMIT_QUOTA_WARNING", "message": "Approaching quota limit", "details": details}]);
        call
    };
    (0..8).map(warning).collect()
}

/// Returns a call of the release manager, who does each thing in one trace.
fn managed(at: i64, service: &str, operation: &str) -> Value {
    let mut call = call(at, service, operation, "release-manager");
    let number = operation.bytes().fold(0, |number: i64, byte| number.wrapping_mul(31) + i64::from(byte));
    call["trace_id"] = json!(trace_id(number & i64::MAX));
    call
}

/// Returns an event in the life of a token.
fn audit(mut call: Value, event: &str, token: &str) -> Value {
    call["event"] = json!(event);
    call["confirmation_token"] = json!(token);
    call
}

/// Four questions to a person, and what became of them.
fn confirmations() -> Vec<Value> {
    let from = BEGIN + 12 * DAY + 9 * HOUR;
    let step =
        |minute: i64, service: &str, operation: &str| managed(from + minute * MINUTE, service, operation);
    let runner = |minute, service: &str, operation: &str, token: &str| {
        let details = json!({
            "operation": operation, "danger_level": "dangerous", "reasons": ["Cannot be undone"],
            "confirmation_token": token, "expires_at": time::format(from + (minute + 10) * MINUTE),
        });
        let call = step(minute, service, operation);
        failed(call, "CONFIRMATION_REQUIRED", "This operation requires confirmation", &details)
    };
    let used_before = |minute, operation, token| {
        let call = step(minute, "ledger-adapter", operation);
        let message = "Confirmation token has already been used";
        failed(call, "TOKEN_ALREADY_USED", message, &json!({"token": token}))
    };
    let (tracker, ledger, depot) = ("tracker-adapter", "ledger-adapter", "depot-batch");
    vec![
        runner(0, tracker, "purge_project", "conf_5f2c9a01"),
        audit(step(2, tracker, "purge_project"), "CONFIRMATION_GRANTED", "conf_5f2c9a01"),
        audit(step(3, tracker, "purge_project"), "TOKEN_VALIDATED", "conf_5f2c9a01"),
        runner(20, ledger, "issue_refund", "conf_77b1e4d2"),
        audit(step(21, ledger, "issue_refund"), "CONFIRMATION_GRANTED", "conf_77b1e4d2"),
        audit(step(22, ledger, "issue_refund"), "TOKEN_VALIDATED", "conf_77b1e4d2"),
        used_before(23, "issue_refund", "conf_77b1e4d2"),
        used_before(25, "issue_refund", "conf_77b1e4d2"),
        runner(40, ledger, "close_period", "conf_c0ffee03"),
        failed(
            step(55, ledger, "close_period"),
            "TOKEN_EXPIRED",
            "Confirmation token has expired",
            &json!({"token": "conf_c0ffee03", "expired_at": time::format(from + 50 * MINUTE)}),
        ),
        runner(70, depot, "write_off_stock", "conf_deadbe04"),
    ]
}

/// The person who confirmed is told that the adapter may not do it after all.
fn denials() -> Vec<Value> {
    let from = BEGIN + 12 * DAY + 9 * HOUR;
    let denied = |minute: i64, service: &str, operation: &str, required: &str, actual: &str| {
        let message =
            format!("Operation '{operation}' requires trust level '{required}', adapter has '{actual}'");
        let details = json!({
            "operation": operation, "required_trust": required, "actual_trust": actual, "danger_level": 3,
        });
        let call = managed(from + minute * MINUTE, service, operation);
        failed(call, "PERMISSION_TRUST_LEVEL_INSUFFICIENT", &message, &details)
    };
    vec![
        denied(4, "tracker-adapter", "purge_project", "certified", "validated"),
        denied(24, "ledger-adapter", "issue_refund", "certified", "community_reviewed"),
    ]
}

/// On the last day something breaks that has never been broken before.
fn new_failure() -> Vec<Value> {
    let broken = |n: i64| {
        let message = format!("Internal error: 'certificate of stock-{}.internal has expired'", n % 3);
        let details = json!({"http_status": 502, "upstream_error": "certificate has expired"});
        let call = call(BEGIN + 13 * DAY + 20 * HOUR + n * MINUTE, "depot-batch", "sync_catalogue", "cron");
        failed(call, "INTERNAL_ERROR", &message, &details)
    };
    (0..18).map(broken).collect()
}
