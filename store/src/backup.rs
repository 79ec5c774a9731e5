//! A copy of a data directory that a server may be using; and back again, as a backup is a data directory.
//!
//! The order is everything. The log is opened first and held, then the tables' logs are copied, and only then what is in
//! the log: rows go from the log to the tables, so a row that moves meanwhile is in both, and the table's watermark says
//! so; the other way round it could be in neither. Files of tables never change, and are copied at leisure.
//!
//! What always holds:
//! - **A backup is what a power loss at one moment would have left**: everything that was answered with a yes before it
//!   began, once, and whole requests only.
//! - Nothing in the source is changed, and nothing in the target is overwritten.
//! - The target becomes a data directory with its last step. Until then a marker stands in it, which is written before anything
//!   else and by which everybody else refuses the folder; what is copied lies in one folder of it. An attempt that was
//!   interrupted while it copied begins anew; one that had everything only puts that into its place.

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

/// A source that is changed under our hands is looked at so often.
const ROUNDS: u32 = 5;
/// The number of bytes that are copied at once.
const CHUNK: u64 = 1 << 20;
/// Files that belong to the process that uses a directory, and are not copied.
const OF_THE_PROCESS: [&str; 3] = ["LOCK", "endpoints.json", CLOCK_CONFIRMATION];

/// The reason why a backup failed. Each message includes the remedy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Something is there already.
    #[error("{0} is not empty, and nothing is overwritten; choose another folder, or move it out of the way")]
    NotEmpty(String),
    /// A copy of something else was begun there, and is whole but not in its place.
    #[error("{to} holds a copy of {earlier} that is not finished; finish that one first, or remove {to}")]
    Other {
        /// The target.
        to: String,
        /// The source of the interrupted copy.
        earlier: String,
    },
    /// Another process is copying there.
    #[error(transparent)]
    Taken(#[from] LockError),
    /// The source or the target cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The source's log cannot be read.
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
    /// Files went faster than they could be copied.
    #[error(
        "files left {0} while they were copied, {ROUNDS} times; start the server with a longer --vacuum-grace, or copy a snapshot of its file system"
    )]
    Changing(String),
}

/// The amount of data that was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// Files of the tables and segments of the log.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of the files that an earlier backup had, and that have a second name now.
    pub shared: u64,
}

/// A backup that will be made.
#[derive(Debug)]
pub struct Backup<'b> {
    disk: Arc<dyn Disk>,
    from: DataDirectory,
    to: PathBuf,
    /// An earlier backup, whose files need not be copied.
    base: Option<&'b Path>,
    _lock: DirectoryLock,
    /// Files that an interrupted attempt left behind.
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
    /// A backup of a directory into a folder that is empty or is not there.
    ///
    /// # Errors
    /// When there is nothing to copy, or something is in the way.
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

    /// Copies everything; `watch` is told how many bytes more were copied. When this returns, the target is a data directory,
    /// and durable.
    ///
    /// # Errors
    /// The target is as empty as it was, as far as the disk allows.
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

    /// The source, by a name that does not depend on where we are.
    fn source(&self) -> String {
        let path = self.from.path();
        path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
    }

    /// Says, durably, that the target is not finished, and how far it is.
    fn mark(&self, copied: Option<Copied>) -> Result<(), BackupError> {
        CopyMarker { from: self.source(), copied }.write(&self.to).map_err(|error| self.failed(&error))
    }

    /// Leaves the target as empty as it was, as far as the disk allows.
    fn give_up(&self) {
        if self.clear().is_ok() {
            drop(self.disk.remove(&self.to.join(COPY_MARKER)));
        }
    }

    /// One attempt. Positions and ledgers are copied before the log is: they must not know of more than it holds.
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

    /// The key, positions and ledgers.
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

    /// The files that the copied version of a table is made of.
    fn data_files(
        &self,
        table: Table,
        copied: &mut Copied,
        watch: &mut dyn FnMut(u64),
    ) -> Result<(), Failed> {
        let root = self.staged().join(TABLES).join(table.name());
        let version = DeltaTables::read_only(table, &self.disk, &root)?;
        let mut folders = HashSet::new();
        // The newest first: those are merged away soonest.
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

    /// Whether an earlier backup has a file, which then gets a second name. Elsewhere than on one file system there are none.
    fn shares(&self, table: Table, file: &DataFile, to: &Path) -> bool {
        let Some(base) = self.base else { return false };
        let earlier = base.join(TABLES).join(table.name()).join(&file.path);
        let is_same = self.disk.open(&earlier).is_ok_and(|earlier| earlier.bytes() == file.bytes);
        is_same && self.disk.link(&earlier, to).is_ok()
    }

    /// Puts everything in its place, the log last: without one, a folder is no data directory.
    fn finish(&self) -> io::Result<()> {
        let (disk, staged) = (&*self.disk, self.staged());
        // Where an earlier attempt came to its end, there is nothing left to be moved.
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

    /// A file that is not there any more was merged away or expired: what is there now is copied instead.
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
    // A marker that was not even written.
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

/// Copies one file, durably. Its name is durable after [`Disk::sync_dir`].
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
