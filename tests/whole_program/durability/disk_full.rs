//! Tests of a full disk, and of a WAL that has reached its limit.

use super::ledger::{Batch, Ledger, stored_ids};
use super::load::send;
use crate::whole_program::server::{Answer, Server, forbid_flushing};
use crate::whole_program::support::{Folder, faultline};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The number of requests, which is more than needed to fill the WAL or the disk.
const MANY: usize = 2000;

/// A small file system in memory, where a server's data directory is.
pub(crate) struct SmallDisk {
    pub(crate) folder: Folder,
}

impl SmallDisk {
    pub(crate) fn mount(size: &str) -> Self {
        let folder = Folder::new();
        let place = folder.path().join("data");
        std::fs::create_dir(&place).expect("a place to mount");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&place)
            .output()
            .expect("mount(8) runs");
        let said = String::from_utf8_lossy(&mounted.stderr);
        assert!(mounted.status.success(), "needs root to mount a tmpfs: {said}");
        Self { folder }
    }

    pub(crate) fn place(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns a file that takes space.
    pub(crate) fn ballast(&self, bytes: usize) -> PathBuf {
        let path = self.place().join("ballast");
        std::fs::write(&path, vec![1; bytes]).expect("room for the ballast");
        path
    }

    /// Fills the disk to the last byte.
    pub(crate) fn fill(&self) {
        let rest = std::fs::write(self.place().join("rest"), vec![1; 64 << 20]);
        assert!(rest.is_err(), "the disk is larger than it should be");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.place()).status();
    }
}

/// Scenario: senders fill the disk; somebody makes room.
/// Guarantee: requests are refused with 503, a time and a remedy while reads go on; room is enough for recovery,
/// without a restart; what was acknowledged is stored, once, and nothing else.
#[test]
fn a_full_disk_refuses_and_recovers_when_there_is_room() {
    let disk = SmallDisk::mount("12m");
    let ballast = disk.ballast(8 << 20);
    let server = Server::start_with(&disk.folder, &["--wal-bytes", "8MiB"]);
    let ledger = Ledger::default();
    let (batch, refusal) = fill(&server, &ledger);
    assert_eq!(refusal.json()["error"]["message"], "no space left on the disk");
    check_refusal(&server, &refusal, "disk_failed", "make room on the disk");
    for _ in 0..3 {
        // `/readyz` makes the server try again, and that must not count as recovery.
        std::thread::sleep(Duration::from_millis(1100));
        server.get("/readyz").is(503);
    }
    let acknowledged = ledger.yes();
    assert!(acknowledged.len() > 10);
    Ledger::check_includes(&stored_ids(&disk.place()), &acknowledged);
    std::fs::remove_file(ballast).expect("the ballast goes");
    assert_eq!(send(server.address("otlp_http"), &ledger, &batch).status, 200);
    server.get("/readyz").is(200);
    assert!(server.stop().success());
    ledger.check(&disk.place());
}

/// Scenario: the server is killed on a disk that then becomes full to the last byte, and is started again.
/// Guarantee: it starts, shows what it has, refuses, and recovers without another start, when there is room.
#[test]
fn a_server_starts_on_its_full_disk() {
    let disk = SmallDisk::mount("12m");
    let ballast = disk.ballast(8 << 20);
    let mut server = Server::start_with(&disk.folder, &["--wal-bytes", "8MiB"]);
    let ledger = Ledger::default();
    let batch = Batch::new("only", 2, false);
    assert_eq!(send(server.address("otlp_http"), &ledger, &batch).status, 200);
    server.kill();
    // The WAL's preallocated space is released at the first start, and then taken by something else.
    assert!(Server::start_with(&disk.folder, &["--wal-bytes", "8MiB"]).stop().success());
    disk.fill();
    server = start_unannounced(&disk.folder);
    let second = Batch::new("second", 2, false);
    let refusal = send(server.address("otlp_http"), &ledger, &second);
    check_refusal(&server, &refusal, "disk_failed", "make room on the disk");
    let status = server.status();
    let shown = |part: &str, count: &str| status[part]["events"][count].as_u64().unwrap_or_default();
    assert_eq!(
        shown("tables", "rows") + status["buffer"]["events"].as_u64().unwrap_or_default(),
        batch.lines as u64
    );
    Ledger::check_includes(&stored_ids(&disk.place()), &[batch]);
    std::fs::remove_file(ballast).expect("the ballast goes");
    assert_eq!(send(server.address("otlp_http"), &ledger, &second).status, 200);
    server.get("/readyz").is(200);
    assert!(server.stop().success());
    ledger.check(&disk.place());
}

/// Starts a server that has no space for `endpoints.json`, and takes its addresses from its output.
fn start_unannounced(folder: &Folder) -> Server {
    let command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    let mut server = Server::spawn(folder, command, &["--wal-bytes", "8MiB"]);
    let lines = |said: &str| said.matches("\"ready\"").count();
    let (before, began) = (lines(&server.said()), Instant::now());
    while lines(&server.said()) == before {
        assert!(!server.has_ended() && began.elapsed() < Duration::from_secs(60), "{}", server.said());
        std::thread::sleep(Duration::from_millis(10));
    }
    let said = server.said();
    let ready = said.lines().rfind(|line| line.contains("\"ready\"")).expect("it is ready");
    server.endpoints = serde_json::from_str(ready).expect("a line of JSON");
    assert!(said.contains("endpoints.json is missing"), "{said}");
    server
}

/// Scenario: a first start on a disk without any room.
/// Guarantee: exit code 3 and one sentence that says what is wrong and what to do.
#[test]
fn a_first_start_on_a_full_disk_is_explained() {
    let disk = SmallDisk::mount("1m");
    disk.fill();
    let place = disk.place();
    let place = place.to_str().expect("the path is UTF-8");
    let off = ["--listen-otlp-grpc", "off", "--listen-otlp-http", "off", "--listen-web", "off"];
    let run = faultline(&[&["serve", "--data-dir", place], &off[..]].concat()).ends_with(3);
    let said: Vec<_> = run.err.lines().filter(|line| !line.starts_with('{')).collect();
    assert_eq!(said.len(), 1, "{}", run.err);
    for words in ["No space left", "make room", place] {
        assert!(said[0].contains(words), "{words}: {}", said[0]);
    }
}

/// Scenario: nothing can be flushed, and the log reaches `--wal-bytes`; the next server may have more.
/// Guarantee: requests are refused with 503, a time and a remedy that names the flag, while reads go on; a server
/// started on a full log answers too; nothing is lost.
#[test]
fn a_full_log_refuses_until_it_may_grow() {
    let folder = Folder::new();
    forbid_flushing(&folder);
    let server = Server::start_with(&folder, &["--wal-bytes", "2MiB"]);
    let ledger = Ledger::default();
    let (batch, refusal) = fill(&server, &ledger);
    check_refusal(&server, &refusal, "wal_full", "--wal-bytes");
    Ledger::check_includes(&stored_ids(server.data_dir()), &ledger.yes());
    server.kill();
    let server = Server::start_with(&folder, &["--wal-bytes", "2MiB"]);
    assert_eq!(server.status()["replay"]["damaged"], 0);
    server.kill();
    let server = Server::start_with(&folder, &["--wal-bytes", "8MiB"]);
    assert_eq!(send(server.address("otlp_http"), &ledger, &batch).status, 200);
    server.get("/readyz").is(200);
    let data_dir = server.data_dir().to_owned();
    assert!(server.stop().success());
    ledger.check(&data_dir);
}

/// Sends until a batch is rejected, and returns that batch and the response.
fn fill(server: &Server, ledger: &Ledger) -> (Batch, Answer) {
    for n in 0..MANY {
        let batch = Batch { is_long: true, ..Batch::new(format!("n{n}"), 8, n % 3 == 0) };
        let answer = send(server.address("otlp_http"), ledger, &batch);
        if answer.status != 200 {
            return (batch, answer);
        }
    }
    panic!("{MANY} batches have filled nothing");
}

/// Checks that the rejection names the reason and the remedy, that readiness agrees, and that health and status work.
#[track_caller]
fn check_refusal(server: &Server, refusal: &Answer, code: &str, remedy: &str) {
    let error = &refusal.json()["error"];
    assert_eq!((refusal.status, &error["code"]), (503, &code.into()), "{error}");
    assert!(error["remedy"].as_str().expect("a text").contains(remedy), "{error}");
    assert!(refusal.header("retry-after").is_some(), "{}", refusal.head);
    let ready = server.get("/readyz").is(503).json();
    assert_eq!((&ready["ready"], &ready["reason"]), (&false.into(), &code.into()));
    server.get("/healthz").is(200);
    assert_eq!(server.status()["ready"], false);
}
