//! Backups of running servers, and disasters after which they are needed.
//!
//! These are the disasters that docs/operations.md describes step by step. Others are in `durability` (a full disk, a
//! kill, a damaged WAL) and `delta` (a damaged newest commit).
//! damaged log) and `delta` (a damaged newest commit).

use super::durability::ledger::{Batch, Ledger};
use super::durability::load::{Load, send};
use super::durability::strace::strace;
use super::otlp::client::python;
use super::server::{Server, dump};
use super::support::{Folder, Run, faultline, lines};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options for free ports, because even a server that fails before it listens looks up its addresses first.
const ON_FREE_PORTS: [&str; 5] = [
    "--listen-otlp-grpc=127.0.0.1:0",
    "--listen-otlp-http=127.0.0.1:0",
    "--listen-web=127.0.0.1:0",
    "--listen-postgres=127.0.0.1:0",
    "--listen-flight=127.0.0.1:0",
];

/// Options for small files that are merged, and a WAL of short segments, the first of which are soon released.
const BUSY: [&str; 8] =
    ["--flush-bytes", "64KiB", "--flush-after", "100ms", "--vacuum-grace", "1h", "--wal-bytes", "4MiB"];

/// The number of requests that are sent again after a restore.
const RETRIES: usize = 20;

/// A request for a confirmation.
const CONFIRM: &str = r#"{"service":"shop","success":false,"error":{"code":"CONFIRMATION_REQUIRED","message":"Confirm","details":{"confirmation_token":"conf_7Jq2LmX9aRt4"}}}"#;

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

fn backup(data_dir: &Path, to: &Path, base: Option<&Path>) -> Run {
    let mut arguments = vec!["backup", text(to), "--data-dir", text(data_dir)];
    arguments.extend(base.map(|base| ["--base", text(base)]).into_iter().flatten());
    faultline(&arguments)
}

fn restore(from: &Path, data_dir: &Path) -> Run {
    faultline(&["restore", text(from), "--data-dir", text(data_dir)])
}

fn check(data_dir: &Path) -> Run {
    faultline(&["check", "--data-dir", text(data_dir)])
}

/// Scenario: backups of a server that senders keep flushing, merging and letting go of its log; then it is killed, and
/// its data directory is deleted. The last backup is restored, and a server goes on with it.
/// Guarantee: each backup has everything that was acknowledged before it began, once, and whole requests with their
/// traffic only; `check` finds nothing wrong with it; an earlier backup saves copying; hashes of tokens stay what they
/// were; and what senders send again is stored once.
#[test]
fn a_backup_of_a_busy_server_has_every_yes_once() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &BUSY);
    let data_dir = server.data_dir().to_owned();
    let ledger = Arc::new(Ledger::default());
    let load = Load::start(server.address("otlp_http"), &ledger, "before");
    let mut backups: Vec<PathBuf> = Vec::new();
    for round in 0..2 {
        load.until(60, || false);
        let before = ledger.yes();
        let to = folder.path().join(format!("backup-{round}"));
        let run = backup(&data_dir, &to, backups.last().map(PathBuf::as_path)).ends_with(0);
        assert!(run.out.contains("events") && !run.out.contains("wrong"), "{}", run.out);
        let then = ledger.as_of(&before);
        then.check(&to);
        backups.push(to);
    }
    // The last backup is of this moment at the earliest.
    let before = ledger.yes();
    let last = folder.path().join("backup-last");
    let run = backup(&data_dir, &last, backups.last().map(PathBuf::as_path)).ends_with(0);
    assert!(run.err.contains("shared with the earlier one"), "{}", run.err);
    server.kill();
    load.end();
    let key = fs::read(data_dir.join("hash.key")).expect("a key");
    fs::remove_dir_all(&data_dir).expect("the disaster");

    restore(&last, &data_dir).ends_with(0);
    assert_eq!(fs::read(data_dir.join("hash.key")).expect("a key"), key);
    let ledger = ledger.as_of(&before);
    let server = Server::start_with(&folder, &BUSY);
    assert!(server.status()["set_aside"].as_array().is_some_and(Vec::is_empty));
    // A sender with a key and no response sends again; some of these requests are in the backup, and some are not.
    for batch in ledger.to_retry().iter().take(RETRIES) {
        until_taken(&server, &ledger, batch);
    }
    until_taken(&server, &ledger, &Batch::new("after", 3, true));
    ledger.check(&data_dir);
    assert!(server.stop().success());
    ledger.check(&data_dir);
    check(&data_dir).ends_with(0);
    // Backups share files, so changes to the restored directory must not affect them.
    check(&backups[0]).ends_with(0);
}

/// Scenario: a token is asked for before a backup, and the restored server hears of it again.
/// Guarantee: its hash is the same, so that it can be followed.
#[test]
fn tokens_can_be_followed_across_a_restore() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let (data_dir, to) = (server.data_dir().to_owned(), folder.path().join("backup"));
    server.post_lines(&lines(&[CONFIRM])).is(200);
    backup(&data_dir, &to, None).ends_with(0);
    server.kill();
    fs::remove_dir_all(&data_dir).expect("the disaster");
    restore(&to, &data_dir).ends_with(0);
    let server = Server::start(&folder);
    server.post_lines(&lines(&[CONFIRM])).is(200);
    let hashes: Vec<_> = server.dump("events").iter().map(|event| event["token_hash"].clone()).collect();
    assert_eq!(hashes.len(), 2, "{hashes:?}");
    assert!(hashes[0].is_string() && hashes[0] == hashes[1], "{hashes:?}");
}

/// Returns the directory of a stopped server, with rows in its tables.
fn stopped(folder: &Folder) -> (PathBuf, Ledger) {
    let server = Server::start(folder);
    let (data_dir, ledger) = (server.data_dir().to_owned(), Ledger::default());
    for number in 0..5 {
        send(server.address("otlp_http"), &ledger, &Batch::new(format!("b{number}"), 2, false));
    }
    assert!(server.stop().success());
    (data_dir, ledger)
}

/// Returns every file below a folder with its bytes.
fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => files.push((path.clone(), fs::read(path).expect("a file"))),
            }
        }
    }
    files.sort();
    files
}

/// Guarantee: nothing is ever overwritten: a restore onto a directory in use or in the way is refused, and changes
/// nothing; so is a backup onto another. What an interrupted one has left is in nobody's way.
#[test]
fn nothing_is_overwritten() {
    let folder = Folder::new();
    let (data_dir, ledger) = stopped(&folder);
    let to = folder.path().join("backup");
    fs::create_dir_all(to.join("unfinished-backup/tables/events")).expect("what is left of a backup");
    fs::write(to.join("unfinished-backup/tables/events/half"), "half").expect("a file");
    backup(&data_dir, &to, None).ends_with(0);
    assert!(!to.join("unfinished-backup").exists());
    for name in ["LOCK", "endpoints.json"] {
        assert!(!to.join(name).exists(), "{name} belongs to a process");
    }
    let (before, copied) = (content(&data_dir), content(&to));
    for run in [restore(&to, &data_dir), backup(&data_dir, &to, None)] {
        let run = run.ends_with(1);
        assert!(run.err.contains("is not empty, and nothing is overwritten"), "{}", run.err);
    }
    assert!(content(&data_dir) == before && content(&to) == copied, "something was changed");
    let nothing = folder.path().join("nothing");
    let run = backup(&nothing, &folder.path().join("other"), None).ends_with(1);
    assert!(run.err.contains("no data directory of ours"), "{}", run.err);
    ledger.check(&to);
}

/// Returns the files of a table's rows.
fn data_files(data_dir: &Path) -> Vec<PathBuf> {
    let files = content(&data_dir.join("tables/events")).into_iter().map(|(path, _)| path);
    files.filter(|path| text(path).contains("date=") && text(path).ends_with(".parquet")).collect()
}

/// Scenario: a file of a table goes bad on the disk. The next backup says so. The file is put back from an earlier one.
/// Guarantee: a backup with damage is made, and told from a good one; `check` names the file; the same file of an
/// earlier backup mends it.
#[test]
fn a_damaged_file_is_told_and_can_be_put_back() {
    let folder = Folder::new();
    let (data_dir, ledger) = stopped(&folder);
    let good = folder.path().join("good");
    backup(&data_dir, &good, None).ends_with(0);
    let file = data_files(&data_dir).pop().expect("a file of rows");
    let mut bytes = fs::read(&file).expect("rows");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0);
    fs::write(&file, bytes).expect("the disaster");

    let name = text(file.strip_prefix(&data_dir).expect("a place in it"));
    let run = backup(&data_dir, &folder.path().join("bad"), None).ends_with(1);
    assert!(run.out.contains(name) && run.out.contains("put the file back from a backup"), "{}", run.out);
    assert!(check(&data_dir).ends_with(1).out.contains(name));
    fs::copy(good.join(name), &file).expect("put back");
    check(&data_dir).ends_with(0);
    ledger.check(&data_dir);
}

/// Scenario: a file of a table is gone, and no backup has it.
/// Guarantee: the table can be made to forget it; then nothing is wrong, and a server goes on with what is left.
#[test]
fn a_lost_file_can_be_forgotten() {
    let folder = Folder::new();
    let (data_dir, _) = stopped(&folder);
    fs::remove_file(data_files(&data_dir).pop().expect("a file of rows")).expect("the disaster");
    check(&data_dir).ends_with(1);
    let table = data_dir.join("tables/events");
    let repaired = python("repair.py", &[text(&table)], b"");
    assert_eq!(repaired["files_removed"].as_array().map(Vec::len), Some(1), "{repaired}");
    check(&data_dir).ends_with(0);
    let server = Server::start(&folder);
    server.post_lines(&lines(&[CONFIRM])).is(200);
    assert!(server.stop().success());
    check(&data_dir).ends_with(0);
    assert_eq!(dump(&data_dir, "events").len(), 1);
}

/// Guarantee: a target without room is an error that says so, and is left as empty as it was.
#[test]
fn a_full_target_is_left_empty() {
    let folder = Folder::new();
    let (data_dir, _) = stopped(&folder);
    let disk = super::durability::disk_full::SmallDisk::mount("64k");
    let run = backup(&data_dir, &disk.place(), None).ends_with(1);
    assert!(run.err.contains("No space left on device") && run.err.contains("room"), "{}", run.err);
    assert_eq!(fs::read_dir(disk.place()).expect("the place").count(), 0);
}

/// Scenario: a restore is killed at every step after the first: while it copies, and while it puts things into their
/// place.
/// Guarantee: `serve`, `ingest` and everybody who reads refuse what is there, and say how to finish or discard it; the
/// same restore, run again, finishes it, and everything is there once. A restore of something else does not mix with
/// it.
#[test]
fn an_unfinished_restore_is_nobodys_data_directory() {
    let folder = Folder::new();
    let (data_dir, ledger) = stopped(&folder);
    let from = folder.path().join("backup");
    backup(&data_dir, &from, None).ends_with(0);
    fs::remove_dir_all(&data_dir).expect("the disaster");
    let log = folder.file("app.ndjson", lines(&[CONFIRM]));
    let mut phases = (0, 0);
    // Each step begins with one of these calls; the first rename is that of the marker itself.
    let kills = (2..12).map(|when| ("rename", when)).chain([("unlink", 1), ("rmdir", 1)]);
    for (call, when) in kills {
        let killed = killed_restore(&from, &data_dir, call, when);
        if !killed {
            fs::remove_dir_all(&data_dir).expect("it was finished");
            continue;
        }
        if data_dir.join("tables").exists() {
            phases.1 += 1;
        } else {
            phases.0 += 1;
        }
        let commands: [&[&str]; 5] = [
            &[&["serve"], &ON_FREE_PORTS[..], &["--data-dir"]].concat(),
            &["ingest", &log, "--data-dir"],
            &["dump", "--data-dir"],
            &["sql", "SELECT 1", "--data-dir"],
            &["check", "--data-dir"],
        ];
        for command in commands {
            let run = faultline(&[command, &[text(&data_dir)]].concat());
            let code = if ["serve", "ingest"].contains(&command[0]) { 3 } else { 1 };
            let run = run.ends_with(code);
            let finish = format!("faultline restore {} --data-dir {}", text(&from), text(&data_dir));
            for words in ["not finished", &finish, "discard it by removing"] {
                assert!(run.err.contains(words), "{call} {when}, {command:?}: {}", run.err);
            }
        }
        restore(&from, &data_dir).ends_with(0);
        assert!(!data_dir.join("unfinished-copy.json").exists());
        ledger.check(&data_dir);
        fs::remove_dir_all(&data_dir).expect("the next one");
    }
    assert!(phases.0 >= 1 && phases.1 >= 2, "{phases:?}");
    // This is the state that an earlier version left: no marker, and nothing in its place.
    fs::create_dir_all(data_dir.join("unfinished-backup/wal")).expect("a folder");
    let serve = [&["serve", "--data-dir", text(&data_dir)], &ON_FREE_PORTS[..]].concat();
    let run = faultline(&serve).ends_with(3);
    assert!(run.err.contains("not finished"), "{}", run.err);
    restore(&from, &data_dir).ends_with(0);
    let server = Server::start(&folder);
    ledger.check(server.data_dir());
    assert!(server.stop().success());
}

/// Guarantee: an attempt that has copied everything, but not moved it into place, is not mixed with another backup.
#[test]
fn two_restores_are_not_mixed() {
    let folder = Folder::new();
    let (data_dir, ledger) = stopped(&folder);
    let (from, other) = (folder.path().join("backup"), folder.path().join("other"));
    backup(&data_dir, &from, None).ends_with(0);
    backup(&data_dir, &other, None).ends_with(0);
    fs::remove_dir_all(&data_dir).expect("the disaster");
    assert!(killed_restore(&from, &data_dir, "rename", 4), "it was killed while it moved things");
    let run = restore(&other, &data_dir).ends_with(1);
    assert!(run.err.contains(text(&from)) && run.err.contains("finish that one first"), "{}", run.err);
    restore(&from, &data_dir).ends_with(0);
    ledger.check(&data_dir);
}

/// Sends until the request is accepted: a WAL that was full when it was copied makes room first.
#[track_caller]
fn until_taken(server: &Server, ledger: &Ledger, batch: &Batch) {
    let began = Instant::now();
    while send(server.address("otlp_http"), ledger, batch).status != 200 {
        assert!(began.elapsed() < Duration::from_secs(60), "it takes nothing: {}", server.said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a restore that is killed before its Nth call of a system call. Returns false when it makes fewer calls.
fn killed_restore(from: &Path, data_dir: &Path, call: &str, when: u32) -> bool {
    let mut restore = strace(call, &format!("signal=KILL:when={when}"));
    restore.arg(env!("CARGO_BIN_EXE_faultline")).args(["restore", text(from), "--data-dir", text(data_dir)]);
    let output = restore.output().expect("it runs");
    output.status.signal() == Some(9)
}
