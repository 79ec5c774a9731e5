//! A table of known names, looked up for every key of every record.
//!
//! A name of up to sixteen bytes is told by its length, its first eight bytes and its last eight: three
//! numbers to compare, no text. That is several times quicker than a general hash map, and these look-ups
//! are a good part of what a record costs.

/// Known names with a value each.
#[derive(Debug, Clone)]
pub(crate) struct Known<T> {
    /// A power of two, at least four times as long as there are names, so that a miss ends at once.
    slots: Vec<Option<Slot<T>>>,
    count: usize,
}

#[derive(Debug, Clone)]
struct Slot<T> {
    digest: Digest,
    /// Compared as well when the digest does not cover it.
    name: String,
    value: T,
}

/// The length, the first eight and the last eight bytes of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digest {
    length: usize,
    first: u64,
    last: u64,
}

impl Digest {
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
        let mut known = Self { slots: vec![None; 64], count: 0 };
        for (name, value) in names {
            known.insert(name, value);
        }
        known
    }

    /// Adds a name, or gives a known one a new value.
    pub(crate) fn insert(&mut self, name: String, value: T) {
        if (self.count + 1) * 4 > self.slots.len() {
            self.grow();
        }
        let slot = self.slot(&name);
        self.count += usize::from(self.slots[slot].is_none());
        self.slots[slot] = Some(Slot { digest: Digest::of(name.as_bytes()), name, value });
    }

    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<T> {
        self.slots[self.slot(name)].as_ref().map(|slot| slot.value)
    }

    /// The slot that holds the name, or the empty one where it would be.
    #[inline]
    fn slot(&self, name: &str) -> usize {
        let mask = self.slots.len() - 1;
        let digest = Digest::of(name.as_bytes());
        let mut at = digest.hash() & mask;
        while let Some(slot) = &self.slots[at] {
            if slot.digest == digest && (digest.length <= Digest::COVERS || slot.name == name) {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let slots = std::mem::take(&mut self.slots);
        self.slots = vec![None; slots.len() * 2];
        for slot in slots.into_iter().flatten() {
            let at = self.slot(&slot.name);
            self.slots[at] = Some(slot);
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
