//! A table of known names, looked up for every key of every record.
//!
//! A name of up to sixteen bytes is told by its length, its first eight bytes and its last eight: three
//! numbers to compare, no text. That is several times quicker than a general hash map, and these look-ups
//! are a good part of what a record costs. The few longer names are in such a map.

use std::collections::HashMap;

/// Known names with a value each.
#[derive(Debug, Clone)]
pub(crate) struct NameTable<T> {
    /// A power of two, at least three times as long as there are names, so that a miss ends at once.
    slots: Vec<Option<(NameKey, T)>>,
    count: usize,
    long_names: HashMap<String, T, foldhash::fast::FixedState>,
}

/// The length, the first eight and the last eight bytes of a name; no two names have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NameKey {
    first: u64,
    last: u64,
    length: usize,
}

impl NameKey {
    /// Of a longer name, the middle is in neither part.
    const MAX_LENGTH: usize = 16;

    #[inline]
    fn new(name: &[u8]) -> Self {
        let (first, last) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => (Self::pack_short(name), 0),
        };
        Self { first, last, length: name.len() }
    }

    /// Up to seven bytes as a number: overlapping halves cover four and more, three single bytes the rest.
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
            (self.first ^ self.last.rotate_left(23) ^ self.length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
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

    /// Adds a name, or gives a known one a new value.
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

    /// Always inlined: half of its cost would be the call.
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
