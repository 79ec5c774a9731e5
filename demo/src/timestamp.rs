//! Formats times as RFC 3339 in UTC, from microseconds since 1970, in the proleptic Gregorian calendar.

use std::fmt;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A time with milliseconds: `2026-11-01T00:00:00.000Z`.
pub(crate) struct Rfc3339Millis(pub(crate) i64);

/// A time with seconds: `2026-11-01T00:00:00Z`.
pub(crate) struct Rfc3339Seconds(pub(crate) i64);

impl fmt::Display for Rfc3339Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.rem_euclid(MICROS_PER_SECOND) / 1_000;
        write_date_and_time(self.0, f)?;
        write!(f, ".{millis:03}Z")
    }
}

impl fmt::Display for Rfc3339Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_date_and_time(self.0, f)?;
        f.write_str("Z")
    }
}

fn write_date_and_time(micros: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let seconds = micros.div_euclid(MICROS_PER_SECOND);
    let (year, month, day) = date(seconds.div_euclid(SECONDS_PER_DAY));
    let second_of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (second_of_day / 3_600, second_of_day / 60 % 60, second_of_day % 60);
    write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Returns the date of a day counted from 1970-01-01. It uses Howard Hinnant's `civil_from_days`, in which the year
/// starts in March, so that the leap day is the last day of the year.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_are_formatted() {
        let check = |micros, expected: &str| assert_eq!(Rfc3339Millis(micros).to_string(), expected);
        check(0, "1970-01-01T00:00:00.000Z");
        check(crate::START_MICROS, "2026-11-01T00:00:00.000Z");
        check(1_709_210_096_789_999, "2024-02-29T12:34:56.789Z");
        check(-1, "1969-12-31T23:59:59.999Z");
        assert_eq!(Rfc3339Seconds(crate::START_MICROS + 61_500_000).to_string(), "2026-11-01T00:01:01Z");
    }
}
