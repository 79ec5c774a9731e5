//! Search for envelopes in a record, through the wrappers that loggers and protocols put around them.
//!
//! A record may be an envelope itself, or hold one in a field, or as JSON text in a string: double-encoded
//! envelopes are the normal case over MCP. Each known shape has its own function; the first one that matches
//! is used.
//!
//! Invariants: at most a fixed number of wrappers is opened, each with its own parser, so the work is bounded
//! by the size of the record; **hidden** is decided here, and only a span's own status overrides it.

mod api_shapes;
mod captured;
pub(crate) mod error_shapes;
mod extra_fields;
mod failure;
mod framed;
mod pairing;
mod prose;
mod reply;
mod task;
mod tool_result;
mod transcript;

use crate::context::{
    ContextField, ContextFields, EMPTY_FIELDS, EnvelopeKey, IndexedObject, KeyNames, merge_fields,
};
use crate::dialect::Dialect;
use crate::json::{Json, Parser};
use crate::reason::UnrecognizedReason;
use crate::redact::TokenHash;
use crate::registry::{AuditEvent, Registry};
use std::borrow::Cow;

use api_shapes::Strictness;
pub(crate) use failure::{Failure, Success};
pub(crate) use pairing::Stream;

/// The wrappers that loggers and protocols use, in the order they are tried.
const WRAPPERS: [EnvelopeKey; 10] = [
    EnvelopeKey::Response,
    EnvelopeKey::Result,
    EnvelopeKey::Envelope,
    EnvelopeKey::Body,
    EnvelopeKey::Payload,
    EnvelopeKey::Event,
    EnvelopeKey::Data,
    EnvelopeKey::Message,
    EnvelopeKey::Msg,
    EnvelopeKey::Log,
];

/// The context of an envelope: the objects around it and the fields gathered from them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'t> {
    /// The outermost object, from which attributes are taken.
    pub(crate) record: Option<Json<'t>>,
    /// True if the record may have attributes.
    pub(crate) has_attributes: bool,
    /// The object that holds the envelope.
    pub(crate) envelope: Option<Json<'t>>,
    /// The context fields gathered from the enclosing objects; outer fields take precedence.
    pub(crate) fields: &'t ContextFields<'t>,
    /// True if the envelope lies inside a reply that its protocol reports as a success.
    pub(crate) hidden: bool,
    /// The position of the item in its batch.
    pub(crate) batch_index: Option<i64>,
    /// The operation that the batch names for this item.
    pub(crate) operation: Option<&'t str>,
    /// The id that the protocol assigns to the request.
    pub(crate) request_id: Option<Json<'t>>,
    /// The hash of the request's arguments, if the request was seen.
    pub(crate) arguments: Option<TokenHash>,
    pub(crate) level: Level,
}

/// The position of an object in a record, which decides how much evidence a failure needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// The record itself.
    Record,
    /// A value inside a wrapper of a logger or a protocol.
    Wrapped,
    /// Data that a tool returned without an error flag; it may be any JSON or any text.
    ToolData,
}

impl Scope<'_> {
    pub(crate) const EMPTY: Self = Self {
        record: None,
        has_attributes: false,
        envelope: None,
        fields: &EMPTY_FIELDS,
        hidden: false,
        batch_index: None,
        operation: None,
        request_id: None,
        arguments: None,
        level: Level::Record,
    };
}

/// Receives the findings of a search while the record is still in memory.
pub(crate) trait EnvelopeVisitor {
    fn on_failure(&mut self, failure: &Failure<'_>, scope: &Scope<'_>);
    fn on_success(&mut self, success: Success, scope: &Scope<'_>);
    fn on_audit(&mut self, event: &AuditEvent, record: Json<'_>, scope: &Scope<'_>);
    /// Called when no envelope was recognized, with the reason.
    fn on_unrecognized(&mut self, reason: UnrecognizedReason);
}

/// Searches one record for envelopes.
pub(crate) struct EnvelopeFinder<'f, R> {
    pub(crate) registry: &'f Registry,
    pub(crate) names: &'f KeyNames,
    pub(crate) visitor: &'f mut R,
    /// The state kept from earlier records of the stream, if the caller tracks it.
    pub(crate) stream: Option<Stream<'f>>,
}

/// `Ok` if something was found and reported to the visitor; otherwise the reason why not.
type SearchResult = Result<(), UnrecognizedReason>;

/// Returns the more specific of two reasons; `a` if they are equally specific.
fn more_specific(a: UnrecognizedReason, b: UnrecognizedReason) -> UnrecognizedReason {
    let weight = |reason: UnrecognizedReason| match reason {
        UnrecognizedReason::TooManyLevels => 2,
        UnrecognizedReason::NotAReply | UnrecognizedReason::RepeatedState => 1,
        _ => 0,
    };
    if weight(b) > weight(a) { b } else { a }
}

impl<R: EnvelopeVisitor> EnvelopeFinder<'_, R> {
    /// Searches a whole record. A record without an envelope is reported as unrecognized, never dropped.
    /// `scope` holds what is known about the record from outside it.
    pub(crate) fn search_record(&mut self, value: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) {
        if value.is_array() {
            if value.items().next().is_none() {
                self.visitor.on_unrecognized(UnrecognizedReason::NoEnvelope);
            }
            for item in value.items() {
                self.search_record_item(item, scope, parsers);
            }
            return;
        }
        self.search_record_item(value, scope, parsers);
    }

    fn search_record_item(&mut self, value: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) {
        // A bare HTTP status counts only if nothing better was found.
        let searched = if value.is_object() {
            let object = self.names.index(value);
            self.search_object(&object, scope, parsers).or_else(|reason| {
                self.search_object_http_status(&object, scope, parsers)
                    .map_err(|other| more_specific(reason, other))
            })
        } else {
            self.search(value, scope, parsers).or_else(|reason| {
                self.search_http_status(value, scope, parsers).map_err(|other| more_specific(reason, other))
            })
        };
        if let Err(reason) = searched {
            self.visitor.on_unrecognized(reason);
        }
    }

    /// Searches a value: an envelope, a wrapper, a batch, or any of these as text.
    fn search(&mut self, value: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> SearchResult {
        if let Some(text) = value.as_str() {
            return match scope.level {
                Level::ToolData => self.search_tool_text(text, scope, parsers),
                _ => self.search_wrapped_text(text, scope, parsers),
            };
        }
        if value.is_array() {
            return match scope.level {
                Level::ToolData if tool_result::is_content(value) => {
                    self.search_content(value, scope, parsers)
                }
                _ => self.search_array(value, scope, parsers),
            };
        }
        if !value.is_object() {
            return Err(UnrecognizedReason::NoEnvelope);
        }
        self.search_object(&self.names.index(value), scope, parsers)
    }

    /// Searches an object, which may be an envelope or a wrapper.
    fn search_object(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let fields = self.merge_meta(scope.fields, object);
        let scope = Scope {
            record: scope.record.or(Some(object.json)),
            has_attributes: if scope.record.is_none() {
                object.has_attributes()
            } else {
                scope.has_attributes
            },
            envelope: Some(object.json),
            fields: &fields,
            ..*scope
        };
        match self.match_envelope(object, &scope, parsers) {
            Some(search) => search,
            None => self.search_wrappers(object, &scope, parsers),
        }
    }

    /// Returns the outer context fields, completed from an object and its `_meta`.
    fn merge_meta<'s, 't>(
        &self,
        outer: &'s ContextFields<'t>,
        object: &'s IndexedObject<'t>,
    ) -> Cow<'s, ContextFields<'t>> {
        match object.get(EnvelopeKey::Meta) {
            Some(meta) if meta.is_object() => {
                let fields = merge_fields(outer, object).into_owned();
                Cow::Owned(merge_fields(&fields, &self.names.index(meta)).into_owned())
            }
            _ => merge_fields(outer, object),
        }
    }

    /// Parses a text that looks like JSON and calls `search` with the result.
    fn search_json_text(
        &mut self,
        text: &str,
        parsers: &mut [Parser],
        search: impl FnOnce(&mut Self, Json<'_>, &mut [Parser]) -> SearchResult,
    ) -> SearchResult {
        if !looks_like_json(text) {
            return Err(UnrecognizedReason::NoEnvelope);
        }
        let Some((parser, deeper)) = parsers.split_first_mut() else {
            return Err(UnrecognizedReason::TooManyLevels);
        };
        parser
            .parse(text.trim().as_bytes(), |json| search(self, json, deeper))
            .unwrap_or(Err(UnrecognizedReason::NoEnvelope))
    }

    /// Searches the elements of an array that are replies; other elements are data.
    fn search_array(&mut self, array: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> SearchResult {
        let mut found = Err(UnrecognizedReason::NoEnvelope);
        // A list that a tool returned is data, except for JSON-RPC messages, JSON texts and a single object.
        let is_answer = |item: &Json<'_>| match scope.level {
            Level::ToolData => {
                item.get("jsonrpc").is_some()
                    || is_json_text(*item)
                    || item.is_object() && array.items().nth(1).is_none()
            }
            _ => is_reply(*item) || is_json_text(*item),
        };
        for item in array.items().filter(is_answer) {
            match self.search(item, scope, parsers) {
                Ok(()) => found = Ok(()),
                Err(reason) => found = found.map_err(|before| more_specific(before, reason)),
            }
        }
        found
    }

    /// Matches the shapes that an object can have by itself; returns `None` if it has none of them.
    fn match_envelope(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> Option<SearchResult> {
        if let Some(event) =
            object.get(EnvelopeKey::Event).and_then(Json::as_str).and_then(|event| self.registry.audit(event))
        {
            self.visitor.on_audit(event, object.json, scope);
            return Some(Ok(()));
        }
        if let Some(searched) = self.search_transcript(object, scope, parsers) {
            return Some(searched);
        }
        if let Some(success) = object.get(EnvelopeKey::Success).and_then(Json::as_bool) {
            return Some(self.read_mcp_aql(success, object, scope, parsers));
        }
        if object.get(EnvelopeKey::Jsonrpc).is_some() || reply::is_bare_result_error(object) {
            return Some(self.read_jsonrpc(object, scope, parsers));
        }
        if tool_result::is_tool_result(object) {
            return Some(self.read_tool_result(object, scope, parsers));
        }
        if scope.level == Level::ToolData
            && (object.get(EnvelopeKey::Error).is_none() || api_shapes::is_data_record(object.json))
        {
            return None;
        }
        let mut failure = error_shapes::read_error(self.registry, object)?;
        failure.confirmation = object.get(EnvelopeKey::Confirmation);
        self.report_failure(&failure, scope);
        Some(Ok(()))
    }

    /// Reports a failure or, for a batch error, the failures of its items.
    fn report_failure(&mut self, failure: &Failure<'_>, scope: &Scope<'_>) {
        if !self.report_batch_errors(failure, scope) {
            self.visitor.on_failure(failure, scope);
        }
    }

    /// Searches the wrappers, then tries the shapes that are too weak to take precedence over them.
    fn search_wrappers(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        if scope.level == Level::ToolData {
            return self.search_tool_data(object, scope, parsers);
        }
        let mut reason = UnrecognizedReason::NoEnvelope;
        let wrapped = Scope { level: Level::Wrapped, ..*scope };
        let own = self.registry.operator().paths.iter().filter_map(|path| object.json.path(path));
        let usual = WRAPPERS.iter().filter_map(|&key| object.get(key));
        for value in usual.chain(own).chain(object.get(EnvelopeKey::Error)) {
            match self.search_nested(value, &wrapped, parsers) {
                Ok(()) => return Ok(()),
                Err(other) => reason = more_specific(reason, other),
            }
        }
        if scope.level == Level::Record && api_shapes::announces_retry(object.json) {
            return Err(more_specific(reason, UnrecognizedReason::NotAReply));
        }
        let strictness = if scope.level == Level::Record { Strictness::Record } else { Strictness::Required };
        let failure = api_shapes::read(self.registry, object.json, strictness)
            .filter(|_| reason != UnrecognizedReason::NotAReply)
            .or_else(|| error_shapes::read_weak_error(self.registry, object))
            .or_else(|| error_shapes::read_flat_error(self.registry, object.json));
        if let Some(failure) = failure {
            self.report_failure(&failure, scope);
            return Ok(());
        }
        if object.get(EnvelopeKey::Result).is_some() && object.get(EnvelopeKey::Id).is_some() {
            // The agent-skills bridge replies like JSON-RPC, but without a `jsonrpc` field.
            self.visitor.on_success(Success::new(Dialect::AgentSkills), scope);
            return Ok(());
        }
        Err(reason)
    }

    /// Searches an object that a tool returned for a reply that claims to be one, or for a shape that cannot
    /// be mistaken for data.
    fn search_tool_data(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let mut reason = UnrecognizedReason::NoEnvelope;
        let is_sole = object.json.fields().nth(1).is_none();
        for (key, value) in WRAPPERS.iter().filter_map(|&key| Some((key, object.get(key)?))) {
            // SDKs wrap a returned text as `result`; prose under other names is data.
            let may_be_prose = matches!(key, EnvelopeKey::Result | EnvelopeKey::Response);
            let holds_one =
                value.is_object() || value.as_str().is_some_and(|text| may_be_prose || looks_like_json(text));
            let is_open = is_sole && holds_one || reply::claims_reply(value);
            let searched = if is_open { self.search_nested(value, scope, parsers) } else { Err(reason) };
            match searched {
                Ok(()) => return Ok(()),
                Err(other) => reason = more_specific(reason, other),
            }
        }
        match api_shapes::read_tool_data(self.registry, object.json) {
            Some(failure) => {
                self.report_failure(&failure, scope);
                Ok(())
            }
            None => Err(reason),
        }
    }

    /// Searches one wrapped value. An object or array uses up one level here; a text uses one up when it is
    /// parsed.
    fn search_nested(&mut self, value: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> SearchResult {
        if value.is_object() || value.is_array() {
            return match parsers.split_first_mut() {
                Some((_, deeper)) => self.search(value, scope, deeper),
                None if value.is_object() => Err(UnrecognizedReason::TooManyLevels),
                None => Err(UnrecognizedReason::NoEnvelope),
            };
        }
        self.search(value, scope, parsers)
    }

    /// Searches for a bare HTTP status, as access logs have it: at the top level or in wrapped JSON text.
    fn search_http_status(
        &mut self,
        value: Json<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        if let Some(text) = value.as_str() {
            return self.search_json_text(text, parsers, |finder, json, deeper| {
                finder.search_http_status(json, scope, deeper)
            });
        }
        self.search_object_http_status(&self.names.index(value), scope, parsers)
    }

    fn search_object_http_status(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let fields = merge_fields(scope.fields, object);
        let scope = Scope {
            record: scope.record.or(Some(object.json)),
            has_attributes: scope.record.is_some() && scope.has_attributes || object.has_attributes(),
            envelope: Some(object.json),
            fields: &fields,
            ..*scope
        };
        if let Some(status) =
            object.context_field(ContextField::HttpStatus).and_then(crate::context::http_status)
        {
            match status {
                400.. => self.visitor.on_failure(&error_shapes::read_http_status(object), &scope),
                _ => self.visitor.on_success(Success::new(Dialect::Http), &scope),
            }
            return Ok(());
        }
        for value in [EnvelopeKey::Log, EnvelopeKey::Message, EnvelopeKey::Msg, EnvelopeKey::Event]
            .into_iter()
            .filter_map(|key| object.get(key))
        {
            if value.as_str().is_some() && self.search_http_status(value, &scope, parsers).is_ok() {
                return Ok(());
            }
        }
        Err(UnrecognizedReason::NoEnvelope)
    }
}

/// Reports whether an array element is a JSON document as text: telemetry carries lists of texts only.
fn is_json_text(item: Json<'_>) -> bool {
    item.as_str().is_some_and(looks_like_json)
}

/// Reports whether an array element is a reply to a call, rather than data.
fn is_reply(item: Json<'_>) -> bool {
    item.fields().any(|(key, value)| match key {
        "jsonrpc" => true,
        "success" => value.as_bool().is_some(),
        "error" => value.is_object(),
        _ => false,
    })
}

/// Reports whether a text is worth parsing as JSON: it begins with an object or an array.
pub(crate) fn looks_like_json(text: &str) -> bool {
    matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'['))
}
