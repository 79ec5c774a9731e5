//! The span of our own that tells of one request: for whoever traces this collector.
//!
//! What always holds: it carries numbers and words of closed lists, never a text of the sender's; and while
//! nobody asks for it, it costs the look at one flag.

use super::{IngestResponse, Request};
use crate::rejection::Rejection;
use tracing::Span;
use tracing::field::Empty;

/// The target under which these spans are asked for. At the level of traces: logs leave them out.
pub const TARGET: &str = "collector::self_tracing";

/// Begins the span of a request.
pub(super) fn request_span(request: &Request) -> Span {
    tracing::trace_span!(
        target: TARGET,
        "ingest",
        otel.kind = "server",
        otel.status_code = Empty,
        source = request.source.as_str(),
        bytes = to_i64(request.body.len() as u64),
        accepted = Empty,
        events = Empty,
        rejected = Empty,
        outcome = Empty,
        "error.type" = Empty,
    )
}

/// Says what became of the request.
pub(super) fn record_outcome(span: &Span, outcome: &Result<IngestResponse, Rejection>) {
    match outcome {
        Ok(response) => {
            span.record("accepted", to_i64(response.accepted));
            span.record("events", to_i64(response.events));
            span.record("rejected", to_i64(response.rejected_count));
            span.record("outcome", "accepted");
        }
        Err(rejection) => {
            let reason = rejection.reason;
            span.record("outcome", "rejected");
            span.record("error.type", reason.as_str());
            // What a sender got wrong is no failure of ours.
            if reason.http_status() >= 500 {
                span.record("otel.status_code", "ERROR");
            }
        }
    }
}

/// Numbers of traces are signed; others would be sent as texts.
fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
