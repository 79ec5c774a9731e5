//! Tracks which groups of errors are new.
//!
//! Invariants: memory is bounded, so a group that was not seen for very long can be new again; and no group is called
//! new before the groups of the store are loaded, so that a restart does not report known groups as new.

use std::collections::{HashMap, HashSet};

/// The number of groups in each generation: the older one is dropped when the younger one is full.
const GENERATION_CAPACITY: usize = 1 << 17;
/// The number of groups that are kept pending while the store is read.
const MAX_PENDING: usize = 1 << 14;

type Set = HashSet<u64, foldhash::fast::RandomState>;

/// The groups that were seen.
#[derive(Debug)]
pub(super) struct GroupTracker {
    young: Set,
    old: Set,
    /// Groups that came while the store was being read, with their service; `None` after that.
    pending: Option<HashMap<u64, Box<str>>>,
}

impl GroupTracker {
    /// Creates a tracker that knows no groups, and calls none new until [`Self::finish_warmup`].
    pub(super) fn new() -> Self {
        Self { young: Set::default(), old: Set::default(), pending: Some(HashMap::new()) }
    }

    /// Adds a group. Returns true if it was not known.
    pub(super) fn insert(&mut self, group: u64) -> bool {
        if self.young.contains(&group) {
            return false;
        }
        if self.young.len() >= GENERATION_CAPACITY {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(group);
        !self.old.contains(&group)
    }

    /// Adds a group. Returns true if it is certainly new; while the store is read, the group is kept pending.
    pub(super) fn is_new(&mut self, group: u64, service: &str) -> bool {
        match &mut self.pending {
            Some(pending) if pending.len() < MAX_PENDING && !self.young.contains(&group) => {
                pending.insert(group, service.into());
                false
            }
            Some(_) => false,
            None => self.insert(group),
        }
    }

    /// Ends the warmup after the store was read, and returns the services of the pending groups that are new.
    pub(super) fn finish_warmup(&mut self) -> Vec<Box<str>> {
        let pending = self.pending.take().unwrap_or_default();
        let new = pending.into_iter().filter(|(group, _)| self.insert(*group));
        new.map(|(_, service)| service).collect()
    }

    /// Ends the warmup after the store could not be read: pending groups count as known, since many false reports of
    /// new groups are worse than none.
    pub(super) fn abandon_warmup(&mut self) {
        drop(self.finish_warmup());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_new_before_the_store_is_known() {
        let mut groups = GroupTracker::new();
        assert!(!groups.is_new(1, "orders"));
        assert!(!groups.is_new(2, "stock"));
        groups.insert(1);
        assert_eq!(groups.finish_warmup(), ["stock".into()]);
        assert!(!groups.is_new(2, "stock"));
        assert!(groups.is_new(3, "stock"));
        assert!(!groups.is_new(3, "stock"));
    }

    #[test]
    fn memory_is_bounded() {
        let mut groups = GroupTracker::new();
        groups.abandon_warmup();
        for group in 0..3 * GENERATION_CAPACITY as u64 {
            assert!(groups.is_new(group, ""));
        }
        assert!(groups.young.len() + groups.old.len() <= 2 * GENERATION_CAPACITY);
        assert!(!groups.is_new(3 * GENERATION_CAPACITY as u64 - 1, ""));
    }
}
