//! The sink for what the classifier finds in one record: turns events into rows and calls into sums, without what was
//! sent or counted before.

use super::batch::Batch;
use super::call_points::CallDurations;
use super::call_tracker::{CallRef, SpanFacts, operation_key, span_key};
use super::coalesce::{self, Coalescer, Placement};
use super::identities::{LOG_SIGNAL, SPAN_SIGNAL, SpanIds, low_64_bits, report_identity};
use super::traffic::Traffic;
use super::{Shared, reports, row_size};
use crate::counters::RequestCounts;
use crate::source::Source;
use classifier::telemetry::SpanKind;
use classifier::{Call, Category, Event, Sink, TimeSource, UnrecognizedReason};
use store::rows::{EventRow, Relation};
use xxhash_rust::xxh3::xxh3_64;

/// The keys by which a duplicate of a span or log record is recognized.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DedupKeys {
    /// The identity of the span that it is or belongs to.
    pub(super) span: Option<u128>,
    /// The identity of its calls, which are counted once.
    pub(super) call: Option<u64>,
}

/// The part of a tool call that a span is.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallPart {
    /// The span is no part of a tool call.
    None,
    /// The call is looked up when it is needed, together with whether the span counts it.
    Unplaced(SpanFacts),
    Placed(TrackedCall),
}

/// A tool call, and the span that reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrackedCall {
    call: CallRef,
    span: u64,
    /// True if the span has no parent and names no operation, so that only its message shows what it belongs to.
    is_stray: bool,
}

impl TrackedCall {
    fn new(call: CallRef, facts: &SpanFacts) -> Self {
        let is_stray = facts.parent_span_id.is_none() && facts.operation == 0;
        Self { call, span: facts.span_key(), is_stray }
    }
}

/// The sink for the events and calls that the classifier finds in one record.
pub(super) struct RowSink<'r> {
    pub(super) shared: &'r Shared,
    pub(super) batch: &'r mut Batch,
    pub(super) traffic: &'r mut Traffic,
    pub(super) counts: &'r mut RequestCounts,
    pub(super) source: Source,
    pub(super) arrival: i64,
    pub(super) dedup_keys: DedupKeys,
    /// True if the calls of this record were counted when it came before; `None` until its first call.
    pub(super) counted: Option<bool>,
    /// The ids of the span that this record is or belongs to.
    pub(super) span_ids: Option<SpanIds>,
    /// The part of a tool call that this span is.
    pub(super) part: CallPart,
    /// The durations of the calls of a data point.
    pub(super) durations: Option<CallDurations>,
    /// The first reason for which the record, or a part of it, could not be used.
    pub(super) unusable: Option<UnrecognizedReason>,
}

impl RowSink<'_> {
    /// Reports whether an event was sent before, or was already reported by the other signal of its span.
    fn is_duplicate(&mut self, event: &Event<'_>) -> bool {
        // Two failures of an unknown kind need not be the same.
        let span = self.dedup_keys.span.filter(|_| event.category != Category::Unknown);
        let pair = match (self.source, span) {
            (Source::Envelopes | Source::Files | Source::Stdin | Source::OtlpMetrics, _) => return false,
            (Source::OtlpTraces, Some(span)) => Some((
                report_identity(SPAN_SIGNAL, span, &event.canonical),
                report_identity(LOG_SIGNAL, span, &event.canonical),
            )),
            (Source::OtlpLogs, Some(span)) => Some((
                report_identity(LOG_SIGNAL, span, &event.canonical),
                report_identity(SPAN_SIGNAL, span, &event.canonical),
            )),
            (_, None) => None,
        };
        // A report of a tracked call is judged together with the other reports of that call.
        let is_tracked = matches!(self.part, CallPart::Placed(_)) && reports::is_report(event);
        let is_reported = !is_tracked && pair.is_some_and(|(_, other)| self.shared.dedup.contains(other));
        if is_reported || !self.insert_identity(event.event_id) {
            self.batch.depends_on_others = true;
            return true;
        }
        if let Some((mine, _)) = pair {
            self.insert_identity(mine);
        }
        false
    }

    fn store(&mut self, event: &Event<'_>, relation: Relation) {
        self.batch.bytes += row_size::event_bytes(event);
        self.batch.rows.events.push(EventRow { event, ingested_at: self.arrival, relation });
    }

    /// Stores a report of a failure that other spans or log records may have reported, too.
    fn store_report(&mut self, tracked: TrackedCall, event: &Event<'_>, known: usize) {
        let shared = self.shared;
        self.batch.reported_calls.push(tracked.call);
        self.batch.bytes += size_of::<CallRef>();
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
        self.shared.call_reports.take_words(event.context.service.as_deref(), message)
    }

    /// Stores a report; only the first report of a failure counts as an event.
    fn store_related(&mut self, event: &Event<'_>, relation: Relation, known: usize) {
        if relation == Relation::Primary {
            return self.store_primary(event, known);
        }
        self.batch.depends_on_others = true;
        self.counts.duplicates += 1;
        // If budgets limit the rows, further reports get none.
        if !self.shared.budgets.are_set() {
            self.store(event, relation);
        }
    }

    fn store_primary(&mut self, event: &Event<'_>, known: usize) {
        self.counts.events += 1;
        self.counts.categories.add(event.category, 1);
        self.counts.times_replaced += u64::from(event.context.time_source == TimeSource::Replaced);
        if self.shared.budgets.are_set() {
            return self.store_within_budget(event, known);
        }
        self.store(event, Relation::Primary);
    }

    /// Returns the call of the span that a log record belongs to, if that span was seen.
    fn call_of_log(&self) -> Option<TrackedCall> {
        let ids = self.span_ids.filter(|_| self.source == Source::OtlpLogs)?;
        let SpanIds { trace_id, span_id, .. } = ids;
        let span = span_key(xxh3_64(&trace_id), &span_id);
        let call = self.shared.call_reports.find(&trace_id, &span_id)?;
        Some(TrackedCall { call, span, is_stray: false })
    }

    /// Registers the failure of a log record, so that its span finds it.
    fn expect_span(&mut self, event: &Event<'_>) {
        let Some(ids) = self.span_ids.filter(|_| self.source == Source::OtlpLogs) else { return };
        let reports = &self.shared.call_reports;
        let call = reports.expect(&ids.trace_id, &ids.span_id, self.arrival);
        let reporter = low_64_bits(event.event_id);
        reports.relate(call, reporter, event, |_, _| ());
        self.batch.reported_calls.push(call);
        self.batch.bytes += size_of::<CallRef>();
    }

    /// Stores an event, or lets an existing row represent it. The identities of the batch from `known` on are those
    /// of the event.
    fn store_within_budget(&mut self, event: &Event<'_>, known: usize) {
        let (row, now) = (self.batch.rows.events.len(), self.shared.now());
        match self.batch.coalescer.place_event(event, row, &self.shared.budgets, now) {
            Placement::Own => self.store(event, Relation::Primary),
            Placement::Overflow { is_shared_bucket } => {
                self.store(&coalesce::overflow_event(event, is_shared_bucket), Relation::Primary);
            }
            Placement::Shared(row) => {
                self.counts.over_budget += 1;
                let Batch { coalescer, rows, identities, bytes, .. } = &mut *self.batch;
                // Only duplicates of spans and log records are recognized; calls are recognized with the failure of
                // their span.
                let own = identities[known..].iter().copied();
                let call = self.dedup_keys.call.filter(|_| self.source == Source::OtlpTraces);
                coalescer.coalesce(row, &mut rows.events, own.chain(call.map(u128::from)));
                *bytes += Coalescer::BYTES;
            }
        }
    }

    /// Remembers an identity as part of this batch. Returns true if it is new.
    fn insert_identity(&mut self, identity: u128) -> bool {
        let is_new = self.shared.dedup.insert(identity, self.arrival);
        if is_new {
            self.batch.identities.push(identity);
            self.batch.bytes += size_of::<u128>();
        }
        is_new
    }

    /// Counts the calls of a data point, unless spans report the same calls.
    fn count_point(&mut self, call: &Call<'_>, durations: &CallDurations) {
        if self.shared.span_reports.contains(call.service, call.operation, self.arrival) {
            self.counts.duplicates += 1;
            return;
        }
        self.counts.calls += call.count;
        self.traffic.add_histogram(call, durations);
    }

    /// Returns the tool call that the span is a part of.
    pub(super) fn tracked_call(&mut self) -> Option<TrackedCall> {
        if let CallPart::Unplaced(facts) = self.part {
            let call = self.shared.call_reports.place(&facts, self.arrival);
            self.part = CallPart::Placed(TrackedCall::new(call, &facts));
        }
        match self.part {
            CallPart::Placed(tracked) => Some(tracked),
            _ => None,
        }
    }

    /// Returns the tool call that the span is a part of, and whether the span counts it.
    fn counted_call(&mut self, is_caller: bool) -> Option<(CallRef, bool)> {
        let reports = &self.shared.call_reports;
        match self.part {
            CallPart::None => None,
            CallPart::Unplaced(facts) => {
                let (call, counts) = reports.place_and_count(&facts, is_caller, self.arrival);
                self.part = CallPart::Placed(TrackedCall::new(call, &facts));
                Some((call, counts))
            }
            CallPart::Placed(TrackedCall { call, span, .. }) => {
                Some((call, reports.counts(call, span, is_caller)))
            }
        }
    }

    /// Reports whether the calls of this span or log record have been counted before.
    fn are_calls_counted(&mut self) -> bool {
        let Some(call) = self.dedup_keys.call else { return false };
        if let Some(counted) = self.counted {
            return counted;
        }
        let counted = !self.shared.dedup.insert(call.into(), self.arrival);
        self.batch.depends_on_others |= counted;
        if !counted {
            self.batch.add_counted_call(call);
        }
        *self.counted.insert(counted)
    }
}

impl Sink for RowSink<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let known = self.batch.identities.len();
        let tracked = match self.tracked_call() {
            None if self.source == Source::OtlpLogs => self.call_of_log(),
            tracked => tracked,
        };
        self.part = tracked.map_or(CallPart::None, CallPart::Placed);
        if self.is_duplicate(event) {
            self.counts.duplicates += 1;
            return;
        }
        match tracked.filter(|_| reports::is_report(event)) {
            Some(tracked) => self.store_report(tracked, event, known),
            None => {
                if reports::is_report(event) {
                    self.expect_span(event);
                }
                self.store_primary(event, known);
            }
        }
    }

    fn call(&mut self, call: &Call<'_>) {
        if let Some(durations) = self.durations {
            return self.count_point(call, &durations);
        }
        if self.are_calls_counted() {
            self.counts.duplicates += 1;
            return;
        }
        let is_caller = matches!(call.span_kind, Some("client" | "producer" | "internal"));
        if let Some((tracked, counts)) = self.counted_call(is_caller) {
            if !counts {
                self.counts.duplicates += 1;
                return;
            }
            self.batch.reported_calls.push(tracked);
            self.batch.bytes += size_of::<CallRef>();
        }
        self.counts.calls += call.count;
        self.traffic.add(call);
    }

    fn call_part(&mut self, operation: Option<&str>, side: SpanKind) {
        let Some(SpanIds { trace_id, span_id, parent_span_id, layer }) = self.span_ids else { return };
        let layer = layer.rotate_left(1) ^ side as u64;
        let operation = operation_key(operation);
        let facts = SpanFacts { trace_id, span_id, parent_span_id, operation, layer };
        self.part = CallPart::Unplaced(facts);
    }

    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        self.unusable.get_or_insert(reason);
    }
}
