//! Secrets in envelopes, and in the heads of their requests.

use super::secrets::{Canaries, KINDS};
use crate::whole_program::server::{Server, ask};
use crate::whole_program::support::OPEN;
use serde_json::{Value, json};

/// A field: its name, a record that carries a text in it, and a flag for whether the words around a secret must be
/// stored.
type Field = (&'static str, fn(&str) -> Value, bool);

fn failure(more: Value) -> Value {
    let mut record = json!({"service": "shop", "success": false, "error": {"code": "INTERNAL_ERROR", "message": "It broke"}});
    merge(&mut record, more);
    record
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

const FIELDS: [Field; 29] = [
    ("message", |text| failure(json!({"error": {"message": text}})), true),
    ("code", |text| failure(json!({"error": {"code": text}})), true),
    ("category", |text| failure(json!({"error": {"code": "ODD", "category": text}})), false),
    ("a detail", |text| failure(json!({"error": {"details": {"note": text}}})), true),
    ("a deep detail", |text| failure(json!({"error": {"details": {"a": [{"b": [text]}]}}})), true),
    ("the key of a detail", |text| failure(json!({"error": {"details": {text: 1}}})), true),
    ("an attribute", |text| failure(json!({"region": text})), true),
    ("the key of an attribute", |text| failure(json!({text: "eu"})), true),
    ("a deep attribute", |text| failure(json!({"http": {"headers": [text]}})), true),
    ("service", |text| failure(json!({"service": text})), true),
    ("service_version", |text| failure(json!({"service_version": text})), true),
    ("environment", |text| failure(json!({"environment": text})), true),
    ("operation", |text| failure(json!({"operation": text})), true),
    ("request_id", |text| failure(json!({"request_id": text})), true),
    ("session_id", |text| failure(json!({"session_id": text})), true),
    ("trace_id", |text| failure(json!({"trace_id": text})), true),
    // Clients are distinguished by a hash of the whole name.
    ("user", |text| failure(json!({"user": text})), false),
    ("timestamp", |text| failure(json!({"timestamp": text})), false),
    ("duration_ms", |text| failure(json!({"duration_ms": text})), false),
    ("dialect", |text| failure(json!({"dialect": text})), false),
    ("a text as error", |text| json!({"success": false, "error": text}), true),
    ("a warning", |text| json!({"success": true, "warnings": [{"code": "X_Y", "message": text}]}), true),
    (
        "a batch item",
        |text| {
            let result = json!({"success": false, "error": {"code": "NOT_FOUND_RESOURCE", "message": text}});
            json!({"success": true, "results": [{"index": 0, "operation": text, "result": result}]})
        },
        true,
    ),
    ("a confirmation", |text| failure(json!({"confirmation": {"token": text, "message": text}})), false),
    ("an audit event", |text| json!({"event": "TOKEN_ISSUED", "token": text, "reason": text}), false),
    (
        "JSON-RPC's data",
        |text| json!({"jsonrpc": "2.0", "id": text, "error": {"code": -32603, "message": "x", "data": text}}),
        true,
    ),
    (
        "an inner envelope",
        |text| {
            let inner = failure(json!({"error": {"message": text}})).to_string();
            json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": inner}]}})
        },
        true,
    ),
    (
        "a tool's own words",
        |text| json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}], "isError": true}}),
        true,
    ),
    // A successful call is counted by its names.
    (
        "the operation of a call that worked",
        |text| json!({"service": "shop", "operation": text, "success": true, "data": {"x": text}}),
        true,
    ),
];

/// Keys whose values are always secrets.
const SECRET_KEYS: [&str; 12] = [
    "password",
    "passwd",
    "api_key",
    "apiKey",
    "X-Api-Key",
    "authorization",
    "cookie",
    "client_secret",
    "private_key",
    "access_token",
    "token",
    "confirmation_token",
];

/// Returns replies, one for each field and kind of secret: as lines, and as the elements of an array.
pub(super) fn replies(server: &Server, canaries: &mut Canaries) {
    let mut records = Vec::new();
    for (field, record, kept) in FIELDS {
        records.extend(canaries.texts(field, kept).iter().map(|text| record(text)));
    }
    for key in SECRET_KEYS {
        let mut word = |place: &str| canaries.word(&format!("{place} {key}"));
        let details = json!({key: word("details"), "deep": [{key: [word("in details")]}]});
        records.push(failure(json!({"error": {"details": details}, key: word("attribute")})));
        records.push(failure(json!({"error": {"message": format!("sent {key}={} again", word("message"))}})));
    }
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    let answer = server.post_lines(&lines).is(200).json();
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&json!(records.len()), &json!([])));
    let mut records = Vec::new();
    for (field, record, kept) in FIELDS {
        let field = format!("{field} in an array");
        records.extend(canaries.texts(&field, kept).iter().map(|text| record(text)));
    }
    let json = [("Content-Type", "application/json")];
    server.post("/v1/envelopes", &json, Value::from(records).to_string().as_bytes()).is(200);
}

/// Sends lines that are sampled as rejects: without an envelope, not JSON, truncated, and logfmt.
pub(super) fn unusable(server: &Server, canaries: &mut Canaries) {
    let mut lines = Vec::new();
    for text in canaries.texts("a record of nothing", true) {
        lines.push(json!({"level": "info", "text": text, "deep": [{"x": 1}]}).to_string());
    }
    for text in canaries.texts("a request", true) {
        lines.push(
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"x": text}}).to_string(),
        );
    }
    for text in canaries.texts("not JSON", true) {
        lines.push(format!("{{not json {text}"));
    }
    for text in canaries.texts("cut JSON", true) {
        let whole = failure(json!({"error": {"message": text}})).to_string();
        lines.push(whole[..whole.len() - 2].to_owned());
    }
    for text in canaries.texts("logfmt", true) {
        lines.push(format!("level=ERROR status=500 msg={} tool=echo", json!(text)));
    }
    for key in SECRET_KEYS {
        let mut word = |place: &str| canaries.word(&format!("{place} {key}"));
        lines.push(
            json!({"level": "info", key: word("nothing, under"), "deep": {key: [word("deep")]}}).to_string(),
        );
        lines.push(format!("{{\"{key}\":\"{}\", broken", word("not JSON, under")));
        lines.push(format!("{{\"x\":1,\"{key}\":\"{}", word("cut, under")));
        lines.push(format!("level=ERROR status=500 {key}={} tool=echo", word("logfmt, under")));
    }
    // The end of the examined part falls into a secret, at each of its bytes; and redaction before it moves that end
    // into the sample. Half an address is not recognised as one.
    let others = format!("{}@example.com ", "o".repeat(48)).repeat(22);
    for cut in 0..24 {
        let secret = canaries.bare("the end of a sample", 10);
        let before = format!("{{broken {others}");
        let filler = "x".repeat(2_048 - before.len() - cut - 1);
        lines.push(format!("{before}{filler} {secret} {}", "y".repeat(2_000)));
    }
    for lines in lines.chunks(100) {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        server.post_lines(&lines);
    }
    assert_eq!(server.status()["server"]["reject_samples_dropped"], 0, "every one was sampled");
}

/// Sends parameters, keys, paths and types, because the content of a head is stored with rows, or logged with
/// rejections.
pub(super) fn heads(server: &Server, canaries: &mut Canaries) {
    let address = server.address("otlp_http");
    let post = |path: &str, headers: &[(&str, &str)], body: &str| {
        ask(address, "POST", path, headers, body.as_bytes()).expect("an answer").status
    };
    let bare = OPEN.replace("\"service\":\"orders\",", "");
    for kind in 0..KINDS {
        for parameter in ["service", "environment"] {
            let text = canaries.text(&format!("the parameter {parameter}"), kind, true);
            let path = format!("/v1/envelopes?{parameter}={}", percent(&text));
            assert_eq!(post(&path, &[], &format!("{bare}\n{{broken\n")), 200);
        }
        let text = percent(&canaries.text("the name of a parameter", kind, false));
        assert_eq!(post(&format!("/v1/envelopes?{text}=1"), &[], &bare), 400);
        let text = percent(&canaries.text("a dialect", kind, false));
        assert_eq!(post(&format!("/v1/envelopes?dialect={text}"), &[], &bare), 400);
        let text = percent(&canaries.text("a path", kind, false));
        assert_eq!(post(&format!("/{text}"), &[], &bare), 404);
        assert_eq!(post(&format!("/v1/metrics/{text}"), &[], &bare), 404);
        let text = canaries.text("a content type", kind, false);
        assert_eq!(post("/v1/envelopes", &[("Content-Type", &text)], &bare), 415);
        let text = canaries.text("a content encoding", kind, false);
        assert_eq!(post("/v1/envelopes", &[("Content-Encoding", &text)], &bare), 415);
        let text = canaries.text("a header that nobody reads", kind, false);
        assert_eq!(post("/v1/envelopes", &[("Authorization", &text), ("X-Note", &text)], &bare), 200);
        let key = canaries.bare("the idempotency key", kind).replace(' ', "");
        let body = format!("{bare}\n{{broken {}\n", canaries.text("beside a key", kind, true));
        assert_eq!(post("/v1/envelopes", &[("Idempotency-Key", &key)], &body), 200);
    }
}

/// Encodes a text for an address.
fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
