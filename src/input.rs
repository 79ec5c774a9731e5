//! Where lines come from: files and stdin, plain or compressed. `classify` and `ingest` read through here.
//!
//! A file is taken for what its first bytes say it is, whatever its name.

pub(crate) mod refusal;

use crate::progress::Meter;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::PathBuf;

/// How much is asked for at once: large enough that system calls do not show.
pub(crate) const CHUNK: usize = 256 << 10;
/// Room for what the classifier strips before it measures a line: a byte-order mark, a carriage return.
pub(crate) const SLACK: usize = 16;

/// A file or stdin.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    /// As given; what notes and events call it.
    pub(crate) name: String,
    /// `None` is stdin.
    path: Option<PathBuf>,
}

impl Input {
    /// The inputs that the arguments name; stdin when they name none.
    pub(crate) fn list(files: &[PathBuf]) -> Vec<Self> {
        if files.is_empty() {
            return vec![Self::stdin()];
        }
        let named = |path: &PathBuf| Self::file(path.clone());
        files.iter().map(|path| if path.as_os_str() == "-" { Self::stdin() } else { named(path) }).collect()
    }

    /// A file by its path.
    pub(crate) fn file(path: PathBuf) -> Self {
        Self { name: path.display().to_string(), path: Some(path) }
    }

    /// What comes in by stdin.
    pub(crate) fn stdin() -> Self {
        Self { name: "stdin".to_owned(), path: None }
    }

    /// True when it can be read only once: stdin, a pipe, a device.
    pub(crate) fn is_stream(&self) -> bool {
        let metadata = self.path.as_ref().map(std::fs::metadata);
        metadata
            .is_none_or(|metadata| metadata.is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()))
    }

    /// True for stdin.
    pub(crate) fn is_stdin(&self) -> bool {
        self.path.is_none()
    }

    /// How long it is on disk, where that can be known. What is not there is nothing to wait for.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match std::fs::metadata(self.path.as_ref()?) {
            Ok(metadata) => metadata.is_file().then_some(metadata.len()),
            Err(_) => Some(0),
        }
    }

    /// Opens it for reading, unpacked.
    pub(crate) fn open(&self, meter: &Meter) -> io::Result<Box<dyn Read>> {
        match &self.path {
            None => unpacked(io::stdin().lock()),
            Some(path) => unpacked(meter.watch(File::open(path)?)),
        }
    }
}

/// How bytes are packed, by what they start with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    /// A zstd frame to be skipped, which some packers write first; half of its first byte is free.
    const ZSTD_SKIPPED: &[u8] = &[0x50, 0x2a, 0x4d, 0x18];

    /// What `start` shows, or `None` when more bytes are needed to tell.
    fn of(start: &[u8]) -> Option<Self> {
        let mut skipped = start.to_vec();
        if let Some(first) = skipped.first_mut() {
            *first &= 0xf0;
        }
        let known = [(start, Self::GZIP, Self::Gzip), (start, Self::ZSTD, Self::Zstd)];
        let known = known.into_iter().chain([(&*skipped, Self::ZSTD_SKIPPED, Self::Zstd)]);
        for (start, magic, packing) in known {
            if start.starts_with(magic) {
                return Some(packing);
            }
            if magic.starts_with(start) {
                return None;
            }
        }
        Some(Self::Plain)
    }
}

/// Reads as many bytes as it takes to tell the packing, and no more: a terminal may be at the other end.
fn unpacked(mut raw: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut start = Vec::new();
    let packing = loop {
        if let Some(packing) = Packing::of(&start) {
            break packing;
        }
        let mut byte = [0];
        match raw.read(&mut byte) {
            Ok(0) => break Packing::Plain,
            Ok(_) => start.extend_from_slice(&byte),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    let whole = Cursor::new(start).chain(raw);
    Ok(match packing {
        Packing::Plain => Box::new(whole),
        Packing::Gzip => {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(CHUNK, whole)))
        }
        Packing::Zstd => Box::new(zstd::Decoder::with_buffer(BufReader::with_capacity(CHUNK, whole))?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_told_from_the_first_bytes() {
        for (start, packing) in [
            (&b""[..], None),
            (b"{", Some(Packing::Plain)),
            (b"\xef\xbb\xbf{", Some(Packing::Plain)),
            (b"\x1f", None),
            (b"\x1f\x8b", Some(Packing::Gzip)),
            (b"(", None),
            (b"(a", Some(Packing::Plain)),
            (b"\x28\xb5\x2f\xfd", Some(Packing::Zstd)),
            (b"\x5e\x2a\x4d\x18", Some(Packing::Zstd)),
            (b"P", None),
            (b"PUT", Some(Packing::Plain)),
        ] {
            assert_eq!(Packing::of(start), packing, "{start:?}");
        }
    }
}
