//! Where lines come from: files and stdin, plain or compressed, cut at newlines.
//!
//! A file is taken for what its first bytes say it is, whatever its name. Lines are cut out of one buffer of a
//! fixed size, so a line of gigabytes, or a small file that unpacks to one, costs no more memory than any other.
//!
//! What always holds: every line is handed out once, in order, and a line that does not fit is handed out as
//! [`Line::TooLong`] instead, so that line numbers stay right.

use super::progress::Progress;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::PathBuf;

/// How much is asked for at once: large enough that system calls do not show.
const CHUNK: usize = 256 << 10;
/// Room for what the classifier strips before it measures a line: a byte-order mark, a carriage return.
const SLACK: usize = 16;

/// A file or stdin.
#[derive(Debug)]
pub(super) struct Input {
    /// As given; what notes and events call it.
    pub(super) name: String,
    /// `None` is stdin.
    path: Option<PathBuf>,
}

impl Input {
    /// The inputs that the arguments name; stdin when they name none.
    pub(super) fn list(files: &[PathBuf]) -> Vec<Self> {
        let stdin = || Self { name: "stdin".to_owned(), path: None };
        if files.is_empty() {
            return vec![stdin()];
        }
        let named = |path: &PathBuf| Self { name: path.display().to_string(), path: Some(path.clone()) };
        files.iter().map(|path| if path.as_os_str() == "-" { stdin() } else { named(path) }).collect()
    }

    /// True for stdin.
    pub(super) fn is_stdin(&self) -> bool {
        self.path.is_none()
    }

    /// How long it is on disk, where that can be known. What is not there is nothing to wait for.
    pub(super) fn bytes(&self) -> Option<u64> {
        match std::fs::metadata(self.path.as_ref()?) {
            Ok(metadata) => metadata.is_file().then_some(metadata.len()),
            Err(_) => Some(0),
        }
    }

    /// Opens it for reading, unpacked.
    pub(super) fn open(&self, progress: &Progress) -> io::Result<Box<dyn Read>> {
        match &self.path {
            None => unpacked(io::stdin().lock()),
            Some(path) => unpacked(progress.watch(File::open(path)?)),
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

/// One line, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// More than may be held; it was passed over.
    TooLong,
}

/// Cuts what a reader gives into lines. Call [`fill`](Self::fill), then [`next_line`](Self::next_line) until
/// there is none, and so on.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Box<[u8]>,
    /// What of the buffer is not handed out yet.
    start: usize,
    end: usize,
    /// Up to here no newline was found: an unfinished line is not searched twice.
    searched: usize,
    longest: usize,
    /// Inside a line that was given up.
    skipping: bool,
    ended: bool,
}

impl<R: Read> Lines<R> {
    /// Lines of up to `longest` bytes.
    pub(super) fn new(reader: R, longest: usize) -> Self {
        let longest = longest + SLACK;
        let buffer = vec![0; longest + CHUNK].into_boxed_slice();
        Self { reader, buffer, start: 0, end: 0, searched: 0, longest, skipping: false, ended: false }
    }

    /// Reads once; false at the end. This is where a live source makes us wait.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.searched -= self.start;
            self.start = 0;
        }
        let read = loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.end += read;
        self.ended = read == 0;
        Ok(true)
    }

    /// The next line that is there whole; at the end also one without a newline.
    pub(super) fn next_line(&mut self) -> Option<Line<'_>> {
        while let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..self.end]) {
            let line = self.start..self.searched + at;
            self.start = line.end + 1;
            self.searched = self.start;
            if !std::mem::take(&mut self.skipping) {
                return Some(Line::Whole(&self.buffer[line]));
            }
        }
        let rest = self.start..self.end;
        self.searched = self.end;
        if self.skipping || rest.len() > self.longest {
            self.start = self.end;
            let is_new = !std::mem::replace(&mut self.skipping, true);
            return is_new.then_some(Line::TooLong);
        }
        if self.ended && !rest.is_empty() {
            self.start = self.end;
            return Some(Line::Whole(&self.buffer[rest]));
        }
        None
    }
}

#[cfg(test)]
mod tests;
