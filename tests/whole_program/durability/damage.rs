//! Tests of a WAL that was damaged while no server was running, and of reading a WAL while it is written.

use super::ledger::{Batch, Ledger, stored_ids};
use super::load::{Load, send};
use crate::whole_program::server::{Server, dump};
use crate::whole_program::support::{Folder, faultline};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of requests that are sent one after the other, which is the number of records.
const RECORDS: usize = 12;

/// Scenario: bytes in the middle of a stopped server's log are turned over: of one record.
/// Guarantee: the next server starts, counts it and says so; `dump` says so too; every other event is there, and new
/// ones are taken.
#[test]
fn a_damaged_record_costs_itself_and_is_told() {
    let (folder, ledger, batches) = stored();
    let data_dir = folder.path().join("data");
    turn_over(&segment(&data_dir), &find(&segment(&data_dir), "n5.l0"));
    let (lost, kept): (Vec<_>, Vec<_>) = batches.into_iter().partition(|batch| batch.name == "n5");
    check_rest(&data_dir, &lost, &kept);
    let run = faultline(&["dump", "--data-dir", data_dir.to_str().expect("UTF-8")]).ends_with(0);
    assert!(run.err.contains("1 record damaged and left out"), "{}", run.err);
    let server = Server::start(&folder);
    let replay = &server.status()["replay"];
    assert_eq!((&replay["damaged"], &replay["records"]), (&1.into(), &(RECORDS - 1).into()), "{replay}");
    assert!(replay["damaged_bytes"].as_u64().expect("a number") > 0);
    assert!(server.said().contains("part of the log is damaged"), "{}", server.said());
    server.get("/readyz").is(200);
    let later = Batch::new("later", 2, false);
    assert_eq!(send(server.address("otlp_http"), &ledger, &later).status, 200);
    server.kill();
    check_rest(&data_dir, &lost, &[kept, vec![later]].concat());
}

/// Scenario: the first block of a stopped server's segment, which says what the segment is, is turned over.
/// Guarantee: it stands there twice, so nothing is lost.
#[test]
fn a_damaged_first_block_costs_nothing() {
    let (folder, ledger, _) = stored();
    let data_dir = folder.path().join("data");
    let every: Vec<usize> = (0..4096).collect();
    turn_over(&segment(&data_dir), &every);
    let server = Server::start(&folder);
    assert_eq!(server.status()["replay"]["records"], RECORDS);
    assert!(server.stop().success());
    ledger.check(&data_dir);
}

/// Scenario: everything in a stopped server's segment is turned over.
/// Guarantee: the next server starts all the same and takes new requests; the damage is told.
#[test]
fn a_segment_of_garbage_does_not_stop_the_start() {
    let (folder, _, batches) = stored();
    let data_dir = folder.path().join("data");
    let length = std::fs::metadata(segment(&data_dir)).expect("a segment").len() as usize;
    let every: Vec<usize> = (0..length).collect();
    turn_over(&segment(&data_dir), &every);
    let server = Server::start(&folder);
    assert_eq!(server.status()["replay"]["unreadable_segments"], 1);
    assert!(server.said().contains("part of the log is damaged"), "{}", server.said());
    let (ledger, later) = (Ledger::default(), Batch::new("later", 2, false));
    assert_eq!(send(server.address("otlp_http"), &ledger, &later).status, 200);
    server.kill();
    check_rest(&data_dir, &batches, &[later]);
    let run = faultline(&["dump", "--data-dir", data_dir.to_str().expect("UTF-8")]).ends_with(0);
    assert!(run.err.contains("1 log segment damaged beyond reading"), "{}", run.err);
}

/// Scenario: `dump` again and again while four senders keep the server writing.
/// Guarantee: everything that was acknowledged before `dump` began is in its output, once; and it takes nothing
/// that is being written for damage.
#[test]
fn dump_beside_a_writing_server_sees_every_yes() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--wal-bytes", "512MiB"]);
    let ledger = Arc::new(Ledger::default());
    let load = Load::start(server.address("otlp_http"), &ledger, "r");
    for _ in 0..5 {
        load.until(20, || false);
        let before = ledger.yes();
        let run = faultline(&["dump", "--data-dir", server.data_dir().to_str().expect("UTF-8")]).ends_with(0);
        assert!(!run.err.contains("damaged"), "{}", run.err);
        let ids =
            run.events().into_iter().map(|event| event["request_id"].as_str().expect("an id").to_owned());
        let mut stored = std::collections::HashMap::new();
        ids.for_each(|id| *stored.entry(id).or_default() += 1);
        Ledger::check_includes(&stored, &before);
    }
    load.end();
    ledger.check(server.data_dir());
    assert!(server.stop().success());
}

/// Returns the folder of a stopped server with some records in one segment.
fn stored() -> (Folder, Ledger, Vec<Batch>) {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let ledger = Ledger::default();
    let batches: Vec<_> = (0..RECORDS).map(|n| Batch::new(format!("n{n}"), 3, n % 2 == 0)).collect();
    for batch in &batches {
        assert_eq!(send(server.address("otlp_http"), &ledger, batch).status, 200);
    }
    // A server that may stop flushes the records in its WAL.
    server.kill();
    ledger.check(&folder.path().join("data"));
    (folder, ledger, batches)
}

/// Returns the oldest segment.
fn segment(data_dir: &Path) -> PathBuf {
    let files = std::fs::read_dir(data_dir.join("wal")).expect("a log");
    files.map(|file| file.expect("a file").path()).min().expect("a segment")
}

/// Returns the offset of a text in a file.
#[track_caller]
fn find(path: &Path, text: &str) -> Vec<usize> {
    let bytes = std::fs::read(path).expect("the segment can be read");
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).expect("it is there");
    (at..at + text.len()).collect()
}

/// Inverts bytes of a file.
fn turn_over(path: &Path, places: &[usize]) {
    let mut bytes = std::fs::read(path).expect("the segment can be read");
    for place in places {
        bytes[*place] ^= 0xff;
    }
    std::fs::write(path, bytes).expect("the segment can be written");
}

/// Checks that damaged records are lost completely, and that all others are there, once.
#[track_caller]
fn check_rest(data_dir: &Path, lost: &[Batch], kept: &[Batch]) {
    let stored = stored_ids(data_dir);
    Ledger::check_includes(&stored, kept);
    assert_eq!(stored.len(), kept.iter().map(|batch| batch.lines).sum::<usize>());
    assert!(lost.iter().flat_map(Batch::ids).all(|id| !stored.contains_key(&id)));
    let calls: u64 =
        dump(data_dir, "traffic").iter().map(|row| row["calls"].as_u64().expect("a number")).sum();
    assert_eq!(calls, stored.len() as u64);
}
