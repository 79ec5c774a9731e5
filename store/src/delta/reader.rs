//! A reader of a table that another process writes. It loads the table once, and again only after a newer commit.

use super::files::Files;
use super::{DeltaError, DeltaTables};
use crate::disk::{Disk, Listed};
use crate::schema::Table;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The folder of a Delta table's commits.
const COMMITS: &str = "_delta_log";

/// A table that is only read, and that another process may be writing.
#[derive(Debug)]
pub struct TableReader {
    table: Table,
    disk: Arc<dyn Disk>,
    root: PathBuf,
    /// The newest commit that was loaded, and the files of the table at that commit.
    loaded: Mutex<Option<(Commit, Arc<Files>)>>,
}

/// The identity of a commit. The length distinguishes it from one that reused its number after it was set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Commit {
    version: u64,
    bytes: u64,
}

impl TableReader {
    /// Creates a reader of the table below a folder, without reading anything yet.
    #[must_use]
    pub fn new(table: Table, disk: Arc<dyn Disk>, root: PathBuf) -> Self {
        Self { table, disk, root, loaded: Mutex::default() }
    }

    /// Returns the current files of the table.
    ///
    /// # Errors
    /// Fails when the table cannot be read.
    pub fn files(&self) -> Result<Arc<Files>, DeltaError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = self.newest()?;
        if let (Some((commit, files)), Some(newest)) = (&*loaded, newest)
            && *commit == newest
        {
            return Ok(Arc::clone(files));
        }
        let files = Arc::new(DeltaTables::read_only(self.table, &self.disk, &self.root)?);
        // The load may include commits that are newer than this one; finding them again costs one more load.
        *loaded = newest.map(|newest| (newest, Arc::clone(&files)));
        Ok(files)
    }

    /// Returns the newest commit on disk, or `None` when there is no table yet.
    fn newest(&self) -> Result<Option<Commit>, DeltaError> {
        match self.disk.list(&self.root.join(COMMITS)) {
            Ok(listed) => Ok(listed.iter().filter_map(Commit::of).max()),
            // The table was never created, or its path is something else, which opening it reports.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Commit {
    fn of(listed: &Listed) -> Option<Self> {
        let version = listed.name.strip_suffix(".json")?.parse().ok()?;
        Some(Self { version, bytes: listed.bytes })
    }
}
