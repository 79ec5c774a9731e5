//! The data directory: the locations of its files, and the key that token hashes are made with.

use crate::backup::Copied;
use crate::lock::{DirectoryLock, LockError};
use crate::schema::Table;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The reason why a data directory cannot be used. Each message includes the remedy.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The directory cannot be created, read or written.
    #[error(
        "cannot use the data directory {path}: {error}; check its owner and permissions, or choose another with --data-dir"
    )]
    Unusable {
        /// The directory, or the file in it.
        path: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The disk is full.
    #[error("cannot write {path}: {error}; make room on the disk, or choose another with --data-dir")]
    Full {
        /// The directory, or the file in it.
        path: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The path is a file.
    #[error("{0} is a file, not a folder; choose another with --data-dir")]
    NotAFolder(String),
    /// The directory does not exist, and it was opened only for reading.
    #[error("{0} is no data directory of ours; give the one that `faultline serve` uses with --data-dir")]
    Missing(String),
    /// The directory holds an unfinished copy.
    #[error(
        "{path} holds a copy of {from} that is not finished (`faultline restore` or `backup` was interrupted, or is still running); finish it with `faultline restore {from} --data-dir {path}`, or discard it by removing {path}; nothing else is in there, and {from} stays as it is"
    )]
    Unfinished {
        /// The directory.
        path: String,
        /// The source of the copy.
        from: String,
    },
    /// Another process uses the directory.
    #[error(transparent)]
    Taken(#[from] LockError),
    /// The key file does not contain a key.
    #[error(
        "{0} does not hold 32 hex digits; restore it from a backup, or remove it to start with a new key (token hashes will differ)"
    )]
    BadKey(String),
}

/// The folder of the flushed tables.
pub const TABLES: &str = "tables";
/// The folder of damaged files.
pub(crate) const SET_ASIDE: &str = "set-aside";

/// The folder of an unfinished copy.
pub(crate) const STAGING: &str = "unfinished-backup";
/// The marker of an unfinished copy: written before anything is copied, and removed when everything is in its place.
pub(crate) const COPY_MARKER: &str = "unfinished-copy.json";

/// The file in which an operator confirms the wall clock.
pub(crate) const CLOCK_CONFIRMATION: &str = "clock-confirmed.json";

/// A data directory.
#[derive(Debug, Clone)]
pub struct DataDirectory {
    path: PathBuf,
}

impl DataDirectory {
    /// Creates the directory if it does not exist, readable only by this user, and takes its lock.
    ///
    /// # Errors
    /// Fails when it cannot be used, or when another process uses it.
    pub fn claim(path: &Path) -> Result<(Self, DirectoryLock), DirectoryError> {
        let directory = Self { path: path.to_owned() };
        if path.is_file() {
            return Err(DirectoryError::NotAFolder(path.display().to_string()));
        }
        directory.is_finished()?;
        Self::make(path)?;
        let lock = DirectoryLock::take(path)?;
        Self::make(&directory.wal())?;
        Ok((directory, lock))
    }

    /// Opens a directory for reading, which another process may be using.
    ///
    /// # Errors
    /// Fails when it does not exist.
    pub fn existing(path: &Path) -> Result<Self, DirectoryError> {
        let directory = Self { path: path.to_owned() };
        directory.is_finished()?;
        match fs::metadata(directory.wal()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(path, error)),
            Ok(log) if log.is_dir() => Ok(directory),
            _ => Err(DirectoryError::Missing(path.display().to_string())),
        }
    }

    /// Fails if the directory is only an unfinished copy. An earlier version left no marker: it is recognised by a
    /// folder of staged files and a missing WAL.
    fn is_finished(&self) -> Result<(), DirectoryError> {
        let path = || self.path.display().to_string();
        match CopyMarker::read(&self.path) {
            Ok(Some(marker)) => Err(DirectoryError::Unfinished { path: path(), from: marker.from }),
            Ok(None) if self.path.join(STAGING).is_dir() && !self.wal().is_dir() => {
                Err(DirectoryError::Unfinished { path: path(), from: "BACKUP".to_owned() })
            }
            Ok(None) => Ok(()),
            Err(error) => Err(unusable(&self.path, error)),
        }
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder of the write-ahead log.
    #[must_use]
    pub fn wal(&self) -> PathBuf {
        self.path.join("wal")
    }

    /// Returns the folder of the identities of calls that were counted in the last minutes.
    #[must_use]
    pub fn recent_calls(&self) -> PathBuf {
        self.path.join("recent-calls")
    }

    /// Returns the folder of the flushed tables.
    #[must_use]
    pub fn tables(&self) -> PathBuf {
        self.path.join(TABLES)
    }

    /// Returns the folder of a table.
    #[must_use]
    pub fn table(&self, table: Table) -> PathBuf {
        self.tables().join(table.name())
    }

    /// Returns the file with the addresses of a running server.
    #[must_use]
    pub fn endpoints(&self) -> PathBuf {
        self.path.join("endpoints.json")
    }

    /// Returns the file with the state of the clock while no server runs.
    #[must_use]
    pub fn clock(&self) -> PathBuf {
        self.path.join("clock.json")
    }

    /// Returns the file by which an operator confirms the clock.
    #[must_use]
    pub fn clock_confirmation(&self) -> PathBuf {
        self.path.join(CLOCK_CONFIRMATION)
    }

    /// Returns the key of token hashes, and creates it if there is none. It is stored, so that a token has the same
    /// hash after a restart.
    ///
    /// # Errors
    /// Fails when it cannot be read, written, or parsed.
    pub fn hash_key(&self) -> Result<[u8; 16], DirectoryError> {
        let path = self.path.join("hash.key");
        match fs::read_to_string(&path) {
            Ok(text) => {
                parse_key(text.trim()).ok_or_else(|| DirectoryError::BadKey(path.display().to_string()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                new_key(&path).map_err(|error| unusable(&path, error))
            }
            Err(error) => Err(unusable(&path, error)),
        }
    }

    /// Writes a file completely or not at all.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<(), DirectoryError> {
        write_whole(path, content).map_err(|error| unusable(path, error))
    }

    /// Creates a folder that only this user can read, durably.
    pub(crate) fn make(path: &Path) -> Result<(), DirectoryError> {
        make_folder(path).map_err(|error| unusable(path, error))
    }
}

/// The content of the marker file, which exists as long as a copy into the directory is not finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyMarker {
    /// The source of the unfinished copy.
    pub(crate) from: String,
    /// The copied files, once all are copied and only have to be moved into place.
    pub(crate) copied: Option<Copied>,
}

impl CopyMarker {
    pub(crate) fn read(folder: &Path) -> io::Result<Option<Self>> {
        match fs::read(folder.join(COPY_MARKER)) {
            // A marker that cannot be parsed is a marker, too.
            Ok(bytes) => Ok(Some(
                serde_json::from_slice(&bytes).unwrap_or(Self { from: "BACKUP".to_owned(), copied: None }),
            )),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the marker durably.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        write_whole(&folder.join(COPY_MARKER), &serde_json::to_vec(self)?)
    }
}

/// Creates a folder and its parents. When this returns, their names are durable, because files that are synced inside a
/// folder are lost if a power loss removes the folder.
fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_folder(parent)?;
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !path.is_dir() => return Err(error),
        _ => {}
    }
    File::open(parent)?.sync_all()
}

fn unusable(path: &Path, error: io::Error) -> DirectoryError {
    let path = path.display().to_string();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DirectoryError::Full { path, error },
        _ => DirectoryError::Unusable { path, error },
    }
}

fn parse_key(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}

fn new_key(path: &Path) -> io::Result<[u8; 16]> {
    let mut key = [0; 16];
    getrandom::fill(&mut key)?;
    write_whole(path, format!("{:032x}\n", u128::from_be_bytes(key)).as_bytes())?;
    Ok(key)
}

/// Writes a file completely or not at all: to a temporary name, synced, then renamed. A crash leaves the old file or
/// the new one.
///
/// # Errors
/// Fails when the file cannot be written.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_stays_and_is_ours_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, _lock) = DataDirectory::claim(&folder.path().join("new/data")).unwrap();
        let key = directory.hash_key().unwrap();
        assert_eq!(directory.hash_key().unwrap(), key);
        assert_ne!(key, [0; 16]);
        let path = directory.path().join("hash.key");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "not a key").unwrap();
        assert!(directory.hash_key().unwrap_err().to_string().contains("32 hex digits"));
    }

    #[test]
    fn a_directory_that_is_not_there_is_not_made_by_reading() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent");
        assert!(DataDirectory::existing(&path).unwrap_err().to_string().contains("--data-dir"));
        assert!(!path.exists());
    }
}
