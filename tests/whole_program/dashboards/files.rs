//! Tests of the files as such: they are written in one form, and `faultline dashboards` writes them.

use super::super::support::{Folder, check_expected, faultline};
use super::{NAMES, dashboards, file};
use serde_json::Value;

/// The maximum width of a value that is written on one line.
const WIDTH: usize = 120;

/// Guarantee: the files are written in one form, with sorted keys and short values on one line, so that a difference
/// shows what was changed. `tests/update-expected` brings an export from Grafana into this form.
#[test]
fn the_dashboards_are_formatted() {
    for dashboard in dashboards() {
        check_expected(&file(dashboard.name), &format!("{}\n", formatted(&dashboard.json, 0, 0)));
    }
}

/// Returns a value on one line if it fits after the text that leads to it, and over several lines otherwise.
fn formatted(value: &Value, indent: usize, lead: usize) -> String {
    let line = on_one_line(value);
    // A comma may follow.
    let fits = indent + lead + line.chars().count() < WIDTH;
    let (open, close, rows) = match value {
        Value::Object(object) if !fits && !object.is_empty() => {
            let row = |(key, value): (&String, &Value)| {
                let key = format!("{}: ", on_one_line(&Value::from(key.as_str())));
                format!("{key}{}", formatted(value, indent + 2, key.chars().count()))
            };
            ('{', '}', sorted(object).map(row).collect::<Vec<_>>())
        }
        Value::Array(values) if !fits && !values.is_empty() => {
            ('[', ']', values.iter().map(|value| formatted(value, indent + 2, 0)).collect())
        }
        _ => return line,
    };
    let space = " ".repeat(indent + 2);
    let rows = rows.iter().map(|row| format!("{space}{row}")).collect::<Vec<_>>().join(",\n");
    format!("{open}\n{rows}\n{}{close}", " ".repeat(indent))
}

fn on_one_line(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let pair = |(key, value): (&String, &Value)| {
                format!("{}: {}", Value::from(key.as_str()), on_one_line(value))
            };
            format!("{{{}}}", sorted(object).map(pair).collect::<Vec<_>>().join(", "))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Returns the pairs by their keys, whatever features `serde_json` was built with.
fn sorted(object: &serde_json::Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    object.iter().collect::<std::collections::BTreeMap<_, _>>().into_iter()
}

/// Guarantee: the command writes the files as they are committed.
#[test]
fn the_dashboards_are_written() {
    let folder = Folder::new();
    let out = folder.path().join("new/folder");
    let run = faultline(&["dashboards", "--out", out.to_str().expect("a path")]).ends_with(0);
    assert_eq!(run.out, "", "what is written is said on stderr");
    let written = std::fs::read_dir(&out).expect("the folder").count();
    assert_eq!(written, NAMES.len());
    for dashboard in dashboards() {
        let json =
            std::fs::read_to_string(out.join(format!("{}.json", dashboard.name))).expect("a dashboard");
        assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON"), dashboard.json);
    }
}

/// Guarantee: without a folder they are listed, and the address of the collector is where the links go.
#[test]
fn dashboards_are_listed_and_know_their_collector() {
    let listed = faultline(&["dashboards"]).ends_with(0).out;
    assert_eq!(listed.lines().count(), 1 + NAMES.len(), "{listed}");
    assert!(NAMES.iter().all(|name| listed.contains(&format!("{name}.json"))), "{listed}");
    let folder = Folder::new();
    let out = folder.path().to_str().expect("a path");
    faultline(&["dashboards", "--out", out, "--collector", "https://faultline.example/"]).ends_with(0);
    for name in NAMES {
        let json = std::fs::read_to_string(folder.path().join(format!("{name}.json"))).expect("a dashboard");
        assert!(json.contains("\"https://faultline.example\"") && !json.contains("127.0.0.1"), "{json}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_a_failure() {
    let folder = Folder::new();
    let in_the_way = folder.file("file", "");
    let run = faultline(&["dashboards", "--out", &in_the_way]).ends_with(1);
    assert!(run.err.contains("file"), "{}", run.err);
}
