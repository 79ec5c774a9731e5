//! `docs/sql.md`: every question on the page is asked, and its answer is compared with the one on the page; the parts
//! that say what there is are made from what there is.
//!
//! A block marked `sql` is followed by a block marked `text` with its answer. What stands between `<!-- name -->` and
//! `<!-- end -->` is made here.

use super::asking::{Asking, Table};
use query::Limits;
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;
use taxonomy::{HashKey, Registry, Rules};

/// The page as it should be.
pub(super) fn page(text: &str, asking: &Asking) -> String {
    let mut page = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        page.push_str(line);
        page.push('\n');
        if line == "```sql" {
            let sql: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let _ =
                write!(page, "{}\n```\n\n```text\n{}```\n", sql.join("\n"), answer(asking, &sql.join("\n")));
            skip_answer(&mut lines);
        } else if let Some(name) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            page.push_str(&part(name));
            lines.by_ref().take_while(|line| *line != "<!-- end -->").for_each(drop);
            page.push_str("<!-- end -->\n");
        }
    }
    page
}

/// How many questions a page has.
pub(super) fn questions(text: &str) -> usize {
    text.lines().filter(|line| *line == "```sql").count()
}

/// Passes over the answer of an older page; there is none below a question that was just written.
fn skip_answer(lines: &mut std::str::Lines<'_>) {
    let mut ahead = lines.clone();
    if ahead.next() == Some("") && ahead.next() == Some("```text") {
        ahead.by_ref().take_while(|line| *line != "```").for_each(drop);
        *lines = ahead;
    }
}

fn answer(asking: &Asking, sql: &str) -> String {
    let table = asking.answer(sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    assert!(!table.rows.is_empty(), "a question of the page has an empty answer:\n{sql}");
    assert!(table.rows.len() <= 20, "an answer of {} rows is too long for a page:\n{sql}", table.rows.len());
    as_text(&table)
}

/// Columns side by side, numbers to the right.
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
    for (name, about) in query::tables::described() {
        let _ = writeln!(text, "| `{name}` | {about} |");
    }
    text
}

fn functions() -> String {
    let registry = Registry::builtin().expect("the registry");
    let rules = Arc::new(Rules::new(registry, HashKey::FIXED, taxonomy::Limits::default()));
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
        ("how long a query may run", format!("{:?}", limits.time)),
        ("how long it waits for its turn", format!("{:?}", limits.wait)),
        ("queries at once", limits.concurrent.to_string()),
        ("memory of a query, to sort, join and group", mib(limits.query_memory)),
        ("memory of the process that runs it, whatever it does", mib(limits.process_memory())),
        ("memory of all queries; past it the largest is ended", mib(limits.memory)),
        ("rows of an answer", limits.rows.to_string()),
        ("columns of an answer", limits.columns.to_string()),
        ("length of a statement", format!("{} KiB", limits.statement_bytes >> 10)),
    ];
    let mut text = "| limit | |\n|---|---|\n".to_owned();
    for (what, how_much) in rows {
        let _ = writeln!(text, "| {what} | {how_much} |");
    }
    text
}
