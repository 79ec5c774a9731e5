//! OTLP: decodes requests to the views of [`classifier::telemetry`], and encodes responses.
//!
//! Only this directory contains OTLP's field numbers and names. Both decoders, of protobuf and of JSON, are written by
//! hand: they borrow from the body, never hold a decoded request in memory, and reject only the records that cannot be
//! decoded.

mod any_value;
mod call_histogram;
mod export_request;
mod json;
mod logs;
mod metrics;
mod protobuf;
mod protobuf_value;
mod response;
mod span_events;
mod traces;

#[cfg(test)]
pub(crate) mod test_data;

use crate::pipeline::{BodyReader, RecordSink};
use crate::{Rejection, Source};
pub(crate) use response::{grpc_status, status_json, status_protobuf, success_json, success_protobuf};

/// The kind of telemetry that a request contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Spans.
    Traces,
    /// Log records.
    Logs,
    /// Metrics.
    Metrics,
}

impl Signal {
    pub(crate) const fn source(self) -> Source {
        match self {
            Self::Traces => Source::OtlpTraces,
            Self::Logs => Source::OtlpLogs,
            Self::Metrics => Source::OtlpMetrics,
        }
    }

    /// Returns the reader of protobuf bodies.
    pub(crate) fn read_protobuf(self) -> BodyReader {
        match self {
            Self::Traces => read_traces,
            Self::Logs => read_logs,
            Self::Metrics => read_metrics,
        }
    }

    /// Returns the reader of JSON bodies.
    pub(crate) fn read_json(self) -> BodyReader {
        match self {
            Self::Traces => read_traces_json,
            Self::Logs => read_logs_json,
            Self::Metrics => read_metrics_json,
        }
    }
}

/// The reason under which rejected records are counted.
const MALFORMED: &str = "malformed";

fn read_traces(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    traces::read(body, sink)
}

fn read_logs(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    logs::read(body, sink)
}

fn read_metrics(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    metrics::read(body, sink)
}

fn read_traces_json(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    json::read_traces(body, sink)
}

fn read_logs_json(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    json::read_logs(body, sink)
}

fn read_metrics_json(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    json::read_metrics(body, sink)
}

/// Returns an id of `N` bytes; `None` if the length differs or all bytes are zero.
fn id<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let id: [u8; N] = bytes.try_into().ok()?;
    (id != [0; N]).then_some(id)
}

fn span_kind(number: i64) -> classifier::telemetry::SpanKind {
    use classifier::telemetry::SpanKind;
    match number {
        1 => SpanKind::Internal,
        2 => SpanKind::Server,
        3 => SpanKind::Client,
        4 => SpanKind::Producer,
        5 => SpanKind::Consumer,
        _ => SpanKind::Unspecified,
    }
}

fn span_status(number: i64) -> classifier::telemetry::SpanStatus {
    use classifier::telemetry::SpanStatus;
    match number {
        1 => SpanStatus::Ok,
        2 => SpanStatus::Error,
        _ => SpanStatus::Unset,
    }
}

/// Returns a severity number of 1 to 24; 0 for any other number.
fn severity(number: i64) -> i32 {
    i32::try_from(number).ok().filter(|number| (1..=24).contains(number)).unwrap_or(0)
}
