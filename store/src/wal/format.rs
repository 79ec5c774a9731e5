//! The binary format of a segment. All numbers are little-endian.
//!
//! ```text
//! 0       label        128 bytes, then zeros
//! 4096    label again
//! 8192    body         void ranges (16 bytes each: first, last), then the preamble; filled up to 4096 with zeros
//!         body again
//!         frames       each a 64-byte header and its payload, filled up to 64 with zeros
//!         zeros        what was preallocated and not written
//! ```
//!
//! The label and the body are stored twice, in different blocks, because all records of a segment depend on them.
//!
//! Invariants:
//! - **A payload cannot pass for a frame.** Senders choose payload bytes, and after damage the reader searches them for
//!   the next frame. A frame header begins with the segment's salt, 64 random bits that never leave the folder, and
//!   contains its own position: neither a guess nor a copy of a frame is accepted as one.
//! - A payload begins at a multiple of 64 in its file, so that Arrow buffers inside it are aligned when it is read.
//! - A frame states up to which sequence everything was durable when it was written. A missing record below that was
//!   acknowledged and is lost; a missing record above it was never acknowledged.
use std::sync::Arc;

/// The first bytes of a segment.
const MAGIC: [u8; 8] = *b"FAULTLOG";
/// The version of everything in this file.
pub(super) const VERSION: u16 = 1;
/// The size of a disk block. Copies are in different blocks, because a disk fails block by block.
const BLOCK: usize = 4096;
/// The alignment of frames. Payloads have the same, since a frame header is as long.
pub(super) const ALIGN: usize = 64;
/// The length of a label.
const LABEL: usize = 128;
/// The offsets of the copies of the label.
const LABELS: [usize; 2] = [0, BLOCK];
/// The offset of the first copy of the body.
const BODY: usize = 2 * BLOCK;
/// The number of bytes of a segment that have to be read to know where its frames begin.
pub(super) const LABELS_END: u64 = BODY as u64;
/// The longest payload. A length is 32 bits; half of that keeps every sum of lengths far from its limits.
pub(super) const MAX_PAYLOAD: usize = 1 << 30;

/// The header of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// The salt at the start of every frame of this segment.
    pub(super) salt: u64,
    /// The first sequence of the run of the program that wrote it.
    pub(super) run: u64,
    /// The lowest sequence that it can hold.
    pub(super) first: u64,
    /// The sequence up to which everything was durable, void or lost when the segment was begun.
    pub(super) durable: u64,
    /// The number of the previous segment that holds records, and the lowest sequence that it can hold. If that segment
    /// exists but cannot be read, this tells which sequences were in it.
    pub(super) previous: (u64, u64),
    /// The sequences that were rejected, here or in earlier segments.
    pub(super) voids: Vec<(u64, u64)>,
    /// The caller's bytes.
    pub(super) preamble: Arc<[u8]>,
}

/// The reason why a segment has no usable [`SegmentHeader`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadHeader {
    /// No copy is readable.
    Damaged,
    /// The header is intact, but a newer version of the program wrote it.
    Newer(u16),
}

impl SegmentHeader {
    /// Returns the bytes before the first frame.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.voids.len() * 16 + self.preamble.len());
        for (first, last) in &self.voids {
            body.extend_from_slice(&first.to_le_bytes());
            body.extend_from_slice(&last.to_le_bytes());
        }
        body.extend_from_slice(&self.preamble);
        let label = self.label(&body);
        let mut bytes = vec![0; frames_begin(body.len())];
        for at in LABELS {
            bytes[at..at + label.len()].copy_from_slice(&label);
        }
        for at in bodies(body.len()) {
            bytes[at..at + body.len()].copy_from_slice(&body);
        }
        bytes
    }

    /// Returns the offset at which the frames begin.
    pub(super) fn bytes(&self) -> usize {
        frames_begin(self.voids.len() * 16 + self.preamble.len())
    }

    fn label(&self, body: &[u8]) -> [u8; LABEL] {
        let mut label = [0; LABEL];
        put(&mut label, 0, MAGIC);
        put(&mut label, 8, VERSION.to_le_bytes());
        put(&mut label, 12, (body.len() as u32).to_le_bytes());
        put(&mut label, 16, self.salt.to_le_bytes());
        put(&mut label, 24, self.run.to_le_bytes());
        put(&mut label, 32, self.first.to_le_bytes());
        put(&mut label, 40, self.durable.to_le_bytes());
        put(&mut label, 48, self.previous.0.to_le_bytes());
        put(&mut label, 56, self.previous.1.to_le_bytes());
        put(&mut label, 64, (self.voids.len() as u32).to_le_bytes());
        put(&mut label, 68, crc32fast::hash(body).to_le_bytes());
        flush(&mut label);
        label
    }

    /// Reads the header from the start of a segment, from any intact copies.
    pub(super) fn decode(segment: &[u8]) -> Result<Self, BadHeader> {
        let mut newer = None;
        for label in LABELS.into_iter().filter_map(|at| Label::decode(segment, at)) {
            if label.version != VERSION {
                newer = Some(label.version);
            } else if let Some(header) = label.bodies().find_map(|at| label.body(segment, at)) {
                return Ok(header);
            }
        }
        Err(newer.map_or(BadHeader::Damaged, BadHeader::Newer))
    }

    /// Returns the offset at which the frames begin, by the labels alone.
    pub(super) fn frames_begin(segment: &[u8]) -> Option<u64> {
        let label = LABELS.into_iter().find_map(|at| Label::decode(segment, at))?;
        Some(frames_begin(label.body_length) as u64)
    }
}

/// A header label with a correct checksum.
struct Label<'a> {
    bytes: &'a [u8; LABEL],
    version: u16,
    body_length: usize,
}

impl<'a> Label<'a> {
    fn decode(segment: &'a [u8], at: usize) -> Option<Self> {
        let bytes: &[u8; LABEL] = segment.get(at..)?.first_chunk()?;
        if bytes[..8] != MAGIC || !is_flushed(bytes) {
            return None;
        }
        let version = u16::from_le_bytes(take(bytes, 8));
        Some(Self { bytes, version, body_length: u32::from_le_bytes(take(bytes, 12)) as usize })
    }

    fn bodies(&self) -> impl Iterator<Item = usize> + use<> {
        bodies(self.body_length).into_iter()
    }

    fn body(&self, segment: &[u8], at: usize) -> Option<SegmentHeader> {
        let body = segment.get(at..at + self.body_length)?;
        if crc32fast::hash(body) != u32::from_le_bytes(take(self.bytes, 68)) {
            return None;
        }
        let voids = u32::from_le_bytes(take(self.bytes, 64)) as usize;
        let (voids, preamble) = body.split_at_checked(voids * 16)?;
        let (voids, _) = voids.as_chunks::<16>();
        Some(SegmentHeader {
            salt: u64::from_le_bytes(take(self.bytes, 16)),
            run: u64::from_le_bytes(take(self.bytes, 24)),
            first: u64::from_le_bytes(take(self.bytes, 32)),
            durable: u64::from_le_bytes(take(self.bytes, 40)),
            previous: (u64::from_le_bytes(take(self.bytes, 48)), u64::from_le_bytes(take(self.bytes, 56))),
            voids: voids
                .iter()
                .map(|void| (u64::from_le_bytes(take(void, 0)), u64::from_le_bytes(take(void, 8))))
                .collect(),
            preamble: preamble.into(),
        })
    }
}

fn bodies(length: usize) -> [usize; 2] {
    [BODY, BODY + length.next_multiple_of(BLOCK)]
}

fn frames_begin(body_length: usize) -> usize {
    BODY + 2 * body_length.next_multiple_of(BLOCK)
}

/// The header of a frame, which precedes its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// The record's sequence.
    pub(super) sequence: u64,
    /// The sequence up to which everything was durable or void when the frame was written.
    pub(super) durable: u64,
    /// The length of the payload, without padding.
    pub(super) length: usize,
    /// The payload's checksum.
    pub(super) checksum: u32,
    /// The record's schema.
    pub(super) schema: u16,
}

impl FrameHeader {
    pub(super) fn encode(&self, salt: u64, position: u64) -> [u8; ALIGN] {
        let mut bytes = [0; ALIGN];
        put(&mut bytes, 0, salt.to_le_bytes());
        put(&mut bytes, 8, position.to_le_bytes());
        put(&mut bytes, 16, self.sequence.to_le_bytes());
        put(&mut bytes, 24, self.durable.to_le_bytes());
        put(&mut bytes, 32, (self.length as u32).to_le_bytes());
        put(&mut bytes, 36, self.checksum.to_le_bytes());
        put(&mut bytes, 40, self.schema.to_le_bytes());
        flush(&mut bytes);
        bytes
    }

    /// Returns the frame header at a position of a segment, if there is one.
    pub(super) fn decode(segment: &[u8], salt: u64, position: usize) -> Option<Self> {
        Self::decode_at(segment.get(position..)?.first_chunk()?, salt, position as u64)
    }

    /// Parses a frame header, if these bytes are one for this position.
    pub(super) fn decode_at(bytes: &[u8; ALIGN], salt: u64, position: u64) -> Option<Self> {
        let ours =
            bytes[..8] == salt.to_le_bytes() && bytes[8..16] == position.to_le_bytes() && is_flushed(bytes);
        ours.then(|| Self {
            sequence: u64::from_le_bytes(take(bytes, 16)),
            durable: u64::from_le_bytes(take(bytes, 24)),
            length: u32::from_le_bytes(take(bytes, 32)) as usize,
            checksum: u32::from_le_bytes(take(bytes, 36)),
            schema: u16::from_le_bytes(take(bytes, 40)),
        })
    }
}

/// Returns the number of bytes that a payload takes with its header and padding.
pub(super) fn frame_bytes(payload: usize) -> usize {
    ALIGN + payload.next_multiple_of(ALIGN)
}

/// Returns the name of the segment with this number.
pub(super) fn name(number: u64) -> String {
    format!("{number:020}.log")
}

/// Returns the number of the segment with this name.
pub(super) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    (digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&bytes[at..at + N]);
    value
}

/// Writes the checksum of all other bytes to the last four bytes.
fn flush<const N: usize>(bytes: &mut [u8; N]) {
    let checksum = crc32fast::hash(&bytes[..N - 4]);
    put(bytes, N - 4, checksum.to_le_bytes());
}

fn is_flushed<const N: usize>(bytes: &[u8; N]) -> bool {
    crc32fast::hash(&bytes[..N - 4]) == u32::from_le_bytes(take(bytes, N - 4))
}
