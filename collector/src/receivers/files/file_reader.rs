//! Reads the bytes of one file: of a plain file at any offset, of an archive decompressed and in order.
//!
//! Invariant: bytes of an archive stay in memory until the offset has passed them, because they may be read again.

use super::file_content::FileStamp;
use super::rotation::Compression;
use flate2::read::MultiGzDecoder;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// The number of bytes that are decompressed at once.
const STEP: usize = 64 << 10;

/// An open file.
pub(super) enum FileReader {
    Plain(File),
    Packed { file: File, unpacked: Box<dyn Read + Send>, buffer: Vec<u8>, start: u64, ended: bool },
}

/// Bytes that were read.
pub(super) struct Bytes {
    pub(super) bytes: Vec<u8>,
    /// True if no more bytes follow at present.
    pub(super) is_end: bool,
}

impl FileReader {
    pub(super) fn open(path: &Path, packing: Option<Compression>) -> io::Result<Self> {
        let file = File::open(path)?;
        let Some(packing) = packing else { return Ok(Self::Plain(file)) };
        let packed = BufReader::new(file.try_clone()?);
        let unpacked: Box<dyn Read + Send> = match packing {
            Compression::Gzip => Box::new(MultiGzDecoder::new(packed)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        };
        Ok(Self::Packed { file, unpacked, buffer: Vec::new(), start: 0, ended: false })
    }

    /// Returns the metadata of the open file, even if it was renamed.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        match self {
            Self::Plain(file) | Self::Packed { file, .. } => file.metadata(),
        }
    }

    pub(super) fn is_packed(&self) -> bool {
        matches!(self, Self::Packed { .. })
    }

    /// Reads `wanted` bytes at `place`, or fewer at the end of the file. In an archive, `place` must never decrease.
    pub(super) fn read(&mut self, place: u64, wanted: usize) -> io::Result<Bytes> {
        match self {
            Self::Plain(file) => read_plain(file, place, wanted),
            Self::Packed { unpacked, buffer, start, ended, .. } => {
                while *start < place || buffer.len() < wanted {
                    let passed = usize::try_from(place - *start).unwrap_or(usize::MAX).min(buffer.len());
                    buffer.drain(..passed);
                    *start += passed as u64;
                    if *ended || (*start == place && buffer.len() >= wanted) {
                        break;
                    }
                    *ended = fill(unpacked, buffer)?;
                }
                let bytes = buffer[..buffer.len().min(wanted)].to_vec();
                Ok(Bytes { is_end: *ended && bytes.len() == buffer.len(), bytes })
            }
        }
    }
}

fn read_plain(file: &File, place: u64, wanted: usize) -> io::Result<Bytes> {
    let mut bytes = vec![0; wanted];
    let mut length = 0;
    while length < wanted {
        match file.read_at(&mut bytes[length..], place + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(Bytes { is_end: length < wanted, bytes })
}

/// Decompresses the next bytes. Returns true at the end.
fn fill(unpacked: &mut Box<dyn Read + Send>, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let length = buffer.len();
    buffer.resize(length + STEP, 0);
    let read = loop {
        match unpacked.read(&mut buffer[length..]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read,
        }
    };
    buffer.truncate(length + read.as_ref().copied().unwrap_or_default());
    Ok(read? == 0)
}

/// Returns the size and modification time of a file.
pub(super) fn stamp(metadata: &Metadata) -> FileStamp {
    let nanos = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
    FileStamp { size: metadata.len(), modified: nanos }
}
