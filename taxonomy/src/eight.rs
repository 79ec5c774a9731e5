//! Eight bytes of a text at a time, as one number.
//!
//! Each function gives a number that has the high bit of a byte set where the byte is what was asked for.
//! Adding `0x7f - n` to a byte below 128 carries into its high bit just when the byte is greater than `n`.

const HIGH: u64 = each(0x80);

const fn each(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

const fn above(bytes: u64, byte: u8) -> u64 {
    bytes.wrapping_add(each(0x7f - byte))
}

/// The eight bytes at a place within a text; past its end stand zeros (the digit), which mean nothing.
#[inline]
pub(crate) fn at(bytes: &[u8], place: usize) -> u64 {
    let rest = &bytes[place..];
    match rest.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => last(bytes, rest),
    }
}

/// The rest of a text, less than eight bytes. The last eight of the whole text hold it, which is cheaper to
/// take than to copy as many bytes as there are.
#[inline]
fn last(bytes: &[u8], rest: &[u8]) -> u64 {
    match bytes.last_chunk() {
        Some(eight) if !rest.is_empty() => {
            let others = 64 - 8 * rest.len();
            u64::from_le_bytes(*eight) >> others | each(b'0') << (8 * rest.len())
        }
        _ => rest.iter().rev().fold(each(b'0'), |eight, &byte| eight << 8 | u64::from(byte)),
    }
}

/// Where the letters are.
#[inline]
pub(crate) const fn letters(bytes: u64) -> u64 {
    let lower = bytes & !HIGH | each(0x20);
    above(lower, b'a' - 1) & !above(lower, b'z') & !bytes & HIGH
}

/// Where something is that is no letter or digit.
#[inline]
pub(crate) const fn others_than_alphanumeric(bytes: u64) -> u64 {
    let low = bytes & !HIGH;
    let lower = low | each(0x20);
    let letters = above(lower, b'a' - 1) & !above(lower, b'z');
    let digits = above(low, b'0' - 1) & !above(low, b'9');
    !((letters | digits) & !bytes) & HIGH
}

/// Where something is that JSON text cannot hold as it is: control characters, quotes, backslashes, DEL.
#[inline]
pub(crate) const fn escapes(bytes: u64) -> u64 {
    let low = bytes & !HIGH;
    let controls = !above(low, 0x1f) | above(low, 0x7e);
    let quotes = !above(low ^ each(b'"'), 0);
    let backslashes = !above(low ^ each(b'\\'), 0);
    (controls | quotes | backslashes) & !bytes & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::write::needs_escape;

    #[test]
    fn every_byte_is_told_apart_wherever_it_stands() {
        for (byte, place) in (0..=255_u8).flat_map(|byte| (0..8).map(move |place| (byte, place))) {
            let mut text = [b'0'; 8];
            text[place] = byte;
            let bit = |is: bool| u64::from(is) << (place * 8 + 7);
            assert_eq!(letters(at(&text, 0)), bit(byte.is_ascii_alphabetic()), "{byte} at {place}");
            let others = others_than_alphanumeric(at(&text, 0));
            assert_eq!(others, bit(!byte.is_ascii_alphanumeric()), "{byte} at {place}");
            assert_eq!(escapes(at(&text, 0)), bit(needs_escape(byte)), "{byte} at {place}");
        }
    }

    #[test]
    fn past_the_end_stand_harmless_bytes() {
        assert_eq!(at(b"abc", 1).to_le_bytes(), *b"bc000000");
        assert_eq!(at(b"abc", 3).to_le_bytes(), [b'0'; 8]);
        assert_eq!(at(b"abcdefghijk", 8).to_le_bytes(), *b"ijk00000");
        assert_eq!(at(b"abcdefgh", 8).to_le_bytes(), [b'0'; 8]);
    }
}
