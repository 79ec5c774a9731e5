//! Passes the events and calls of one record to the sink, in the order in which they are found.

use super::event_builder::{EventBuilder, Scratch};
use super::telemetry_context::ReplyLocation;
use crate::dialect::Dialect;
use crate::envelope::{EnvelopeVisitor, Failure, Scope, Success};
use crate::event::{Call, Event, EventKind, Outcome, Sink};
use crate::fault::Fault;
use crate::json::Json;
use crate::reason::UnrecognizedReason;
use crate::registry::AuditEvent;

/// Builds events from the envelopes of one record and passes them to the sink.
pub(super) struct Emitter<'e, S> {
    builder: EventBuilder<'e>,
    scratch: &'e mut Scratch,
    sink: &'e mut S,
    /// The number of events of this record so far. It is the index in their ids, and it is bounded.
    events: usize,
    /// The number of bytes of attributes written so far. The events of one record share a budget for them.
    attribute_bytes: usize,
    pub(super) summary: RecordSummary,
}

/// A summary of the replies in one span or log record, for the decisions that are made at its end.
#[derive(Debug, Default)]
pub(super) struct RecordSummary {
    /// The dialect of the first failure.
    pub(super) failed_dialect: Option<Dialect>,
    /// True if there was a failure other than a protocol probe.
    pub(super) has_real_failure: bool,
    /// The dialect and outcome of the first reply that did not fail.
    pub(super) first_success: Option<(Dialect, Outcome)>,
    /// The most specific reason for which a part of the record was not used.
    pub(super) reason: Option<UnrecognizedReason>,
}

impl<'e, S: Sink> Emitter<'e, S> {
    pub(super) fn new(builder: EventBuilder<'e>, scratch: &'e mut Scratch, sink: &'e mut S) -> Self {
        Self { builder, scratch, sink, events: 0, attribute_bytes: 0, summary: RecordSummary::default() }
    }

    /// Sets the location in the telemetry that the next envelopes are read from.
    pub(super) fn set_location(&mut self, location: ReplyLocation<'e>) {
        self.builder.location = location;
    }

    /// Returns true once there was an event of any kind.
    pub(super) fn has_events(&self) -> bool {
        self.events > 0
    }

    /// Counts one more event. Returns false if the record exceeds its limit of events, and reports that once.
    fn count_event(&mut self) -> bool {
        self.events += 1;
        let limit = self.builder.rules.limits.events_per_record;
        if self.events == limit + 1 {
            self.sink.unrecognized(UnrecognizedReason::TooManyEvents);
        }
        self.events <= limit
    }

    /// Returns the message of a failure or, for a failure without one, the message of the enclosing
    /// telemetry.
    fn message_or_enclosing<'a>(&self, failure: &Failure<'a>) -> Option<&'a str>
    where
        'e: 'a,
    {
        let is_not_blank = |text: &&str| !text.trim_ascii().is_empty();
        let telemetry = self.builder.telemetry.filter(|_| failure.kind == EventKind::Error);
        let enclosing =
            telemetry.and_then(|telemetry| telemetry.enclosing_message(self.builder.location.name));
        failure.message.filter(is_not_blank).or(enclosing).or(failure.message)
    }

    /// Passes on one call. A declared dialect takes precedence over the one that the reply's shape suggests.
    pub(super) fn emit_call(&mut self, success: Success, is_unverified: bool, scope: &Scope<'_>) {
        let Success { dialect, outcome, count } = success;
        let context = self.builder.call_context(scope, None, &mut self.scratch.clean_names);
        let dialect = self.builder.declared_dialect(scope, context.service.as_deref()).unwrap_or(dialect);
        self.sink.call(&Call {
            dialect,
            outcome,
            is_unverified,
            count,
            time: context.time,
            time_source: context.time_source,
            service: context.service.as_deref(),
            environment: context.environment.as_deref(),
            operation: context.operation.as_deref(),
            span_kind: self.builder.telemetry.and_then(|telemetry| telemetry.span_kind),
            duration_us: context.duration_us,
        });
    }

    /// Reports a reason at once if it means an exceeded limit, and stores any other reason for the end of the record.
    pub(super) fn record_reason(&mut self, reason: UnrecognizedReason) {
        if matches!(
            reason,
            UnrecognizedReason::TooLong | UnrecognizedReason::TooDeep | UnrecognizedReason::TooManyLevels
        ) {
            self.sink.unrecognized(reason);
        }
        self.summary.reason =
            self.summary.reason.filter(|known| *known != UnrecognizedReason::NoEnvelope).or(Some(reason));
    }

    /// Reports a record that yielded nothing, unless it was reported already.
    pub(super) fn report_unrecognized(&mut self) {
        match self.summary.reason {
            Some(
                UnrecognizedReason::TooLong | UnrecognizedReason::TooDeep | UnrecognizedReason::TooManyLevels,
            ) => {}
            Some(UnrecognizedReason::NotAReply) => self.sink.unrecognized(UnrecognizedReason::NotAReply),
            _ => self.sink.unrecognized(UnrecognizedReason::NoEnvelope),
        }
    }
}

impl<S: Sink> EnvelopeVisitor for Emitter<'_, S> {
    fn on_failure(&mut self, failure: &Failure<'_>, scope: &Scope<'_>) {
        if !self.count_event() {
            return;
        }
        let with_message;
        let mut failure = failure;
        if self.builder.telemetry.is_some() {
            with_message = failure.with_message(self.message_or_enclosing(failure));
            failure = &with_message;
        }
        self.builder.writes_attributes =
            self.attribute_bytes < self.builder.rules.limits.attribute_bytes_per_record;
        let event = self.builder.build_failure(failure, scope, self.events, self.scratch);
        self.attribute_bytes += event.attributes.map_or(0, str::len);
        if event.kind == EventKind::Error {
            self.summary.failed_dialect = self.summary.failed_dialect.or(Some(event.dialect));
            self.summary.has_real_failure |= event.fault != Some(Fault::Probe);
        }
        self.sink.event(&event);
        let is_reply = !failure.is_from_telemetry && counts_replies(&self.builder);
        if let Some(call) = call_from_event(&event).filter(|_| is_reply) {
            self.sink.call(&call);
        }
    }

    fn on_success(&mut self, success: Success, scope: &Scope<'_>) {
        self.summary.first_success = self.summary.first_success.or(Some((success.dialect, success.outcome)));
        if counts_replies(&self.builder) {
            self.emit_call(success, false, scope);
        }
    }

    fn on_audit(&mut self, event: &AuditEvent, record: Json<'_>, scope: &Scope<'_>) {
        if self.count_event() {
            let event = self.builder.build_audit(event, record, scope, self.events, self.scratch);
            self.sink.event(&event);
        }
    }

    fn on_unrecognized(&mut self, reason: UnrecognizedReason) {
        match self.builder.telemetry {
            Some(_) => self.record_reason(reason),
            None => self.sink.unrecognized(reason),
        }
    }
}

/// Returns true if replies count as calls. In telemetry they do so only where no span counts them.
fn counts_replies(builder: &EventBuilder<'_>) -> bool {
    builder.telemetry.is_none_or(|telemetry| telemetry.counts_replies)
}

/// Returns the call of a failed reply. Warnings and audit events have none, because their reply is counted separately.
fn call_from_event<'a>(event: &'a Event<'a>) -> Option<Call<'a>> {
    let outcome = match event.fault {
        // A probe that found nothing is not a failure.
        Some(Fault::Probe) => Outcome::Ok,
        _ if event.hidden => Outcome::Hidden,
        _ => Outcome::Failed,
    };
    let context = &event.context;
    let call = Call {
        dialect: event.dialect,
        outcome,
        is_unverified: false,
        count: 1,
        time: context.time,
        time_source: context.time_source,
        service: context.service.as_deref(),
        environment: context.environment.as_deref(),
        operation: context.operation.as_deref(),
        span_kind: context.span_kind,
        duration_us: context.duration_us,
    };
    (event.kind == EventKind::Error).then_some(call)
}
