//! Combines rows that agree in all columns of the sort order, by adding up their numbers.
//!
//! Traffic arrives as partial sums, a few for each WAL record. In a sorted table, rows that can be combined are
//! adjacent.

use super::event_counts::combined;
use super::layout::Layout;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};
use std::ops::Range;
use std::sync::Arc;

/// Returns the columns of the sort order, as bytes that compare like the rows.
pub(super) fn order_of(layout: &Layout, batch: &RecordBatch) -> Result<Rows, ArrowError> {
    let columns: Option<Vec<ArrayRef>> =
        layout.order.iter().map(|name| batch.column_by_name(name).cloned()).collect();
    let columns =
        columns.ok_or_else(|| ArrowError::SchemaError("a column of the order is missing".to_owned()))?;
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    RowConverter::new(fields)?.convert_columns(&columns)
}

/// Combines adjacent rows that agree in the whole sort order into one row; numbers are added up.
pub(super) fn added_up(layout: &Layout, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let runs = runs(&order_of(layout, batch)?);
    let firsts = UInt64Array::from_iter_values(runs.iter().map(|run| run.start as u64));
    let schema = batch.schema();
    let column = |(place, column): (usize, &ArrayRef)| {
        if layout.order.contains(&schema.field(place).name().as_str()) {
            return take(column, &firsts, None);
        }
        if let Some(values) = combined(batch, schema.field(place).name(), &runs)? {
            return Ok(values);
        }
        let numbers = column.as_primitive_opt::<Int64Type>();
        let numbers = numbers.ok_or_else(|| {
            ArrowError::SchemaError(format!("{} cannot be added up", schema.field(place).name()))
        })?;
        let sum = |run: &Range<usize>| {
            numbers.values()[run.clone()].iter().fold(0_i64, |a, b| a.saturating_add(*b))
        };
        Ok(Arc::new(Int64Array::from_iter_values(runs.iter().map(sum))) as ArrayRef)
    };
    let columns = batch.columns().iter().enumerate().map(column).collect::<Result<_, _>>()?;
    RecordBatch::try_new(schema.clone(), columns)
}

/// Returns the ranges of rows that are equal.
fn runs(rows: &Rows) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut begin = 0;
    for end in 1..=rows.num_rows() {
        if end == rows.num_rows() || rows.row(end) != rows.row(begin) {
            runs.push(begin..end);
            begin = end;
        }
    }
    runs
}
