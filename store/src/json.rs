//! Writes stored rows as JSON, one line each, as `faultline dump` prints them.
//!
//! The format is that in which `faultline classify` writes events: cells without a value are omitted, times are RFC
//! 3339, and JSON columns are JSON, not text.

use crate::schema::Table;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Float64Type, Int8Type, Int32Type, Int64Type, TimestampMicrosecondType};
use std::fmt::Write;

/// Appends every row of a batch as one line of JSON.
pub fn lines(table: Table, batch: &RecordBatch, out: &mut String) {
    let schema = batch.schema();
    let columns: Vec<(&str, Cells<'_>)> = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, column)| (field.name().as_str(), Cells::of(column, is_json(table, field.name()))))
        .collect();
    for row in 0..batch.num_rows() {
        let mut separator = '{';
        for (name, cells) in &columns {
            if cells.is_present(row) {
                out.push(separator);
                separator = ',';
                string(name, out);
                out.push(':');
                cells.write(row, out);
            }
        }
        out.push_str(if separator == '{' { "{}\n" } else { "}\n" });
    }
}

fn is_json(table: Table, name: &str) -> bool {
    table.columns().iter().any(|column| column.name == name && column.is_json)
}

/// A column, whose type was determined once.
enum Cells<'b> {
    Json(&'b StringArray),
    Text(&'b StringArray),
    Word {
        keys: &'b dyn Array,
        indices: DictionaryKeys<'b>,
        values: &'b StringArray,
    },
    Words(&'b arrow::array::ListArray),
    Time(&'b TimestampMicrosecondArray),
    Small(&'b Int32Array),
    Whole(&'b Int64Array),
    Number(&'b Float64Array),
    Flag(&'b BooleanArray),
    /// A type that no table has.
    Other,
}

/// The keys of a dictionary array.
enum DictionaryKeys<'b> {
    Byte(&'b [i8]),
    Word(&'b [i32]),
}

impl DictionaryKeys<'_> {
    fn of(&self, row: usize) -> usize {
        let key = match self {
            Self::Byte(keys) => i32::from(keys[row]),
            Self::Word(keys) => keys[row],
        };
        usize::try_from(key).unwrap_or_default()
    }
}

impl<'b> Cells<'b> {
    fn of(column: &'b ArrayRef, is_json: bool) -> Self {
        match column.data_type() {
            DataType::Utf8 if is_json => Self::Json(column.as_string()),
            DataType::Utf8 => Self::Text(column.as_string()),
            DataType::Timestamp(..) => {
                column.as_primitive_opt::<TimestampMicrosecondType>().map_or(Self::Other, Self::Time)
            }
            DataType::Int32 => Self::Small(column.as_primitive::<Int32Type>()),
            DataType::Int64 => Self::Whole(column.as_primitive::<Int64Type>()),
            DataType::Float64 => Self::Number(column.as_primitive::<Float64Type>()),
            DataType::Boolean => Self::Flag(column.as_boolean()),
            DataType::List(_) => Self::Words(column.as_list()),
            DataType::Dictionary(..) => Self::word(column).unwrap_or(Self::Other),
            _ => Self::Other,
        }
    }

    fn word(column: &'b ArrayRef) -> Option<Self> {
        if let Some(words) = column.as_dictionary_opt::<Int8Type>() {
            let values = words.values().as_string_opt()?;
            return Some(Self::Word {
                keys: words.keys(),
                indices: DictionaryKeys::Byte(words.keys().values()),
                values,
            });
        }
        let words = column.as_dictionary_opt::<Int32Type>()?;
        let values = words.values().as_string_opt()?;
        Some(Self::Word { keys: words.keys(), indices: DictionaryKeys::Word(words.keys().values()), values })
    }

    /// Returns true if a cell is written: it is not null and not an empty list.
    fn is_present(&self, row: usize) -> bool {
        match self {
            Self::Json(cells) | Self::Text(cells) => cells.is_valid(row),
            Self::Word { keys, .. } => keys.is_valid(row),
            Self::Words(cells) => cells.is_valid(row) && cells.value_length(row) > 0,
            Self::Time(cells) => cells.is_valid(row),
            Self::Small(cells) => cells.is_valid(row),
            Self::Whole(cells) => cells.is_valid(row),
            Self::Number(cells) => cells.is_valid(row),
            Self::Flag(cells) => cells.is_valid(row),
            Self::Other => false,
        }
    }

    fn write(&self, row: usize, out: &mut String) {
        match self {
            Self::Json(cells) => out.push_str(cells.value(row)),
            Self::Text(cells) => string(cells.value(row), out),
            Self::Word { indices, values, .. } => string(values.value(indices.of(row)), out),
            Self::Words(cells) => list(&cells.value(row), out),
            Self::Time(cells) => string(&classifier::time::format(cells.value(row)), out),
            // Writing to a `String` cannot fail.
            Self::Small(cells) => drop(write!(out, "{}", cells.value(row))),
            Self::Whole(cells) => drop(write!(out, "{}", cells.value(row))),
            Self::Number(cells) => number(cells.value(row), out),
            Self::Flag(cells) => out.push_str(if cells.value(row) { "true" } else { "false" }),
            Self::Other => out.push_str("null"),
        }
    }
}

/// Writes whole numbers without a fraction, as senders write them.
fn number(value: f64, out: &mut String) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        out.push_str(&format!("{value:.0}"));
    } else {
        out.push_str(&serde_json::Value::from(value).to_string());
    }
}

fn list(words: &ArrayRef, out: &mut String) {
    let cells = Cells::of(words, false);
    out.push('[');
    for indices in 0..words.len() {
        if indices > 0 {
            out.push(',');
        }
        cells.write(indices, out);
    }
    out.push(']');
}

fn string(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
