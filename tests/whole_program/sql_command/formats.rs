//! Results as text, as JSON, and in formats that other programs read.

use super::super::otlp::client::python;
use super::super::server::dump;
use super::super::support::{Folder, command, faultline, lines};
use super::Stored;
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

const QUERY: &str =
    "SELECT event_id, canonical, message, hidden, duration_us, operation FROM events ORDER BY event_id";
const COLUMNS: [&str; 6] = ["event_id", "canonical", "message", "hidden", "duration_us", "operation"];

/// Returns the rows of [`QUERY`], as `faultline dump` has them.
fn expected(stored: &Stored) -> Vec<Value> {
    let mut events = dump(Path::new(&stored.data_dir), "events");
    events.sort_by_key(|event| event["event_id"].as_str().unwrap().to_owned());
    let row = |event: &Value| -> Value {
        COLUMNS.iter().map(|column| ((*column).to_owned(), event[*column].clone())).collect()
    };
    events.iter().map(row).collect()
}

/// Scenario: the same question in every format.
/// Guarantee: all hold the same rows, as other programs read them, and those are the rows that are stored.
#[test]
fn every_format_holds_the_same_rows() {
    let stored = Stored::new();
    let expected = expected(&stored);
    assert!(expected.len() > 100);
    let list = stored.sql(&["--format", "json", QUERY]).ends_with(0).out;
    assert_eq!(serde_json::from_str::<Vec<Value>>(&list).unwrap(), expected);
    assert_eq!(stored.sql(&["--format", "ndjson", QUERY]).ends_with(0).events(), expected);
    let files = ["rows.csv", "rows.parquet", "rows.arrow"].map(|name| stored.path(name));
    for file in &files {
        let run = stored.sql(&["--output", file, QUERY]).ends_with(0);
        assert_eq!(run.out, "");
        assert!(run.err.contains(&format!("{} rows in ", expected.len())), "{}", run.err);
    }
    let read = python("answers.py", &[&files[0], &files[1], &files[2]], b"");
    let text = |value: &Value, null: &Value| match value {
        Value::Null => null.clone(),
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    };
    for (file, read) in files.iter().zip(read.as_array().unwrap()) {
        // CSV has no null, and writes booleans as Rust does.
        let null = if file.ends_with(".csv") { json!("") } else { Value::Null };
        let cells = |row: &Value| COLUMNS.iter().map(|name| text(&row[*name], &null)).collect::<Value>();
        let rows = expected.iter().map(cells);
        assert_eq!(read, &rows.collect::<Value>(), "{file}");
    }
    let piped = stored.sql(&[QUERY]).ends_with(0).out;
    assert_eq!(piped, std::fs::read_to_string(&files[0]).unwrap(), "piped, it is CSV");
    let table = stored.sql(&["--format", "table", QUERY]).ends_with(0).out;
    assert_eq!(table.lines().count(), expected.len() + 1);
    assert!(table.lines().nth(1).unwrap().starts_with(expected[0]["event_id"].as_str().unwrap()), "{table}");
}

/// Scenario: no rows; a list; a column without a type; several statements.
/// Guarantee: each format has its form of nothing, and what a format cannot hold is said.
#[test]
fn odd_answers_have_a_form() {
    let stored = Stored::new();
    let none = "SELECT code, name FROM codes WHERE false";
    assert_eq!(stored.sql(&["--format", "csv", none]).ends_with(0).out, "code,name\n");
    assert_eq!(stored.sql(&["--format", "json", none]).ends_with(0).out, "[]\n");
    assert_eq!(stored.sql(&["--format", "ndjson", none]).ends_with(0).out, "");
    assert_eq!(stored.sql(&["--format", "table", none]).ends_with(0).out, "code  name\n");
    let list = stored.sql(&["--format", "json", "SELECT [1, 2] AS list, NULL AS nothing"]).ends_with(0).out;
    assert_eq!(serde_json::from_str::<Value>(&list).unwrap(), json!([{"list": [1, 2], "nothing": null}]));
    assert_eq!(stored.sql(&["SELECT [1, 2] AS list"]).ends_with(0).out, "list\n\"[1, 2]\"\n");
    let both = stored.sql(&["SELECT 1 AS a; SELECT 2 AS b;"]).ends_with(0);
    assert_eq!(both.out, "a\n1\nb\n2\n");
    let file = stored.path("both.csv");
    stored.sql(&["--output", &file, "SELECT 1 AS a; SELECT 2 AS b;"]).ends_with(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a\n1\nb\n2\n");
    let run = stored.sql(&["--format", "parquet", "SELECT 1; SELECT 2"]).ends_with(2);
    assert!(run.err.contains("one answer") && run.out.is_empty(), "{}", run.err);
}

/// Scenario: values for $1 and $2.
/// Guarantee: numbers, truths and null are what they are, and everything else is a text, whatever it looks like.
#[test]
fn parameters_are_values_and_never_sql() {
    let stored = Stored::new();
    let query = "SELECT $1 AS a, $2 AS b, $3 AS c, $4 AS d";
    let hostile = "x'; DROP TABLE events; --";
    let run =
        stored.sql(&["--format", "ndjson", query, "-p", "-5", "-p", hostile, "-p", "null", "-p", "true"]);
    assert_eq!(run.ends_with(0).events(), [json!({"a": -5, "b": hostile, "c": null, "d": true})]);
    let all = dump(Path::new(&stored.data_dir), "events");
    let service = all[0]["service"].as_str().unwrap();
    let count = all.iter().filter(|event| event["service"] == service).count();
    let query = "SELECT count(*) AS n FROM events WHERE service = $1 AND time > $2 AND 1 < $3";
    let run =
        stored.sql(&["--format", "ndjson", query, "-p", service, "-p", "2001-01-01", "-p", "2"]).ends_with(0);
    assert_eq!(run.events(), [json!({ "n": count })]);
    let run = stored.sql(&["SELECT $1 + $2", "-p", "1"]).ends_with(1);
    assert_eq!(run.err, "error: parameter $2 has no value\n");
    assert_eq!(stored.sql(&["SELECT $1 + $2 AS n", "-p", "1", "-p", "2"]).ends_with(0).out, "n\n3\n");
}

/// Scenario: a message that holds escape sequences and marks that turn text around.
/// Guarantee: no format prints a control character of it, and the exact ones keep it.
#[test]
fn hostile_texts_do_nothing_to_a_terminal() {
    let folder = Folder::new();
    let text = "red \u{1b}[31m\u{1b}]0;title\u{7} \u{9b}2J \u{202e}desrever\r\nnext";
    let line =
        json!({"service": text, "error": {"code": "INTERNAL_ERROR", "message": text}, "success": false});
    let log = folder.file("hostile.ndjson", lines(&[&line.to_string()]));
    let data_dir = folder.path().join("data").to_str().unwrap().to_owned();
    faultline(&["ingest", &log, "--data-dir", &data_dir, "--quiet"]).ends_with(0);
    for format in ["table", "vertical", "csv", "json", "ndjson"] {
        let run = faultline(&[
            "sql",
            "--data-dir",
            &data_dir,
            "--format",
            format,
            "SELECT message, service FROM events",
        ]);
        let run = run.ends_with(0);
        assert!(run.out.contains("red "), "{format}: {}", run.out);
        let raw = |c: char| c.is_control() && c != '\n';
        assert!(!run.out.contains(raw) && !run.err.contains(raw), "{format}: {:?}", run.out);
        if ["table", "vertical"].contains(&format) {
            assert!(!run.out.contains('\u{202e}'), "{format}");
        }
    }
    // The error quotes the statement.
    let run =
        faultline(&["sql", "--data-dir", &data_dir, "SELECT '\u{1b}[31m' || nothing_such"]).ends_with(1);
    assert!(!run.err.contains('\u{1b}') && run.err.contains("nothing_such"), "{:?}", run.err);
    let run =
        faultline(&["sql", "--data-dir", &data_dir, "--format", "ndjson", "SELECT message FROM events"]);
    assert_eq!(run.ends_with(0).events()[0]["message"], dump(Path::new(&data_dir), "events")[0]["message"]);
}

/// Scenario: whoever reads the output has seen enough, of an answer that would go on for long.
/// Guarantee: the query ends at once, quietly and well.
#[test]
fn a_reader_that_has_seen_enough_ends_the_query() {
    let stored = Stored::new();
    let endless = "SELECT a.code, b.name, c.name, d.name FROM codes a, codes b, codes c, codes d";
    for format in ["csv", "ndjson", "json", "arrow", "parquet"] {
        let mut child = command(&["sql", "--data-dir", &stored.data_dir, "--format", format, endless])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        if format != "parquet" {
            stdout.read_exact(&mut [0; 100]).unwrap();
        }
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{format}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{format}");
    }
}

/// Scenario: an answer of some hundred megabytes.
/// Guarantee: it is written as it comes, and takes less memory than it is long.
#[test]
fn long_answers_take_little_memory() {
    let stored = Stored::new();
    let long = "SELECT value, repeat('0123456789', 80) AS text FROM generate_series(1, 400000)";
    let file = stored.path("long.ndjson");
    let mut child = command(&["sql", "--data-dir", &stored.data_dir, "--output", &file, long])
        // This makes freed memory visible: otherwise glibc retains more and more of it.
        .env("MALLOC_MMAP_THRESHOLD_", "65536")
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut highest = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        let peak = peak.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok());
        highest = peak.map_or(highest, |kib| kib * 1024);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(child.wait().unwrap().success());
    let written = std::fs::metadata(&file).unwrap().len();
    assert!(written > 250 << 20, "{written} bytes are not long");
    assert!(highest > 0 && highest < 250 << 20, "{highest} bytes of memory for {written} bytes");
}
