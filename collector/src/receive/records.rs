//! What a reader of bodies hands its records to.
//!
//! Readers are pure: they know this trait and nothing of the pipeline, so they are tested without it.

use crate::Limits;
use crate::pipeline::Reading;
use taxonomy::signal::{LogRecord, Resource, Span};

/// Takes records one by one. `number` is a record's place in its body, from 1: the line, the element of the
/// array, the span or log record.
pub(crate) trait Records {
    /// The bounds in force.
    fn limits(&self) -> &Limits;

    /// A line of an envelope log.
    fn line(&mut self, number: u64, line: &[u8]);

    /// A span.
    fn span(&mut self, span: &Span<'_>, resource: &Resource<'_>);

    /// A log record.
    fn log(&mut self, record: &LogRecord<'_>, resource: &Resource<'_>);

    /// A record that cannot be read. `reason` is a word of a closed list, `sample` is what came.
    fn reject(&mut self, number: u64, reason: &'static str, detail: String, sample: &[u8]);
}

impl Records for Reading<'_> {
    fn limits(&self) -> &Limits {
        self.limits()
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        self.line(number, line);
    }

    fn span(&mut self, span: &Span<'_>, resource: &Resource<'_>) {
        self.span(span, resource);
    }

    fn log(&mut self, record: &LogRecord<'_>, resource: &Resource<'_>) {
        self.log(record, resource);
    }

    fn reject(&mut self, number: u64, reason: &'static str, detail: String, sample: &[u8]) {
        self.reject(number, reason, &detail, sample);
    }
}

#[cfg(test)]
pub(crate) mod recorded;
