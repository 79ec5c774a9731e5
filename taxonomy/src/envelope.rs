//! Finding envelopes: what a record says, under whatever wrappers a logger or a protocol put around it.
//!
//! A record may be an envelope itself, or hold one in a field, or as JSON text in a string: double-encoded
//! envelopes are the normal case over MCP. Every shape we know has a function of its own here; the first
//! that fits is taken.
//!
//! What always holds: at most a fixed number of wrappers is opened, each with a parser of its own, so that
//! the work is bounded by the size of the record; **hidden** is decided here, and only a span's own status
//! overrules it.

pub(crate) mod error_shapes;
mod reply;

use crate::code::Code;
use crate::context::{Field, Fields, NO_FIELDS, Names, Part, Sorted, filled};
use crate::details::{Details, Key};
use crate::dialect::Dialect;
use crate::event::{Kind, Outcome};
use crate::json::{Json, Parser};
use crate::reason::Reason;
use crate::registry::{AuditEvent, Registry};
use std::borrow::Cow;

/// The wrappers that loggers and protocols use, in the order they are tried.
const WRAPPERS: [Part; 10] = [
    Part::Response,
    Part::Result,
    Part::Envelope,
    Part::Body,
    Part::Payload,
    Part::Event,
    Part::Data,
    Part::Message,
    Part::Msg,
    Part::Log,
];

/// Where an envelope was found, and what was said around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'t> {
    /// The outermost object: attributes come from it.
    pub(crate) record: Option<Json<'t>>,
    /// Whether it has any.
    pub(crate) has_attributes: bool,
    /// The object that holds the envelope.
    pub(crate) envelope: Option<Json<'t>>,
    /// The context fields gathered on the way in; the outer ones hold.
    pub(crate) fields: &'t Fields<'t>,
    /// The way here led through a reply that its protocol calls a success.
    pub(crate) hidden: bool,
    /// The place in a batch.
    pub(crate) batch_index: Option<i64>,
    /// The operation that a batch names for this item.
    pub(crate) operation: Option<&'t str>,
}

impl Scope<'_> {
    pub(crate) const EMPTY: Self = Self {
        record: None,
        has_attributes: false,
        envelope: None,
        fields: &NO_FIELDS,
        hidden: false,
        batch_index: None,
        operation: None,
    };
}

/// One failure or warning, as an envelope states it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure<'t> {
    pub(crate) kind: Kind,
    /// The dialect that the shape shows.
    pub(crate) shape: Dialect,
    pub(crate) code: Code<'t>,
    pub(crate) message: Option<&'t str>,
    /// The error object; none when the error is a text.
    pub(crate) error: Option<Json<'t>>,
    /// The fields of the error object that mean something.
    pub(crate) beside: Details<'t>,
    pub(crate) details: Option<Json<'t>>,
    /// The class of the exception behind it.
    pub(crate) type_name: Option<&'t str>,
    /// A confirmation that is offered beside the error.
    pub(crate) confirmation: Option<Json<'t>>,
    /// The error is a text where an object belongs.
    pub(crate) is_text: bool,
    /// Telemetry tells of it; the reply itself was not seen, so its form cannot be judged.
    pub(crate) is_hearsay: bool,
    /// What the status of another protocol stands for in our taxonomy.
    pub(crate) canonical: Option<&'static str>,
}

impl<'t> Failure<'t> {
    /// A failure of which only the dialect is known.
    pub(crate) fn of_shape(shape: Dialect) -> Self {
        Self {
            kind: Kind::Error,
            shape,
            code: Code::Missing,
            message: None,
            error: None,
            beside: Details::NONE,
            details: None,
            type_name: None,
            confirmation: None,
            is_text: false,
            is_hearsay: false,
            canonical: None,
        }
    }

    /// The same failure, in these words.
    pub(crate) fn saying<'u>(self, message: Option<&'u str>) -> Failure<'u>
    where
        't: 'u,
    {
        Failure { message, ..self }
    }

    /// A failure from an object with `code`, `message` and `details` or `data`.
    fn of_object(shape: Dialect, error: Json<'t>) -> Self {
        let beside = Details::read(Some(error));
        Self {
            error: Some(error),
            code: Code::read(error_code(&beside, error)),
            message: beside.text(Key::Message),
            details: beside.get(Key::Details).or(beside.get(Key::Data)),
            type_name: beside.text(Key::Type),
            beside,
            ..Self::of_shape(shape)
        }
    }

    /// An item of a list of errors or warnings: an object, or just a text.
    fn of_item(shape: Dialect, item: Json<'t>) -> Self {
        item.as_str().map_or_else(|| Self::of_object(shape, item), |text| Self::of_text(shape, text))
    }

    /// A failure of which a text is all there is.
    fn of_text(shape: Dialect, message: &'t str) -> Self {
        Self { message: Some(message), is_text: true, ..Self::of_shape(shape) }
    }
}

/// A code that is there but `null` is not the same as none.
fn error_code<'t>(beside: &Details<'t>, error: Json<'t>) -> Option<Json<'t>> {
    beside.get(Key::Code).or_else(|| error.get("code"))
}

/// One call that worked, or several alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Success {
    pub(crate) dialect: Dialect,
    pub(crate) outcome: Outcome,
    pub(crate) count: u64,
}

impl Success {
    fn of(dialect: Dialect) -> Self {
        Self { dialect, outcome: Outcome::Ok, count: 1 }
    }
}

/// Takes what is found, while the record is still in memory.
pub(crate) trait Receiver {
    fn failure(&mut self, failure: &Failure<'_>, scope: &Scope<'_>);
    fn success(&mut self, success: Success, scope: &Scope<'_>);
    fn audit(&mut self, event: &AuditEvent, record: Json<'_>, scope: &Scope<'_>);
    /// What holds nothing of ours.
    fn nothing(&mut self, reason: Reason);
}

/// Looks through one record.
pub(crate) struct Finder<'f, R> {
    pub(crate) registry: &'f Registry,
    pub(crate) names: &'f Names,
    pub(crate) receiver: &'f mut R,
}

/// `Ok` when something was found and passed on; else why not.
type Look = Result<(), Reason>;

/// Keeps the reason that tells more.
fn worse(a: Reason, b: Reason) -> Reason {
    let weight = |reason: Reason| match reason {
        Reason::TooManyLevels => 2,
        Reason::NotAReply => 1,
        _ => 0,
    };
    if weight(b) > weight(a) { b } else { a }
}

impl<R: Receiver> Finder<'_, R> {
    /// Looks at a whole record; what holds nothing is reported, never dropped. `scope` is what is known of
    /// the record from around it.
    pub(crate) fn record(&mut self, value: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) {
        if value.is_array() {
            if value.items().next().is_none() {
                self.receiver.nothing(Reason::NoEnvelope);
            }
            for item in value.items() {
                self.record_item(item, scope, parsers);
            }
            return;
        }
        self.record_item(value, scope, parsers);
    }

    fn record_item(&mut self, value: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) {
        // Only when nothing better was found is a bare HTTP status worth something.
        let looked = if value.is_object() {
            let sorted = self.names.sort(value);
            self.object(&sorted, scope, parsers).or_else(|reason| {
                self.status_of(&sorted, scope, parsers).map_err(|other| worse(reason, other))
            })
        } else {
            self.look(value, scope, parsers).or_else(|reason| {
                self.status_only(value, scope, parsers).map_err(|other| worse(reason, other))
            })
        };
        if let Err(reason) = looked {
            self.receiver.nothing(reason);
        }
    }

    /// Looks at a value: an envelope, a wrapper, a batch, or any of these as text.
    fn look(&mut self, value: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Look {
        if let Some(text) = value.as_str() {
            return self.open(text, parsers, |finder, json, deeper| finder.look(json, scope, deeper));
        }
        if value.is_array() {
            return self.batch(value, scope, parsers);
        }
        if !value.is_object() {
            return Err(Reason::NoEnvelope);
        }
        self.object(&self.names.sort(value), scope, parsers)
    }

    /// Looks at an object: an envelope, or a wrapper.
    fn object(&mut self, sorted: &Sorted<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Look {
        let fields = self.with_meta(scope.fields, sorted);
        let scope = Scope {
            record: scope.record.or(Some(sorted.object)),
            has_attributes: if scope.record.is_none() {
                sorted.has_attributes()
            } else {
                scope.has_attributes
            },
            envelope: Some(sorted.object),
            fields: &fields,
            ..*scope
        };
        match self.envelope(sorted, &scope, parsers) {
            Some(look) => look,
            None => self.wrapped(sorted, &scope, parsers),
        }
    }

    /// The context so far, with what an object and its `_meta` say.
    fn with_meta<'s, 't>(&self, outer: &'s Fields<'t>, sorted: &'s Sorted<'t>) -> Cow<'s, Fields<'t>> {
        match sorted.part(Part::Meta) {
            Some(meta) if meta.is_object() => {
                let fields = filled(outer, sorted).into_owned();
                Cow::Owned(filled(&fields, &self.names.sort(meta)).into_owned())
            }
            _ => filled(outer, sorted),
        }
    }

    /// Parses a text that looks like JSON and hands it on.
    fn open(
        &mut self,
        text: &str,
        parsers: &mut [Parser],
        look: impl FnOnce(&mut Self, Json<'_>, &mut [Parser]) -> Look,
    ) -> Look {
        if !looks_like_json(text) {
            return Err(Reason::NoEnvelope);
        }
        let Some((parser, deeper)) = parsers.split_first_mut() else { return Err(Reason::TooManyLevels) };
        parser
            .parse(text.trim().as_bytes(), |json| look(self, json, deeper))
            .unwrap_or(Err(Reason::NoEnvelope))
    }

    /// The replies of an array; other arrays are data.
    fn batch(&mut self, array: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Look {
        let mut found = Err(Reason::NoEnvelope);
        for item in array.items().filter(|item| is_reply(*item) || is_json_text(*item)) {
            match self.look(item, scope, parsers) {
                Ok(()) => found = Ok(()),
                Err(reason) => found = found.map_err(|before| worse(before, reason)),
            }
        }
        found
    }

    /// The shapes that an object can have by itself; `None` when it has none of them.
    fn envelope(&mut self, sorted: &Sorted<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Option<Look> {
        if let Some(event) =
            sorted.part(Part::Event).and_then(Json::as_str).and_then(|event| self.registry.audit(event))
        {
            self.receiver.audit(event, sorted.object, scope);
            return Some(Ok(()));
        }
        if let Some(success) = sorted.part(Part::Success).and_then(Json::as_bool) {
            return Some(self.mcp_aql(success, sorted, scope, parsers));
        }
        if sorted.part(Part::Jsonrpc).is_some() || reply::is_bare_result_error(sorted) {
            return Some(self.jsonrpc(sorted, scope, parsers));
        }
        if reply::is_tool_result(sorted) {
            return Some(self.tool_result(sorted, scope, parsers));
        }
        let mut failure = error_shapes::read(self.registry, sorted)?;
        failure.confirmation = sorted.part(Part::Confirmation);
        self.failed(&failure, scope);
        Some(Ok(()))
    }

    /// Passes a failure on, or those of a batch that it stands for.
    fn failed(&mut self, failure: &Failure<'_>, scope: &Scope<'_>) {
        if !self.partial_failure(failure, scope) {
            self.receiver.failure(failure, scope);
        }
    }

    /// Tries the wrappers, then the shapes that are too weak to be tried before them.
    fn wrapped(&mut self, sorted: &Sorted<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Look {
        let mut reason = Reason::NoEnvelope;
        let own = self.registry.operator().paths.iter().filter_map(|path| sorted.object.path(path));
        let usual = WRAPPERS.iter().filter_map(|&part| sorted.part(part));
        for value in usual.chain(own).chain(sorted.part(Part::Error)) {
            match self.inside(value, scope, parsers) {
                Ok(()) => return Ok(()),
                Err(other) => reason = worse(reason, other),
            }
        }
        if let Some(failure) = error_shapes::read_weak(self.registry, sorted) {
            self.failed(&failure, scope);
            return Ok(());
        }
        if sorted.part(Part::Result).is_some() && sorted.part(Part::Id).is_some() {
            // The bridge of agent-skills answers like JSON-RPC, but does not say so.
            self.receiver.success(Success::of(Dialect::AgentSkills), scope);
            return Ok(());
        }
        Err(reason)
    }

    /// Opens one wrapper: an object costs a level, a text costs one by being parsed.
    fn inside(&mut self, value: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Look {
        if value.is_object() || value.is_array() {
            return match parsers.split_first_mut() {
                Some((_, deeper)) => self.look(value, scope, deeper),
                None if value.is_object() => Err(Reason::TooManyLevels),
                None => Err(Reason::NoEnvelope),
            };
        }
        self.look(value, scope, parsers)
    }

    /// Access-log style: a status is all there is, at the top or one wrapper down.
    fn status_only(&mut self, value: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Look {
        if let Some(text) = value.as_str() {
            return self.open(text, parsers, |finder, json, deeper| finder.status_only(json, scope, deeper));
        }
        self.status_of(&self.names.sort(value), scope, parsers)
    }

    fn status_of(&mut self, sorted: &Sorted<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Look {
        let fields = filled(scope.fields, sorted);
        let scope = Scope {
            record: scope.record.or(Some(sorted.object)),
            has_attributes: scope.record.is_some() && scope.has_attributes || sorted.has_attributes(),
            envelope: Some(sorted.object),
            fields: &fields,
            ..*scope
        };
        if let Some(status) = sorted.field(Field::HttpStatus).and_then(crate::context::http_status) {
            match status {
                400.. => self.receiver.failure(&error_shapes::of_status(sorted), &scope),
                _ => self.receiver.success(Success::of(Dialect::Http), &scope),
            }
            return Ok(());
        }
        for value in [Part::Log, Part::Message, Part::Msg, Part::Event]
            .into_iter()
            .filter_map(|part| sorted.part(part))
        {
            if value.as_str().is_some() && self.status_only(value, &scope, parsers).is_ok() {
                return Ok(());
            }
        }
        Err(Reason::NoEnvelope)
    }
}

/// An element of an array that is a document of its own: telemetry carries lists of texts only.
fn is_json_text(item: Json<'_>) -> bool {
    item.as_str().is_some_and(looks_like_json)
}

/// An element of an array that answers a call, rather than being data.
fn is_reply(item: Json<'_>) -> bool {
    item.fields().any(|(key, value)| match key {
        "jsonrpc" => true,
        "success" => value.as_bool().is_some(),
        "error" => value.is_object(),
        _ => false,
    })
}

/// Worth parsing: an object or an array after white space.
pub(crate) fn looks_like_json(text: &str) -> bool {
    matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'['))
}
