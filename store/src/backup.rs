//! Copies a data directory that a server may be using. A backup is a data directory, so the same code restores it.
//!
//! The order matters. The WAL is opened first and held, then the Delta logs of the tables are copied, and only then the
//! segments of the WAL. Rows move from the WAL to the tables, so a row that moves meanwhile is in both, and the table's
//! watermark says so; in the opposite order it could be in neither. Files of tables never change and can be copied at
//! any time.
//!
//! Invariants:
//! - **A backup is what a power loss at one moment would have left**: everything that was acknowledged before the
//!   backup began, exactly once, and whole requests only.
//! - Nothing in the source is changed, and nothing in the target is overwritten.
//! - The target becomes a data directory with the last step. Until then it contains a marker, which is written before
//!   anything else and which makes all other commands reject the folder; the copied files are in one subfolder. An
//!   attempt that was interrupted while it copied starts over; one that had copied everything only moves the files into
//!   place.

use crate::delta::{DeltaError, DeltaTables, backup::copy_log, files::DataFile};
use crate::directory::{
    CLOCK_CONFIRMATION, COPY_MARKER, CopyMarker, DataDirectory, DirectoryError, STAGING, TABLES,
};
use crate::disk::{Disk, Listed};
use crate::lock::{DirectoryLock, LockError};
use crate::schema::Table;
use crate::wal::{CopyError, WalError, WalView};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of attempts when the source changes during the copy.
const ROUNDS: u32 = 5;
/// The number of bytes that are copied at once.
const CHUNK: u64 = 1 << 20;
/// Files that belong to the process that uses a directory. They are not copied.
const OF_THE_PROCESS: [&str; 3] = ["LOCK", "endpoints.json", CLOCK_CONFIRMATION];

/// The reason why a backup failed. Each message includes the remedy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The target is not empty.
    #[error("{0} is not empty, and nothing is overwritten; choose another folder, or move it out of the way")]
    NotEmpty(String),
    /// The target holds a complete copy of another source, which was interrupted before it was moved into place.
    #[error("{to} holds a copy of {earlier} that is not finished; finish that one first, or remove {to}")]
    Other {
        /// The target.
        to: String,
        /// The source of the interrupted copy.
        earlier: String,
    },
    /// Another process is copying into the target.
    #[error(transparent)]
    Taken(#[from] LockError),
    /// The source or the target cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The source's WAL cannot be read.
    #[error(transparent)]
    Wal(#[from] WalError),
    /// A table of the source cannot be read.
    #[error(transparent)]
    DeltaTables(#[from] DeltaError),
    /// A file could not be copied.
    #[error("cannot copy to {path}: {error}; see to the disk's room and permissions, and begin again")]
    Copy {
        /// The target.
        path: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Files were removed faster than they could be copied.
    #[error(
        "files left {0} while they were copied, {ROUNDS} times; start the server with a longer --vacuum-grace, or copy a snapshot of its file system"
    )]
    Changing(String),
}

/// The amount of data that was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// The number of table files and WAL segments.
    pub files: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The number of files that were hard-linked from an earlier backup.
    pub shared: u64,
}

/// A backup that is about to be made.
#[derive(Debug)]
pub struct Backup<'b> {
    disk: Arc<dyn Disk>,
    from: DataDirectory,
    to: PathBuf,
    /// An earlier backup. Its files are linked and not copied.
    base: Option<&'b Path>,
    _lock: DirectoryLock,
    /// The marker that an interrupted attempt left behind.
    marker: Option<CopyMarker>,
}

/// The failure of one attempt, and whether another attempt may succeed.
enum Failed {
    Moved,
    For(BackupError),
}

impl<E: Into<BackupError>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::For(error.into())
    }
}

impl<'b> Backup<'b> {
    /// Prepares a backup of a directory into a folder that is empty or does not exist.
    ///
    /// # Errors
    /// Fails when there is nothing to copy, or the target is not empty.
    pub fn new(
        disk: Arc<dyn Disk>,
        from: &Path,
        to: &Path,
        base: Option<&'b Path>,
    ) -> Result<Self, BackupError> {
        let from = DataDirectory::existing(from)?;
        if let Some(base) = base {
            DataDirectory::existing(base)?;
        }
        DataDirectory::make(to)?;
        let failed = |error| BackupError::Copy { path: to.display().to_string(), error };
        let marker = CopyMarker::read(to).map_err(failed)?;
        let is_ours = marker.is_some() || is_empty(&*disk, to).map_err(failed)?;
        if !is_ours {
            return Err(BackupError::NotEmpty(to.display().to_string()));
        }
        let lock = DirectoryLock::take_folder(to)?;
        Ok(Self { disk, from, to: to.to_owned(), base, _lock: lock, marker })
    }

    /// Copies everything. `watch` is called with the number of bytes that were copied since the last call. When this
    /// returns, the target is a data directory, and durable.
    ///
    /// # Errors
    /// If it fails, the target is as empty as before, as far as the disk allows.
    pub fn run(&self, watch: &mut dyn FnMut(u64)) -> Result<Copied, BackupError> {
        if let Some(CopyMarker { from, copied: Some(copied) }) = &self.marker {
            if *from != self.source() {
                let (to, earlier) = (self.to.display().to_string(), from.clone());
                return Err(BackupError::Other { to, earlier });
            }
            self.finish().map_err(|error| self.failed(&error))?;
            return Ok(*copied);
        }
        self.mark(None)?;
        let copied = self.copy(watch).inspect_err(|_| self.give_up())?;
        self.mark(Some(copied))?;
        self.finish().map_err(|error| self.failed(&error))?;
        Ok(copied)
    }

    /// Copies everything into the folder for unfinished backups.
    fn copy(&self, watch: &mut dyn FnMut(u64)) -> Result<Copied, BackupError> {
        for _ in 0..ROUNDS {
            self.clear()?;
            match self.round(watch) {
                Ok(copied) => {
                    self.disk.sync_dir(&self.staged()).map_err(|error| self.failed(&error))?;
                    return Ok(copied);
                }
                Err(Failed::Moved) => {}
                Err(Failed::For(error)) => return Err(error),
            }
        }
        Err(BackupError::Changing(self.from.path().display().to_string()))
    }

    /// Returns the name of the source, which does not depend on the working directory.
    fn source(&self) -> String {
        let path = self.from.path();
        path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
    }

    /// Writes the marker durably: the target is unfinished, and `copied` says whether all files are copied.
    fn mark(&self, copied: Option<Copied>) -> Result<(), BackupError> {
        CopyMarker { from: self.source(), copied }.write(&self.to).map_err(|error| self.failed(&error))
    }

    /// Leaves the target as empty as before, as far as the disk allows.
    fn give_up(&self) {
        if self.clear().is_ok() {
            drop(self.disk.remove(&self.to.join(COPY_MARKER)));
        }
    }

    /// Makes one attempt. Positions and ledgers are copied before the WAL: they must not refer to more than it holds.
    fn round(&self, watch: &mut dyn FnMut(u64)) -> Result<Copied, Failed> {
        let disk = &*self.disk;
        let log = WalView::open(disk, &self.from.wal())?;
        let staged = self.staged();
        self.make(&staged.join("wal"))?;
        self.single_files(&staged)?;
        for table in Table::ALL {
            let root = staged.join(TABLES).join(table.name());
            if !self.gone(copy_log(disk, &self.from.table(table), &root))? {
                return Err(Failed::Moved);
            }
        }
        let (files, bytes) = match log.copy(disk, &self.from.wal(), &staged.join("wal")) {
            Err(CopyError::Changing) => return Err(Failed::Moved),
            Err(CopyError::Wal(error)) => return Err(error.into()),
            Err(CopyError::Disk(error)) => return Err(Failed::For(self.failed(&error))),
            Ok(copied) => copied,
        };
        watch(bytes);
        let mut copied = Copied { files, bytes, shared: 0 };
        for table in Table::ALL {
            self.data_files(table, &mut copied, watch)?;
        }
        Ok(copied)
    }

    /// Copies the key, positions and ledgers.
    fn single_files(&self, staged: &Path) -> Result<(), Failed> {
        for file in self.disk.list(self.from.path()).map_err(|error| self.failed(&error))? {
            let is_being_written = Path::new(&file.name).extension().is_some_and(|end| end == "new");
            if is_being_written || OF_THE_PROCESS.contains(&&*file.name) {
                continue;
            }
            let (from, to) = (self.from.path().join(&file.name), staged.join(&file.name));
            self.gone(copy_file(&*self.disk, &from, &to).map_err(DeltaError::from))?;
        }
        Ok(())
    }

    /// Copies the files of the copied version of a table.
    fn data_files(
        &self,
        table: Table,
        copied: &mut Copied,
        watch: &mut dyn FnMut(u64),
    ) -> Result<(), Failed> {
        let root = self.staged().join(TABLES).join(table.name());
        let version = DeltaTables::read_only(table, &self.disk, &root)?;
        let mut folders = HashSet::new();
        // The newest files are copied first, because they are merged away first.
        let mut files = version.files;
        files.sort_by_key(|file| std::cmp::Reverse(file.written_at));
        for file in &files {
            let to = root.join(&file.path);
            if let Some(folder) = to.parent()
                && folders.insert(folder.to_owned())
            {
                self.make(folder)?;
            }
            copied.files += 1;
            if self.shares(table, file, &to) {
                copied.shared += 1;
                continue;
            }
            let from = self.from.table(table).join(&file.path);
            self.gone(copy_file(&*self.disk, &from, &to).map_err(DeltaError::from))?;
            copied.bytes += file.bytes;
            watch(file.bytes);
        }
        for folder in folders {
            self.disk.sync_dir(&folder).map_err(|error| self.failed(&error))?;
        }
        Ok(())
    }

    /// Hard-links a file from an earlier backup, and returns true if that worked. It only works within one file system.
    fn shares(&self, table: Table, file: &DataFile, to: &Path) -> bool {
        let Some(base) = self.base else { return false };
        let earlier = base.join(TABLES).join(table.name()).join(&file.path);
        let is_same = self.disk.open(&earlier).is_ok_and(|earlier| earlier.bytes() == file.bytes);
        is_same && self.disk.link(&earlier, to).is_ok()
    }

    /// Moves everything into place, the WAL last: without a WAL, a folder is not a data directory.
    fn finish(&self) -> io::Result<()> {
        let (disk, staged) = (&*self.disk, self.staged());
        // Nothing is left to be moved if an earlier attempt has moved everything.
        if let Some(files) = unless_missing(disk.list(&staged))? {
            let folders = disk.folders(&staged)?;
            let (log, others): (Vec<_>, Vec<_>) = folders.into_iter().partition(|name| name == "wal");
            for name in files.into_iter().map(|file| file.name).chain(others) {
                disk.rename(&staged.join(&name), &self.to.join(&name))?;
            }
            disk.sync_dir(&self.to)?;
            for name in log {
                disk.rename(&staged.join(&name), &self.to.join(&name))?;
            }
            disk.remove_folder(&staged)?;
            disk.sync_dir(&self.to)?;
        }
        disk.remove(&self.to.join(COPY_MARKER))?;
        disk.sync_dir(&self.to)
    }

    fn staged(&self) -> PathBuf {
        self.to.join(STAGING)
    }

    fn make(&self, folder: &Path) -> Result<(), Failed> {
        self.disk.create_dir_all(folder).map_err(|error| Failed::For(self.failed(&error)))
    }

    fn clear(&self) -> Result<(), BackupError> {
        remove_all(&*self.disk, &self.staged()).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> BackupError {
        let error = io::Error::new(error.kind(), error.to_string());
        BackupError::Copy { path: self.to.display().to_string(), error }
    }

    /// Handles a file that does not exist any more: it was merged or expired, and the newer version is copied instead.
    fn gone<T>(&self, done: Result<T, DeltaError>) -> Result<T, Failed> {
        done.map_err(|error| match error {
            DeltaError::Disk(error) if error.kind() == io::ErrorKind::NotFound => Failed::Moved,
            DeltaError::Disk(error) => Failed::For(self.failed(&error)),
            other => Failed::For(other.into()),
        })
    }
}

/// Returns true if a folder is empty except for files of an interrupted attempt or of the file system.
fn is_empty(disk: &dyn Disk, folder: &Path) -> io::Result<bool> {
    // This is a marker that was not written completely.
    let is_file_of_ours = |file: &Listed| file.name == "unfinished-copy.new";
    let is_folder_of_ours = |name: &String| name == STAGING || name == "lost+found";
    Ok(disk.list(folder)?.iter().all(is_file_of_ours) && disk.folders(folder)?.iter().all(is_folder_of_ours))
}

fn unless_missing<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Copies one file durably. Its name is durable after [`Disk::sync_dir`].
pub(crate) fn copy_file(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    let source = disk.open(from)?;
    let bytes = source.bytes();
    let mut target = disk.create(to, bytes)?;
    let mut chunk = vec![0; usize::try_from(CHUNK.min(bytes)).unwrap_or_default()];
    let mut at = 0;
    while at < bytes {
        let length = usize::try_from((bytes - at).min(CHUNK)).unwrap_or_default();
        source.read_at(at, &mut chunk[..length])?;
        target.append(&mut [IoSlice::new(&chunk[..length])])?;
        at += length as u64;
    }
    target.sync()
}

fn remove_all(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    let Some(listed) = unless_missing(disk.list(folder))? else { return Ok(()) };
    for file in listed {
        disk.remove(&folder.join(file.name))?;
    }
    for inner in disk.folders(folder)? {
        remove_all(disk, &folder.join(inner))?;
    }
    disk.remove_folder(folder)
}
