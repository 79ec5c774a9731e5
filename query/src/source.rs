//! Where rows come from: the store of this process, or a data directory that another one may be writing.

use std::path::Path;
use std::sync::Arc;
use store::disk::Disk;
use store::hot::Hot;
use store::keeper::Keeper;
use store::snapshot::{Snapshot, SnapshotError};
use store::{DataDirectory, Table};

/// Where rows come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// The store that this process writes.
    Live {
        /// How the disk is reached.
        disk: Arc<dyn Disk>,
        /// Where everything is.
        directory: DataDirectory,
        /// Who seals, and knows the tables.
        keeper: Keeper,
        /// What is not sealed yet.
        hot: Arc<Hot>,
    },
    /// A data directory; nothing in it is changed.
    Directory {
        /// How the disk is reached.
        disk: Arc<dyn Disk>,
        /// Where everything is.
        directory: DataDirectory,
    },
}

impl Source {
    /// A table as it is now. Blocks.
    pub(crate) fn snapshot(&self, table: Table) -> Result<Snapshot, SnapshotError> {
        match self {
            Self::Live { disk, directory, keeper, hot } => match keeper.lake() {
                Some(lake) => Snapshot::take(table, disk, directory, &lake, hot),
                // It could not be opened yet. Whoever only reads may have more luck, and otherwise says why.
                None => Snapshot::read_only(table, disk, directory),
            },
            Self::Directory { disk, directory } => Snapshot::read_only(table, disk, directory),
        }
    }

    /// The data directory.
    pub(crate) fn folder(&self) -> &Path {
        let (Self::Live { directory, .. } | Self::Directory { directory, .. }) = self;
        directory.path()
    }
}
