//! Archives that are older than the retention, and the settings that every command shares.

use super::{FLUSH_AT_ONCE, PATIENCE, failures, run_in, stored, until_maintained, until_status};
use crate::whole_program::server::Server;
use crate::whole_program::support::{Folder, command};
use std::io::Write;
use std::time::{Duration, Instant};

/// A time long before any retention.
const LONG_AGO: &str = "2019-03-04T05:06:07Z";
/// The number of pieces of about a megabyte that make enough commits for a checkpoint.
const PIECES: usize = 32;

/// Scenario: a directory holds years of history; a long `ingest` adds to it, without a word about retention, with flags
/// that would let everything expire, and with a settings file in its folder; it lives long enough for several rounds of
/// maintenance, as its checkpoints show.
/// Guarantee: it removes nothing, neither what was there nor what it adds.
#[test]
fn an_ingest_removes_nothing() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let first = folder.file("first.ndjson", failures("first", LONG_AGO, 5));
    run_in(&folder, &[], &["ingest", &first, "--data-dir", "data", "--keep-events", "1s"]).ends_with(0);
    for (number, flags) in
        [&[][..], &["--keep-events", "1s,1KiB", "--vacuum-grace", "0s"], &["--config", "short.toml"]]
            .into_iter()
            .enumerate()
    {
        folder.file("short.toml", "vacuum_grace = \"0s\"\n[keep]\nevents = \"1s\"\ntraffic = \"1s\"\n");
        let pointer = data.join("tables/events/_delta_log/_last_checkpoint");
        drop(std::fs::remove_file(&pointer));
        let mut ingest = command(&["ingest", "-", "--data-dir", "data", "--quiet"])
            .args(FLUSH_AT_ONCE)
            .args(flags)
            .current_dir(folder.path())
            .spawn()
            .expect("it starts");
        let mut lines = ingest.stdin.take().expect("a pipe");
        // This is enough for a checkpoint: each run makes at least one piece, and each piece a commit.
        for sent in 0..PIECES {
            let text = failures(&format!("more{number}.{sent}"), LONG_AGO, 4);
            // White space makes the line long, and nothing else.
            let padded = text.replace("{\"time\"", &format!("{{{}\"time\"", " ".repeat(300 << 10)));
            lines.write_all(padded.as_bytes()).expect("it reads");
        }
        let began = Instant::now();
        while !pointer.exists() {
            assert!(began.elapsed() < PATIENCE, "no checkpoint of the tables");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(lines);
        assert!(ingest.wait().expect("it ends").success());
        assert_eq!(stored(&data, &format!("more{number}.")), PIECES * 4);
    }
    assert_eq!(stored(&data, "first"), 5);
}

/// Scenario: logs of years ago are loaded by `ingest`, and sent to a server; servers with the usual retention, and one
/// that keeps nothing for longer than a second, look after the directory.
/// Guarantee: what was loaded today is there as long as if it had happened today; what is removed is in the log and in
/// the counters, with rows, days and table.
#[test]
fn an_archive_does_not_vanish() {
    let folder = Folder::new();
    let archive = folder.file("archive.ndjson", failures("loaded", LONG_AGO, 7));
    run_in(&folder, &[], &["ingest", &archive, "--data-dir", "data"]).ends_with(0);
    let server = Server::start_with(&folder, &FLUSH_AT_ONCE);
    server.post_lines(&failures("sent", "2018-01-02T03:04:05Z", 3)).is(200);
    until_maintained(&server);
    let data = server.data_dir().to_owned();
    assert_eq!((stored(&data, "loaded"), stored(&data, "sent")), (7, 3), "{}", server.said());
    assert_eq!(server.status()["tables"]["events"]["expired_rows"], 0);
    assert!(server.stop().success());

    let server = Server::start_with(&folder, &[&FLUSH_AT_ONCE[..], &["--keep-events", "1s"]].concat());
    until_status(&server, "they expire", |status| status["tables"]["events"]["expired_rows"] == 10);
    let status = server.status();
    assert_eq!(status["tables"]["events"]["expired_partitions"], 2);
    assert_eq!((stored(&data, "loaded"), stored(&data, "sent")), (0, 0));
    let said = server.said();
    let line = said.lines().rfind(|line| line.contains("retention removes rows")).expect("it is told");
    for words in ["\"table\":\"events\"", "\"rows\":10", "\"days\":2", "2018-01-02", "2019-03-04"] {
        assert!(line.contains(words), "{words}: {line}");
    }
    let metrics = String::from_utf8(server.get("/metrics").is(200).body).expect("UTF-8");
    for metric in [
        "faultline_expired_rows_total{table=\"events\"} 10",
        "faultline_expired_partitions_total{table=\"events\"} 2",
    ] {
        assert!(metrics.contains(metric), "{metric}");
    }
}

/// Guarantee: every command that opens a data directory finds it where the settings file says; the environment wins
/// over the file, and flags win over both; a file with a mistake stops each of them, and none that asks a server.
#[test]
fn every_command_uses_the_settings_file() {
    let folder = Folder::new();
    folder.file("faultline.toml", "data_dir = \"of-file\"\n[limit]\nline_bytes = \"64KiB\"\n");
    let usual = folder.file("app.ndjson", failures("file", LONG_AGO, 2) + &"x".repeat(80_000) + "\n");
    run_in(&folder, &[], &["ingest", &usual]).ends_with(0);
    let data = folder.path().join("of-file");
    assert_eq!(stored(&data, "file"), 2);
    let rejects = crate::whole_program::server::dump(&data, "rejects");
    assert_eq!(rejects[0]["reason"], "too_long", "the limits of the file hold: {rejects:?}");
    let named = folder.file("app2.ndjson", failures("named", LONG_AGO, 3));
    run_in(&folder, &[("FAULTLINE_DATA_DIR", "of-variable")], &["ingest", &named]).ends_with(0);
    assert_eq!(stored(&folder.path().join("of-variable"), "named"), 3);
    let flagged = folder.file("app3.ndjson", failures("flag", LONG_AGO, 4));
    let variable = [("FAULTLINE_DATA_DIR", "of-variable")];
    run_in(&folder, &variable, &["ingest", &flagged, "--data-dir", "of-flag"]).ends_with(0);
    assert_eq!(stored(&folder.path().join("of-flag"), "flag"), 4);

    let count = "SELECT count(*) AS n FROM events";
    let rows = |variables: &[(&str, &str)], flags: &[&str]| {
        run_in(&folder, variables, &[&["sql", count, "--format", "csv"], flags].concat()).ends_with(0).out
    };
    assert_eq!(rows(&[], &[]), "n\n2\n");
    assert_eq!(rows(&variable, &[]), "n\n3\n");
    assert_eq!(rows(&variable, &["--data-dir", "of-flag"]), "n\n4\n");
    folder.file("other.toml", "data_dir = \"of-flag\"\n");
    assert_eq!(rows(&[], &["--config", "other.toml"]), "n\n4\n");
    assert_eq!(rows(&[("FAULTLINE_CONFIG", "other.toml")], &[]), "n\n4\n");
    assert_eq!(run_in(&folder, &[], &["dump"]).ends_with(0).out.lines().count(), 2);
    assert!(run_in(&folder, &[], &["check"]).ends_with(0).out.contains("events"));
    run_in(&folder, &[], &["backup", "copy"]).ends_with(0);
    std::fs::rename(&data, folder.path().join("moved")).expect("it can be moved");
    run_in(&folder, &[], &["restore", "copy"]).ends_with(0);
    assert_eq!(stored(&data, "file"), 2);

    folder.file("faultline.toml", "data_dir = \"of-file\"\nkeep.evnts = \"1s\"\n");
    let all: [&[&str]; 7] = [
        &["ingest", &usual],
        &["sql", count],
        &["dump"],
        &["check"],
        &["backup", "copy2"],
        &["restore", "copy"],
        &["tail"],
    ];
    for arguments in all {
        let run = run_in(&folder, &[], arguments).ends_with(1);
        assert!(run.err.contains("faultline.toml:2:") && run.err.contains("keep.events"), "{}", run.err);
    }
    let elsewhere = run_in(&folder, &[], &["sql", count, "--server", "http://127.0.0.1:1"]).ends_with(1);
    assert!(!elsewhere.err.contains("faultline.toml"), "{}", elsewhere.err);
    run_in(&folder, &[], &["check", "--print-defaults"]).ends_with(0);
}

/// Guarantee: a registry that is named in the settings file redacts what `ingest` stores.
#[test]
fn an_ingest_uses_the_registry_of_the_settings() {
    let folder = Folder::new();
    folder.file("own.toml", "[redact]\npatterns = [\"ORD-[0-9]+\"]\n");
    folder.file("faultline.toml", "registry = \"own.toml\"\n");
    let line = failures("one", LONG_AGO, 1).replace("Method not found", "no order ORD-12345");
    let log = folder.file("app.ndjson", line);
    let run = run_in(&folder, &[], &["ingest", &log, "--data-dir", "data"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let events = crate::whole_program::server::dump(&folder.path().join("data"), "events");
    let message = events[0]["message"].as_str().expect("a message");
    assert!(!message.contains("ORD-12345"), "{message}");
}
