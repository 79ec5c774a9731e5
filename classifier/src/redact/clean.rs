//! Names that were found clean a moment ago.
//!
//! Services, operations, environments and clients are few, and every record names them again; looking for
//! secrets in the same few words was a tenth of all work. What always holds: only a text that is equal to
//! one that went through redaction unchanged is known here, and memory is bounded.

/// Remembers clean names, each in the one slot that its bytes choose; a newer one takes it over.
pub(crate) struct CleanNames {
    slots: Vec<String>,
}

impl Default for CleanNames {
    fn default() -> Self {
        Self { slots: vec![String::new(); Self::SLOTS] }
    }
}

impl CleanNames {
    /// More than the names of a busy hour.
    const SLOTS: usize = 1024;

    /// True for a name that is known to hold no secret.
    #[inline]
    pub(crate) fn knows(&self, name: &str) -> bool {
        !name.is_empty() && self.slots[slot(name)] == name
    }

    /// Call it for a name that redaction left as it was.
    pub(crate) fn remember(&mut self, name: &str) {
        let slot = &mut self.slots[slot(name)];
        slot.clear();
        slot.push_str(name);
    }
}

/// Where a name belongs: any spread will do, so its ends are enough.
#[inline]
#[allow(clippy::cast_possible_truncation)]
fn slot(name: &str) -> usize {
    let bytes = name.as_bytes();
    let (first, last) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => bytes.iter().fold((0, 0), |(number, _), &byte| (number << 8 | u64::from(byte), 0)),
    };
    let mixed = (first ^ last.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as usize % CleanNames::SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_once_it_was_seen_and_no_other_is() {
        let mut names = CleanNames::default();
        let all: Vec<String> = (0..40).map(|length| "abcdefghij".repeat(4)[..length].to_owned()).collect();
        for name in all.iter().skip(1) {
            assert!(!names.knows(name), "{name}");
            names.remember(name);
            assert!(names.knows(name), "{name}");
        }
        assert!(!names.knows("abcdefgh_abcdefghij"), "its ends are those of a known name");
    }
}
