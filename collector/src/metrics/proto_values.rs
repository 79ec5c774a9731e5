//! Conversions of values to the protobuf types of the Prometheus client.

use super::batch_summary::Durations;
use super::family::{Family, empty, series};
use metrics::{CollectedMetric, Histogram, Metric, MetricKind, Sample, SampleValue};
use prometheus::proto::{self, MetricFamily, MetricType};
use store::rows::BUCKET_BOUNDS_US;

/// Returns a metric with its series.
pub(super) fn family(CollectedMetric { metric, samples }: &CollectedMetric) -> MetricFamily {
    let of_sample = |Sample { labels, value }: &Sample| {
        let mut series = series(metric, labels.iter().map(AsRef::as_ref));
        match value {
            SampleValue::Number(number) => set_number(metric.kind, *number, &mut series),
            SampleValue::Histogram(Histogram { buckets, count, sum }) => {
                series.set_histogram(cumulative_histogram(buckets.iter().copied(), *count, *sum));
            }
        }
        series
    };
    let mut exported = empty(metric);
    exported.set_metric(samples.iter().map(of_sample).collect());
    exported
}

/// Returns the type of a metric.
pub(super) fn metric_type(kind: MetricKind) -> MetricType {
    match kind {
        MetricKind::Counter => MetricType::COUNTER,
        MetricKind::Gauge => MetricType::GAUGE,
        MetricKind::Histogram => MetricType::HISTOGRAM,
    }
}

/// Sets the value of a series to a number, as a counter or a gauge.
fn set_number(kind: MetricKind, value: f64, series: &mut proto::Metric) {
    if kind == MetricKind::Counter {
        let mut counter = proto::Counter::default();
        counter.set_value(value);
        series.set_counter(counter);
    } else {
        let mut gauge = proto::Gauge::default();
        gauge.set_value(value);
        series.set_gauge(gauge);
    }
}

/// Returns durations as a histogram.
pub(super) fn histogram(durations: &Durations) -> proto::Histogram {
    let within = BUCKET_BOUNDS_US.iter().zip(durations.bucket_counts);
    let buckets = within.map(|(bound, count)| (*bound as f64 / 1e6, count));
    cumulative_histogram(buckets, durations.count, durations.sum_us as f64 / 1e6)
}

/// Returns a histogram of upper bounds and cumulative counts.
fn cumulative_histogram(within: impl Iterator<Item = (f64, u64)>, count: u64, sum: f64) -> proto::Histogram {
    let bucket = |(bound, count): (f64, u64)| {
        let mut bucket = proto::Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(count);
        bucket
    };
    let mut histogram = proto::Histogram::default();
    histogram.set_bucket(within.map(bucket).collect());
    histogram.set_sample_count(count);
    histogram.set_sample_sum(sum);
    histogram
}

impl Family<u64> {
    /// Returns the series as counters.
    pub(super) fn counters(&self) -> MetricFamily {
        self.collect(self.metric(), |count, series| {
            set_number(MetricKind::Counter, *count as f64, series);
            true
        })
    }
}

impl<V: Default> Family<V> {
    /// Returns the series that have a value, as gauges of a metric with the same labels.
    pub(super) fn gauges(&self, metric: &Metric, value_of: impl Fn(&V) -> Option<f64>) -> MetricFamily {
        self.collect(metric, |value, series| match value_of(value) {
            Some(value) => {
                set_number(MetricKind::Gauge, value, series);
                true
            }
            None => false,
        })
    }
}
