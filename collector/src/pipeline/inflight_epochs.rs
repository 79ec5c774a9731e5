//! In-flight batches, by the WAL epoch in which they began.
//!
//! A request that duplicates another one depends on it: if the other one fails, the duplicate must not be
//! acknowledged. The WAL ensures that for batches of one epoch: when one fails, everything else that began in the
//! same epoch is rejected. It cannot see a batch that began in an older epoch and has not been submitted yet: that
//! one will be rejected, but until then its identities are found. So a batch that begins beside such a batch is
//! *doubtful*, and is rejected if it depends on anything.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of batches in each epoch that are neither durable nor rejected yet.
#[derive(Debug, Default)]
pub(super) struct InflightEpochs {
    in_flight: Mutex<BTreeMap<u64, usize>>,
}

/// The registration of one in-flight batch; dropped when the batch is durable or rejected.
#[derive(Debug)]
pub(super) struct EpochGuard {
    epochs: Arc<InflightEpochs>,
    /// The epoch of the WAL when the batch began.
    pub(super) epoch: u64,
    /// True if a batch of an older epoch was in flight at that time.
    pub(super) overlaps_older_epoch: bool,
}

impl InflightEpochs {
    /// Begins a batch. The epoch is read under the lock, so that no batch can begin in an older epoch afterwards.
    pub(super) fn begin(self: &Arc<Self>, epoch: impl FnOnce() -> u64) -> EpochGuard {
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        let epoch = epoch();
        let overlaps_older_epoch = in_flight.keys().next().is_some_and(|oldest| *oldest < epoch);
        *in_flight.entry(epoch).or_default() += 1;
        EpochGuard { epochs: Arc::clone(self), epoch, overlaps_older_epoch }
    }
}

impl Drop for EpochGuard {
    fn drop(&mut self) {
        let mut in_flight = self.epochs.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = in_flight.get_mut(&self.epoch) {
            *count -= 1;
            if *count == 0 {
                in_flight.remove(&self.epoch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubtful_while_an_older_one_is_on_its_way() {
        let epochs = Arc::new(InflightEpochs::default());
        let old = epochs.begin(|| 0);
        let same = epochs.begin(|| 0);
        assert!(!old.overlaps_older_epoch && !same.overlaps_older_epoch);
        drop(same);
        assert!(epochs.begin(|| 1).overlaps_older_epoch);
        drop(old);
        assert!(!epochs.begin(|| 1).overlaps_older_epoch);
        assert!(epochs.in_flight.lock().unwrap().is_empty());
    }
}
