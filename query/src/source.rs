//! Where rows come from: a data directory, which another process may be writing. Nothing in it is changed.

use std::path::Path;
use std::sync::Arc;
use store::disk::Disk;
use store::lake::TableReader;
use store::snapshot::{Horizon, Snapshot, SnapshotError};
use store::{DataDirectory, Table};

/// Where rows come from.
#[derive(Debug, Clone)]
pub struct Source {
    disk: Arc<dyn Disk>,
    directory: DataDirectory,
    /// By [`Table::ALL`].
    readers: Arc<[TableReader]>,
}

impl Source {
    /// The tables of a data directory.
    pub fn new(disk: Arc<dyn Disk>, directory: DataDirectory) -> Self {
        let reader = |table| TableReader::new(table, Arc::clone(&disk), directory.table(table));
        let readers = Table::ALL.map(reader).into_iter().collect();
        Self { disk, directory, readers }
    }

    /// A table as it is now, as far as a statement may see it. Blocks.
    pub(crate) fn snapshot(&self, table: Table, horizon: &Horizon) -> Result<Snapshot, SnapshotError> {
        let reader = &self.readers[table as usize];
        Snapshot::read_within(table, &self.disk, &self.directory, reader, horizon)
    }

    /// The data directory.
    pub(crate) fn folder(&self) -> &Path {
        self.directory.path()
    }
}
