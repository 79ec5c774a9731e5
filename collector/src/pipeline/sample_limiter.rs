//! A rate limiter for samples of unusable records: at most a fixed number per minute, for all senders together.

use std::sync::atomic::{AtomicU64, Ordering};

const MINUTE_US: i64 = 60_000_000;
/// The bits of the state that hold the count; the bits above hold the minute.
const COUNT_BITS: u32 = 32;

/// Counts the samples of the current minute.
#[derive(Debug)]
pub(super) struct SampleLimiter {
    per_minute: u64,
    state: AtomicU64,
}

impl SampleLimiter {
    pub(super) fn new(per_minute: usize) -> Self {
        Self { per_minute: per_minute as u64, state: AtomicU64::new(0) }
    }

    /// Counts one sample. Returns false if the limit of the minute is reached.
    pub(super) fn try_acquire(&self, now: i64) -> bool {
        let minute = now.div_euclid(MINUTE_US).unsigned_abs() & u64::from(u32::MAX);
        let next = |state: u64| {
            let taken = if state >> COUNT_BITS == minute { state & u64::from(u32::MAX) } else { 0 };
            (taken < self.per_minute).then_some(minute << COUNT_BITS | (taken + 1))
        };
        self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_minute_has_its_own() {
        let limiter = SampleLimiter::new(2);
        let acquire = |now| limiter.try_acquire(now);
        assert_eq!([acquire(0), acquire(1), acquire(2)], [true, true, false]);
        assert_eq!([acquire(60_000_000), acquire(60_000_001), acquire(60_000_002)], [true, true, false]);
    }
}
