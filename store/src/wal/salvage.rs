//! Reads all intact frames of one segment, regardless of damage to its bytes.
//!
//! Invariants: every byte string is accepted as a segment. Reading neither fails nor loops, and a frame whose bytes are
//! untouched is found, wherever the damage is.
use super::format::{ALIGN, FrameHeader, frame_bytes};

/// The number of bytes that are searched at once for non-zero bytes.
const STRIDE: usize = 4096;

/// An item of a segment, in the order of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SalvagedItem {
    /// A frame whose header and payload are intact; the payload begins at `payload`.
    Intact { header: FrameHeader, payload: usize },
    /// A frame whose header is intact, but whose payload is not.
    Spoiled { header: FrameHeader, bytes: usize },
    /// Bytes that should be a frame but are not.
    Unreadable { bytes: usize },
}

/// Returns the items of a segment whose frames begin at `begin`, and the end of the last frame.
pub(super) fn pieces(segment: &[u8], salt: u64, begin: usize) -> (Vec<SalvagedItem>, usize) {
    let (mut pieces, mut at, mut end) = (Vec::new(), begin, begin);
    while at < segment.len() {
        if let Some(header) = FrameHeader::decode(segment, salt, at) {
            // The header is intact, so its length is correct: the bytes in between are payload and are never searched.
            pieces.push(frame(segment, header, at));
            at = at.saturating_add(frame_bytes(header.length));
            end = at.min(segment.len());
        } else {
            let next = next_frame(segment, salt, at + ALIGN);
            // Zeros up to the end are preallocated; zeros before a frame are a hole.
            let bytes = next.map_or_else(|| used(&segment[at..]), |next| next - at);
            if bytes > 0 {
                pieces.push(SalvagedItem::Unreadable { bytes });
                end = at + bytes;
            }
            at = next.unwrap_or(segment.len());
        }
    }
    (pieces, end)
}

fn frame(segment: &[u8], header: FrameHeader, at: usize) -> SalvagedItem {
    let payload = at + ALIGN;
    match segment.get(payload..payload + header.length) {
        Some(bytes) if crc32fast::hash(bytes) == header.checksum => SalvagedItem::Intact { header, payload },
        Some(_) => SalvagedItem::Spoiled { header, bytes: frame_bytes(header.length) },
        None => SalvagedItem::Spoiled { header, bytes: segment.len() - at },
    }
}

fn next_frame(segment: &[u8], salt: u64, from: usize) -> Option<usize> {
    let salt_bytes = salt.to_le_bytes();
    (from..segment.len()).step_by(ALIGN).find(|at| {
        segment[*at..].starts_with(&salt_bytes) && FrameHeader::decode(segment, salt, *at).is_some()
    })
}

/// Returns the length of `bytes` without trailing zeros.
pub(super) fn used(bytes: &[u8]) -> usize {
    let mut end = bytes.len();
    while end > 0 {
        let from = end.saturating_sub(STRIDE);
        // The loop has no early exit, so that it is vectorized.
        if bytes[from..end].iter().fold(0, |all, byte| all | byte) != 0 {
            return bytes[..end].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        }
        end = from;
    }
    0
}
