//! How far texts were read, as the log and the tables tell after a restart.
//!
//! What always holds: of every text the furthest position is kept, in whatever order they come; their number is bounded.

use super::Position;
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_128;

/// More texts than this are not remembered.
const TEXTS: usize = 100_000;

/// The furthest position of every text.
#[derive(Debug, Default)]
pub(super) struct Positions(HashMap<u64, Position>);

impl Positions {
    pub(super) fn extend(&mut self, positions: impl IntoIterator<Item = Position>) {
        for position in positions {
            let known = self.0.get(&position.text).map(|known| known.offset);
            let has_room = known.is_some() || self.0.len() < TEXTS;
            if has_room && known.is_none_or(|offset| offset < position.offset) {
                self.0.insert(position.text, position);
            }
        }
    }

    pub(super) fn into_newest(self) -> Vec<Position> {
        self.0.into_values().collect()
    }
}

/// What the row of a position is known by: every one has its own.
pub(super) fn key_of(position: &Position) -> u128 {
    xxh3_128([position.text.to_le_bytes(), position.offset.to_le_bytes()].as_flattened())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_furthest_is_kept_in_whatever_order_they_come() {
        let at = |text, offset| Position { text, offset, note: serde_json::Value::Null };
        let mut positions = Positions::default();
        positions.extend([at(1, 10), at(2, 5), at(1, 30), at(1, 20)]);
        let mut newest = positions.into_newest();
        newest.sort_by_key(|position| position.text);
        assert_eq!(newest, [at(1, 30), at(2, 5)]);
    }
}
