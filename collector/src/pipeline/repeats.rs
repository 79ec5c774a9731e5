//! What was sent before: spans and log records that come again within a window are stored once.
//!
//! OTLP senders repeat what they got no answer for, and report one failure twice: as a span and as a log
//! record. Identities are remembered for at least the window, and in a bounded number.
//!
//! Every span is looked for, and the memory is far larger than a CPU's cache: what costs is to fetch it. So
//! an identity has its place in one bucket, which is one line of the cache, and its age stands with it.
//!
//! What always holds: an identity that was remembered for a batch that then could not be stored is forgotten
//! again ([`Repeats::forget`]), so that the sender's retry is not taken for a repeat. And an identity that is
//! known was remembered: with 56 bits kept of it beside its place, no two meet by chance.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Workers rarely meet in one of sixteen.
const SHARDS: usize = 16;
/// Identities in a bucket.
const WAYS: usize = 8;
/// Places for each identity that may be held: with two, a bucket overflows once in some hundred times when
/// both generations are full, and then loses one of the older.
const SPARE: usize = 2;
/// The bits of a slot that say its generation; the others are of the identity.
const GENERATION: u64 = 0xff;

/// The identities of the last while.
pub(super) struct Repeats {
    window_us: i64,
    /// How many identities a generation of a shard holds.
    capacity: usize,
    shards: [Mutex<Shard>; SHARDS],
}

/// Two generations are known: when the younger is old enough or full, it becomes the older.
struct Shard {
    began: i64,
    /// The younger one: 1 to 255, then 1 again. What is so old that its number comes again is no harm:
    /// it was remembered once.
    generation: u64,
    /// How many identities it holds.
    young: usize,
    /// Nothing until the first identity comes: who sends no OTLP pays nothing.
    buckets: Vec<Bucket>,
}

/// Slots, 0 when empty.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket([u64; WAYS]);

impl Repeats {
    /// Remembers for at least a window, and at most `capacity` identities in each half of the memory.
    pub(super) fn new(window: Duration, capacity: usize) -> Self {
        let empty = || Shard { began: 0, generation: 1, young: 0, buckets: Vec::new() };
        Self {
            window_us: i64::try_from(window.as_micros()).unwrap_or(i64::MAX),
            capacity: capacity.div_ceil(SHARDS),
            shards: std::array::from_fn(|_| Mutex::new(empty())),
        }
    }

    /// True when the identity is known.
    pub(super) fn knows(&self, identity: u128) -> bool {
        let mut shard = self.shard(identity);
        shard.find(identity).is_some()
    }

    /// Remembers an identity; true when it is new.
    pub(super) fn remember(&self, identity: u128, now: i64) -> bool {
        let mut shard = self.shard(identity);
        if now - shard.began > self.window_us || shard.young >= self.capacity {
            shard.age(now);
        }
        if shard.buckets.is_empty() {
            let buckets = (2 * SPARE * self.capacity).div_ceil(WAYS).next_power_of_two();
            shard.buckets = vec![Bucket::default(); buckets];
        }
        shard.insert(identity)
    }

    /// Forgets identities whose batch could not be stored.
    pub(super) fn forget(&self, identities: &[u128]) {
        for identity in identities {
            self.shard(*identity).forget(*identity);
        }
    }

    fn shard(&self, identity: u128) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[(identity % SHARDS as u128) as usize];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    /// The younger generation becomes the older, and the older is forgotten.
    fn age(&mut self, now: i64) {
        (self.began, self.young) = (now, 0);
        self.generation = self.generation % GENERATION + 1;
    }

    fn is_live(&self, slot: u64) -> bool {
        let older = if self.generation == 1 { GENERATION } else { self.generation - 1 };
        let generation = slot & GENERATION;
        generation == self.generation || generation == older
    }

    fn bucket(&mut self, identity: u128) -> Option<&mut Bucket> {
        let place = (identity / SHARDS as u128) as usize & self.buckets.len().wrapping_sub(1);
        self.buckets.get_mut(place)
    }

    /// The place of a known identity in its bucket.
    fn find(&mut self, identity: u128) -> Option<usize> {
        let mark = mark_of(identity);
        let Bucket(slots) = *self.bucket(identity)?;
        slots.iter().position(|&slot| slot & !GENERATION == mark && self.is_live(slot))
    }

    fn insert(&mut self, identity: u128) -> bool {
        let Some(&mut Bucket(slots)) = self.bucket(identity) else { return true };
        if self.find(identity).is_some() {
            return false;
        }
        let generation = self.generation;
        let free = slots.iter().position(|&slot| !self.is_live(slot));
        let old = || slots.iter().position(|&slot| slot & GENERATION != generation);
        let place = free.or_else(old).unwrap_or(0);
        self.young += 1;
        if let Some(Bucket(slots)) = self.bucket(identity) {
            slots[place] = mark_of(identity) | generation;
        }
        true
    }

    fn forget(&mut self, identity: u128) {
        let Some(place) = self.find(identity) else { return };
        let generation = self.generation;
        let Some(Bucket(slots)) = self.bucket(identity) else { return };
        let slot = std::mem::take(&mut slots[place]);
        self.young -= usize::from(slot & GENERATION == generation && self.young > 0);
    }
}

/// What is kept of an identity. Its lowest bits say where.
fn mark_of(identity: u128) -> u64 {
    let (high, low) = ((identity >> 64) as u64, identity as u64);
    (high ^ low.wrapping_mul(0x9E37_79B9_7F4A_7C15)) & !GENERATION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_for_the_window_and_not_for_ever() {
        let repeats = Repeats::new(Duration::from_secs(120), 1000);
        assert!(repeats.remember(16, 0));
        assert!(!repeats.remember(16, 119_000_000));
        assert!(repeats.knows(16) && !repeats.knows(17));
        assert!(repeats.remember(32, 121_000_000), "another of the same shard, in a new generation");
        assert!(!repeats.remember(16, 121_000_000));
        assert!(repeats.remember(48, 250_000_000));
        assert!(repeats.remember(16, 250_000_000), "two generations later");
    }

    #[test]
    fn a_batch_that_failed_leaves_no_trace() {
        let repeats = Repeats::new(Duration::from_secs(120), 1000);
        assert!(repeats.remember(5, 0));
        repeats.forget(&[5, 6]);
        assert!(repeats.remember(5, 1));
    }

    #[test]
    fn the_number_is_bounded() {
        let repeats = Repeats::new(Duration::from_secs(120), 160);
        for identity in 0..100_000 {
            repeats.remember(identity, 0);
        }
        let held: usize = repeats
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap())
            .map(|shard| {
                shard.buckets.iter().flat_map(|bucket| bucket.0).filter(|&slot| shard.is_live(slot)).count()
            })
            .sum();
        assert!(held <= 2 * 160, "{held}");
        assert!(repeats.knows(99_999));
    }

    #[test]
    fn what_is_forgotten_long_ago_does_not_come_back() {
        let repeats = Repeats::new(Duration::from_secs(1), 1000);
        let mut now = 0;
        for identity in 0..300_u128 {
            now += 1_100_000;
            assert!(repeats.remember(identity * 16, now), "{identity}");
            assert!(!repeats.remember(identity * 16, now), "{identity}");
            assert!(identity < 2 || !repeats.knows(identity * 16 - 32), "{identity}");
        }
    }

    #[test]
    fn hardly_any_is_lost_at_the_bound() {
        let repeats = Repeats::new(Duration::from_secs(120), 160_000);
        let identity = |number: u64| xxhash_rust::xxh3::xxh3_128(&number.to_le_bytes());
        let new = (0..150_000).filter(|number| repeats.remember(identity(*number), 0)).count();
        let known = (0..150_000).filter(|number| repeats.knows(identity(*number))).count();
        assert_eq!(new, 150_000, "none is taken for another");
        assert!(known > 149_900, "{known}");
    }
}
