//! The seam to the file system.
//!
//! Everything the log does to a disk goes through [`Disk`], so that tests can take the power away, fill the disk
//! or fail an fsync at any chosen operation. [`RealDisk`] is the only implementation outside tests.
//!
//! What must always hold: no method retries, hides or delays a failure. The log decides what a failure means.
use arrow::buffer::Buffer;
use std::fmt;
use std::io::{self, IoSlice};
use std::path::Path;

mod real;
pub use real::RealDisk;

/// A file in a folder, as [`Disk::list`] sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name inside the folder. Names that are not UTF-8 are not listed: none of ours is.
    pub name: String,
    /// The length of the file, preallocated bytes included.
    pub bytes: u64,
}

/// What the log needs of a file system.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Makes a folder and its parents, and makes their names durable.
    fn create_dir_all(&self, folder: &Path) -> io::Result<()>;

    /// The plain files of a folder, in no particular order.
    fn list(&self, folder: &Path) -> io::Result<Vec<Listed>>;

    /// Makes a new file, with room for `preallocate` bytes where the file system can promise it.
    /// Fails when the file exists. What is not yet written reads as zeros.
    fn create(&self, path: &Path, preallocate: u64) -> io::Result<Box<dyn DiskFile>>;

    /// The bytes of a file from its start, at most `limit` of them, in memory aligned for Arrow.
    /// Stretches that cannot be read are filled with something other than zeros (which mean that nothing was written
    /// there), so that one bad sector does not hide the rest of the file.
    fn read(&self, path: &Path, limit: u64) -> io::Result<Buffer>;

    /// Writes once more what a closed file holds at `offset`, and makes it durable. After a failed sync, a kernel may
    /// show bytes that are not on the disk and say yes to the next sync: only writing them again brings them there.
    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Shortens a closed file.
    fn truncate(&self, path: &Path, bytes: u64) -> io::Result<()>;

    /// Removes a file. Durable after [`Disk::sync_dir`].
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_dir(&self, folder: &Path) -> io::Result<()>;
}

/// A file being written, from its start to its end.
pub trait DiskFile: Send {
    /// Writes all parts, one after the other, behind what was written before.
    fn append(&mut self, parts: &mut [IoSlice<'_>]) -> io::Result<()>;

    /// Returns when everything written so far would survive a power loss, and the file's length with it.
    fn sync(&mut self) -> io::Result<()>;
}
