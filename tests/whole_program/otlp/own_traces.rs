//! The collector's own spans: sent where `OTEL_EXPORTER_OTLP_ENDPOINT` says, and never to itself.

use super::later::free_address;
use super::start;
use crate::whole_program::server::Server;
use crate::whole_program::support::{Folder, OPEN, WORKED, lines};
use serde_json::{Value, json};
use std::time::Duration;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
/// The interval at which spans are sent, which is far shorter than a test waits.
const AT_ONCE: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "20");

/// Sends three requests: two are accepted, one is rejected.
fn work(server: &Server) {
    server.post_lines(&lines(&[OPEN, WORKED])).is(200);
    server.post("/v1/traces", &[super::PROTOBUF], b"").is(200);
    server.post("/v1/envelopes", &[("Content-Encoding", "gzip")], b"no gzip").is(400);
}

/// A traces itself to B: B counts one call for each request of A, and knows which one A refused, and why.
#[track_caller]
fn arrive_at_another(protocol: &str, listener: &str) {
    let (here, there) = (Folder::new(), Folder::new());
    let other = start(&there);
    let endpoint = format!("http://{}", other.address(listener));
    let server = Server::start_in(&here, &[(ENDPOINT, &endpoint), (PROTOCOL, protocol)], &[]);
    work(&server);
    assert!(server.stop().success(), "a stop sends what is left");
    assert_eq!(other.status()["sources"]["otlp_traces"]["accepted_records"], 3, "{}", other.status());
    let calls = |outcome: &str| -> Vec<Value> {
        let rows = other.dump("traffic").into_iter().filter(|row| row["outcome"] == outcome);
        rows.map(|row| json!([row["service"], row["operation"], row["span_kind"], row["calls"]])).collect()
    };
    assert_eq!(json!(calls("ok")), json!([["faultline", "ingest", "server", 2]]));
    assert_eq!(json!(calls("hidden")), json!([["faultline", "ingest", "server", 1]]));
    let events = other.dump("events");
    assert_eq!(events.len(), 1, "{events:?}");
    let attributes = &events[0]["attributes"];
    let found = ["error.type", "outcome", "source", "bytes"].map(|name| &attributes[name]);
    assert_eq!(json!(found), json!(["bad_compression", "rejected", "envelopes", 7]), "{events:?}");
}

#[test]
fn own_traces_arrive_over_grpc() {
    arrive_at_another("grpc", "otlp_grpc");
}

#[test]
fn own_traces_arrive_over_http() {
    arrive_at_another("http/protobuf", "otlp_http");
}

/// An endpoint that is one of our own listeners is refused with a warning, whatever it is called; the server
/// works on, and no span ever comes back.
#[test]
fn never_to_ourselves() {
    let address = free_address();
    let port = address.rsplit(':').next().expect("a port");
    for (flag, protocol) in [("--listen-otlp-grpc", "grpc"), ("--listen-otlp-http", "http/protobuf")] {
        for host in ["127.0.0.1", "localhost"] {
            let folder = Folder::new();
            let endpoint = format!("http://{host}:{port}");
            let variables = [(ENDPOINT, endpoint.as_str()), (PROTOCOL, protocol), AT_ONCE];
            let server = Server::start_in(&folder, &variables, &[flag, &address]);
            nothing_comes_back(&server);
            assert!(server.said().contains("is this very collector"), "{}", server.said());
        }
    }
}

/// Another variable of the SDK names an endpoint only for traces. It must not bypass the check.
#[test]
fn never_to_ourselves_by_another_variable() {
    let there = Folder::new();
    let other = start(&there);
    for (flag, protocol, listener) in
        [("--listen-otlp-grpc", "grpc", "otlp_grpc"), ("--listen-otlp-http", "http/protobuf", "otlp_http")]
    {
        let folder = Folder::new();
        let address = free_address();
        let (good, own) =
            (format!("http://{}", other.address(listener)), format!("http://{address}/v1/traces"));
        let before = other.status()["sources"]["otlp_traces"]["accepted_records"].as_u64();
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own.as_str());
        let variables = [(ENDPOINT, good.as_str()), (PROTOCOL, protocol), AT_ONCE, traces];
        let server = Server::start_in(&folder, &variables, &[flag, &address]);
        nothing_comes_back(&server);
        assert!(server.stop().success());
        let after = other.status()["sources"]["otlp_traces"]["accepted_records"].as_u64();
        assert_eq!(after, before.map(|before| before + 3), "{protocol}");
    }
}

#[track_caller]
fn nothing_comes_back(server: &Server) {
    work(server);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(
        server.status()["sources"]["otlp_traces"]["received_requests"],
        1,
        "only ours: {}",
        server.status()
    );
}
