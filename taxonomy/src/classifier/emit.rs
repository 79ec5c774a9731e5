//! Passes on what is found in one record: events and calls to the sink, in the order found.

use super::build::{Builder, Scratch};
use super::{Origin, Rules};
use crate::envelope::{Failure, Receiver, Scope, Success};
use crate::event::{Call, Event, Kind, Outcome, Sink};
use crate::json::Json;
use crate::reason::Reason;
use crate::registry::AuditEvent;

/// Turns what is found in one record into events.
pub(super) struct Emitter<'e, S> {
    build: Builder<'e>,
    scratch: &'e mut Scratch,
    sink: &'e mut S,
    /// Events of this record so far: the index in their ids, and bounded.
    events: usize,
    /// Bytes of attributes written so far: a record's many events share them, within a bound.
    attribute_bytes: usize,
}

impl<'e, S: Sink> Emitter<'e, S> {
    pub(super) fn new(
        rules: &'e Rules,
        origin: &'e Origin<'e>,
        scratch: &'e mut Scratch,
        sink: &'e mut S,
    ) -> Self {
        Self { build: Builder { rules, origin }, scratch, sink, events: 0, attribute_bytes: 0 }
    }

    /// Counts one more event; false, and reported once, when the record has had its share.
    fn may_emit(&mut self) -> bool {
        self.events += 1;
        let limit = self.build.rules.limits.events_per_record;
        if self.events == limit + 1 {
            self.sink.unrecognized(Reason::TooManyEvents);
        }
        self.events <= limit
    }
}

impl<S: Sink> Receiver for Emitter<'_, S> {
    fn failure(&mut self, failure: &Failure<'_>, scope: &Scope<'_>) {
        if !self.may_emit() {
            return;
        }
        let without_attributes;
        let mut scope = scope;
        if self.attribute_bytes >= self.build.rules.limits.attribute_bytes_per_record {
            without_attributes = Scope { has_attributes: false, ..*scope };
            scope = &without_attributes;
        }
        let event = self.build.failure(failure, scope, self.events, self.scratch);
        self.attribute_bytes += event.attributes.map_or(0, str::len);
        self.sink.event(&event);
        if let Some(call) = call_of(&event) {
            self.sink.call(&call);
        }
    }

    fn success(&mut self, success: Success, scope: &Scope<'_>) {
        let Success { dialect, outcome, count } = success;
        let place = self.build.place(scope, None, &mut self.scratch.clean);
        let dialect = self.build.named(scope, place.service.as_deref()).unwrap_or(dialect);
        self.sink.call(&Call {
            dialect,
            outcome,
            count,
            time: place.time,
            time_source: place.time_source,
            service: place.service.as_deref(),
            environment: place.environment.as_deref(),
            operation: place.operation.as_deref(),
            span_kind: None,
            duration_us: place.duration_us,
        });
    }

    fn audit(&mut self, event: &AuditEvent, record: Json<'_>, scope: &Scope<'_>) {
        if self.may_emit() {
            let event = self.build.audit(event, record, scope, self.events, self.scratch);
            self.sink.event(&event);
        }
    }

    fn nothing(&mut self, reason: Reason) {
        self.sink.unrecognized(reason);
    }
}

/// A failed call is traffic, too; warnings come with a call of their own.
fn call_of<'a>(event: &'a Event<'a>) -> Option<Call<'a>> {
    let outcome = if event.hidden { Outcome::Hidden } else { Outcome::Failed };
    let context = &event.context;
    let call = Call {
        dialect: event.dialect,
        outcome,
        count: 1,
        time: context.time,
        time_source: context.time_source,
        service: context.service.as_deref(),
        environment: context.environment.as_deref(),
        operation: context.operation.as_deref(),
        span_kind: context.span_kind,
        duration_us: context.duration_us,
    };
    (event.kind == Kind::Error).then_some(call)
}
