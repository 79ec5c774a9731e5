//! A hash of everything before an offset in a file, built so that hashing can continue after a restart.
//!
//! The content is hashed in blocks, and each block is hashed together with the hash of all blocks before it. Given the
//! start of the last block and the hash before it, only that block has to be read to check that a file still has the
//! content that was read from it. At every power of two the hash is kept as a *checkpoint*: checkpoints identify a copy
//! that ends before the offset.
//!
//! Invariant: the same bytes give the same hash, however they were split when they arrived. The last block is empty
//! only if the content is.

use crate::ContentHash;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::Xxh3;

/// The size of a block, and therefore the most that has to be read again to continue.
pub(super) const BLOCK: u64 = 64 << 10;
/// The first checkpoint is at 2 to the power of this.
const FIRST_CHECKPOINT_POWER: u32 = 6;

/// The hashes at powers of two, by the power.
pub(super) type Checkpoints = BTreeMap<u32, ContentHash>;

/// The state of a [`RollingHash`] at an offset: all that is needed to continue from there.
///
/// The names in the serialized form are part of `files.json` and of WAL records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct HashState {
    /// The number of bytes that were hashed.
    #[serde(rename = "position")]
    pub(super) offset: u64,
    /// The hash of those bytes.
    pub(super) hash: ContentHash,
    /// The offset at which the last block begins.
    #[serde(rename = "block")]
    pub(super) block_start: u64,
    /// The hash of everything before the last block.
    #[serde(rename = "before")]
    pub(super) hash_before_block: ContentHash,
}

/// A hash that is being computed.
#[derive(Clone)]
pub(super) struct RollingHash {
    offset: u64,
    block_start: u64,
    hash_before_block: ContentHash,
    block_hasher: Xxh3,
    checkpoints: Checkpoints,
}

impl RollingHash {
    /// Creates the hash of no bytes.
    pub(super) fn new() -> Self {
        Self::at_last_block(&HashState::default(), Checkpoints::new())
    }

    /// Restores the hash at the beginning of the last block of `state`; the caller adds the bytes of that block.
    pub(super) fn at_last_block(state: &HashState, checkpoints: Checkpoints) -> Self {
        let HashState { block_start, hash_before_block, .. } = *state;
        let checkpoints = checkpoints
            .into_iter()
            .filter(|(power, _)| 1_u64.checked_shl(*power).is_some_and(|offset| offset <= block_start))
            .collect();
        let block_hasher = seeded(hash_before_block);
        Self { offset: block_start, block_start, hash_before_block, block_hasher, checkpoints }
    }

    /// Adds the bytes that come next.
    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.offset - self.block_start == BLOCK {
                self.hash_before_block = self.digest();
                self.block_start = self.offset;
                self.block_hasher = seeded(self.hash_before_block);
            }
            let length = self.next_checkpoint().min(self.block_start + BLOCK) - self.offset;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let (current, rest) = bytes.split_at(bytes.len().min(length));
            self.block_hasher.update(current);
            self.offset += current.len() as u64;
            bytes = rest;
            if self.offset.is_power_of_two() && self.offset.trailing_zeros() >= FIRST_CHECKPOINT_POWER {
                self.checkpoints.insert(self.offset.trailing_zeros(), self.digest());
            }
        }
    }

    /// Returns the offset of the next checkpoint.
    pub(super) fn next_checkpoint(&self) -> u64 {
        (self.offset + 1).next_power_of_two().max(1 << FIRST_CHECKPOINT_POWER)
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn digest(&self) -> ContentHash {
        ContentHash(self.block_hasher.digest128())
    }

    pub(super) fn state(&self) -> HashState {
        HashState {
            offset: self.offset,
            hash: self.digest(),
            block_start: self.block_start,
            hash_before_block: self.hash_before_block,
        }
    }

    pub(super) fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }
}

/// Returns a hasher for a block that follows content with this hash.
fn seeded(hash_before_block: ContentHash) -> Xxh3 {
    let mut hasher = Xxh3::new();
    hasher.update(&hash_before_block.0.to_le_bytes());
    hasher
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|index| (index * 31 % 251) as u8).collect()
    }

    #[test]
    fn the_hash_does_not_depend_on_how_the_bytes_are_split() {
        let bytes = content(300_000);
        let mut whole = RollingHash::new();
        whole.add(&bytes);
        for step in [1, 7, 65_536, 100_000] {
            let mut stepwise = RollingHash::new();
            bytes.chunks(step).for_each(|piece| stepwise.add(piece));
            assert_eq!(
                (stepwise.state(), stepwise.checkpoints()),
                (whole.state(), whole.checkpoints()),
                "{step}"
            );
        }
        assert_eq!(whole.checkpoints().keys().copied().collect::<Vec<_>>(), (6..=18).collect::<Vec<_>>());
    }

    #[test]
    fn hashing_continues_from_the_last_block() {
        let bytes = content(200_000);
        for offset in [1_usize, 64, 65_535, 65_536, 65_537, 131_072, 199_999] {
            let mut before = RollingHash::new();
            before.add(&bytes[..offset]);
            let state = before.state();
            assert!(state.block_start < state.offset, "the last block is not empty");
            let mut after = RollingHash::at_last_block(&state, before.checkpoints().clone());
            after.add(&bytes[usize::try_from(state.block_start).unwrap()..offset]);
            assert_eq!(after.state(), state);
            before.add(&bytes[offset..]);
            after.add(&bytes[offset..]);
            assert_eq!((after.state(), after.checkpoints()), (before.state(), before.checkpoints()));
        }
    }
}
