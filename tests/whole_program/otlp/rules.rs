//! The MUSTs of OTLP over HTTP, one test each. Where no SDK would send a request, its bytes are made by hand.

use super::client::gzip;
use super::wire::{Held, field, fields, request, span, status};
use super::{JSON, PROTOBUF, post_json, post_protobuf, start};
use crate::whole_program::server::{Answer, ask};
use crate::whole_program::support::Folder;
use serde_json::{Value, json};

/// The paths of the two signals, with the names of their lists in JSON.
const SIGNALS: [(&str, &str); 2] = [("/v1/traces", "resourceSpans"), ("/v1/logs", "resourceLogs")];
const TYPES: [(&str, &str); 2] = [PROTOBUF, JSON];

/// `google.rpc.Status` in either format: its code and its message.
#[track_caller]
fn status_of(answer: &Answer) -> (u64, String) {
    match answer.header("content-type") {
        Some("application/x-protobuf") => {
            let status = status(&answer.body);
            (status.code, status.message)
        }
        Some("application/json") => {
            let status = answer.json();
            let message = status["message"].as_str().expect("a message").to_owned();
            (status["code"].as_u64().expect("a code"), message)
        }
        other => panic!("{other:?}: {answer:?}"),
    }
}

/// Checks a rejection: its status, a content type equal to that of the request, and a helpful message.
#[track_caller]
fn is_refused(answer: Answer, http: u16, grpc: u64, content_type: &str, words: &str) {
    let answer = answer.is(http);
    assert_eq!(answer.header("content-type"), Some(content_type));
    let (code, message) = status_of(&answer);
    assert_eq!(code, grpc, "{message}");
    assert!(message.contains(words), "{message}");
    assert_eq!(answer.header("retry-after"), None, "nobody should retry what is wrong");
}

/// "The server MUST use the same Content-Type in the response as it received in the request", and "the server
/// SHOULD respond with success to empty requests".
#[test]
fn an_empty_request_is_a_success_in_the_content_type_of_the_request() {
    let folder = Folder::new();
    let server = start(&folder);
    for (path, _) in SIGNALS {
        let answer = post_protobuf(&server, path, b"").is(200);
        assert_eq!((answer.header("content-type"), answer.body.len()), (Some(PROTOBUF.1), 0));
        let answer = post_json(&server, path, &json!({})).is(200);
        assert_eq!((answer.header("content-type"), answer.json()), (Some(JSON.1), json!({})));
        let answer = server.post(path, &[("Content-Type", "Application/JSON; charset=utf-8")], b"{}").is(200);
        assert_eq!(answer.header("content-type"), Some(JSON.1), "parameters and case do not matter");
    }
}

/// "The server MUST populate `partial_success` with the number of rejected spans and an error message". The good
/// spans are stored, and counted as accepted.
#[test]
fn malformed_spans_cost_only_themselves() {
    let folder = Folder::new();
    let server = start(&folder);
    // One span has an attribute that announces more bytes than there are, one has a time that is a text.
    let torn = [span(3, &[]), vec![9 << 3 | 2, 100, 1]].concat();
    let wrong = span(4, &[field(7, "yesterday")]);
    let body = request(&[], &[span(1, &[]), torn, wrong, span(2, &[])]);
    let answer = post_protobuf(&server, "/v1/traces", &body).is(200);
    let partial = fields(&answer.body);
    let [(1, Held::Bytes(partial))] = &partial[..] else { panic!("{partial:?}") };
    let partial = fields(partial);
    assert_eq!(partial[0], (1, Held::Number(2)));
    assert!(partial[1].1.text().starts_with("record 2: "), "{partial:?}");
    let ids: Vec<_> = server.dump("events").iter().map(|row| row["span_id"].clone()).collect();
    assert_eq!(json!(ids), json!(["0101010101010101", "0202020202020202"]));
    let rejects: Vec<_> =
        server.dump("rejects").iter().map(|row| json!([row["reason"], row["line"]])).collect();
    assert_eq!(json!(rejects), json!([["malformed", 2], ["malformed", 3]]));
    let traces = &server.status()["sources"]["otlp_traces"];
    assert_eq!((&traces["accepted_records"], &traces["rejected_records"]), (&json!(2), &json!(2)));
}

/// The same in JSON, where 64-bit numbers are texts, for both signals.
#[test]
fn partial_success_in_json() {
    let folder = Folder::new();
    let server = start(&folder);
    let code = json!([{"key": "error.code", "value": {"stringValue": "-32601"}}]);
    for (path, list, scopes, records, count) in [
        ("/v1/traces", "resourceSpans", "scopeSpans", "spans", "rejectedSpans"),
        ("/v1/logs", "resourceLogs", "scopeLogs", "logRecords", "rejectedLogRecords"),
    ] {
        let body =
            json!({list: [{scopes: [{records: [{"attributes": code}, {"attributes": "none"}, "what?"]}]}]});
        let partial = post_json(&server, path, &body).is(200).json()["partialSuccess"].clone();
        assert_eq!(partial[count], "2", "{path}: {partial}");
        assert!(
            partial["errorMessage"].as_str().is_some_and(|said| said.contains("record 2: ")),
            "{partial}"
        );
    }
    assert_eq!(server.dump("events").len(), 2);
}

/// "If the processing of the request fails because the request contains data that cannot be decoded, the server
/// MUST respond with HTTP 400 and MUST include a Status with an error message": in both formats.
#[test]
fn what_cannot_be_decoded_is_a_400_with_a_status() {
    let folder = Folder::new();
    let server = start(&folder);
    for (path, _) in SIGNALS {
        for (header, body) in
            [(PROTOBUF, &b"\xff\xff\xff"[..]), (JSON, b"{\"resourceSpans\": "), (JSON, b"[]")]
        {
            is_refused(
                server.post(path, &[header], body),
                400,
                3,
                header.1,
                "send what the content type says",
            );
        }
        for header in TYPES {
            for (encoding, body) in
                [("gzip", &b"no gzip at all"[..]), ("zstd", b"no zstd"), ("gzip", &gzip(b"{}")[..12])]
            {
                let answer = server.post(path, &[header, ("Content-Encoding", encoding)], body);
                is_refused(answer, 400, 3, header.1, encoding);
            }
        }
    }
    assert!(server.dump("events").is_empty());
}

/// Types that are not supported are rejected with 415, and the response names the supported ones.
#[test]
fn other_types_and_encodings_are_a_415() {
    let folder = Folder::new();
    let server = start(&folder);
    for (path, _) in SIGNALS {
        for given in ["text/plain", "application/x-ndjson", "application/octet-stream", ""] {
            let answer = server.post(path, &[("Content-Type", given)], b"{}");
            is_refused(answer, 415, 3, JSON.1, "application/x-protobuf and application/json");
        }
        let answer = server.post(path, &[PROTOBUF, ("Content-Encoding", "br")], b"");
        is_refused(answer, 415, 12, PROTOBUF.1, "use gzip, zstd");
    }
}

/// Unsupported signals are a 404 that no sender retries, with a status in the content type of the request.
#[test]
fn other_signals_are_a_404_with_a_status() {
    let folder = Folder::new();
    let server = start(&folder);
    for path in ["/v1development/profiles"] {
        for header in TYPES {
            is_refused(server.post(path, &[header], b""), 404, 12, header.1, "traces, logs and metrics only");
        }
    }
    // A signal at the address of another: the sender gets the right address.
    let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}]});
    is_refused(post_json(&server, "/v1/traces", &logs), 400, 3, JSON.1, "/v1/logs");
}

/// Other methods are a 405 that names the one to use.
#[test]
fn other_methods_are_a_405() {
    let folder = Folder::new();
    let server = start(&folder);
    for method in ["GET", "PUT", "DELETE"] {
        let answer = ask(server.address("otlp_http"), method, "/v1/logs", &[JSON], b"{}").expect("an answer");
        assert_eq!(answer.header("allow"), Some("POST"));
        is_refused(answer, 405, 12, JSON.1, "use POST");
    }
}

/// A body that announces, or decompresses to, more than the limit is a 413 that no sender retries.
#[test]
fn what_is_too_large_is_a_413() {
    let folder = Folder::new();
    let server = start(&folder);
    let headers = [PROTOBUF, ("Content-Length", "67108865")];
    is_refused(server.post("/v1/traces", &headers, b""), 413, 8, PROTOBUF.1, "send smaller batches");
    let bomb = gzip(&vec![0; (64 << 20) + 1]);
    let answer = server.post("/v1/logs", &[JSON, ("Content-Encoding", "gzip")], &bomb);
    is_refused(answer, 413, 8, JSON.1, "send smaller batches");
    let refused = |source: &str| -> Value { server.status()["sources"][source]["rejected_requests"].clone() };
    assert_eq!(
        json!([refused("otlp_traces"), refused("otlp_logs")]),
        json!([{"too_large": 1}, {"too_large": 1}])
    );
}
