//! Tests of SQL on data that the real binary has stored: the files of `tests/sql`, and the cookbook.
//!
//! | file | what |
//! |---|---|
//! | `query_runner` | runs one query, by the library or through a running server, and returns its result as texts |
//! | `cookbook` | the page `docs/sql.md` |
//! | `fortnight` | two weeks of traffic, for the cookbook |
//! | `script` | files of queries and their results |
//! | `stores` | the same rows in files, in the buffer, or half of them in each |

mod cookbook;
mod fortnight;
mod query_runner;
mod script;
mod stores;

use query_runner::QueryRunner;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use stores::{RowLocation, Store};

use super::support::{check_expected, root};

/// Cells of different kinds.
macro_rules! row {
    ($($cell:expr),*) => { vec![$(json!($cell)),*] };
}

/// Returns the names of the files of `tests/sql`.
fn stories() -> Vec<PathBuf> {
    let files = std::fs::read_dir(root().join("tests/sql")).expect("tests/sql");
    let files = files.map(|entry| entry.expect("an entry").path());
    let mut stories: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "slt")).collect();
    stories.sort();
    assert!(stories.len() >= 12, "only {stories:?}");
    stories
}

fn log_of(story: &Path) -> Option<PathBuf> {
    Some(story.with_extension("ndjson")).filter(|log| log.exists())
}

/// The number of groups, hours and days on which `event_counts` and `events` do not agree, asked after each story.
const COUNTS_AGREE: &str = "

query I
SELECT count(*) FROM (
  SELECT fingerprint, kind, service, hidden, date_trunc('hour', time) AS hour, date, count(*) AS reports,
    min(time) AS first_seen, max(time) AS last_seen
  FROM events GROUP BY ALL
) AS events
FULL JOIN (
  SELECT fingerprint, kind, service, hidden, date_trunc('hour', bucket) AS hour, date, sum(reports) AS reports,
    min(first_seen) AS first_seen, max(last_seen) AS last_seen
  FROM event_counts GROUP BY ALL
) AS counts
  ON events.fingerprint = counts.fingerprint AND events.kind = counts.kind AND events.hour = counts.hour
  AND events.hidden = counts.hidden AND (events.service IS NOT DISTINCT FROM counts.service)
  AND events.date = counts.date AND events.reports = counts.reports
  AND events.first_seen = counts.first_seen AND events.last_seen = counts.last_seen
WHERE events.fingerprint IS NULL OR counts.fingerprint IS NULL
----
0

query B
SELECT coalesce((SELECT sum(errors) FROM error_counts), 0) = (SELECT count(*) FROM errors)
----
true
";

fn check_all(location: RowLocation, runners: &[fn(&Store) -> QueryRunner]) {
    let mut wrong = Vec::new();
    for story in stories() {
        let store = Store::new(location, log_of(&story).as_deref());
        let text = std::fs::read_to_string(&story).expect("a story") + COUNTS_AGREE;
        let name = story.file_name().expect("a name").display();
        for runner in runners {
            wrong.extend(
                script::run(&text, &runner(&store)).iter().map(|answer| format!("{name} {answer}\n")),
            );
        }
    }
    assert!(wrong.is_empty(), "{location:?}:\n{}", wrong.join("\n"));
}

/// Scenario: every story of `tests/sql` is flushed into files, and the data directory is asked.
/// Guarantee: tables, views, functions and messages are as worked out by hand.
#[test]
fn questions_about_flushed_rows() {
    check_all(RowLocation::Flushed, &[Store::directory]);
}

/// Scenario: the same stories are in a running server that has flushed nothing; the server is asked, and so is its data
/// directory, by another process.
/// Guarantee: the answers are the same.
#[test]
fn questions_about_hot_rows() {
    check_all(RowLocation::Hot, &[Store::server, Store::directory]);
}

/// Scenario: the first half of each story is in files, the second is hot; the server is asked.
/// Guarantee: the answers are the same.
#[test]
fn questions_about_rows_in_both_places() {
    check_all(RowLocation::Both, &[Store::server]);
}

/// The log is made by the generator, with five stories added.
#[test]
fn the_fortnight_is_what_its_makers_make() {
    check_expected("examples/fortnight.ndjson", &fortnight::log());
}

/// Scenario: the fortnight is ingested, and every question of `docs/sql.md` is asked.
/// Guarantee: the answers on the page are those that a reader gets, and what it says of tables, functions and limits is
/// so.
#[test]
fn the_cookbook_is_true() {
    let page = std::fs::read_to_string(root().join("docs/sql.md")).expect("docs/sql.md");
    assert!(cookbook::questions(&page) >= 20, "only {} questions", cookbook::questions(&page));
    let store = Store::new(RowLocation::Flushed, Some(&root().join("examples/fortnight.ndjson")));
    check_expected("docs/sql.md", &cookbook::page(&page, &store.directory()));
}

/// Scenario: two calls are reported by the agent and by the server, as spans of one trace each; a third only by the
/// agent.
/// Guarantee: `traffic` has all five reports, and `error_rates` each call once: at the server when it reports them.
#[test]
fn a_call_that_both_sides_report_counts_once() {
    let store = Store::new(RowLocation::Hot, None);
    let span = |number: i64, kind: i64, tool: &str| {
        json!({
            "traceId": format!("{number:032x}"), "spanId": format!("{:016x}", number * 10 + kind), "kind": kind,
            "name": format!("tools/call {tool}"), "startTimeUnixNano": "1777888800000000000",
            "endTimeUnixNano": "1777888800040000000",
            "attributes": [
                {"key": "mcp.method.name", "value": {"stringValue": "tools/call"}},
                {"key": "gen_ai.tool.name", "value": {"stringValue": tool}},
            ],
        })
    };
    let of = |service: &str, spans: Value| {
        let name = json!({"key": "service.name", "value": {"stringValue": service}});
        json!({"resource": {"attributes": [name]}, "scopeSpans": [{"spans": spans}]})
    };
    const SERVER: i64 = 2;
    const CLIENT: i64 = 3;
    let agent = json!([span(1, CLIENT, "list"), span(2, CLIENT, "list"), span(3, CLIENT, "fetch")]);
    let tools = json!([span(1, SERVER, "list"), span(2, SERVER, "list")]);
    store.post_spans(&json!({"resourceSpans": [of("agent", agent), of("tools", tools)]}));
    let runner = |sql: &str| store.server().query(sql).expect(sql).rows;
    let all = runner("SELECT service, operation, sum(calls) FROM traffic GROUP BY 1, 2 ORDER BY 1, 2");
    assert_eq!(all, [row!["agent", "fetch", 1], row!["agent", "list", 2], row!["tools", "list", 2]]);
    let once = runner("SELECT service, operation, calls, p50_ms FROM error_rates ORDER BY 1, 2");
    assert_eq!(once, [row!["agent", "fetch", 1, 37.5], row!["tools", "list", 2, 37.5]]);
}
