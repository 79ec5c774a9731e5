//! Tests of tables that were damaged while no server was running.
//!
//! The newest files of a table may be zeroed, torn or missing: they are set aside, and their rows come back from the
//! WAL, which is released one flush later for that reason. Older files cannot be restored from there: the server
//! reports the damage, accepts and keeps all data meanwhile, and continues by itself when the file is back.

use super::tables::{Folder as TableFolder, entries, name};
use super::{FLUSH_AT_ONCE, number, until_flushed, until_status};
use crate::whole_program::durability::ledger::{Batch, Ledger};
use crate::whole_program::durability::load::send;
use crate::whole_program::server::{Server, ask, dump};
use crate::whole_program::support::{Folder, UNREADABLE, WORKED, faultline, lines};
use std::fs;
use std::path::{Path, PathBuf};

/// The number of commits that is enough for a checkpoint.
const BATCHES: usize = 17;
/// Options for a WAL that has room and is quickly copied; no files are deleted while the test runs.
const ARGUMENTS: [&str; 4] = ["--wal-bytes", "16MiB", "--vacuum-grace", "1h"];

/// The damage that is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    /// The file keeps its length, but has only zeros.
    Zeroed,
    /// The file is empty.
    Emptied,
    /// The second half of the file is missing.
    Torn,
    /// The file is missing.
    Removed,
    /// The file has other bytes.
    Rubbish,
}

impl Harm {
    fn to(self, path: &Path) {
        let bytes = fs::read(path).expect("the file is there");
        let length = bytes.len();
        let bytes = match self {
            Self::Zeroed => vec![0; length],
            Self::Emptied => Vec::new(),
            Self::Torn => bytes[..length / 2].to_vec(),
            Self::Removed => return fs::remove_file(path).expect("it can go"),
            Self::Rubbish => b"{\"version\": \"what?\", ".to_vec(),
        };
        fs::write(path, bytes).expect("it can be written");
    }
}

/// A file of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Commit,
    Rows,
    Checkpoint,
    Pointer,
}

impl What {
    fn of(self, table: &TableFolder) -> PathBuf {
        match self {
            Self::Commit => table.newest_commit(),
            Self::Rows => table.newest_rows(),
            Self::Checkpoint => table.checkpoints().pop().expect("a checkpoint"),
            Self::Pointer => table.pointer(),
        }
    }

    /// Returns the file in `set-aside`: the damaged one, or the one that cannot be right without it.
    fn set_aside(self, table: &TableFolder, harm: Harm) -> Option<PathBuf> {
        match (self, harm) {
            // The version before it is complete.
            (Self::Commit, Harm::Removed) | (Self::Pointer, Harm::Removed) => None,
            (Self::Commit | Self::Rows, _) => Some(table.newest_commit()),
            (Self::Checkpoint, Harm::Removed) | (Self::Pointer, _) => Some(table.pointer()),
            (Self::Checkpoint, _) => Some(self.of(table)),
        }
    }
}

/// Damages the newest file of a table in every way.
const CASES: [(What, Harm); 14] = [
    (What::Commit, Harm::Zeroed),
    (What::Commit, Harm::Emptied),
    (What::Commit, Harm::Torn),
    (What::Commit, Harm::Removed),
    (What::Rows, Harm::Zeroed),
    (What::Rows, Harm::Emptied),
    (What::Rows, Harm::Torn),
    (What::Rows, Harm::Removed),
    (What::Checkpoint, Harm::Zeroed),
    (What::Checkpoint, Harm::Emptied),
    (What::Checkpoint, Harm::Torn),
    (What::Checkpoint, Harm::Removed),
    (What::Pointer, Harm::Rubbish),
    (What::Pointer, Harm::Removed),
];

/// Scenario: a server with a checkpoint and commits after it is killed; its newest commit, file of rows or checkpoint,
/// or what points to the checkpoint, is damaged in one of many ways; then the next server.
/// Guarantee: it starts, says what it set aside, on stderr and in its status, and keeps that file; every acknowledged
/// event is there once, at once and when it is flushed again; new ones are taken.
#[test]
fn what_is_newest_comes_back_from_the_log() {
    let stored = Stored::with_checkpoint();
    for (what, harm) in CASES {
        stored.copy().harmed("events", what, harm);
    }
    for (what, harm) in [(What::Commit, Harm::Emptied), (What::Rows, Harm::Torn)] {
        stored.copy().harmed("traffic", what, harm);
    }
}

/// Scenario: the newest commit is one that merged files; it, or the file it made, is damaged.
/// Guarantee: as above: the files that were merged are still there.
#[test]
fn a_damaged_merge_is_undone() {
    let stored = Stored::with_merge();
    for (what, harm) in
        [(What::Commit, Harm::Torn), (What::Commit, Harm::Removed), (What::Rows, Harm::Zeroed)]
    {
        stored.copy().harmed("events", what, harm);
    }
}

/// Scenario: a commit in the middle of a table's log is gone; the server is started, and later the file is put back.
/// Guarantee: the server starts and takes requests; its status says that flushing fails, and which file is missing;
/// when the file is back, it flushes by itself, and every acknowledged event is there once.
#[test]
fn a_table_that_cannot_be_opened_waits_for_its_file() {
    let stored = Stored::new(5);
    let middle = TableFolder::of(&stored.data_dir(), "events").commits()[2].clone();
    let elsewhere = stored.folder.path().join("elsewhere");
    fs::rename(&middle, &elsewhere).expect("it can be moved");
    let server = stored.start();
    until_status(&server, "flushing fails", |status| status["flush"]["failing"] == 1);
    let error = server.status()["errors"]["flush"].as_str().expect("a text").to_owned();
    for words in ["events", name(&middle), "missing", "put that file back"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    let ready = server.get("/readyz").is(503).json();
    assert_eq!(ready["reason"], "tables_damaged");
    assert!(ready["message"].as_str().is_some_and(|text| text.contains(name(&middle))), "{ready}");
    let batch = Batch::new("meanwhile", 2, true);
    assert_eq!(send(server.address("otlp_http"), &stored.ledger, &batch).status, 200);
    fs::rename(&elsewhere, &middle).expect("it can be moved back");
    until_status(&server, "it flushes again", |status| status["flush"]["failing"] == 0);
    server.get("/readyz").is(200);
    until_flushed(&server);
    stored.ledger.check(server.data_dir());
    assert_eq!(server.status()["set_aside"].as_array().map(Vec::len), Some(0));
    assert!(server.stop().success());
    stored.ledger.check(&stored.data_dir());
}

/// Scenario: the two newest commits of a table are bad, in every way; nobody sends anything at first. Later they are
/// put back.
/// Guarantee: the server starts and takes requests, which the log keeps; `/readyz` says that it is not ready, which
/// files are bad and what to do; so does whoever asks, beside the server and through it, and nobody sees a backtrace;
/// when the files are back, it goes on by itself, and every acknowledged event is there once.
#[test]
fn two_bad_commits_are_told_with_a_remedy() {
    let stored = Stored::new(5);
    for (second, newest) in [
        (Harm::Emptied, Harm::Emptied),
        (Harm::Torn, Harm::Zeroed),
        (Harm::Rubbish, Harm::Torn),
        (Harm::Zeroed, Harm::Rubbish),
    ] {
        let stored = stored.copy();
        let commits = TableFolder::of(&stored.data_dir(), "events").commits();
        let bad = &commits[commits.len() - 2..];
        let whole: Vec<Vec<u8>> = bad.iter().map(|path| fs::read(path).expect("a commit")).collect();
        second.to(&bad[0]);
        newest.to(&bad[1]);
        let server = stored.start();
        let ready = server.get("/readyz").is(503).json();
        assert_eq!(ready["reason"], "tables_damaged", "{ready}");
        let is_told = |text: &str, by: &str| {
            for words in [name(&bad[0]), name(&bad[1]), "put these files back from a backup"] {
                assert!(text.contains(words), "{second:?} {newest:?}, {by}: {words}: {text}");
            }
            assert!(!text.contains("backtrace") && !text.contains(".rs:"), "{by}: {text}");
        };
        is_told(ready["message"].as_str().expect("a text"), "/readyz");
        is_told(&server.said(), "the log");
        let headers = [("Content-Type", "text/plain")];
        let query = b"SELECT count(*) AS n FROM events";
        let answer = ask(server.address("web"), "POST", "/api/v1/sql", &headers, query).expect("an answer");
        assert!(answer.status >= 500, "{answer:?}");
        let message = answer.json()["error"]["message"].as_str().expect("a text").to_owned();
        is_told(&message, "SQL");
        let data_dir = stored.data_dir();
        let data_dir = data_dir.to_str().expect("UTF-8");
        for command in
            [&["dump", "--data-dir", data_dir][..], &["sql", "SELECT * FROM events", "--data-dir", data_dir]]
        {
            let mut run = crate::whole_program::support::command(command);
            let run =
                run.env("RUST_BACKTRACE", "1").stdin(std::process::Stdio::null()).output().expect("it runs");
            assert_eq!(run.status.code(), Some(1));
            is_told(&String::from_utf8_lossy(&run.stderr), command[0]);
        }
        let check = faultline(&["check", "--data-dir", data_dir]).ends_with(1);
        assert!(check.out.contains(name(&bad[0])) && check.out.contains(name(&bad[1])), "{}", check.out);
        let batch = Batch::new("meanwhile", 2, true);
        assert_eq!(send(server.address("otlp_http"), &stored.ledger, &batch).status, 200);
        for (path, bytes) in bad.iter().zip(&whole) {
            fs::write(path, bytes).expect("it can be written");
        }
        until_status(&server, "it is ready", |status| status["ready"] == true);
        until_flushed(&server);
        assert!(server.stop().success());
        stored.ledger.check(&stored.data_dir());
    }
}

/// Scenario: the newest commit has been taken into a checkpoint, and the files it took out have left the disk; then it
/// is torn or emptied.
/// Guarantee: the checkpoint holds all that it said, so nothing is lost.
#[test]
fn a_commit_that_a_checkpoint_holds_is_not_missed() {
    let stored = Stored::with_vacuum();
    for harm in [Harm::Emptied, Harm::Torn, Harm::Removed] {
        let copy = stored.copy();
        harm.to(&TableFolder::of(&copy.data_dir(), "events").newest_commit());
        copy.is_whole();
    }
}

/// Scenario: something could not be read, long ago, and never again; the newest commit of that table is then damaged.
/// Guarantee: its rows are still there.
#[test]
fn a_table_that_is_seldom_written_keeps_its_rows() {
    let stored = Stored::with_rejects();
    let rejects = dump(&stored.data_dir(), "rejects").len();
    assert!(rejects > 0);
    Harm::Emptied.to(&TableFolder::of(&stored.data_dir(), "rejects").newest_commit());
    let server = stored.start();
    assert_eq!(dump(server.data_dir(), "rejects").len(), rejects, "{}", server.said());
    assert!(server.stop().success());
}

/// The data directory of a killed server whose rows are all flushed, and the ledger of its senders.
struct Stored {
    folder: Folder,
    ledger: Ledger,
}

impl Stored {
    /// Sends this many batches, each of which is flushed by itself.
    fn new(batches: usize) -> Self {
        let stored = Self { folder: Folder::new(), ledger: Ledger::default() };
        let server = stored.start();
        stored.send(&server, "first", batches);
        server.kill();
        stored
    }

    /// Makes a checkpoint of every table that the senders' requests fill, and commits after it.
    fn with_checkpoint() -> Self {
        let stored = Self { folder: Folder::new(), ledger: Ledger::default() };
        let server = stored.start();
        stored.send(&server, "first", BATCHES);
        until_status(&server, "checkpoints", |status| number(status, ["maintenance", "checkpoints"]) >= 2);
        stored.send(&server, "second", 2);
        server.kill();
        stored
    }

    /// Makes merged files, with nothing after them.
    fn with_merge() -> Self {
        let stored = Self { folder: Folder::new(), ledger: Ledger::default() };
        let server = stored.start();
        stored.send(&server, "first", 17);
        until_status(&server, "merges", |status| {
            number(status, ["maintenance", "compaction_written_files"]) >= 2
        });
        server.kill();
        stored
    }

    /// Makes merged files and a checkpoint, and leaves only the merged file on the disk.
    fn with_vacuum() -> Self {
        let stored = Self { folder: Folder::new(), ledger: Ledger::default() };
        let server = stored.start_with(&["--wal-bytes", "16MiB", "--vacuum-grace", "0s"]);
        stored.send(&server, "first", 17);
        until_status(&server, "files leave", |status| {
            number(status, ["maintenance", "vacuumed_files"]) >= 16
        });
        server.kill();
        stored
    }

    /// Sends one request with an unreadable record, and others that come later.
    fn with_rejects() -> Self {
        let stored = Self { folder: Folder::new(), ledger: Ledger::default() };
        let server = stored.start();
        server.post_lines(&lines(&[WORKED, UNREADABLE])).is(200);
        until_flushed(&server);
        // A few of these requests fill a segment of the WAL.
        let error =
            r#"{"service":"large","jsonrpc":"2.0","id":1,"note":"N","error":{"code":-32601,"message":"m"}}"#;
        for _ in 0..24 {
            let body = error.replace('N', &"note ".repeat(80_000));
            server.post_lines(&lines(&[&body])).is(200);
            until_flushed(&server);
        }
        server.kill();
        stored
    }

    fn start(&self) -> Server {
        self.start_with(&ARGUMENTS)
    }

    fn start_with(&self, arguments: &[&str]) -> Server {
        Server::start_with(&self.folder, &[&FLUSH_AT_ONCE[..], arguments].concat())
    }

    /// Sends batches, one after the other, and waits until they are flushed.
    fn send(&self, server: &Server, name: &str, batches: usize) {
        for number in 0..batches {
            let batch = Batch::new(format!("{name}.n{number}"), 3, number % 2 == 0);
            assert_eq!(send(server.address("otlp_http"), &self.ledger, &batch).status, 200);
        }
        until_flushed(server);
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn copy(&self) -> Self {
        let copy = Self { folder: Folder::new(), ledger: self.ledger.copied() };
        copy_folder(&self.data_dir(), &copy.data_dir());
        copy
    }

    /// Damages a file of a table, and checks how the next server handles it.
    #[track_caller]
    fn harmed(&self, table: &str, what: What, harm: Harm) {
        eprintln!("{table}: {what:?} {harm:?}");
        let table = TableFolder::of(&self.data_dir(), table);
        let aside = what.set_aside(&table, harm);
        harm.to(&what.of(&table));
        let server = self.is_whole();
        let aside = aside.as_deref().map(name);
        let kept = entries(&server.join("set-aside"));
        match aside {
            Some(aside) => assert!(kept.iter().any(|path| name(path).ends_with(aside)), "{aside}: {kept:?}"),
            None => assert!(kept.is_empty(), "{kept:?}"),
        }
        let said = fs::read_to_string(self.folder.path().join("serve.log")).expect("its log");
        assert_eq!(said.contains("set aside"), aside.is_some(), "{said}");
        assert!(aside.is_none_or(|aside| said.contains(aside)), "{said}");
    }

    /// Starts a server and checks that everything is there, once, now and later, and that new events are accepted.
    /// Returns its directory.
    #[track_caller]
    fn is_whole(&self) -> PathBuf {
        let server = self.start();
        self.ledger.check(server.data_dir());
        let set_aside = server.status()["set_aside"].as_array().expect("a list").len();
        assert_eq!(set_aside, entries(&server.data_dir().join("set-aside")).len(), "{}", server.said());
        self.send(&server, "later", 1);
        assert_eq!(number(&server.status(), ["flush", "failures"]), 0, "{}", server.said());
        assert!(server.stop().success());
        self.ledger.check(&self.data_dir());
        self.data_dir()
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for path in entries(from) {
        let to = to.join(name(&path));
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a copy");
        }
    }
}
