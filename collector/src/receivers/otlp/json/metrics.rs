//! Decodes metrics of OTLP/JSON: histograms of call durations are read, data points of all other metrics are counted.

use super::scalar::{JsonResult, Scalar};
use super::schema::{Attributes, CappedList, each};
use super::{RequestReader, choice, text, time};
use crate::pipeline::CallPoint;
use crate::receivers::otlp::call_histogram::{self, CallMetric};
use crate::receivers::record_consumer::RecordConsumer;
use classifier::telemetry::Resource;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

const TEMPORALITIES: [&str; 3] = ["UNSPECIFIED", "DELTA", "CUMULATIVE"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetricFields<'a> {
    #[serde(borrow)]
    name: Option<Scalar<'a>>,
    #[serde(borrow)]
    unit: Option<Scalar<'a>>,
    #[serde(borrow)]
    gauge: Option<DataFields<'a>>,
    #[serde(borrow)]
    sum: Option<DataFields<'a>>,
    #[serde(borrow)]
    histogram: Option<DataFields<'a>>,
    #[serde(borrow)]
    exponential_histogram: Option<DataFields<'a>>,
    #[serde(borrow)]
    summary: Option<DataFields<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DataFields<'a> {
    #[serde(borrow)]
    data_points: Option<&'a RawValue>,
    #[serde(borrow)]
    aggregation_temporality: Option<Scalar<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PointFields<'a> {
    #[serde(borrow)]
    attributes: Attributes<'a>,
    #[serde(borrow)]
    start_time_unix_nano: Option<Scalar<'a>>,
    #[serde(borrow)]
    time_unix_nano: Option<Scalar<'a>>,
    #[serde(borrow)]
    count: Option<Scalar<'a>>,
    #[serde(borrow)]
    sum: Option<Scalar<'a>>,
    #[serde(borrow)]
    bucket_counts: Option<CappedList<Scalar<'a>>>,
    #[serde(borrow)]
    explicit_bounds: Option<CappedList<Scalar<'a>>>,
    #[serde(borrow)]
    scale: Option<Scalar<'a>>,
    #[serde(borrow)]
    zero_count: Option<Scalar<'a>>,
    #[serde(borrow)]
    positive: Option<BucketFields<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BucketFields<'a> {
    #[serde(borrow)]
    offset: Option<Scalar<'a>>,
    #[serde(borrow)]
    bucket_counts: Option<CappedList<Scalar<'a>>>,
}

impl<'a> RequestReader<'a> {
    /// Passes the data points of one metric to `records`.
    pub(super) fn metric(
        &mut self,
        record: &'a RawValue,
        resource: &Resource<'_>,
        records: &mut impl RecordConsumer,
    ) -> JsonResult<()> {
        let fields: MetricFields<'a> = serde_json::from_str(record.get())?;
        let (name, unit) = (text(fields.name, "name")?, text(fields.unit, "unit")?);
        let metric = call_histogram::metric(&name, &unit);
        for (data, is_histogram) in [
            (fields.histogram, true),
            (fields.exponential_histogram, true),
            (fields.gauge, false),
            (fields.sum, false),
            (fields.summary, false),
        ] {
            let Some(DataFields { data_points: Some(points), aggregation_temporality }) = data else {
                continue;
            };
            let temporality = choice(aggregation_temporality, "aggregationTemporality", temporality_of)?;
            match metric.filter(|_| is_histogram) {
                Some(metric) => each(points, |point: Option<PointFields<'a>>| match point {
                    Some(point) => self.point(metric, temporality, point, resource, records),
                    None => Ok(()),
                })?,
                None => {
                    let mut count = 0;
                    each(points, |_: IgnoredAny| {
                        count += 1;
                        Ok(())
                    })?;
                    records.ignore_points(count);
                }
            }
        }
        Ok(())
    }

    fn point(
        &mut self,
        metric: CallMetric,
        temporality: i64,
        fields: PointFields<'a>,
        resource: &Resource<'_>,
        records: &mut impl RecordConsumer,
    ) -> JsonResult<()> {
        self.values.begin();
        self.read_attributes(fields.attributes)?;
        let mut point = metric.empty_point();
        point.is_cumulative = call_histogram::is_cumulative(temporality);
        point.start_ns = time(fields.start_time_unix_nano, "startTimeUnixNano")?;
        point.time_ns = time(fields.time_unix_nano, "timeUnixNano")?;
        point.durations.calls = time(fields.count, "count")?;
        point.durations.sum_us = metric.micros(fields.sum.map_or(Ok(0.0), |sum| sum.double("sum"))?);
        point.durations.add_bucket(0.0, time(fields.zero_count, "zeroCount")?);
        let bounds = list(fields.explicit_bounds, |bound| bound.double("explicitBounds"))?;
        let counts = list(fields.bucket_counts, |count| count.unsigned("bucketCounts"))?;
        metric.add_buckets(&mut point.durations, &counts, &bounds);
        if let Some(positive) = fields.positive {
            let counts = list(positive.bucket_counts, |count| count.unsigned("positive.bucketCounts"))?;
            let signed = |given: Option<Scalar<'_>>, field| given.map_or(Ok(0), |given| given.signed(field));
            let (scale, offset) =
                (signed(fields.scale, "scale")?, signed(positive.offset, "positive.offset")?);
            metric.add_exponential_buckets(&mut point.durations, scale, offset, &counts);
        }
        records.call_point(&CallPoint { attributes: &self.attributes, ..point }, resource);
        Ok(())
    }
}

fn list<'a, T>(
    given: Option<CappedList<Scalar<'a>>>,
    read: impl Fn(Scalar<'a>) -> JsonResult<T>,
) -> JsonResult<Vec<T>> {
    given.into_iter().flat_map(|list| list.0).map(read).collect()
}

fn temporality_of(name: &str) -> Option<i64> {
    super::place(name.strip_prefix("AGGREGATION_TEMPORALITY_")?, &TEMPORALITIES)
}
