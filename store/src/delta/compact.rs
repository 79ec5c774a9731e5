//! Merges many small files into few large ones.
//!
//! The files of a day are grouped by size, and a group is merged when it has enough files. So a row is rewritten once
//! for each size class that it grows through. A day that has settled is merged completely.
//!
//! Invariant: one commit removes the merged files and adds the file that holds their rows. A crash before the commit
//! leaves a file that nothing refers to; a crash after it changes nothing.

use super::DeltaError;
use super::files::{DataFile, Files};
use super::parquet_file::{FileTarget, FileWriter, OpenFile, Texts, path_of};
use super::table::{Change, StoredTable};
use super::{event_counts, layout, merge};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The size from which files are not merged any more.
pub const LARGE_BYTES: u64 = 64 << 20;
/// The number of files of one size class that are merged, so that files flushed under load become large in one step.
const ENOUGH: usize = 16;
/// The upper bounds of the size classes.
const SIZES: [u64; 2] = [4 << 20, LARGE_BYTES];
/// The time after which a day is settled if nothing was added to it.
const SETTLED_MS: i64 = 60 * 60 * 1000;

/// The files to be merged into one.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) files: Vec<Arc<DataFile>>,
    /// True if they are counts whose buckets become longer.
    pub(super) into_long_buckets: bool,
}

/// Returns the next files to be merged, if there are any.
pub(super) fn plan(files: &Files, now_ms: i64) -> Option<Plan> {
    if let Some(files) = event_counts::old_day(files, now_ms) {
        return Some(Plan { files, into_long_buckets: true });
    }
    let mut days: BTreeMap<i32, Vec<&Arc<DataFile>>> = BTreeMap::new();
    for file in files.files.iter().filter(|file| file.bytes < LARGE_BYTES) {
        days.entry(file.day).or_default().push(file);
    }
    let time = layout::of(files.table).time;
    let files = days.into_values().find_map(|day| plan_of_day(day, time, now_ms))?;
    Some(Plan { files, into_long_buckets: false })
}

fn plan_of_day(mut day: Vec<&Arc<DataFile>>, time: &str, now_ms: i64) -> Option<Vec<Arc<DataFile>>> {
    // Files with adjacent times are merged, so that a large file still covers a short part of the day.
    day.sort_by_key(|file| file.statistics.times(time));
    let newest = day.iter().map(|file| file.written_at).max()?;
    let chosen: Vec<&Arc<DataFile>> = if day.len() > 1 && newest < now_ms - SETTLED_MS {
        day
    } else {
        let size_of = |file: &DataFile| SIZES.iter().position(|size| file.bytes < *size);
        let alike = |size: usize| day.iter().copied().filter(move |file| size_of(file) == Some(size));
        let size = (0..SIZES.len()).find(|size| alike(*size).count() >= ENOUGH)?;
        alike(size).collect()
    };
    // The number of files is limited, because each takes memory while it is read.
    Some(chosen.into_iter().take(ENOUGH).cloned().collect())
}

/// Merges files of one day into one, and returns the new file.
pub(super) fn compact(table: &StoredTable, plan: Plan, now_ms: i64) -> Result<DataFile, DeltaError> {
    let Plan { files, into_long_buckets } = plan;
    let Some(first) = files.first() else {
        return Err(DeltaError::Disk(std::io::ErrorKind::NotFound.into()));
    };
    let target = FileTarget {
        disk: &*table.disk,
        root: &table.root,
        table: table.table,
        day: first.day,
        origin: if into_long_buckets { event_counts::OLD_ORIGIN } else { "merged" },
    };
    let opened = files
        .iter()
        .map(|file| {
            OpenFile::new(&*table.disk, &path_of(&table.root, file), table.table, Texts::Dictionaries)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut into = FileWriter::create(target, &merge::schema(table.table))?;
    merge::merged(table.table, opened, into_long_buckets, &mut |batches, places| {
        into.write_rows(batches, places)
    })?;
    // The new file is as old as the newest of the merged files, so that merging does not extend the retention.
    let stored_at = files.iter().map(|file| file.written_at).max().unwrap_or(now_ms);
    let merged = into.finish(stored_at)?;
    let change =
        Change { added: vec![merged.clone()], removed: files, flushed: None, is_rearrangement: true };
    table.commit(&change, now_ms)?;
    Ok(merged)
}
