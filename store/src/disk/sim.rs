//! A simulated disk that can lose its power, fill up and fail.
//!
//! It keeps the data that programs see apart from the data that has reached the platter. A power loss keeps any subset
//! of the 512-byte sectors, lengths and names that were not synced. A failed sync does the same, and forgets that they
//! were not synced: the next sync succeeds without them, as with real kernels.
use crate::disk::{Disk, DiskFile, DiskRead, Listed};
use arrow::buffer::{Buffer, MutableBuffer};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

const SECTOR: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Create,
    Append,
    Sync,
    SyncDir,
    Remove,
    Truncate,
    Link,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    seen: Vec<u8>,
    platter: Vec<u8>,
    dirty: BTreeSet<usize>,
    /// True if the length is not on the platter yet.
    resized: bool,
}

#[derive(Debug, Clone, Default)]
struct State {
    inodes: BTreeMap<u64, Inode>,
    names: BTreeMap<PathBuf, u64>,
    platter_names: BTreeMap<PathBuf, u64>,
    next_inode: u64,
    random: u64,
    operations: u64,
    crash_at: Option<u64>,
    crashed: bool,
    faults: BTreeMap<Operation, i32>,
    /// The rate of failing operations: one in this many.
    fault_rate: u64,
}

/// The simulated disk. Clones refer to the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    pub(crate) fn new(seed: u64) -> Self {
        let disk = Self::default();
        disk.state().random = seed;
        disk
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Makes every operation of this kind fail with this error number, until it is called with 0.
    pub(crate) fn fail(&self, operation: Operation, errno: i32) {
        match errno {
            0 => self.state().faults.remove(&operation),
            errno => self.state().faults.insert(operation, errno),
        };
    }

    pub(crate) fn fail_one_in(&self, rate: u64) {
        self.state().fault_rate = rate;
    }

    /// Makes every operation fail from the one with this number on.
    pub(crate) fn crash_at(&self, operation: u64) {
        let mut state = self.state();
        state.crash_at = Some(state.operations + operation);
    }

    pub(crate) fn crashed(&self) -> bool {
        self.state().crashed
    }

    /// Returns the same machine after the process was killed: everything that it wrote is still there.
    pub(crate) fn after_kill(&self) -> Self {
        let mut state = self.state().clone();
        state.restart();
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the machine after a power loss.
    pub(crate) fn after_power_loss(&self) -> Self {
        let mut state = self.state().clone();
        state.restart();
        state.lose_power();
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn file(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        state.inodes[&state.names[path]].seen.clone()
    }

    pub(crate) fn put(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.state();
        let inode = state.names.get(path).copied().unwrap_or(state.next_inode);
        state.next_inode = state.next_inode.max(inode + 1);
        state.names.insert(path.to_owned(), inode);
        state.platter_names.insert(path.to_owned(), inode);
        let content = Inode { seen: bytes.clone(), platter: bytes, ..Inode::default() };
        state.inodes.insert(inode, content);
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }
}

impl State {
    fn restart(&mut self) {
        self.crashed = false;
        self.crash_at = None;
        self.faults.clear();
        self.fault_rate = 0;
    }

    fn lose_power(&mut self) {
        let mut changed: Vec<PathBuf> = self.names.keys().chain(self.platter_names.keys()).cloned().collect();
        changed.retain(|path| self.names.get(path) != self.platter_names.get(path));
        for path in changed {
            if self.flip() {
                self.sync_name(&path);
            }
        }
        self.names = self.platter_names.clone();
        let numbers: Vec<u64> = self.inodes.keys().copied().collect();
        for number in numbers {
            let mut inode = self.inodes.remove(&number).unwrap();
            self.keep_some(&mut inode);
            inode.seen = inode.platter.clone();
            self.inodes.insert(number, inode);
        }
    }

    fn sync_name(&mut self, path: &Path) {
        match self.names.get(path) {
            Some(inode) => self.platter_names.insert(path.to_owned(), *inode),
            None => self.platter_names.remove(path),
        };
    }

    /// Writes any subset of the unsynced data to the platter, and drops the rest.
    fn keep_some(&mut self, inode: &mut Inode) {
        // Often it keeps all or nothing: that is what really happens, and a random subset of many is never either.
        let mode = self.roll() % 4;
        let keep = |state: &mut Self| match mode {
            0 => true,
            1 => false,
            _ => state.flip(),
        };
        if std::mem::take(&mut inode.resized) && keep(self) {
            inode.platter.resize(inode.seen.len(), 0);
        }
        for sector in std::mem::take(&mut inode.dirty) {
            if keep(self) {
                inode.write_back(sector);
            }
        }
    }

    fn roll(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.random;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn flip(&mut self) -> bool {
        self.roll().is_multiple_of(2)
    }

    /// Counts an operation. Returns an error if it must fail.
    fn begin(&mut self, operation: Operation) -> Option<io::Error> {
        self.operations += 1;
        if self.crashed || self.crash_at.is_some_and(|at| self.operations > at) {
            self.crashed = true;
            return Some(io::Error::other("the machine is off"));
        }
        if let Some(errno) = self.faults.get(&operation) {
            return Some(io::Error::from_raw_os_error(*errno));
        }
        let bad = self.fault_rate > 0 && self.roll().is_multiple_of(self.fault_rate);
        bad.then(|| io::Error::from_raw_os_error(if self.flip() { 28 } else { 5 }))
    }

    fn sync(&mut self, number: u64) -> io::Result<()> {
        let failure = self.begin(Operation::Sync);
        let mut inode = self.inodes.remove(&number).unwrap();
        if failure.is_none() {
            inode.platter.resize(inode.seen.len(), 0);
            for sector in std::mem::take(&mut inode.dirty) {
                inode.write_back(sector);
            }
            inode.resized = false;
        } else if !self.crashed {
            self.keep_some(&mut inode);
        }
        self.inodes.insert(number, inode);
        failure.map_or(Ok(()), Err)
    }
}

impl Inode {
    fn write_back(&mut self, sector: usize) {
        let from = sector * SECTOR;
        let to = self.seen.len().min(from + SECTOR);
        if from < to {
            // Data behind the old end becomes durable together with its length.
            if self.platter.len() < to {
                self.platter.resize(to, 0);
            }
            self.platter[from..to].copy_from_slice(&self.seen[from..to]);
        }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        if self.seen.len() < at + bytes.len() {
            self.seen.resize(at + bytes.len(), 0);
            self.resized = true;
        }
        self.seen[at..at + bytes.len()].copy_from_slice(bytes);
        self.dirty.extend(at / SECTOR..(at + bytes.len()).div_ceil(SECTOR));
    }
}

impl Disk for SimDisk {
    fn create_dir_all(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    fn folders(&self, folder: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        let below = state.names.keys().filter_map(|path| path.strip_prefix(folder).ok());
        let folders =
            below.filter(|path| path.components().count() > 1).filter_map(|path| path.iter().next());
        let names: BTreeSet<String> = folders.map(|name| name.to_str().unwrap().to_owned()).collect();
        Ok(names.into_iter().collect())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Listed>> {
        let state = self.state();
        let files = state.names.iter().filter(|(path, _)| path.parent() == Some(folder));
        let listed = files.map(|(path, inode)| Listed {
            name: path.file_name().unwrap().to_str().unwrap().to_owned(),
            bytes: state.inodes[inode].seen.len() as u64,
            modified: 0,
        });
        Ok(listed.collect())
    }

    fn create(&self, path: &Path, preallocate: u64) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        let failure = state.begin(Operation::Create);
        if state.crashed {
            return Err(failure.unwrap());
        }
        assert!(!state.names.contains_key(path), "{} exists", path.display());
        let number = state.next_inode;
        state.next_inode += 1;
        state.names.insert(path.to_owned(), number);
        let seen = if failure.is_some() { Vec::new() } else { vec![0; preallocate as usize] };
        state.inodes.insert(number, Inode { seen, resized: true, ..Inode::default() });
        drop(state);
        failure.map_or_else(|| Ok(Box::new(SimFile { disk: self.clone(), number, at: 0 }) as _), Err)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskRead>> {
        let state = self.state();
        let number = *state.names.get(path).ok_or(ErrorKind::NotFound)?;
        Ok(Arc::new(SimRead { disk: self.clone(), number }))
    }

    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if let Some(error) = state.begin(Operation::Append) {
            return Err(error);
        }
        let number = *state.names.get(path).ok_or(ErrorKind::NotFound)?;
        let inode = state.inodes.get_mut(&number).unwrap();
        let range = offset as usize..offset as usize + bytes.len();
        assert_eq!(inode.seen[range], *bytes, "the same bytes");
        inode.write(offset as usize, bytes);
        state.sync(number)
    }

    fn truncate(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        if let Some(error) = state.begin(Operation::Truncate) {
            return Err(error);
        }
        let number = *state.names.get(path).ok_or(ErrorKind::NotFound)?;
        let inode = state.inodes.get_mut(&number).unwrap();
        inode.seen.resize(bytes as usize, 0);
        inode.resized = true;
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if let Some(error) = state.begin(Operation::Remove) {
            return Err(error);
        }
        state.names.remove(path).map(|_| ()).ok_or(ErrorKind::NotFound.into())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        if let Some(error) = state.begin(Operation::Link) {
            return Err(error);
        }
        let number = *state.names.get(from).ok_or(ErrorKind::NotFound)?;
        if state.names.contains_key(to) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.names.insert(to.to_owned(), number);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        if let Some(error) = state.begin(Operation::Link) {
            return Err(error);
        }
        let number = state.names.remove(from).ok_or(ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), number);
        Ok(())
    }

    fn remove_folder(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _folder: &Path) -> io::Result<()> {
        let mut state = self.state();
        if let Some(error) = state.begin(Operation::SyncDir) {
            return Err(error);
        }
        state.platter_names = state.names.clone();
        Ok(())
    }
}

#[derive(Debug)]
struct SimRead {
    disk: SimDisk,
    number: u64,
}

impl DiskRead for SimRead {
    fn bytes(&self) -> u64 {
        self.disk.state().inodes[&self.number].seen.len() as u64
    }

    fn read(&self, limit: u64) -> io::Result<Buffer> {
        let state = self.disk.state();
        let seen = &state.inodes[&self.number].seen;
        let mut buffer = MutableBuffer::new(seen.len());
        buffer.extend_from_slice(&seen[..seen.len().min(limit as usize)]);
        Ok(buffer.into())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let state = self.disk.state();
        let seen = state.inodes[&self.number].seen.get(offset as usize..).unwrap_or_default();
        let part = seen.get(..into.len()).ok_or(ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(part);
        Ok(())
    }
}

struct SimFile {
    disk: SimDisk,
    number: u64,
    at: usize,
}

impl DiskFile for SimFile {
    fn append(&mut self, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let mut state = self.disk.state();
        let failure = state.begin(Operation::Append);
        let mut bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        if failure.is_some() {
            // A write that fails has often written a part.
            let kept = state.roll() as usize % (bytes.len() + 1);
            bytes.truncate(kept);
        }
        state.inodes.get_mut(&self.number).unwrap().write(self.at, &bytes);
        self.at += bytes.len();
        failure.map_or(Ok(()), Err)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.state().sync(self.number)
    }
}
