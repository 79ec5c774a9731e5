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
pub(super) struct Epochs {
    unsettled: Mutex<BTreeMap<u64, usize>>,
}

/// One batch on its way; dropped when it is settled.
#[derive(Debug)]
pub(super) struct Ticket {
    epochs: Arc<Epochs>,
    /// The log's epoch when the batch began.
    pub(super) epoch: u64,
    /// A batch of an older epoch was not settled then.
    pub(super) is_doubtful: bool,
}

impl Epochs {
    /// Begins a batch. The epoch is read under the lock, so that none can begin under an older one afterwards.
    pub(super) fn begin(self: &Arc<Self>, epoch: impl FnOnce() -> u64) -> Ticket {
        let mut unsettled = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner);
        let epoch = epoch();
        let is_doubtful = unsettled.keys().next().is_some_and(|oldest| *oldest < epoch);
        *unsettled.entry(epoch).or_default() += 1;
        Ticket { epochs: Arc::clone(self), epoch, is_doubtful }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut unsettled = self.epochs.unsettled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = unsettled.get_mut(&self.epoch) {
            *count -= 1;
            if *count == 0 {
                unsettled.remove(&self.epoch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubtful_while_an_older_one_is_on_its_way() {
        let epochs = Arc::new(Epochs::default());
        let old = epochs.begin(|| 0);
        let same = epochs.begin(|| 0);
        assert!(!old.is_doubtful && !same.is_doubtful);
        drop(same);
        assert!(epochs.begin(|| 1).is_doubtful);
        drop(old);
        assert!(!epochs.begin(|| 1).is_doubtful);
        assert!(epochs.unsettled.lock().unwrap().is_empty());
    }
}
