//! The span that traces the processing of one request, for operators who trace the collector itself.
//!
//! Invariants: it carries only numbers and words of closed lists, never text of the sender; and while no subscriber
//! wants it, it costs one check of a flag.

use super::{IngestResponse, Request};
use crate::rejection::Rejection;
use tracing::Span;
use tracing::field::Empty;

/// The target of these spans. Their level is TRACE, so logs leave them out.
pub const TARGET: &str = "collector::self_tracing";

/// Creates the span of a request.
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

/// Records the outcome of the request in its span.
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
            // A mistake of the sender is not an error of the collector.
            if reason.http_status() >= 500 {
                span.record("otel.status_code", "ERROR");
            }
        }
    }
}

/// Converts a count to a signed integer, because trace attributes are signed and unsigned ones would be sent as
/// strings.
fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
