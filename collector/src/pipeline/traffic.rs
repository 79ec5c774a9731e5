//! The calls of one request, summed by minute and by the attributes that they share.
//!
//! Most records are successful calls that leave nothing but this sum, so adding a call to an existing sum does not
//! allocate.

use super::call_points::CallDurations;
use super::call_tracker::{Correction, TrafficPosition};
use super::traffic_names::{Names, TrafficNames};
use crate::source::Source;
use classifier::{Call, Dialect, Outcome};
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroU32;
use store::rows::{BUCKET_BOUNDS_US, TrafficRow, TrafficRows};

const MINUTE_US: i64 = 60_000_000;
/// The number of sums whose memory is kept from one request to the next.
const MAX_RETAINED_SUMS: usize = 4096;

/// The sums of one request.
#[derive(Default)]
pub(super) struct Traffic {
    hasher: foldhash::fast::RandomState,
    /// Indexes into `sums`, by the hash of their key.
    indexes: HashTable<usize>,
    sums: Vec<Sum>,
    /// The total length of the names in the sums.
    name_bytes: usize,
}

/// The attributes that calls of one sum share.
#[derive(PartialEq, Eq)]
struct SumKey<'k> {
    minute: i64,
    service: Option<&'k str>,
    environment: Option<&'k str>,
    operation: Option<&'k str>,
    dialect: Dialect,
    outcome: Outcome,
    span_kind: Option<&'k str>,
}

impl<'k> SumKey<'k> {
    fn of(call: &Call<'k>) -> Self {
        Self {
            minute: call.time.saturating_sub(call.time.rem_euclid(MINUTE_US)),
            service: call.service,
            environment: call.environment,
            operation: call.operation,
            dialect: call.dialect,
            outcome: call.outcome,
            span_kind: call.span_kind,
        }
    }

    /// Returns the hash of the key. The side of the call is left out: it has few values.
    fn hash(&self, hasher: &foldhash::fast::RandomState) -> u64 {
        let mut state = hasher.build_hasher();
        for name in [self.service, self.environment, self.operation].into_iter().flatten() {
            state.write(name.as_bytes());
        }
        state.write_i64(self.minute);
        state.write_u16(u16::from(self.dialect as u8) << 8 | u16::from(self.outcome as u8));
        state.finish()
    }

    fn name_bytes(&self) -> usize {
        let names = [self.service, self.environment, self.operation, self.span_kind];
        names.into_iter().flatten().map(str::len).sum()
    }
}

struct Sum {
    minute: i64,
    service: Option<Box<str>>,
    environment: Option<Box<str>>,
    operation: Option<Box<str>>,
    dialect: Dialect,
    outcome: Outcome,
    span_kind: Option<Box<str>>,
    /// The number of the names of this sum, if calls in it may be corrected later.
    names: Option<NonZeroU32>,
    calls: i64,
    /// The number of calls that were counted as successes before they were known to have failed.
    late_failures: i64,
    unverified: i64,
    timed: i64,
    duration_sum_us: i64,
    /// The number of calls by the first bound that they do not exceed; in a row, each bucket includes those before
    /// it.
    bucket_counts: [i64; BUCKET_BOUNDS_US.len()],
}

impl Sum {
    fn new(key: &SumKey<'_>) -> Self {
        Self {
            minute: key.minute,
            service: key.service.map(Box::from),
            environment: key.environment.map(Box::from),
            operation: key.operation.map(Box::from),
            dialect: key.dialect,
            outcome: key.outcome,
            span_kind: key.span_kind.map(Box::from),
            names: None,
            calls: 0,
            late_failures: 0,
            unverified: 0,
            timed: 0,
            duration_sum_us: 0,
            bucket_counts: [0; BUCKET_BOUNDS_US.len()],
        }
    }

    fn key(&self) -> SumKey<'_> {
        SumKey {
            minute: self.minute,
            service: self.service.as_deref(),
            environment: self.environment.as_deref(),
            operation: self.operation.as_deref(),
            dialect: self.dialect,
            outcome: self.outcome,
            span_kind: self.span_kind.as_deref(),
        }
    }

    fn add(&mut self, call: &Call<'_>) {
        let count = i64::try_from(call.count).unwrap_or(i64::MAX);
        self.calls = self.calls.saturating_add(count);
        self.unverified = self.unverified.saturating_add(if call.is_unverified { count } else { 0 });
        let Some(duration) = call.duration_us.filter(|duration| *duration >= 0) else { return };
        self.timed = self.timed.saturating_add(count);
        self.duration_sum_us = self.duration_sum_us.saturating_add(duration.saturating_mul(count));
        let index = BUCKET_BOUNDS_US.partition_point(|bound| *bound < duration);
        if let Some(bucket) = self.bucket_counts.get_mut(index) {
            *bucket = bucket.saturating_add(count);
        }
    }

    /// Adds calls of which only the sums of a histogram are known.
    fn add_durations(&mut self, durations: &CallDurations) {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.timed = self.timed.saturating_add(signed(durations.calls));
        self.duration_sum_us = self.duration_sum_us.saturating_add(signed(durations.sum_us));
        for (bucket, calls) in self.bucket_counts.iter_mut().zip(durations.bucket_counts) {
            *bucket = bucket.saturating_add(signed(calls));
        }
    }

    fn buckets(&self) -> [i64; BUCKET_BOUNDS_US.len()] {
        let mut sum = 0_i64;
        self.bucket_counts.map(|calls| {
            sum = sum.saturating_add(calls);
            sum
        })
    }

    fn row(&self, source: Source) -> TrafficRow<'_> {
        let SumKey { minute, service, environment, operation, dialect, outcome, span_kind } = self.key();
        TrafficRow {
            minute,
            service,
            environment,
            operation,
            dialect,
            outcome,
            span_kind,
            source: source.as_str(),
            calls: self.calls,
            late_failures: self.late_failures,
            unverified: self.unverified,
            timed: self.timed,
            duration_sum_us: self.duration_sum_us,
            buckets: self.buckets(),
        }
    }
}

impl Traffic {
    /// Adds calls to their sum.
    pub(super) fn add(&mut self, call: &Call<'_>) {
        self.sum_of(call).add(call);
    }

    /// Adds the calls of a histogram to their sum.
    pub(super) fn add_histogram(&mut self, call: &Call<'_>, durations: &CallDurations) {
        let sum = self.sum_of(call);
        sum.add(&Call { duration_us: None, ..*call });
        sum.add_durations(durations);
    }

    /// Returns where a call will be counted, so that it can be corrected later.
    pub(super) fn counted_at(&mut self, call: &Call<'_>, names: &TrafficNames) -> Option<TrafficPosition> {
        if call.outcome != Outcome::Ok {
            return None;
        }
        let sum = self.sum_of(call);
        let known = sum.names.or_else(|| {
            names.number_of(Names {
                service: sum.service.clone(),
                environment: sum.environment.clone(),
                operation: sum.operation.clone(),
                dialect: sum.dialect,
                span_kind: sum.span_kind.clone(),
            })
        });
        sum.names = known;
        Some(TrafficPosition { minute: i32::try_from(sum.minute / MINUTE_US).ok()?, names: known? })
    }

    /// Adds the failure of a call that was counted as a success.
    pub(super) fn add_late_failure(&mut self, correction: &Correction, names: &TrafficNames) {
        let Some(names) = names.get(correction.counted_at.names) else { return };
        let sum = self.sum_of_key(&SumKey {
            minute: i64::from(correction.counted_at.minute) * MINUTE_US,
            service: names.service.as_deref(),
            environment: names.environment.as_deref(),
            operation: names.operation.as_deref(),
            dialect: names.dialect,
            outcome: correction.outcome,
            span_kind: names.span_kind.as_deref(),
        });
        sum.late_failures += 1;
    }

    /// Returns the services and operations in the sums.
    pub(super) fn operations(&self) -> impl Iterator<Item = (Option<&str>, Option<&str>)> {
        self.sums.iter().map(|sum| (sum.service.as_deref(), sum.operation.as_deref()))
    }

    fn sum_of(&mut self, call: &Call<'_>) -> &mut Sum {
        self.sum_of_key(&SumKey::of(call))
    }

    fn sum_of_key(&mut self, key: &SumKey<'_>) -> &mut Sum {
        let Self { hasher, indexes, sums, name_bytes } = self;
        let hash = key.hash(hasher);
        let index = match indexes.find(hash, |&index| sums[index].key() == *key) {
            Some(&index) => index,
            None => {
                sums.push(Sum::new(key));
                *name_bytes += key.name_bytes();
                let index = sums.len() - 1;
                indexes.insert_unique(hash, index, |&index| sums[index].key().hash(hasher));
                index
            }
        };
        &mut sums[index]
    }

    /// Returns the approximate memory of the sums and of the rows that they become, in bytes: every call may have its
    /// own sum.
    pub(super) fn bytes(&self) -> usize {
        2 * (self.sums.len() * size_of::<Sum>() + self.name_bytes)
    }

    /// Appends the sums as rows.
    pub(super) fn write(&self, source: Source, rows: &mut TrafficRows) {
        for sum in self.sums.iter().filter(|sum| sum.calls > 0 || sum.late_failures > 0) {
            rows.push(sum.row(source));
        }
    }

    /// Clears the sums for the next request.
    pub(super) fn clear(&mut self) {
        self.indexes.clear();
        self.sums.clear();
        self.name_bytes = 0;
        // The memory of a large request is freed.
        if self.sums.capacity() > MAX_RETAINED_SUMS {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use classifier::TimeSource;

    fn call(time: i64, operation: &str, outcome: Outcome, duration_us: Option<i64>) -> Call<'_> {
        Call {
            dialect: Dialect::McpAql,
            outcome,
            is_unverified: false,
            count: 1,
            time,
            time_source: TimeSource::Record,
            service: Some("s"),
            environment: None,
            operation: Some(operation),
            span_kind: None,
            duration_us,
        }
    }

    #[test]
    fn calls_that_are_alike_are_one_sum() {
        let mut traffic = Traffic::default();
        traffic.add(&call(59_999_999, "a", Outcome::Ok, Some(1_000)));
        traffic.add(&call(1, "a", Outcome::Ok, Some(2_000_000)));
        traffic.add(&call(2, "a", Outcome::Ok, None));
        traffic.add(&call(60_000_000, "a", Outcome::Ok, None));
        traffic.add(&call(3, "b", Outcome::Ok, None));
        traffic.add(&call(4, "a", Outcome::Hidden, None));
        traffic.add(&call(-1, "a", Outcome::Ok, None));
        let sums: Vec<_> = traffic.sums.iter().map(|sum| (sum.minute, sum.calls)).collect();
        assert_eq!(sums, [(0, 3), (60_000_000, 1), (0, 1), (0, 1), (-60_000_000, 1)]);
        let first = traffic.sums[0].row(Source::Envelopes);
        assert_eq!((first.timed, first.duration_sum_us), (2, 2_001_000));
        assert_eq!((first.buckets[0], first.buckets[9], first.buckets[10]), (1, 1, 2));
        let mut rows = TrafficRows::default();
        traffic.write(Source::Envelopes, &mut rows);
        assert_eq!(rows.len(), 5);
        assert!(traffic.bytes() >= 10 * size_of::<Sum>());
        traffic.clear();
        assert_eq!(traffic.bytes(), 0);
    }

    #[test]
    fn a_call_can_be_corrected_in_a_later_request() {
        let (mut traffic, names) = (Traffic::default(), TrafficNames::default());
        let ok = call(61_000_000, "a", Outcome::Ok, None);
        let position = traffic.counted_at(&ok, &names).unwrap();
        assert_eq!(traffic.counted_at(&ok, &names), Some(position));
        assert_eq!(traffic.counted_at(&Call { outcome: Outcome::Failed, ..ok }, &names), None);
        let mut rows = TrafficRows::default();
        traffic.write(Source::OtlpTraces, &mut rows);
        assert_eq!(rows.len(), 0, "nothing was counted yet");
        traffic.clear();
        let correction = Correction { counted_at: position, outcome: Outcome::Hidden };
        traffic.add_late_failure(&correction, &names);
        let row = traffic.sums[0].row(Source::OtlpTraces);
        assert_eq!((row.minute, row.service, row.operation), (60_000_000, Some("s"), Some("a")));
        assert_eq!((row.outcome, row.calls, row.late_failures), (Outcome::Hidden, 0, 1));
        traffic.write(Source::OtlpTraces, &mut rows);
        assert_eq!(rows.len(), 1);
    }

    #[test]
    fn absurd_numbers_do_not_overflow() {
        let mut traffic = Traffic::default();
        let absurd = Call { count: u64::MAX, ..call(i64::MIN, "a", Outcome::Ok, Some(i64::MAX)) };
        traffic.add(&absurd);
        traffic.add(&absurd);
        assert_eq!(traffic.sums[0].duration_sum_us, i64::MAX);
    }
}
