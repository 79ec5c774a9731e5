//! The weekly rhythm of the load, in thousandths of the average.

const HOUR: i64 = 3_600_000_000;

/// The load at each hour of a day in UTC.
const HOURS: [u64; 24] = [
    380, 340, 310, 300, 320, 420, 620, 900, 1_250, 1_500, 1_620, 1_600, 1_420, 1_520, 1_640, 1_600, 1_480,
    1_300, 1_120, 980, 860, 740, 600, 480,
];

/// The load of a Saturday or Sunday, in thousandths of that of a working day.
const WEEKEND: u64 = 450;

/// Returns the load at a time, in thousandths of the average of a working day.
pub(super) fn activity(micros: i64) -> u64 {
    let hours = micros.div_euclid(HOUR);
    let (hour, into) = (hours.rem_euclid(24) as usize, (micros.rem_euclid(HOUR) / 1_000_000).unsigned_abs());
    // The load between two hours is interpolated linearly.
    let busy = (HOURS[hour] * (3_600 - into) + HOURS[(hour + 1) % 24] * into) / 3_600;
    // 1970-01-01 was a Thursday.
    let is_weekend = (hours.div_euclid(24) + 3).rem_euclid(7) >= 5;
    if is_weekend { busy * WEEKEND / 1_000 } else { busy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::START_MICROS;

    #[test]
    fn nights_and_weekends_are_quiet() {
        // 2026-11-01 is a Sunday.
        let at = |day: i64, hour: i64| activity(START_MICROS + (day * 24 + hour) * HOUR);
        assert!(at(1, 10) > 4 * at(1, 3));
        assert_eq!(at(0, 10), at(1, 10) * WEEKEND / 1_000);
        assert_eq!(HOURS.iter().sum::<u64>() / 24, 970);
    }
}
