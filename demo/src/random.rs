//! The random number generator `SplitMix64` (Steele, Lea and Flood, 2014): a counter followed by a good hash.
//!
//! It is small, it has no weak seeds, and it uses integers only, so every machine draws the same numbers. [`mix`] alone
//! yields values that stay the same for a whole flow without any state.

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes a number: every bit of the number affects all bits of the result.
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A row of a table with a weight, which determines how often it is drawn compared with the other rows.
pub(crate) trait Weighted {
    fn weight(&self) -> u32;
}

/// The random number generator.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        mix(self.0)
    }

    /// Returns a number in `0..end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns a random row of a table, which must not be empty.
    pub(crate) fn pick<T: Copy>(&mut self, rows: &[T]) -> T {
        rows[self.below(rows.len() as u64) as usize]
    }

    /// Returns a random row of a table by weight. The table must not be empty.
    pub(crate) fn pick_weighted<T: Weighted>(&mut self, rows: &'static [T]) -> &'static T {
        let total = rows.iter().map(|row| u64::from(row.weight())).sum();
        let mut remaining = self.below(total);
        for row in rows {
            match remaining.checked_sub(u64::from(row.weight())) {
                Some(rest) => remaining = rest,
                None => return row,
            }
        }
        &rows[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(u32);

    impl Weighted for Row {
        fn weight(&self) -> u32 {
            self.0
        }
    }

    #[test]
    fn the_published_sequence_is_drawn() {
        let mut random = Random::new(1_234_567);
        let drawn = [random.next_u64(), random.next_u64(), random.next_u64()];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn weights_decide_how_often_a_row_is_drawn() {
        static ROWS: [Row; 3] = [Row(1), Row(0), Row(9)];
        let mut random = Random::new(3);
        let heavy = (0..10_000).filter(|_| random.pick_weighted(&ROWS).0 == 9).count();
        assert!((8_800..9_200).contains(&heavy), "{heavy}");
    }
}
