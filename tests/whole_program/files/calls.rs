//! Tests of requests and their replies in different pieces of a file or of standard input.

use super::{Bench, PATIENCE};
use crate::whole_program::http_sql::rows;
use crate::whole_program::server::Server;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The wire of a stdio server in pieces: a call whose reply comes later, and a task that fails and is polled before and
/// after that.
const PIECES: [&str; 7] = [
    r#"{"time":"2026-11-19T08:00:00.000Z","jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_parcel","arguments":{"kilos":3}}}"#,
    r#"{"time":"2026-11-19T08:00:00.250Z","jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"success\":false,\"error\":{\"code\":\"NOT_FOUND_RESOURCE\",\"message\":\"No parcel\"}}"}]}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sort_parcels","arguments":{}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"t-1","status":"working"}}
{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"t-1"}}"#,
    r#"{"jsonrpc":"2.0","id":3,"result":{"taskId":"t-1","status":"working"}}
{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"t-1"}}"#,
    r#"{"jsonrpc":"2.0","id":4,"result":{"taskId":"t-1","status":"failed","error":{"code":-32603,"message":"The sorter is jammed"}}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"t-1"}}"#,
    r#"{"jsonrpc":"2.0","id":5,"result":{"taskId":"t-1","status":"failed","error":{"code":-32603,"message":"The sorter is jammed"}}}"#,
];

/// Waits until the lines of the input were read.
fn wait_for_lines(server: &Server, input: &str, lines: usize) {
    let began = Instant::now();
    // Those of standard input are counted by outcome.
    let read = |status: &Value| match &status[input]["lines"] {
        Value::Object(outcomes) => outcomes.get("stored").cloned().unwrap_or_default(),
        lines => lines.clone(),
    };
    while read(&server.status()) != lines {
        assert!(began.elapsed() < PATIENCE, "{}", server.status()[input]);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Writes the pieces, each after the one before it was stored.
fn write_in_pieces(server: &Server, input: &str, mut write: impl FnMut(&str)) {
    let mut lines = 0;
    for piece in PIECES {
        write(&format!("{piece}\n"));
        lines += piece.lines().count();
        wait_for_lines(server, input, lines);
    }
}

#[track_caller]
fn check(server: &Server) {
    let failures =
        rows(server, "SELECT operation, message, duration_us, hidden FROM errors ORDER BY operation");
    let failure = |operation: &str, message: &str, duration_us: Value, hidden: bool| json!({"operation": operation, "message": message, "duration_us": duration_us, "hidden": hidden});
    assert_eq!(
        failures,
        [
            failure("find_parcel", "No parcel", json!(250_000), true),
            failure("sort_parcels", "The sorter is jammed", Value::Null, false),
        ]
    );
    let calls = "SELECT operation, sum(calls) AS calls, sum(failures) AS failures FROM error_rates GROUP BY 1 ORDER BY 1";
    assert_eq!(
        rows(server, calls),
        [
            json!({"operation": "find_parcel", "calls": 1, "failures": 1}),
            json!({"operation": "sort_parcels", "calls": 1, "failures": 1}),
        ]
    );
    let pending = "SELECT sum(calls) AS calls FROM traffic WHERE outcome = 'pending'";
    assert_eq!(rows(server, pending), [json!({"calls": 1})]);
}

#[test]
fn a_reply_in_a_later_piece_of_a_file_finds_its_request() {
    let bench = Bench::new();
    let server = bench.serve();
    let mut log =
        std::fs::File::options().create(true).append(true).open(bench.log("app.log")).expect("a log");
    write_in_pieces(&server, "files", |text| log.write_all(text.as_bytes()).expect("there is room"));
    check(&server);
}

#[test]
fn a_reply_in_a_later_piece_of_standard_input_finds_its_request() {
    let bench = Bench::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_faultline"))
        .args(["serve", "--stdin", "--stdin-service", "orders", "--data-dir"])
        .arg(bench.data_dir())
        .args(["--listen-otlp-grpc", "off", "--listen-otlp-http", "off", "--listen-postgres", "off"])
        .args(["--listen-flight", "off", "--listen-web", ":0"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let mut input = child.stdin.take().expect("a pipe");
    let server = Server::attach(child, bench.data_dir());
    write_in_pieces(&server, "stdin", |text| input.write_all(text.as_bytes()).expect("it reads"));
    check(&server);
}
