//! Finds the candidates: the positions in a text at which a secret may begin.
//!
//! Every text is searched for candidates and most texts have none, so this search determines the cost of redaction.

use super::formats::ROWS;
use super::phrases::OPENERS;
use crate::swar;

/// Returns the next candidate: a sign, or a word that starts like a secret. A word may start at `at` and after each
/// byte that is not part of a word. Most texts have no candidate, so eight bytes are examined at a time.
pub(super) fn next_candidate(bytes: &[u8], mut at: usize) -> Option<usize> {
    if starts_secret(bytes, at) {
        return Some(at);
    }
    while at < bytes.len() {
        let mut others = swar::non_alphanumeric_mask(swar::load(bytes, at));
        while others != 0 {
            let other = at + others.trailing_zeros() as usize / 8;
            match SIGN[usize::from(bytes[other])] {
                ALWAYS => return Some(other),
                DASH if !may_be_option(bytes, other) && !starts_secret(bytes, other + 1) => {}
                DASH | SOMETIMES if is_worth_a_look(bytes, other) => return Some(other),
                // A credential may be part of a name: `backup_ghp_...`.
                UNDERSCORE if !starts_credential(bytes, other + 1) => {}
                _ if starts_secret(bytes, other + 1) => return Some(other + 1),
                _ => {}
            }
            others &= others - 1;
        }
        at += 8;
    }
    None
}

/// Returns false for most dashes. Names and ids are full of single dashes, so this check avoids the slower one.
#[inline]
fn may_be_option(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at + 1) {
        Some(b'-' | b'p' | b'P' | b'u' | b'U' | b'w' | b'a') => true,
        Some(next) => next.is_ascii_hexdigit() && bytes.get(at + 9) == Some(&b'-'),
        None => false,
    }
}

/// Returns true if a common sign has a context in which it may be part of a secret.
#[inline(never)]
fn is_worth_a_look(bytes: &[u8], at: usize) -> bool {
    match bytes[at..] {
        // Names and ids are full of single dashes. A private key starts with five, and an option follows a space.
        [b'-', b'-', ..] => true,
        [b'-', b'a' | b'p' | b'P' | b'u' | b'U' | b'w', ..] => {
            at == 0
                || matches!(bytes[at - 1], b' ' | b'"' | b'\'' | b'\n')
                || bytes[at + 1..].starts_with(b"us")
                || bytes.get(at + 9) == Some(&b'-')
        }
        [b'-', next, ..] => next.is_ascii_hexdigit() && bytes.get(at + 9) == Some(&b'-'),
        [b'%', high, low, ..] => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        [b'&', b'l', b't', b';', ..] => true,
        [b'(', b'"' | b'\'' | b'b', ..] => true,
        [b'<', next, ..] => next.is_ascii_alphabetic(),
        [b'~', ..] => at > 0 && bytes[at - 1] == b'Q',
        _ => false,
    }
}

/// Returns the number of bytes to skip at a candidate that was not a secret: the word, the sign, or the escape.
pub(super) fn passed_over(rest: &[u8]) -> usize {
    match rest {
        // Without this, the letter of an escaped newline that was escaped once more would become part of the next
        // word.
        [b'\\', b'n' | b'r' | b't', ..] => 2,
        [b'%', _, _, ..] => 3,
        [b'[', ..] => mark_length(rest).unwrap_or(1),
        [first, ..] if first.is_ascii_alphanumeric() => {
            rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len())
        }
        _ => 1,
    }
}

/// Returns the length of a mark that an earlier redaction left.
pub(super) fn mark_length(bytes: &[u8]) -> Option<usize> {
    let is_mark = [&b"[redacted]"[..], b"[token:", b"[client:"].iter().any(|mark| bytes.starts_with(mark));
    bytes.iter().take(32).position(|&byte| byte == b']').filter(|_| is_mark).map(|end| end + 1)
}

const ALWAYS: u8 = 1;
const SOMETIMES: u8 = 2;
const UNDERSCORE: u8 = 3;
const DASH: u8 = 4;

/// The signs that are always candidates, and those that are candidates only in certain contexts.
const SIGN: [u8; 256] = {
    let mut table = [0; 256];
    let (always, sometimes) = (b"@=:[\\", b"%&(<~");
    let mut index = 0;
    while index < always.len() {
        table[always[index] as usize] = ALWAYS;
        index += 1;
    }
    index = 0;
    while index < sometimes.len() {
        table[sometimes[index] as usize] = SOMETIMES;
        index += 1;
    }
    table[b'_' as usize] = UNDERSCORE;
    table[b'-' as usize] = DASH;
    table
};

/// A filter for the first bytes of secrets and of words that introduce them. It has one bit per first byte and low six
/// bits of the second byte, which most words fail, and one bit per hash of the first three or four bytes.
struct Starts {
    second: [u64; 256],
    three: [u64; 256],
    four: [u64; 256],
}

impl Starts {
    const EMPTY: Self = Self { second: [0; 256], three: [0; 256], four: [0; 256] };

    /// Adds the start of a text. After a text of two bytes, any letter or digit may follow.
    const fn add(mut self, text: &[u8]) -> Self {
        self.second[text[0] as usize] |= 1 << (text[1] & 63);
        if text.len() > 3 {
            let hash = Self::hash([text[0], text[1], text[2], text[3]]);
            self.four[hash >> 6] |= 1 << (hash & 63);
        } else if text.len() > 2 {
            let hash = Self::hash([text[0], text[1], text[2], 0]);
            self.three[hash >> 6] |= 1 << (hash & 63);
        } else {
            let mut third = 0_u8;
            while third < 128 {
                if third.is_ascii_alphanumeric() {
                    self = self.add(&[text[0], text[1], third]);
                }
                third += 1;
            }
        }
        self
    }

    const fn hash(bytes: [u8; 4]) -> usize {
        (u32::from_le_bytes(bytes).wrapping_mul(0x9e37_79b1) >> 18) as usize
    }

    #[inline]
    const fn may_be(&self, bytes: [u8; 4]) -> bool {
        if self.second[bytes[0] as usize] >> (bytes[1] & 63) & 1 == 0 {
            return false;
        }
        let four = Self::hash(bytes);
        let three = Self::hash([bytes[0], bytes[1], bytes[2], 0]);
        (self.four[four >> 6] >> (four & 63) | self.three[three >> 6] >> (three & 63)) & 1 != 0
    }
}

/// The starts of credentials and card numbers, which may begin in the middle of a name.
const OF_CREDENTIALS: Starts = {
    let mut starts = Starts::EMPTY;
    let mut index = 0;
    while index < ROWS.len() {
        starts = starts.add(ROWS[index].0.as_bytes());
        index += 1;
    }
    starts = starts.add(b"eyJ");
    // The first three digits of card numbers, 200 to 699.
    let mut digits = 200_u16;
    while digits < 700 {
        let [a, b, c] = [digits / 100, digits / 10 % 10, digits % 10];
        starts = starts.add(&[b'0' + a as u8, b'0' + b as u8, b'0' + c as u8]);
        digits += 1;
    }
    starts
};

static CREDENTIALS: Starts = OF_CREDENTIALS;

/// The starts of credentials, and of words that introduce a secret.
static ALL: Starts = {
    let mut starts = OF_CREDENTIALS;
    let words: [&[u8]; 8] = [b"conf", b"quot", b"bear", b"Bear", b"BEAR", b"basi", b"Basi", b"BASI"];
    let mut index = 0;
    while index < words.len() {
        starts = starts.add(words[index]);
        index += 1;
    }
    index = 0;
    while index < OPENERS.len() {
        starts = starts.add(OPENERS[index].as_bytes());
        index += 1;
    }
    starts
};

/// Returns true if a word that may be a secret or introduce one starts here. Most words are ruled out.
#[inline]
fn starts_secret(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(start) => ALL.may_be(*start) && !(start[0].is_ascii_digit() && is_hex(bytes, at)),
        None => false,
    }
}

#[inline]
pub(super) fn starts_credential(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(start) => CREDENTIALS.may_be(*start) && !(start[0].is_ascii_digit() && is_hex(bytes, at)),
        None => false,
    }
}

/// Returns true if the next eight bytes contain a letter. Ids may start with digits as well, but contain letters,
/// while card numbers do not.
fn is_hex(bytes: &[u8], at: usize) -> bool {
    bytes[at + 1] != b'/' && swar::letter_mask(swar::load(bytes, at)) != 0
}
