//! A settings file as it is written: keys and values, each with its place.

use toml::de::{DeTable, DeValue};

/// A setting as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    /// With dots between tables.
    pub(super) key: String,
    pub(super) value: Value,
    line: usize,
    column: usize,
}

/// What stands behind a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Flag(bool),
    /// A text or a number.
    One(String),
    Many(Vec<String>),
    /// Nothing that a setting can be, and why.
    Wrong(String),
}

/// What is wrong, and where; lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) what: String,
}

impl Written {
    /// A mistake in this one.
    pub(super) fn mistake(&self, what: String) -> Mistake {
        let what = if what.contains(&self.key) { what } else { format!("{}: {what}", self.key) };
        Mistake { line: self.line, column: self.column, what }
    }
}

/// Reads the text of a file.
pub(super) fn read(text: &str) -> Result<Vec<Written>, Mistake> {
    let table = DeTable::parse(text).map_err(|error| {
        let (line, column) = place(text, error.span().map_or(0, |span| span.start));
        Mistake { line, column, what: error.message().to_owned() }
    })?;
    let mut written = Vec::new();
    collect(text, "", table.get_ref(), &mut written);
    Ok(written)
}

fn collect(text: &str, prefix: &str, table: &DeTable<'_>, written: &mut Vec<Written>) {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (name, value) in entries {
        let key = match prefix {
            "" => name.get_ref().to_string(),
            _ => format!("{prefix}.{}", name.get_ref()),
        };
        if let DeValue::Table(table) = value.get_ref() {
            collect(text, &key, table, written);
        } else {
            let (line, column) = place(text, name.span().start);
            written.push(Written { key, value: read_value(value.get_ref()), line, column });
        }
    }
}

fn read_value(value: &DeValue<'_>) -> Value {
    let read = match value {
        DeValue::Boolean(flag) => return Value::Flag(*flag),
        DeValue::Array(values) => {
            values.iter().map(|value| one(value.get_ref())).collect::<Result<_, _>>().map(Value::Many)
        }
        other => one(other).map(Value::One),
    };
    read.unwrap_or_else(Value::Wrong)
}

fn one(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        other => Err(format!("write a text in quotes or a whole number, not a {}", other.type_str())),
    }
}

/// Settings that are written more than once, in different ways.
pub(super) fn twice(written: &[Written]) -> impl Iterator<Item = Mistake> {
    let name = |written: &Written| written.key.replace(['.', '-'], "_");
    written.iter().enumerate().filter_map(move |(place, setting)| {
        let first = written[..place].iter().find(|earlier| name(earlier) == name(setting))?;
        Some(setting.mistake(format!("{} was said before, in line {}", setting.key, first.line)))
    })
}

/// The line and the column of a byte.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(byte)];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}
