//! A table as a reader in another process sees it: loaded once, and again only after a newer commit.

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
    /// The newest commit that was loaded, and what the table is made of since then.
    loaded: Mutex<Option<(Commit, Arc<Files>)>>,
}

/// What a commit is recognised by. Its length tells it from one that took its number after it was set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Commit {
    version: u64,
    bytes: u64,
}

impl TableReader {
    /// A reader of the table below a folder. Nothing is read yet.
    #[must_use]
    pub fn new(table: Table, disk: Arc<dyn Disk>, root: PathBuf) -> Self {
        Self { table, disk, root, loaded: Mutex::default() }
    }

    /// The files of the table as they are now.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn files(&self) -> Result<Arc<Files>, DeltaError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = self.newest()?;
        if let (Some((commit, files)), Some(newest)) = (&*loaded, newest)
            && *commit == newest
        {
            return Ok(Arc::clone(files));
        }
        let files = Arc::new(DeltaTables::read_only(self.table, &self.disk, &self.root)?);
        // Commits that came while it was being loaded are in it; finding them again costs one more load.
        *loaded = newest.map(|newest| (newest, Arc::clone(&files)));
        Ok(files)
    }

    /// The newest commit on the disk; none when there is no table yet.
    fn newest(&self) -> Result<Option<Commit>, DeltaError> {
        match self.disk.list(&self.root.join(COMMITS)) {
            Ok(listed) => Ok(listed.iter().filter_map(Commit::of).max()),
            // A table that was never made, or something else in its place, which opening it tells.
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
