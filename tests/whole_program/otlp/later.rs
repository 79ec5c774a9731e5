//! Tests of a full WAL: senders are told to retry later, and a sender that does so loses nothing.

use super::client::{python, story};
use super::expected::{FILLER, check};
use super::wire::status;
use super::{JSON, PROTOBUF};
use crate::whole_program::server::{Server, allow_flushing, forbid_flushing};
use crate::whole_program::support::{Folder, OPEN};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::time::{Duration, Instant};

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// Options for a WAL that a few requests fill.
const SMALL: [&str; 2] = ["--wal-bytes", "1MiB"];

/// Sends until the server accepts nothing more, not even a single line where there is no room for many.
#[track_caller]
fn fill(server: &Server) {
    let line = format!("{}\n", OPEN.replace("orders", FILLER));
    for lines in [line.repeat(400), line] {
        let refused = (0..100).find(|_| is_refused(server, &lines));
        assert!(refused.is_some(), "the log does not fill: {}", server.status());
    }
}

/// The server checks again after a while whether something smaller fits, so one rejection is not final.
fn is_refused(server: &Server, lines: &str) -> bool {
    let is_no = || server.post_lines(lines).status == 503;
    is_no() && {
        std::thread::sleep(Duration::from_millis(1100));
        is_no()
    }
}

/// "The server SHOULD respond with `UNAVAILABLE` and `RetryInfo`" and "with HTTP 429 or 503 and Retry-After": in all
/// forms, and with nothing stored.
#[test]
fn a_full_log_says_when_to_come_back() {
    let folder = Folder::new();
    forbid_flushing(&folder);
    let server = Server::start_with(&folder, &SMALL);
    fill(&server);
    let stored = server.dump("events").len();

    let answer = server.post("/v1/traces", &[PROTOBUF], &story().traces).is(503);
    assert_eq!((answer.header("retry-after"), answer.header("content-type")), (Some("1"), Some(PROTOBUF.1)));
    let status = status(&answer.body);
    assert_eq!(
        (status.code, &status.details[..]),
        (14, &["type.googleapis.com/google.rpc.RetryInfo".to_owned()][..])
    );

    let answer = server.post("/v1/logs", &[JSON], story().logs_json.to_string().as_bytes()).is(503);
    assert_eq!((answer.header("retry-after"), answer.header("content-type")), (Some("1"), Some(JSON.1)));
    assert_eq!(
        (&answer.json()["code"], &answer.json()["details"][0]["retryDelay"]),
        (&json!(14), &json!("1s"))
    );

    let address = server.address("otlp_grpc").to_string();
    let answer = python("call.py", &[&address, TRACES, "-"], &story().traces);
    assert_eq!((&answer["code"], &answer["retry_ms"]), (&json!("UNAVAILABLE"), &json!(1000)), "{answer}");

    assert_eq!(server.get("/readyz").status, 503);
    assert_eq!(server.dump("events").len(), stored);
}

/// The SDK sends to a server whose log is full, because nothing can be flushed, and tries again by itself. An operator
/// mends that and restarts it: the export succeeds, and every row is there, once.
#[track_caller]
fn comes_back(protocol: &str, flag: &str) {
    let folder = Folder::new();
    forbid_flushing(&folder);
    let address = free_address();
    let at = [flag, &address];
    let server = Server::start_with(&folder, &[&SMALL[..], &at].concat());
    fill(&server);
    let sender = std::thread::spawn({
        let (protocol, endpoint) = (protocol.to_owned(), format!("http://{address}"));
        move || python("send.py", &[&protocol, "gzip", &endpoint, "40"], b"")
    });
    let began = Instant::now();
    let refused =
        |server: &Server| server.status()["sources"]["otlp_traces"]["rejected_requests"]["wal_full"].as_u64();
    while refused(&server).unwrap_or(0) < 2 {
        assert!(began.elapsed() < Duration::from_secs(20), "the SDK does not try again: {}", server.status());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.stop().success());
    allow_flushing(&folder);
    let server = Server::start_with(&folder, &at);
    let sent: Value = sender.join().expect("the sender ends");
    assert_eq!(json!([sent["traces"], sent["logs"]]), json!([["SUCCESS"], ["SUCCESS"]]));
    check(&server, &sent["told"]);
}

/// Returns two unused addresses.
pub(super) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").to_string()
}

#[test]
fn the_sdk_comes_back_over_grpc() {
    comes_back("grpc", "--listen-otlp-grpc");
}

#[test]
fn the_sdk_comes_back_over_http() {
    comes_back("http", "--listen-otlp-http");
}
