//! Reads table snapshots from a data directory, which another process may be writing to. It never changes the
//! directory.

use std::path::Path;
use std::sync::Arc;
use store::delta::TableReader;
use store::disk::Disk;
use store::snapshot::{Horizon, Snapshot, SnapshotError};
use store::{DataDirectory, Table};

/// A data directory that queries read from.
#[derive(Debug, Clone)]
pub struct DataSource {
    disk: Arc<dyn Disk>,
    directory: DataDirectory,
    /// One reader for each table, in the order of [`Table::ALL`].
    readers: Arc<[TableReader]>,
}

impl DataSource {
    /// Opens the tables of a data directory.
    pub fn new(disk: Arc<dyn Disk>, directory: DataDirectory) -> Self {
        let reader = |table| TableReader::new(table, Arc::clone(&disk), directory.table(table));
        let readers = Table::ALL.map(reader).into_iter().collect();
        Self { disk, directory, readers }
    }

    /// Takes a snapshot of a table as it is now, limited to the data within the horizon. It blocks.
    pub(crate) fn snapshot(&self, table: Table, horizon: &Horizon) -> Result<Snapshot, SnapshotError> {
        let reader = &self.readers[table as usize];
        if table == Table::EventCounts {
            let readers = (reader, &self.readers[table.source() as usize]);
            return Snapshot::of_event_counts(&self.disk, &self.directory, readers, horizon);
        }
        Snapshot::read_within(table, &self.disk, &self.directory, reader, horizon)
    }

    /// Returns the path of the data directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}
