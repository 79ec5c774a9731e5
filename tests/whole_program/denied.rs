//! What no door may do: one corpus of statements, `tests/corpus/denied.sql`, against all of them.

use super::http_sql::{ask, rows};
use super::server::Server;
use super::support::{Folder, root};
use serde_json::json;

/// Limits that an endless statement reaches soon.
pub(crate) const SHORT: [&str; 4] = ["--query-time", "2s", "--query-memory", "64MiB"];

/// The statements, each with the codes that are right answers to it.
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
/// the server answers the next question, and its memory stays bounded.
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

/// No file where a statement wanted one, and not much memory gone.
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
