//! A table as it is at one moment: its files, and the rows of the log that are not in them yet.
//!
//! What always holds: every row that was acknowledged before a snapshot was taken is in it once. What is unsealed is
//! looked at **before** the files are: a record that is sealed in between is then in both, and the files' watermark
//! says so; the other way round it could be in neither. What a snapshot names stays readable: log segments because
//! they are held open, files because `vacuum` spares them (or, for readers in another process, for a while).

use crate::codec::{CodecError, Decoder};
use crate::directory::DataDirectory;
use crate::disk::Disk;
use crate::hot::{Hot, HotRecord};
use crate::lake::file::OpenFile;
use crate::lake::files::{DataFile, Files};
use crate::lake::{Lake, LakeError, evolve};
use crate::log::{LogError, LogView, Record, Replay};
use crate::schema::Table;
use arrow::array::RecordBatch;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The table, or a file of it, cannot be read.
    #[error(transparent)]
    Lake(#[from] LakeError),
}

/// A table as it is at one moment.
#[derive(Debug)]
pub struct Snapshot {
    table: Table,
    disk: Arc<dyn Disk>,
    root: PathBuf,
    /// The files, with their partitions and statistics.
    pub files: Arc<Files>,
    /// Everything in the log up to here is in the files.
    sealed: u64,
    /// What is hot and not in the files, oldest first.
    pub hot: Vec<Arc<HotRecord>>,
    /// What is neither in the files nor hot.
    log: Option<LogView>,
}

/// What reading the unsealed rows has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unsealed {
    /// Of the log, as far as it was read.
    pub replay: Replay,
    /// Records that are intact but could not be understood.
    pub unreadable: u64,
}

impl Snapshot {
    /// A table of the data directory that this process writes.
    ///
    /// # Errors
    /// When the log has to be read and cannot be.
    pub fn take(
        table: Table,
        disk: &Arc<dyn Disk>,
        directory: &DataDirectory,
        lake: &Lake,
        hot: &Hot,
    ) -> Result<Self, SnapshotError> {
        let hot = hot.snapshot();
        // Only when something had to go before it was sealed.
        let log = if hot.evicted > lake.table(table).1 {
            Some(LogView::open(&**disk, &directory.log())?)
        } else {
            None
        };
        let (files, sealed) = lake.table(table);
        let is_unsealed = |record: &Arc<HotRecord>| record.sequence > sealed;
        let hot = hot.records.into_iter().filter(is_unsealed).collect();
        Ok(Self { table, disk: Arc::clone(disk), root: directory.table(table), files, sealed, hot, log })
    }

    /// A table of a data directory that another process may be writing. Nothing in it is changed.
    ///
    /// # Errors
    /// When the log or the table cannot be read.
    pub fn read_only(
        table: Table,
        disk: &Arc<dyn Disk>,
        directory: &DataDirectory,
    ) -> Result<Self, SnapshotError> {
        let log = Some(LogView::open(&**disk, &directory.log())?);
        let root = directory.table(table);
        let files = Arc::new(Lake::read_only(table, disk, &root)?);
        let sealed = files.sealed;
        Ok(Self { table, disk: Arc::clone(disk), root, files, sealed, hot: Vec::new(), log })
    }

    /// Where a file of the table stands.
    #[must_use]
    pub fn path(&self, file: &DataFile) -> PathBuf {
        self.root.join(&file.path)
    }

    /// Whether there may be rows that are in no file yet.
    #[must_use]
    pub fn has_unsealed(&self) -> bool {
        self.log.is_some() || !self.hot.is_empty()
    }

    /// Hands out the rows of one file; of all columns, or of those that are named.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_file(
        &self,
        file: &DataFile,
        columns: Option<&[&str]>,
        visit: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SnapshotError> {
        let file = OpenFile::open(&*self.disk, &self.path(file), self.table).map_err(LakeError::from)?;
        for batch in file.rows(columns).map_err(LakeError::from)? {
            if visit(batch.map_err(LakeError::from)?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Hands out the rows that are in no file yet, oldest first, with the current columns of the table.
    pub fn read_unsealed(&self, visit: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>) -> Unsealed {
        let first_hot = self.hot.first().map_or(u64::MAX, |record| record.sequence);
        let mut found = Unsealed::default();
        let mut is_wanted = ControlFlow::Continue(());
        if let Some(log) = &self.log {
            let mut decoders = Decoders::default();
            found.replay = log.read(self.sealed, &mut |record| {
                if record.sequence >= first_hot {
                    return ControlFlow::Break(());
                }
                let batch = decoders.record(record).and_then(|record| record.batch(self.table));
                is_wanted = self.hand_out(batch, visit, &mut found.unreadable);
                is_wanted
            });
        }
        for record in &self.hot {
            if is_wanted.is_continue() {
                is_wanted = self.hand_out(record.batch(self.table), visit, &mut found.unreadable);
            }
        }
        found
    }

    fn hand_out(
        &self,
        batch: Result<Option<RecordBatch>, CodecError>,
        visit: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
        unreadable: &mut u64,
    ) -> ControlFlow<()> {
        let adapted = |batch| Ok(evolve::adapted(batch, &self.table.schema())?);
        match batch.and_then(|batch| batch.map(adapted).transpose()) {
            Ok(Some(batch)) => visit(batch),
            Ok(None) => ControlFlow::Continue(()),
            Err(_) => {
                *unreadable += 1;
                ControlFlow::Continue(())
            }
        }
    }
}

/// Turns records of the log into hot ones. Segments of one version share a decoder.
#[derive(Debug, Default)]
pub struct Decoders {
    newest: Option<(Arc<[u8]>, Arc<Decoder>)>,
}

impl Decoders {
    /// A record, ready to be looked into.
    ///
    /// # Errors
    /// When its bytes, or those of its segment's preamble, are not laid out as such.
    pub fn record(&mut self, record: Record) -> Result<HotRecord, CodecError> {
        let decoder = match &self.newest {
            Some((known, decoder)) if *known == record.preamble => Arc::clone(decoder),
            _ => {
                let decoder = Arc::new(Decoder::new(&record.preamble)?);
                self.newest = Some((Arc::clone(&record.preamble), Arc::clone(&decoder)));
                decoder
            }
        };
        HotRecord::new(record.sequence, record.payload, decoder)
    }
}
