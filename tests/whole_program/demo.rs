//! `faultline demo`: the history, the live traffic, and a directory that is not the demo's.

use super::http_sql::rows;
use super::retention::clock::Machine;
use super::server::Server;
use super::support::{Folder, faultline, program};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// A timeout for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The ten categories, all of which occur in the demo.
const CATEGORIES: i64 = 10;

fn start(folder: &Folder, arguments: &[&str]) -> Server {
    let mut server = Server::spawn_as("demo", folder, Command::new(program()), arguments);
    assert!(server.gets_ready(), "the demo ended: {:?}\n{}", server.wait(), server.said());
    server
}

/// Returns the only number of the only row.
#[track_caller]
fn number(server: &Server, query: &str) -> i64 {
    let rows = rows(server, query);
    let row = rows.first().unwrap_or_else(|| panic!("no row: {query}"));
    let value = row.as_array().map_or(row, |cells| &cells[0]);
    let value = value.as_object().and_then(|cells| cells.values().next()).unwrap_or(value);
    value.as_i64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{query}: {row}"))
}

/// Waits until the result of a query is at least this large.
#[track_caller]
fn wait_for(server: &Server, query: &str, at_least: i64) {
    let began = Instant::now();
    while number(server, query) < at_least {
        assert!(began.elapsed() < PATIENCE, "{query}: {}\n{}", number(server, query), server.said());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until each receiver has accepted live records.
#[track_caller]
fn wait_for_live_traffic(server: &Server) {
    let began = Instant::now();
    let accepted =
        |status: &Value, source: &str| status["sources"][source]["accepted_records"].as_u64().unwrap_or(0);
    loop {
        let status = server.status();
        if ["envelopes", "otlp_traces", "otlp_logs"].iter().all(|source| accepted(&status, source) > 0) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{status}\n{}", server.said());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns the sum of a metric over all of its series.
fn metric(server: &Server, name: &str) -> f64 {
    let text = String::from_utf8(server.get("/metrics").is(200).body).expect("UTF-8");
    let series = text.lines().filter(|line| line.starts_with(name));
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

const CALLS: &str = "SELECT sum(calls) FROM traffic";

/// Scenario: the demo with a short history and much live traffic; stopped, and started once more.
/// Guarantee: the history spans the time that was asked for and ends now, without a hole; live traffic comes in over
/// HTTP and gRPC; everything that the world promises is there; the second start fills the gap and doubles nothing.
#[test]
fn the_world_is_there_and_is_not_loaded_twice() {
    let folder = Folder::new();
    let server = start(&folder, &["--history", "90m", "--rate", "400"]);
    wait_for_live_traffic(&server);
    check_history(&server);
    check_world(&server);
    assert!(server.said().contains("faultline tail --data-dir"), "{}", server.said());
    let before = "SELECT sum(calls) FROM traffic WHERE minute < TIMESTAMP ";
    let cut = rows(&server, "SELECT CAST(max(minute) - INTERVAL '1 minute' AS varchar) AS cut FROM traffic");
    let cut =
        cut[0].as_array().map_or(&cut[0]["cut"], |cells| &cells[0]).as_str().expect("a time").to_owned();
    let before = format!("{before}'{cut}'");
    let (calls, all_calls) = (number(&server, &before), number(&server, CALLS));
    assert_eq!(server.stop().code(), Some(0));

    let server = start(&folder, &["--history", "90m", "--rate", "1"]);
    assert_eq!(number(&server, &before), calls, "nothing before {cut} is loaded again");
    // This is less than the history of one minute.
    let added = number(&server, CALLS) - all_calls;
    assert!((0..9_000).contains(&added), "{added}");
    let counted = metric(&server, "faultline_requests_total");
    assert!(counted < 1_000.0, "the history is counted as if it were now: {counted}");
    assert_eq!(server.stop().code(), Some(0));
}

fn check_history(server: &Server) {
    let minutes = number(
        server,
        "SELECT (arrow_cast(max(minute), 'Int64') - arrow_cast(min(minute), 'Int64')) / 60000000 FROM traffic",
    );
    assert!((89..=95).contains(&minutes), "{minutes}");
    let age = number(
        server,
        "SELECT (arrow_cast(now(), 'Int64') / 1000 - arrow_cast(max(minute), 'Int64')) / 1000000 FROM traffic",
    );
    assert!((-1..180).contains(&age), "{age}");
    assert!(number(server, "SELECT count(DISTINCT minute) FROM traffic") >= minutes, "a hole");
    assert_eq!(number(server, "SELECT count(*) FROM events WHERE time > now() + INTERVAL '1 second'"), 0);
}

fn check_world(server: &Server) {
    assert!(number(server, "SELECT count(DISTINCT service) FROM traffic") >= 12);
    wait_for(server, "SELECT count(DISTINCT category) FROM events", CATEGORIES);
    for (what, least) in [
        ("errors WHERE hidden", 50),
        ("errors WHERE NOT hidden", 100),
        ("quota_state WHERE quota_metric IS NOT NULL", 1),
        ("trust_denials", 1),
        ("confirmations WHERE state = 'used'", 1),
        ("confirmations WHERE state = 'replayed'", 1),
        ("retry_loops", 1),
        ("conformance WHERE finding = 'leaky_message'", 1),
        ("events WHERE operation = 'server/discover' AND fault = 'probe'", 1),
        ("rejects", 1),
    ] {
        wait_for(server, &format!("SELECT count(*) FROM {what}"), least);
    }
    let failures = number(server, "SELECT sum(failures) * 1000 / sum(calls) FROM traffic");
    assert!((20..=70).contains(&failures), "of a thousand calls {failures} fail");
    let events = number(server, "SELECT count(*) FROM events");
    assert!(number(server, CALLS) > 5 * events, "{events}");
}

/// Scenario: demos on a machine whose clock stands still: two with one seed, and one with another.
/// Guarantee: the same seed gives the same calls and the same events, and another seed gives others.
#[test]
fn the_same_seed_gives_the_same_data() {
    let load = |seed: &str| {
        let machine = Machine::new();
        machine.set("2026-11-10 10:00:00");
        let server = machine.demo(&["--history", "1h", "--rate", "0.5", "--seed", seed]);
        let state = std::fs::read_to_string(server.data_dir().join("demo.json")).expect("the state");
        assert!(state.contains(&format!("\"seed\":{seed}")), "{state}");
        let calls = number(&server, CALLS);
        let mut events: Vec<String> = server.dump("events").into_iter().map(without_identity).collect();
        events.sort_unstable();
        assert_eq!(server.stop().code(), Some(0));
        (calls, events)
    };
    let (first, again, other) = (load("11"), load("11"), load("12"));
    assert!(first.0 > 1_000 && first.1.len() > 20, "{first:?}");
    assert_eq!(first, again);
    assert_ne!(first.1, other.1);
}

/// Returns an event without what depends on when it was stored and in which directory: the key of token hashes is random.
fn without_identity(mut event: Value) -> String {
    for column in ["event_id", "ingested_at", "supersedes", "duplicate_of", "token_hash"] {
        event.as_object_mut().expect("an object").remove(column);
    }
    let text = event.to_string();
    let mut parts = text.split("[token:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "[token" + part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}

/// Scenario: `--story incident`, from which the first steps are seen.
/// Guarantee: the steps are printed when they come, the new version fails with internal errors, and the rest of the
/// world goes on. The other steps are those of the world's own test.
#[test]
fn the_incident_is_told_and_happens() {
    let folder = Folder::new();
    let server = start(&folder, &["--history", "0s", "--rate", "60", "--story", "incident"]);
    let began = Instant::now();
    while !server.said().contains("First signal") {
        assert!(began.elapsed() < 3 * PATIENCE, "{}", server.said());
        std::thread::sleep(Duration::from_millis(500));
    }
    let said = server.said();
    let [normal, deployed, first] = ["Everything is normal", "is deployed", "First signal"]
        .map(|step| said.find(step).unwrap_or_else(|| panic!("{step}: {said}")));
    assert!(normal < deployed && deployed < first, "{said}");
    wait_for(
        &server,
        "SELECT count(*) FROM errors WHERE service = 'ledger-adapter' AND category = 'INTERNAL'",
        5,
    );
    assert!(number(&server, "SELECT count(DISTINCT service) FROM traffic") >= 12);
    assert!(said.contains("live traffic of an invented company"), "{said}");
    assert_eq!(server.stop().code(), Some(0));
}

/// Scenario: a directory with somebody's data in it, and one in which `serve` has run.
/// Guarantee: nothing is written into either, and the message says what to do.
#[test]
fn a_directory_with_other_data_is_refused() {
    let folder = Folder::new();
    folder.file("notes.txt", "mine");
    let path = folder.path().to_str().expect("UTF-8");
    let run = faultline(&["demo", "--data-dir", path, "--listen-web", ":0"]).ends_with(3);
    assert!(run.err.contains("notes.txt") && run.err.contains("--data-dir"), "{}", run.err);
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1);

    let folder = Folder::new();
    let data_dir = Server::start(&folder).data_dir().to_owned();
    let path = data_dir.to_str().expect("UTF-8");
    let run = faultline(&["demo", "--data-dir", path]).ends_with(3);
    assert!(run.err.contains("not the demo's"), "{}", run.err);
    assert!(!data_dir.join("demo.json").exists());
}

/// Guarantee: mistakes in the demo's own flags are reported before anything is started.
#[test]
fn wrong_flags_are_refused() {
    assert!(faultline(&["demo", "--rate", "0"]).ends_with(2).err.contains("0.01"));
    assert!(faultline(&["demo", "--history", "2y"]).ends_with(2).err.contains("60s, 15m, 12h or 30d"));
    let run = faultline(&["demo", "--tls-cert", "x.pem", "--tls-key", "x.key"]).ends_with(1);
    assert!(run.err.contains("faultline serve"), "{}", run.err);
}
