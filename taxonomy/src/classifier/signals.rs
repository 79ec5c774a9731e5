//! Spans and log records, from end to end.
//!
//! **Status alone decides nothing.** A span or a record is read for replies kept in it, then for what its
//! attributes state, and only then for its own word that something failed. Most spans tell of nothing: they
//! cost one pass over their attributes.
//!
//! What always holds: a span is at most one call, however many events it yields; a log record that belongs to
//! a span is none.

use super::build::{Builder, Scratch};
use super::emit::Emitter;
use super::frame::{BODY, Frame, HexIds, OwnFields, Reading, STATUS_MESSAGE, said};
use super::{Classifier, Origin, Rules, read_logfmt, trim};
use crate::context::{Field, Part, Sorted, filled};
use crate::dialect::Dialect;
use crate::envelope::{Finder, Receiver, Scope, Success, looks_like_json};
use crate::event::{Outcome, Sink};
use crate::json::{Json, Parser, Single};
use crate::reason::Reason;
use crate::signal::clues::Clues;
use crate::signal::stated::{self, Stated};
use crate::signal::{Attribute, LogRecord, Resource, Span, SpanStatus, Value};

/// From here on, a severity is an error.
const ERROR_SEVERITY: i32 = 17;

impl Classifier {
    /// Classifies one span. One that worked and is no call yields nothing.
    pub fn span(
        &mut self,
        span: &Span<'_>,
        resource: &Resource<'_>,
        origin: &Origin<'_>,
        sink: &mut impl Sink,
    ) {
        let Self { rules, parsers, scratch, .. } = self;
        let clues = clues_of_span(rules, span, resource);
        let is_call = clues.marks_call || span.kind.answers();
        let says_failed = span.status == SpanStatus::Error;
        let stated = stated::read(&clues, &rules.registry)
            .or_else(|| says_failed.then(|| stated::unexplained(&clues)));
        let mut replies = replies_of_span(&clues, span).peekable();
        if !is_call && stated.is_none() && replies.peek().is_none() {
            return;
        }
        let ids = HexIds::new(span.trace_id, span.span_id);
        let mut own = own_fields(&clues, &ids, stated.as_ref());
        own.fill_gap(Field::Operation, said(span.name).map(Single::text));
        let fields = own.json();
        let frame = Frame::of_span(span, &clues, &fields, origin);
        let mut reader = Reader::new(rules, &frame, origin, scratch, sink);
        reader.replies(replies, parsers);
        if let Some(stated) = stated.filter(|_| reader.emitter.found.failed.is_none()) {
            reader.state(&stated);
        }
        if is_call {
            reader.count(says_failed, stated::protocol(&clues));
        }
    }

    /// Classifies one log record. One that holds nothing of ours is reported with a reason.
    pub fn log(
        &mut self,
        record: &LogRecord<'_>,
        resource: &Resource<'_>,
        origin: &Origin<'_>,
        sink: &mut impl Sink,
    ) {
        let Self { rules, parsers, unescaped, scratch } = self;
        let clues = Clues::read(&rules.attribute_names, resource, record.attributes);
        let certain = stated::read(&clues, &rules.registry);
        let is_error = record.severity >= ERROR_SEVERITY;
        let knowledge = Knowledge { certain, vague: is_error.then(|| stated::unexplained(&clues)) };
        let ids = HexIds::new(record.trace_id, record.span_id);
        let own = own_fields(&clues, &ids, certain.as_ref());
        let fields = own.json();
        let body = record.body.map_or("", text_in);
        let frame = Frame::of_log(record, &clues, &fields, body, origin);
        let mut reader = Reader::new(rules, &frame, origin, scratch, sink);
        reader.replies(clues.captured().filter_map(reply_in), parsers);
        if !reader.emitter.has_events() && reader.body(body, &knowledge, parsers, unescaped) {
            return;
        }
        reader.conclude(&knowledge, None);
    }
}

/// What is known of a failure without a reply.
struct Knowledge<'a> {
    /// By attributes: it counts even where a reply worked.
    certain: Option<Stated<'a>>,
    /// By the severity alone: any reply knows more.
    vague: Option<Stated<'a>>,
}

/// A text that a reply may stand in.
struct Reply<'a> {
    text: &'a str,
    reading: Reading<'a>,
}

/// Reads one span or log record, and passes on what is found.
struct Reader<'e, S> {
    rules: &'e Rules,
    frame: &'e Frame<'e>,
    emitter: Emitter<'e, S>,
}

impl<'e, S: Sink> Reader<'e, S> {
    fn new(
        rules: &'e Rules,
        frame: &'e Frame<'e>,
        origin: &'e Origin<'e>,
        scratch: &'e mut Scratch,
        sink: &'e mut S,
    ) -> Self {
        scratch.is_carried = false;
        let emitter = Emitter::new(Builder::new(rules, origin, Some(frame)), scratch, sink);
        Self { rules, frame, emitter }
    }

    fn scope(&self) -> Scope<'e> {
        Scope { fields: self.frame.fields, ..Scope::EMPTY }
    }

    fn finder(&mut self) -> Finder<'_, Emitter<'e, S>> {
        Finder { registry: &self.rules.registry, names: &self.rules.names, receiver: &mut self.emitter }
    }

    /// Looks into replies until one of them yields an event: others say the same once more.
    fn replies(&mut self, replies: impl Iterator<Item = Reply<'e>>, parsers: &mut [Parser]) {
        for reply in replies {
            if let Err(reason) = self.reply(&reply, parsers) {
                self.emitter.note(reason);
            }
            if self.emitter.has_events() {
                return;
            }
        }
    }

    fn reply(&mut self, reply: &Reply<'e>, parsers: &mut [Parser]) -> Result<(), Reason> {
        let text = self.bounded(reply.text)?;
        self.emitter.read(reply.reading);
        let scope = self.scope();
        let (parser, deeper) = parsers.split_first_mut().ok_or(Reason::TooManyLevels)?;
        parser.parse(text, |json| self.finder().captured(json, &scope, deeper))?
    }

    fn bounded<'t>(&self, text: &'t str) -> Result<&'t [u8], Reason> {
        let text = trim(text.as_bytes());
        if text.len() > self.rules.limits.line_bytes { Err(Reason::TooLong) } else { Ok(text) }
    }

    /// Reads a log body and concludes; false when it cannot be read as fields.
    fn body(
        &mut self,
        body: &str,
        knowledge: &Knowledge<'e>,
        parsers: &mut [Parser],
        unescaped: &mut Vec<u8>,
    ) -> bool {
        let Some((parser, deeper)) = parsers.split_first_mut() else { return false };
        let scope = self.scope();
        let bounded = self.bounded(body);
        self.emitter.read(Reading { place: BODY, ..Reading::NOWHERE });
        let look = |json: Json<'_>| {
            self.finder().record(json, &scope, deeper);
            self.conclude(knowledge, Some(json));
        };
        let looked = bounded.and_then(|text| match text.first() {
            None => Err(Reason::NoEnvelope),
            Some(b'{' | b'[' | b'"') => parser.parse(text, look),
            Some(_) => read_logfmt(text, parser, unescaped, look),
        });
        looked.map_err(|reason| self.emitter.note(reason)).is_ok()
    }

    /// What holds once everything was looked into.
    fn conclude(&mut self, knowledge: &Knowledge<'e>, body: Option<Json<'_>>) {
        let found = &self.emitter.found;
        let has_reply = self.emitter.has_events() || found.worked.is_some();
        let has_failed = found.failed.is_some();
        match knowledge.certain.or(knowledge.vague.filter(|_| !has_reply)) {
            Some(stated) if !has_failed => match body.filter(|body| body.is_object()) {
                Some(body) => self.state_in(&stated, &self.rules.names.sort(body)),
                None => self.state(&stated),
            },
            _ if !has_reply => self.emitter.nothing_at_all(),
            _ => {}
        }
    }

    /// Passes on a failure that no reply told of.
    fn state(&mut self, stated: &Stated<'e>) {
        let message = self.frame.message.or(self.frame.words.map(|(_, text)| text));
        self.emitter.read(Reading { place: "", consumed: stated.code, message });
        let scope = self.scope();
        self.emitter.failure(&stated.failure.saying(message), &scope);
    }

    /// The same, with the fields of a log body that holds no reply.
    fn state_in(&mut self, stated: &Stated<'e>, body: &Sorted<'_>) {
        const WORDS: [Part; 3] = [Part::Message, Part::Msg, Part::Error];
        let message = self.frame.message;
        let in_body = || WORDS.into_iter().find_map(|part| body.part(part)?.as_str());
        let line = || self.frame.words.map(|(_, text)| text).filter(|text| !looks_like_json(text));
        self.emitter.read(Reading { place: BODY, consumed: stated.code, message });
        let scope = self.scope();
        let fields = filled(scope.fields, body);
        let scope = Scope {
            record: Some(body.object),
            has_attributes: body.has_attributes(),
            envelope: Some(body.object),
            fields: &fields,
            ..scope
        };
        self.emitter.failure(&stated.failure.saying(message.or_else(in_body).or_else(line)), &scope);
    }

    /// Counts the span as the one call that it is.
    fn count(&mut self, says_failed: bool, protocol: Dialect) {
        let found = &self.emitter.found;
        let (dialect, outcome) = match (found.failed, found.worked) {
            (Some(dialect), _) if says_failed => (dialect, Outcome::Failed),
            (Some(dialect), _) => (dialect, Outcome::Hidden),
            (None, Some(worked)) => worked,
            (None, None) => (protocol, Outcome::Ok),
        };
        let scope = self.scope();
        self.emitter.call(Success { dialect, outcome, count: 1 }, &scope);
    }
}

/// The clues of a span, with the exception that an event of it tells of; the last one is what ended it.
fn clues_of_span<'a>(rules: &Rules, span: &Span<'a>, resource: &Resource<'a>) -> Clues<'a> {
    let own = Clues::read(&rules.attribute_names, resource, span.attributes);
    let mut clues = own;
    for event in span.events.iter().filter(|event| event.name == "exception") {
        clues.add_exception(event.attributes, &own);
    }
    clues
}

/// The context that the record itself gives.
fn own_fields<'a>(clues: &Clues<'a>, ids: &'a HexIds, stated: Option<&Stated<'a>>) -> OwnFields<'a> {
    let mut own = OwnFields::new(clues, ids);
    let status = stated.and_then(|stated| stated.http_status);
    own.set(Field::HttpStatus, status.map(|status| Single::int(status.into())));
    own
}

/// Every text of a span that a reply may stand in, best first.
fn replies_of_span<'a>(clues: &Clues<'a>, span: &Span<'a>) -> impl Iterator<Item = Reply<'a>> {
    let status = looks_like_json(span.status_message).then_some(Reply {
        text: span.status_message,
        reading: Reading { place: STATUS_MESSAGE, ..Reading::NOWHERE },
    });
    let of_events = span.events.iter().flat_map(|event| event.attributes).filter_map(reply_in);
    clues.captured().filter_map(reply_in).chain(status).chain(of_events)
}

/// The reply that an attribute may hold.
fn reply_in<'a>(attribute: &'a Attribute<'a>) -> Option<Reply<'a>> {
    let text = attribute.value.as_json_text()?;
    Some(Reply { text, reading: Reading { place: &attribute.key, consumed: Some(attribute), message: None } })
}

/// The text of a value; numbers and the like say nothing.
fn text_in<'a>(value: &'a Value<'a>) -> &'a str {
    match value {
        Value::Text(text) | Value::Json(text) => text,
        _ => "",
    }
}
