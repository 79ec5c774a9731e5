//! A hash table of known names, which is queried for every key of every record.
//!
//! A name of up to 24 bytes is identified by its length, its first eight bytes, its last eight bytes and the eight bytes
//! from the ninth on, so a comparison compares four numbers and no text. That is several times faster than a general hash map, and these
//! lookups are a considerable part of the cost of a record. The few longer names are in a general hash map.

use std::collections::HashMap;

/// A map from known names to values.
#[derive(Debug, Clone)]
pub(crate) struct NameTable<T> {
    /// The slots. Their number is a power of two and at least three times the number of names, so that a miss ends
    /// quickly.
    slots: Vec<Option<(NameKey, T)>>,
    count: usize,
    long_names: HashMap<String, T, foldhash::fast::FixedState>,
}

/// The length of a name and three parts of eight bytes, which identify it uniquely up to [`Self::MAX_LENGTH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NameKey {
    first: u64,
    /// The eight bytes from the ninth on of a name of more than sixteen; otherwise zero.
    middle: u64,
    last: u64,
    length: usize,
}

impl NameKey {
    /// The longest name whose bytes are all in one of the parts.
    const MAX_LENGTH: usize = 24;
    /// The longest name whose bytes are all in the first or the last part.
    const MAX_OF_TWO_PARTS: usize = 16;

    #[inline]
    fn new(name: &[u8]) -> Self {
        let (first, last) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => (Self::pack_short(name), 0),
        };
        let middle = if name.len() > Self::MAX_OF_TWO_PARTS {
            name[8..].first_chunk::<8>().map_or(0, |middle| u64::from_le_bytes(*middle))
        } else {
            0
        };
        Self { first, middle, last, length: name.len() }
    }

    /// Packs up to seven bytes into a number: overlapping halves if there are four or more, single bytes otherwise.
    #[inline]
    fn pack_short(name: &[u8]) -> u64 {
        match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
            }
            _ => {
                let byte = |index: usize| name.get(index).copied().map_or(0, u64::from);
                byte(0) | byte(1) << 8 | byte(2) << 16
            }
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    fn hash(self) -> usize {
        let mixed =
            (self.first ^ self.last.rotate_left(23) ^ self.middle.rotate_left(41) ^ self.length as u64)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize
    }
}

impl<T: Copy> NameTable<T> {
    pub(crate) fn new(names: impl IntoIterator<Item = (String, T)>) -> Self {
        let mut table = Self { slots: vec![None; 64], count: 0, long_names: HashMap::default() };
        for (name, value) in names {
            table.insert(name, value);
        }
        table
    }

    /// Inserts a name, or replaces the value of a known one.
    pub(crate) fn insert(&mut self, name: String, value: T) {
        if name.len() > NameKey::MAX_LENGTH {
            self.long_names.insert(name, value);
            return;
        }
        if (self.count + 1) * 3 > self.slots.len() {
            self.grow();
        }
        self.insert_key(NameKey::new(name.as_bytes()), value);
    }

    /// Returns the value of a name. Always inlined, because the call would be half of its cost.
    #[inline(always)]
    pub(crate) fn get(&self, name: &str) -> Option<T> {
        if name.len() > NameKey::MAX_LENGTH {
            return self.get_long_name(name);
        }
        let key = NameKey::new(name.as_bytes());
        let mut index = key.hash();
        loop {
            match &self.slots[index & (self.slots.len() - 1)] {
                Some((slot_key, value)) if *slot_key == key => return Some(*value),
                Some(_) => index += 1,
                None => return None,
            }
        }
    }

    #[inline(never)]
    fn get_long_name(&self, name: &str) -> Option<T> {
        self.long_names.get(name).copied()
    }

    fn insert_key(&mut self, key: NameKey, value: T) {
        let mask = self.slots.len() - 1;
        let mut index = key.hash() & mask;
        while self.slots[index].is_some_and(|(slot_key, _)| slot_key != key) {
            index = (index + 1) & mask;
        }
        self.count += usize::from(self.slots[index].is_none());
        self.slots[index] = Some((key, value));
    }

    fn grow(&mut self) {
        let larger = vec![None; self.slots.len() * 2];
        self.count = 0;
        for (key, value) in std::mem::replace(&mut self.slots, larger).into_iter().flatten() {
            self.insert_key(key, value);
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
        let mut table = NameTable::new(names.iter().cloned().zip(0..));
        for (name, value) in names.iter().zip(0..) {
            assert_eq!(table.get(name), Some(value), "{name}");
        }
        for other in ["name_500", "abd", "abcdefghijabcdefgXijabcdefghij", "bcd", "aabb"] {
            assert_eq!(table.get(other), None, "{other}");
        }
        table.insert("name_7".to_owned(), 99);
        assert_eq!(table.get("name_7"), Some(99));
    }
}
