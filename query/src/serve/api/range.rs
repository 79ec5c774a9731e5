//! The time range of a request, and the buckets of its time series.
//!
//! Invariants: buckets are whole steps since 1970, the first begins at or before the start of the range, and there are
//! at most as many as the request allows.

use crate::error::{QueryError, QueryErrorKind};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use std::ops::RangeInclusive;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;
/// The steps of time series in seconds: 1m, 2m, 5m, 10m, 15m, 30m, 1h, 2h, 3h, 6h, 12h, 1d, 2d, 7d.
const STEPS_S: [i64; 14] =
    [60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800];
/// The latest time of a range, in the year 2200.
pub(super) const LAST_TIME: i64 = 84_006 * DAY;
/// The earliest and the latest time of a range: 1970, since buckets are counted from there, and the year 2200.
const TIMES: RangeInclusive<i64> = 0..=LAST_TIME;

/// The range of a request. Times are microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeRange {
    pub(super) from: i64,
    pub(super) to: i64,
    /// The width of a bucket in seconds.
    step_s: i64,
}

impl TimeRange {
    /// Resolves the parameters `from` and `to` for a request at the time `now`.
    pub(super) fn resolve(
        from: Option<&str>,
        to: Option<&str>,
        buckets: i64,
        now: i64,
    ) -> Result<Self, QueryError> {
        let to = to.map_or(Ok(now), |text| parse("to", text, now))?;
        let from = from.map_or(Ok(to.saturating_sub(DAY).max(0)), |text| parse("from", text, now))?;
        if from >= to {
            let message =
                format!("The range is empty: from ({}) is not before to ({}).", text(from), text(to));
            return Err(
                QueryError::new(QueryErrorKind::Invalid, message).hint("Give an earlier from or a later to.")
            );
        }
        let count = |step_s: i64| last_bucket(to, step_s) - from / (step_s * SECOND) + 1;
        let week = STEPS_S[STEPS_S.len() - 1];
        let listed = STEPS_S.into_iter().find(|step_s| count(*step_s) <= buckets);
        // A range that is too long even for weeks has buckets of several weeks.
        let step_s =
            listed.or_else(|| (1..).map(|weeks| weeks * week).find(|step_s| count(*step_s) <= buckets));
        Ok(Self { from, to, step_s: step_s.unwrap_or(week) })
    }

    /// Returns the start of the equally long period that ends where this range begins.
    pub(super) fn previous_from(&self) -> i64 {
        (self.from - (self.to - self.from)).max(0)
    }

    /// Returns the start of the minute that contains a time. A minute of traffic belongs to the range in which it
    /// begins.
    pub(super) fn minute(time: i64) -> i64 {
        time - time % MINUTE
    }

    /// Returns the range as JSON for the response.
    pub(super) fn json(&self) -> Value {
        json!({"from": text(self.from), "to": text(self.to), "step_s": self.step_s})
    }

    fn first(&self) -> i64 {
        self.from / (self.step_s * SECOND)
    }

    /// Returns the width of a bucket in microseconds.
    pub(super) fn step_us(&self) -> i64 {
        self.step_s * SECOND
    }

    /// Returns the number of buckets.
    pub(super) fn buckets(&self) -> usize {
        usize::try_from(last_bucket(self.to, self.step_s) - self.first() + 1).unwrap_or(0)
    }

    /// Returns the starts of the buckets, in seconds since 1970.
    pub(super) fn times(&self) -> Vec<i64> {
        (self.first()..=last_bucket(self.to, self.step_s)).map(|bucket| bucket * self.step_s).collect()
    }

    /// Returns SQL for the number of the bucket that a column falls into, from 0.
    pub(super) fn slot(&self, column: &str) -> String {
        format!("arrow_cast({column}, 'Int64') / {} - {}", self.step_s * SECOND, self.first())
    }
}

/// Returns the last bucket that begins before `to`.
fn last_bucket(to: i64, step_s: i64) -> i64 {
    (to - 1) / (step_s * SECOND)
}

/// Returns the current time.
pub(super) fn now() -> i64 {
    Utc::now().timestamp_micros()
}

/// Formats a time as SQL and JSON write it.
pub(super) fn text(time: i64) -> String {
    DateTime::from_timestamp_micros(time)
        .map(|time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
        .unwrap_or_default()
}

/// Parses `now`, `-30m` or an RFC 3339 time.
pub(super) fn parse(name: &str, value: &str, now: i64) -> Result<i64, QueryError> {
    let time = match value.strip_prefix('-') {
        _ if value == "now" => Some(now),
        Some(ago) => parse_duration(ago).map(|ago| now.saturating_sub(ago)),
        None => DateTime::parse_from_rfc3339(value).ok().map(|time| time.timestamp_micros()),
    };
    time.filter(|time| TIMES.contains(time)).ok_or_else(|| {
        QueryError::new(
            QueryErrorKind::Invalid,
            format!("The parameter {name} is no time: '{}'.", shortened(value)),
        )
        .hint("Write a time such as 2026-11-18T09:30:00Z, or relative to now: now, -30m, -24h, -7d.")
    })
}

/// Shortens a value for an error message.
pub(super) fn shortened(value: &str) -> String {
    let mut short: String = value.chars().take(60).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    short
}

fn parse_duration(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let number: i64 = text.strip_suffix(unit).filter(|digits| digits.len() <= 9)?.parse().ok()?;
    let unit = match unit {
        's' => SECOND,
        'm' => MINUTE,
        'h' => 60 * MINUTE,
        'd' => DAY,
        'w' => 7 * DAY,
        _ => return None,
    };
    number.checked_mul(unit).filter(|_| number >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_790_000_000 * SECOND;

    fn resolve(from: &str, to: &str, buckets: i64) -> Result<TimeRange, QueryError> {
        TimeRange::resolve(Some(from), Some(to), buckets, NOW)
    }

    #[test]
    fn ranges_are_absolute_or_relative() {
        let day = TimeRange::resolve(None, None, 120, NOW).unwrap();
        assert_eq!((day.from, day.to), (NOW - DAY, NOW));
        assert_eq!(resolve("-24h", "now", 120).unwrap(), day);
        assert_eq!(
            resolve("1970-01-01T00:00:00Z", "1970-01-01T01:00:00+00:00", 120).unwrap().to,
            60 * MINUTE
        );
        for (from, to) in
            [("now", "-1h"), ("-1x", "now"), ("-", "now"), ("soon", "now"), ("", "now"), ("--1h", "now")]
        {
            let error = resolve(from, to, 120).unwrap_err();
            assert!(error.message.ends_with('.') && error.hint.is_some(), "{from} {to}: {error}");
        }
        assert!(resolve("-99999999999999999999d", "now", 120).is_err());
        assert!(resolve("-99999999d", "now", 120).is_err());
        assert!(resolve("9999-01-01T00:00:00Z", "9999-01-02T00:00:00Z", 120).is_err());
    }

    #[test]
    fn the_smallest_step_that_fits_is_taken() {
        for (from, buckets, step_s) in [
            ("-1h", 120, 60),
            ("-24h", 120, 900),
            ("-7d", 120, 7_200),
            ("-7d", 8, 86_400),
            ("-24h", 2, 86_400),
        ] {
            let range = resolve(from, "now", buckets).unwrap();
            assert_eq!(range.step_s, step_s, "{from} in {buckets}");
            assert!(range.buckets() <= usize::try_from(buckets).unwrap());
            assert_eq!(range.times().len(), range.buckets());
        }
        let long = resolve("1970-01-01T00:00:00Z", "now", 10).unwrap();
        assert!(long.buckets() <= 10 && long.step_s % 604_800 == 0);
        let one = resolve("-7d", "now", 1).unwrap();
        assert_eq!(one.buckets(), 1);
    }

    #[test]
    fn a_bucket_ends_where_the_range_ends() {
        let range = resolve("1970-01-01T00:00:30Z", "1970-01-01T00:02:00Z", 120).unwrap();
        assert_eq!(range.times(), [0, 60]);
    }
}
