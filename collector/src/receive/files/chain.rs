//! The hash of everything before a place in a text, made so that a restart can go on from it.
//!
//! A text is hashed in blocks, each together with the hash of all blocks before it. So whoever knows where the last block
//! began, and its hash, needs to read no more than that block to know whether a file still holds what was read from it.
//! At every power of two the hash is kept as a *mark*: a copy that ends before the place is known by those.
//!
//! What always holds: the same bytes give the same hash, however they were cut when they came. The last block is never
//! empty unless the text is.

use crate::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::Xxh3;

/// The most that has to be read again to go on.
pub(super) const BLOCK: u64 = 64 << 10;
/// The first mark is at 2 to the power of this.
const FIRST_MARK: u32 = 6;

/// The hashes at powers of two, by the power.
pub(super) type Marks = BTreeMap<u32, Digest>;

/// A place in a text, with what it takes to go on from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Place {
    /// The bytes before it.
    pub(super) position: u64,
    /// The hash of those.
    pub(super) hash: Digest,
    /// Where the last block begins.
    pub(super) block: u64,
    /// The hash of everything before that.
    pub(super) before: Digest,
}

/// A hash in the making.
#[derive(Clone)]
pub(super) struct Chain {
    position: u64,
    block: u64,
    before: Digest,
    hash: Xxh3,
    marks: Marks,
}

impl Chain {
    /// Of nothing.
    pub(super) fn new() -> Self {
        Self::at_block(&Place::default(), Marks::new())
    }

    /// At the beginning of the last block of a place: what the block holds is to be added.
    pub(super) fn at_block(place: &Place, marks: Marks) -> Self {
        let Place { block, before, .. } = *place;
        let marks =
            marks.into_iter().filter(|(power, _)| 1_u64.checked_shl(*power).is_some_and(|at| at <= block));
        Self { position: block, block, before, hash: seeded(before), marks: marks.collect() }
    }

    /// Adds what comes next.
    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.position - self.block == BLOCK {
                self.before = self.digest();
                self.block = self.position;
                self.hash = seeded(self.before);
            }
            let stop = self.next_mark().min(self.block + BLOCK) - self.position;
            let (now, later) = bytes.split_at(bytes.len().min(usize::try_from(stop).unwrap_or(usize::MAX)));
            self.hash.update(now);
            self.position += now.len() as u64;
            bytes = later;
            if self.position.is_power_of_two() && self.position.trailing_zeros() >= FIRST_MARK {
                self.marks.insert(self.position.trailing_zeros(), self.digest());
            }
        }
    }

    /// Where the next mark will be.
    pub(super) fn next_mark(&self) -> u64 {
        (self.position + 1).next_power_of_two().max(1 << FIRST_MARK)
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn digest(&self) -> Digest {
        Digest(self.hash.digest128())
    }

    pub(super) fn place(&self) -> Place {
        Place { position: self.position, hash: self.digest(), block: self.block, before: self.before }
    }

    pub(super) fn marks(&self) -> &Marks {
        &self.marks
    }
}

fn seeded(before: Digest) -> Xxh3 {
    let mut hash = Xxh3::new();
    hash.update(&before.0.to_le_bytes());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 31 % 251) as u8).collect()
    }

    #[test]
    fn it_is_the_same_however_the_bytes_come() {
        let bytes = text(300_000);
        let mut whole = Chain::new();
        whole.add(&bytes);
        for step in [1, 7, 65_536, 100_000] {
            let mut stepwise = Chain::new();
            bytes.chunks(step).for_each(|piece| stepwise.add(piece));
            assert_eq!((stepwise.place(), stepwise.marks()), (whole.place(), whole.marks()), "{step}");
        }
        assert_eq!(whole.marks().keys().copied().collect::<Vec<_>>(), (6..=18).collect::<Vec<_>>());
    }

    #[test]
    fn it_goes_on_from_the_last_block() {
        let bytes = text(200_000);
        for position in [1_usize, 64, 65_535, 65_536, 65_537, 131_072, 199_999] {
            let mut before = Chain::new();
            before.add(&bytes[..position]);
            let place = before.place();
            assert!(place.block < place.position, "the last block is not empty");
            let mut after = Chain::at_block(&place, before.marks().clone());
            after.add(&bytes[usize::try_from(place.block).unwrap()..position]);
            assert_eq!(after.place(), place);
            before.add(&bytes[position..]);
            after.add(&bytes[position..]);
            assert_eq!((after.place(), after.marks()), (before.place(), before.marks()));
        }
    }
}
