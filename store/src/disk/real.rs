//! [`Disk`] on the machine's own file system.
use super::{Disk, DiskFile, DiskRead, FileIdentity, Listed};
use arrow::buffer::{Buffer, MutableBuffer};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// The number of bytes that are skipped around a position that cannot be read.
const BAD_BLOCK: usize = 4096;
/// The byte that fills such a block. It is not zero, because zeros mean that nothing was written there.
const BAD_BYTE: u8 = 0xff;
/// The alignment that Arrow expects of its buffers.
const ALIGN: usize = 64;

/// The machine's own file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir_all(&self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        let parent = match folder.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        self.create_dir_all(parent)?;
        match fs::create_dir(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        self.sync_dir(parent)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Listed>> {
        let mut files = Vec::new();
        for (name, metadata) in entries(folder)? {
            if metadata.is_file() {
                files.push(Listed { name, bytes: metadata.len(), modified: modified(&metadata) });
            }
        }
        Ok(files)
    }

    fn folders(&self, folder: &Path) -> io::Result<Vec<String>> {
        let folders = entries(folder)?.into_iter().filter(|(_, metadata)| metadata.is_dir());
        Ok(folders.map(|(name, _)| name).collect())
    }

    fn create(&self, path: &Path, preallocate: u64) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        match fallocate(&file, FallocateFlags::empty(), 0, preallocate.max(1)) {
            // The file then grows as it is written, and the disk may become full in the middle of it. That is slower
            // but correct.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Box::new(RealFile { file }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskRead>> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Arc::new(RealRead { file, bytes }))
    }

    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(path)?;
        file.write_all_at(bytes, offset)?;
        file.sync_all()
    }

    fn truncate(&self, path: &Path, bytes: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open(path)?.set_len(bytes)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            other => other,
        }
    }

    fn sync_dir(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn identity(&self, path: &Path) -> io::Result<Option<FileIdentity>> {
        fs::metadata(path).map(|metadata| Some((metadata.dev(), metadata.ino())))
    }
}

/// Returns the entries of a folder, except those that were removed while it was read.
fn entries(folder: &Path) -> io::Result<Vec<(String, fs::Metadata)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        match entry.metadata() {
            Ok(metadata) => entries.push((name, metadata)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(entries)
}

fn modified(metadata: &fs::Metadata) -> i64 {
    let since_1970 = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since_1970.and_then(|time| i64::try_from(time.as_micros()).ok()).unwrap_or_default()
}

#[derive(Debug)]
struct RealRead {
    file: File,
    bytes: u64,
}

impl DiskRead for RealRead {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, limit: u64) -> io::Result<Buffer> {
        // The file may have grown or have been truncated since it was opened.
        let length = usize::try_from(self.file.metadata()?.len().min(limit)).unwrap_or(usize::MAX);
        if let Ok(whole) = read_whole(&self.file, length) {
            return Ok(whole);
        }
        let mut buffer = MutableBuffer::from_len_zeroed(length);
        read_around(buffer.as_slice_mut(), |into, offset| self.file.read_at(into, offset));
        Ok(buffer.into())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
}

struct RealFile {
    file: File,
}

impl DiskFile for RealFile {
    fn append(&mut self, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        // An empty part at the front would look like a disk that accepts no data.
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            match self.file.write_vectored(parts) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut parts, written),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Reads the first `length` bytes of a file. A vector can be filled without being zeroed first, which saves a tenth of
/// the time, but its start is not aligned: so a few bytes before the data are left unused.
fn read_whole(mut file: &File, length: usize) -> io::Result<Buffer> {
    let mut bytes: Vec<u8> = Vec::with_capacity(length + ALIGN);
    let begin = bytes.as_ptr().align_offset(ALIGN).min(ALIGN);
    bytes.resize(begin, 0);
    // A file that was opened once may be read several times.
    file.rewind()?;
    file.take(length as u64).read_to_end(&mut bytes)?;
    Ok(Buffer::from_vec(bytes).slice(begin))
}

/// Fills `into` from the start of a file, and skips blocks that cannot be read.
fn read_around(into: &mut [u8], mut read_at: impl FnMut(&mut [u8], u64) -> io::Result<usize>) {
    let mut at = 0;
    // It reads everything at once, and only after a failure block by block.
    let mut step = usize::MAX;
    while at < into.len() {
        let end = if step == usize::MAX { into.len() } else { into.len().min(at + step) };
        match read_at(&mut into[at..end], at as u64) {
            Ok(0) => return,
            Ok(read) => at += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) if step == usize::MAX => step = BAD_BLOCK - at % BAD_BLOCK,
            Err(_) => {
                into[at..end].fill(BAD_BYTE);
                at = end;
            }
        }
        if step != usize::MAX {
            step = BAD_BLOCK - at % BAD_BLOCK;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_block_costs_only_itself() {
        let file: Vec<u8> = (0..20_000_u32).map(|i| i as u8 | 1).collect();
        for bad in [0, 1, 4095, 4096, 10_000, 19_999] {
            let mut into = vec![0; file.len()];
            read_around(&mut into, |part, offset| {
                let offset = offset as usize;
                // This is what a kernel does: it reads the bytes before the bad sector, and then it fails.
                let sector = bad / 512 * 512;
                let end =
                    if offset <= sector { sector.min(offset + part.len()) } else { offset + part.len() };
                if offset <= bad && bad < sector + 512 && offset >= sector && offset < sector + 512 {
                    return Err(io::Error::from_raw_os_error(5));
                }
                part[..end - offset].copy_from_slice(&file[offset..end]);
                Ok(end - offset)
            });
            let block = bad / BAD_BLOCK * BAD_BLOCK;
            for (at, byte) in into.iter().enumerate() {
                let lost = at >= bad / 512 * 512 && at < block + BAD_BLOCK;
                assert_eq!(*byte, if lost { BAD_BYTE } else { file[at] }, "byte {at}, bad {bad}");
            }
        }
    }

    #[test]
    fn parts_are_written_in_order_and_empty_ones_do_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/file");
        RealDisk.create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = RealDisk.create(&path, 1 << 16).unwrap();
        assert!(RealDisk.create(&path, 1).is_err(), "never over an existing file");
        for _ in 0..2 {
            let parts = [&b""[..], b"one", b"", b"two", b""];
            file.append(&mut parts.map(IoSlice::new)).unwrap();
        }
        file.sync().unwrap();
        RealDisk.rewrite(&path, 3, b"two").unwrap();
        assert_eq!(&RealDisk.read(&path, 12).unwrap()[..], b"onetwoonetwo");
        RealDisk.truncate(&path, 3).unwrap();
        assert_eq!(&RealDisk.read(&path, u64::MAX).unwrap()[..], b"one");
        let listed = RealDisk.list(path.parent().unwrap()).unwrap();
        assert_eq!((listed.len(), &*listed[0].name, listed[0].bytes), (1, "file", 3));
        assert!(listed[0].modified > 1_700_000_000_000_000);
        assert_eq!(RealDisk.folders(folder.path()).unwrap(), ["a"]);
        let (second, third) = (path.with_extension("2"), path.with_extension("3"));
        RealDisk.link(&path, &second).unwrap();
        assert_eq!(RealDisk.link(&path, &second).unwrap_err().kind(), ErrorKind::AlreadyExists);
        RealDisk.rename(&second, &third).unwrap();
        let open = RealDisk.open(&third).unwrap();
        RealDisk.remove(&third).unwrap();
        let mut byte = [0];
        open.read_at(1, &mut byte).unwrap();
        assert_eq!((byte, open.bytes(), &open.read(9).unwrap()[..]), (*b"n", 3, &b"one"[..]));
        RealDisk.remove_folder(path.parent().unwrap()).unwrap();
        RealDisk.remove(&path).unwrap();
        assert!(RealDisk.read(&path, 1).is_err());
    }
}
