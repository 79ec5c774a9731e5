//! A server with tokens, in which every stored field that a sender chooses is hostile.

use super::super::server::{Server, ask};
use super::super::support::{Folder, faultline};
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

/// A text that a page, a statement or a terminal would interpret. The page's checks look for its beginning.
const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>'); DROP TABLE events; --\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}\"\\";

/// Starts the server, and returns it with a token that can sign in.
pub(super) fn start(folder: &Folder) -> (Server, String) {
    let tokens = folder.path().join("tokens.toml");
    let tokens = tokens.to_str().expect("a path");
    let scopes = ["--scope", "admin", "--scope", "query", "--scope", "ingest"];
    let new = [&["token", "new", "--name", "tester", "--tokens", tokens], &scopes[..]].concat();
    let token = faultline(&new).ends_with(0).out.trim().to_owned();
    let server = Server::start_with(folder, &["--tokens", tokens]);
    let bearer = format!("Bearer {token}");
    let post = |path: &str, media: &str, body: &str| {
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", media)];
        ask(server.address("otlp_http"), "POST", path, &headers, body.as_bytes()).expect("an answer").is(200)
    };
    let lines: String = records().iter().map(|record| format!("{record}\n")).collect();
    // A line that cannot be read is kept as a sample in the table of rejects.
    let unreadable = format!("{{\"{}", HOSTILE.replace('"', "'"));
    let answer = post("/v1/envelopes", "application/x-ndjson", &(lines + &unreadable)).json();
    assert_eq!(answer["rejected"].as_array().map(Vec::len), Some(1), "{answer}");
    post("/v1/traces", "application/json", &span().to_string());
    check_columns(&server, &bearer);
    (server, token)
}

/// Columns of text in `events` whose values are ours, whatever a sender sends: words of closed lists, hashes and ids.
const OURS: [&str; 18] = [
    "event_id",
    "kind",
    "dialect",
    "canonical",
    "category",
    "severity",
    "recovery",
    "fingerprint",
    "findings",
    "source",
    "span_id",
    "span_kind",
    "quota_level",
    "danger_level",
    "token_hash",
    "fault",
    "duplicate_of",
    "supersedes",
];

/// Guarantee: every column that a sender can fill is hostile, so that the checks of the page see them all.
#[track_caller]
fn check_columns(server: &Server, bearer: &str) {
    let query = |text: &str| {
        let headers = [("Authorization", bearer), ("Content-Type", "application/json")];
        let body = json!({"query": text}).to_string();
        let path = "/api/v1/sql";
        let answer = ask(server.address("web"), "POST", path, &headers, body.as_bytes());
        answer.expect("an answer").is(200).json()
    };
    let columns = query("SELECT * FROM events LIMIT 1")["columns"].clone();
    let columns = columns.as_array().expect("columns");
    let is_text = |column: &&Value| column["type"].as_str().is_some_and(|kind| kind == "text");
    let names = columns.iter().filter(is_text).filter_map(|column| column["name"].as_str());
    let names: Vec<&str> = names.filter(|name| !OURS.contains(name)).collect();
    assert!(names.len() > 10, "{columns:?}");
    let count = |name: &&str| {
        format!("sum(CASE WHEN strpos(CAST({name} AS text), '<script>') > 0 THEN 1 ELSE 0 END) AS {name}")
    };
    let counts: Vec<String> = names.iter().map(count).collect();
    let counts = query(&format!("SELECT {} FROM events", counts.join(", ")));
    let counts = &counts["rows"];
    let tame: Vec<_> =
        names.iter().filter(|name| counts[0][**name].as_u64().is_none_or(|count| count == 0)).collect();
    assert!(tame.is_empty(), "nothing hostile in {tame:?}");
}

/// Returns a time some seconds after an hour ago.
fn at(seconds: i64) -> Timestamp {
    Timestamp::now() - 1.hour() + seconds.seconds()
}

fn failure(seconds: i64, code: &str, details: &Value) -> Value {
    json!({
        "ts": at(seconds).to_string(), "service": HOSTILE, "environment": HOSTILE, "user": HOSTILE, "operation": HOSTILE,
        "request_id": HOSTILE, "session_id": HOSTILE, "version": HOSTILE, "service_version": HOSTILE, "trace_id": HOSTILE,
        "extra": {HOSTILE: HOSTILE}, "duration_ms": 5,
        "response": {"success": false, "error": {"code": code, "message": HOSTILE, "details": details}},
    })
}

fn records() -> Vec<Value> {
    let mut details = json!({
        "operation": HOSTILE, "metric": HOSTILE, "current": 97, "limit": 100, "pause_threshold": 90,
        "hard_stop_threshold": 100, "required_trust": HOSTILE, "actual_trust": HOSTILE, "danger_level": HOSTILE,
        "reason": HOSTILE,
    });
    details[HOSTILE] = json!(HOSTILE);
    let confirmed = |token: &str| {
        let mut details = details.clone();
        details["confirmation_token"] = json!(token);
        details
    };
    // A loop of retries, and every view of the page that has its own codes.
    let mut records: Vec<Value> =
        (0..5).map(|second| failure(second, "VALIDATION_FAILED", &details)).collect();
    records.extend([
        failure(10, "RATE_LIMIT_QUOTA_PAUSE", &confirmed(HOSTILE)),
        failure(20, "RATE_LIMIT_QUOTA_EXCEEDED", &details),
        failure(30, "PERMISSION_TRUST_LEVEL_INSUFFICIENT", &details),
        failure(40, "PERMISSION_DANGER_LEVEL_DENIED", &details),
        failure(50, "CONFIRMATION_REQUIRED", &confirmed("conf_<b>1</b>")),
        failure(60, "TOKEN_INVALID", &confirmed("conf_<b>1</b>")),
        failure(70, HOSTILE, &details),
    ]);
    records.push(json!({
        "event": "TOKEN_VALIDATED", "ts": at(55).to_string(), "service": HOSTILE, "operation": HOSTILE, "user": HOSTILE,
        "confirmation_token": "conf_<b>1</b>",
    }));
    records.push(json!({
        "ts": at(80).to_string(), "service": HOSTILE, "operation": HOSTILE, "duration_ms": 7,
        "response": {"success": true, "data": {HOSTILE: HOSTILE}},
    }));
    // A failure that its protocol reports as a success.
    let hidden =
        json!({"success": false, "error": {"code": "INTERNAL_ERROR", "message": HOSTILE}}).to_string();
    records.push(json!({
        "ts": at(85).to_string(), "service": HOSTILE, "operation": HOSTILE,
        "response": {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": hidden}]}},
    }));
    records
}

fn span() -> Value {
    let attribute = |key: &str| json!({"key": key, "value": {"stringValue": HOSTILE}});
    let began = at(90).as_nanosecond();
    json!({"resourceSpans": [{
        "resource": {"attributes": [attribute("service.name"), attribute("deployment.environment.name"), attribute("service.version")]},
        "scopeSpans": [{"spans": [{
            "traceId": "0123456789abcdef0123456789abcdef", "spanId": "0123456789abcdef", "name": HOSTILE, "kind": 2,
            "startTimeUnixNano": began.to_string(), "endTimeUnixNano": (began + 1_000_000).to_string(),
            "attributes": [
                {"key": "mcp.method.name", "value": {"stringValue": "tools/call"}},
                attribute("gen_ai.tool.name"), attribute("error.type"), attribute("mcp.session.id"), attribute("enduser.id"),
            ],
            "status": {"code": 2, "message": HOSTILE},
        }]}],
    }]})
}
