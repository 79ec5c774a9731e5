//! Flushes records of the WAL into files of the tables.
//!
//! Invariant: the watermark of a table is read first, and records that it covers are skipped; the rows and the new
//! watermark are committed together. So a record is in each table once, however often it is flushed.

use super::files::DataFile;
use super::parquet_file::{FileTarget, FileWriter};
use super::sort::Sorted;
use super::table::{Change, StoredTable};
use super::{DeltaError, schema_evolution};
use crate::hot::BufferedRecord;
use crate::rows::without_call_identities;
use crate::schema::Table;
use arrow::array::RecordBatch;
use std::sync::Arc;

/// The average row size above which the number of rows that are copied at once is limited. Sorting copies rows.
const HEAVY_ROW: usize = 2 << 10;
/// The number of bytes of such rows that are copied at once.
const COPIED_BYTES: usize = 8 << 20;

/// The result of a flush.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flushed {
    /// The number of flushed rows, before any were added up.
    pub rows: u64,
    /// The number of files that were written.
    pub files: u64,
    /// The total length of these files.
    pub bytes: u64,
    /// The number of commits.
    pub commits: u64,
    /// The number of records that could not be decoded.
    pub unreadable: u64,
}

impl std::ops::AddAssign for Flushed {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.files += other.files;
        self.bytes += other.bytes;
        self.commits += other.commits;
        self.unreadable += other.unreadable;
    }
}

/// The rows that a table lacks of some records.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// The watermark of the table.
    pub(super) after: u64,
    /// The rows of its source.
    pub(super) batches: Vec<RecordBatch>,
    /// The number of records that could not be decoded.
    unreadable: u64,
}

/// Decodes the rows that a table lacks. The records are all records of the WAL after its watermark and up to `up_to`.
pub(super) fn missing(
    table: &StoredTable,
    records: &[Arc<BufferedRecord>],
    up_to: u64,
) -> Result<Missing, DeltaError> {
    table.settle()?;
    let source = table.table.source();
    let mut missing = Missing { after: table.files().flushed, ..Missing::default() };
    let is_missing =
        |record: &&Arc<BufferedRecord>| record.sequence > missing.after && record.sequence <= up_to;
    for record in records.iter().filter(is_missing) {
        match record.batch(source) {
            Ok(Some(batch)) => {
                let batch = schema_evolution::adapted(batch, &source.schema())?;
                let is_requests = source == Table::Requests;
                missing.batches.push(if is_requests { without_call_identities(&batch)? } else { batch });
            }
            Ok(None) => {}
            Err(error) => {
                tracing::error!(sequence = record.sequence, %error, "a record of the log cannot be understood");
                missing.unreadable += 1;
            }
        }
    }
    Ok(missing)
}

/// Flushes the rows that a table lacks of some records, and commits them with the watermark `up_to`.
pub(super) fn flush(
    table: &StoredTable,
    records: &[Arc<BufferedRecord>],
    missing: &Missing,
    up_to: u64,
    now_ms: i64,
) -> Result<Flushed, DeltaError> {
    let Missing { batches, unreadable, .. } = missing;
    let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    let mut flushed = Flushed { rows, unreadable: *unreadable, ..Flushed::default() };
    if flushed.rows == 0 {
        return Ok(flushed);
    }
    let sorted = Sorted::new(table.table, batches)?;
    let mut change = Change { flushed: Some(up_to), ..Change::default() };
    if let Err(error) = write_all(table, &sorted, at_once(records), &mut change.added, now_ms) {
        table.discard(&change.added);
        return Err(error);
    }
    table.commit(&change, now_ms)?;
    flushed.files = change.added.len() as u64;
    flushed.bytes = change.added.iter().map(|file| file.bytes).sum();
    flushed.commits = 1;
    Ok(flushed)
}

/// Writes one file for each day.
fn write_all(
    table: &StoredTable,
    sorted: &Sorted<'_>,
    at_once: usize,
    files: &mut Vec<DataFile>,
    now_ms: i64,
) -> Result<(), DeltaError> {
    for (day, rows) in sorted.days() {
        let target =
            FileTarget { disk: &*table.disk, root: &table.root, table: table.table, day, origin: "flushed" };
        let mut file = FileWriter::create(target, &table.table.schema())?;
        match sorted.sums(rows.clone())? {
            Some(sums) => file.write(&sums)?,
            None => {
                for places in sorted.places(rows).chunks(at_once) {
                    file.write_rows(sorted.batches(), places)?;
                }
            }
        }
        files.push(file.finish(now_ms)?);
    }
    Ok(())
}

/// Returns the number of rows to copy at once: all of them, unless they are large.
fn at_once(records: &[Arc<BufferedRecord>]) -> usize {
    let bytes: usize = records.iter().map(|record| record.bytes()).sum();
    let rows: u64 = records.iter().flat_map(|record| record.rows).sum();
    let each = bytes / usize::try_from(rows).unwrap_or(usize::MAX).max(1);
    if each < HEAVY_ROW { usize::MAX } else { COPIED_BYTES / each + 1 }
}
