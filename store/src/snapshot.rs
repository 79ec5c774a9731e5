//! A consistent view of a table: its files, and the rows of the WAL that are not in them yet.
//!
//! Invariant: every row that was acknowledged before a snapshot was taken is in it once. The WAL is opened **before**
//! the files are listed: a record that is flushed in between is then in both, and the files' watermark says so; in the
//! opposite order it could be in neither. The data of a snapshot stays readable: WAL segments because they are held
//! open, files because `vacuum` spares them for a while.
//! they are held open, files because `vacuum` spares them for a while.

use crate::codec::{CodecError, Decoder};
use crate::delta::files::{DataFile, Files};
use crate::delta::parquet_file::OpenFile;
use crate::delta::{DeltaError, DeltaTables, TableReader, schema_evolution};
use crate::directory::DataDirectory;
use crate::disk::Disk;
use crate::hot::{BufferedRecord, Hot};
use crate::schema::Table;
use crate::wal::{Record, Replay, WalError, WalView};
use arrow::array::RecordBatch;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

mod event_counts;

/// The reason why a table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The WAL cannot be read.
    #[error(transparent)]
    Wal(#[from] WalError),
    /// The table, or one of its files, cannot be read.
    #[error(transparent)]
    DeltaTables(#[from] DeltaError),
}

/// A consistent view of a table at one moment.
#[derive(Debug)]
pub struct Snapshot {
    table: Table,
    disk: Arc<dyn Disk>,
    root: PathBuf,
    /// The files, with their partitions and statistics.
    pub files: Arc<Files>,
    /// All records of the WAL up to this sequence are in the files.
    flushed: u64,
    /// The WAL, which has the rows that are not in the files.
    log: Option<WalView>,
    /// The newest visible sequence of the WAL. Later records are not acknowledged yet, and are not read.
    visible: u64,
    /// The rows of a derived table that are in no file of it.
    counted: Vec<RecordBatch>,
}

/// The limit up to which a reader in another process may read the WAL. The process that writes the WAL determines it
/// before it passes a query on, so that the reader sees every acknowledged record and no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    /// The newest acknowledged record.
    pub visible: u64,
    /// For each table, by [`Table::ALL`], the sequence up to which all records are in its files.
    pub flushed: [u64; Table::ALL.len()],
}

impl Horizon {
    /// A limit that includes everything on disk.
    pub const ALL: Self = Self { visible: u64::MAX, flushed: [0; Table::ALL.len()] };

    /// Returns the limit that includes everything that is acknowledged now.
    #[must_use]
    pub fn now(delta: Option<&DeltaTables>, hot: &Hot) -> Self {
        // The files come first: records that are flushed in between are then looked for in the WAL, and found in the
        // files.
        let flushed = Table::ALL.map(|table| delta.map_or(0, |delta| delta.table(table).1));
        Self { visible: hot.ends().0.max(flushed.into_iter().max().unwrap_or_default()), flushed }
    }
}

/// The result of reading the unflushed rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unflushed {
    /// The result for the WAL, as far as it was read.
    pub replay: Replay,
    /// The number of records that are intact but could not be decoded.
    pub unreadable: u64,
}

impl Snapshot {
    /// Takes a snapshot of a table in a data directory that another process may be writing. It changes nothing there.
    ///
    /// # Errors
    /// Fails when the WAL or the table cannot be read.
    pub fn read_only(
        table: Table,
        disk: &Arc<dyn Disk>,
        directory: &DataDirectory,
    ) -> Result<Self, SnapshotError> {
        let reader = TableReader::new(table, Arc::clone(disk), directory.table(table));
        Self::read_within(table, disk, directory, &reader, &Horizon::ALL)
    }

    /// Takes a snapshot of a table that another process writes, as far as that process has acknowledged it. That of
    /// `event_counts` is taken by [`Snapshot::of_event_counts`].
    ///
    /// # Errors
    /// Fails when the WAL or the table cannot be read.
    pub fn read_within(
        table: Table,
        disk: &Arc<dyn Disk>,
        directory: &DataDirectory,
        reader: &TableReader,
        horizon: &Horizon,
    ) -> Result<Self, SnapshotError> {
        let flushed = horizon.flushed[table as usize];
        let log = match horizon.visible > flushed {
            true => Some(WalView::open(&**disk, &directory.wal())?),
            false => None,
        };
        let root = directory.table(table);
        let files = reader.files()?;
        let flushed = files.flushed.max(flushed);
        let log = log.filter(|_| horizon.visible > flushed);
        let (disk, visible) = (Arc::clone(disk), horizon.visible);
        Ok(Self { table, disk, root, files, flushed, log, visible, counted: Vec::new() })
    }

    /// Returns the path of a file of the table.
    #[must_use]
    pub fn path(&self, file: &DataFile) -> PathBuf {
        self.root.join(&file.path)
    }

    /// Returns true if there may be rows that are in no file yet.
    #[must_use]
    pub fn has_unflushed(&self) -> bool {
        self.log.is_some() || !self.counted.is_empty()
    }

    /// Passes on the rows of one file, with all columns or those that are named.
    ///
    /// # Errors
    /// Fails when the file cannot be read.
    pub fn read_file(
        &self,
        file: &DataFile,
        columns: Option<&[&str]>,
        visit: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SnapshotError> {
        let file = OpenFile::open(&*self.disk, &self.path(file), self.table).map_err(DeltaError::from)?;
        for batch in file.rows(columns).map_err(DeltaError::from)? {
            if visit(batch.map_err(DeltaError::from)?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes on the rows that are in no file yet, oldest first, with the current columns of the table.
    pub fn read_unflushed(&self, visit: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>) -> Unflushed {
        self.read_unflushed_after(0, &mut |_, batch| visit(batch))
    }

    /// Like `read_unflushed`, for the rows after a record of the WAL. Each batch comes with the sequence of its record,
    /// or with its number if the table is derived.
    pub fn read_unflushed_after(
        &self,
        after: u64,
        visit: &mut dyn FnMut(u64, RecordBatch) -> ControlFlow<()>,
    ) -> Unflushed {
        if self.table.is_derived() {
            return self.read_counted_after(after, visit);
        }
        let mut found = Unflushed::default();
        if let Some(log) = &self.log {
            let mut decoders = Decoders::default();
            found.replay = log.read(self.flushed.max(after), &mut |record| {
                let sequence = record.sequence;
                if sequence > self.visible {
                    return ControlFlow::Break(());
                }
                let batch = decoders.record(record).and_then(|record| record.batch(self.table));
                let is_wanted = self.hand_out(sequence, batch, visit, &mut found.unreadable);
                // Records after the last visible one are not even read.
                if sequence == self.visible { ControlFlow::Break(()) } else { is_wanted }
            });
        }
        found
    }

    fn hand_out(
        &self,
        sequence: u64,
        batch: Result<Option<RecordBatch>, CodecError>,
        visit: &mut dyn FnMut(u64, RecordBatch) -> ControlFlow<()>,
        unreadable: &mut u64,
    ) -> ControlFlow<()> {
        let adapted = |batch| Ok(schema_evolution::adapted(batch, &self.table.schema())?);
        match batch.and_then(|batch| batch.map(adapted).transpose()) {
            Ok(Some(batch)) => visit(sequence, batch),
            Ok(None) => ControlFlow::Continue(()),
            Err(_) => {
                *unreadable += 1;
                ControlFlow::Continue(())
            }
        }
    }
}

/// Decodes records of the WAL. Segments of one version share a decoder.
#[derive(Debug, Default)]
pub struct Decoders {
    newest: Option<(Arc<[u8]>, Arc<Decoder>)>,
}

impl Decoders {
    /// Decodes a record.
    ///
    /// # Errors
    /// Fails when its bytes, or those of its segment's preamble, are not in the expected format.
    pub fn record(&mut self, record: Record) -> Result<BufferedRecord, CodecError> {
        let decoder = match &self.newest {
            Some((known, decoder)) if *known == record.preamble => Arc::clone(decoder),
            _ => {
                let decoder = Arc::new(Decoder::new(&record.preamble)?);
                self.newest = Some((Arc::clone(&record.preamble), Arc::clone(&decoder)));
                decoder
            }
        };
        BufferedRecord::new(record.sequence, record.payload, decoder)
    }
}
