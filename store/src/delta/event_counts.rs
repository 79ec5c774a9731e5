//! The derived table `event_counts`: counts of events by time and group.
//!
//! The flusher writes it from the rows of `events` in the same WAL records, with a watermark of its own, so each record
//! is counted exactly once. Rows that are not flushed are counted when somebody reads the table. `events` is the truth:
//! [`agreement`] compares the two by day, and counts a day again where they differ (after retention has removed files,
//! and when `event_counts` was lost or is behind).
//!
//! Invariants:
//! - `sum(reports)` of a day is the number of rows that `events` has of that day, and `sum(events)` of a group is what
//!   counting rows of `events` gives.
//! - A record is flushed to `events` first. So a report that is replaced is either in the same records as the report
//!   that replaces it, or in a file of `events`.

pub(super) mod agreement;
mod counter;

pub(crate) use counter::EventCounter;

use super::DeltaError;
use super::files::{DataFile, Files};
use super::flush::Flushed;
use super::parquet_file::{FileTarget, FileWriter, OpenFile, Texts};
use super::sort::DAY_US;
use super::table::{Change, StoredTable};
use crate::disk::Disk;
use crate::rows::event_counts::{OLD_BUCKET_US, SHORT_BUCKETS_FOR_US};
use crate::schema::Table;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt64Array, make_comparator};
use arrow::compute::take;
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use counter::{COLUMNS, Ids, Replaced};
use hashbrown::HashSet;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The longest time between the arrivals of two reports of one failure, and some more, in microseconds.
const REPLACED_WITHIN_US: i64 = 15 * 60 * 1_000_000;
/// The time for which nothing may have been added to an old day before its buckets become longer, in milliseconds.
const SETTLED_MS: i64 = 60 * 60 * 1000;
/// The most files that are merged at once.
const MOST_FILES: usize = 16;
/// The first part of the name of a file whose buckets are long.
pub(super) const OLD_ORIGIN: &str = "old";

/// The stored rows of `events`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredEvents<'e> {
    pub(crate) disk: &'e dyn Disk,
    /// The folder of the table.
    pub(crate) root: &'e Path,
    pub(crate) files: &'e Files,
}

impl StoredEvents<'_> {
    fn read(
        &self,
        file: &DataFile,
        columns: &[&str],
        visit: &mut dyn FnMut(&RecordBatch) -> Result<(), ArrowError>,
    ) -> Result<(), DeltaError> {
        let path = self.root.join(&file.path);
        let opened = OpenFile::new(self.disk, &path, Table::Events, Texts::Dictionaries)?;
        for batch in opened.rows(Some(columns))? {
            visit(&batch?)?;
        }
        Ok(())
    }

    /// Subtracts replaced reports that are not among the added rows. The newest files are read first, and those that
    /// are too old to hold one of them are not read.
    pub(crate) fn retract(&self, counter: &mut EventCounter, replaced: Replaced) -> Result<(), DeltaError> {
        let Replaced { mut ids, since } = replaced;
        let since = since.unwrap_or(i64::MAX).saturating_sub(REPLACED_WITHIN_US);
        let is_recent = |file: &&Arc<DataFile>| file.written_at.saturating_mul(1000) >= since;
        let mut files: Vec<&Arc<DataFile>> = self.files.files.iter().filter(is_recent).collect();
        files.sort_by_key(|file| Reverse(file.written_at));
        for file in files {
            if ids.is_empty() {
                break;
            }
            let mut is_there = false;
            self.read(file, &["event_id"], &mut |batch| {
                let column = Ids::new(batch.column(0))?;
                is_there |=
                    (0..batch.num_rows()).any(|row| column.at(row).is_some_and(|id| ids.contains(&id)));
                Ok(())
            })?;
            if is_there {
                self.read(file, &COLUMNS, &mut |batch| counter.retract(batch, &mut ids))?;
            }
        }
        Ok(())
    }

    /// Returns the ids of all reports that were replaced.
    fn all_replaced(&self) -> Result<HashSet<u128>, DeltaError> {
        let mut ids = HashSet::new();
        let has_none = |file: &DataFile| {
            let nulls = file.statistics.null_count.get("supersedes").and_then(serde_json::Value::as_u64);
            nulls == Some(file.statistics.num_records)
        };
        for file in self.files.files.iter().filter(|file| !has_none(file)) {
            self.read(file, &["supersedes"], &mut |batch| {
                let column = Ids::new(batch.column(0))?;
                ids.extend((0..batch.num_rows()).filter_map(|row| column.at(row)));
                Ok(())
            })?;
        }
        Ok(ids)
    }

    /// Counts all stored rows, a day at a time, and passes on the counts of each day.
    pub(crate) fn count_all(
        &self,
        is_wanted: &dyn Fn(i32) -> bool,
        visit: &mut dyn FnMut(i32, RecordBatch) -> Result<(), DeltaError>,
    ) -> Result<(), DeltaError> {
        let mut days: BTreeMap<i32, Vec<&Arc<DataFile>>> = BTreeMap::new();
        for file in self.files.files.iter().filter(|file| is_wanted(file.day)) {
            days.entry(file.day).or_default().push(file);
        }
        if days.is_empty() {
            return Ok(());
        }
        let replaced = self.all_replaced()?;
        for files in days.into_values() {
            let (mut counter, mut left) = (EventCounter::default(), replaced.clone());
            for file in files {
                self.read(file, &COLUMNS, &mut |batch| {
                    counter.add(batch)?;
                    if left.is_empty() { Ok(()) } else { counter.retract(batch, &mut left) }
                })?;
            }
            for (day, counts) in counter.finish()? {
                visit(day, counts)?;
            }
        }
        Ok(())
    }
}

/// Counts the rows of batches of `events`, and adds the counts to the table in one commit with its watermark. The
/// batches are those of all records of the WAL after the table's watermark and up to `up_to`.
pub(super) fn flush(
    counts: &StoredTable,
    events: &StoredTable,
    batches: &[RecordBatch],
    up_to: u64,
    now_ms: i64,
) -> Result<Flushed, DeltaError> {
    let mut counter = EventCounter::default();
    batches.iter().try_for_each(|batch| counter.add(batch))?;
    let mut replaced = counter.take_replaced();
    if !replaced.ids.is_empty() {
        batches.iter().try_for_each(|batch| counter.retract(batch, &mut replaced.ids))?;
        let files = events.files();
        let stored = StoredEvents { disk: &*events.disk, root: &events.root, files: &files };
        stored.retract(&mut counter, replaced)?;
    }
    let days = counter.finish()?;
    if days.is_empty() {
        return Ok(Flushed::default());
    }
    let mut change = Change { flushed: Some(up_to), ..Change::default() };
    let written = days.iter().try_for_each(|(day, rows)| -> Result<(), DeltaError> {
        change.added.push(write(counts, *day, rows, now_ms)?);
        Ok(())
    });
    if let Err(error) = written {
        counts.discard(&change.added);
        return Err(error);
    }
    counts.commit(&change, now_ms)?;
    Ok(Flushed {
        files: change.added.len() as u64,
        bytes: change.added.iter().map(|file| file.bytes).sum(),
        commits: 1,
        ..Flushed::default()
    })
}

fn write(
    counts: &StoredTable,
    day: i32,
    rows: &RecordBatch,
    written_at: i64,
) -> Result<DataFile, DeltaError> {
    let target =
        FileTarget { disk: &*counts.disk, root: &counts.root, table: counts.table, day, origin: "flushed" };
    let mut file = FileWriter::create(target, &rows.schema())?;
    file.write(rows)?;
    file.finish(written_at)
}

/// Returns the files of a day whose buckets can become longer: all files of a day that is old and has settled.
pub(super) fn old_day(files: &Files, now_ms: i64) -> Option<Vec<Arc<DataFile>>> {
    if files.table != Table::EventCounts {
        return None;
    }
    let mut days: BTreeMap<i32, Vec<Arc<DataFile>>> = BTreeMap::new();
    for file in &files.files {
        days.entry(file.day).or_default().push(Arc::clone(file));
    }
    let is_old = |day: i32| {
        let end_us = (i64::from(day) + 1).saturating_mul(DAY_US);
        end_us.saturating_add(SHORT_BUCKETS_FOR_US) <= now_ms.saturating_mul(1000)
    };
    let is_long = |file: &Arc<DataFile>| file.path.contains(&format!("/{OLD_ORIGIN}-"));
    let is_settled = |file: &Arc<DataFile>| file.written_at < now_ms - SETTLED_MS;
    days.into_iter()
        .filter(|(day, files)| is_old(*day) && files.len() <= MOST_FILES)
        .map(|(_, files)| files)
        .find(|files| !files.iter().all(is_long) && files.iter().all(is_settled))
}

/// Returns a batch of the table with long buckets. Its order stays the same, as the bucket comes last in it.
pub(super) fn with_long_buckets(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let place = schema.index_of("bucket")?;
    let mut columns = batch.columns().to_vec();
    let buckets = columns[place].as_primitive::<TimestampMicrosecondType>();
    let long = |bucket: i64| bucket.div_euclid(OLD_BUCKET_US).saturating_mul(OLD_BUCKET_US);
    columns[place] = Arc::new(
        buckets.unary::<_, TimestampMicrosecondType>(long).with_data_type(buckets.data_type().clone()),
    );
    RecordBatch::try_new(schema, columns)
}

/// The columns that [`combined`] knows.
#[cfg(test)]
pub(super) const COMBINED: [&str; 3] = ["first_seen", "last_seen", "newest_event_id"];

/// Returns one value for each run of rows of a column that is not a number to be added up, or `None` if it is one.
pub(super) fn combined(
    batch: &RecordBatch,
    name: &str,
    runs: &[Range<usize>],
) -> Result<Option<ArrayRef>, ArrowError> {
    let (by, better): (&[&str], Ordering) = match name {
        "first_seen" => (&["first_seen"], Ordering::Less),
        "last_seen" | "newest_event_id" => (&["last_seen", "newest_event_id"], Ordering::Greater),
        _ => return Ok(None),
    };
    let column = |name: &str| {
        batch.column_by_name(name).ok_or_else(|| ArrowError::SchemaError(format!("no column {name}")))
    };
    let compare = by
        .iter()
        .map(|name| make_comparator(&**column(name)?, &**column(name)?, Default::default()))
        .collect::<Result<Vec<_>, _>>()?;
    let decisive = column(by[0])?;
    let best_of = |run: &Range<usize>| {
        let valid = run.clone().filter(|row| decisive.is_valid(*row));
        let is_better = |row: usize, best: usize| {
            let order =
                compare.iter().fold(Ordering::Equal, |order, compare| order.then_with(|| compare(row, best)));
            order == better
        };
        valid.reduce(|best, row| if is_better(row, best) { row } else { best }).unwrap_or(run.start) as u64
    };
    let chosen = UInt64Array::from_iter_values(runs.iter().map(best_of));
    take(column(name)?, &chosen, None).map(Some)
}
