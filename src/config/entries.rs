//! The keys and values of a config file, each with its line and column.

use super::file::flag_id;
use toml::de::{DeTable, DeValue};

/// A key of the file with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileEntry {
    /// The key, with dots between the names of tables.
    pub(super) key: String,
    pub(super) value: Value,
    line: usize,
    column: usize,
}

/// The value of a key, as far as a setting can have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Bool(bool),
    /// A string or an integer.
    Scalar(String),
    List(Vec<String>),
    /// A value that no setting can have, with the reason.
    Invalid(String),
}

/// A mistake in the file. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigProblem {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
}

impl FileEntry {
    /// Returns a problem with this entry. The message is prefixed with the key unless it contains it.
    pub(super) fn problem(&self, message: String) -> ConfigProblem {
        let message = if message.contains(&self.key) { message } else { format!("{}: {message}", self.key) };
        ConfigProblem { line: self.line, column: self.column, message }
    }
}

/// Parses the text of a file.
pub(super) fn parse(text: &str) -> Result<Vec<FileEntry>, ConfigProblem> {
    let table = DeTable::parse(text).map_err(|error| {
        let (line, column) = line_and_column(text, error.span().map_or(0, |span| span.start));
        ConfigProblem { line, column, message: error.message().to_owned() }
    })?;
    let mut entries = Vec::new();
    collect(text, "", table.get_ref(), &mut entries);
    Ok(entries)
}

fn collect(text: &str, prefix: &str, table: &DeTable<'_>, entries: &mut Vec<FileEntry>) {
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    for (name, value) in pairs {
        let key = match prefix {
            "" => name.get_ref().to_string(),
            _ => format!("{prefix}.{}", name.get_ref()),
        };
        if let DeValue::Table(table) = value.get_ref() {
            collect(text, &key, table, entries);
        } else {
            let (line, column) = line_and_column(text, name.span().start);
            entries.push(FileEntry { key, value: parse_value(value.get_ref()), line, column });
        }
    }
}

fn parse_value(value: &DeValue<'_>) -> Value {
    let parsed = match value {
        DeValue::Boolean(flag) => return Value::Bool(*flag),
        DeValue::Array(values) => values
            .iter()
            .map(|value| parse_scalar(value.get_ref()))
            .collect::<Result<_, _>>()
            .map(Value::List),
        other => parse_scalar(other).map(Value::Scalar),
    };
    parsed.unwrap_or_else(Value::Invalid)
}

fn parse_scalar(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        other => Err(format!("write a string in quotes or a whole number, not a {}", other.type_str())),
    }
}

/// Finds settings that occur more than once, under different spellings of the key.
pub(super) fn duplicates(entries: &[FileEntry]) -> impl Iterator<Item = ConfigProblem> {
    entries.iter().enumerate().filter_map(move |(index, entry)| {
        let first = entries[..index].iter().find(|earlier| flag_id(&earlier.key) == flag_id(&entry.key))?;
        Some(entry.problem(format!("{} is already set in line {}", entry.key, first.line)))
    })
}

/// Returns the line and the column of a byte offset.
fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(byte)];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}
