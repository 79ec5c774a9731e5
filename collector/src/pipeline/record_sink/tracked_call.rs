//! Spans and log records that are part of a tool call: how they are counted, and how their reports are stored.

use super::RowSink;
use crate::pipeline::call_tracker::{
    CallRef, CallReport, Corrections, Counting, Side, Sighting, SpanFacts, span_key,
};
use crate::pipeline::identities::{SpanIds, low_64_bits};
use crate::source::Source;
use classifier::telemetry::SpanKind;
use classifier::{Call, Event};
use store::rows::Relation;
use xxhash_rust::xxh3::xxh3_64;

/// A tool call, and the span that reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrackedCall {
    call: CallRef,
    side: Side,
    span: u64,
    /// True if the span has no parent and names no operation, so that only its message shows what it belongs to.
    is_stray: bool,
}

impl RowSink<'_> {
    /// Finds the call that a span is a part of.
    pub(super) fn track_call(&mut self, operation: Option<&str>, side: SpanKind) {
        let Some(ids) = self.span_ids else { return };
        let SpanIds { trace_id, span_id, parent_span_id, .. } = ids;
        let layer = ids.layer.rotate_left(1) ^ side as u64;
        let side = Side::of(side.as_str());
        let facts = SpanFacts { trace_id, span_id, parent_span_id, operation, layer, side };
        let (call, corrections) = self.shared.call_reports.place(&facts, self.arrival);
        let span = span_key(xxh3_64(&trace_id), &span_id);
        let is_stray = parent_span_id.is_none() && operation.is_none();
        self.call = Some(TrackedCall { call, side, span, is_stray });
        self.correct(&corrections, call);
    }

    /// Counts a call that other spans may report, too.
    pub(super) fn count_tracked(&mut self, tracked: TrackedCall, call: &Call<'_>) {
        let counted = CallReport {
            side: Side::of(call.span_kind),
            outcome: call.outcome,
            service: self.span_ids.map_or(0, |ids| ids.service),
            counted_at: self.traffic.counted_at(call, &self.shared.traffic_names),
        };
        let Counting { outcome, corrections } =
            self.shared.call_reports.count(tracked.call, tracked.span, &counted);
        self.correct(&corrections, tracked.call);
        let Some(outcome) = outcome else {
            self.counts.duplicates += 1;
            return;
        };
        self.batch.reported_calls.push(tracked.call);
        self.batch.bytes += size_of::<CallRef>();
        self.count_call(&Call { outcome, ..*call });
    }

    /// Counts failures of calls that were counted as successes.
    fn correct(&mut self, corrections: &Corrections, call: CallRef) {
        for correction in corrections.iter().flatten() {
            self.traffic.add_late_failure(correction, &self.shared.traffic_names);
            self.batch.reported_calls.push(call);
            self.batch.bytes += size_of::<CallRef>();
        }
    }

    /// Stores a report of a failure that other spans or log records may have reported, too.
    pub(super) fn store_report(&mut self, tracked: TrackedCall, event: &Event<'_>, known: usize) {
        let shared = self.shared;
        self.batch.reported_calls.push(tracked.call);
        self.batch.bytes += size_of::<CallRef>();
        if let Some(twin) = self.find_other_side(tracked, event) {
            self.batch.reported_calls.push(twin);
            self.batch.bytes += size_of::<CallRef>();
        }
        if let Some(earlier) = self.repeated_words(tracked, event) {
            return self.store_related(event, Relation::DuplicateOf(earlier), known);
        }
        // Each log record is a reporter of its own.
        let reporter = match self.source {
            Source::OtlpLogs => low_64_bits(event.event_id),
            _ => tracked.span,
        };
        shared.call_reports.relate(tracked.call, reporter, event, |event, relation| {
            if let (Relation::Primary, Some(message)) = (relation, event.message.as_deref()) {
                let service = event.context.service.as_deref();
                shared.call_reports.remember_words(service, message, event.event_id, self.arrival);
            }
            self.store_related(event, relation, known);
        });
    }

    /// Returns the failure with the same message that the report of a stray span duplicates.
    fn repeated_words(&self, tracked: TrackedCall, event: &Event<'_>) -> Option<u128> {
        let message = event.message.as_deref().filter(|_| tracked.is_stray)?;
        if self.shared.call_reports.best_report(tracked.call).is_some() {
            return None;
        }
        self.shared.call_reports.take_words(event.context.service.as_deref(), message)
    }

    /// Looks for the report of the other side of the call, if that is in another trace.
    fn find_other_side(&self, tracked: TrackedCall, event: &Event<'_>) -> Option<CallRef> {
        let ids = self.span_ids.filter(|_| self.source == Source::OtlpTraces)?;
        let SpanIds { service, start_ns, end_ns, .. } = ids;
        let sighting = Sighting { call: tracked.call, side: tracked.side, service, start_ns, end_ns };
        self.shared.call_reports.find_other_side(sighting, event, self.arrival)
    }

    /// Returns the call of the span that a log record belongs to, if that span was seen.
    pub(super) fn call_of_log(&self) -> Option<TrackedCall> {
        let ids = self.span_ids.filter(|_| self.source == Source::OtlpLogs)?;
        let SpanIds { trace_id, span_id, .. } = ids;
        let span = span_key(xxh3_64(&trace_id), &span_id);
        let call = self.shared.call_reports.find(&trace_id, &span_id)?;
        Some(TrackedCall { call, side: Side::Answering, span, is_stray: false })
    }

    /// Registers the failure of a log record, so that its span finds it.
    pub(super) fn expect_span(&mut self, event: &Event<'_>) {
        let Some(ids) = self.span_ids.filter(|_| self.source == Source::OtlpLogs) else { return };
        let reports = &self.shared.call_reports;
        let call = reports.expect(&ids.trace_id, &ids.span_id, self.arrival);
        let reporter = low_64_bits(event.event_id);
        reports.relate(call, reporter, event, |_, _| ());
        self.batch.reported_calls.push(call);
        self.batch.bytes += size_of::<CallRef>();
    }
}
