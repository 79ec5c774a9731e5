//! Helpers for functions that take texts and return texts.

use arrow::array::{Array, ArrayRef, StringViewArray, StringViewBuilder};
use arrow::datatypes::DataType;
use datafusion::common::cast::as_string_view_array;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::ColumnarValue;
use std::sync::Arc;

/// The type that arguments are cast to and that results have.
pub(super) const TEXT: DataType = DataType::Utf8View;

/// Coerces arguments to [`TEXT`]: texts of any memory layout, and numbers.
pub(super) fn coerce_to_text(
    function: &str,
    argument_types: &[DataType],
    expected: usize,
) -> Result<Vec<DataType>> {
    if argument_types.len() != expected {
        return plan_err!("{function} takes {expected} argument(s), and got {}", argument_types.len());
    }
    match argument_types.iter().find(|data_type| !is_text(data_type)) {
        Some(other) => plan_err!("{function} takes texts and numbers, and got {other}"),
        None => Ok(vec![TEXT; expected]),
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        DataType::Dictionary(_, values) => is_text(values),
        other => other.is_numeric(),
    }
}

/// Calls a function of one text for each row, and returns NULL for NULL. A row that equals the one before is not
/// computed again.
pub(super) fn map_texts(
    texts: &ColumnarValue,
    mut function: impl FnMut(&str) -> Result<Option<String>>,
) -> Result<ColumnarValue> {
    match texts {
        ColumnarValue::Scalar(scalar) => {
            let text = scalar.try_as_str().flatten();
            let result = text.map(&mut function).transpose()?.flatten();
            Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(result)))
        }
        ColumnarValue::Array(texts) => {
            let texts = as_string_view_array(texts)?;
            Ok(ColumnarValue::Array(map_rows(texts.len(), |row| value(texts, row), function)?))
        }
    }
}

/// Calls a function of two texts for each row, and returns NULL if either is NULL.
pub(super) fn map_text_pairs(
    pair: &[ColumnarValue; 2],
    rows: usize,
    mut function: impl FnMut(&str, &str) -> Result<Option<String>>,
) -> Result<ColumnarValue> {
    let is_scalar = pair.iter().all(|one| matches!(one, ColumnarValue::Scalar(_)));
    let [first, second] = pair;
    let (first, second) = (first.to_array(rows)?, second.to_array(rows)?);
    let (first, second) = (as_string_view_array(&first)?, as_string_view_array(&second)?);
    let pair_at = |row| value(first, row).zip(value(second, row));
    let result = map_rows(rows, pair_at, |(first, second)| function(first, second))?;
    match is_scalar && rows > 0 {
        true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)),
        false => Ok(ColumnarValue::Array(result)),
    }
}

fn value(texts: &StringViewArray, row: usize) -> Option<&str> {
    texts.is_valid(row).then(|| texts.value(row))
}

/// Maps rows, and reuses the result of the row before: tables are sorted by service and code, so neighbours are mostly
/// equal.
fn map_rows<T: Copy + PartialEq>(
    rows: usize,
    input: impl Fn(usize) -> Option<T>,
    mut function: impl FnMut(T) -> Result<Option<String>>,
) -> Result<ArrayRef> {
    let mut results = StringViewBuilder::with_capacity(rows);
    let mut last: Option<(T, Option<String>)> = None;
    for row in 0..rows {
        let Some(value) = input(row) else {
            results.append_null();
            continue;
        };
        let result = match last.take() {
            Some((known, result)) if known == value => result,
            _ => function(value)?,
        };
        results.append_option(result.as_deref());
        last = Some((value, result));
    }
    Ok(Arc::new(results.finish()))
}
