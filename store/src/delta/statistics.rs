//! The statistics of a file in the Delta log: rows, minima, maxima and nulls.
//!
//! Invariant: no value in the file is below the minimum or above the maximum. The Delta log has times in milliseconds,
//! as other programs write them, so minima are rounded down and maxima are rounded up.

use super::layout::{self, Layout};
use crate::schema::Table;
use arrow::datatypes::DataType;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics as Found;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The statistics of a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Statistics {
    /// The number of rows.
    pub num_records: u64,
    /// The lower bounds of the values of some columns.
    pub min_values: Map<String, Value>,
    /// The upper bounds of the values of some columns.
    pub max_values: Map<String, Value>,
    /// The number of null values in some columns.
    pub null_count: Map<String, Value>,
}

impl Statistics {
    /// Reads the statistics from the footer of a file.
    #[must_use]
    pub fn of_file(table: Table, footer: &ParquetMetaData) -> Self {
        let layout: &Layout = layout::of(table);
        let schema = layout::file_schema(table);
        let rows = footer.file_metadata().num_rows().unsigned_abs();
        let mut statistics = Self { num_records: rows, ..Self::default() };
        for name in layout.statistics {
            let Some(field) = schema.field_with_name(name).ok() else { continue };
            let Some(bounds) = Bounds::of_column(name, footer.row_groups()) else { continue };
            let is_time = matches!(field.data_type(), DataType::Timestamp(..));
            let mut put = |into: fn(&mut Self) -> &mut Map<String, Value>, value: Option<Value>| {
                if let Some(value) = value {
                    into(&mut statistics).insert((*name).to_owned(), value);
                }
            };
            put(|s| &mut s.min_values, bounds.low.and_then(|low| low.value(is_time, i64::div_euclid)));
            put(|s| &mut s.max_values, bounds.high.and_then(|high| high.value(is_time, ceiling)));
            put(|s| &mut s.null_count, Some(Value::from(bounds.nulls)));
        }
        statistics
    }

    /// Parses the statistics from a Delta log. They are empty if the text is not valid.
    #[must_use]
    pub fn from_json(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Returns the statistics in the format of the Delta log.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the bounds of a column of times, in microseconds since 1970.
    #[must_use]
    pub fn times(&self, column: &str) -> Option<(i64, i64)> {
        let time = |values: &Map<String, Value>| classifier::time::parse(values.get(column)?.as_str()?);
        Some((time(&self.min_values)?, time(&self.max_values)?))
    }
}

fn ceiling(value: i64, by: i64) -> i64 {
    value.div_euclid(by) + i64::from(value.rem_euclid(by) != 0)
}

/// The bounds of a column over all row groups.
#[derive(Default)]
struct Bounds {
    low: Option<Bound>,
    high: Option<Bound>,
    nulls: u64,
}

#[derive(PartialEq, PartialOrd)]
enum Bound {
    Whole(i64),
    Text(String),
}

impl Bounds {
    /// Returns `None` when a row group has no statistics, because then nothing is known about the file.
    fn of_column(name: &str, groups: &[RowGroupMetaData]) -> Option<Self> {
        let mut bounds = Self::default();
        for group in groups {
            let column = group.columns().iter().find(|column| column.column_path().string() == name)?;
            let found = column.statistics()?;
            let nulls = found.null_count_opt()?;
            bounds.nulls += nulls;
            // A row group that has only nulls has no bounds, and needs none.
            if nulls < group.num_rows().unsigned_abs() {
                let (low, high) = Bound::both(found)?;
                bounds.low = Some(match bounds.low.take() {
                    Some(known) if known <= low => known,
                    _ => low,
                });
                bounds.high = Some(match bounds.high.take() {
                    Some(known) if known >= high => known,
                    _ => high,
                });
            }
        }
        Some(bounds)
    }
}

impl Bound {
    fn both(found: &Found) -> Option<(Self, Self)> {
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(|text| Self::Text(text.to_owned()));
        Some(match found {
            Found::Int32(of) => (Self::Whole((*of.min_opt()?).into()), Self::Whole((*of.max_opt()?).into())),
            Found::Int64(of) => (Self::Whole(*of.min_opt()?), Self::Whole(*of.max_opt()?)),
            Found::ByteArray(of) => (text(of.min_bytes_opt()?)?, text(of.max_bytes_opt()?)?),
            _ => return None,
        })
    }

    fn value(self, is_time: bool, to_millis: fn(i64, i64) -> i64) -> Option<Value> {
        match self {
            Self::Whole(micros) if is_time => {
                let rounded = to_millis(micros, 1000).checked_mul(1000)?;
                Some(Value::from(classifier::time::format(rounded)))
            }
            Self::Whole(number) => Some(Value::from(number)),
            Self::Text(text) => Some(Value::from(text)),
        }
    }
}
