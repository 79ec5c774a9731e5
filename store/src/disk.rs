//! The seam to the file system.
//!
//! Everything the log and the tables do to a disk goes through [`Disk`], so that tests can take the power away, fill
//! the disk or fail an fsync at any chosen operation. [`RealDisk`] is the only implementation outside tests.
//!
//! What must always hold: no method retries, hides or delays a failure. The caller decides what a failure means.
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
    /// The name inside the folder. Names that are not UTF-8 are not listed: none of ours is.
    pub name: String,
    /// The length of the file, preallocated bytes included.
    pub bytes: u64,
    /// When it was last written, in microseconds since 1970.
    pub modified: i64,
}

/// The identity of a file or a folder, whatever its name: its device and its number there.
pub type Identity = (u64, u64);

/// The file system operations that the WAL and the tables need.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Makes a folder and its parents, and makes their names durable.
    fn create_dir_all(&self, folder: &Path) -> io::Result<()>;

    /// The plain files of a folder, in no particular order.
    fn list(&self, folder: &Path) -> io::Result<Vec<Listed>>;

    /// The names of the folders in a folder, in no particular order.
    fn folders(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Makes a new file, with room for `preallocate` bytes where the file system can promise it.
    /// Fails when the file exists. Unwritten bytes read as zeros.
    fn create(&self, path: &Path, preallocate: u64) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file to read. It stays readable when its name is taken away.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskRead>>;

    /// The bytes of a file from its start, at most `limit` of them: see [`DiskRead::read`].
    fn read(&self, path: &Path, limit: u64) -> io::Result<Buffer> {
        self.open(path)?.read(limit)
    }

    /// Writes once more what a closed file holds at `offset`, and makes it durable. After a failed sync, a kernel may
    /// show bytes that are not on the disk and say yes to the next sync: only writing them again brings them there.
    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Shortens a closed file.
    fn truncate(&self, path: &Path, bytes: u64) -> io::Result<()>;

    /// Removes a file. Durable after [`Disk::sync_dir`].
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Gives a file a second name, which must be free: that it is taken is [`io::ErrorKind::AlreadyExists`]. Durable
    /// after [`Disk::sync_dir`].
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file another name, in place of whatever had it. Durable after [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a folder that is empty; one that is not stays.
    fn remove_folder(&self, folder: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_dir(&self, folder: &Path) -> io::Result<()>;

    /// Which file or folder has this name now; none where nobody can take a name away.
    fn identity(&self, _path: &Path) -> io::Result<Option<Identity>> {
        Ok(None)
    }
}

/// A file that is open for reading. It stays readable when it is removed.
pub trait DiskRead: Send + Sync + fmt::Debug {
    /// Its length when it was opened.
    fn bytes(&self) -> u64;

    /// Its bytes from the start, at most `limit` of them, in memory aligned for Arrow.
    /// Stretches that cannot be read are filled with something other than zeros (which mean that nothing was written
    /// there), so that one bad sector does not hide the rest of the file.
    fn read(&self, limit: u64) -> io::Result<Buffer>;

    /// Fills `into` with the bytes at `offset`; all of them, or it fails.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

/// A file that is being written sequentially.
pub trait DiskFile: Send {
    /// Writes all parts, one after the other, behind what was written before.
    fn append(&mut self, parts: &mut [IoSlice<'_>]) -> io::Result<()>;

    /// Returns when everything written so far would survive a power loss, and the file's length with it.
    fn sync(&mut self) -> io::Result<()>;
}
