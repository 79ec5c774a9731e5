//! Times in microseconds since 1970 UTC, parsed from RFC 3339, or from an epoch in seconds, milliseconds,
//! microseconds or nanoseconds, which are told apart by their size.

use crate::json::Json;

/// Returns the time that a value represents, if any.
pub(crate) fn read(value: Json<'_>) -> Option<i64> {
    match value.as_str() {
        Some(text) => parse(text.trim_ascii()),
        None => value.as_i64().and_then(epoch).or_else(|| value.as_f64().and_then(epoch_fraction)),
    }
}

/// Parses the time that a text represents, if any.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    rfc3339(text.as_bytes())
        .or_else(|| text.parse().ok().and_then(epoch))
        .or_else(|| text.parse().ok().and_then(epoch_fraction))
        .or_else(|| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond))
}

/// Converts an epoch number to microseconds. Its size determines the unit, without ambiguity from 1973 to
/// 5138.
fn epoch(number: i64) -> Option<i64> {
    match number.unsigned_abs() {
        0..100_000_000_000 => Some(number * 1_000_000),
        100_000_000_000..100_000_000_000_000 => Some(number * 1_000),
        100_000_000_000_000..100_000_000_000_000_000 => Some(number),
        _ => Some(number / 1_000),
    }
}

#[allow(clippy::cast_possible_truncation)]
fn epoch_fraction(number: f64) -> Option<i64> {
    match number.abs() {
        size if size < 1e11 => Some((number * 1e6).round() as i64),
        size if size < 1e14 => Some((number * 1e3).round() as i64),
        _ => None,
    }
}

/// Parses `2026-11-16T10:20:30[.fraction](Z|+01:00)`. Nearly every record uses this form, so it has a fast
/// path; `jiff` parses other forms.
fn rfc3339(text: &[u8]) -> Option<i64> {
    let fixed: &[u8; 19] = text.first_chunk()?;
    // A byte that is not a digit where one belongs makes `highest` greater than 9.
    let mut highest = 0;
    let mut two = |place: usize| {
        let (tens, ones) = (fixed[place].wrapping_sub(b'0'), fixed[place + 1].wrapping_sub(b'0'));
        highest = highest.max(tens).max(ones);
        i64::from(tens) * 10 + i64::from(ones)
    };
    let (year, month, day) = (two(0) * 100 + two(2), two(5), two(8));
    let (hour, minute, second) = (two(11), two(14), two(17));
    let separators =
        [fixed[4], fixed[7], fixed[13], fixed[16]] == *b"--::" && matches!(fixed[10], b'T' | b't' | b' ');
    let in_range = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if highest > 9 || !separators || !in_range {
        return None;
    }
    let (micros, zone) = fraction(text, 19);
    let offset_minutes = offset(text.get(zone..)?)?;
    let minutes = (days_since_epoch(year, month, day) * 24 + hour) * 60 + minute - offset_minutes;
    Some((minutes * 60 + second) * 1_000_000 + micros)
}

/// Returns the microseconds after the dot, and the position of the zone.
fn fraction(text: &[u8], dot: usize) -> (i64, usize) {
    if !matches!(text.get(dot), Some(b'.' | b',')) {
        return (0, dot);
    }
    let digits = text[dot + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let micros = (0..6).fold(0, |sum, place| {
        let digit = if place < digits { i64::from(text[dot + 1 + place] - b'0') } else { 0 };
        sum * 10 + digit
    });
    (micros, dot + 1 + digits)
}

/// Parses `Z`, `+01:00` or `-0130` into minutes.
fn offset(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = match zone {
        b"Z" | b"z" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
    let [h1, h2, m1, m2] = match rest {
        [h1, h2, b':', m1, m2] | [h1, h2, m1, m2] => [digit(*h1)?, digit(*h2)?, digit(*m1)?, digit(*m2)?],
        _ => return None,
    };
    Some(sign * ((h1 * 10 + h2) * 60 + m1 * 10 + m2))
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Returns the days since 1970-01-01 in the proleptic Gregorian calendar. Years begin in March, so that the
/// leap day comes last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Formats a time as RFC 3339 in UTC, with a fraction if there is one. A time outside the range of the
/// calendar is formatted as a number.
#[must_use]
pub fn format(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_spellings_are_one_time() {
        let expected = Some(1_794_824_430_250_000);
        for text in [
            "2026-11-16T10:20:30.25Z",
            "2026-11-16T10:20:30.250000Z",
            "2026-11-16t10:20:30.2500004999Z",
            "2026-11-16 10:20:30.25+00:00",
            "2026-11-16T11:50:30.25+0130",
            "2026-11-16T05:20:30,25-05:00",
            "1794824430250",
            "1794824430.25",
            "1794824430250000",
            "1794824430250000000",
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in
            ["", "yesterday", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-11-16", "10:20:30"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn our_path_agrees_with_jiff(micros in -62_000_000_000_000_000_i64..253_000_000_000_000_000) {
            let text = format(micros);
            prop_assert_eq!(parse(&text), Some(micros), "{}", text);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }
    }
}
