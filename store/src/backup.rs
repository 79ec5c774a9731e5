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
//! - The target becomes a data directory with its last step; what is begun and not ended lies in one folder of it, which
//!   the next attempt clears away.

use crate::directory::{DataDirectory, DirectoryError, TABLES};
use crate::disk::Disk;
use crate::lake::{Lake, LakeError, copy::copy_log, files::DataFile};
use crate::log::{CopyError, LogError, LogView};
use crate::schema::Table;
use std::collections::HashSet;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a backup is until it is whole.
const UNFINISHED: &str = "unfinished-backup";
/// A source that is changed under our hands is looked at so often.
const ROUNDS: u32 = 5;
/// How much is copied at once.
const CHUNK: u64 = 1 << 20;
/// What belongs to the process that uses a directory.
const OF_THE_PROCESS: [&str; 2] = ["LOCK", "endpoints.json"];

/// Why there is no backup. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Something is there already.
    #[error("{0} is not empty, and nothing is overwritten; choose another folder, or move it out of the way")]
    NotEmpty(String),
    /// The source or the target cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The source's log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A table of the source cannot be read.
    #[error(transparent)]
    Lake(#[from] LakeError),
    /// A file could not be copied.
    #[error("cannot copy to {path}: {error}; see to the disk's room and permissions, and begin again")]
    Copy {
        /// The target.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// Files went faster than they could be copied.
    #[error(
        "files left {0} while they were copied, {ROUNDS} times; start the server with a longer --grace, or copy a snapshot of its file system"
    )]
    Changing(String),
}

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files of the tables and segments of the log.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of the files that an earlier backup had, and that have a second name now.
    pub shared: u64,
}

/// A backup to be made.
#[derive(Debug)]
pub struct Backup<'b> {
    disk: Arc<dyn Disk>,
    from: DataDirectory,
    to: PathBuf,
    /// An earlier backup, whose files need not be copied.
    base: Option<&'b Path>,
}

/// One attempt did not work, and whether another one may.
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
        let backup = Self { disk, from, to: to.to_owned(), base };
        backup
            .is_empty()
            .map_err(|error| backup.failed(&error))?
            .then_some(backup)
            .ok_or_else(|| BackupError::NotEmpty(to.display().to_string()))
    }

    /// Copies everything; `watch` is told how many bytes more were copied. When this returns, the target is a data directory,
    /// and durable.
    ///
    /// # Errors
    /// The target is as empty as it was, as far as the disk allows.
    pub fn run(&self, watch: &mut dyn FnMut(u64)) -> Result<Copied, BackupError> {
        self.clear()?;
        for _ in 0..ROUNDS {
            match self.round(watch) {
                Ok(copied) => {
                    self.finish().map_err(|error| self.failed(&error))?;
                    return Ok(copied);
                }
                Err(Failed::Moved) => self.clear()?,
                Err(Failed::For(error)) => {
                    drop(self.clear());
                    return Err(error);
                }
            }
        }
        Err(BackupError::Changing(self.from.path().display().to_string()))
    }

    /// One attempt. Positions and ledgers are copied before the log is: they must not know of more than it holds.
    fn round(&self, watch: &mut dyn FnMut(u64)) -> Result<Copied, Failed> {
        let disk = &*self.disk;
        let log = LogView::open(disk, &self.from.log())?;
        let staged = self.staged();
        self.make(&staged.join("log"))?;
        self.single_files(&staged)?;
        for table in Table::ALL {
            let root = staged.join(TABLES).join(table.name());
            if !self.gone(copy_log(disk, &self.from.table(table), &root))? {
                return Err(Failed::Moved);
            }
        }
        let (files, bytes) = match log.copy(disk, &self.from.log(), &staged.join("log")) {
            Err(CopyError::Changing) => return Err(Failed::Moved),
            Err(CopyError::Log(error)) => return Err(error.into()),
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
            self.gone(copy_file(&*self.disk, &from, &to).map_err(LakeError::from))?;
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
        let version = Lake::read_only(table, &self.disk, &root)?;
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
            self.gone(copy_file(&*self.disk, &from, &to).map_err(LakeError::from))?;
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
        disk.sync_dir(&staged)?;
        let files = disk.list(&staged)?.into_iter().map(|file| file.name);
        let folders = disk.folders(&staged)?;
        let is_log = |name: &String| name == "log";
        for name in files.chain(folders.iter().filter(|name| !is_log(name)).cloned()) {
            disk.rename(&staged.join(&name), &self.to.join(&name))?;
        }
        disk.sync_dir(&self.to)?;
        disk.rename(&staged.join("log"), &self.to.join("log"))?;
        disk.remove_folder(&staged)?;
        disk.sync_dir(&self.to)
    }

    fn staged(&self) -> PathBuf {
        self.to.join(UNFINISHED)
    }

    /// Whether nothing is in the target but what an attempt has left, or what a file system puts there.
    fn is_empty(&self) -> io::Result<bool> {
        let is_ours = |name: &String| name == UNFINISHED || name == "lost+found";
        Ok(self.disk.list(&self.to)?.is_empty() && self.disk.folders(&self.to)?.iter().all(is_ours))
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
    fn gone<T>(&self, done: Result<T, LakeError>) -> Result<T, Failed> {
        done.map_err(|error| match error {
            LakeError::Disk(error) if error.kind() == io::ErrorKind::NotFound => Failed::Moved,
            LakeError::Disk(error) => Failed::For(self.failed(&error)),
            other => Failed::For(other.into()),
        })
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
    let listed = match disk.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for file in listed {
        disk.remove(&folder.join(file.name))?;
    }
    for inner in disk.folders(folder)? {
        remove_all(disk, &folder.join(inner))?;
    }
    disk.remove_folder(folder)
}
