//! Which groups of errors are new.
//!
//! What always holds: memory is bounded, so a group that was not seen for very long can be new again; and nothing is
//! called new before the groups of the store are known, so that a restart is not a flood of news.

use std::collections::{HashMap, HashSet};

/// Groups in each half of the memory: the older half goes when the younger one is full.
const HALF: usize = 1 << 17;
/// Groups that wait to be judged while the store is read.
const WAITING: usize = 1 << 14;

type Set = HashSet<u64, foldhash::fast::RandomState>;

/// The groups that were seen.
#[derive(Debug)]
pub(super) struct Groups {
    young: Set,
    old: Set,
    /// Groups that came while the store was being read, with their service.
    waiting: Option<HashMap<u64, Box<str>>>,
}

impl Groups {
    /// Nothing is known yet, and nothing new until [`Self::judge`].
    pub(super) fn new() -> Self {
        Self { young: Set::default(), old: Set::default(), waiting: Some(HashMap::new()) }
    }

    /// Remembers a group; true when it was not known.
    pub(super) fn remember(&mut self, group: u64) -> bool {
        if self.young.contains(&group) {
            return false;
        }
        if self.young.len() >= HALF {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(group);
        !self.old.contains(&group)
    }

    /// True when a group is new for sure.
    pub(super) fn is_new(&mut self, group: u64, service: &str) -> bool {
        match &mut self.waiting {
            Some(waiting) if waiting.len() < WAITING && !self.young.contains(&group) => {
                waiting.insert(group, service.into());
                false
            }
            Some(_) => false,
            None => self.remember(group),
        }
    }

    /// The store has been read: which of those that waited are new, by their services.
    pub(super) fn judge(&mut self) -> Vec<Box<str>> {
        let waiting = self.waiting.take().unwrap_or_default();
        let new = waiting.into_iter().filter(|(group, _)| self.remember(*group));
        new.map(|(_, service)| service).collect()
    }

    /// The store cannot be read: what waited counts as known, since a flood of false news helps nobody.
    pub(super) fn give_up(&mut self) {
        drop(self.judge());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_new_before_the_store_is_known() {
        let mut groups = Groups::new();
        assert!(!groups.is_new(1, "orders"));
        assert!(!groups.is_new(2, "stock"));
        groups.remember(1);
        assert_eq!(groups.judge(), ["stock".into()]);
        assert!(!groups.is_new(2, "stock"));
        assert!(groups.is_new(3, "stock"));
        assert!(!groups.is_new(3, "stock"));
    }

    #[test]
    fn memory_is_bounded() {
        let mut groups = Groups::new();
        groups.give_up();
        for group in 0..3 * HALF as u64 {
            assert!(groups.is_new(group, ""));
        }
        assert!(groups.young.len() + groups.old.len() <= 2 * HALF);
        assert!(!groups.is_new(3 * HALF as u64 - 1, ""));
    }
}
