//! Passes on what is found in one record: events and calls to the sink, in the order found.

use super::build::{Builder, Scratch};
use super::frame::Reading;
use crate::dialect::Dialect;
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
    pub(super) found: Found,
}

/// What a span or a log record was found to hold, for what is decided at its end.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The dialect of the first failure.
    pub(super) failed: Option<Dialect>,
    /// How the first reply that worked did.
    pub(super) worked: Option<(Dialect, Outcome)>,
    /// Why something in it could not be used.
    pub(super) reason: Option<Reason>,
}

impl<'e, S: Sink> Emitter<'e, S> {
    pub(super) fn new(build: Builder<'e>, scratch: &'e mut Scratch, sink: &'e mut S) -> Self {
        Self { build, scratch, sink, events: 0, attribute_bytes: 0, found: Found::default() }
    }

    /// Says where in the telemetry we are.
    pub(super) fn read(&mut self, reading: Reading<'e>) {
        self.build.reading = reading;
    }

    /// True once there was an event of any kind.
    pub(super) fn has_events(&self) -> bool {
        self.events > 0
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

    /// What was said around a failure that has no words itself.
    fn message_around<'a>(&self, failure: &Failure<'a>) -> Option<&'a str>
    where
        'e: 'a,
    {
        let has_words = |text: &&str| !text.trim_ascii().is_empty();
        let frame = self.build.frame.filter(|_| failure.kind == Kind::Error);
        let around = frame.and_then(|frame| frame.words_around(self.build.reading.place));
        failure.message.filter(has_words).or(around).or(failure.message)
    }

    /// Passes on one call; a dialect that is named counts more than the one that it shows.
    pub(super) fn call(&mut self, success: Success, scope: &Scope<'_>) {
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
            span_kind: self.build.frame.and_then(|frame| frame.span_kind),
            duration_us: place.duration_us,
        });
    }

    /// Reports what breaks a bound; remembers what merely holds nothing.
    pub(super) fn note(&mut self, reason: Reason) {
        if matches!(reason, Reason::TooLong | Reason::TooDeep | Reason::TooManyLevels) {
            self.sink.unrecognized(reason);
        }
        self.found.reason = self.found.reason.filter(|known| *known != Reason::NoEnvelope).or(Some(reason));
    }

    /// Reports a record of which nothing could be used, unless that was done.
    pub(super) fn nothing_at_all(&mut self) {
        match self.found.reason {
            Some(Reason::TooLong | Reason::TooDeep | Reason::TooManyLevels) => {}
            Some(Reason::NotAReply) => self.sink.unrecognized(Reason::NotAReply),
            _ => self.sink.unrecognized(Reason::NoEnvelope),
        }
    }
}

impl<S: Sink> Receiver for Emitter<'_, S> {
    fn failure(&mut self, failure: &Failure<'_>, scope: &Scope<'_>) {
        if !self.may_emit() {
            return;
        }
        let with_words;
        let mut failure = failure;
        if self.build.frame.is_some() {
            with_words = failure.saying(self.message_around(failure));
            failure = &with_words;
        }
        self.build.writes_attributes =
            self.attribute_bytes < self.build.rules.limits.attribute_bytes_per_record;
        let event = self.build.failure(failure, scope, self.events, self.scratch);
        self.attribute_bytes += event.attributes.map_or(0, str::len);
        if event.kind == Kind::Error {
            self.found.failed = self.found.failed.or(Some(event.dialect));
        }
        self.sink.event(&event);
        let is_reply = !failure.is_hearsay && counts_replies(&self.build);
        if let Some(call) = call_of(&event).filter(|_| is_reply) {
            self.sink.call(&call);
        }
    }

    fn success(&mut self, success: Success, scope: &Scope<'_>) {
        self.found.worked = self.found.worked.or(Some((success.dialect, success.outcome)));
        if counts_replies(&self.build) {
            self.call(success, scope);
        }
    }

    fn audit(&mut self, event: &AuditEvent, record: Json<'_>, scope: &Scope<'_>) {
        if self.may_emit() {
            let event = self.build.audit(event, record, scope, self.events, self.scratch);
            self.sink.event(&event);
        }
    }

    fn nothing(&mut self, reason: Reason) {
        match self.build.frame {
            Some(_) => self.note(reason),
            None => self.sink.unrecognized(reason),
        }
    }
}

/// Replies in telemetry are calls only where no span counts them.
fn counts_replies(build: &Builder<'_>) -> bool {
    build.frame.is_none_or(|frame| frame.counts_replies)
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
