//! Tests of regular stops, and of two servers that use the same directory.

use super::client::Connection;
use super::ledger::{Batch, Ledger};
use super::load::{Load, send, settle};
use crate::whole_program::server::Server;
use crate::whole_program::support::{Folder, faultline};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A timeout that is long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Scenario: SIGTERM under load, while one sender is in the middle of a body.
/// Guarantee: the body that was begun is taken and answered; everything acknowledged is stored; exit code 0.
#[test]
fn a_stop_under_load_finishes_what_was_begun() {
    let folder = Folder::new();
    let mut server = Server::start(&folder);
    let ledger = Arc::new(Ledger::default());
    let load = Load::start(server.address("otlp_http"), &ledger, "r");
    let slow = Batch::new("slow", 3, false);
    let mut connection = begin(&server, &slow);
    load.until(20, || false);
    server.signal("TERM");
    wait_until_stopping(&server);
    ledger.sending(&slow);
    connection.send(&slow.body().as_bytes()[1..]).expect("the server still reads");
    let answer = connection.answer().expect("what was begun is answered");
    assert!(ledger.answered(&slow, &answer), "{answer:?}");
    assert_eq!(server.wait().code(), Some(0), "{}", server.said());
    load.end();
    ledger.check(server.data_dir());
    // Requests without a response can be sent again.
    let server = Server::start(&folder);
    settle(server.address("otlp_http"), &ledger);
    let data_dir = server.data_dir().to_owned();
    assert!(server.stop().success());
    ledger.check(&data_dir);
}

/// Scenario: SIGTERM the moment `endpoints.json` is there, again and again.
/// Guarantee: whoever can find the server can stop it: exit code 0, and the addresses are gone.
#[test]
fn a_stop_right_after_the_start_is_a_stop() {
    let folder = Folder::new();
    for _ in 0..10 {
        let mut server = Server::spawn(&folder, Command::new(env!("CARGO_BIN_EXE_faultline")), &[]);
        while !server.data_dir().join("endpoints.json").exists() {
            assert!(!server.has_ended(), "{}", server.said());
            std::thread::yield_now();
        }
        server.signal("TERM");
        assert_eq!(server.wait().code(), Some(0), "{}", server.said());
        assert!(!server.data_dir().join("endpoints.json").exists());
    }
}

/// Scenario: a sender in the middle of a body says no more; SIGTERM, and then another.
/// Guarantee: the second ends the server at once with exit code 5; what was acknowledged is stored.
#[test]
fn a_second_signal_does_not_wait() {
    let folder = Folder::new();
    let mut server = Server::start(&folder);
    let ledger = Ledger::default();
    assert_eq!(send(server.address("otlp_http"), &ledger, &Batch::new("first", 2, true)).status, 200);
    let slow = Batch::new("slow", 3, false);
    ledger.sending(&slow);
    let mut connection = begin(&server, &slow);
    server.signal("TERM");
    wait_until_stopping(&server);
    std::thread::sleep(Duration::from_millis(200));
    assert!(!server.has_ended(), "it waits for the body");
    let began = Instant::now();
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(5), "{}", server.said());
    // This is far less than it would wait for the body.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert!(connection.answer().is_err(), "nobody is there to answer");
    ledger.check(server.data_dir());
}

/// Scenario: a second server on the directory of a running one, which is then killed.
/// Guarantee: the second ends with exit code 3 and names the process of the first, which is not disturbed; after the
/// kill the directory is free.
#[test]
fn a_directory_has_one_server() {
    let folder = Folder::new();
    let first = Server::start(&folder);
    let ledger = Ledger::default();
    assert_eq!(send(first.address("otlp_http"), &ledger, &Batch::new("first", 2, false)).status, 200);
    let data_dir = first.data_dir().to_str().expect("the path is UTF-8");
    let off =
        ["--listen-otlp-grpc", "--listen-otlp-http", "--listen-web", "--listen-postgres", "--listen-flight"];
    let off = off.map(|flag| [flag, "off"]).concat();
    for _ in 0..3 {
        let run = faultline(&[&["serve", "--data-dir", data_dir], &off[..]].concat()).ends_with(3);
        assert!(run.err.contains(&format!("process {}", first.pid())), "{}", run.err);
        assert_eq!(run.err.trim_end().lines().count(), 1, "{}", run.err);
    }
    assert!(first.data_dir().join("endpoints.json").exists(), "the addresses are still the first one's");
    assert_eq!(send(first.address("otlp_http"), &ledger, &Batch::new("second", 2, false)).status, 200);
    first.kill();
    let next = Server::start(&folder);
    assert_eq!(send(next.address("otlp_http"), &ledger, &Batch::new("third", 2, false)).status, 200);
    let data_dir = next.data_dir().to_owned();
    assert!(next.stop().success());
    ledger.check(&data_dir);
}

/// Sends a request's head and the first byte of its body, and waits until the server is reading it.
fn begin(server: &Server, batch: &Batch) -> Connection {
    let mut connection = Connection::open(server.address("otlp_http")).expect("a connection");
    let body = batch.body();
    connection.begin(batch.key(), body.len()).expect("the head is sent");
    connection.send(&body.as_bytes()[..1]).expect("the body is begun");
    // From outside, it is not visible that a body is being read.
    std::thread::sleep(Duration::from_millis(300));
    connection
}

fn wait_until_stopping(server: &Server) {
    let began = Instant::now();
    while !server.said().contains("stopping: finishing") {
        assert!(began.elapsed() < PATIENCE, "it does not say that it stops\n{}", server.said());
        std::thread::sleep(Duration::from_millis(5));
    }
}
