//! A table of known names, looked up for every key of every record.
//!
//! A name of up to sixteen bytes is told by its length, its first eight bytes and its last eight: three
//! numbers to compare, no text. That is several times quicker than a general hash map, and these look-ups
//! are a good part of what a record costs. The few longer names are in such a map.

use std::collections::HashMap;

/// Known names with a value each.
#[derive(Debug, Clone)]
pub(crate) struct Known<T> {
    /// A power of two, at least three times as long as there are names, so that a miss ends at once.
    slots: Vec<Option<(Digest, T)>>,
    count: usize,
    long: HashMap<String, T, foldhash::fast::FixedState>,
}

/// The length, the first eight and the last eight bytes of a name; no two names have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digest {
    first: u64,
    last: u64,
    length: usize,
}

impl Digest {
    /// Of a longer name, the middle is in neither part.
    const COVERS: usize = 16;

    #[inline]
    fn of(name: &[u8]) -> Self {
        let (first, last) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => (Self::short(name), 0),
        };
        Self { first, last, length: name.len() }
    }

    /// Up to seven bytes as a number: overlapping halves cover four and more, three single bytes the rest.
    #[inline]
    fn short(name: &[u8]) -> u64 {
        match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
            }
            _ => {
                let byte = |at: usize| name.get(at).copied().map_or(0, u64::from);
                byte(0) | byte(1) << 8 | byte(2) << 16
            }
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
        let mut known = Self { slots: vec![None; 64], count: 0, long: HashMap::default() };
        for (name, value) in names {
            known.insert(name, value);
        }
        known
    }

    /// Adds a name, or gives a known one a new value.
    pub(crate) fn insert(&mut self, name: String, value: T) {
        if name.len() > Digest::COVERS {
            self.long.insert(name, value);
            return;
        }
        if (self.count + 1) * 3 > self.slots.len() {
            self.grow();
        }
        self.put(Digest::of(name.as_bytes()), value);
    }

    /// Always inlined: half of its cost would be the call.
    #[inline(always)]
    pub(crate) fn get(&self, name: &str) -> Option<T> {
        if name.len() > Digest::COVERS {
            return self.get_long(name);
        }
        let digest = Digest::of(name.as_bytes());
        let mut at = digest.hash();
        loop {
            match &self.slots[at & (self.slots.len() - 1)] {
                Some((known, value)) if *known == digest => return Some(*value),
                Some(_) => at += 1,
                None => return None,
            }
        }
    }

    #[inline(never)]
    fn get_long(&self, name: &str) -> Option<T> {
        self.long.get(name).copied()
    }

    fn put(&mut self, digest: Digest, value: T) {
        let mask = self.slots.len() - 1;
        let mut at = digest.hash() & mask;
        while self.slots[at].is_some_and(|(known, _)| known != digest) {
            at = (at + 1) & mask;
        }
        self.count += usize::from(self.slots[at].is_none());
        self.slots[at] = Some((digest, value));
    }

    fn grow(&mut self) {
        let larger = vec![None; self.slots.len() * 2];
        self.count = 0;
        for (digest, value) in std::mem::replace(&mut self.slots, larger).into_iter().flatten() {
            self.put(digest, value);
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
