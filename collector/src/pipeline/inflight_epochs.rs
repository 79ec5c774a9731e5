//! Which batches are on their way, by the log's epoch that they began under.
//!
//! A request that repeats another leans on it: if that other one is then refused, the repeat must not be told
//! yes. The log sees to that for batches of one epoch: when one fails, everything else that began under the
//! same epoch is refused. What it cannot see is a batch that began under an older epoch and has not been handed
//! over yet: it will be refused, but until then its identities are found. So a batch that begins beside such a
//! one is *doubtful*, and refused if it leans on anything.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The batches that are not settled yet.
#[derive(Debug, Default)]
pub(super) struct InflightEpochs {
    in_flight: Mutex<BTreeMap<u64, usize>>,
}

/// One batch on its way; dropped when it is settled.
#[derive(Debug)]
pub(super) struct EpochGuard {
    epochs: Arc<InflightEpochs>,
    /// The log's epoch when the batch began.
    pub(super) epoch: u64,
    /// A batch of an older epoch was not settled then.
    pub(super) overlaps_older_epoch: bool,
}

impl InflightEpochs {
    /// Begins a batch. The epoch is read under the lock, so that none can begin under an older one afterwards.
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
