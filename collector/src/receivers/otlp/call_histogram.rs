//! The metrics that measure calls, and the conversion of their buckets to Faultline's buckets.
//!
//! Invariant: a call is put into the first of Faultline's buckets that contains its whole original bucket, so that
//! "took at most" stays true whatever bounds a sender uses.

use crate::pipeline::{CallDurations, CallPoint};
use classifier::telemetry::SpanKind;

/// The histograms that are read, and the side of the call that measures each.
const METRICS: [(&str, SpanKind); 2] = [
    ("mcp.server.operation.duration", SpanKind::Server),
    ("mcp.client.operation.duration", SpanKind::Client),
];
/// The units of durations, in microseconds. The default unit is seconds.
const UNITS: [(&str, f64); 4] = [("s", 1e6), ("ms", 1e3), ("us", 1.0), ("ns", 1e-3)];
const SECOND_US: f64 = 1e6;
/// The most buckets of one data point that are read; SDKs have at most 160.
const MAX_BUCKETS: usize = 1_024;
/// OTLP's number for the temporality of a series that counts from its start.
const CUMULATIVE: i64 = 2;
/// The scales of exponential histograms that are read; SDKs use -10 to 20.
const SCALES: std::ops::RangeInclusive<i64> = -10..=20;

/// One of the histograms that are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CallMetric {
    side: SpanKind,
    /// The length of its unit in microseconds.
    unit_us: f64,
}

/// Returns the metric with this name and unit; `None` if it is not read.
pub(super) fn metric(name: &str, unit: &str) -> Option<CallMetric> {
    let (_, side) = METRICS.into_iter().find(|(known, _)| *known == name)?;
    let unit_us = UNITS.into_iter().find(|(known, _)| *known == unit).map_or(SECOND_US, |(_, micros)| micros);
    Some(CallMetric { side, unit_us })
}

/// Returns the names of the metrics that are read, for the response to senders of others.
pub(super) fn names() -> String {
    METRICS.map(|(name, _)| name).join(" and ")
}

pub(super) const fn is_cumulative(temporality: i64) -> bool {
    temporality == CUMULATIVE
}

/// Adds an item to a list, unless it has `MAX_BUCKETS` items.
pub(super) fn keep<T>(list: &mut Vec<T>, item: T) {
    if list.len() < MAX_BUCKETS {
        list.push(item);
    }
}

impl CallMetric {
    /// Returns a data point without any calls.
    pub(super) fn empty_point(self) -> CallPoint<'static> {
        CallPoint {
            side: self.side,
            is_cumulative: false,
            start_ns: 0,
            time_ns: 0,
            attributes: &[],
            durations: CallDurations::default(),
        }
    }

    /// Converts a duration to microseconds; one that is negative or not finite becomes 0.
    pub(super) fn micros(self, duration: f64) -> u64 {
        const LONGEST_US: f64 = 1e18;
        let micros = duration * self.unit_us;
        if micros.is_finite() { micros.clamp(0.0, LONGEST_US) as u64 } else { 0 }
    }

    /// Adds buckets with explicit upper bounds; the last bucket has no bound.
    pub(super) fn add_buckets(self, durations: &mut CallDurations, counts: &[u64], bounds: &[f64]) {
        for (index, calls) in counts.iter().enumerate() {
            let bound = bounds.get(index).copied().unwrap_or(f64::INFINITY);
            if !bound.is_nan() {
                durations.add_bucket(bound * self.unit_us, *calls);
            }
        }
    }

    /// Adds buckets whose bounds grow by a constant factor.
    pub(super) fn add_exponential_buckets(
        self,
        durations: &mut CallDurations,
        scale: i64,
        offset: i64,
        counts: &[u64],
    ) {
        if !SCALES.contains(&scale) {
            return;
        }
        let exponent_of_factor = (-(scale as f64)).exp2();
        for (index, calls) in (1_i64..).zip(counts) {
            let bound = (offset.saturating_add(index) as f64 * exponent_of_factor).exp2();
            durations.add_bucket(bound * self.unit_us, *calls);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_known_by_name_and_unit() {
        let server = metric("mcp.server.operation.duration", "s").unwrap();
        assert_eq!((server.side, server.micros(1.5)), (SpanKind::Server, 1_500_000));
        let client = metric("mcp.client.operation.duration", "ms").unwrap();
        assert_eq!((client.side, client.micros(1.5)), (SpanKind::Client, 1_500));
        assert_eq!(metric("mcp.server.session.duration", "s"), None);
        for odd in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(server.micros(odd), 0);
        }
    }

    #[test]
    fn exponential_bounds_are_powers() {
        let metric = metric("mcp.server.operation.duration", "s").unwrap();
        let mut durations = CallDurations::default();
        // The bounds grow by a factor of two from 2^-10 s: 1.95 ms, 3.9 ms, 7.8 ms.
        metric.add_exponential_buckets(&mut durations, 0, -10, &[1, 2, 4]);
        assert_eq!(durations.bucket_counts[..4], [0, 1, 2, 4]);
        metric.add_exponential_buckets(&mut durations, 99, 0, &[7]);
        assert_eq!(durations.bucket_counts.iter().sum::<u64>(), 7);
    }
}
