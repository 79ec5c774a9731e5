//! The span of our own that tells of one request: for whoever traces this collector.
//!
//! What always holds: it carries numbers and words of closed lists, never a text of the sender's; and while
//! nobody asks for it, it costs the look at one flag.

use super::{Answer, Request};
use crate::refusal::Refusal;
use tracing::Span;
use tracing::field::Empty;

/// The target under which these spans are asked for. At the level of traces: logs leave them out.
pub const TARGET: &str = "collector::own_spans";

/// Begins the span of a request.
pub(super) fn of(request: &Request) -> Span {
    tracing::trace_span!(
        target: TARGET,
        "ingest",
        otel.kind = "server",
        otel.status_code = Empty,
        source = request.source.as_str(),
        bytes = signed(request.body.len() as u64),
        accepted = Empty,
        events = Empty,
        rejected = Empty,
        outcome = Empty,
        "error.type" = Empty,
    )
}

/// Says what became of the request.
pub(super) fn finish(span: &Span, outcome: &Result<Answer, Refusal>) {
    match outcome {
        Ok(answer) => {
            span.record("accepted", signed(answer.accepted));
            span.record("events", signed(answer.events));
            span.record("rejected", signed(answer.rejected_count));
            span.record("outcome", "taken");
        }
        Err(refusal) => {
            let cause = refusal.cause;
            span.record("outcome", "refused");
            span.record("error.type", cause.as_str());
            // What a sender got wrong is no failure of ours.
            if cause.http_status() >= 500 {
                span.record("otel.status_code", "ERROR");
            }
        }
    }
}

/// Numbers of traces are signed; others would be sent as texts.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
