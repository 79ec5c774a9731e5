//! Checks whether the WAL is still where it was opened.
//!
//! A file that was unlinked, or whose folder was renamed, can still be written and synced, but the next start will not
//! find it. So before a group is acknowledged, the names that lead to its segment are looked up again.
//!
//! Invariant: acknowledged records are in a file with the name under which the next start looks for it, in the folder
//! that was opened.

use super::CommitError;
use crate::disk::{Disk, FileIdentity};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The reason why a WAL at another path rejects records.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is not at its path any more: the data directory, or a part of it, was removed, renamed or replaced while the server uses it",
    .0.display()
)]
pub(super) struct LocationChanged(PathBuf);

/// A path, and the identity of the file that it had.
#[derive(Debug, Clone)]
pub(super) struct FileLocation {
    path: PathBuf,
    identity: Option<FileIdentity>,
}

impl FileLocation {
    /// Records the identity of the file that has this name now.
    pub(super) fn of(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: disk.identity(path)? })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails when another file has the name, or none.
    pub(super) fn check(&self, disk: &dyn Disk) -> io::Result<()> {
        match disk.identity(&self.path) {
            Ok(now) if now == self.identity => Ok(()),
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(error)
            }
            _ => Err(io::Error::new(ErrorKind::NotFound, LocationChanged(self.path.clone()))),
        }
    }
}

/// Returns the rejection if the error says that the WAL was displaced.
pub(super) fn displaced(error: &io::Error) -> Option<CommitError> {
    let displaced = error.get_ref()?.downcast_ref::<LocationChanged>()?;
    Some(CommitError::Displaced(displaced.to_string().into()))
}
