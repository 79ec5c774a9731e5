//! The abstraction of the file system.
//!
//! Every operation of the WAL and the tables on a disk goes through [`Disk`], so that tests can cut the power, fill the
//! disk or fail an fsync at any chosen operation. [`RealDisk`] is the only implementation outside tests.
//!
//! Invariant: no method retries, hides or delays a failure. The caller decides how to handle it.
use arrow::buffer::Buffer;
use std::fmt;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

mod real;
#[cfg(test)]
pub(crate) mod sim;
pub use real::RealDisk;

/// A file in a folder, as [`Disk::list`] sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name inside the folder. Names that are not UTF-8 are not listed: the store creates no such names.
    pub name: String,
    /// The length of the file, preallocated bytes included.
    pub bytes: u64,
    /// The time when it was last written, in microseconds since 1970.
    pub modified: i64,
}

/// The identity of a file or a folder, regardless of its name: its device and its inode number.
pub type FileIdentity = (u64, u64);

/// The file system operations that the WAL and the tables need.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Creates a folder and its parents, and makes their names durable.
    fn create_dir_all(&self, folder: &Path) -> io::Result<()>;

    /// Returns the plain files of a folder, in no particular order.
    fn list(&self, folder: &Path) -> io::Result<Vec<Listed>>;

    /// Returns the names of the folders in a folder, in no particular order.
    fn folders(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Creates a file, with `preallocate` bytes reserved where the file system supports it. Fails when the file exists.
    /// Unwritten bytes read as zeros.
    fn create(&self, path: &Path, preallocate: u64) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file for reading. It stays readable when its name is removed.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskRead>>;

    /// Returns the bytes of a file from its start, at most `limit` of them: see [`DiskRead::read`].
    fn read(&self, path: &Path, limit: u64) -> io::Result<Buffer> {
        self.open(path)?.read(limit)
    }

    /// Writes the content of a closed file at `offset` again, and makes it durable. After a failed sync, a kernel may
    /// show bytes that are not on the disk and report success for the next sync: only writing them again stores them.
    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Truncates a closed file.
    fn truncate(&self, path: &Path, bytes: u64) -> io::Result<()>;

    /// Removes a file. The removal is durable after [`Disk::sync_dir`].
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Gives a file a second name. Fails with [`io::ErrorKind::AlreadyExists`] if the name is taken. It is durable
    /// after [`Disk::sync_dir`].
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a file and replaces any file that has the new name. It is durable after [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes an empty folder; it does nothing to a folder that is not empty.
    fn remove_folder(&self, folder: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_dir(&self, folder: &Path) -> io::Result<()>;

    /// Returns the identity of the file or folder that has this name now; `None` on a disk where names cannot be
    /// removed by others.
    fn identity(&self, _path: &Path) -> io::Result<Option<FileIdentity>> {
        Ok(None)
    }
}

/// A file that is open for reading. It stays readable when it is removed.
pub trait DiskRead: Send + Sync + fmt::Debug {
    /// Returns the length of the file when it was opened.
    fn bytes(&self) -> u64;

    /// Returns the bytes from the start, at most `limit` of them, in memory aligned for Arrow. Blocks that cannot be
    /// read are filled with a byte other than zero (zeros mean that nothing was written there), so that one bad sector
    /// does not hide the rest of the file.
    fn read(&self, limit: u64) -> io::Result<Buffer>;

    /// Fills `into` with the bytes at `offset`. It reads all of them, or fails.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

/// A file that is being written sequentially.
pub trait DiskFile: Send {
    /// Appends all parts, one after the other.
    fn append(&mut self, parts: &mut [IoSlice<'_>]) -> io::Result<()>;

    /// Returns when everything written so far, and the file's length, would survive a power loss.
    fn sync(&mut self) -> io::Result<()>;
}
