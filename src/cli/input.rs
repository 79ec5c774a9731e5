//! The inputs of `classify` and `ingest`: files and stdin, plain or compressed.
//!
//! The compression of a file is detected from its first bytes, whatever its name.

pub(crate) mod errors;

use crate::cli::progress::ProgressHandle;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::PathBuf;

/// The number of bytes of one read, large enough that the cost of system calls does not matter.
pub(crate) const READ_BYTES: usize = 256 << 10;
/// The number of bytes that the classifier may strip before it measures a line: a byte-order mark, a carriage return.
pub(crate) const LINE_SLACK: usize = 16;

/// A file or stdin.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    /// The name of the input as given on the command line, for notes and events.
    pub(crate) name: String,
    /// The path of the file, or `None` for stdin.
    path: Option<PathBuf>,
}

impl Input {
    /// Returns the inputs that the arguments name, or stdin if they name none.
    pub(crate) fn list(files: &[PathBuf]) -> Vec<Self> {
        if files.is_empty() {
            return vec![Self::stdin()];
        }
        let named = |path: &PathBuf| Self::file(path.clone());
        files.iter().map(|path| if path.as_os_str() == "-" { Self::stdin() } else { named(path) }).collect()
    }

    /// Returns the input that reads a file.
    pub(crate) fn file(path: PathBuf) -> Self {
        Self { name: path.display().to_string(), path: Some(path) }
    }

    /// Returns the input that reads stdin.
    pub(crate) fn stdin() -> Self {
        Self { name: "stdin".to_owned(), path: None }
    }

    /// Returns true when the input can be read only once: stdin, a pipe, a device.
    pub(crate) fn is_stream(&self) -> bool {
        let metadata = self.path.as_ref().map(std::fs::metadata);
        metadata
            .is_none_or(|metadata| metadata.is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()))
    }

    /// Returns true for stdin.
    pub(crate) fn is_stdin(&self) -> bool {
        self.path.is_none()
    }

    /// Returns the size of the input on disk, or `None` if it has none (stdin, a pipe). A missing file counts as empty.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match std::fs::metadata(self.path.as_ref()?) {
            Ok(metadata) => metadata.is_file().then_some(metadata.len()),
            Err(_) => Some(0),
        }
    }

    /// Opens the input for reading, decompressed.
    pub(crate) fn open(&self, progress: &ProgressHandle) -> io::Result<Box<dyn Read>> {
        match &self.path {
            None => decompress(io::stdin().lock()),
            Some(path) => decompress(progress.wrap_read(File::open(path)?)),
        }
    }
}

/// The compression of an input, detected by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    Plain,
    Gzip,
    Zstd,
}

impl Compression {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    /// The start of a zstd frame to be skipped, which some tools write first; the low half of its first byte can vary.
    const ZSTD_SKIPPABLE: &[u8] = &[0x50, 0x2a, 0x4d, 0x18];

    /// Returns the compression that `start` indicates, or `None` if more bytes are needed.
    fn detect(start: &[u8]) -> Option<Self> {
        let mut masked = start.to_vec();
        if let Some(first) = masked.first_mut() {
            *first &= 0xf0;
        }
        let magics = [(start, Self::GZIP, Self::Gzip), (start, Self::ZSTD, Self::Zstd)];
        let magics = magics.into_iter().chain([(&*masked, Self::ZSTD_SKIPPABLE, Self::Zstd)]);
        for (start, magic, compression) in magics {
            if start.starts_with(magic) {
                return Some(compression);
            }
            if magic.starts_with(start) {
                return None;
            }
        }
        Some(Self::Plain)
    }
}

/// Returns a reader of the decompressed input. It reads only as many bytes as it needs to detect the compression, since
/// a terminal may be at the other end.
fn decompress(mut raw: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut start = Vec::new();
    let compression = loop {
        if let Some(compression) = Compression::detect(&start) {
            break compression;
        }
        let mut byte = [0];
        match raw.read(&mut byte) {
            Ok(0) => break Compression::Plain,
            Ok(_) => start.extend_from_slice(&byte),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    let all = Cursor::new(start).chain(raw);
    Ok(match compression {
        Compression::Plain => Box::new(all),
        Compression::Gzip => {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(READ_BYTES, all)))
        }
        Compression::Zstd => Box::new(zstd::Decoder::with_buffer(BufReader::with_capacity(READ_BYTES, all))?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_told_from_the_first_bytes() {
        for (start, compression) in [
            (&b""[..], None),
            (b"{", Some(Compression::Plain)),
            (b"\xef\xbb\xbf{", Some(Compression::Plain)),
            (b"\x1f", None),
            (b"\x1f\x8b", Some(Compression::Gzip)),
            (b"(", None),
            (b"(a", Some(Compression::Plain)),
            (b"\x28\xb5\x2f\xfd", Some(Compression::Zstd)),
            (b"\x5e\x2a\x4d\x18", Some(Compression::Zstd)),
            (b"P", None),
            (b"PUT", Some(Compression::Plain)),
        ] {
            assert_eq!(Compression::detect(start), compression, "{start:?}");
        }
    }
}
