//! Sorts the rows of many records, and splits them by day.
//!
//! Names and words are dictionaries with a few hundred values for a hundred thousand rows: the values are ranked once,
//! and rows are compared by small numbers. Every row is copied once, when the sorted columns are built.
//!
//! Invariant: every row that goes in comes out once, with its day. Rows of a table that is summed may be added up with
//! others that agree in everything except their numbers.

use super::aggregate::added_up;
use super::layout::Layout;
use crate::schema::Table;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::interleave;
use arrow::datatypes::{Int8Type, Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use hashbrown::HashMap;
use std::ops::Range;

/// The number of microseconds in a day.
pub const DAY_US: i64 = 86_400_000_000;
/// The first and the last day that dates can have for other programs: 0001-01-01 and 9999-12-31.
const FIRST_DAY: i32 = -719_162;
const LAST_DAY: i32 = 2_932_896;
/// The length of the longest sort key: the day, seven names, and a time in two halves.
const WORDS: usize = 10;

/// The rows of many batches, sorted by day and then in the order of their table.
pub struct Sorted<'b> {
    table: Table,
    batches: &'b [RecordBatch],
    rows: Vec<Row>,
}

/// The sort key of a row, and its position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    key: [u32; WORDS],
    batch: u32,
    row: u32,
}

impl<'b> Sorted<'b> {
    /// Sorts the batches of a table, all with its current schema.
    ///
    /// # Errors
    /// Fails when a batch does not have the table's schema.
    pub fn new(table: Table, batches: &'b [RecordBatch]) -> Result<Self, ArrowError> {
        Ok(Self { table, batches, rows: sorted_rows(super::layout::of(table), batches)? })
    }

    /// Returns the days, oldest first, each with the positions of its rows.
    #[must_use]
    pub fn days(&self) -> Vec<(i32, Range<usize>)> {
        let day = |range: &Range<usize>| self.rows[range.start].key[0].cast_signed() ^ i32::MIN;
        runs(&self.rows, |row| row.key[0]).into_iter().map(|range| (day(&range), range)).collect()
    }

    /// Builds a batch of the rows at some positions.
    ///
    /// # Errors
    /// Fails when a column would be too long for Arrow.
    pub fn gather(&self, places: Range<usize>) -> Result<RecordBatch, ArrowError> {
        let layout = super::layout::of(self.table);
        let columns = gathered(self.batches, &self.rows[places])?;
        let rows = RecordBatch::try_new(self.table.schema(), columns)?;
        if layout.sums { added_up(layout, &rows) } else { Ok(rows) }
    }
}

fn sorted_rows(layout: &Layout, batches: &[RecordBatch]) -> Result<Vec<Row>, ArrowError> {
    let mut rows: Vec<Row> = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for (batch, number) in batches.iter().zip(0..) {
        let of_batch = 0..u32::try_from(batch.num_rows()).map_err(|_| too_long())?;
        rows.extend(of_batch.map(|row| Row { key: [0; WORDS], batch: number, row }));
    }
    let mut word = 1;
    for name in layout.order {
        if *name == layout.time {
            set_times(&mut rows, &times(batches, name)?, word);
            word += 2;
        } else {
            set_ranks(&mut rows, &ranks(batches, name)?, word);
            word += 1;
        }
    }
    rows.sort_unstable();
    Ok(rows)
}

fn times<'b>(batches: &'b [RecordBatch], name: &str) -> Result<Vec<&'b [i64]>, ArrowError> {
    let times = |batch: &'b RecordBatch| {
        let times = batch.column_by_name(name)?.as_primitive_opt::<TimestampMicrosecondType>()?;
        Some(&times.values()[..])
    };
    batches.iter().map(|batch| times(batch).ok_or_else(|| no_column(name))).collect()
}

/// Returns the day of a time. A time outside of the calendar is assigned to the nearest day.
pub(super) fn day_of(time: i64) -> i32 {
    let day = time.div_euclid(DAY_US).clamp(FIRST_DAY.into(), LAST_DAY.into());
    i32::try_from(day).unwrap_or_default()
}

/// Puts the day at the start of the sort key, and the time at its position in the sort order.
fn set_times(rows: &mut [Row], times: &[&[i64]], word: usize) {
    for row in rows {
        let time = times[row.batch as usize][row.row as usize];
        // The sign bit is flipped, so that times before 1970 come first among unsigned numbers, too.
        let flipped = (time ^ i64::MIN).cast_unsigned();
        row.key[0] = (day_of(time) ^ i32::MIN).cast_unsigned();
        row.key[word] = (flipped >> 32) as u32;
        row.key[word + 1] = flipped as u32;
    }
}

fn set_ranks(rows: &mut [Row], ranks: &[Vec<u32>], word: usize) {
    for row in rows {
        row.key[word] = ranks[row.batch as usize][row.row as usize];
    }
}

/// Returns for each batch and row the rank of its name among all names; 0 for none.
fn ranks(batches: &[RecordBatch], name: &str) -> Result<Vec<Vec<u32>>, ArrowError> {
    let columns: Vec<Names<'_>> = batches
        .iter()
        .map(|batch| batch.column_by_name(name).and_then(Names::of).ok_or_else(|| no_column(name)))
        .collect::<Result<_, _>>()?;
    let mut places: HashMap<&str, u32> = HashMap::new();
    for names in &columns {
        for value in names.values.iter().flatten() {
            places.insert(value, 0);
        }
    }
    let mut order: Vec<&str> = places.keys().copied().collect();
    order.sort_unstable();
    for (name, place) in order.into_iter().zip(1..) {
        places.insert(name, place);
    }
    Ok(columns.iter().map(|names| names.ranks(&places)).collect())
}

/// A column of names: a dictionary with small or large keys.
struct Names<'b> {
    column: &'b ArrayRef,
    values: &'b StringArray,
}

impl<'b> Names<'b> {
    fn of(column: &'b ArrayRef) -> Option<Self> {
        let values = column.as_any_dictionary_opt()?.values().as_string_opt()?;
        Some(Self { column, values })
    }

    fn ranks(&self, places: &HashMap<&str, u32>) -> Vec<u32> {
        let of_value: Vec<u32> =
            self.values.iter().map(|value| value.map_or(0, |value| places[value])).collect();
        let rank = |key: Option<usize>| key.and_then(|key| of_value.get(key)).copied().unwrap_or(0);
        if let Some(words) = self.column.as_dictionary_opt::<Int8Type>() {
            return words.keys().iter().map(|key| rank(key.and_then(|key| key.try_into().ok()))).collect();
        }
        let names = self.column.as_dictionary_opt::<Int32Type>();
        let keys = names.into_iter().flat_map(|names| names.keys().iter());
        keys.map(|key| rank(key.and_then(|key| key.try_into().ok()))).collect()
    }
}

/// Returns the ranges of rows that agree in a property.
fn runs<T: PartialEq>(rows: &[Row], of: impl Fn(&Row) -> T) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut begin = 0;
    for end in 1..=rows.len() {
        if end == rows.len() || of(&rows[end]) != of(&rows[begin]) {
            runs.push(begin..end);
            begin = end;
        }
    }
    runs
}

/// Returns all columns, in the order of the rows.
fn gathered(batches: &[RecordBatch], rows: &[Row]) -> Result<Vec<ArrayRef>, ArrowError> {
    let places = places(rows);
    (0..columns(batches)).map(|column| gather(batches, column, &places)).collect()
}

fn gather(batches: &[RecordBatch], column: usize, places: &[(usize, usize)]) -> Result<ArrayRef, ArrowError> {
    let arrays: Vec<&dyn Array> = batches.iter().map(|batch| &**batch.column(column)).collect();
    interleave(&arrays, places)
}

fn places(rows: &[Row]) -> Vec<(usize, usize)> {
    rows.iter().map(|row| (row.batch as usize, row.row as usize)).collect()
}

fn columns(batches: &[RecordBatch]) -> usize {
    batches.first().map_or(0, RecordBatch::num_columns)
}

fn no_column(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("a batch has no column {name} of the expected type"))
}

fn too_long() -> ArrowError {
    ArrowError::InvalidArgumentError("a batch of more than four billion rows".to_owned())
}
