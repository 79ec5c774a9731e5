//! The file of the ledger, which is read as a whole, and written atomically.
//!
//! Invariant: a file that cannot be parsed is never overwritten, since everything in it would then be ingested again.

use super::Entry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

/// The version of the format.
const VERSION: u32 = 1;

/// The reason why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LedgerError {
    /// The file cannot be read or written.
    #[error(
        "cannot use the record of what was ingested, {path}: {error}; check its owner, and the room on its disk"
    )]
    Io {
        /// The path of the file.
        path: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file is not a valid ledger.
    #[error(
        "the record of what was ingested, {path}, cannot be understood ({reason}); restore it, or remove it (then files \
         that were ingested before are no longer known)"
    )]
    Damaged {
        /// The path of the file.
        path: String,
        /// The mistake in the file.
        reason: String,
    },
}

#[derive(Serialize, Deserialize)]
struct LedgerDocument {
    version: u32,
    entries: Vec<Entry>,
}

/// The location of a ledger.
pub(super) struct LedgerFile {
    path: PathBuf,
}

impl LedgerFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the entries, or none if there is no file yet.
    pub(super) fn read(&self) -> Result<Vec<Entry>, LedgerError> {
        let bytes = match fs::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(|error| self.io_error(error))?,
        };
        let damaged = |reason: String| LedgerError::Damaged { path: self.name(), reason };
        let document: LedgerDocument =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if document.version != VERSION {
            return Err(damaged(format!("it has version {}, not {VERSION}", document.version)));
        }
        Ok(document.entries)
    }

    /// Changes the entries while no other process can, and returns the entries that were written.
    pub(super) fn update(
        &self,
        change: impl FnOnce(Vec<Entry>) -> BTreeMap<u64, Entry>,
    ) -> Result<BTreeMap<u64, Entry>, LedgerError> {
        let _lock = self.lock().map_err(|error| self.io_error(error))?;
        let entries = change(self.read()?);
        let document = LedgerDocument { version: VERSION, entries: entries.values().cloned().collect() };
        let text = serde_json::to_vec(&document).map_err(|error| self.io_error(error.into()))?;
        store::write_whole(&self.path, &text).map_err(|error| self.io_error(error))?;
        Ok(entries)
    }

    /// Locks the ledger until the returned file is dropped.
    fn lock(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let path = self.path.with_extension("lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        file.lock()?;
        Ok(file)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn io_error(&self, error: io::Error) -> LedgerError {
        LedgerError::Io { path: self.name(), error }
    }
}
