//! The completions of a word in a statement: keywords, names, and those of them that fit at the cursor.

use super::{commands, names_in};
use crate::commands::sql::formats::Format;
use crate::commands::sql::runner::QueryRunner;
use crate::commands::sql::statements::is_word;
use arrow::array::{AsArray, RecordBatch};
use clap::ValueEnum;
use std::collections::BTreeSet;

/// The keywords of statements, sorted for binary search.
const KEYWORDS: &[&str] = &[
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "CROSS",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTRACT",
    "FALSE",
    "FILTER",
    "FIRST",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LAST",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "RIGHT",
    "SELECT",
    "SHOW",
    "TABLES",
    "THEN",
    "TIMESTAMP",
    "TRUE",
    "UNION",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WITH",
];

/// The words that precede the name of a table.
const BEFORE_TABLES: [&str; 4] = ["from", "join", "describe", ".schema"];

/// The names that can be completed.
#[derive(Debug, Default)]
pub(super) struct CompletionNames {
    /// The tables and views, with their columns.
    tables: Vec<(String, Vec<String>)>,
    functions: Vec<String>,
}

impl CompletionNames {
    /// Queries the names. If that fails, there are fewer completions, and everything else works.
    pub(super) fn query(runner: &QueryRunner) -> Self {
        let named = |statement: &str| runner.fetch(statement, &[]).unwrap_or_default();
        let mut names = Self::default();
        for (table, column) in pairs(&named("SELECT table_name, column_name FROM columns")) {
            match names.tables.iter_mut().find(|(name, _)| *name == table) {
                Some((_, columns)) => columns.push(column),
                None => names.tables.push((table, vec![column])),
            }
        }
        let functions = named("SELECT DISTINCT routine_name, '' FROM information_schema.routines");
        names.functions = pairs(&functions).into_iter().map(|(name, _)| name).collect();
        // Operators are listed as functions, too, but are not words.
        names.functions.retain(|name| name.chars().all(is_word));
        names
    }

    /// Returns the tables and views.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn is_keyword(&self, word: &str) -> bool {
        let word = word.to_ascii_uppercase();
        KEYWORDS.binary_search(&word.as_str()).is_ok()
    }

    /// Returns the completions of the word at the cursor, and its start.
    pub(super) fn completions(&self, line: &str, position: usize) -> (usize, Vec<String>) {
        let before = &line[..position];
        if let Some(candidates) = command_completions(before) {
            return candidates;
        }
        let start = before.rfind(|c: char| !is_word(c)).map_or(0, |at| at + char_length_at(before, at));
        let typed = &before[start..];
        let candidates = match before[..start].strip_suffix('.') {
            Some(owner) => self.columns_of(line, owner, typed),
            None if is_after_table_word(&before[..start]) => with_prefix(typed, self.tables()),
            // All names would be too many to look through.
            None if typed.is_empty() => with_prefix(typed, self.columns_in(line)),
            None => self.any_name(line, typed),
        };
        (start, candidates.into_iter().collect())
    }

    /// Returns matching keywords, tables, functions, and columns of the tables that the statement names, or else of all
    /// tables.
    fn any_name(&self, line: &str, typed: &str) -> BTreeSet<String> {
        let is_lower = typed.chars().all(|c| !c.is_uppercase());
        let keyword = |word: &&str| if is_lower { word.to_lowercase() } else { (*word).to_owned() };
        let keywords: Vec<String> = KEYWORDS.iter().map(keyword).collect();
        let mut candidates = with_prefix(typed, keywords.iter().map(String::as_str));
        if !is_lower && !candidates.is_empty() {
            // A user who types in upper case means a keyword.
            return candidates;
        }
        candidates.extend(with_prefix(typed, self.tables()));
        candidates.extend(with_prefix(typed, self.functions.iter().map(String::as_str)));
        candidates.extend(with_prefix(typed, self.columns_in(line)));
        candidates
    }

    /// Returns the columns of the tables that a statement names, or of all tables if it names none.
    fn columns_in(&self, line: &str) -> impl Iterator<Item = &str> {
        let names: BTreeSet<String> = names_in(line).collect();
        let names_one = self.tables().any(|table| names.contains(table));
        let tables = self.tables.iter().filter(move |(table, _)| !names_one || names.contains(table));
        tables.flat_map(|(_, columns)| columns.iter().map(String::as_str))
    }

    /// Returns the columns after `owner.`, which is the name of a table or an alias of one.
    fn columns_of(&self, line: &str, owner: &str, typed: &str) -> BTreeSet<String> {
        let owner = owner.rsplit(|c: char| !is_word(c)).next().unwrap_or(owner).to_lowercase();
        match self.tables.iter().find(|(table, _)| *table == owner) {
            Some((_, columns)) => with_prefix(typed, columns.iter().map(String::as_str)),
            None => with_prefix(typed, self.columns_in(line)),
        }
    }
}

/// Returns the length of the character at a position, in bytes.
fn char_length_at(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(1, char::len_utf8)
}

fn is_after_table_word(before: &str) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    before.ends_with(char::is_whitespace) && BEFORE_TABLES.contains(&last.as_str())
}

/// Returns the completions of a command or of its argument.
fn command_completions(before: &str) -> Option<(usize, Vec<String>)> {
    let line = before.trim_start();
    if !line.starts_with('.') {
        return None;
    }
    let Some((command, _)) = line.split_once(' ') else {
        let candidates = with_prefix(line, commands::COMMANDS.iter().map(|(name, ..)| *name));
        return Some((before.len() - line.len(), candidates.into_iter().collect()));
    };
    let start = before.rfind(' ').map_or(0, |at| at + 1);
    let formats: Vec<String> = Format::value_variants().iter().map(|format| format.name()).collect();
    let candidates = match command {
        ".mode" => with_prefix(&before[start..], formats.iter().map(String::as_str)),
        ".timer" => with_prefix(&before[start..], ["on", "off"].into_iter()),
        _ => return None,
    };
    Some((start, candidates.into_iter().collect()))
}

/// Returns the names that start with the typed text, ignoring case.
fn with_prefix<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> BTreeSet<String> {
    let typed = typed.to_lowercase();
    names.filter(|name| name.to_lowercase().starts_with(&typed)).map(str::to_owned).collect()
}

/// Returns the first two columns of a result, as texts.
fn pairs(batches: &[RecordBatch]) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for batch in batches {
        let column =
            |index: usize| batch.columns().get(index).and_then(|column| column.as_string_opt::<i32>());
        if let (Some(first), Some(second)) = (column(0), column(1)) {
            let both = first.iter().flatten().zip(second.iter().flatten());
            pairs.extend(both.map(|(first, second)| (first.to_owned(), second.to_owned())));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> CompletionNames {
        let table = |name: &str, columns: &[&str]| {
            (name.to_owned(), columns.iter().map(|c| (*c).to_owned()).collect())
        };
        CompletionNames {
            tables: vec![
                table("events", &["service", "severity", "time"]),
                table("errors", &["service", "time"]),
                table("traffic", &["calls", "seconds"]),
            ],
            functions: vec!["sum".to_owned(), "strpos".to_owned()],
        }
    }

    /// Returns the completions of a line with the cursor at `|`.
    fn completed(line: &str) -> Vec<String> {
        let position = line.find('|').unwrap();
        let line = line.replace('|', "");
        let (start, candidates) = names().completions(&line, position);
        candidates.into_iter().map(|word| format!("{}{word}", &line[..start])).collect()
    }

    #[test]
    fn what_fits_depends_on_where_it_is() {
        for (line, candidates) in [
            ("SELECT * FROM e|", &["SELECT * FROM errors", "SELECT * FROM events"][..]),
            ("SELECT * FROM |", &["SELECT * FROM errors", "SELECT * FROM events", "SELECT * FROM traffic"]),
            ("SEL|", &["SELECT"]),
            ("sel|", &["select"]),
            ("SELECT S|", &["SELECT SELECT", "SELECT SHOW"]),
            ("SELECT Ser| FROM events", &["SELECT service"]),
            (
                "SELECT s| FROM traffic",
                &["SELECT seconds", "SELECT select", "SELECT show", "SELECT strpos", "SELECT sum"],
            ),
            ("SELECT traffic.c|", &["SELECT traffic.calls"]),
            ("SELECT t.se| FROM traffic t", &["SELECT t.seconds"]),
            ("SELECT sum(cal|", &["SELECT sum(calls"]),
            (".m|", &[".mode"]),
            (".mode nd|", &[".mode ndjson"]),
            (".timer o|", &[".timer off", ".timer on"]),
            (".schema tr|", &[".schema traffic"]),
            ("SELECT 'é', serv|", &["SELECT 'é', service"]),
            ("xyzzy|", &[]),
        ] {
            assert_eq!(completed(line), candidates, "{line}");
        }
    }

    #[test]
    fn keywords_are_sorted_so_that_they_are_found() {
        assert!(KEYWORDS.is_sorted());
        assert!(names().is_keyword("select") && !names().is_keyword("service"));
    }
}
