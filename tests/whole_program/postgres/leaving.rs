//! Queries that end early, and clients that disconnect.

use super::client;
use super::wire::Wire;
use crate::whole_program::http_sql::{rows, with_example, with_example_and};
use crate::whole_program::support::Folder;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A query that does not end by itself.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b";

/// Scenario: a query that would not end, with a limit that the client sets, by a statement and by an option of its
/// connection; and one that the client asks to be stopped.
/// Guarantee: stopped soon, with the code for it; the connection goes on; a request to stop nothing stops nothing.
#[test]
fn a_query_is_stopped_by_time_and_by_request() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let stopped = client(&server, "stopped", &Value::Null);
    for how in ["late", "cancelled"] {
        let (error, after) = (&stopped[how][0], stopped[how][1].as_f64().expect("seconds"));
        assert_eq!(error[0], "57014", "{stopped}");
        assert!(after < 10.0, "{how} after {after} s");
    }
    assert!(stopped["late"][0][1].as_str().is_some_and(|message| message.contains("300ms")), "{stopped}");
    assert_eq!((&stopped["after"], &stopped["by_option"][0]), (&json!(1), &json!("57014")), "{stopped}");
    assert!(server.stop().success());
}

/// Scenario: as many endless queries as may run at once, and all their clients are gone without a word.
/// Guarantee: their queries are gone too: the next question need not wait for the limit of time.
#[test]
fn who_goes_away_takes_his_query_along() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let dropped = client(&server, "dropped", &Value::Null);
    assert!(dropped["answer"].as_u64().is_some_and(|codes| codes > 50), "{dropped}");
    assert!(dropped["after"].as_f64().is_some_and(|after| after < 8.0), "{dropped}");
    assert!(server.stop().success());
}

/// Scenario: a client that asks for much and reads nothing; it goes after a while.
/// Guarantee: rows are not gathered for it: the server's memory stays where it was, and others are served.
#[test]
fn rows_are_not_gathered_for_who_does_not_read() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let (before, _) = server.resident();
    let mut slow: Vec<_> = (0..4).map(|_| Wire::connect(&server)).collect();
    for wire in &mut slow {
        wire.ask("SELECT repeat('x', 1000) FROM generate_series(1, 900000)");
    }
    std::thread::sleep(Duration::from_secs(3));
    let (now, _) = server.resident();
    // There are four results of nearly a gigabyte each.
    assert!(now < before + (300 << 20), "{before} then {now}");
    let counted = rows(&server, "SELECT count(*) AS n FROM codes");
    assert!(counted[0]["n"].as_u64().is_some_and(|n| n > 50));
    drop(slow);
    assert!(server.stop().success());
}

/// Scenario: one connection more than there may be; then one goes.
/// Guarantee: the one too many is told so, and the hundred go on; a place that is given up can be taken again.
#[test]
fn there_is_room_for_a_hundred() {
    let folder = Folder::new();
    let server = with_example_and(&folder, &["--query-connections-per-address", "100"]);
    let crowd = client(&server, "crowd", &Value::Null);
    assert!(crowd["refusal"].as_str().is_some_and(|text| text.contains("100 connections")), "{crowd}");
    assert_eq!(crowd["answers"], 100);
    assert!(server.stop().success());
}

/// Scenario: the server is asked to stop while one client is idle, one says nothing and one runs a query without end.
/// Guarantee: all are told, and the server has ended within seconds.
#[test]
fn a_stop_takes_seconds() {
    let folder = Folder::new();
    let mut server = with_example(&folder);
    let mut idle = Wire::connect(&server);
    let _silent = Wire::open(&server);
    let mut busy = Wire::connect(&server);
    busy.ask(ENDLESS);
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    server.signal("TERM");
    let goodbye = idle.next().expect("a goodbye");
    assert_eq!(goodbye.field(b'C').as_deref(), Some("57P01"));
    assert_eq!(idle.next(), None);
    assert!(busy.until_ready().iter().all(|said| said.kind != b'C'));
    assert!(server.wait().success());
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}
