//! Where in a text a secret may be: the places that are worth a look.
//!
//! Most texts have no such place, and every text is searched for them, so this decides what redaction costs.

use super::formats::PREFIXES;
use crate::eight;

/// The next place that is worth a look: a sign, or a word that starts like a secret. `at` is a place where
/// a word may start; so is whatever follows a byte that is no part of a word. Most texts have no such place,
/// so eight bytes are taken at a time.
pub(super) fn next_place(bytes: &[u8], mut at: usize) -> Option<usize> {
    if starts_secret(bytes, at) {
        return Some(at);
    }
    while at < bytes.len() {
        let mut others = eight::others_than_word(eight::at(bytes, at));
        while others != 0 {
            let other = at + others.trailing_zeros() as usize / 8;
            if IS_SIGN[usize::from(bytes[other])] && !is_lone_dash(&bytes[other..]) {
                return Some(other);
            }
            if starts_secret(bytes, other + 1) {
                return Some(other + 1);
            }
            others &= others - 1;
        }
        at += 8;
    }
    None
}

/// Names and ids are full of single dashes; a private key starts with five.
fn is_lone_dash(rest: &[u8]) -> bool {
    rest[0] == b'-' && rest.get(1) != Some(&b'-')
}

/// How much to pass over at a place that held no secret: the word, the sign, or what belongs together.
pub(super) fn passed_over(rest: &[u8]) -> usize {
    match rest {
        // An escaped newline that was escaped once more would glue its letter to the word.
        [b'\\', b'n' | b'r' | b't', ..] => 2,
        [b'[', ..] => mark_length(rest).unwrap_or(1),
        [first, ..] if is_word(*first) => rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len()),
        _ => 1,
    }
}

/// The length of a mark that redaction left before.
pub(super) fn mark_length(bytes: &[u8]) -> Option<usize> {
    let is_mark = [&b"[redacted]"[..], b"[token:", b"[client:"].iter().any(|mark| bytes.starts_with(mark));
    bytes.iter().take(32).position(|&byte| byte == b']').filter(|_| is_mark).map(|end| end + 1)
}

/// The inside of a word.
const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Bytes to look at wherever they stand: signs, marks, dashes, backslashes.
const IS_SIGN: [bool; 256] = {
    let signs = b"@=:[-\\";
    let mut table = [false; 256];
    let mut index = 0;
    while index < signs.len() {
        table[signs[index] as usize] = true;
        index += 1;
    }
    table
};

/// Pairs of bytes that a secret, or a word that introduces one, can start with: by the first byte, then one
/// bit for the low six bits of the second, which mix up some letters and digits but miss nothing.
const STARTS: [u64; 256] = {
    let mut table = [0; 256];
    let pairs: [&[u8; 2]; 9] = [b"co", b"qu", b"ey", b"be", b"Be", b"BE", b"ba", b"Ba", b"BA"];
    let mut index = 0;
    while index < pairs.len() {
        add_pair(&mut table, *pairs[index]);
        index += 1;
    }
    index = 0;
    while index < PREFIXES.len() {
        add_pair(&mut table, [PREFIXES[index].as_bytes()[0], PREFIXES[index].as_bytes()[1]]);
        index += 1;
    }
    // Cards: a digit, and one more.
    let mut first = b'2';
    while first <= b'6' {
        let mut second = b'0';
        while second <= b'9' {
            add_pair(&mut table, [first, second]);
            second += 1;
        }
        first += 1;
    }
    table
};

const fn add_pair(table: &mut [u64; 256], [first, second]: [u8; 2]) {
    table[first as usize] |= 1 << (second & 63);
}

/// True when a word starts here that may be a secret, or introduce one; most words cannot.
#[inline]
fn starts_secret(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at..) {
        Some([first, second, ..]) => {
            STARTS[usize::from(*first)] >> (second & 63) & 1 != 0
                && !(first.is_ascii_digit() && is_hex(bytes, at))
        }
        _ => false,
    }
}

/// Ids start with digits, too, but soon have letters in them; cards have none.
fn is_hex(bytes: &[u8], at: usize) -> bool {
    eight::letters(eight::at(bytes, at)) != 0
}
