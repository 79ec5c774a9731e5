//! OTLP: from bytes to the views of [`taxonomy::signal`], and the words of its answers.
//!
//! Only this folder knows OTLP's field numbers and names. Both readers, of the wire format and of JSON, are
//! written by hand: they borrow from the body, keep no request in memory, and a record that cannot be read
//! costs only itself.

mod events;
mod json;
mod lists;
mod logs;
mod status;
mod traces;
mod value;
mod wire;

#[cfg(test)]
pub(crate) mod sample;

use crate::pipeline::{ReadBody, Reading};
use crate::{Refusal, Source};
pub(crate) use status::{grpc_status, status_json, status_protobuf, success_json, success_protobuf};

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Spans.
    Traces,
    /// Log records.
    Logs,
}

impl Signal {
    pub(crate) const fn source(self) -> Source {
        match self {
            Self::Traces => Source::OtlpTraces,
            Self::Logs => Source::OtlpLogs,
        }
    }

    /// Reads a body in the wire format.
    pub(crate) fn read_protobuf(self) -> ReadBody {
        match self {
            Self::Traces => read_traces,
            Self::Logs => read_logs,
        }
    }

    /// Reads a body in JSON.
    pub(crate) fn read_json(self) -> ReadBody {
        match self {
            Self::Traces => read_traces_json,
            Self::Logs => read_logs_json,
        }
    }
}

/// The word that rejected records are counted by.
const MALFORMED: &str = "malformed";

fn read_traces(body: &[u8], reading: &mut Reading<'_>) -> Result<(), Refusal> {
    traces::read(body, reading)
}

fn read_logs(body: &[u8], reading: &mut Reading<'_>) -> Result<(), Refusal> {
    logs::read(body, reading)
}

fn read_traces_json(body: &[u8], reading: &mut Reading<'_>) -> Result<(), Refusal> {
    json::read_traces(body, reading)
}

fn read_logs_json(body: &[u8], reading: &mut Reading<'_>) -> Result<(), Refusal> {
    json::read_logs(body, reading)
}

/// An id of `N` bytes; anything else, or all zeros, is none.
fn id<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let id: [u8; N] = bytes.try_into().ok()?;
    (id != [0; N]).then_some(id)
}

fn span_kind(number: i64) -> taxonomy::signal::SpanKind {
    use taxonomy::signal::SpanKind;
    match number {
        1 => SpanKind::Internal,
        2 => SpanKind::Server,
        3 => SpanKind::Client,
        4 => SpanKind::Producer,
        5 => SpanKind::Consumer,
        _ => SpanKind::Unspecified,
    }
}

fn span_status(number: i64) -> taxonomy::signal::SpanStatus {
    use taxonomy::signal::SpanStatus;
    match number {
        1 => SpanStatus::Ok,
        2 => SpanStatus::Error,
        _ => SpanStatus::Unset,
    }
}

/// 1 to 24; what is not a severity is none.
fn severity(number: i64) -> i32 {
    i32::try_from(number).ok().filter(|number| (1..=24).contains(number)).unwrap_or(0)
}
