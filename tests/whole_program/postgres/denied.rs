//! Statements that the PostgreSQL endpoint rejects: the corpus of all endpoints, and those that only PostgreSQL clients
//! would try.

use super::client;
use crate::whole_program::denied::{SHORT, assert_unharmed, corpus};
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use serde_json::{Value, json};

/// Statements of PostgreSQL that are rejected, with the right codes.
const OWN: [(&str, &[&str]); 31] = [
    ("COPY events TO STDOUT", &["25006"]),
    ("COPY events FROM STDIN", &["25006"]),
    ("COPY events TO PROGRAM 'sh'", &["25006"]),
    ("copy\n(SELECT 1) to '/tmp/x.csv'", &["25006"]),
    ("DO $$ BEGIN END $$", &["25006"]),
    ("CALL now()", &["25006"]),
    ("VACUUM", &["25006"]),
    ("VACUUM FULL events", &["25006"]),
    ("ANALYZE events", &["25006"]),
    ("LISTEN channel", &["25006"]),
    ("NOTIFY channel, 'x'", &["25006"]),
    ("LOCK TABLE events", &["25006"]),
    ("GRANT ALL ON events TO ann", &["25006"]),
    ("REINDEX TABLE events", &["25006"]),
    ("CHECKPOINT", &["25006"]),
    ("PREPARE p AS DELETE FROM events", &["25006"]),
    ("PREPARE p AS SELECT 1", &["25006"]),
    ("EXECUTE p", &["25006"]),
    ("EXPLAIN ANALYZE DELETE FROM events", &["25006"]),
    ("WITH gone AS (DELETE FROM events RETURNING *) SELECT * FROM gone", &["25006"]),
    ("SELECT * INTO mine FROM events", &["25006"]),
    ("SELECT * FROM events FOR UPDATE", &["25006"]),
    ("DECLARE c CURSOR FOR DELETE FROM events", &["25006", "42601"]),
    ("SET datafusion.execution.batch_size = 1", &["42501"]),
    ("SET datafusion.catalog.location = '/etc'", &["42501"]),
    ("RESET datafusion.execution.batch_size", &["42501"]),
    ("SET ROLE postgres", &["25006"]),
    ("SET SESSION AUTHORIZATION postgres", &["25006"]),
    ("SET session_preload_libraries = 'x'", &["42704"]),
    ("SELECT lo_import('/etc/passwd')", &["42883"]),
    ("SELECT pg_read_file('/etc/passwd')", &["42883"]),
];

/// Returns the SQLSTATEs for a code of the corpus.
fn states(code: &str) -> &'static [&'static str] {
    match code {
        // The SQLSTATE depends on where the protocol stops it: a setting is rejected by name, several statements as a
        // syntax error.
        "refused" => &["25006", "42501", "42704", "42601"],
        "syntax" => &["42601"],
        "unknown_name" => &["42P01", "42703", "42883", "42704"],
        "invalid" => &["42000"],
        "time_limit" => &["57014"],
        "memory_limit" => &["53200"],
        "row_limit" | "column_limit" | "statement_limit" => &["54000"],
        "failed" => &["22000", "22003", "22012", "22P02"],
        _ => &[],
    }
}

fn start(folder: &Folder) -> Server {
    Server::start_with(folder, &SHORT)
}

/// Runs all statements, and checks the codes; the connection must be usable after each.
#[track_caller]
fn assert_denied(server: &Server, denied: &[(String, Vec<&str>)]) {
    let statements: Vec<_> = denied.iter().map(|(statement, _)| statement.as_str()).collect();
    let answers = client(server, "denied", &json!(statements));
    let mut wrong = Vec::new();
    for ((statement, codes), answer) in denied.iter().zip(answers.as_array().expect("answers")) {
        let is_denied = |said: &Value| {
            said[0].as_str().is_some_and(|code| codes.contains(&code))
                && said[1].as_str().is_some_and(|why| why.len() > 10)
        };
        if !is_denied(&answer[0]) || !is_denied(&answer[1]) || answer[2] != 1 {
            wrong.push(format!("{} {codes:?}\n  {answer}", &statement[..statement.len().min(200)]));
        }
    }
    assert_eq!(answers.as_array().map(Vec::len), Some(denied.len()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Scenario: every statement of the corpus, over both protocols.
/// Guarantee: each is refused or stopped by a limit, with a code that programs know; the connection stays usable, and
/// nothing is written anywhere.
#[test]
fn nothing_is_allowed_over_postgresql() {
    let folder = Folder::new();
    let server = start(&folder);
    let denied: Vec<_> = corpus()
        .into_iter()
        .filter(|(_, statement)| !is_session_statement(statement))
        .map(|(codes, statement)| (statement, codes.iter().flat_map(|code| states(code)).copied().collect()))
        .collect();
    assert!(denied.len() > 50);
    assert_denied(&server, &denied);
    assert_unharmed(&server, &folder);
    assert!(server.stop().success());
}

/// Returns true if the endpoint executes the statement itself, without harm.
fn is_session_statement(statement: &str) -> bool {
    let words = statement.to_uppercase();
    ["BEGIN", "COMMIT", "ROLLBACK", "START TRANSACTION", "DEALLOCATE", "DISCARD"]
        .iter()
        .any(|word| words.starts_with(word))
}

/// Scenario: what PostgreSQL clients could try beyond that; and each of it behind a statement that is allowed.
/// Guarantee: refused; and of several statements in one message, nothing runs when one is refused.
#[test]
fn what_only_postgresql_knows_is_refused_too() {
    let folder = Folder::new();
    let server = start(&folder);
    let own: Vec<_> =
        OWN.iter().map(|(statement, codes)| ((*statement).to_owned(), codes.to_vec())).collect();
    assert_denied(&server, &own);
    let stacked = [
        "SELECT 1; DROP TABLE events",
        "SELECT 1; /* nothing */ DELETE FROM events; SELECT 2",
        "BEGIN; CREATE TABLE mine (x int); COMMIT",
        "SELECT * FROM pg_class; COPY events TO 'x.csv'",
        "SELECT 1; -- DROP\nTRUNCATE events",
    ];
    let stacked: Vec<_> = stacked.iter().map(|sql| ((*sql).to_owned(), vec!["25006", "42601"])).collect();
    assert_denied(&server, &stacked);
    let mut wire = super::wire::Wire::connect(&server);
    wire.ask("BEGIN; SELECT 1; DELETE FROM events");
    let said = wire.until_ready();
    // The first two have no result, and no transaction was begun.
    assert_eq!(said.iter().map(|said| said.kind).collect::<Vec<_>>(), *b"EZ");
    assert_eq!(said[1].body, *b"I");
    assert_unharmed(&server, &folder);
    assert!(server.stop().success());
}
