//! A reader of the decompressed bytes of an input, with their position and the hash of everything before it.
//!
//! Invariant: `position`, `hash` and `lines` describe the same bytes, those that were taken; the bytes in the buffer
//! are read and not taken yet.

use bytes::{Bytes, BytesMut};
pub(super) use collector::ContentHash;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The maximum number of bytes of the first line that identify a file.
const FIRST_LINE_BYTES: usize = 4 << 10;
/// The number of bytes that are skipped at once.
const SKIP_BYTES: usize = 256 << 10;

/// A position in a text: the number of bytes before it, and their hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HashedOffset {
    pub(super) position: u64,
    pub(super) hash: ContentHash,
}

impl HashedOffset {
    /// Returns the start of a text.
    pub(super) fn start() -> Self {
        Self { position: 0, hash: ContentHash(xxh3_128(&[])) }
    }
}

/// A reader of a text.
pub(super) struct HashingReader<R> {
    reader: R,
    buffer: BytesMut,
    position: u64,
    hash: Xxh3,
    /// The number of newlines before the position.
    lines: u64,
    ended: bool,
    /// The error that ended the text early, if any.
    error_: Option<io::Error>,
}

impl<R: Read> HashingReader<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: BytesMut::new(),
            position: 0,
            hash: Xxh3::new(),
            lines: 0,
            ended: false,
            error_: None,
        }
    }

    /// Returns the bytes that are read and not taken.
    pub(super) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns the position at which the buffer begins.
    pub(super) fn offset(&self) -> HashedOffset {
        HashedOffset { position: self.position, hash: ContentHash(self.hash.digest128()) }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of newlines before the buffer.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns true when nothing follows the bytes in the buffer.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the error that ended the text early, if any.
    pub(super) fn error(&self) -> Option<&io::Error> {
        self.error_.as_ref()
    }

    /// Reads until the buffer has this many bytes, or the text ends.
    pub(super) fn fill(&mut self, wanted: usize) {
        while self.buffer.len() < wanted && !self.ended {
            self.fill_once(wanted);
        }
    }

    /// Reads once, which blocks only if no data is available. An error is kept, and ends the text.
    pub(super) fn fill_once(&mut self, wanted: usize) {
        let length = self.buffer.len();
        if self.ended || length >= wanted {
            return;
        }
        self.buffer.resize(wanted, 0);
        let read = self.reader.read(&mut self.buffer[length..]);
        self.buffer.truncate(length + read.as_ref().copied().unwrap_or_default());
        match read {
            Ok(0) => self.ended = true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                self.ended = true;
                self.error_ = Some(error);
            }
        }
    }

    /// Takes the first bytes of the buffer, without copying them.
    pub(super) fn take(&mut self, count: usize) -> Bytes {
        let taken = self.buffer.split_to(count.min(self.buffer.len())).freeze();
        self.hash.update(&taken);
        self.position += taken.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', &taken).count() as u64;
        taken
    }

    /// Skips everything before a position. Returns false when the text ends before it.
    pub(super) fn skip_to(&mut self, position: u64) -> bool {
        while self.position < position {
            let missing = usize::try_from(position - self.position).unwrap_or(usize::MAX);
            self.fill(missing.min(SKIP_BYTES));
            if self.buffer.is_empty() {
                return false;
            }
            self.take(missing);
        }
        self.position == position
    }

    /// Skips the rest of a line, including its newline. Returns false when the text ends before the line does.
    pub(super) fn skip_line(&mut self) -> bool {
        loop {
            self.fill(SKIP_BYTES);
            if let Some(at) = memchr::memchr(b'\n', &self.buffer) {
                self.take(at + 1);
                return true;
            }
            if self.buffer.is_empty() {
                return false;
            }
            self.take(self.buffer.len());
        }
    }

    /// Returns the length of the line ending at this index of the buffer, or zero if there is none.
    pub(super) fn newline_length(&self, at: usize) -> usize {
        match self.buffer.get(at..).unwrap_or_default() {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => 0,
        }
    }

    /// Returns the hash by which a file is looked up: that of its first line, or of the beginning of that line if it is
    /// long. It must be called at the start of the text.
    pub(super) fn first_line_hash(&mut self) -> ContentHash {
        self.fill(FIRST_LINE_BYTES);
        let start = &self.buffer[..self.buffer.len().min(FIRST_LINE_BYTES)];
        let line = memchr::memchr(b'\n', start).map_or(start, |end| &start[..end]);
        ContentHash(xxh3_128(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}
