//! Formats values for tables: short, and without characters that a terminal could act on.

use crate::cli::terminal::sanitize;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// A value in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    Text(String),
}

/// Returns true when a column has numbers, which are aligned to the right.
pub(super) fn is_right_aligned(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

/// Returns true when a truncated value would be misleading.
pub(super) fn is_never_truncated(data_type: &DataType) -> bool {
    data_type.is_numeric() || data_type.is_temporal() || *data_type == DataType::Boolean
}

/// Formats the values of a column. Long texts are truncated to `max_chars` characters.
pub(super) fn format_column(column: &ArrayRef, max_chars: usize) -> Result<Vec<Cell>, ArrowError> {
    let timestamp_format = match column.data_type() {
        DataType::Timestamp(_, Some(timestamp_format))
            if !["UTC", "+00:00", "Z"].contains(&timestamp_format.as_ref()) =>
        {
            "%Y-%m-%d %H:%M:%S%.f%:z"
        }
        _ => "%Y-%m-%d %H:%M:%S%.fZ",
    };
    let options = FormatOptions::new()
        .with_display_error(true)
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some(timestamp_format));
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let value = |row: usize| match float(column, row) {
        Some(value) => format_float(value),
        None if is_never_truncated(column.data_type()) => formatter.value(row).to_string(),
        None => truncate(&formatter.value(row).to_string(), max_chars),
    };
    let cell = |row: usize| if column.is_null(row) { Cell::Null } else { Cell::Text(value(row)) };
    // Columns of type null have no null bitmap.
    let is_null_type = *column.data_type() == DataType::Null;
    Ok((0..column.len()).map(|row| if is_null_type { Cell::Null } else { cell(row) }).collect())
}

fn float(column: &ArrayRef, row: usize) -> Option<f64> {
    match column.data_type() {
        DataType::Float64 => Some(column.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => Some(column.as_primitive::<Float32Type>().value(row).into()),
        _ => None,
    }
}

/// Formats a number with at most six decimals. Numbers for which that is too few or too many digits are shown in full.
fn format_float(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || size >= 1e15 || (size < 1e-4 && size > 0.0) {
        return value.to_string();
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", sanitize(&text[..end])),
        None => sanitize(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, NullArray, StringArray, TimestampMicrosecondArray};
    use std::sync::Arc;

    fn texts(column: impl Array + 'static) -> Vec<String> {
        let text = |cell| match cell {
            Cell::Null => "(null)".to_owned(),
            Cell::Text(text) => text,
        };
        let column: ArrayRef = Arc::new(column);
        format_column(&column, 8).unwrap().into_iter().map(text).collect()
    }

    #[test]
    fn values_read_well() {
        let times = TimestampMicrosecondArray::from(vec![Some(1_700_000_000_123_456), None]);
        assert_eq!(texts(times.clone()), ["2023-11-14 22:13:20.123456", "(null)"]);
        assert_eq!(texts(times.with_timezone("UTC"))[0], "2023-11-14 22:13:20.123456Z");
        let floats = Float64Array::from(vec![1.0 / 3.0, 2.0, 0.0, 1e-9, 1e20, f64::NAN, -12.5]);
        assert_eq!(
            texts(floats),
            ["0.333333", "2", "0", "0.000000001", "100000000000000000000", "NaN", "-12.5"]
        );
        let words =
            StringArray::from(vec![Some("short"), Some(""), None, Some("rather long"), Some("\u{1b}[31m")]);
        assert_eq!(texts(words), ["short", "", "(null)", "rather l…", "\\u{1b}[31m"]);
        assert_eq!(texts(NullArray::new(2)), ["(null)", "(null)"]);
    }
}
