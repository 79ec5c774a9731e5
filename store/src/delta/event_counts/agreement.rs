//! Compares `event_counts` with `events` by day, and counts again the days on which they differ.
//!
//! The two agree on a day when `sum(reports)` is the number of rows of `events`. They differ after retention has
//! removed files of `events`, and when `event_counts` was lost, is damaged, or is behind without a WAL that has the
//! missing records.

use super::super::DeltaError;
use super::super::files::{DataFile, Files, date_of};
use super::super::parquet_file::{OpenFile, path_of};
use super::super::table::{Change, StoredTable};
use super::{StoredEvents, write};
use crate::schema::Table;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The number of rows of `events` that each file of `event_counts` counts, as far as it was read. Files never change.
#[derive(Debug, Default)]
pub(crate) struct RowsByFile(HashMap<String, u64>);

/// Makes the counts agree with the events. Nothing may be flushed meanwhile.
///
/// If `event_counts` is ahead, the newest commit of `events` was set aside, and its rows come back from the WAL: then
/// there is nothing to do yet. If it is behind, it is brought to the watermark of `events`.
pub(in crate::delta) fn restore(
    counts: &StoredTable,
    events: &StoredTable,
    known: &mut RowsByFile,
    now_ms: i64,
) -> Result<(), DeltaError> {
    let (of_counts, of_events) = (counts.files(), events.files());
    if of_counts.flushed > of_events.flushed {
        return Ok(());
    }
    let days = differing_days(counts, &of_counts, &of_events, known);
    if days.is_empty() {
        return Ok(());
    }
    let stored = StoredEvents { disk: &*events.disk, root: &events.root, files: &of_events };
    let mut change = Change {
        removed: of_counts.files.iter().filter(|file| days.contains(&file.day)).cloned().collect(),
        flushed: Some(of_events.flushed).filter(|flushed| *flushed > of_counts.flushed),
        ..Change::default()
    };
    let counted = stored.count_all(&|day| days.contains(&day), &mut |day, rows| {
        let stored_at = newest(&of_events, day).unwrap_or(now_ms);
        change.added.push(write(counts, day, &rows, stored_at)?);
        Ok(())
    });
    if let Err(error) = counted {
        counts.discard(&change.added);
        return Err(error);
    }
    counts.commit(&change, now_ms)?;
    let of_days = of_events.files.iter().filter(|file| days.contains(&file.day));
    tracing::info!(
        table = counts.table.name(),
        days = days.len(),
        first_day = days.first().copied().map(date_of),
        last_day = days.last().copied().map(date_of),
        events = of_days.map(|file| file.statistics.num_records).sum::<u64>(),
        "counted again, because the counts did not agree with the events"
    );
    Ok(())
}

/// Returns the time at which the newest rows of a day were stored.
fn newest(events: &Files, day: i32) -> Option<i64> {
    events.files.iter().filter(|file| file.day == day).map(|file| file.written_at).max()
}

fn differing_days(
    counts: &StoredTable,
    of_counts: &Files,
    of_events: &Files,
    known: &mut RowsByFile,
) -> BTreeSet<i32> {
    let mut difference: BTreeMap<i32, i64> = BTreeMap::new();
    for file in &of_events.files {
        *difference.entry(file.day).or_default() += file.statistics.num_records.cast_signed();
    }
    let mut unreadable = BTreeSet::new();
    let mut still_known = HashMap::new();
    for file in &of_counts.files {
        let rows = known.0.get(&file.path).copied().map_or_else(|| reports(counts, file), Ok);
        match rows {
            Ok(rows) => {
                *difference.entry(file.day).or_default() -= rows.cast_signed();
                still_known.insert(file.path.clone(), rows);
            }
            Err(error) => {
                tracing::error!(file = file.path, %error, "a file of counts cannot be read; its day is counted again");
                unreadable.insert(file.day);
            }
        }
    }
    known.0 = still_known;
    let has_events: BTreeSet<i32> = of_events.files.iter().map(|file| file.day).collect();
    // Counts that only take back others add up to no rows, and must leave with their day.
    let leftover = of_counts.files.iter().map(|file| file.day).filter(|day| !has_events.contains(day));
    let differs = difference.iter().filter(|(_, difference)| **difference != 0).map(|(day, _)| *day);
    differs.chain(leftover).chain(unreadable).collect()
}

/// Reads the number of rows of `events` that a file counts.
fn reports(counts: &StoredTable, file: &Arc<DataFile>) -> Result<u64, DeltaError> {
    let opened = OpenFile::open(&*counts.disk, &path_of(&counts.root, file), Table::EventCounts)?;
    let mut sum = 0_i64;
    for batch in opened.rows(Some(&["reports"]))? {
        let batch = batch?;
        let reports =
            batch.column_by_name("reports").and_then(|column| column.as_primitive_opt::<Int64Type>());
        sum += reports.map_or(0, |reports| reports.values().iter().sum());
    }
    Ok(sum.unsigned_abs())
}
