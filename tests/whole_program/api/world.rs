//! A small world with some of everything, at known times, which the tests of the API query.

use super::super::server::Server;
use super::super::support::Folder;
use serde_json::{Value, json};

/// Texts that a page, a statement or a terminal would interpret.
pub(super) const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>'); DROP TABLE events; --\u{1b}[2J\u{1b}]0;x\u{7}\"\\";

/// The time range of all events except the hostile one.
pub(super) const RANGE: &str = "from=2026-11-10T00:00:00Z&to=2026-11-11T00:00:00Z";

/// Starts a server with the world in it.
pub(super) fn start(folder: &Folder, arguments: &[&str]) -> Server {
    let server = Server::start_with(folder, arguments);
    let text: String = records().iter().map(|record| format!("{record}\n")).collect();
    let answer = server.post_lines(&text).is(200).json();
    assert_eq!(answer["rejected"], json!([]), "{answer}");
    server
}

fn at(time: &str) -> String {
    format!("2026-11-10T{time}Z")
}

fn failure(time: &str, service: &str, client: &str, code: &str, details: &Value) -> Value {
    json!({
        "ts": at(time), "service": service, "environment": "production", "user": client, "operation": "paint",
        "duration_ms": 20.0, "session_id": "s-1", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "response": {"success": false, "error": {"code": code, "message": format!("{code} happened"), "details": details}},
    })
}

fn records() -> Vec<Value> {
    let mut records = Vec::new();
    // Calls that succeed, every quarter of an hour.
    for quarter in 0..96 {
        let time = at(&format!("{:02}:{:02}:01", quarter / 4, quarter % 4 * 15));
        records.push(json!({
            "ts": time, "service": "walls", "environment": "production", "operation": "paint", "duration_ms": 12.0,
            "response": {"jsonrpc": "2.0", "id": quarter, "result": {"content": [], "isError": false}},
        }));
    }
    // A client that retries again and again, in vain.
    for second in 0..5 {
        records.push(failure(&format!("09:00:0{second}"), "walls", "ada", "NOT_FOUND_RESOURCE", &json!({})));
    }
    // The same failure four days before, so that the group has regressed.
    let mut earlier = failure("09:00:00", "walls", "ada", "NOT_FOUND_RESOURCE", &json!({}));
    earlier["ts"] = json!("2026-11-06T09:00:00Z");
    records.push(earlier);
    // A failure that its protocol reports as a success.
    let hidden = json!({"success": false, "error": {"code": "RATE_LIMIT_QUOTA_PAUSE", "message": "Quota pause threshold reached",
        "details": {"metric": "litres_per_day", "current": 97, "pause_threshold": 90, "hard_stop_threshold": 100,
            "confirmation_token": "conf_quota_1"}}});
    records.push(json!({
        "ts": at("10:00:00"), "service": "floors", "environment": "staging", "operation": "wash", "user": "ben",
        "response": {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": hidden.to_string()}]}},
    }));
    // A denial, and a confirmation from the question to its use.
    let trust = json!({"operation": "wipe", "required_trust": "certified", "actual_trust": "generated", "danger_level": "dangerous"});
    records.push(failure("11:00:00", "walls", "cleo", "PERMISSION_TRUST_LEVEL_INSUFFICIENT", &trust));
    let confirmation =
        json!({"operation": "wipe", "danger_level": "dangerous", "confirmation_token": "conf_wipe_1"});
    records.push(failure("11:05:00", "walls", "cleo", "CONFIRMATION_REQUIRED", &confirmation));
    records.push(json!({"event": "TOKEN_VALIDATED", "ts": at("11:06:00"), "service": "walls", "confirmation_token": "conf_wipe_1"}));
    // Every field that a sender chooses is hostile, outside of the range.
    records.push(json!({
        "ts": "2026-11-12T00:00:00Z", "service": HOSTILE, "environment": HOSTILE, "user": HOSTILE, "operation": HOSTILE,
        "request_id": HOSTILE, "session_id": HOSTILE, "version": HOSTILE, "extra": {HOSTILE: HOSTILE},
        "response": {"success": false, "error": {"code": "VALIDATION_FAILED", "message": HOSTILE, "details": {HOSTILE: HOSTILE}}},
    }));
    records
}
