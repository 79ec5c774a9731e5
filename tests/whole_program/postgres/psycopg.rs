//! psycopg 3: both protocols, text and binary, prepared statements, cursors, transactions.

use super::client;
use crate::whole_program::http_sql::{rows, with_example};
use crate::whole_program::support::Folder;
use serde_json::{Value, json};

/// Scenario: questions with and without values, each asked in five ways: extended with text and with binary results,
/// simple, prepared, and prepared again.
/// Guarantee: five times the same answer, and it is the one that HTTP gives.
#[test]
fn every_way_of_asking_gives_the_same_answer() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let asked = [
        (
            "SELECT count(*) FROM events WHERE service = %s",
            json!(["ledger-adapter"]),
            "service = 'ledger-adapter'",
        ),
        ("SELECT count(*) FROM events WHERE http_status >= %s", json!([500]), "http_status >= 500"),
        ("SELECT count(*) FROM events WHERE http_status >= %s", json!([499.5]), "http_status >= 499.5"),
        (
            "SELECT count(*) FROM events WHERE http_status < %s",
            json!([1_u64 << 40]),
            "http_status IS NOT NULL",
        ),
        ("SELECT count(*) FROM events WHERE hidden = %s", json!([true]), "hidden"),
        (
            "SELECT count(*) FROM events WHERE time >= %s",
            json!(["2026-11-01T00:00:01Z"]),
            "time >= '2026-11-01T00:00:01Z'",
        ),
        (
            "SELECT count(*) FROM events WHERE time >= %s::timestamptz - %s::interval",
            json!(["2026-11-01 00:00:02", "1 second"]),
            "time >= '2026-11-01T00:00:01Z'",
        ),
        ("SELECT count(*) FROM events WHERE message LIKE %s", json!(["%'%"]), "message LIKE '%''%'"),
    ];
    let questions: Vec<_> = asked.iter().map(|(sql, values, _)| json!([sql, values])).collect();
    let answers = client(&server, "queries", &Value::from(questions));
    for ((sql, values, condition), answers) in asked.iter().zip(answers.as_array().expect("answers")) {
        let over_http = rows(&server, &format!("SELECT count(*) AS n FROM events WHERE {condition}"));
        let expected = json!([[over_http[0]["n"]]]);
        assert_eq!(*answers, json!(vec![expected; 5]), "{sql} {values}");
    }
    let shown = client(
        &server,
        "queries",
        &json!([[
            "SELECT time, http_status, hidden, findings, code FROM events ORDER BY event_id LIMIT 20",
            []
        ]]),
    );
    let ways = shown[0].as_array().expect("five ways");
    assert_eq!(ways.len(), 5);
    assert!(
        ways.iter().all(|way| *way == ways[0] && way.as_array().is_some_and(|rows| rows.len() == 20)),
        "{shown}"
    );
    assert!(server.stop().success());
}

/// Scenario: values of every type as parameters, there and back, as text and as bytes.
/// Guarantee: each comes back as it went; columns without a name are called what PostgreSQL calls them.
#[test]
fn values_of_every_type_go_there_and_back() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let typed = client(&server, "typed", &Value::Null);
    assert_eq!(typed["same"], json!([vec![true; 13], vec![true; 13]]));
    assert_eq!(typed["names"], json!(["?column?", "count", "X", "?column?"]));
    assert_eq!(typed["keys"], json!(["count", "max"]));
    assert!(server.stop().success());
}

/// Scenario: cursors of the server, read in pieces, with a value, as text and as bytes; one that outlives its
/// transaction, and one that does not.
/// Guarantee: all rows, once each; what is closed or over is said to be.
#[test]
fn cursors_give_their_rows_in_pieces() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let cursors = client(&server, "cursors", &Value::Null);
    let total = cursors["total"].as_u64().expect("a number");
    assert_eq!(total, server.dump("events").len() as u64);
    assert_eq!(cursors["fetched"], json!([[10, total - 10], [10, total - 10]]));
    assert_eq!((&cursors["held"], &cursors["streamed"]), (&json!(3), &json!(total)));
    assert_eq!((&cursors["closed"][0], &cursors["lost"][0]), (&json!("34000"), &json!("34000")), "{cursors}");
    assert_eq!(cursors["scroll"][0], "42000", "{cursors}");
    assert!(server.stop().success());
}

/// Scenario: a transaction in which something fails; one within another; settings that hold for one; a pipeline.
/// Guarantee: the states that drivers rely on: after an error nothing but the end, and COMMIT then says ROLLBACK.
#[test]
fn transactions_are_what_drivers_expect() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let seen = client(&server, "transactions", &Value::Null);
    assert_eq!(seen["seen"], json!(["INTRANS", "INERROR", "IDLE"]));
    assert_eq!((&seen["failed"][0], &seen["aborted"][0]), (&json!("42703"), &json!("25P02")), "{seen}");
    assert_eq!(seen["ended"], "ROLLBACK");
    assert_eq!(seen["inner"], json!(["42703", 1, "1234ms"]));
    assert_eq!(seen["after"], "30000ms");
    assert_eq!(seen["pipelined"], json!([1, 2]));
    assert!(server.stop().success());
}

/// Scenario: one mistake of each kind, over both protocols.
/// Guarantee: the code that PostgreSQL has for it, the place, and what to do.
#[test]
fn mistakes_have_the_codes_that_programs_know() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let mistakes = [
        ("SELEC 1", "42601", Some(1)),
        ("SELECT 1 FROM", "42601", None),
        ("SELECT * FROM evnets", "42P01", Some(15)),
        ("SELECT categroy FROM events", "42703", Some(8)),
        ("SELECT 'ü', categroy FROM events", "42703", Some(13)),
        ("SELECT nonsense(1)", "42883", None),
        ("SELECT 1 / 0", "22012", None),
        ("SELECT 'x'::int", "22P02", None),
        ("SELECT * FROM generate_series(1, 100000000)", "54000", None),
        ("SHOW nonsense", "42704", None),
        ("SET client_encoding = 'LATIN1'", "22023", None),
        ("DEALLOCATE nobody", "26000", None),
        ("CLOSE nobody", "34000", None),
    ];
    let statements: Vec<_> = mistakes.iter().map(|mistake| mistake.0).collect();
    let answers = client(&server, "errors", &json!(statements));
    for ((sql, code, position), answers) in mistakes.iter().zip(answers.as_array().expect("answers")) {
        for answer in answers.as_array().expect("two protocols") {
            assert_eq!(answer[0], *code, "{sql}: {answer}");
            assert!(answer[1].as_str().is_some_and(|message| message.len() > 5), "{sql}: {answer}");
            assert!(position.is_none_or(|position| answer[3] == position), "{sql}: {answer}");
        }
    }
    assert_eq!(answers[2][0][2], "did you mean 'events'?");
    assert!(server.stop().success());
}
