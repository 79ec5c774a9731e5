//! Files of queries and results, in a subset of the sqllogictest format:
//!
//! ```text
//! query TI rowsort           the types of the columns, and maybe that the order of the rows does not matter
//! SELECT ...
//! ----
//! one row a line
//!
//! query error what is ... said
//! SELECT ...
//! ```

use super::query_runner::{QueryRunner, Table};
use serde_json::Value;

/// One query of a file.
struct Question<'t> {
    line: usize,
    sql: String,
    expected: Expected<'t>,
}

enum Expected<'t> {
    /// The types, a flag for sorting the rows, and the rows.
    Rows(&'t str, bool, Vec<&'t str>),
    /// The expected error.
    Error(&'t str),
}

/// Runs every query of a file, and reports each unexpected result with its line.
pub(super) fn run(text: &str, query_runner: &QueryRunner) -> Vec<String> {
    let questions = read(text);
    assert!(!questions.is_empty(), "no questions");
    questions.iter().filter_map(|question| question.ask(query_runner).err()).collect()
}

fn read(text: &str) -> Vec<Question<'_>> {
    let mut lines = text.lines().enumerate().peekable();
    let mut questions = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let head = line.strip_prefix("query ").unwrap_or_else(|| panic!("line {}: {line}", number + 1));
        let rest: Vec<&str> = std::iter::from_fn(|| lines.next_if(|(_, line)| !line.is_empty()))
            .map(|(_, line)| line)
            .collect();
        questions.push(Question::read(number + 1, head, &rest));
    }
    questions
}

impl<'t> Question<'t> {
    fn read(line: usize, head: &'t str, rest: &[&'t str]) -> Self {
        let end = rest.iter().position(|line| *line == "----");
        let sql = rest[..end.unwrap_or(rest.len())].join("\n");
        let expected = match (head.strip_prefix("error "), end) {
            (Some(said), None) => Expected::Error(said),
            (None, Some(end)) => {
                let (types, order) = head.split_once(' ').unwrap_or((head, ""));
                Expected::Rows(types, order == "rowsort", rest[end + 1..].to_vec())
            }
            _ => panic!("line {line}: an error has no rows, and rows stand below ----"),
        };
        Self { line, sql, expected }
    }

    fn ask(&self, query_runner: &QueryRunner) -> Result<(), String> {
        let answer = query_runner.query(&self.sql);
        let wrong = |came: &str| Err(format!("line {}: {}\n{came}", self.line, self.sql));
        match (&self.expected, answer) {
            (Expected::Error(said), Err(error)) if holds(&error.0, said) => Ok(()),
            (Expected::Error(_) | Expected::Rows(..), Err(error)) => wrong(&format!("said: {error}")),
            (Expected::Error(_), Ok(table)) => wrong(&format!("{} rows, and no error", table.rows.len())),
            (Expected::Rows(types, any_order, rows), Ok(table)) => {
                let (mut came, mut rows) = (lines_of(&table), rows.clone());
                if *any_order {
                    came.sort_unstable();
                    rows.sort_unstable();
                }
                let came_types = types_of(&table);
                match came == rows && came_types == *types {
                    true => Ok(()),
                    false => wrong(&format!("types {came_types}\n{}", came.join("\n"))),
                }
            }
        }
    }
}

/// Returns true if a text contains all parts of a pattern, one after the other.
fn holds(mut text: &str, pattern: &str) -> bool {
    pattern.split("...").all(|part| match text.find(part) {
        Some(at) => {
            text = &text[at + part.len()..];
            true
        }
        None => false,
    })
}

fn types_of(table: &Table) -> String {
    table.columns.iter().map(|(_, name)| type_of(name)).collect()
}

fn type_of(name: &str) -> char {
    match name {
        "smallint" | "integer" | "bigint" => 'I',
        "real" | "double precision" | "numeric" => 'R',
        "boolean" => 'B',
        name if name == "text" || name.starts_with("timestamp") || name == "date" => 'T',
        _ => '?',
    }
}

fn lines_of(table: &Table) -> Vec<String> {
    let line = |row: &Vec<Value>| row.iter().map(cell).collect::<Vec<_>>().join(" ");
    table.rows.iter().map(line).collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) if text.is_empty() => "(empty)".to_owned(),
        Value::String(text) => text.replace(' ', "_"),
        other => other.to_string(),
    }
}
