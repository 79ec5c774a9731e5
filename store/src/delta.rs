//! The Delta tables, which hold the flushed records.
//!
//! Each table is a Delta table of sorted Parquet files, one folder for each day, that other programs can open. Rows are
//! flushed into it from the WAL (`flush`), small files are merged (`compact`), old ones are removed from the table
//! (`retention`), and files that no table refers to any more are deleted (`vacuum`).
//!
//! Invariants:
//! - **A row of the WAL is in its table exactly once**, even after kills, torn writes and false error reports: see
//!   `table`.
//! - A commit is durable: data before names, and names before the call returns: see `object_store` and `parquet_file`.
//! - Readers can finish reading the files that they have begun to read: see `vacuum`.
//! - Only this module names `deltalake`.

mod aggregate;
pub(crate) mod backup;
pub(crate) mod check;
mod checkpoint;
mod compact;
pub(crate) mod event_counts;
pub mod files;
mod flush;
pub mod layout;
mod maintenance;
mod merge;
mod names;
mod object_store;
pub mod parquet_file;
mod parquet_names;
mod reader;
mod recovery;
mod retention;
mod row_group;
pub mod schema_evolution;
pub mod sort;
pub mod statistics;
mod table;
#[cfg(test)]
mod tests;
mod vacuum;

pub use compact::LARGE_BYTES;
pub use flush::Flushed;
pub use maintenance::{MaintenanceMode, MaintenanceResult};
pub use reader::TableReader;
pub use retention::{Expired, Retention};
pub use vacuum::Vacuumed;

use crate::codec::CodecError;
use crate::directory::{SET_ASIDE, TABLES};
use crate::disk::Disk;
use crate::hot::BufferedRecord;
use crate::schema::Table;
use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use deltalake_core::{DeltaTable, DeltaTableError};
use event_counts::agreement::{self, RowsByFile};
use files::{DataFile, Files};
use parquet::errors::ParquetError;
use parquet_file::{OpenFile, path_of};
use std::cmp::Reverse;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use table::StoredTable;
use tokio::runtime::Runtime;

/// The reason why an operation on the tables failed.
#[derive(Debug, thiserror::Error)]
pub enum DeltaError {
    /// A table has damage that cannot be repaired here. `faultline check` describes it.
    #[error("the table {} is damaged: {}: {why}; {remedy}", .table.name(), .path.display())]
    Damaged {
        /// The table.
        table: Table,
        /// The damaged file.
        path: PathBuf,
        /// The kind of the damage.
        why: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The disk failed. The operation can be retried later.
    #[error("the disk failed: {0}")]
    Disk(#[from] io::Error),
    /// The Delta log could not be read or written. The operation can be retried later.
    #[error("the table's log failed: {}", without_backtrace(.0))]
    Delta(#[from] DeltaTableError),
    /// A file could not be read or written. The operation can be retried later.
    #[error("a table's file failed: {0}")]
    Parquet(#[from] ParquetError),
    /// Rows do not match their schema, which is a bug.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// A record cannot be decoded, which is a bug.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// The options of the Delta tables.
#[derive(Debug, Clone)]
pub struct DeltaOptions {
    /// The retention of each table, by [`Table::ALL`].
    pub retention: [Retention; Table::ALL.len()],
    /// The time for which files that were removed from a table stay on disk, for readers that are still using them.
    pub grace: Duration,
    /// The clock, in microseconds since 1970.
    pub clock: fn() -> i64,
}

/// The Delta tables of a data directory.
#[derive(Debug)]
pub struct DeltaTables {
    tables: Vec<StoredTable>,
    options: DeltaOptions,
    /// All records of the WAL up to this sequence are in every table, as far as this process has flushed them.
    flushed: AtomicU64,
    /// The damaged files that were set aside when the tables were opened.
    set_aside: Vec<String>,
    /// What is known of the counts of events. It is locked while events are flushed or counted again.
    counted: Mutex<RowsByFile>,
    /// The runtime, which is dropped last because the tables use it.
    _runtime: Runtime,
}

impl DeltaTables {
    /// Opens the tables below a folder, or creates them. The newest commit of each is checked first, and set aside if
    /// it is damaged.
    ///
    /// # Errors
    /// Fails when the disk fails, or when a table is damaged.
    pub fn open(disk: &Arc<dyn Disk>, folder: &Path, options: DeltaOptions) -> Result<Self, DeltaError> {
        let runtime = runtime()?;
        let now_ms = (options.clock)() / 1000;
        let (mut tables, mut set_aside) = (Vec::new(), Vec::new());
        for table in Table::ALL {
            let (root, aside) = (folder.join(TABLES).join(table.name()), folder.join(SET_ASIDE));
            let examined =
                recovery::Examined { disk: &**disk, table, root: &root, set_aside: &aside, now_ms };
            match examined.look_through() {
                Err(DeltaError::Damaged { why, .. }) if table.is_derived() => {
                    set_aside.extend(examined.set_all_aside(&why)?);
                }
                found => set_aside.extend(found?),
            }
            tables.push(StoredTable::open(table, Arc::clone(disk), &root, runtime.handle().clone())?);
        }
        let (flushed, counted) = (AtomicU64::new(0), Mutex::default());
        let delta = Self { tables, options, flushed, set_aside, counted, _runtime: runtime };
        delta.restore_counts(now_ms)?;
        Ok(delta)
    }

    /// Counts the events of the days again whose counts do not agree with them.
    fn restore_counts(&self, now_ms: i64) -> Result<(), DeltaError> {
        let (counts, events) = (self.stored(Table::EventCounts), self.stored(Table::Events));
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        agreement::restore(counts, events, &mut counted, now_ms)
    }

    fn stored(&self, table: Table) -> &StoredTable {
        &self.tables[table as usize]
    }

    /// Returns the files of a table without changing anything on disk. A table that does not exist has no files.
    ///
    /// # Errors
    /// Fails when the table cannot be read.
    pub fn read_only(table: Table, disk: &Arc<dyn Disk>, root: &Path) -> Result<Files, DeltaError> {
        let runtime = runtime()?;
        let store = table::log_store(disk, root)?;
        let examined = recovery::Examined { disk: &**disk, table, root, set_aside: root, now_ms: 0 };
        // `deltalake` reads an empty commit file as a commit without changes.
        if examined.has_hollow_commits()
            && let Some(damage) = examined.damage()
        {
            return Err(damage);
        }
        let read = runtime.block_on(async {
            let mut delta = DeltaTable::new(store);
            if !delta.verify_deltatable_existence().await? {
                return Ok(Files { table, version: 0, flushed: 0, files: Vec::new() });
            }
            delta.load().await?;
            table::files(table, &delta).await
        });
        // The check names the damaged file and the remedy, which is better than the error that occurred first.
        read.map_err(|error: DeltaTableError| examined.damage().unwrap_or(DeltaError::Delta(error)))
    }

    /// Returns the damaged files that were set aside when the tables were opened.
    #[must_use]
    pub fn set_aside(&self) -> &[String] {
        &self.set_aside
    }

    /// Returns the current version of a table. The files that it names stay on disk as long as it is held.
    #[must_use]
    pub fn files(&self, table: Table) -> Arc<Files> {
        self.tables[table as usize].files()
    }

    /// Returns the current version of a table, and the sequence up to which it holds everything of the WAL. That may be
    /// more than the table's own watermark, which only moves with rows.
    #[must_use]
    pub fn table(&self, table: Table) -> (Arc<Files>, u64) {
        let flushed = self.flushed.load(Ordering::Acquire);
        let files = self.files(table);
        let flushed = flushed.max(files.flushed);
        (files, flushed)
    }

    /// Returns the highest WAL sequence that any table has.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.tables.iter().map(|table| table.files().flushed).max().unwrap_or_default()
    }

    /// Returns true if a record has rows that are not in their table.
    #[must_use]
    pub fn lacks(&self, record: &BufferedRecord) -> bool {
        let lacks = |table: &StoredTable| {
            record.rows[table.table.source() as usize] > 0 && record.sequence > table.files().flushed
        };
        self.tables.iter().any(lacks)
    }

    /// Passes on the rows of the files that may hold times at or after `since`, the newest files first.
    ///
    /// # Errors
    /// Fails when a file cannot be read.
    pub fn rows_since(
        &self,
        table: Table,
        time: &str,
        since: i64,
        columns: &[&str],
        visit: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<(), DeltaError> {
        let table = &self.tables[table as usize];
        let files = table.files();
        let last = |file: &Arc<DataFile>| file.statistics.times(time).map_or(i64::MAX, |(_, last)| last);
        let mut recent: Vec<_> = files.files.iter().filter(|file| last(file) >= since).collect();
        recent.sort_by_key(|file| Reverse(last(file)));
        for file in recent {
            let file = OpenFile::open(&*table.disk, &path_of(&table.root, file), table.table)?;
            for batch in file.rows(Some(columns))? {
                if visit(batch?).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Flushes records of the WAL into the tables. They must be all records after those flushed before, up to `up_to`.
    /// When this returns, they are durable in the tables, and in no table twice.
    ///
    /// Their storage time is `now_us` in all tables. That is the trusted time: the clock may jump while this runs, and
    /// rows that seem to be stored in another year would be removed as old.
    ///
    /// # Errors
    /// After a failure, some tables may have the records and others not. Flushing the same records again repairs that.
    pub fn flush(
        &self,
        records: &[Arc<BufferedRecord>],
        up_to: u64,
        now_us: i64,
    ) -> Result<Flushed, DeltaError> {
        let _counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ms = now_us / 1000;
        let mut flushed = Flushed::default();
        for table in self.tables.iter().filter(|table| !table.table.is_derived()) {
            let missing = flush::missing(table, records, up_to)?;
            flushed += flush::flush(table, records, &missing, up_to, now_ms)?;
            if table.table == Table::Events {
                flushed += self.flush_counts(records, missing, up_to, now_ms)?;
            }
        }
        self.flushed.fetch_max(up_to, Ordering::Release);
        Ok(flushed)
    }

    /// Flushes the counts of events, which are in their table already. `missing` are the rows that `events` lacked.
    fn flush_counts(
        &self,
        records: &[Arc<BufferedRecord>],
        missing: flush::Missing,
        up_to: u64,
        now_ms: i64,
    ) -> Result<Flushed, DeltaError> {
        let (counts, events) = (self.stored(Table::EventCounts), self.stored(Table::Events));
        counts.settle()?;
        let lacks_the_same = counts.files().flushed == missing.after;
        let missing = if lacks_the_same { missing } else { flush::missing(counts, records, up_to)? };
        event_counts::flush(counts, events, &missing.batches, up_to, now_ms)
    }

    /// Prepares for the release of the WAL up to a sequence. If the newest rows of a table would then no longer be in
    /// the WAL, the table gets a checkpoint, so that its newest commit can be damaged without losing rows.
    ///
    /// # Errors
    /// If this fails, the WAL must not be released.
    pub fn secure(&self, up_to: u64) -> Result<(), DeltaError> {
        let leaves_the_log =
            |table: &&StoredTable| table.files().flushed <= up_to && table.since_checkpoint() > 0;
        self.tables.iter().filter(leaves_the_log).try_for_each(checkpoint::write)
    }

    /// Runs one round of maintenance of one table, with at most one merge, so that it ends soon. If something was
    /// merged, another round should follow at once.
    ///
    /// # Errors
    /// Returns the error of the step that failed. Every step is either complete or has changed nothing.
    pub fn maintain(
        &self,
        table: Table,
        mode: MaintenanceMode,
        now_us: i64,
    ) -> Result<MaintenanceResult, DeltaError> {
        let DeltaOptions { retention, grace, .. } = &self.options;
        // The counts of events leave with the events.
        let retention = if table.is_derived() { Retention::default() } else { retention[table as usize] };
        let is_level = self.files(table).flushed == self.files(table.source()).flushed;
        if table == Table::EventCounts && mode == MaintenanceMode::Full && is_level {
            self.restore_counts(now_us / 1000)?;
        }
        maintenance::round(self.stored(table), mode, retention, *grace, now_us)
    }
}

/// Returns the message of an error, without its backtrace.
fn without_backtrace(error: &DeltaTableError) -> String {
    let text = error.to_string();
    let is_told = |line: &&str| {
        let line = line.trim_start();
        let is_frame = line.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        !(is_frame
            || line.starts_with("at /")
            || line.contains("stack backtrace")
            || line == "disabled backtrace")
    };
    let told: Vec<&str> =
        text.lines().filter(is_told).map(str::trim).filter(|line| !line.is_empty()).collect();
    told.join(" ")
}

/// Creates a small runtime for the tables: `deltalake` needs one, and waiting for a disk must not delay network
/// requests.
fn runtime() -> Result<Runtime, DeltaError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(4)
        .thread_name("delta")
        .enable_time()
        .build()?;
    Ok(runtime)
}
