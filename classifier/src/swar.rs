//! SWAR: examines eight bytes of a text at once, as one number.
//!
//! Each mask function returns a number in which the high bit of a byte is set if the byte belongs to the requested
//! class. Adding `0x7f - n` to a byte below 128 carries into its high bit exactly if the byte is greater than `n`.

const HIGH_BITS: u64 = repeat_byte(0x80);

const fn repeat_byte(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

const fn greater_than(bytes: u64, byte: u8) -> u64 {
    bytes.wrapping_add(repeat_byte(0x7f - byte))
}

/// Loads the eight bytes at an offset. Bytes past the end of the text are read as the digit zero, which has no special
/// meaning.
#[inline]
pub(crate) fn load(bytes: &[u8], offset: usize) -> u64 {
    let rest = &bytes[offset..];
    match rest.first_chunk() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => load_tail(bytes, rest),
    }
}

/// Loads the rest of a text, which is shorter than eight bytes. It is part of the last eight bytes of the text;
/// loading those is cheaper than copying a variable number of bytes.
#[inline]
fn load_tail(bytes: &[u8], rest: &[u8]) -> u64 {
    match bytes.last_chunk() {
        Some(chunk) if !rest.is_empty() => {
            let shift = 64 - 8 * rest.len();
            u64::from_le_bytes(*chunk) >> shift | repeat_byte(b'0') << (8 * rest.len())
        }
        _ => rest.iter().rev().fold(repeat_byte(b'0'), |chunk, &byte| chunk << 8 | u64::from(byte)),
    }
}

/// Returns the mask of the letters.
#[inline]
pub(crate) const fn letter_mask(bytes: u64) -> u64 {
    let lower = bytes & !HIGH_BITS | repeat_byte(0x20);
    greater_than(lower, b'a' - 1) & !greater_than(lower, b'z') & !bytes & HIGH_BITS
}

/// Returns the mask of the bytes that are neither letters nor digits.
#[inline]
pub(crate) const fn non_alphanumeric_mask(bytes: u64) -> u64 {
    let low = bytes & !HIGH_BITS;
    let lower = low | repeat_byte(0x20);
    let letters = greater_than(lower, b'a' - 1) & !greater_than(lower, b'z');
    let digits = greater_than(low, b'0' - 1) & !greater_than(low, b'9');
    !((letters | digits) & !bytes) & HIGH_BITS
}

/// Returns the mask of the bytes that must be escaped in JSON text: control characters, quotes, backslashes, DEL.
#[inline]
pub(crate) const fn escape_mask(bytes: u64) -> u64 {
    let low = bytes & !HIGH_BITS;
    let controls = !greater_than(low, 0x1f) | greater_than(low, 0x7e);
    let quotes = !greater_than(low ^ repeat_byte(b'"'), 0);
    let backslashes = !greater_than(low ^ repeat_byte(b'\\'), 0);
    (controls | quotes | backslashes) & !bytes & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::write::needs_escape;

    #[test]
    fn every_byte_is_told_apart_wherever_it_stands() {
        for (byte, position) in (0..=255_u8).flat_map(|byte| (0..8).map(move |position| (byte, position))) {
            let mut text = [b'0'; 8];
            text[position] = byte;
            let bit = |is: bool| u64::from(is) << (position * 8 + 7);
            assert_eq!(letter_mask(load(&text, 0)), bit(byte.is_ascii_alphabetic()), "{byte} at {position}");
            let others = non_alphanumeric_mask(load(&text, 0));
            assert_eq!(others, bit(!byte.is_ascii_alphanumeric()), "{byte} at {position}");
            assert_eq!(escape_mask(load(&text, 0)), bit(needs_escape(byte)), "{byte} at {position}");
        }
    }

    #[test]
    fn past_the_end_stand_harmless_bytes() {
        assert_eq!(load(b"abc", 1).to_le_bytes(), *b"bc000000");
        assert_eq!(load(b"abc", 3).to_le_bytes(), [b'0'; 8]);
        assert_eq!(load(b"abcdefghijk", 8).to_le_bytes(), *b"ijk00000");
        assert_eq!(load(b"abcdefgh", 8).to_le_bytes(), [b'0'; 8]);
    }
}
