//! Dedup of spans and log records: those that come again within a window are stored once.
//!
//! OTLP senders resend what was not acknowledged, and report one failure twice: as a span and as a log record.
//! Identities are remembered for at least the window, and in a bounded number.
//!
//! Invariant: an identity of a batch that could not be stored is forgotten again ([`DedupWindow::remove_all`]), so
//! that the sender's retry is not taken for a duplicate.

use hashbrown::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The number of shards; with sixteen, workers rarely contend for one.
const SHARDS: usize = 16;

/// A set of identities. They are hashes already, so a fast hasher is enough.
type Identities = HashSet<u128, foldhash::fast::RandomState>;

/// The identities that were seen recently.
pub(super) struct DedupWindow {
    window_us: i64,
    /// The number of identities that a generation of a shard holds.
    capacity: usize,
    shards: [Mutex<Generations>; SHARDS],
}

/// Two generations of identities: when the younger is old enough or full, the older is dropped.
#[derive(Default)]
struct Generations {
    started_at: i64,
    young: Identities,
    old: Identities,
}

impl Generations {
    /// Drops the older generation, and begins a new one in its memory, unless it hardly used that.
    fn turn(&mut self, now: i64) {
        self.started_at = now;
        std::mem::swap(&mut self.old, &mut self.young);
        if self.young.len() < self.young.capacity() / 4 {
            self.young = Identities::default();
        } else {
            self.young.clear();
        }
    }
}

impl DedupWindow {
    /// Creates a window that remembers identities for at least `window`, and at most `capacity` in each generation.
    pub(super) fn new(window: Duration, capacity: usize) -> Self {
        Self {
            window_us: i64::try_from(window.as_micros()).unwrap_or(i64::MAX),
            capacity: capacity.div_ceil(SHARDS),
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// Reports whether the identity is known.
    pub(super) fn contains(&self, identity: u128) -> bool {
        let shard = self.shard(identity).lock().unwrap_or_else(PoisonError::into_inner);
        shard.young.contains(&identity) || shard.old.contains(&identity)
    }

    /// Remembers an identity. Returns true if it is new.
    pub(super) fn insert(&self, identity: u128, now: i64) -> bool {
        let mut shard = self.shard(identity).lock().unwrap_or_else(PoisonError::into_inner);
        if now - shard.started_at > self.window_us || shard.young.len() >= self.capacity {
            shard.turn(now);
        }
        !shard.old.contains(&identity) && shard.young.insert(identity)
    }

    /// Forgets identities whose batch could not be stored.
    pub(super) fn remove_all(&self, identities: &[u128]) {
        for identity in identities {
            let mut shard = self.shard(*identity).lock().unwrap_or_else(PoisonError::into_inner);
            shard.young.remove(identity);
            shard.old.remove(identity);
        }
    }

    /// Forgets identities of calls whose batch could not be stored.
    pub(super) fn remove_calls(&self, identities: &[u64]) {
        identities.iter().for_each(|identity| self.remove_all(&[u128::from(*identity)]));
    }

    fn shard(&self, identity: u128) -> &Mutex<Generations> {
        &self.shards[(identity % SHARDS as u128) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_for_the_window_and_not_for_ever() {
        let window = DedupWindow::new(Duration::from_secs(120), 1000);
        assert!(window.insert(16, 0));
        assert!(!window.insert(16, 119_000_000));
        assert!(window.contains(16) && !window.contains(17));
        assert!(window.insert(32, 121_000_000), "another of the same shard, in a new generation");
        assert!(!window.insert(16, 121_000_000));
        assert!(window.insert(48, 250_000_000));
        assert!(window.insert(16, 250_000_000), "two generations later");
    }

    #[test]
    fn a_batch_that_failed_leaves_no_trace() {
        let window = DedupWindow::new(Duration::from_secs(120), 1000);
        assert!(window.insert(5, 0));
        window.remove_all(&[5, 6]);
        assert!(window.insert(5, 1));
    }

    #[test]
    fn the_number_is_bounded() {
        let window = DedupWindow::new(Duration::from_secs(120), 160);
        for identity in 0..100_000 {
            window.insert(identity, 0);
        }
        let entries: usize = window
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap())
            .map(|shard| shard.young.len() + shard.old.len())
            .sum();
        assert!(entries <= 2 * 160, "{entries}");
        assert!(window.contains(99_999));
    }
}
