//! The Delta tables, which hold the flushed records.
//!
//! Each table is a Delta table of sorted Parquet files, one folder a day, that other programs open as it is. Rows are
//! flushed into it from the log (`flush`), small files are merged (`compact`), old ones leave (`retention`), and what no
//! table names any more leaves the disk (`vacuum`).
//!
//! What always holds:
//! - **A row of the log is in its table exactly once**, whatever is killed, torn or reported wrongly: see `table`.
//! - What is committed is durable, data before names and names before answers: see `object_store` and `parquet_file`.
//! - Readers keep what they have begun to read: see `vacuum`.
//! - Only this module names `deltalake`.

mod aggregate;
pub(crate) mod backup;
pub(crate) mod check;
mod checkpoint;
mod compact;
pub mod files;
mod flush;
pub mod layout;
mod maintenance;
mod merge;
mod object_store;
pub mod parquet_file;
mod reader;
mod recovery;
mod retention;
pub mod schema_evolution;
pub mod sort;
pub mod statistics;
mod table;
#[cfg(test)]
mod tests;
mod vacuum;

pub use compact::LARGE_BYTES;
pub use flush::Flushed;
pub use maintenance::{Kept, MaintenanceMode};
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
use files::{DataFile, Files};
use parquet::errors::ParquetError;
use parquet_file::{OpenFile, path_of};
use std::cmp::Reverse;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use table::StoredTable;
use tokio::runtime::Runtime;

/// Why something could not be done to the tables.
#[derive(Debug, thiserror::Error)]
pub enum DeltaError {
    /// A table is damaged in a way that cannot be mended here: look at it with `faultline check`.
    #[error("the table {} is damaged: {}: {why}; {remedy}", .table.name(), .path.display())]
    Damaged {
        /// The table.
        table: Table,
        /// The damage.
        path: PathBuf,
        /// In which way.
        why: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The disk refused: try again later.
    #[error("the disk failed: {0}")]
    Disk(#[from] io::Error),
    /// The table's log could not be read or written: try again later.
    #[error("the table's log failed: {}", without_backtrace(.0))]
    Delta(#[from] DeltaTableError),
    /// A file could not be read or written: try again later.
    #[error("a table's file failed: {0}")]
    Parquet(#[from] ParquetError),
    /// Rows are not what they should be: a defect.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// A record is not what it should be: a defect.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// The options of the Delta tables.
#[derive(Debug, Clone)]
pub struct DeltaOptions {
    /// The retention of each table, by [`Table::ALL`].
    pub retention: [Retention; Table::ALL.len()],
    /// The time that files removed from a table stay on disk, for those who are reading them.
    pub grace: Duration,
    /// The clock, in microseconds since 1970.
    pub clock: fn() -> i64,
}

/// The tables.
#[derive(Debug)]
pub struct DeltaTables {
    tables: Vec<StoredTable>,
    options: DeltaOptions,
    /// Everything in the log up to here is in every table, as far as this process has flushed it.
    flushed: AtomicU64,
    /// The damaged files that were set aside when the tables were opened.
    set_aside: Vec<String>,
    /// Dropped last: the tables work on it.
    _runtime: Runtime,
}

impl DeltaTables {
    /// Opens the tables below a folder, or makes them. The newest commit of each is looked at first, and set aside if it
    /// is bad.
    ///
    /// # Errors
    /// When the disk refuses, or a table is damaged.
    pub fn open(disk: &Arc<dyn Disk>, folder: &Path, options: DeltaOptions) -> Result<Self, DeltaError> {
        let runtime = runtime()?;
        let now_ms = (options.clock)() / 1000;
        let (mut tables, mut set_aside) = (Vec::new(), Vec::new());
        for table in Table::ALL {
            let (root, aside) = (folder.join(TABLES).join(table.name()), folder.join(SET_ASIDE));
            let examined =
                recovery::Examined { disk: &**disk, table, root: &root, set_aside: &aside, now_ms };
            set_aside.extend(examined.look_through()?);
            tables.push(StoredTable::open(table, Arc::clone(disk), &root, runtime.handle().clone())?);
        }
        Ok(Self { tables, options, flushed: AtomicU64::new(0), set_aside, _runtime: runtime })
    }

    /// A table as it stands on the disk, without changing anything there. One that was never made has no files.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_only(table: Table, disk: &Arc<dyn Disk>, root: &Path) -> Result<Files, DeltaError> {
        let runtime = runtime()?;
        let store = table::log_store(disk, root)?;
        let examined = recovery::Examined { disk: &**disk, table, root, set_aside: root, now_ms: 0 };
        // `deltalake` reads an empty commit as one of nothing.
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
        // Verification names the file and the remedy better than the error that was met first.
        read.map_err(|error: DeltaTableError| examined.damage().unwrap_or(DeltaError::Delta(error)))
    }

    /// Returns the damaged files that were set aside when the tables were opened.
    #[must_use]
    pub fn set_aside(&self) -> &[String] {
        &self.set_aside
    }

    /// A table as it is now. What it names stays on disk as long as this is held.
    #[must_use]
    pub fn files(&self, table: Table) -> Arc<Files> {
        self.tables[table as usize].files()
    }

    /// A table as it is now, and the sequence up to which everything in the log is in it. That may be more than the
    /// table itself says: its watermark only moves with rows.
    #[must_use]
    pub fn table(&self, table: Table) -> (Arc<Files>, u64) {
        let flushed = self.flushed.load(Ordering::Acquire);
        let files = self.files(table);
        let flushed = flushed.max(files.flushed);
        (files, flushed)
    }

    /// The highest sequence of the log that any table has.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.tables.iter().map(|table| table.files().flushed).max().unwrap_or_default()
    }

    /// Returns true if a record has rows that are not in their table.
    #[must_use]
    pub fn lacks(&self, record: &BufferedRecord) -> bool {
        let lacks = |table: &StoredTable| {
            record.rows[table.table as usize] > 0 && record.sequence > table.files().flushed
        };
        self.tables.iter().any(lacks)
    }

    /// Hands out the rows of the files that may hold times at or after `since`, the newest files first.
    ///
    /// # Errors
    /// When a file cannot be read.
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

    /// Flushes records of the log into the tables. They are all that is in the log after what was flushed before, up to
    /// `up_to`. When this returns, they are durable there, and in no table twice.
    ///
    /// They count as stored at `now_us`, in all tables. It is the time that is trusted: the clock may jump while this runs,
    /// and rows that seem to be stored in another year would be taken for old.
    ///
    /// # Errors
    /// Some tables may have them and others not; flushing the same again mends that.
    pub fn flush(
        &self,
        records: &[Arc<BufferedRecord>],
        up_to: u64,
        now_us: i64,
    ) -> Result<Flushed, DeltaError> {
        let mut flushed = Flushed::default();
        for table in &self.tables {
            flushed += flush::flush(table, records, up_to, now_us / 1000)?;
        }
        self.flushed.fetch_max(up_to, Ordering::Release);
        Ok(flushed)
    }

    /// To be called before the log is released up to a sequence: a table whose newest rows would then be in no log any more
    /// gets a checkpoint, so that a newest commit that turns out to be damaged is not missed.
    ///
    /// # Errors
    /// The log must not be released.
    pub fn secure(&self, up_to: u64) -> Result<(), DeltaError> {
        let leaves_the_log =
            |table: &&StoredTable| table.files().flushed <= up_to && table.since_checkpoint() > 0;
        self.tables.iter().filter(leaves_the_log).try_for_each(checkpoint::write)
    }

    /// One round of maintenance of one table at this time: at most one merge, so that it ends soon. It is worth another round at once
    /// when something was merged.
    ///
    /// # Errors
    /// Returns the error of the step that failed. Every step is finished, or has changed nothing.
    pub fn maintain(&self, table: Table, mode: MaintenanceMode, now_us: i64) -> Result<Kept, DeltaError> {
        let DeltaOptions { retention, grace, .. } = &self.options;
        let retention = retention[table as usize];
        maintenance::round(&self.tables[table as usize], mode, retention, *grace, now_us)
    }
}

/// Returns the message of an error, without its place in the program.
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

/// A small runtime of our own: `deltalake` wants one, and waiting for a disk must not hold up anybody's sockets.
fn runtime() -> Result<Runtime, DeltaError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(4)
        .thread_name("delta")
        .enable_time()
        .build()?;
    Ok(runtime)
}
