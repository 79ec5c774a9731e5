//! Exports of the OpenTelemetry SDK become the rows that they should, over every transport of the SDK.

use super::client::{gzip, send, story, zstd};
use super::expected::{check, events};
use super::{PROTOBUF, post_protobuf, start};
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use serde_json::{Value, json};

/// The SDK's exporter sends the story; every column of every row is as told.
#[track_caller]
fn arrives_over(protocol: &str, compression: &str) {
    let folder = Folder::new();
    let server = start(&folder);
    let sent = send(&server, protocol, compression);
    check(&server, &sent["told"]);
    let sources = server.status()["sources"].clone();
    let seen = |source: &str| {
        ["accepted_records", "unrecognized", "rejected_records"].map(|count| sources[source][count].clone())
    };
    let unrecognized = json!({"no_envelope": 1});
    assert_eq!(json!([seen("otlp_traces"), seen("otlp_logs")]), json!([[10, {}, 0], [5, unrecognized, 0]]));
    let larger = |source: &str| {
        sources[source]["decompressed_bytes"].as_u64() > sources[source]["received_bytes"].as_u64()
    };
    assert_eq!(larger("otlp_traces"), compression != "none", "{compression} was on the wire: {sources}");
}

#[test]
fn the_sdk_over_grpc() {
    arrives_over("grpc", "none");
}

#[test]
fn the_sdk_over_grpc_with_gzip() {
    arrives_over("grpc", "gzip");
}

#[test]
fn the_sdk_over_http() {
    arrives_over("http", "none");
}

#[test]
fn the_sdk_over_http_with_gzip() {
    arrives_over("http", "gzip");
}

/// The same bytes with every content encoding that we read, among them one that the SDK has not.
#[test]
fn every_content_encoding_over_http() {
    type Compress = fn(&[u8]) -> Vec<u8>;
    let encodings: [(&str, Compress); 4] =
        [("identity", |bytes| bytes.to_vec()), ("gzip", gzip), ("x-gzip", gzip), ("zstd", zstd)];
    for (name, compress) in encodings {
        let folder = Folder::new();
        let server = start(&folder);
        let headers = [PROTOBUF, ("Content-Encoding", name)];
        server.post("/v1/traces", &headers, &compress(&story().traces)).is(200);
        server.post("/v1/logs", &headers, &compress(&story().logs)).is(200);
        check(&server, &story().told);
    }
}

/// A sender that got no answer sends again: spans, log records and calls are stored once, also when the server
/// was killed in between. Calls without an event of a span leave no row to know them by, so a kill may count those
/// again.
#[test]
fn what_is_sent_again_is_stored_once() {
    let folder = Folder::new();
    let server = start(&folder);
    let send = |server: &Server| {
        post_protobuf(server, "/v1/traces", &story().traces).is(200);
        post_protobuf(server, "/v1/logs", &story().logs).is(200);
    };
    send(&server);
    let repeats = |server: &Server, source: &str| {
        server.status()["sources"][source]["duplicate_records"].as_i64().expect("a number")
    };
    let before = ["otlp_traces", "otlp_logs"].map(|source| repeats(&server, source));
    let (events, traffic) = (server.dump("events"), server.dump("traffic"));
    send(&server);
    assert_eq!((server.dump("events"), server.dump("traffic")), (events.clone(), traffic.clone()));
    // One span and one log record are further reports of a failure. Then 7 events and 8 calls of spans; 3 events, 1
    // call, and the further report again.
    assert_eq!(
        (before, ["otlp_traces", "otlp_logs"].map(|source| repeats(&server, source))),
        ([1, 1], [16, 6])
    );
    server.kill();
    let server = start(&folder);
    send(&server);
    assert_eq!(server.dump("events"), events);
    let failed = |rows: &[Value]| -> Vec<Value> {
        let of_spans = rows.iter().filter(|row| row["source"] == "otlp_traces" && row["outcome"] != "ok");
        of_spans.cloned().collect()
    };
    assert_eq!(failed(&server.dump("traffic")), failed(&traffic));
}

/// A failure that a span and a log record both report is stored once, whichever comes first; other failures of
/// the same span stay.
#[test]
fn a_span_and_its_log_record_are_one_failure() {
    let folder = Folder::new();
    let server = start(&folder);
    post_protobuf(&server, "/v1/logs", &story().logs).is(200);
    post_protobuf(&server, "/v1/traces", &story().traces).is(200);
    let rows = server.dump("events");
    assert_eq!(rows.iter().filter(|row| row["represents"] == 1).count(), events().len() + 1, "{rows:#?}");
    let told: Vec<_> =
        rows.iter().filter(|row| row["span_id"] == story().told["exception"]["span_id"]).collect();
    let [log, span] = told[..] else { panic!("{told:#?}") };
    assert_eq!((&log["source"], &log["message"]), (&json!("otlp_logs"), &json!("late")));
    // The span knows the operation, and takes the words of the log record.
    assert_eq!(
        json!([span["source"], span["canonical"], span["message"], span["operation"], span["supersedes"]]),
        json!(["otlp_traces", "INTERNAL_TIMEOUT", "late", "forecast", log["event_id"]])
    );
}
