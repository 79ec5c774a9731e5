//! Read positions of texts, restored from the WAL and the tables after a restart.
//!
//! Invariants: of every text the furthest position is kept, in whatever order positions come; their number is
//! bounded.

use super::Position;
use std::collections::HashMap;

/// The largest number of texts whose positions are kept.
const MAX_TEXTS: usize = 100_000;

/// The furthest position of every text.
#[derive(Debug, Default)]
pub(super) struct LatestPositions(HashMap<u64, Position>);

impl LatestPositions {
    pub(super) fn extend(&mut self, positions: impl IntoIterator<Item = Position>) {
        for position in positions {
            let previous = self.0.get(&position.text).map(|previous| previous.offset);
            let has_room = previous.is_some() || self.0.len() < MAX_TEXTS;
            if has_room && previous.is_none_or(|offset| offset < position.offset) {
                self.0.insert(position.text, position);
            }
        }
    }

    pub(super) fn into_vec(self) -> Vec<Position> {
        self.0.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_furthest_is_kept_in_whatever_order_they_come() {
        let at = |text, offset| Position { text, offset, note: serde_json::Value::Null };
        let mut positions = LatestPositions::default();
        positions.extend([at(1, 10), at(2, 5), at(1, 30), at(1, 20)]);
        let mut latest = positions.into_vec();
        latest.sort_by_key(|position| position.text);
        assert_eq!(latest, [at(1, 30), at(2, 5)]);
    }
}
