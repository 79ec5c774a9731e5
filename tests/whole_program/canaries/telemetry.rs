//! Secrets in spans and log records: in every field of the messages, whether Faultline reads it or not.

use super::secrets::{Canaries, KINDS};
use crate::whole_program::otlp::wire::{any_attribute, attribute, field, fixed, map, number, request};
use crate::whole_program::otlp::{post_json, post_protobuf};
use crate::whole_program::server::{Server, ask};
use crate::whole_program::support::Folder;
use serde_json::json;
use std::process::Command;

/// A field: its name, the bytes that carry a text in it, and a flag for whether the words around a secret must be
/// stored.
type Field = (&'static str, fn(&str) -> Vec<u8>, bool);

/// Returns the fields of a span. It fails with an exception, and the last field of a kind wins.
const SPAN: [Field; 17] = [
    ("name", |text| field(5, text), true),
    ("trace state", |text| field(3, text), false),
    ("an attribute", |text| attribute(9, "app.note", text), true),
    ("the key of an attribute", |text| attribute(9, text, "x"), true),
    ("the tool", |text| attribute(9, "gen_ai.tool.name", text), true),
    ("error.code", |text| attribute(9, "error.code", text), true),
    ("error.type", |text| attribute(9, "error.type", text), true),
    ("request id", |text| attribute(9, "jsonrpc.request.id", text), true),
    ("session id", |text| attribute(9, "mcp.session.id", text), true),
    ("bytes", |text| any_attribute(9, "app.bytes", field(7, text)), true),
    ("a list", |text| any_attribute(9, "app.list", field(5, field(1, field(1, text)))), true),
    ("a map", |text| any_attribute(9, "app.map", map(&[("note", text), (text, "x")])), true),
    (
        "a reply",
        |text| {
            let reply =
                json!({"success": false, "error": {"code": "X_Y", "message": text, "details": {"x": text}}});
            attribute(9, "gen_ai.tool.call.result", &reply.to_string())
        },
        true,
    ),
    ("the name of an event", |text| field(11, field(2, text)), false),
    (
        "an exception",
        |text| {
            let attributes = ["type", "message", "stacktrace"]
                .map(|part| attribute(3, &format!("exception.{part}"), text));
            field(11, [field(2, "exception"), attributes.concat()].concat())
        },
        true,
    ),
    ("the status", |text| field(15, [field(2, text), number(3, 2)].concat()), true),
    ("a link", |text| field(13, [field(3, text), attribute(4, "note", text)].concat()), false),
];

/// Returns the fields of a log record that reports a failure.
const LOG: [Field; 8] = [
    ("body", |text| field(5, field(1, text)), true),
    ("a map as body", |text| field(5, map(&[("note", text), ("message", text)])), true),
    (
        "a reply as body",
        |text| {
            field(
                5,
                field(1, json!({"success": false, "error": {"code": "X_Y", "message": text}}).to_string()),
            )
        },
        true,
    ),
    ("severity text", |text| field(3, text), false),
    ("an attribute", |text| attribute(6, "app.note", text), true),
    ("the key of an attribute", |text| attribute(6, text, "x"), true),
    ("an exception", |text| attribute(6, "exception.message", text), true),
    ("the name of the event", |text| field(12, text), true),
];

/// Keys whose values are always secrets.
const SECRET_KEYS: [&str; 8] = [
    "password",
    "db.password",
    "http.request.header.authorization",
    "http.request.header.cookie",
    "api_key",
    "client.secret",
    "private_key",
    "access_token",
];

/// Returns the fields of a failed span, by its number.
fn span(id: usize, more: &[u8]) -> Vec<u8> {
    let id = (id as u64 + 1).to_be_bytes();
    let base = [field(1, [id, id].concat()), field(2, id), number(6, 2), fixed(8, 1_793_520_000_000_000_000)];
    [&base.concat()[..], &field(15, number(3, 2)), more].concat()
}

fn log(time: usize, more: &[u8]) -> Vec<u8> {
    [&fixed(1, 1_793_520_000_000_000_000 + time as u64)[..], &number(2, 17), more].concat()
}

/// Wraps one record in resources and scopes, which have texts of their own.
fn around(text: &str, record: &[u8]) -> Vec<u8> {
    let resource =
        [attribute(1, "service.name", text), attribute(1, "host.name", text), attribute(1, text, "x")];
    let scope = field(1, [field(1, text), field(2, text), attribute(3, "note", text)].concat());
    let scoped = field(2, [scope, field(2, record), field(3, text)].concat());
    field(1, [field(1, resource.concat()), scoped, field(3, text)].concat())
}

pub(super) fn spans(server: &Server, canaries: &mut Canaries) {
    let mut records = Vec::new();
    for (name, carry, kept) in SPAN {
        for text in canaries.texts(&format!("span: {name}"), kept) {
            records.push(span(records.len(), &carry(&text)));
        }
    }
    for key in SECRET_KEYS {
        let mut word = |place: &str| canaries.word(&format!("span: {place} {key}"));
        let plain = attribute(9, key, &word("attribute"));
        let deep = any_attribute(9, "app.map", map(&[(key, &word("in a map, under"))]));
        let raw = any_attribute(9, key, field(7, word("bytes under")));
        records.push(span(records.len(), &[plain, deep, raw].concat()));
    }
    let sent = records.len();
    post_protobuf(server, "/v1/traces", &request(&[], &records)).is(200);
    for (index, text) in canaries.texts("span: resource and scope", true).iter().enumerate() {
        post_protobuf(server, "/v1/traces", &around(text, &span(10_000 + index, &[]))).is(200);
    }
    assert_eq!(server.status()["sources"]["otlp_traces"]["accepted_records"], sent + KINDS);
}

pub(super) fn logs(server: &Server, canaries: &mut Canaries) {
    let mut records = Vec::new();
    for (name, carry, kept) in LOG {
        for text in canaries.texts(&format!("log: {name}"), kept) {
            records.push(log(records.len(), &carry(&text)));
        }
    }
    for key in SECRET_KEYS {
        let mut word = |place: &str| canaries.word(&format!("log: {place} {key}"));
        let body = field(5, map(&[(key, &word("body")), ("level", "info")]));
        records.push(log(records.len(), &[body, attribute(6, key, &word("attribute"))].concat()));
    }
    // Records that report nothing are sampled.
    for text in canaries.texts("log: a body of nothing", true) {
        records.push(field(5, field(1, text)));
    }
    for key in SECRET_KEYS {
        records.push(field(5, map(&[(key, &canaries.word(&format!("log: nothing, under {key}")))])));
    }
    post_protobuf(server, "/v1/logs", &request(&[], &records)).is(200);
    for (index, text) in canaries.texts("log: resource and scope", true).iter().enumerate() {
        let record = log(20_000 + index, &attribute(6, "error.code", "-32603"));
        post_protobuf(server, "/v1/logs", &around(text, &record)).is(200);
    }
}

/// Sends unreadable requests: they are rejected and sampled, and no secret of theirs is kept.
pub(super) fn malformed(server: &Server, canaries: &mut Canaries) {
    let torn = [9 << 3 | 2, 120, 1];
    let mut records = Vec::new();
    for (name, carry, _) in SPAN {
        for text in canaries.texts(&format!("malformed span: {name}"), false) {
            records.push([&span(0, &carry(&text))[..], &torn].concat());
        }
    }
    for key in SECRET_KEYS {
        let plain = attribute(9, key, &canaries.word(&format!("malformed span: {key}")));
        records.push([&span(0, &plain)[..], &torn].concat());
    }
    post_protobuf(server, "/v1/traces", &request(&[], &records)).is(200);
    for text in canaries.texts("malformed JSON", false) {
        let attributes = [
            json!([{"key": "note", "value": {"stringValue": text}}, {"key": "x", "value": {"intValue": text}}]),
            json!([{"key": "note", "value": text}]),
            json!(text),
            json!([{"key": [text], "value": {}}]),
        ];
        let records: Vec<_> =
            attributes.map(|attributes| json!({"name": text, "attributes": attributes})).into();
        post_json(server, "/v1/traces", &json!({"resourceSpans": [{"scopeSpans": [{"spans": records}]}]}))
            .is(200);
        post_json(server, "/v1/logs", &json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}))
            .is(200);
        post_json(server, "/v1/logs", &json!({"resourceLogs": text})).is(400);
        post_json(server, "/v1/traces", &json!({"resourceSpans": [{"resource": {"attributes": text}}]}))
            .is(400);
    }
    for key in SECRET_KEYS {
        // A missing value kind is an easy mistake.
        let word = canaries.word(&format!("malformed JSON: {key}"));
        let spans = json!([{"attributes": [{"key": key, "value": word}]}]);
        post_json(server, "/v1/traces", &json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
            .is(200);
    }
    assert_eq!(server.status()["server"]["reject_samples_dropped"], 0, "every one was sampled");
}

/// Sends secrets in paths and headers, over HTTP and over gRPC.
pub(super) fn heads(server: &Server, folder: &Folder, canaries: &mut Canaries) {
    let post = |path: &str, headers: &[(&str, &str)]| {
        ask(server.address("otlp_http"), "POST", path, headers, b"").expect("an answer").status
    };
    for kind in 0..KINDS {
        assert_eq!(
            post("/v1/traces", &[("Content-Type", &canaries.text("OTLP: content type", kind, false))]),
            415
        );
        let text = canaries.text("OTLP: content encoding", kind, false);
        let headers = [("Content-Type", "application/json"), ("Content-Encoding", &text)];
        assert_eq!(post("/v1/logs", &headers), 415);
    }
    let empty = folder.file("frame", [0; 5]);
    for kind in [0, 3, 4, 5, 6, 13, 14] {
        // The exit code is ignored, because some versions report a failure when the response arrives before all data is
        // sent.
        Command::new("curl")
            .args([
                "--silent",
                "--http2-prior-knowledge",
                "--max-time",
                "30",
                "--data-binary",
                &format!("@{empty}"),
            ])
            .args(["-H", "content-type: application/grpc"])
            .args(["-H", &format!("grpc-encoding: {}", canaries.bare("gRPC: encoding", kind))])
            .args(["-H", &format!("authorization: {}", canaries.text("gRPC: header", kind, false))])
            .arg(format!(
                "http://{}/{}/Export",
                server.address("otlp_grpc"),
                canaries.bare("gRPC: path", kind)
            ))
            .status()
            .expect("curl runs: run ./tests/run, which installs it");
    }
    assert_eq!(server.status()["sources"]["otlp_traces"]["rejected_requests"]["wrong_signal"], 7);
}
