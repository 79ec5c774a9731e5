//! A set of sequences, stored as few ranges.

/// Ranges of sequences, with both ends included. They are sorted and not adjacent, and there are never more than there
/// are segments, because adjacent sequences are merged into one range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SequenceRanges(Vec<(u64, u64)>);

impl SequenceRanges {
    pub(super) fn add(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        // Ranges that touch the new one become part of it.
        let from = self.0.partition_point(|range| range.1.saturating_add(1) < first);
        let to = self.0.partition_point(|range| range.0 <= last.saturating_add(1));
        let touched = self.0.get(from..to).unwrap_or_default();
        let first = touched.first().map_or(first, |range| range.0.min(first));
        let last = touched.last().map_or(last, |range| range.1.max(last));
        self.0.splice(from..to.max(from), [(first, last)]);
    }

    pub(super) fn contains(&self, sequence: u64) -> bool {
        self.overlap(sequence, sequence) > 0
    }

    /// Returns the number of sequences from `first` to `last` that are in the set.
    pub(super) fn overlap(&self, first: u64, last: u64) -> u64 {
        if first > last {
            return 0;
        }
        let from = self.0.partition_point(|range| range.1 < first);
        let touched = self.0[from..].iter().take_while(|range| range.0 <= last);
        touched.map(|range| range.1.min(last) - range.0.max(first) + 1).sum()
    }

    /// Removes the ranges that are entirely below `floor`.
    pub(super) fn forget_below(&mut self, floor: u64) {
        self.0.retain(|range| range.1 >= floor);
    }

    pub(super) fn as_slice(&self) -> &[(u64, u64)] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_same_as_a_set(adds in prop::collection::vec((0_u64..60, 0_u64..6), 0..30), floor in 0_u64..70) {
            let (mut ranges, mut set) = (SequenceRanges::default(), BTreeSet::new());
            for (first, length) in adds {
                ranges.add(first, first + length);
                set.extend(first..=first + length);
            }
            for sequence in 0..70 {
                prop_assert_eq!(ranges.contains(sequence), set.contains(&sequence));
                prop_assert_eq!(ranges.overlap(floor, sequence), set.iter().filter(|s| (floor..=sequence).contains(s)).count() as u64);
            }
            prop_assert!(ranges.as_slice().windows(2).all(|two| two[0].1 + 1 < two[1].0));
            ranges.forget_below(floor);
            prop_assert!((floor..70).all(|sequence| ranges.contains(sequence) == set.contains(&sequence)));
        }
    }
}
