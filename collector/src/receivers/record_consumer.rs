//! What a reader of bodies hands its records to.
//!
//! Readers are pure: they know this trait and nothing of the pipeline, so they are tested without it.

use crate::Limits;
use crate::pipeline::{CallPoint, RecordSink};
use classifier::telemetry::{LogRecord, Resource, Span};

/// Takes records one by one. `number` is a record's place in its body, from 1: the line, the element of the
/// array, the span or log record.
pub(crate) trait RecordConsumer {
    /// The bounds in force.
    fn limits(&self) -> &Limits;

    /// A line of an envelope log.
    fn line(&mut self, number: u64, line: &[u8]);

    /// A span.
    fn span(&mut self, span: &Span<'_>, resource: &Resource<'_>);

    /// A log record.
    fn log(&mut self, record: &LogRecord<'_>, resource: &Resource<'_>);

    /// A data point of a histogram of calls.
    fn call_point(&mut self, point: &CallPoint<'_>, resource: &Resource<'_>);

    /// Data points of metrics that tell of no calls.
    fn ignore_points(&mut self, count: u64);

    /// A record that cannot be read. `reason` is a word of a closed list, `sample` is what came.
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
