//! Sorts the rows of many records, and splits them by day.
//!
//! Rows are sorted by one integer. It is made of the time and of the rank of the row's group: the combination of all
//! other columns of the sort order. Names are dictionaries with a few hundred values for a hundred thousand rows, so
//! values are ranked once, a group is one look-up, and no text is compared for a row.
//!
//! Invariant: every row that goes in comes out once, with its day. Rows of a table that is summed may be added up with
//! others that agree in everything except their numbers.

use super::aggregate::added_up;
use super::layout::Layout;
use super::names::NamesOf;
use crate::schema::Table;
use arrow::array::{AsArray, RecordBatch};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::ops::Range;

/// The number of microseconds in a day.
pub const DAY_US: i64 = 86_400_000_000;
/// The first and the last day that dates can have for other programs: 0001-01-01 and 9999-12-31.
const FIRST_DAY: i32 = -719_162;
const LAST_DAY: i32 = 2_932_896;
/// The number of columns of the longest sort order that the WAL's tables have, without the time.
const NAMES: usize = 7;

/// The rows of many batches, sorted by day and then in the order of their table.
pub struct Sorted<'b> {
    table: Table,
    batches: &'b [RecordBatch],
    rows: Vec<Row>,
}

/// The sort key of a row, and its position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    key: u128,
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

    /// Returns the batches that the rows are in.
    #[must_use]
    pub fn batches(&self) -> &'b [RecordBatch] {
        self.batches
    }

    /// Returns the days, oldest first, each with the positions of its rows.
    #[must_use]
    pub fn days(&self) -> Vec<(i32, Range<usize>)> {
        let is_time_first = super::layout::of(self.table).is_time_first();
        let day = |row: &Row| day_of(row.time(is_time_first));
        let mut days = Vec::new();
        let mut begin = 0;
        while let Some(first) = self.rows.get(begin) {
            let day_of_first = day(first);
            let end = begin + self.rows[begin..].partition_point(|row| day(row) == day_of_first);
            days.push((day_of_first, begin..end));
            begin = end;
        }
        days
    }

    /// Returns the sorted rows at some positions, each as its batch and its row in it.
    #[must_use]
    pub fn places(&self, range: Range<usize>) -> Vec<(usize, usize)> {
        self.rows[range].iter().map(|row| (row.batch as usize, row.row as usize)).collect()
    }

    /// Returns the sums of the rows at some positions, if the table is one that is summed.
    ///
    /// # Errors
    /// Fails when a column would be too long for Arrow.
    pub fn sums(&self, range: Range<usize>) -> Result<Option<RecordBatch>, ArrowError> {
        let layout = super::layout::of(self.table);
        if !layout.sums {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        added_up(layout, &interleave_record_batch(&batches, &self.places(range))?).map(Some)
    }
}

impl Row {
    /// Creates a row. The day comes first even if the time comes after the group.
    fn new(is_time_first: bool, time: i64, group: u32, (batch, row): (u32, u32)) -> Self {
        // The sign bit is flipped, so that times before 1970 come first among unsigned numbers, too.
        let flipped = u128::from((time ^ i64::MIN).cast_unsigned());
        let key = if is_time_first {
            flipped << 64 | u128::from(group)
        } else {
            let day = (day_of(time) ^ i32::MIN).cast_unsigned();
            u128::from(day) << 96 | u128::from(group) << 64 | flipped
        };
        Self { key, batch, row }
    }

    fn time(&self, is_time_first: bool) -> i64 {
        let flipped = if is_time_first { self.key >> 64 } else { self.key } as u64;
        flipped.cast_signed() ^ i64::MIN
    }
}

/// Returns the day of a time. A time outside of the calendar is assigned to the nearest day.
pub(super) fn day_of(time: i64) -> i32 {
    let day = time.div_euclid(DAY_US).clamp(FIRST_DAY.into(), LAST_DAY.into());
    i32::try_from(day).unwrap_or_default()
}

fn sorted_rows(layout: &Layout, batches: &[RecordBatch]) -> Result<Vec<Row>, ArrowError> {
    let groups = groups(layout, batches)?;
    let is_time_first = layout.is_time_first();
    let mut rows: Vec<Row> = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    let mut groups = groups.into_iter();
    for (batch, number) in batches.iter().zip(0..) {
        let times = batch.column_by_name(layout.time);
        let times = times.and_then(|times| times.as_primitive_opt::<TimestampMicrosecondType>());
        let times = times.ok_or_else(|| no_column(layout.time))?.values();
        let places = (0..).map(|row| (number, row));
        let sorted = times.iter().zip(groups.by_ref()).zip(places);
        rows.extend(sorted.map(|((time, group), place)| Row::new(is_time_first, *time, group, place)));
    }
    rows.sort_unstable();
    Ok(rows)
}

/// Returns the rank of the group of each row, over all batches.
fn groups(layout: &Layout, batches: &[RecordBatch]) -> Result<Vec<u32>, ArrowError> {
    let names: Vec<&str> = layout.order.iter().filter(|name| **name != layout.time).copied().collect();
    let columns: Vec<Vec<NamesOf<'_>>> =
        names.iter().map(|name| columns(batches, name)).collect::<Result<_, _>>()?;
    let ranks: Vec<Vec<Vec<u32>>> = columns.iter().map(|columns| ranks(columns)).collect();
    let mut numbers: HashMap<[u32; NAMES], u32, RandomState> = HashMap::default();
    let mut groups: Vec<u32> = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for (number, batch) in batches.iter().enumerate() {
        let mut last = ([u32::MAX; NAMES], 0);
        for row in 0..batch.num_rows() {
            let mut group = [0; NAMES];
            for ((rank, columns), ranks) in group.iter_mut().zip(&columns).zip(&ranks) {
                *rank = columns[number].key(row).map_or(0, |key| ranks[number][key]);
            }
            if group != last.0 {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                last = (group, *numbers.entry(group).or_insert(next));
            }
            groups.push(last.1);
        }
    }
    let mut sorted: Vec<([u32; NAMES], u32)> = numbers.into_iter().collect();
    sorted.sort_unstable();
    let mut rank_of = vec![0; sorted.len()];
    for ((_, number), rank) in sorted.into_iter().zip(0..) {
        rank_of[number as usize] = rank;
    }
    groups.iter_mut().for_each(|group| *group = rank_of[*group as usize]);
    Ok(groups)
}

fn columns<'b>(batches: &'b [RecordBatch], name: &str) -> Result<Vec<NamesOf<'b>>, ArrowError> {
    let names = |batch: &'b RecordBatch| batch.column_by_name(name).and_then(NamesOf::new);
    batches.iter().map(|batch| names(batch).ok_or_else(|| no_column(name))).collect()
}

/// Returns for each batch the rank of each value of its dictionary among all values, from 1.
fn ranks(columns: &[NamesOf<'_>]) -> Vec<Vec<u32>> {
    let mut places: HashMap<&[u8], u32, RandomState> = HashMap::default();
    for value in columns.iter().flat_map(|names| names.values.iter()) {
        places.insert(value, 0);
    }
    let mut order: Vec<&[u8]> = places.keys().copied().collect();
    order.sort_unstable();
    for (name, place) in order.into_iter().zip(1..) {
        places.insert(name, place);
    }
    columns.iter().map(|names| names.values.iter().map(|value| places[value]).collect()).collect()
}

fn no_column(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("a batch has no column {name} of the expected type"))
}
