//! Tests of a disk that fails for a while: strace makes the system calls of the WAL fail.

use super::ledger::{Batch, Ledger};
use super::load::{Load, send, settle};
use super::strace::{start, strace, strace_log};
use crate::whole_program::server::{Answer, Server};
use crate::whole_program::support::Folder;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A timeout that is long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The system call, its failure, and a word of the response to the sender.
const FAULTS: [(&str, &str, &str); 4] = [
    ("fdatasync", "error=EIO:when=3..6", "Input/output error"),
    ("fdatasync", "error=ENOSPC:when=2", "no space left"),
    ("writev", "error=ENOSPC:when=3..5", "no space left"),
    ("writev", "error=EIO:when=2..3", "Input/output error"),
];

/// Scenario: one sender, whose requests are refused while the disk fails, and who repeats each until it is taken,
/// without a key.
/// Guarantee: a refusal is 503 with a time and a remedy, and readiness says the same while health and status go on;
/// when the disk is well, the server is, without a restart; what was refused and then taken is stored once.
#[test]
fn a_failing_disk_refuses_and_recovers() {
    for (call, injection, words) in FAULTS {
        let folder = Folder::new();
        let server = start(&folder, strace_log(&folder, call, injection), &["--wal-bytes", "8MiB"]);
        let (address, ledger) = (server.address("otlp_http"), Ledger::default());
        let mut refused = 0;
        for n in 0..12 {
            let batch = Batch::new(format!("n{n}"), 2, false);
            loop {
                let answer = send(address, &ledger, &batch);
                if answer.status == 200 {
                    server.get("/readyz").is(200);
                    break;
                }
                refused += 1;
                assert!(refused < 100, "{call} {injection}: it does not recover");
                check_refusal(&answer, words);
                check_unready(&server);
            }
        }
        assert!(refused > 0, "{call} {injection}: nothing failed");
        check_said(&server);
        let data_dir = server.data_dir().to_owned();
        assert!(server.stop().success());
        ledger.check(&data_dir);
    }
}

/// Scenario: four senders while every third fdatasync fails.
/// Guarantee: what was acknowledged is stored, once; what was refused is not, after a kill either.
#[test]
fn a_failing_disk_under_load_keeps_what_it_said() {
    let folder = Folder::new();
    let server =
        start(&folder, strace_log(&folder, "fdatasync", "error=EIO:when=3+3"), &["--wal-bytes", "64MiB"]);
    let ledger = Arc::new(Ledger::default());
    let load = Load::start(server.address("otlp_http"), &ledger, "r");
    load.until(100, || false);
    assert!(server.status()["wal"]["rejected_records"]["io"].as_u64().expect("a number") >= 3);
    server.kill();
    load.end();
    ledger.check(&folder.path().join("data"));
    let server = Server::start(&folder);
    settle(server.address("otlp_http"), &ledger);
    assert_eq!(server.status()["replay"]["damaged"], 0);
    server.kill();
    ledger.check(&folder.path().join("data"));
}

/// Scenario: an fdatasync fails after the record was written; the server is killed before it takes anything else, and
/// the sender repeats the request to the next one.
/// Guarantee: it is stored once.
#[test]
fn what_was_refused_before_a_kill_does_not_come_back() {
    let folder = Folder::new();
    let server = start(&folder, strace_log(&folder, "fdatasync", "error=EIO:when=2+1"), &[]);
    let ledger = Ledger::default();
    let (first, second) = (Batch::new("first", 3, false), Batch::new("second", 3, false));
    assert_eq!(send(server.address("otlp_http"), &ledger, &first).status, 200);
    assert_eq!(send(server.address("otlp_http"), &ledger, &second).status, 503);
    server.kill();
    ledger.check(&folder.path().join("data"));
    let server = Server::start(&folder);
    assert_eq!(send(server.address("otlp_http"), &ledger, &second).status, 200);
    server.kill();
    ledger.check(&folder.path().join("data"));
}

/// Scenario: the disk is well again, but nobody sends, because whoever balances the load asks `/readyz` first.
/// Guarantee: it becomes ready all the same.
#[test]
fn it_becomes_ready_again_without_being_sent_anything() {
    let folder = Folder::new();
    let server =
        start(&folder, strace_log(&folder, "fdatasync", "error=EIO:when=2..3"), &["--wal-bytes", "8MiB"]);
    let ledger = Ledger::default();
    assert_eq!(send(server.address("otlp_http"), &ledger, &Batch::new("first", 1, false)).status, 200);
    assert_eq!(send(server.address("otlp_http"), &ledger, &Batch::new("second", 1, false)).status, 503);
    let began = Instant::now();
    while server.get("/readyz").status != 200 {
        assert!(began.elapsed() < PATIENCE, "it stays unready\n{}", server.said());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(send(server.address("otlp_http"), &ledger, &Batch::new("third", 1, false)).status, 200);
    let data_dir = server.data_dir().to_owned();
    assert!(server.stop().success());
    ledger.check(&data_dir);
}

/// Scenario: no new segment can be made, so a start has nowhere to write; then it can.
/// Guarantee: the server starts, refuses, and recovers by itself.
#[test]
fn a_start_without_a_segment_refuses_and_recovers() {
    let folder = Folder::new();
    let server = start(&folder, strace("fallocate", "error=ENOSPC:when=1..3"), &["--wal-bytes", "8MiB"]);
    server.get("/readyz").is(503);
    let (address, ledger) = (server.address("otlp_http"), Ledger::default());
    let batch = Batch::new("only", 2, false);
    check_refusal(&send(address, &ledger, &batch), "no space left");
    let began = Instant::now();
    while send(address, &ledger, &batch).status != 200 {
        assert!(began.elapsed() < PATIENCE, "it does not recover");
    }
    server.get("/readyz").is(200);
    let data_dir = server.data_dir().to_owned();
    assert!(server.stop().success());
    ledger.check(&data_dir);
}

#[track_caller]
fn check_refusal(answer: &Answer, words: &str) {
    let error = &answer.json()["error"];
    assert_eq!((answer.status, &error["code"]), (503, &"disk_failed".into()), "{error}");
    assert!(error["message"].as_str().expect("a text").contains(words), "{error}");
    assert!(error["remedy"].as_str().expect("a text").contains("disk"), "{error}");
    let retry_after = answer.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(retry_after.is_some_and(|seconds| (1..=60).contains(&seconds)), "{}", answer.head);
}

#[track_caller]
fn check_unready(server: &Server) {
    server.get("/healthz").is(200);
    let ready = server.get("/readyz");
    // The request itself may have made the server recover.
    if ready.status != 200 {
        assert_eq!((ready.status, &ready.json()["reason"]), (503, &"disk_failed".into()));
    }
    assert_eq!(server.get("/api/v1/status").status, 200);
}

/// Checks that the events are logged, once in each direction and not with every request.
#[track_caller]
fn check_said(server: &Server) {
    let said = server.said();
    let count = |words: &str| said.matches(words).count();
    let refuses = count("the log refuses records");
    assert!(refuses >= 1 && refuses == count("the log takes records again"), "{said}");
}
