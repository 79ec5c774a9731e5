//! Decodes metrics from protobuf: histograms of call durations are read, data points of all other metrics are counted.

use super::any_value::ValueReader;
use super::call_histogram::{self, CallMetric};
use super::export_request::{self, RecordReader};
use super::protobuf::{BodySlice, DecodeError, FieldValue, MessageReader, wrong_type};
use super::protobuf_value::text;
use crate::Rejection;
use crate::pipeline::{CallDurations, CallPoint};
use crate::receivers::record_consumer::RecordConsumer;
use classifier::telemetry::{Attribute, Resource};
use std::borrow::Cow;

/// Passes every data point of `body` to `records`.
pub(super) fn read(body: &[u8], records: &mut impl RecordConsumer) -> Result<(), Rejection> {
    export_request::read(body, Metrics::default(), records)
}

/// The lists of one data point, which are reused for the next.
#[derive(Default)]
struct Metrics<'a> {
    attributes: Vec<Attribute<'a>>,
    counts: Vec<u64>,
    bounds: Vec<f64>,
}

/// The data of one metric: its kind, as a field number, and its bytes.
#[derive(Clone, Copy)]
struct Data<'a> {
    kind: u64,
    slice: BodySlice<'a>,
}

const HISTOGRAM: u64 = 9;
const EXPONENTIAL_HISTOGRAM: u64 = 10;

impl<'a> RecordReader<'a> for Metrics<'a> {
    fn read(
        &mut self,
        slice: BodySlice<'a>,
        resource: &Resource<'_>,
        values: &mut ValueReader,
        records: &mut impl RecordConsumer,
    ) -> Result<(), DecodeError> {
        let (mut name, mut unit) = (Cow::Borrowed(""), Cow::Borrowed(""));
        let mut data = None;
        let mut message = MessageReader::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, FieldValue::Bytes(slice)) => name = text(slice),
                (3, FieldValue::Bytes(slice)) => unit = text(slice),
                (5 | 7 | HISTOGRAM..=11, FieldValue::Bytes(slice)) => {
                    data = Some(Data { kind: number, slice });
                }
                (1 | 3 | 5 | 7 | HISTOGRAM..=11, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        let Some(data) = data else { return Ok(()) };
        match call_histogram::metric(&name, &unit) {
            Some(metric) if matches!(data.kind, HISTOGRAM | EXPONENTIAL_HISTOGRAM) => {
                self.histogram(metric, data, resource, values, records)
            }
            _ => count_points(data.slice, records),
        }
    }
}

/// Counts the data points of a metric that is not read; every kind of metric has them in field 1.
fn count_points(slice: BodySlice<'_>, records: &mut impl RecordConsumer) -> Result<(), DecodeError> {
    let mut message = MessageReader::new(slice);
    let mut points = 0;
    while let Some((number, _)) = message.next()? {
        points += u64::from(number == 1);
    }
    records.ignore_points(points);
    Ok(())
}

impl<'a> Metrics<'a> {
    fn histogram(
        &mut self,
        metric: CallMetric,
        data: Data<'a>,
        resource: &Resource<'_>,
        values: &mut ValueReader,
        records: &mut impl RecordConsumer,
    ) -> Result<(), DecodeError> {
        let mut is_cumulative = false;
        let mut message = MessageReader::new(data.slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (2, FieldValue::Varint(temporality)) => {
                    is_cumulative = call_histogram::is_cumulative(temporality.cast_signed());
                }
                (2, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        let mut message = MessageReader::new(data.slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, FieldValue::Bytes(slice)) => {
                    self.attributes.clear();
                    values.begin();
                    let point = if data.kind == HISTOGRAM {
                        self.point(metric, slice, values)?
                    } else {
                        self.exponential_point(metric, slice, values)?
                    };
                    let point = CallPoint { is_cumulative, attributes: &self.attributes, ..point };
                    records.call_point(&point, resource);
                }
                (1, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Decodes a `HistogramDataPoint`, and its attributes to `self.attributes`.
    fn point(
        &mut self,
        metric: CallMetric,
        slice: BodySlice<'a>,
        values: &mut ValueReader,
    ) -> Result<CallPoint<'static>, DecodeError> {
        let mut point = metric.empty_point();
        self.counts.clear();
        self.bounds.clear();
        let mut message = MessageReader::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (2, FieldValue::Fixed64(time)) => point.start_ns = time,
                (3, FieldValue::Fixed64(time)) => point.time_ns = time,
                (4, FieldValue::Fixed64(count)) => point.durations.calls = count,
                (5, FieldValue::Fixed64(bits)) => {
                    point.durations.sum_us = metric.micros(f64::from_bits(bits));
                }
                (6, FieldValue::Bytes(slice)) => {
                    fixed64s(slice, |count| call_histogram::keep(&mut self.counts, count));
                }
                (6, FieldValue::Fixed64(count)) => call_histogram::keep(&mut self.counts, count),
                (7, FieldValue::Bytes(slice)) => {
                    fixed64s(slice, |bits| call_histogram::keep(&mut self.bounds, f64::from_bits(bits)));
                }
                (7, FieldValue::Fixed64(bits)) => {
                    call_histogram::keep(&mut self.bounds, f64::from_bits(bits));
                }
                (9, FieldValue::Bytes(slice)) => values.push(slice, &mut self.attributes)?,
                (2..=7 | 9, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        metric.add_buckets(&mut point.durations, &self.counts, &self.bounds);
        Ok(point)
    }

    /// Decodes an `ExponentialHistogramDataPoint`, and its attributes to `self.attributes`.
    fn exponential_point(
        &mut self,
        metric: CallMetric,
        slice: BodySlice<'a>,
        values: &mut ValueReader,
    ) -> Result<CallPoint<'static>, DecodeError> {
        let mut point = metric.empty_point();
        let (mut scale, mut zeros, mut positive) = (0, 0, None);
        let mut message = MessageReader::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, FieldValue::Bytes(slice)) => values.push(slice, &mut self.attributes)?,
                (2, FieldValue::Fixed64(time)) => point.start_ns = time,
                (3, FieldValue::Fixed64(time)) => point.time_ns = time,
                (4, FieldValue::Fixed64(count)) => point.durations.calls = count,
                (5, FieldValue::Fixed64(bits)) => {
                    point.durations.sum_us = metric.micros(f64::from_bits(bits));
                }
                (6, FieldValue::Varint(number)) => scale = zigzag(number),
                (7, FieldValue::Fixed64(count)) => zeros = count,
                (8, FieldValue::Bytes(slice)) => positive = Some(slice),
                (1..=8, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        point.durations.add_bucket(0.0, zeros);
        if let Some(positive) = positive {
            self.exponential_buckets(metric, positive, scale, &mut point.durations)?;
        }
        Ok(point)
    }

    fn exponential_buckets(
        &mut self,
        metric: CallMetric,
        slice: BodySlice<'a>,
        scale: i64,
        durations: &mut CallDurations,
    ) -> Result<(), DecodeError> {
        self.counts.clear();
        let mut offset = 0;
        let mut message = MessageReader::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, FieldValue::Varint(number)) => offset = zigzag(number),
                (2, FieldValue::Bytes(slice)) => varints(slice, &mut self.counts)?,
                (2, FieldValue::Varint(count)) => call_histogram::keep(&mut self.counts, count),
                (1 | 2, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        metric.add_exponential_buckets(durations, scale, offset, &self.counts);
        Ok(())
    }
}

/// Calls `keep` for each number of a packed field of eight-byte numbers.
fn fixed64s(slice: BodySlice<'_>, keep: impl FnMut(u64)) {
    slice.bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).for_each(keep);
}

/// Adds the numbers of a packed field of varints to `list`.
fn varints(slice: BodySlice<'_>, list: &mut Vec<u64>) -> Result<(), DecodeError> {
    let mut numbers = MessageReader::new(slice);
    while let Some(number) = numbers.next_packed()? {
        call_histogram::keep(list, number);
    }
    Ok(())
}

/// Decodes a signed number in protobuf's zigzag encoding.
fn zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
mod tests;
