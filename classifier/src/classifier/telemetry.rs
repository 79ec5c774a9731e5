//! Classifies spans and log records.
//!
//! **A status alone is not decisive.** A span or a log record is searched for captured replies first, then for
//! failures that its attributes state. Only then is its own status or severity used. Most spans contain none of these
//! and cost one pass over their attributes.
//!
//! Invariant: a span counts as at most one call, however many events it yields, and a log record that belongs to a
//! span counts as none.

use super::emitter::Emitter;
use super::event_builder::{EventBuilder, Scratch};
use super::telemetry_context::{
    BODY, HexIds, ReplyLocation, STATUS_MESSAGE, TelemetryContext, TelemetryFields, non_blank,
};
use super::{Classifier, RecordOrigin, Rules, parse_logfmt, plain_call, trim};
use crate::context::{ContextField, EnvelopeKey, IndexedObject, merge_fields};
use crate::dialect::Dialect;
use crate::envelope::{EnvelopeFinder, EnvelopeVisitor, Scope, Success, looks_like_json};
use crate::event::{Outcome, Sink};
use crate::json::{Json, Parser, ScalarNode};
use crate::reason::UnrecognizedReason;
use crate::telemetry::agent_event::AgentToolCall;
use crate::telemetry::attributes::IndexedAttributes;
use crate::telemetry::failure::{self, TelemetryFailure};
use crate::telemetry::{Attribute, LogRecord, Resource, Span, SpanStatus, Value};

/// The lowest severity number that OpenTelemetry defines as an error.
const ERROR_SEVERITY: i32 = 17;

impl Classifier {
    /// Classifies one span. A span that did not fail and is not a call yields nothing.
    pub fn span(
        &mut self,
        span: &Span<'_>,
        resource: &Resource<'_>,
        origin: &RecordOrigin<'_>,
        sink: &mut impl Sink,
    ) {
        let Self { rules, parsers, scratch, .. } = self;
        let mut attributes = index_span_attributes(rules, span, resource);
        let calls_tool = attributes.calls_tool();
        let is_call = (calls_tool || attributes.has_call_attribute || span.kind.is_receiving_side())
            && !attributes.is_delegate(span.kind, span.name);
        let is_unverified = calls_tool && !attributes.has_reply_content();
        let tool_in_name = attributes.tool_in_name(span.name);
        let is_part_of_call = attributes.is_part_of_call();
        if is_part_of_call {
            let operation = tool_in_name.or_else(|| attributes.named_operation());
            sink.call_part(operation, attributes.side(span.kind));
        }
        if tool_in_name.is_some() {
            attributes.fields[ContextField::Operation as usize] = None;
        }
        let is_error_status = span.status == SpanStatus::Error;
        let stated = failure::from_attributes(&attributes, &rules.registry)
            .or_else(|| is_error_status.then(|| failure::without_cause(&attributes)));
        let has_failed = is_error_status || attributes.is_tool_error();
        let mut replies = span_replies(&attributes, span).peekable();
        if !is_call && stated.is_none() && replies.peek().is_none() {
            return;
        }
        // The name of a span inside a call, such as that of a stream, is not what was called.
        let span_name = || non_blank(span.name).filter(|_| is_call || !is_part_of_call);
        let name = tool_in_name.or_else(span_name);
        if stated.is_none() && replies.peek().is_none() {
            let call = (name, is_unverified);
            return plain_call::emit(rules, span, &attributes, call, origin, (scratch, sink));
        }
        let ids = HexIds::new(span.trace_id, span.span_id);
        let mut fields_by_key = telemetry_fields(&attributes, &ids, stated.as_ref());
        fields_by_key.fill_gap(ContextField::Operation, name.map(ScalarNode::text));
        let fields = fields_by_key.as_json();
        let telemetry = TelemetryContext::from_span(span, &attributes, &fields, origin);
        let mut reader = TelemetryReader::new(rules, &telemetry, origin, scratch, sink);
        reader.read_replies(replies, has_failed, parsers);
        if let Some(stated) = stated.filter(|_| reader.emitter.summary.failed_dialect.is_none()) {
            reader.emit_failure(&stated);
        }
        if is_call {
            reader.emit_call(is_error_status, is_unverified, failure::protocol_dialect(&attributes));
        }
    }

    /// Classifies one log record. A record without a reply, a code or an error severity is reported with a
    /// reason.
    pub fn log(
        &mut self,
        record: &LogRecord<'_>,
        resource: &Resource<'_>,
        origin: &RecordOrigin<'_>,
        sink: &mut impl Sink,
    ) {
        if let Some(call) = AgentToolCall::read(record) {
            return self.agent_tool_call(&call, record, resource, origin, sink);
        }
        let Self { rules, parsers, unescaped, scratch } = self;
        let attributes = IndexedAttributes::new(&rules.attribute_names, resource, record.attributes);
        let stated = failure::from_attributes(&attributes, &rules.registry);
        let is_error = record.severity >= ERROR_SEVERITY;
        let evidence =
            FailureEvidence { stated, assumed: is_error.then(|| failure::without_cause(&attributes)) };
        let ids = HexIds::new(record.trace_id, record.span_id);
        let fields_by_key = telemetry_fields(&attributes, &ids, stated.as_ref());
        let fields = fields_by_key.as_json();
        let body = record.body.map_or("", text_of);
        let telemetry = TelemetryContext::from_log(record, &attributes, &fields, body, origin);
        let mut reader = TelemetryReader::new(rules, &telemetry, origin, scratch, sink);
        let has_failed = attributes.is_tool_error();
        reader.read_replies(attribute_replies(&attributes), has_failed, parsers);
        if !reader.emitter.has_events() && reader.read_body(body, &evidence, parsers, unescaped) {
            return;
        }
        reader.finish(&evidence, None);
    }
}

impl Classifier {
    /// Classifies a tool call that an agent host reports.
    fn agent_tool_call(
        &mut self,
        call: &AgentToolCall<'_>,
        record: &LogRecord<'_>,
        resource: &Resource<'_>,
        origin: &RecordOrigin<'_>,
        sink: &mut impl Sink,
    ) {
        let Self { rules, parsers, scratch, .. } = self;
        let attributes = IndexedAttributes::new(&rules.attribute_names, resource, record.attributes);
        let stated = failure::from_host(call.error_type(), &rules.registry);
        let ids = HexIds::new(record.trace_id, record.span_id);
        let mut fields_by_key = telemetry_fields(&attributes, &ids, Some(&stated));
        let detailed_tool =
            parsers.first_mut().and_then(|parser| call.detailed_tool(parser, rules.limits.line_bytes));
        fields_by_key.set(ContextField::Operation, detailed_tool.as_deref().map(ScalarNode::text));
        let fields = fields_by_key.as_json();
        let body = record.body.map_or("", text_of);
        let mut telemetry = TelemetryContext::from_log(record, &attributes, &fields, body, origin);
        telemetry.duration_us = call.duration_us();
        telemetry.counts_replies = false;
        let message = call.message().filter(|_| !call.succeeded);
        telemetry.message = message.and_then(|attribute| attribute.value.as_text());
        telemetry.own_text = None;
        let mut reader = TelemetryReader::new(rules, &telemetry, origin, scratch, sink);
        if !call.succeeded {
            reader.read_replies(message.into_iter().filter_map(reply_candidate), true, parsers);
        }
        if !call.succeeded && reader.emitter.summary.failed_dialect.is_none() {
            reader.emit_failure(&stated);
        }
        reader.emit_call(true, true, Dialect::Jsonrpc);
    }
}

/// Failures that are indicated by something other than a reply.
struct FailureEvidence<'a> {
    /// A failure that attributes state. It counts even if a reply succeeded.
    stated: Option<TelemetryFailure<'a>>,
    /// A failure that is assumed only because of the severity. Any reply takes precedence over it.
    assumed: Option<TelemetryFailure<'a>>,
}

/// A text that may contain a reply.
struct ReplyCandidate<'a> {
    text: &'a str,
    location: ReplyLocation<'a>,
    /// True if the text is the output of the call and nothing else.
    is_content: bool,
}

impl ReplyCandidate<'_> {
    fn is_json(&self) -> bool {
        looks_like_json(self.text) || self.text.trim_start().starts_with('"')
    }
}

/// Reads one span or log record and passes its events and calls to an emitter.
struct TelemetryReader<'e, S> {
    rules: &'e Rules,
    telemetry: &'e TelemetryContext<'e>,
    emitter: Emitter<'e, S>,
}

impl<'e, S: Sink> TelemetryReader<'e, S> {
    fn new(
        rules: &'e Rules,
        telemetry: &'e TelemetryContext<'e>,
        origin: &'e RecordOrigin<'e>,
        scratch: &'e mut Scratch,
        sink: &'e mut S,
    ) -> Self {
        scratch.has_telemetry_attributes = false;
        let emitter = Emitter::new(EventBuilder::new(rules, origin, Some(telemetry)), scratch, sink);
        Self { rules, telemetry, emitter }
    }

    fn scope(&self) -> Scope<'e> {
        Scope { fields: self.telemetry.fields, ..Scope::EMPTY }
    }

    fn finder(&mut self) -> EnvelopeFinder<'_, Emitter<'e, S>> {
        EnvelopeFinder {
            registry: &self.rules.registry,
            names: &self.rules.names,
            visitor: &mut self.emitter,
            stream: None,
        }
    }

    /// Searches replies until one of them yields an event. The others usually repeat it. `has_failed` is true if the
    /// call is known to have failed.
    fn read_replies(
        &mut self,
        replies: impl Iterator<Item = ReplyCandidate<'e>>,
        has_failed: bool,
        parsers: &mut [Parser],
    ) {
        for reply in replies {
            if let Err(reason) = self.read_reply(&reply, has_failed, parsers) {
                self.emitter.record_reason(reason);
            }
            if self.emitter.has_events() {
                return;
            }
        }
    }

    fn read_reply(
        &mut self,
        reply: &ReplyCandidate<'e>,
        has_failed: bool,
        parsers: &mut [Parser],
    ) -> Result<(), UnrecognizedReason> {
        let text = self.check_length(reply.text)?;
        self.emitter.set_location(reply.location);
        let scope = self.scope();
        if !reply.is_json() {
            // The output of a call that is known to have failed is its message.
            if has_failed {
                return Err(UnrecognizedReason::NoEnvelope);
            }
            return self.finder().search_captured_text(reply.text, &scope, parsers);
        }
        let has_failed = has_failed && reply.is_content;
        let (parser, deeper) = parsers.split_first_mut().ok_or(UnrecognizedReason::TooManyLevels)?;
        parser.parse(text, |json| self.finder().search_captured(json, has_failed, &scope, deeper))?
    }

    fn check_length<'t>(&self, text: &'t str) -> Result<&'t [u8], UnrecognizedReason> {
        let text = trim(text.as_bytes());
        if text.len() > self.rules.limits.line_bytes { Err(UnrecognizedReason::TooLong) } else { Ok(text) }
    }

    /// Reads a log body and finishes the record. Returns false when the body cannot be parsed as fields.
    fn read_body(
        &mut self,
        body: &str,
        evidence: &FailureEvidence<'e>,
        parsers: &mut [Parser],
        unescaped: &mut Vec<u8>,
    ) -> bool {
        let Some((parser, deeper)) = parsers.split_first_mut() else { return false };
        let scope = self.scope();
        let text = self.check_length(body);
        self.emitter.set_location(ReplyLocation { name: BODY, ..ReplyLocation::NONE });
        let search = |json: Json<'_>| {
            self.finder().search_record(json, &scope, deeper);
            self.finish(evidence, Some(json));
        };
        let searched = text.and_then(|text| match text.first() {
            None => Err(UnrecognizedReason::NoEnvelope),
            Some(b'{' | b'[' | b'"') => parser.parse(text, search),
            Some(_) => parse_logfmt(text, parser, unescaped, search),
        });
        searched.map_err(|reason| self.emitter.record_reason(reason)).is_ok()
    }

    /// Decides, once all replies are read, whether a failure without a reply is reported.
    fn finish(&mut self, evidence: &FailureEvidence<'e>, body: Option<Json<'_>>) {
        let summary = &self.emitter.summary;
        let has_reply = self.emitter.has_events() || summary.first_success.is_some();
        let has_failed = summary.failed_dialect.is_some();
        match evidence.stated.or(evidence.assumed.filter(|_| !has_reply)) {
            Some(stated) if !has_failed => match body.filter(|body| body.is_object()) {
                Some(body) => self.emit_failure_with_body(&stated, &self.rules.names.index(body)),
                None => self.emit_failure(&stated),
            },
            _ if !has_reply => self.emitter.report_unrecognized(),
            _ => {}
        }
    }

    /// Reports a failure that no reply contains.
    fn emit_failure(&mut self, stated: &TelemetryFailure<'e>) {
        let message = self.telemetry.message.or(self.telemetry.own_text.map(|(_, text)| text));
        self.emitter.set_location(ReplyLocation { name: "", attribute: stated.code, message });
        let scope = self.scope();
        self.emitter.on_failure(&stated.failure.with_message(message), &scope);
    }

    /// Reports a failure that no reply contains, with the fields of a log body.
    fn emit_failure_with_body(&mut self, stated: &TelemetryFailure<'e>, body: &IndexedObject<'_>) {
        const MESSAGE_KEYS: [EnvelopeKey; 3] = [EnvelopeKey::Message, EnvelopeKey::Msg, EnvelopeKey::Error];
        let message = self.telemetry.message;
        let in_body = || MESSAGE_KEYS.into_iter().find_map(|key| body.get(key)?.as_str());
        let line = || self.telemetry.own_text.map(|(_, text)| text).filter(|text| !looks_like_json(text));
        self.emitter.set_location(ReplyLocation { name: BODY, attribute: stated.code, message });
        let scope = self.scope();
        let fields = merge_fields(scope.fields, body);
        let scope = Scope {
            record: Some(body.json),
            has_attributes: body.has_attributes(),
            envelope: Some(body.json),
            fields: &fields,
            ..scope
        };
        self.emitter.on_failure(&stated.failure.with_message(message.or_else(in_body).or_else(line)), &scope);
    }

    /// Counts the span as one call. Without the content of a reply, its success is unverified.
    fn emit_call(&mut self, is_error_status: bool, is_unverified: bool, protocol: Dialect) {
        let summary = &self.emitter.summary;
        let (dialect, outcome) = match (summary.failed_dialect, summary.first_success) {
            (Some(dialect), _) if !summary.has_real_failure => (dialect, Outcome::Ok),
            (Some(dialect), _) if is_error_status => (dialect, Outcome::Failed),
            (Some(dialect), _) => (dialect, Outcome::Hidden),
            (None, Some(worked)) => worked,
            (None, None) => (protocol, Outcome::Ok),
        };
        let scope = self.scope();
        let is_unverified = is_unverified && outcome == Outcome::Ok;
        self.emitter.emit_call(Success { dialect, outcome, count: 1 }, is_unverified, &scope);
    }
}

/// Indexes the attributes of a span, including those of its last exception event, which is the one that ended
/// it.
fn index_span_attributes<'a>(
    rules: &Rules,
    span: &Span<'a>,
    resource: &Resource<'a>,
) -> IndexedAttributes<'a> {
    let mut attributes = IndexedAttributes::new(&rules.attribute_names, resource, span.attributes);
    let mut exceptions = span.events.iter().filter(|event| event.name == "exception").peekable();
    if exceptions.peek().is_some() {
        let own = attributes;
        exceptions.for_each(|event| attributes.add_exception(event.attributes, &own));
    }
    attributes
}

/// Returns the context fields that the span or log record itself provides.
fn telemetry_fields<'a>(
    attributes: &IndexedAttributes<'a>,
    ids: &'a HexIds,
    stated: Option<&TelemetryFailure<'a>>,
) -> TelemetryFields<'a> {
    let mut fields_by_key = TelemetryFields::new(attributes, ids);
    let status = stated.and_then(|stated| stated.http_status);
    fields_by_key.set(ContextField::HttpStatus, status.map(|status| ScalarNode::int(status.into())));
    fields_by_key
}

/// Returns every text of a span that may contain a reply, the most likely first.
fn span_replies<'a>(
    attributes: &IndexedAttributes<'a>,
    span: &Span<'a>,
) -> impl Iterator<Item = ReplyCandidate<'a>> + use<'a> {
    let status = looks_like_json(span.status_message).then_some(ReplyCandidate {
        text: span.status_message,
        location: ReplyLocation { name: STATUS_MESSAGE, ..ReplyLocation::NONE },
        is_content: true,
    });
    let of_events = span.events.iter().flat_map(|event| event.attributes).filter_map(reply_candidate);
    attribute_replies(attributes).chain(status).chain(of_events)
}

/// Returns the texts of the known attributes that may contain a reply. The output of a call may be prose.
fn attribute_replies<'a>(
    attributes: &IndexedAttributes<'a>,
) -> impl Iterator<Item = ReplyCandidate<'a>> + use<'a> {
    let content = attributes.content_attributes().filter_map(|attribute| {
        let text = attribute.value.as_json_text().or_else(|| attribute.value.as_text())?;
        Some(ReplyCandidate { text, location: location_of(attribute), is_content: true })
    });
    content.chain(attributes.message_attributes().filter_map(reply_candidate))
}

/// Returns the text of an attribute that may contain a reply.
fn reply_candidate<'a>(attribute: &'a Attribute<'a>) -> Option<ReplyCandidate<'a>> {
    let text = attribute.value.as_json_text()?;
    Some(ReplyCandidate { text, location: location_of(attribute), is_content: false })
}

fn location_of<'a>(attribute: &'a Attribute<'a>) -> ReplyLocation<'a> {
    ReplyLocation { name: &attribute.key, attribute: Some(attribute), message: None }
}

/// Returns the text of a value, or an empty text for numbers and the like.
fn text_of<'a>(value: &'a Value<'a>) -> &'a str {
    match value {
        Value::Text(text) | Value::Json(text) => text,
        _ => "",
    }
}
