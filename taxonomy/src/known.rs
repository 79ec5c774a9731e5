//! A table of known names, looked up for every key of every record.
//!
//! A name of up to sixteen bytes is told by its length, its first eight bytes and its last eight: three
//! numbers to compare, no text. That is several times quicker than a general hash map, and these look-ups
//! are a good part of what a record costs.

/// Known names with a value each.
#[derive(Debug, Clone)]
pub(crate) struct Known<T> {
    /// A power of two, at least four times as long as there are names, so that a miss ends at once.
    digests: Vec<Digest>,
    /// What belongs to each digest: the name is compared as well when the digest does not cover it.
    names: Vec<Option<(String, T)>>,
    count: usize,
}

/// The length, the first eight and the last eight bytes of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digest {
    length: usize,
    first: u64,
    last: u64,
}

impl Digest {
    /// Of no name.
    const EMPTY: Self = Self { length: usize::MAX, first: 0, last: 0 };

    /// A longer name is not told by its digest alone.
    const COVERS: usize = 16;

    #[inline]
    fn of(name: &[u8]) -> Self {
        let length = name.len();
        let (first, last) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => (Self::short(name), 0),
        };
        Self { length, first, last }
    }

    /// Up to seven bytes as a number; overlapping halves cover four and more.
    #[inline]
    fn short(name: &[u8]) -> u64 {
        match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
            }
            _ => name.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)),
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    fn hash(self) -> usize {
        let mixed =
            (self.first ^ self.last.rotate_left(23) ^ self.length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize
    }
}

impl<T: Copy> Known<T> {
    pub(crate) fn new(names: impl IntoIterator<Item = (String, T)>) -> Self {
        let mut known = Self::with_slots(64);
        for (name, value) in names {
            known.insert(name, value);
        }
        known
    }

    fn with_slots(slots: usize) -> Self {
        Self { digests: vec![Digest::EMPTY; slots], names: vec![None; slots], count: 0 }
    }

    /// Adds a name, or gives a known one a new value.
    pub(crate) fn insert(&mut self, name: String, value: T) {
        if (self.count + 1) * 4 > self.digests.len() {
            self.grow();
        }
        let slot = self.slot(&name);
        self.count += usize::from(self.names[slot].is_none());
        self.digests[slot] = Digest::of(name.as_bytes());
        self.names[slot] = Some((name, value));
    }

    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<T> {
        self.names[self.slot(name)].as_ref().map(|&(_, value)| value)
    }

    /// The slot that holds the name, or the empty one where it would be.
    #[inline]
    fn slot(&self, name: &str) -> usize {
        let mask = self.digests.len() - 1;
        let digest = Digest::of(name.as_bytes());
        let mut at = digest.hash() & mask;
        while self.digests[at] != Digest::EMPTY {
            if self.digests[at] == digest && (digest.length <= Digest::COVERS || self.is_at(at, name)) {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    fn is_at(&self, at: usize, name: &str) -> bool {
        self.names[at].as_ref().is_some_and(|(known, _)| known == name)
    }

    fn grow(&mut self) {
        let larger = Self::with_slots(self.digests.len() * 2);
        let smaller = std::mem::replace(self, larger);
        for (name, value) in smaller.names.into_iter().flatten() {
            self.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_others_are_not() {
        let names: Vec<String> = (0..40).map(|length| "abcdefghij".repeat(4)[..length].to_owned()).collect();
        let more = (0..500).map(|n| format!("name_{n}"));
        let names: Vec<String> = names.into_iter().chain(more).collect();
        let mut known = Known::new(names.iter().cloned().zip(0..));
        for (name, value) in names.iter().zip(0..) {
            assert_eq!(known.get(name), Some(value), "{name}");
        }
        for other in ["name_500", "abd", "abcdefghijabcdefgXijabcdefghij", "bcd", "aabb"] {
            assert_eq!(known.get(other), None, "{other}");
        }
        known.insert("name_7".to_owned(), 99);
        assert_eq!(known.get("name_7"), Some(99));
    }
}
