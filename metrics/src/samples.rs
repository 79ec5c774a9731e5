//! The values of metrics at one moment.

use crate::Metric;
use std::borrow::Cow;

/// A part of the program that has metrics.
pub trait MetricSource: Send + Sync {
    /// Returns the declarations of its metrics.
    fn metrics(&self) -> &'static [Metric];

    /// Adds the present values.
    fn collect(&self, samples: &mut Samples);
}

/// The values of metrics at one moment.
#[derive(Debug, Default)]
pub struct Samples(Vec<CollectedMetric>);

/// One metric with its values.
#[derive(Debug)]
pub struct CollectedMetric {
    /// The metric.
    pub metric: Metric,
    /// Its values: one for each combination of label values.
    pub samples: Vec<Sample>,
}

/// One value of a metric.
#[derive(Debug)]
pub struct Sample {
    /// The values of the labels, in their order.
    pub labels: Vec<Cow<'static, str>>,
    /// The value.
    pub value: SampleValue,
}

/// The value of a sample.
#[derive(Debug)]
pub enum SampleValue {
    /// Of a counter or a gauge.
    Number(f64),
    /// Of a histogram.
    Histogram(Histogram),
}

/// A distribution of values.
#[derive(Debug, Default, PartialEq)]
pub struct Histogram {
    /// Upper bounds, each with the number of values up to it.
    pub buckets: Vec<(f64, u64)>,
    /// The number of all values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

impl Samples {
    /// Adds a metric without labels.
    pub fn number(&mut self, metric: Metric, value: f64) {
        self.push(metric, vec![Sample { labels: Vec::new(), value: SampleValue::Number(value) }]);
    }

    /// Adds a count without labels.
    pub fn count(&mut self, metric: Metric, count: u64) {
        self.number(metric, to_f64(count));
    }

    /// Adds a gauge that is 1 while something holds, and else 0.
    pub fn flag(&mut self, metric: Metric, holds: bool) {
        self.count(metric, holds.into());
    }

    /// Adds counts by one label.
    pub fn counts(&mut self, metric: Metric, counts: impl IntoIterator<Item = (&'static str, u64)>) {
        self.counts_by(metric, counts.into_iter().map(|(label, count)| ([label], count)));
    }

    /// Adds counts by several labels.
    pub fn counts_by<const LABELS: usize>(
        &mut self,
        metric: Metric,
        counts: impl IntoIterator<Item = ([&'static str; LABELS], u64)>,
    ) {
        let samples = counts.into_iter().map(|(labels, count)| Sample {
            labels: labels.map(Cow::Borrowed).into(),
            value: SampleValue::Number(to_f64(count)),
        });
        self.push(metric, samples.collect());
    }

    /// Adds distributions by labels.
    pub fn histograms<const LABELS: usize>(
        &mut self,
        metric: Metric,
        histograms: impl IntoIterator<Item = ([&'static str; LABELS], Histogram)>,
    ) {
        let samples = histograms.into_iter().map(|(labels, histogram)| Sample {
            labels: labels.map(Cow::Borrowed).into(),
            value: SampleValue::Histogram(histogram),
        });
        self.push(metric, samples.collect());
    }

    /// Adds a metric with samples that are ready.
    pub fn push(&mut self, metric: Metric, samples: Vec<Sample>) {
        self.0.push(CollectedMetric { metric, samples });
    }

    /// Returns what was added, in its order.
    #[must_use]
    pub fn metrics(&self) -> &[CollectedMetric] {
        &self.0
    }
}

/// Converts a count to a float, which is exact up to 2^53.
fn to_f64(count: u64) -> f64 {
    count as f64
}
