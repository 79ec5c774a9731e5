//! SQL that counts the events of some periods: whole buckets from `event_counts`, and the edges from `events`.
//!
//! Invariant: the rows of both add up to the events of these periods, each event in one of them.

use super::range::{self, TimeRange};
use super::statement::{Binder, EVENTS_ONCE};
use store::rows::{BUCKET_US, OLD_BUCKET_US, SHORT_BUCKETS_FOR_US};

/// The columns of `event_counts` that `events` has too.
const COLUMNS: &str = "kind, fingerprint, canonical, category, dialect, service, operation, fault, \
     service_version, environment, hidden";

/// The condition of the view `errors`, apart from reports that do not count.
const IS_FAILURE: &str = "kind = 'error' AND fault IS DISTINCT FROM 'probe'";
/// The condition for events that are no protocol probes.
const IS_NO_PROBE: &str = "(kind <> 'error' OR fault IS DISTINCT FROM 'probe')";

/// The precision that a statement needs of the times of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    /// The bucket of the series.
    Slots,
    /// The period.
    Periods,
}

/// Returns a table expression for the failures of some periods that pass the filters. Its columns are `time`,
/// [`COLUMNS`], `errors` (the number of failures that a row stands for), `first_seen` and `last_seen`. The time of a row
/// is in the same bucket of the series as its failures, or in the same period, as the precision says.
pub(super) fn failures(
    binder: &mut Binder,
    range: &TimeRange,
    periods: &[(i64, i64)],
    filters: &str,
    precision: Precision,
) -> String {
    table(binder, range, periods, &format!("{IS_FAILURE}{filters}"), precision)
}

/// Returns a table expression like [`failures`], for events of any kind.
pub(super) fn events(
    binder: &mut Binder,
    range: &TimeRange,
    periods: &[(i64, i64)],
    filters: &str,
    precision: Precision,
) -> String {
    table(binder, range, periods, &format!("{IS_NO_PROBE}{filters}"), precision)
}

fn table(
    binder: &mut Binder,
    range: &TimeRange,
    periods: &[(i64, i64)],
    condition: &str,
    precision: Precision,
) -> String {
    let earliest = periods.iter().map(|(from, _)| *from).min().unwrap_or_default();
    let bucket = bucket(range, earliest, precision);
    let (mut whole, mut edges) = (Vec::new(), Vec::new());
    for (from, to) in periods.iter().copied() {
        match bucket.map(|bucket| (up(from, bucket), to - to % bucket)) {
            Some((first, last)) if first < last => {
                whole.push(binder.between("bucket", first, last));
                edges.extend([(from, first), (last, to)].into_iter().filter(|(from, to)| from < to));
            }
            _ => edges.push((from, to)),
        }
    }
    let edges: Vec<String> = edges.into_iter().map(|(from, to)| binder.between("time", from, to)).collect();
    let counted = format!(
        "SELECT bucket AS time, {COLUMNS}, events AS errors, first_seen, last_seen FROM event_counts
         WHERE ({}) AND {condition}",
        whole.join(" OR ")
    );
    let single = format!(
        "SELECT time, {COLUMNS}, coalesce(represents, 1) AS errors, time AS first_seen, time AS last_seen
         FROM {EVENTS_ONCE} WHERE ({}) AND {condition}",
        edges.join(" OR ")
    );
    let parts = [(whole, counted), (edges, single)];
    let parts: Vec<String> =
        parts.into_iter().filter(|(conditions, _)| !conditions.is_empty()).map(|(_, part)| part).collect();
    format!("({}) AS counted", parts.join(" UNION ALL "))
}

/// Returns the duration of the buckets that can be used, if any.
fn bucket(range: &TimeRange, earliest: i64, precision: Precision) -> Option<i64> {
    let is_recent = earliest >= range::now() - SHORT_BUCKETS_FOR_US;
    let fits = |bucket: i64| precision == Precision::Periods || range.step_us() % bucket == 0;
    match is_recent {
        true if fits(BUCKET_US) => Some(BUCKET_US),
        _ if fits(OLD_BUCKET_US) => Some(OLD_BUCKET_US),
        _ => None,
    }
}

/// Rounds a time up to the start of a bucket.
fn up(time: i64, bucket: i64) -> i64 {
    time + (bucket - time % bucket) % bucket
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::api::statement::Statement;

    const HOUR: i64 = 3_600_000_000;

    fn sources(from: &str, to: &str, now: i64, precision: Precision) -> (usize, usize) {
        let range = TimeRange::resolve(Some(from), Some(to), 120, now).unwrap();
        let statement =
            Statement::build(|binder| failures(binder, &range, &[(range.from, range.to)], "", precision));
        let count = |column: &str| statement.sql.matches(&format!("{column} >= ")).count();
        (count("bucket"), count("time"))
    }

    #[test]
    fn whole_buckets_are_read_from_counts_and_the_rest_from_failures() {
        let now = range::now();
        let hour = now - now % HOUR;
        let at = |time: i64| range::text(time);
        for (from, to, precision, expected) in [
            (hour - 24 * HOUR, hour, Precision::Slots, (1, 0)),
            (hour - 24 * HOUR + 1, hour, Precision::Slots, (1, 1)),
            (hour - 24 * HOUR + 1, hour + 1, Precision::Slots, (1, 2)),
            (hour - HOUR, hour, Precision::Slots, (0, 1)),
            (hour - HOUR, hour, Precision::Periods, (1, 0)),
            (hour - 10, hour + 10, Precision::Periods, (0, 1)),
            (hour - 72 * HOUR, hour - 48 * HOUR, Precision::Slots, (0, 1)),
            (hour - 72 * HOUR, hour - 48 * HOUR, Precision::Periods, (1, 0)),
            (hour - 300 * HOUR, hour, Precision::Slots, (1, 0)),
        ] {
            assert_eq!(sources(&at(from), &at(to), now, precision), expected, "{} to {}", at(from), at(to));
        }
    }
}
