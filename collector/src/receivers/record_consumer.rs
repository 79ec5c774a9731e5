//! The trait that receives the records that body readers decode.
//!
//! Readers are pure: they depend on this trait and not on the pipeline, so they are tested without it.

use crate::Limits;
use crate::pipeline::{CallPoint, RecordSink};
use classifier::telemetry::{LogRecord, Resource, Span};

/// Receives records one by one. `number` is the position of a record in its body, from 1: the line, the element of the
/// array, the span or the log record.
pub(crate) trait RecordConsumer {
    /// Returns the limits in force.
    fn limits(&self) -> &Limits;

    /// Receives a line of an envelope log.
    fn line(&mut self, number: u64, line: &[u8]);

    /// Receives a span.
    fn span(&mut self, span: &Span<'_>, resource: &Resource<'_>);

    /// Receives a log record.
    fn log(&mut self, record: &LogRecord<'_>, resource: &Resource<'_>);

    /// Receives a data point of a histogram of call durations.
    fn call_point(&mut self, point: &CallPoint<'_>, resource: &Resource<'_>);

    /// Counts data points of metrics that do not measure calls.
    fn ignore_points(&mut self, count: u64);

    /// Receives a record that cannot be decoded. `reason` is a word of a closed list; `sample` is the raw text of the
    /// record.
    fn reject(&mut self, number: u64, reason: &'static str, detail: String, sample: &[u8]);
}

impl RecordConsumer for RecordSink<'_> {
    fn limits(&self) -> &Limits {
        self.limits()
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        self.push_line(number, line);
    }

    fn span(&mut self, span: &Span<'_>, resource: &Resource<'_>) {
        self.push_span(span, resource);
    }

    fn log(&mut self, record: &LogRecord<'_>, resource: &Resource<'_>) {
        self.push_log(record, resource);
    }

    fn call_point(&mut self, point: &CallPoint<'_>, resource: &Resource<'_>) {
        self.push_call_point(point, resource);
    }

    fn ignore_points(&mut self, count: u64) {
        self.ignore_points(count);
    }

    fn reject(&mut self, number: u64, reason: &'static str, detail: String, sample: &[u8]) {
        self.reject(number, reason, &detail, sample);
    }
}

#[cfg(test)]
pub(crate) mod test_consumer;
