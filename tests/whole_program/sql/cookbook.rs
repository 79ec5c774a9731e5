//! `docs/sql.md`: runs every query of the page and compares its result with that on the page. Generated parts list the
//! tables, functions and limits.
//!
//! A block marked `sql` is followed by a block marked `text` with its result. The text between `<!-- name -->` and
//! `<!-- end -->` is generated.

use super::query_runner::{QueryRunner, Table};
use classifier::{HashKey, Registry, Rules};
use query::Limits;
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;

/// Returns the page as it should be.
pub(super) fn page(text: &str, query_runner: &QueryRunner) -> String {
    let mut page = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        page.push_str(line);
        page.push('\n');
        if line == "```sql" {
            let sql: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let _ = write!(
                page,
                "{}\n```\n\n```text\n{}```\n",
                sql.join("\n"),
                answer(query_runner, &sql.join("\n"))
            );
            skip_answer(&mut lines);
        } else if let Some(name) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            page.push_str(&part(name));
            lines.by_ref().take_while(|line| *line != "<!-- end -->").for_each(drop);
            page.push_str("<!-- end -->\n");
        }
    }
    page
}

/// Returns the number of queries on a page.
pub(super) fn questions(text: &str) -> usize {
    text.lines().filter(|line| *line == "```sql").count()
}

/// Skips the result on the existing page; a new query has none yet.
fn skip_answer(lines: &mut std::str::Lines<'_>) {
    let mut ahead = lines.clone();
    if ahead.next() == Some("") && ahead.next() == Some("```text") {
        ahead.by_ref().take_while(|line| *line != "```").for_each(drop);
        *lines = ahead;
    }
}

fn answer(query_runner: &QueryRunner, sql: &str) -> String {
    let table = query_runner.query(sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    assert!(!table.rows.is_empty(), "a query of the page has an empty result:\n{sql}");
    assert!(table.rows.len() <= 20, "a result of {} rows is too long for the page:\n{sql}", table.rows.len());
    as_text(&table)
}

/// Renders columns side by side, with numbers aligned to the right.
fn as_text(table: &Table) -> String {
    let names = table.columns.iter().map(|(name, _)| name.clone()).collect();
    let rows: Vec<Vec<String>> =
        std::iter::once(names).chain(table.rows.iter().map(|row| row.iter().map(cell).collect())).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let is_number = |column: usize| {
        table.rows.iter().any(|row| row[column].is_number())
            && table.rows.iter().all(|row| row[column].is_number() || row[column].is_null())
    };
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let pad = |(column, cell): (usize, &String)| {
            let width = widths[column];
            if is_number(column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        };
        let line = row.iter().enumerate().map(pad).collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
        if number == 0 {
            let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            let _ = writeln!(text, "{}", dashes.join("  "));
        }
    }
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn part(name: &str) -> String {
    match name {
        "tables" => tables(),
        "functions" => functions(),
        "limits" => limits(),
        other => panic!("nothing is known of the part '{other}'"),
    }
}

fn tables() -> String {
    let mut text = "| table or view | its rows |\n|---|---|\n".to_owned();
    for (name, about) in query::tables::descriptions() {
        let _ = writeln!(text, "| `{name}` | {about} |");
    }
    text
}

fn functions() -> String {
    let registry = Registry::builtin().expect("the registry");
    let rules = Arc::new(Rules::new(registry, HashKey::FIXED, classifier::Limits::default()));
    let mut text = "| function | what it gives |\n|---|---|\n".to_owned();
    for function in query::functions::own(&rules) {
        let about = function.documentation().expect("documentation");
        let _ = writeln!(text, "| `{}` | {} |", about.syntax_example, about.description);
    }
    text
}

fn limits() -> String {
    let limits = Limits::DEFAULT;
    let mib = |bytes: usize| format!("{} MiB", bytes >> 20);
    let rows = [
        ("longest run time of a query", format!("{:?}", limits.time)),
        ("longest wait until a query starts", format!("{:?}", limits.wait)),
        ("queries at the same time", limits.concurrent.to_string()),
        ("memory of a query for sorts, joins and groups", mib(limits.query_memory)),
        ("memory of the process that runs a query", mib(limits.process_memory())),
        ("memory of all queries; beyond it the largest is stopped", mib(limits.memory)),
        ("rows of a result", limits.rows.to_string()),
        ("columns of a result", limits.columns.to_string()),
        ("length of a statement", format!("{} KiB", limits.statement_bytes >> 10)),
    ];
    let mut text = "| limit | |\n|---|---|\n".to_owned();
    for (what, how_much) in rows {
        let _ = writeln!(text, "| {what} | {how_much} |");
    }
    text
}
