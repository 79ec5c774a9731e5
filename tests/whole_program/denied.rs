//! Statements that every endpoint must reject: one corpus, `tests/corpus/denied.sql`, against all of them.

use super::http_sql::{ask, rows};
use super::otlp::client::python;
use super::server::Server;
use super::support::{Folder, faultline, root};
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// Options with limits that an endless statement reaches soon.
pub(crate) const SHORT: [&str; 4] = ["--query-time", "2s", "--query-memory", "64MiB"];

/// Returns the statements, each with its acceptable error codes.
pub(crate) fn corpus() -> Vec<(Vec<String>, String)> {
    let text = std::fs::read_to_string(root().join("tests/corpus/denied.sql")).expect("the corpus");
    let statements: Vec<_> = text
        .split("--! ")
        .skip(1)
        .map(|block| {
            let (codes, statement) = block.split_once('\n').expect("a line of codes, then a statement");
            (codes.split('|').map(str::to_owned).collect(), statement.trim().to_owned())
        })
        .collect();
    assert!(statements.len() > 50, "{}", statements.len());
    statements
}

/// Scenario: every statement of the corpus, over HTTP.
/// Guarantee: each is refused, or stopped by a limit, with the right code and a reason; nothing is written anywhere;
/// the server answers the next query, and its memory stays bounded.
#[test]
fn nothing_is_allowed_over_http() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &SHORT);
    let mut wrong = Vec::new();
    for (codes, statement) in corpus() {
        let answer = ask(&server, &statement);
        let error = answer.json()["error"].clone();
        let is_denied = answer.status >= 400 && codes.iter().any(|code| error["code"] == **code);
        let says_why = error["message"].as_str().is_some_and(|message| message.len() > 10);
        if !is_denied || !says_why {
            wrong.push(format!("{statement}\n  {}", answer.json()));
        }
        assert_eq!(rows(&server, "SELECT 1 AS one"), [json!({"one": 1})], "after {statement}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_unharmed(&server, &folder);
    assert!(server.stop().success());
}

/// Checks that no statement has written a file, and that memory has grown little.
#[track_caller]
pub(crate) fn assert_unharmed(server: &Server, folder: &Folder) {
    for name in ["stolen.csv", "stolen.parquet", "x.csv", "mine"] {
        for place in [folder.path(), server.data_dir(), root()] {
            assert!(!place.join(name).exists(), "{name} in {}", place.display());
        }
    }
    let (_, peak) = server.resident();
    assert!(peak < 1 << 30, "{peak} bytes");
}

/// Scenario: the same corpus, typed at psql.
/// Guarantee: as over HTTP: psql is told no each time, and the next query is answered.
#[test]
fn nothing_is_allowed_over_the_postgresql_protocol() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &SHORT);
    let port = server.address("postgres").port().to_string();
    let psql = |statement: &str| {
        let output = Command::new("psql")
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "ann",
                "-c",
                statement,
                "faultline",
            ])
            .output()
            .expect("psql is there; Debian's package is postgresql-client");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let mut wrong = Vec::new();
    for (_, statement) in corpus() {
        let (worked, _, said) = psql(&statement);
        if worked || !said.contains("ERROR:") {
            wrong.push(format!("{statement}\n  {said}"));
        }
        assert_eq!(psql("SELECT 1"), (true, "1".to_owned(), String::new()), "after {statement}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_unharmed(&server, &folder);
    assert!(server.stop().success());
}

/// Scenario: the same corpus, over Flight SQL with ADBC.
/// Guarantee: as over HTTP.
#[test]
fn nothing_is_allowed_over_flight() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &SHORT);
    let flight = format!("grpc://{}", server.address("flight"));
    let web = format!("http://{}", server.address("web"));
    let steps: Vec<_> = corpus()
        .into_iter()
        .flat_map(|(_, statement)| [json!(["query", statement]), json!(["query", "SELECT 1 AS one"])])
        .collect();
    let answers = python("flight.py", &[&flight, &web], json!(steps).to_string().as_bytes());
    let answers = answers.as_array().expect("answers");
    assert_eq!(answers.len(), steps.len());
    for (pair, step) in answers.chunks(2).zip(steps.chunks(2)) {
        assert!(pair[0]["error"].is_string(), "{}: {}", step[0], pair[0]);
        assert_eq!(pair[1]["rows"], json!([[1]]), "after {}", step[0]);
    }
    assert_unharmed(&server, &folder);
    assert!(server.stop().success());
}

/// Scenario: the same corpus, with `faultline sql` on a data directory.
/// Guarantee: each ends with the exit code of a failed query and a reason, and the directory is as before.
#[test]
fn nothing_is_allowed_on_the_command_line() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    server.post_lines(super::support::OPEN).is(200);
    let data_dir = server.data_dir().to_str().expect("a path").to_owned();
    assert!(server.stop().success());
    let before = super::server::dump(folder.path().join("data").as_path(), "events");
    let limits = ["--timeout", "2s", "--memory", "64MiB"];
    for (_, statement) in corpus() {
        let run = faultline(&[&["sql", "--data-dir", &data_dir], &limits[..], &["--", &statement]].concat());
        assert_eq!(run.code, 1, "{statement}: {}{}", run.out, run.err);
        assert!(run.err.contains("error: "), "{statement}: {}", run.err);
    }
    assert_eq!(super::server::dump(folder.path().join("data").as_path(), "events"), before);
    for name in ["stolen.csv", "stolen.parquet", "x.csv"] {
        assert!(!Path::new(name).exists(), "{name}");
    }
}
