//! Packs the signals of the world into request bodies: lines, spans and log records separately.

use bytes::Bytes;
use collector::receivers::envelopes::LINES;
use demo::{Signal, SignalBody};

/// The kind of signals in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Lines,
    Spans,
    Logs,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Lines, Self::Spans, Self::Logs];

    /// Returns the path of such a request over HTTP.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Lines => "/v1/envelopes",
            Self::Spans => "/v1/traces",
            Self::Logs => "/v1/logs",
        }
    }

    /// Returns the path of such a request over gRPC, or `None` for lines.
    pub(super) const fn grpc_path(self) -> Option<&'static str> {
        match self {
            Self::Lines => None,
            Self::Spans => Some("/opentelemetry.proto.collector.trace.v1.TraceService/Export"),
            Self::Logs => Some("/opentelemetry.proto.collector.logs.v1.LogsService/Export"),
        }
    }

    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Lines => LINES,
            Self::Spans | Self::Logs => "application/x-protobuf",
        }
    }
}

/// The body of a request.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) kind: Kind,
    pub(super) body: Bytes,
}

/// Packs signals into request bodies. A body is closed once it has `most_bytes` bytes or more.
pub(super) fn pack(signals: Vec<Signal>, most_bytes: usize) -> Vec<Batch> {
    let mut open: [Vec<u8>; 3] = Default::default();
    let mut batches = Vec::new();
    for signal in signals {
        let (kind, bytes) = match signal.body {
            SignalBody::Line(line) => (Kind::Lines, format!("{line}\n").into_bytes()),
            SignalBody::Spans(bytes) => (Kind::Spans, bytes),
            SignalBody::Logs(bytes) => (Kind::Logs, bytes),
        };
        let body = &mut open[kind as usize];
        body.extend(bytes);
        if body.len() >= most_bytes {
            batches.push(Batch { kind, body: Bytes::from(std::mem::take(body)) });
        }
    }
    let rest = Kind::ALL.into_iter().zip(open).filter(|(_, body)| !body.is_empty());
    batches.extend(rest.map(|(kind, body)| Batch { kind, body: Bytes::from(body) }));
    batches
}
