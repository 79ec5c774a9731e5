//! The same results from a data directory, in use or not, and from a server.

use super::super::server::{Server, forbid_flushing};
use super::super::support::{Folder, HIDDEN, OPEN, WORKED, faultline, lines};
use super::files_below;
use serde_json::json;

const QUESTIONS: [&str; 6] = [
    "SELECT service, canonical, hidden, count(*) AS n FROM events GROUP BY ALL ORDER BY canonical",
    "SELECT event_id, time, message, findings, details FROM events ORDER BY event_id",
    "SELECT sum(calls) AS calls, sum(failures) AS failures FROM traffic",
    "SELECT * FROM codes ORDER BY dialect, code",
    "SELECT table_name, column_name, data_type FROM columns ORDER BY table_name, position",
    "SELECT 1 AS a WHERE false",
];

/// Scenario: a server with rows that are flushed and rows that came a moment ago.
/// Guarantee: asked through the server and read beside it, the answers are the same, in every format, and all rows that
/// were acknowledged are in them.
#[test]
fn a_server_and_its_directory_give_the_same_answers() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    server.post_lines(&lines(&[HIDDEN, OPEN, WORKED])).is(200);
    assert!(server.stop().success(), "which flushes them");
    let server = Server::start(&folder);
    server.post_lines(&lines(&[OPEN])).is(200);
    assert_eq!(server.status()["tables"]["events"]["rows"], 2);
    assert_eq!(server.status()["buffer"]["events"], 1);
    let data_dir = server.data_dir().to_str().unwrap().to_owned();
    let url = format!("http://{}", server.address("web"));
    for question in QUESTIONS {
        for format in ["json", "csv", "ndjson", "table"] {
            let ask = |place: [&str; 2]| {
                faultline(&["sql", place[0], place[1], "--format", format, question]).ends_with(0).out
            };
            assert_eq!(ask(["--server", &url]), ask(["--data-dir", &data_dir]), "{question} as {format}");
        }
    }
    for place in [["--server", &url], ["--data-dir", &data_dir]] {
        let run = faultline(&["sql", place[0], place[1], "--format", "ndjson", QUESTIONS[0]]).ends_with(0);
        assert_eq!(
            run.events(),
            [
                json!({"service": "orders", "canonical": "NOT_FOUND_OPERATION", "hidden": false, "n": 2}),
                json!({"service": "orders", "canonical": "RATE_LIMIT_QUOTA_PAUSE", "hidden": true, "n": 1}),
            ]
        );
        let query = "SELECT canonical FROM events WHERE hidden = $1 AND service = $2";
        let run = faultline(&["sql", place[0], place[1], query, "-p", "true", "-p", "orders"]).ends_with(0);
        assert_eq!(run.out, "canonical\nRATE_LIMIT_QUOTA_PAUSE\n");
        let run = faultline(&["sql", place[0], place[1], "SELECT categroy FROM events"]).ends_with(1);
        assert_eq!(
            run.err,
            "error: there is no column 'categroy'\n  SELECT categroy FROM events\n         ^ did you mean 'category'?\n"
        );
        faultline(&["sql", place[0], place[1], "DELETE FROM events"]).ends_with(1);
    }
    // The directory is read while it grows: each result has the rows that existed when the query began.
    for count in 4..8 {
        server.post_lines(&lines(&[OPEN])).is(200);
        let run =
            faultline(&["sql", "--data-dir", &data_dir, "SELECT count(*) AS n FROM events"]).ends_with(0);
        assert_eq!(run.out, format!("n\n{count}\n"));
    }
}

/// Scenario: an address where something else answers, and a listener of ours that knows no SQL.
/// Guarantee: it is said what is there, and which address is wanted.
#[test]
fn other_listeners_are_told_apart() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let url = format!("http://{}", server.address("otlp_http"));
    let run = faultline(&["sql", "--server", &url, "SELECT 1"]).ends_with(1);
    assert!(run.err.contains(&url) && run.err.contains("7070"), "{}", run.err);
}

/// Scenario: an answer that is longer than the server puts together.
/// Guarantee: a program hears that rows are missing, by the exit code too.
#[test]
fn an_answer_that_the_server_cut_is_a_failure() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let url = format!("http://{}", server.address("web"));
    let long =
        "SELECT repeat(a.code || b.code, 40) || repeat(b.code || a.code, 40) AS t FROM codes a, codes b";
    let run = faultline(&["sql", "--server", &url, "--format", "ndjson", long]).ends_with(1);
    let rows = run.out.lines().count();
    assert!(rows > 1_000, "{rows}");
    assert!(run.err.contains("left rows out") && run.err.contains("--data-dir"), "{}", run.err);
    let data_dir = server.data_dir().to_str().unwrap();
    let whole = faultline(&["sql", "--data-dir", data_dir, "--format", "ndjson", long]).ends_with(0);
    assert!(whole.out.lines().count() > rows);
    let table = faultline(&["sql", "--server", &url, "--format", "table", long]).ends_with(0);
    assert!(table.err.contains("the first 2,000 rows"), "{}", table.err);
}

/// Scenario: directories as a crash leaves them: only a log, no tables; and one that nobody has written to yet.
/// Guarantee: they are read, and nothing in them is made, changed or taken away.
#[test]
fn nothing_is_written_to_the_directory() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    server.post_lines(&lines(&[HIDDEN, OPEN])).is(200);
    let data_dir = server.data_dir().to_owned();
    server.kill();
    std::fs::remove_dir_all(data_dir.join("tables")).ok();
    let before = files_below(&data_dir);
    let ask =
        |query: &str| faultline(&["sql", "--data-dir", data_dir.to_str().unwrap(), query]).ends_with(0).out;
    assert_eq!(ask("SELECT count(*) AS n FROM events"), "n\n2\n");
    assert_eq!(ask("SELECT count(*) AS n FROM rejects"), "n\n0\n");
    assert_eq!(files_below(&data_dir), before);
    let empty = Folder::new();
    std::fs::create_dir_all(empty.path().join("wal")).unwrap();
    let before = files_below(empty.path());
    let run =
        faultline(&["sql", "--data-dir", empty.path().to_str().unwrap(), "SELECT count(*) AS n FROM events"]);
    assert_eq!(run.ends_with(0).out, "n\n0\n");
    assert_eq!(files_below(empty.path()), before);
}

/// Scenario: nothing can be flushed, because a file is in the place of the tables.
/// Guarantee: the server starts, and what is in the log is seen, through it and beside it.
#[test]
fn without_tables_the_log_is_read() {
    let folder = Folder::new();
    forbid_flushing(&folder);
    let server = Server::start(&folder);
    server.post_lines(&lines(&[HIDDEN, OPEN])).is(200);
    let url = format!("http://{}", server.address("web"));
    for place in [["--server", &url], ["--data-dir", server.data_dir().to_str().unwrap()]] {
        let run = faultline(&["sql", place[0], place[1], "SELECT count(*) AS n FROM events"]).ends_with(0);
        assert_eq!(run.out, "n\n2\n");
    }
}
