//! Reads an intact segment, frame by frame, with at most one payload in memory.
//!
//! It ends at the first irregularity; then the whole segment is read by `salvage`.
use super::format::{ALIGN, FrameHeader, frame_bytes};
use crate::disk::DiskRead;
use arrow::buffer::{Buffer, MutableBuffer};

/// The number of preallocated bytes that are read at once.
const STRIDE: usize = 256 << 10;

/// The next item of a segment.
pub(super) enum Step {
    /// A frame whose header is intact.
    Frame(FrameHeader),
    /// Only zeros up to the end.
    End,
    /// Any other bytes.
    Odd,
}

/// Reads the frames of a segment in order.
pub(super) struct SegmentReader<'f> {
    file: &'f dyn DiskRead,
    salt: u64,
    /// The offset of the next frame.
    at: u64,
    /// The offset of the payload of the last frame.
    payload: u64,
}

impl<'f> SegmentReader<'f> {
    pub(super) fn new(file: &'f dyn DiskRead, salt: u64, begin: usize) -> Self {
        Self { file, salt, at: begin as u64, payload: 0 }
    }

    pub(super) fn next(&mut self) -> Step {
        let mut bytes = [0; ALIGN];
        if self.file.read_at(self.at, &mut bytes).is_err() {
            return if self.is_zero_from(self.at) { Step::End } else { Step::Odd };
        }
        match FrameHeader::decode_at(&bytes, self.salt, self.at) {
            Some(header) => {
                self.payload = self.at + ALIGN as u64;
                self.at += frame_bytes(header.length) as u64;
                Step::Frame(header)
            }
            None if self.is_zero_from(self.at) => Step::End,
            None => Step::Odd,
        }
    }

    /// Returns the offset of the next frame.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Returns the payload of the last frame, if it is intact.
    pub(super) fn payload(&self, header: &FrameHeader) -> Option<Buffer> {
        // An absurd length is damage, and allocates no memory.
        let end = self.payload.checked_add(header.length as u64)?;
        if end > self.file.bytes() {
            return None;
        }
        let mut payload = MutableBuffer::from_len_zeroed(header.length);
        self.file.read_at(self.payload, payload.as_slice_mut()).ok()?;
        (crc32fast::hash(&payload) == header.checksum).then(|| payload.into())
    }

    fn is_zero_from(&self, mut at: u64) -> bool {
        let mut bytes = vec![0; STRIDE];
        while at < self.file.bytes() {
            let length = usize::try_from(self.file.bytes() - at).unwrap_or(STRIDE).min(STRIDE);
            let part = &mut bytes[..length];
            if self.file.read_at(at, part).is_err() || part.iter().fold(0, |all, byte| all | byte) != 0 {
                return false;
            }
            at += length as u64;
        }
        true
    }
}
