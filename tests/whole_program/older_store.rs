//! Tests of a data directory that an older version wrote: its WAL is replayed, and its tables open and get new columns.

use super::server::{Server, dump};
use super::support::{Folder, faultline};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};
use store::Table;

const OLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/older");
const TABLES: [&str; 3] = ["events", "traffic", "rejects"];
/// A failure in a batch, which has a value in a column that the older version did not have.
const BATCH: &str = r#"{"time":"2026-11-01T10:00:00Z","service":"files","operation":"bulk","success":true,"results":[{"result":{"success":true}},{"result":{"success":false,"error":{"code":"NOT_FOUND_RESOURCE","message":"No such file"}}}],"summary":{"total":2,"succeeded":1,"failed":1}}"#;

/// Returns a copy to work on.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// Returns the rows of a table as the older version printed them.
fn expected(table: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(format!("{OLDER}/{table}.ndjson")).expect("what was printed");
    sorted(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

fn sorted(mut rows: Vec<Value>) -> Vec<Value> {
    rows.sort_by_key(Value::to_string);
    rows
}

/// Adds up traffic, because rows may have been combined: only the sums must agree.
fn calls(rows: &[Value]) -> i64 {
    rows.iter().map(|row| row["calls"].as_i64().expect("a number")).sum()
}

/// Scenario: today's `dump` on the older version's directory.
/// Guarantee: every row is there as the older version printed it, from its tables and from its log.
#[test]
fn an_older_directory_is_read_as_it_is() {
    let folder = Folder::new();
    let data_dir = folder.path().join("data");
    copy(&Path::new(OLDER).join("data"), &data_dir);
    for table in TABLES {
        assert_eq!(sorted(dump(&data_dir, table)), expected(table), "{table}");
    }
}

/// Scenario: today's server on the older version's directory; it flushes the older log, new rows come in, and old and
/// new files are merged.
/// Guarantee: old rows stay as they were, new rows have the new columns, and `check` finds nothing wrong.
#[test]
fn an_older_directory_takes_new_columns() {
    let folder = Folder::new();
    let data_dir = folder.path().join("data");
    copy(&Path::new(OLDER).join("data"), &data_dir);
    let server = Server::start_with(&folder, &["--flush-after", "50ms"]);
    for count in 1..=16 {
        server.post_lines(&format!("{BATCH}\nrubbish {count}\n")).is(200);
        wait_until(&server, |status| status["hot"]["records"] == 0);
    }
    wait_until(&server, |status| status["maintenance"]["merged_files"].as_u64() >= Some(16));
    assert!(server.stop().success());
    let (new, old): (Vec<_>, Vec<_>) =
        dump(&data_dir, "events").into_iter().partition(|event| event.get("batch_index").is_some());
    assert_eq!(sorted(old), expected("events"));
    assert!(new.len() == 16 && new.iter().all(|event| event["batch_index"] == 1), "{new:?}");
    assert_eq!(dump(&data_dir, "rejects").len(), expected("rejects").len() + 16);
    assert_eq!(calls(&dump(&data_dir, "traffic")), calls(&expected("traffic")) + 16 * 2);
    let run = faultline(&["check", "--data-dir", data_dir.to_str().expect("UTF-8")]).ends_with(0);
    assert!(!run.out.contains("problem"), "{}", run.out);
}

/// A column that an older table lacks must be nullable, because its files have no value for it.
#[test]
fn every_new_column_may_be_null() {
    for table in [Table::Events, Table::Traffic, Table::Rejects] {
        let log = format!("{OLDER}/data/tables/{}/_delta_log/00000000000000000000.json", table.name());
        let commit = std::fs::read_to_string(log).expect("the first commit");
        let actions = commit.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let schema =
            actions.filter_map(|action| Some(action["metaData"]["schemaString"].as_str()?.to_owned()));
        let schema: Value = serde_json::from_str(&schema.collect::<String>()).expect("a schema");
        let known: Vec<&str> = schema["fields"]
            .as_array()
            .expect("fields")
            .iter()
            .filter_map(|field| field["name"].as_str())
            .collect();
        for column in table.columns().iter().filter(|column| !known.contains(&column.name)) {
            assert!(
                column.nullable,
                "{}.{} is new, and older files have no value for it",
                table.name(),
                column.name
            );
        }
    }
}

#[track_caller]
fn wait_until(server: &Server, holds: impl Fn(&Value) -> bool) {
    let began = Instant::now();
    while !holds(&server.status()) {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.status());
        std::thread::sleep(Duration::from_millis(20));
    }
}
