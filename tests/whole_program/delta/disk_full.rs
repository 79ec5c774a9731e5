//! A disk that is full, or fails, while rows are flushed: the log keeps them, readers read on, and flushing goes on by
//! itself when the disk is well.

use super::tables::{Folder as TableFolder, TABLES};
use super::threads::{Thread, Traced};
use super::{FLUSH_AT_ONCE, number, until, until_flushed, until_status};
use crate::whole_program::durability::disk_full::SmallDisk;
use crate::whole_program::durability::ledger::{Batch, Ledger, stored_ids};
use crate::whole_program::durability::load::send;
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use std::path::Path;

const ARGUMENTS: [&str; 4] = ["--wal-bytes", "8MiB", "--vacuum-grace", "1h"];

/// Scenario: the disk becomes full to the last byte, but for the room that the log has already taken; after some time
/// somebody makes room.
/// Guarantee: requests are taken as long as the log has room; the status says that flushing fails, and why; everything
/// acknowledged can be read meanwhile; attempts leave no files behind; when there is room, it flushes by itself, and
/// every event is there once.
#[test]
fn flushing_waits_for_room() {
    let disk = SmallDisk::mount("24m");
    let server = start(&disk.folder);
    let ledger = Ledger::default();
    send_some(&server, &ledger, "before", 2);
    until_flushed(&server);
    disk.fill();
    send_some(&server, &ledger, "during", 3);
    until_status(&server, "attempts fail", |status| number(status, ["flush", "failures"]) >= 3);
    let status = server.status();
    assert_eq!(status["flush"]["failing"], 1, "{status}");
    let error = status["errors"]["flush"].as_str().expect("an error");
    assert!(error.contains("No space left"), "{error}");
    server.get("/healthz").is(200);
    send_some(&server, &ledger, "later", 2);
    Ledger::check_includes(&stored_ids(&disk.place()), &ledger.yes());
    no_partial_files(&disk.place());
    std::fs::remove_file(disk.place().join("rest")).expect("room is made");
    until_status(&server, "it flushes again", |status| status["flush"]["failing"] == 0);
    until_flushed(&server);
    ledger.check(&disk.place());
    assert!(server.stop().success());
    ledger.check(&disk.place());
}

/// A system call of the flusher, its failure, and a flag for whether the attempt then fails. A commit that could not be
/// made durable at once is checked and made durable, so it does not fail.
const FAULTS: [(&str, &str, bool); 12] = [
    ("openat", "error=ENOSPC:when=1", true),
    ("fallocate", "error=ENOSPC:when=1", true),
    ("writev", "error=ENOSPC:when=1", true),
    ("writev", "error=EIO:when=4", true),
    ("fdatasync", "error=EIO:when=1..2", true),
    ("fdatasync", "error=EIO:when=2", true),
    ("fdatasync", "error=ENOSPC:when=3", true),
    ("fsync", "error=EIO:when=1", true),
    ("fsync", "error=EIO:when=2", false),
    ("linkat", "error=EIO:when=1", true),
    ("linkat", "error=ENOSPC:when=2", true),
    ("unlink", "error=EIO:when=1", false),
];

/// Scenario: one system call of the flusher after the other fails, while requests come in.
/// Guarantee: every request is taken and can be read at once; the failure is in the status, with its reason; the next
/// attempt works; every event is there once, and no partial file is left.
#[test]
fn a_failing_disk_delays_flushing_and_nothing_else() {
    let folder = Folder::new();
    let server = start(&folder);
    let ledger = Ledger::default();
    send_some(&server, &ledger, "first", 1);
    until_flushed(&server);
    for (round, (call, injection, is_failure)) in FAULTS.into_iter().enumerate() {
        let failures = number(&server.status(), ["flush", "failures"]);
        let traced = Traced::attach(&server, Thread::Flusher, call, injection);
        send_some(&server, &ledger, &format!("r{round}"), 2);
        until(&format!("{call} {injection} fails"), || {
            traced.calls().iter().any(|call| call.contains("(INJECTED)"))
        });
        Ledger::check_includes(&stored_ids(server.data_dir()), &ledger.yes());
        until_flushed(&server);
        traced.detach();
        let status = server.status();
        assert_eq!(status["flush"]["failing"], 0, "{call} {injection}");
        let failed = number(&status, ["flush", "failures"]) - failures;
        assert_eq!(failed > 0, is_failure, "{call} {injection}: {}", status["flush"]);
        ledger.check(server.data_dir());
        // A name that could not be removed stays until the next start.
        if call != "unlink" {
            no_partial_files(server.data_dir());
        }
    }
    assert!(server.stop().success());
    let server = start(&folder);
    assert_eq!(server.status()["set_aside"].as_array().map(Vec::len), Some(0));
    no_partial_files(server.data_dir());
    ledger.check(server.data_dir());
}

/// Scenario: the disk fails while files are merged, and while a checkpoint is written.
/// Guarantee: the failure is in the status; the table is as it was; a later round does it, and every event is there
/// once.
#[test]
fn a_failing_disk_delays_maintenance_and_nothing_else() {
    let folder = Folder::new();
    let server = start(&folder);
    let ledger = Ledger::default();
    let merging = Traced::attach(&server, Thread::Maintenance, "fdatasync", "error=ENOSPC:when=1..2");
    let naming = Traced::attach(&server, Thread::DeltaTables, "rename", "error=EIO:when=1");
    send_some(&server, &ledger, "first", 17);
    until_status(&server, "maintenance fails", |status| number(status, ["maintenance", "failures"]) >= 2);
    Ledger::check_includes(&stored_ids(server.data_dir()), &ledger.yes());
    until_status(&server, "maintenance works", |status| {
        number(status, ["maintenance", "compaction_written_files"]) >= 2
            && number(status, ["maintenance", "checkpoints"]) >= 2
    });
    for calls in [merging.detach(), naming.detach()] {
        assert!(calls.iter().any(|call| call.contains("(INJECTED)")), "{calls:?}");
    }
    until_flushed(&server);
    ledger.check(server.data_dir());
    no_partial_files(server.data_dir());
    let data_dir = server.data_dir().to_owned();
    assert!(server.stop().success());
    ledger.check(&data_dir);
}

fn start(folder: &Folder) -> Server {
    Server::start_with(folder, &[&FLUSH_AT_ONCE[..], &ARGUMENTS].concat())
}

#[track_caller]
fn send_some(server: &Server, ledger: &Ledger, name: &str, batches: usize) {
    for number in 0..batches {
        let batch = Batch::new(format!("{name}.n{number}"), 2, number % 2 == 0);
        assert_eq!(send(server.address("otlp_http"), ledger, &batch).status, 200);
    }
}

/// Checks that no file is left that no table names. Maintenance may be about to name one.
#[track_caller]
fn no_partial_files(data_dir: &Path) {
    let orphans = || TABLES.iter().flat_map(|table| TableFolder::of(data_dir, table).orphans());
    until(&format!("no partial files: {:?}", orphans().collect::<Vec<_>>()), || orphans().next().is_none());
}
