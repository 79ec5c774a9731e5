//! Histograms of calls in OTLP metrics: computes what one data point adds to the traffic.
//!
//! A cumulative point gives the number of calls since its series began, so the previous point has to be known. A
//! series that is seen for the first time counts from its beginning if it is really new: it began a moment ago, or
//! other series of its sender were seen before. Otherwise an earlier run of the server has counted it, and only
//! further increases count.
//!
//! Invariants: memory is bounded, and a series that had to be forgotten begins anew; points of a batch that could not
//! be stored are reverted ([`CumulativeSeries::restore`]), so that a retry counts.

use classifier::telemetry::{Attribute, Resource, SpanKind, Value};
use hashbrown::HashMap;
use std::sync::{Mutex, PoisonError};
use store::rows::BUCKET_BOUNDS_US;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The number of series, and of senders, that each generation holds.
const MAX_SERIES: usize = 8_192;
/// The age, in nanoseconds, up to which a series that is seen for the first time counts as new.
const NEW_SERIES_NS: u64 = 120_000_000_000;

/// The number of calls and the distribution of their durations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallDurations {
    /// The number of calls.
    pub calls: u64,
    /// The total duration of the calls in microseconds; zero if it is not reported.
    pub sum_us: u64,
    /// The number of calls by the first of [`BUCKET_BOUNDS_US`] that they do not exceed.
    pub bucket_counts: [u64; BUCKET_BOUNDS_US.len()],
}

impl CallDurations {
    /// Adds calls that took at most `upper_us` microseconds.
    pub(crate) fn add_bucket(&mut self, upper_us: f64, calls: u64) {
        // The rounding error of a sum of floating-point seconds is below this.
        const TOLERANCE: f64 = 1e-6;
        let index = BUCKET_BOUNDS_US.partition_point(|bound| (*bound as f64) * (1.0 + TOLERANCE) < upper_us);
        if let Some(bucket) = self.bucket_counts.get_mut(index) {
            *bucket = bucket.saturating_add(calls);
        }
    }

    /// Returns the increase since an earlier state, or `None` if the series was reset in between.
    fn since(&self, earlier: &Self) -> Option<Self> {
        let mut added = Self {
            calls: self.calls.checked_sub(earlier.calls)?,
            sum_us: self.sum_us.saturating_sub(earlier.sum_us),
            ..Self::default()
        };
        for (index, bucket) in added.bucket_counts.iter_mut().enumerate() {
            *bucket = self.bucket_counts[index].checked_sub(earlier.bucket_counts[index])?;
        }
        Some(added)
    }
}

/// One data point of a histogram of calls.
#[derive(Debug, Clone, Copy)]
pub struct CallPoint<'a> {
    /// The side that measured the calls: a server or a client.
    pub side: SpanKind,
    /// True if the point counts from the beginning of its series, not from the previous point.
    pub is_cumulative: bool,
    /// The time at which its series, or its interval, began, in nanoseconds since 1970.
    pub start_ns: u64,
    /// The time at which it was taken, in nanoseconds since 1970.
    pub time_ns: u64,
    /// The attributes that its calls share.
    pub attributes: &'a [Attribute<'a>],
    /// The calls and their durations.
    pub durations: CallDurations,
}

impl CallPoint<'_> {
    /// Returns the keys of the sender and of the series of the point.
    pub(super) fn keys(&self, resource: &Resource<'_>) -> (u64, u64) {
        let sender = hash_attributes(resource.attributes, self.side as u64);
        (sender, hash_attributes(self.attributes, sender))
    }

    /// Returns the identity of the point, by which a duplicate is recognized.
    pub(super) fn identity(&self, series: u64) -> u64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.start_ns.to_le_bytes());
        bytes[8..].copy_from_slice(&self.time_ns.to_le_bytes());
        xxh3_64_with_seed(&bytes, series)
    }
}

/// Returns a hash of attributes that does not depend on their order.
fn hash_attributes(attributes: &[Attribute<'_>], seed: u64) -> u64 {
    let mut sum = 0_u64;
    for Attribute { key, value } in attributes {
        let value = match value {
            Value::Empty => 0,
            Value::Text(text) | Value::Json(text) => xxh3_64(text.as_bytes()),
            Value::Int(number) => xxh3_64(&number.to_le_bytes()),
            Value::Double(number) => xxh3_64(&number.to_bits().to_le_bytes()),
            Value::Bool(value) => u64::from(*value) + 1,
        };
        sum = sum.wrapping_add(xxh3_64_with_seed(key.as_bytes(), value));
    }
    xxh3_64_with_seed(&sum.to_le_bytes(), seed)
}

/// The state of one cumulative series.
#[derive(Debug, Clone, Copy)]
struct Series {
    start_ns: u64,
    time_ns: u64,
    durations: CallDurations,
}

/// The state of a series before a point was added.
#[derive(Debug)]
pub(super) struct PreviousState {
    series: u64,
    state: Option<Series>,
    /// The time of the point that was added.
    added_ns: u64,
}

/// The last known states of cumulative series.
#[derive(Debug, Default)]
pub(super) struct CumulativeSeries(Mutex<SeriesStates>);

#[derive(Debug, Default)]
struct SeriesStates {
    series: Generations<Series>,
    /// The time at which each sender was first seen, by the clock of its points.
    senders: Generations<u64>,
}

/// Two generations: when the younger is full, the older is dropped; an entry that is used becomes young again.
#[derive(Debug)]
struct Generations<T> {
    young: HashMap<u64, T>,
    old: HashMap<u64, T>,
}

impl<T> Default for Generations<T> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<T: Copy> Generations<T> {
    fn get(&self, key: u64) -> Option<T> {
        self.young.get(&key).or_else(|| self.old.get(&key)).copied()
    }

    fn insert(&mut self, key: u64, value: T) {
        if self.young.len() >= MAX_SERIES && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    fn remove(&mut self, key: u64) {
        self.young.remove(&key);
        self.old.remove(&key);
    }
}

impl CumulativeSeries {
    /// Returns the increase that a point brings and the state to restore if it cannot be stored. Returns `None` if
    /// the point is not newer than the last one of its series.
    pub(super) fn advance(
        &self,
        (sender, series): (u64, u64),
        point: &CallPoint<'_>,
        arrival_us: i64,
    ) -> Option<(CallDurations, PreviousState)> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let state = known.series.get(series);
        if state.is_some_and(|state| point.time_ns <= state.time_ns) {
            return None;
        }
        let first_seen = known.senders.get(sender);
        let is_sender_known = first_seen.is_some_and(|first| first < point.time_ns);
        let added = match state {
            Some(state) if state.start_ns == point.start_ns => {
                point.durations.since(&state.durations).unwrap_or(point.durations)
            }
            Some(_) => point.durations,
            None if is_sender_known || is_new(point, arrival_us) => point.durations,
            None => CallDurations::default(),
        };
        known.senders.insert(sender, first_seen.unwrap_or(point.time_ns));
        let CallPoint { start_ns, time_ns, durations, .. } = *point;
        known.series.insert(series, Series { start_ns, time_ns, durations });
        Some((added, PreviousState { series, state, added_ns: time_ns }))
    }

    /// Reverts points whose batch could not be stored, newest first.
    pub(super) fn restore(&self, previous: &[PreviousState]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for PreviousState { series, state, added_ns } in previous.iter().rev() {
            if known.series.get(*series).is_none_or(|now| now.time_ns != *added_ns) {
                continue;
            }
            match state {
                Some(state) => known.series.insert(*series, *state),
                None => known.series.remove(*series),
            }
        }
    }
}

fn is_new(point: &CallPoint<'_>, arrival_us: i64) -> bool {
    let arrival_ns = u64::try_from(arrival_us).unwrap_or(0).saturating_mul(1_000);
    point.start_ns > 0 && point.start_ns.saturating_add(NEW_SERIES_NS) >= arrival_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_NS: u64 = 60_000_000_000;
    const START: u64 = 1_000 * MINUTE_NS;

    /// Returns what a point with `calls` calls adds, `minutes` after its sender began.
    fn add(series: &CumulativeSeries, key: u64, minutes: u64, start_ns: u64, calls: u64) -> u64 {
        let time_ns = START + minutes * MINUTE_NS;
        let durations = CallDurations { calls, ..CallDurations::default() };
        let point = CallPoint {
            side: SpanKind::Server,
            is_cumulative: true,
            start_ns,
            time_ns,
            attributes: &[],
            durations,
        };
        let arrival = i64::try_from(time_ns / 1_000).unwrap();
        series.advance((1, key), &point, arrival).map_or(0, |(added, _)| added.calls)
    }

    #[test]
    fn only_what_came_on_top_counts() {
        let series = CumulativeSeries::default();
        assert_eq!(add(&series, 7, 1, START, 5), 5, "it has just begun");
        assert_eq!(add(&series, 7, 2, START, 8), 3);
        assert_eq!(add(&series, 7, 2, START, 8), 0, "sent again");
        assert_eq!(add(&series, 7, 3, START, 8), 0);
        assert_eq!(add(&series, 7, 4, START + 3 * MINUTE_NS, 2), 2, "begun anew");
        assert_eq!(add(&series, 7, 5, START + 3 * MINUTE_NS, 1), 1, "fewer than before: begun anew unsaid");
    }

    #[test]
    fn what_was_counted_before_a_restart_is_not_counted_again() {
        let series = CumulativeSeries::default();
        assert_eq!(add(&series, 7, 500, START, 900), 0);
        assert_eq!(add(&series, 8, 500, START, 90), 0, "of the same export");
        assert_eq!(add(&series, 7, 501, START, 905), 5);
        assert_eq!(add(&series, 9, 501, START, 1), 1, "a new series of a sender that is known");
    }

    #[test]
    fn what_could_not_be_stored_is_counted_when_it_comes_again() {
        let series = CumulativeSeries::default();
        let durations = CallDurations { calls: 4, ..CallDurations::default() };
        let point = CallPoint {
            side: SpanKind::Server,
            is_cumulative: true,
            start_ns: START,
            time_ns: START + 1,
            attributes: &[],
            durations,
        };
        let advance = || series.advance((1, 2), &point, i64::try_from(START / 1_000).unwrap());
        let (added, previous) = advance().unwrap();
        assert!(advance().is_none());
        series.restore(&[previous]);
        assert_eq!(advance().unwrap().0, added);
    }

    #[test]
    fn memory_is_bounded() {
        let series = CumulativeSeries::default();
        for key in 0..10 * MAX_SERIES as u64 {
            add(&series, key, 1, START, 1);
        }
        let known = series.0.lock().unwrap();
        assert!(known.series.young.len() + known.series.old.len() <= 2 * MAX_SERIES);
    }

    #[test]
    fn buckets_are_those_that_hold_all_of_theirs() {
        let mut durations = CallDurations::default();
        for (upper_us, calls) in [(5_000.0, 1), (20_000.0, 2), (500_000.000_1, 4), (f64::INFINITY, 8)] {
            durations.add_bucket(upper_us, calls);
        }
        assert_eq!(durations.bucket_counts, [0, 0, 1, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_order_of_attributes_does_not_matter() {
        let attribute =
            |key: &'static str, value: i64| Attribute { key: key.into(), value: Value::Int(value) };
        let one = [attribute("a", 1), attribute("b", 2)];
        let other = [attribute("b", 2), attribute("a", 1)];
        assert_eq!(hash_attributes(&one, 3), hash_attributes(&other, 3));
        assert_ne!(hash_attributes(&one, 3), hash_attributes(&[attribute("a", 2), attribute("b", 1)], 3));
        assert_ne!(hash_attributes(&one, 3), hash_attributes(&one, 4));
    }
}
