//! A [`RecordConsumer`] for tests, which stores everything that a reader passes to it.

use super::RecordConsumer;
use crate::Limits;
use crate::pipeline::CallPoint;
use classifier::telemetry::{LogRecord, Resource, Span};

#[derive(Debug, Default, PartialEq)]
pub(crate) struct TestConsumer {
    pub(crate) limits: Limits,
    pub(crate) lines: Vec<(u64, String)>,
    /// Spans, log records and call points with their resource, in `Debug` format, which shows every field of the view.
    pub(crate) signals: Vec<String>,
    /// The number of data points that do not measure calls.
    pub(crate) ignored: u64,
    pub(crate) rejected: Vec<(u64, &'static str, String)>,
}

impl TestConsumer {
    pub(crate) fn with(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }
}

impl RecordConsumer for TestConsumer {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        self.lines.push((number, String::from_utf8_lossy(line).into_owned()));
    }

    fn span(&mut self, span: &Span<'_>, resource: &Resource<'_>) {
        self.signals.push(format!("{span:#?} {resource:#?}"));
    }

    fn log(&mut self, record: &LogRecord<'_>, resource: &Resource<'_>) {
        self.signals.push(format!("{record:#?} {resource:#?}"));
    }

    fn call_point(&mut self, point: &CallPoint<'_>, resource: &Resource<'_>) {
        self.signals.push(format!("{point:#?} {resource:#?}"));
    }

    fn ignore_points(&mut self, count: u64) {
        self.ignored += count;
    }

    fn reject(&mut self, number: u64, reason: &'static str, detail: String, _sample: &[u8]) {
        self.rejected.push((number, reason, detail));
    }
}
