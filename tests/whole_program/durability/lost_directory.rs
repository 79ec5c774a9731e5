//! Tests of a data directory that is removed, renamed or replaced while a server runs, and of the WAL's size over
//! restarts.

use super::ledger::{Batch, Ledger};
use super::load::send;
use crate::whole_program::server::{Server, forbid_flushing};
use crate::whole_program::support::{Folder, HIDDEN, lines};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A disaster for a data directory, and a folder in which files can be set aside.
type Harm = fn(&Path, &Path);

const HARMS: [(&str, Harm); 6] = [
    ("removed", |data, _| fs::remove_dir_all(data).expect("rm -rf")),
    ("renamed", |data, aside| fs::rename(data, aside).expect("mv")),
    ("replaced", |data, aside| {
        fs::rename(data, aside).expect("mv");
        fs::create_dir_all(data.join("wal")).expect("another one");
    }),
    (COPIED, |data, aside| {
        fs::rename(data, aside).expect("mv");
        copy(aside, data);
    }),
    ("log removed", |data, _| fs::remove_dir_all(data.join("wal")).expect("rm -rf")),
    ("log renamed", |data, aside| fs::rename(data.join("wal"), aside).expect("mv")),
];

/// Replaces the data directory with a copy, which has the same names but other files.
const COPIED: &str = "replaced by a copy";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.path().is_file() {
            fs::copy(entry.path(), target).expect("cp");
        }
    }
}

/// Returns the files of a folder with their content.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    files.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

/// Scenario: a server that takes requests; its data directory, or the log in it, is removed, renamed or replaced.
/// Guarantee: from then on nothing is acknowledged, and the reason is told and counted; `/readyz` says so before
/// anybody has sent anything; nothing is begun anew in that place. What was only renamed can be put back, without a
/// restart, and every acknowledged event is there once.
#[test]
fn a_data_directory_that_is_gone_acknowledges_nothing() {
    for (name, harm) in HARMS {
        let (folder, ledger) = (Folder::new(), Ledger::default());
        let server = Server::start_with(&folder, &["--flush-bytes", "1", "--flush-after", "1ms"]);
        let (data, aside) = (server.data_dir().to_owned(), folder.path().join("aside"));
        let before = Batch::new("before", 3, true);
        assert_eq!(send(server.address("otlp_http"), &ledger, &before).status, 200);
        let began = Instant::now();
        while server.status()["buffer"]["records"] != 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "it is not flushed: {}", server.said());
        }
        harm(&data, &aside);
        let copied = (name == COPIED).then(|| contents(&data.join("wal")));
        let ready = server.get("/readyz").is(503).json();
        assert_eq!(ready["reason"], "directory_lost", "{name}: {ready}");
        assert!(ready["remedy"].as_str().is_some_and(|text| text.contains("put the data directory back")));
        for _ in 0..3 {
            let refused = server.post_lines(&lines(&[HIDDEN])).is(503);
            let text = String::from_utf8_lossy(&refused.body).into_owned();
            assert!(refused.header("retry-after").is_some(), "{name}: {}", refused.head);
            assert!(text.contains("removed, renamed or replaced"), "{name}: {text}");
        }
        let status = server.status();
        assert_eq!(
            status["sources"]["envelopes"]["rejected_requests"]["directory_lost"], 3,
            "{name}: {status}"
        );
        if let Some(copied) = copied {
            // This includes the rows that a stop would flush.
            server.stop();
            assert!(!copied.is_empty());
            assert_eq!(contents(&data.join("wal")), copied, "the copy is not ours to change");
            continue;
        }
        if name == "removed" {
            assert!(!data.exists(), "nothing is begun anew");
        }
        if name == "renamed" {
            fs::rename(&aside, &data).expect("mv");
            let after = Batch::new("after", 3, true);
            let began = Instant::now();
            while send(server.address("otlp_http"), &ledger, &after).status != 200 {
                assert!(began.elapsed() < Duration::from_secs(60), "it does not go on: {}", server.said());
            }
            assert_eq!(server.get("/readyz").status, 200);
            assert!(server.stop().success());
            ledger.check(&data);
        }
    }
}

/// Scenario: nothing can be flushed; a server is filled until it refuses, stopped or killed, and started again, many
/// times.
/// Guarantee: the log takes no more room than it may, whatever was preallocated; every acknowledged event is there.
#[test]
fn the_log_keeps_its_size_over_restarts() {
    const LIMIT: u64 = 2 << 20;
    let (folder, ledger) = (Folder::new(), Ledger::default());
    forbid_flushing(&folder);
    for round in 0..6 {
        let server = Server::start_with(&folder, &["--wal-bytes", "2MiB"]);
        for number in 0.. {
            let batch = Batch { is_long: true, ..Batch::new(format!("r{round}.n{number}"), 4, false) };
            if send(server.address("otlp_http"), &ledger, &batch).status != 200 {
                break;
            }
            assert!(number < 1000, "it never refuses");
        }
        if round % 2 == 0 {
            assert!(server.stop().success());
        } else {
            server.kill();
        }
        let segments = fs::read_dir(folder.path().join("data/wal")).expect("the log").flatten();
        let bytes: u64 = segments.filter_map(|segment| Some(segment.metadata().ok()?.len())).sum();
        // The slack is the header of a segment, with the schemas, and the rest of a group.
        assert!(bytes <= LIMIT + LIMIT / 8, "round {round}: {bytes} bytes");
    }
    ledger.check(&folder.path().join("data"));
}
