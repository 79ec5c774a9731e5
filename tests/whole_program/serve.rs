//! `faultline serve` and `faultline dump`, as a new user meets them.

use super::server::{Server, dump};
use super::support::{Folder, HIDDEN, NOTHING, OPEN, UNREADABLE, WORKED, faultline, lines};
use serde_json::json;
use std::collections::BTreeSet;

/// Acknowledged data is there: at once, after a clean stop, and after a kill.
#[test]
fn a_yes_survives_a_stop_and_a_kill() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let answer = server.post_lines(&lines(&[HIDDEN, OPEN, WORKED, NOTHING, UNREADABLE])).is(200).json();
    assert_eq!((&answer["accepted"], &answer["events"]), (&json!(4), &json!(2)));
    assert_eq!((&answer["unrecognized"], &answer["rejected"][0]["line"]), (&json!(1), &json!(5)));
    let first = server.dump("events");
    let codes: Vec<_> = first.iter().map(|event| event["canonical"].as_str().unwrap()).collect();
    assert_eq!(codes, ["RATE_LIMIT_QUOTA_PAUSE", "NOT_FOUND_OPERATION"]);
    assert_eq!(first[0]["hidden"], true);
    let data_dir = server.data_dir().to_owned();
    assert!(server.stop().success());
    assert!(!data_dir.join("endpoints.json").exists(), "nobody listens any more");
    let server = Server::start(&folder);
    let mut again = server.dump("events");
    // Flushed rows are sorted.
    again.sort_by_key(|event| std::cmp::Reverse(event["canonical"].to_string()));
    assert_eq!(again, first);
    server.post_lines(&lines(&[OPEN])).is(200);
    server.kill();
    assert_eq!(dump(&data_dir, "events").len(), 3);
    let calls: i64 = dump(&data_dir, "traffic").iter().map(|row| row["calls"].as_i64().unwrap()).sum();
    assert_eq!(calls, 4);
    let reasons: Vec<_> =
        dump(&data_dir, "rejects").iter().map(|row| row["reason"].as_str().unwrap().to_owned()).collect();
    assert_eq!(reasons.iter().collect::<BTreeSet<_>>().len(), 2, "{reasons:?}");
    let server = Server::start(&folder);
    assert_eq!(server.status()["replay"]["records"], 2);
    assert_eq!(server.status()["tables"]["events"]["rows"], 2, "flushed by the stop");
    assert_eq!(server.status()["buffer"]["events"], 1);
}

/// Health, readiness and status report the true state.
#[test]
fn health_is_told() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    assert_eq!(server.get("/healthz").is(200).body, b"ok\n");
    assert_eq!(server.get("/readyz").is(200).json(), json!({"ready": true}));
    server.post_lines(&lines(&[OPEN, UNREADABLE])).is(200);
    server.post("/v1/envelopes", &[("Content-Type", "text/html")], b"<p>").is(415);
    let status = server.status();
    let envelopes = &status["sources"]["envelopes"];
    assert_eq!((&envelopes["received_requests"], &envelopes["accepted_records"]), (&json!(2), &json!(1)));
    assert_eq!(envelopes["rejected_requests"], json!({"wrong_type": 1}));
    assert_eq!(envelopes["unrecognized"], json!({"not_json": 1}));
    assert!(status["wal"]["fsync_seconds"]["count"].as_u64().unwrap() >= 1);
    assert_eq!(server.get("/nothing").is(404).json()["error"]["code"], "not_found");
}

/// Every reason for a failed start is reported in one sentence, with an exit code.
#[test]
fn a_start_that_cannot_be_is_explained() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let taken = server.address("web").to_string();
    let data_dir = server.data_dir().to_str().unwrap().to_owned();
    let other = folder.path().join("other").to_str().unwrap().to_owned();
    let file = folder.file("file", "not a folder");
    let off = ["--listen-otlp-grpc", "off", "--listen-otlp-http", "off"];
    for (arguments, code, words) in [
        (vec!["--data-dir", &data_dir, "--listen-web", "off"], 3, &["another faultline", "process"][..]),
        (vec!["--data-dir", &file, "--listen-web", "off"], 3, &["is a file, not a folder", "--data-dir"]),
        (vec!["--data-dir", &other, "--listen-web", &taken], 4, &["cannot listen on", "--listen-web"]),
        (vec!["--data-dir", &other, "--listen-web", "0.0.0.0:0"], 4, &["other machines", "--insecure"]),
        (vec!["--data-dir", &other, "--listen-web", "nowhere"], 2, &["127.0.0.1:4318"]),
        (vec!["--data-dir", &other, "--registry", "/no/such/file"], 1, &["registry"]),
        (vec!["--data-dir", &other, "--wal-bytes", "10"], 2, &["at least 1MiB"]),
    ] {
        let run = faultline(&[&["serve"], &off[..], &arguments].concat()).ends_with(code);
        for word in words {
            assert!(run.err.contains(word), "{arguments:?}: {}", run.err);
        }
        assert!(code == 2 || run.err.trim_end().lines().count() == 1, "{}", run.err);
    }
    let run = faultline(&["dump", "--data-dir", "/no/such/folder"]).ends_with(1);
    assert!(run.err.contains("--data-dir"), "{}", run.err);
}

/// A repeated key gets the first response, and the request is stored once, whatever happens in between.
#[test]
fn an_idempotency_key_stores_once_across_a_kill() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "batch-17")];
    let first = server.post("/v1/envelopes", &headers, OPEN.as_bytes()).is(200).json();
    assert_eq!(server.post("/v1/envelopes", &headers, OPEN.as_bytes()).is(200).json(), first);
    server.kill();
    let server = Server::start(&folder);
    assert_eq!(server.post("/v1/envelopes", &headers, OPEN.as_bytes()).is(200).json(), first);
    assert_eq!(server.dump("events").len(), 1);
    assert_eq!(server.status()["server"]["idempotent_replays"], 1);
}
