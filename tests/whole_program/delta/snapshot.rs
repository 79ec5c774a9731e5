//! Tests of readers beside a server that flushes, merges and deletes files, and of the memory of a server after the WAL
//! is released.

use super::tables::{Folder as TableFolder, entries, name};
use super::{FLUSH_AT_ONCE, number, until_flushed};
use crate::whole_program::durability::ledger::{Batch, Ledger, stored_ids};
use crate::whole_program::durability::load::{Load, send};
use crate::whole_program::otlp::wire::{request, span};
use crate::whole_program::otlp::{post_json, post_protobuf};
use crate::whole_program::server::{Answer, Server};
use crate::whole_program::support::{Folder, HIDDEN, OPEN, UNREADABLE, lines};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The maximum time of repeated reads.
const LOOKING: Duration = Duration::from_secs(600);
/// Options for small files that are merged and deleted soon after, but later than `dump` takes.
const BUSY: [&str; 8] =
    ["--flush-bytes", "256KiB", "--flush-after", "500ms", "--vacuum-grace", "4s", "--wal-bytes", "64MiB"];
/// Options for a WAL of short segments, the first of which are soon released.
const SHORT_LOG: [&str; 2] = ["--wal-bytes", "2MiB"];

/// Scenario: `dump` again and again while senders keep the server flushing, merging and clearing files away.
/// Guarantee: everything that was acknowledged before `dump` began is in its output, once, and nothing is twice.
#[test]
fn dump_beside_a_flushing_server_sees_every_yes_once() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &BUSY);
    let ledger = Arc::new(Ledger::default());
    let (began, mut looks) = (Instant::now(), 0);
    while !is_well_used(&server) || looks < 10 {
        assert!(began.elapsed() < LOOKING, "{looks} looks: {:#}", server.status());
        let load = Load::start(server.address("otlp_http"), &ledger, &format!("r{looks}"));
        load.until(10, || false);
        let before = ledger.yes();
        let stored = stored_ids(server.data_dir());
        load.end();
        Ledger::check_includes(&stored, &before);
        let twice: Vec<_> = stored.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "{twice:?}");
        looks += 1;
        std::thread::sleep(Duration::from_millis(200));
    }
    ledger.check(server.data_dir());
    let data_dir = server.data_dir().to_owned();
    assert!(server.stop().success());
    ledger.check(&data_dir);
}

/// Returns true if files were merged, a checkpoint was written, and files have left the disk.
fn is_well_used(server: &Server) -> bool {
    let status = server.status();
    ["compaction_written_files", "checkpoints", "vacuumed_files"]
        .iter()
        .all(|what| number(&status, ["maintenance", what]) > 0)
}

/// Scenario: requests with an `Idempotency-Key` are answered, flushed, and let go by the log; the server is killed, and
/// killed again; their senders send them again to each next one.
/// Guarantee: they get the answer that they got, to the byte, and nothing is stored twice.
#[test]
fn answers_outlive_the_log() {
    let folder = Folder::new();
    let mut server = start(&folder);
    let bodies = [lines(&[OPEN]), lines(&[HIDDEN, OPEN]), lines(&[OPEN, UNREADABLE])];
    let post = |server: &Server, number: usize| -> Answer {
        let key = format!("key-{number}");
        let headers = [("Content-Type", "application/x-ndjson"), ("Idempotency-Key", &*key)];
        server.post("/v1/envelopes", &headers, bodies[number].as_bytes()).is(200)
    };
    let first: Vec<Vec<u8>> = (0..bodies.len()).map(|number| post(&server, number).body).collect();
    let fillers = until_log_lets_go(&server);
    for _ in 0..2 {
        server.kill();
        server = start(&folder);
        for (number, answer) in first.iter().enumerate() {
            assert_eq!(&post(&server, number).body, answer, "{}", server.said());
        }
        assert_eq!(server.status()["server"]["idempotent_replays"], first.len());
        until_flushed(&server);
        assert_eq!(server.dump("events").len(), 4 + fillers);
        assert_eq!(server.dump("rejects").len(), 1);
    }
}

/// Scenario: failed spans are taken, flushed, and let go by the log; the server is killed; within two minutes the
/// sender sends them again to the next one.
/// Guarantee: neither events nor calls are stored twice.
#[test]
fn spans_that_are_sent_again_after_a_restart_are_stored_once() {
    let folder = Folder::new();
    let server = start(&folder);
    let spans = request(&[], &[span(1, &[]), span(2, &[]), span(3, &[])]);
    post_protobuf(&server, "/v1/traces", &spans).is(200);
    let fillers = until_log_lets_go(&server);
    server.kill();
    let server = start(&folder);
    post_protobuf(&server, "/v1/traces", &spans).is(200);
    let again = request(&[], &[span(3, &[]), span(4, &[])]);
    post_protobuf(&server, "/v1/traces", &again).is(200);
    until_flushed(&server);
    let events = server.dump("events");
    let of_spans = events.iter().filter(|event| event["span_id"].is_string()).count();
    assert_eq!((of_spans, events.len()), (4, 4 + fillers));
    let calls: u64 = server.dump("traffic").iter().map(|row| row["calls"].as_u64().expect("a number")).sum();
    assert_eq!(calls, events.len() as u64);
}

/// Scenario: spans and log records of calls that worked, and spans that failed, are acknowledged; the server is killed,
/// and all are sent again, in another order and together with new ones, to the next one, which is killed too. Once
/// while the WAL still has them, and once after it has been flushed and has let go of them.
/// Guarantee: every call is counted once, and every event stored once.
#[test]
fn calls_that_are_sent_again_after_a_restart_are_counted_once() {
    for is_flushed in [false, true] {
        let folder = Folder::new();
        let start = || if is_flushed { start(&folder) } else { Server::start(&folder) };
        let mut server = start();
        let sent: [(&str, Vec<Value>); 2] = [
            ("/v1/traces", (0..6).map(worked_span).collect()),
            ("/v1/logs", (0..6).map(worked_log).collect()),
        ];
        let post = |server: &Server, path: &str, records: &[Value]| {
            post_json(server, path, &resent(path, records)).is(200);
        };
        for (path, records) in &sent {
            post(&server, path, &records[..4]);
        }
        let failed = request(&[], &[span(1, &[]), span(2, &[])]);
        post_protobuf(&server, "/v1/traces", &failed).is(200);
        if is_flushed {
            until_log_lets_go(&server);
        }
        for round in 0..3 {
            server.kill();
            server = start();
            let (path, records) = &sent[round % 2];
            // New records come first, and some of the old ones are in a request of their own.
            post(&server, path, &[&records[2..], &records[..1]].concat());
            post_protobuf(&server, "/v1/traces", &failed).is(200);
            let (path, records) = &sent[(round + 1) % 2];
            let backwards: Vec<Value> = records.iter().rev().cloned().collect();
            post(&server, path, &backwards);
            if is_flushed {
                until_flushed(&server);
            }
            let counted = |source: &str| -> u64 {
                let of_source = |row: &&Value| row["source"] == source && row["service"] == "resent";
                let rows = server.dump("traffic");
                rows.iter().filter(of_source).map(|row| row["calls"].as_u64().expect("a number")).sum()
            };
            assert_eq!((counted("otlp_traces"), counted("otlp_logs")), (6, 6), "round {round}, {is_flushed}");
            let events = server.dump("events");
            assert_eq!(events.iter().filter(|event| event["span_id"].is_string()).count(), 2);
        }
    }
}

fn worked_span(number: usize) -> Value {
    json!({
        "traceId": format!("{:032x}", number + 77), "spanId": format!("{:016x}", number + 99), "name": "tools/call get",
        "kind": 2, "startTimeUnixNano": "1793520000000000000", "endTimeUnixNano": "1793520000001000000",
        "attributes": [{"key": "mcp.method.name", "value": {"stringValue": "tools/call"}}],
        "status": {"code": 1},
    })
}

fn worked_log(number: usize) -> Value {
    json!({
        "timeUnixNano": format!("{}", 1_793_520_000_000_000_000_u64 + number as u64), "severityNumber": 9,
        "body": {"stringValue": r#"{"success":true,"data":1}"#},
    })
}

/// Returns a request of records of a service.
fn resent(path: &str, records: &[Value]) -> Value {
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "resent"}}]});
    match path {
        "/v1/traces" => {
            json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": records}]}]})
        }
        _ => json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]}),
    }
}

fn start(folder: &Folder) -> Server {
    Server::start_with(folder, &[&FLUSH_AT_ONCE[..], &SHORT_LOG].concat())
}

/// Sends other events until the first segment of the WAL is gone. Returns their number.
fn until_log_lets_go(server: &Server) -> usize {
    let is_first = |path: &std::path::PathBuf| name(path) == "00000000000000000001.log";
    let ledger = Ledger::default();
    let mut events = 0;
    while entries(&server.data_dir().join("wal")).iter().any(is_first) {
        assert!(events < 1000, "the log keeps everything: {:#}", server.status());
        let batch = Batch { is_long: true, ..Batch::new(format!("filler{events}"), 8, false) };
        assert_eq!(send(server.address("otlp_http"), &ledger, &batch).status, 200);
        events += batch.lines;
        until_flushed(server);
    }
    assert!(TableFolder::of(server.data_dir(), "events").commits().len() > 2);
    events
}
