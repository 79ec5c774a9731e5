//! The words that a statement can be made of, and which of them fit where the cursor is.

use super::{commands, names_in};
use crate::sql::asking::Asker;
use crate::sql::formats::Format;
use crate::sql::statements::is_word;
use arrow::array::{AsArray, RecordBatch};
use clap::ValueEnum;
use std::collections::BTreeSet;

/// What statements are made of, as far as it is not a name.
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

/// What stands before the name of a table.
const BEFORE_TABLES: [&str; 4] = ["from", "join", "describe", ".schema"];

/// The words that are known.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Tables and views, with their columns.
    tables: Vec<(String, Vec<String>)>,
    functions: Vec<String>,
}

impl Words {
    /// Asks for the names. Without an answer there are fewer words, and everything else works.
    pub(super) fn ask(asker: &Asker) -> Self {
        let named = |statement: &str| asker.fetch(statement, &[]).unwrap_or_default();
        let mut words = Self::default();
        for (table, column) in pairs(&named("SELECT table_name, column_name FROM columns")) {
            match words.tables.iter_mut().find(|(name, _)| *name == table) {
                Some((_, columns)) => columns.push(column),
                None => words.tables.push((table, vec![column])),
            }
        }
        let functions = named("SELECT DISTINCT routine_name, '' FROM information_schema.routines");
        words.functions = pairs(&functions).into_iter().map(|(name, _)| name).collect();
        // Operators have names that nobody types.
        words.functions.retain(|name| name.chars().all(is_word));
        words
    }

    /// Tables and views.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn is_keyword(&self, word: &str) -> bool {
        let word = word.to_ascii_uppercase();
        KEYWORDS.binary_search(&word.as_str()).is_ok()
    }

    /// What the word at the cursor can become, and where it begins.
    pub(super) fn completions(&self, line: &str, position: usize) -> (usize, Vec<String>) {
        let before = &line[..position];
        if let Some(found) = command_words(before) {
            return found;
        }
        let start = before.rfind(|c: char| !is_word(c)).map_or(0, |at| at + width_at(before, at));
        let typed = &before[start..];
        let found = match before[..start].strip_suffix('.') {
            Some(owner) => self.columns_of(line, owner, typed),
            None if is_after_table_word(&before[..start]) => fitting(typed, self.tables()),
            // Everything would be too much to look through.
            None if typed.is_empty() => fitting(typed, self.columns_in(line)),
            None => self.anything(line, typed),
        };
        (start, found.into_iter().collect())
    }

    /// Keywords, tables, functions, and the columns of tables that the statement names, or else of all.
    fn anything(&self, line: &str, typed: &str) -> BTreeSet<String> {
        let is_lower = typed.chars().all(|c| !c.is_uppercase());
        let keyword = |word: &&str| if is_lower { word.to_lowercase() } else { (*word).to_owned() };
        let keywords: Vec<String> = KEYWORDS.iter().map(keyword).collect();
        let mut found = fitting(typed, keywords.iter().map(String::as_str));
        if !is_lower && !found.is_empty() {
            // Whoever writes keywords large means one of them.
            return found;
        }
        found.extend(fitting(typed, self.tables()));
        found.extend(fitting(typed, self.functions.iter().map(String::as_str)));
        found.extend(fitting(typed, self.columns_in(line)));
        found
    }

    /// The columns of the tables that a statement names; of all, when it names none.
    fn columns_in(&self, line: &str) -> impl Iterator<Item = &str> {
        let names: BTreeSet<String> = names_in(line).collect();
        let names_one = self.tables().any(|table| names.contains(table));
        let tables = self.tables.iter().filter(move |(table, _)| !names_one || names.contains(table));
        tables.flat_map(|(_, columns)| columns.iter().map(String::as_str))
    }

    /// The columns after `owner.`, which is a table or stands for one.
    fn columns_of(&self, line: &str, owner: &str, typed: &str) -> BTreeSet<String> {
        let owner = owner.rsplit(|c: char| !is_word(c)).next().unwrap_or(owner).to_lowercase();
        match self.tables.iter().find(|(table, _)| *table == owner) {
            Some((_, columns)) => fitting(typed, columns.iter().map(String::as_str)),
            None => fitting(typed, self.columns_in(line)),
        }
    }
}

/// The length of the character there.
fn width_at(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(1, char::len_utf8)
}

fn is_after_table_word(before: &str) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    before.ends_with(char::is_whitespace) && BEFORE_TABLES.contains(&last.as_str())
}

/// Commands, and what can follow them.
fn command_words(before: &str) -> Option<(usize, Vec<String>)> {
    let line = before.trim_start();
    if !line.starts_with('.') {
        return None;
    }
    let Some((command, _)) = line.split_once(' ') else {
        let found = fitting(line, commands::NAMES.iter().map(|(name, ..)| *name));
        return Some((before.len() - line.len(), found.into_iter().collect()));
    };
    let start = before.rfind(' ').map_or(0, |at| at + 1);
    let formats: Vec<String> = Format::value_variants().iter().map(|format| format.name()).collect();
    let found = match command {
        ".mode" => fitting(&before[start..], formats.iter().map(String::as_str)),
        ".timer" => fitting(&before[start..], ["on", "off"].into_iter()),
        _ => return None,
    };
    Some((start, found.into_iter().collect()))
}

/// Those that go on as typed, in any case.
fn fitting<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> BTreeSet<String> {
    let typed = typed.to_lowercase();
    names.filter(|name| name.to_lowercase().starts_with(&typed)).map(str::to_owned).collect()
}

/// The first two columns of an answer, as texts.
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

    fn words() -> Words {
        let table = |name: &str, columns: &[&str]| {
            (name.to_owned(), columns.iter().map(|c| (*c).to_owned()).collect())
        };
        Words {
            tables: vec![
                table("events", &["service", "severity", "time"]),
                table("errors", &["service", "time"]),
                table("traffic", &["calls", "seconds"]),
            ],
            functions: vec!["sum".to_owned(), "strpos".to_owned()],
        }
    }

    /// What the line can become, where the cursor is at `|`.
    fn completed(line: &str) -> Vec<String> {
        let position = line.find('|').unwrap();
        let line = line.replace('|', "");
        let (start, found) = words().completions(&line, position);
        found.into_iter().map(|word| format!("{}{word}", &line[..start])).collect()
    }

    #[test]
    fn what_fits_depends_on_where_it_is() {
        for (line, found) in [
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
            assert_eq!(completed(line), found, "{line}");
        }
    }

    #[test]
    fn keywords_are_sorted_so_that_they_are_found() {
        assert!(KEYWORDS.is_sorted());
        assert!(words().is_keyword("select") && !words().is_keyword("service"));
    }
}
