//! Pairing of JSON-RPC replies with their requests, if the caller keeps a [`RequestTracker`] for the stream.

use super::extra_fields::ExtraFields;
use super::{EnvelopeFinder, Scope};
use crate::context::{ContextField, EnvelopeKey, IndexedObject};
use crate::json::Json;
use crate::redact::Redactor;
use crate::request_tracker::{Progress, RequestTracker, TrackedCall, TrackedKey, TrackedKind};
use crate::time;

/// The state kept from earlier records of the stream.
pub(crate) struct Stream<'f> {
    pub(crate) tracker: &'f mut RequestTracker,
    pub(crate) redactor: &'f Redactor,
}

/// The maximum number of bytes of a request's arguments that are hashed.
const MAX_ARGUMENT_BYTES: usize = 64 << 10;
/// The longest time between a request and its reply; a later reply belongs to another request with the same
/// id.
const MAX_DURATION_US: i64 = 24 * 60 * 60 * 1_000_000;

/// The request of a reply, with the time between them.
pub(super) struct PairedCall {
    pub(super) call: TrackedCall,
    duration_ms: Option<f64>,
}

impl PairedCall {
    pub(super) fn new(call: TrackedCall, scope: &Scope<'_>) -> Self {
        let duration_ms = call.time.zip(scope_time(scope)).and_then(|(start, end)| elapsed_ms(start, end));
        Self { call, duration_ms }
    }

    pub(super) fn fields(&self) -> ExtraFields<'_> {
        ExtraFields::default()
            .with_operation(self.call.operation.as_deref())
            .with_service(self.call.service.as_deref())
            .with_duration_ms(self.duration_ms)
    }

    /// Calls `read` with a scope that includes the context fields of the request.
    pub(super) fn with_scope<R>(&self, scope: &Scope<'_>, read: impl FnOnce(&Scope<'_>) -> R) -> R {
        self.fields().fill(scope, |scope| read(&Scope { arguments: self.call.arguments, ..*scope }))
    }
}

#[allow(clippy::cast_precision_loss)]
fn elapsed_ms(start: i64, end: i64) -> Option<f64> {
    let elapsed = end.checked_sub(start)?;
    (0..MAX_DURATION_US).contains(&elapsed).then_some(elapsed as f64 / 1_000.0)
}

/// Returns the time that the record states.
pub(super) fn scope_time(scope: &Scope<'_>) -> Option<i64> {
    scope.fields[ContextField::Time as usize].and_then(time::read)
}

/// Returns the session or the service that ids belong to.
fn owner<'t>(scope: &Scope<'t>) -> Option<&'t str> {
    [ContextField::SessionId, ContextField::Service]
        .into_iter()
        .find_map(|field| scope.fields[field as usize]?.as_str())
}

/// Returns the keys under which the call of an id may be remembered, the most specific first: not every line
/// of a stream names its session.
fn keys(kind: TrackedKind, id: Json<'_>, scope: &Scope<'_>) -> impl Iterator<Item = TrackedKey> {
    let owned = owner(scope).and_then(|owner| TrackedKey::new(kind, id, Some(owner)));
    owned.into_iter().chain(TrackedKey::new(kind, id, None))
}

impl<R> EnvelopeFinder<'_, R> {
    /// Remembers the call of an id.
    pub(super) fn remember(&mut self, kind: TrackedKind, id: Json<'_>, call: TrackedCall, scope: &Scope<'_>) {
        if let Some(stream) = &mut self.stream
            && let Some(key) = keys(kind, id, scope).next()
        {
            stream.tracker.insert(key, call);
        }
    }

    /// Returns the call of an id.
    pub(super) fn recall(&self, kind: TrackedKind, id: Json<'_>, scope: &Scope<'_>) -> Option<TrackedCall> {
        let tracker = &self.stream.as_ref()?.tracker;
        keys(kind, id, scope).find_map(|key| tracker.get(key).cloned())
    }

    /// Returns the request of a reply and removes it from the tracker.
    pub(super) fn take_request(&mut self, scope: &Scope<'_>) -> Option<PairedCall> {
        let stream = self.stream.as_mut()?;
        let id = scope.request_id?;
        let call = keys(TrackedKind::Request, id, scope).find_map(|key| stream.tracker.take(key))?;
        Some(PairedCall::new(call, scope))
    }

    /// Remembers a JSON-RPC request until its reply arrives. The operation of a tool call is the tool's name.
    pub(super) fn remember_request(&mut self, method: &str, object: &IndexedObject<'_>, scope: &Scope<'_>) {
        let Some(id) = object.get(EnvelopeKey::Id).filter(|_| self.stream.is_some()) else { return };
        let params = object.json.get("params").unwrap_or(Json::NULL);
        let tool = params.get("name").and_then(Json::as_str).filter(|_| method == "tools/call");
        let arguments = params.get("arguments").filter(|_| tool.is_some()).unwrap_or(params);
        let call = self.new_call(tool.unwrap_or(method), None, Some(arguments), scope);
        self.remember(TrackedKind::Request, id, call, scope);
    }

    /// Creates a call that begins with this record.
    pub(super) fn new_call(
        &mut self,
        operation: &str,
        service: Option<&str>,
        arguments: Option<Json<'_>>,
        scope: &Scope<'_>,
    ) -> TrackedCall {
        const MAX_NAME_BYTES: usize = 256;
        let name = |text: &str| crate::limits::truncate_str(text, MAX_NAME_BYTES).into();
        let hashed = arguments.filter(|arguments| arguments.is_object() || arguments.is_array());
        let hash = hashed.zip(self.stream.as_mut()).map(|(arguments, stream)| {
            let buffer = &mut stream.tracker.buffer;
            buffer.clear();
            stream.redactor.json(buffer, arguments, MAX_ARGUMENT_BYTES);
            stream.redactor.token_hash(buffer)
        });
        TrackedCall {
            operation: Some(name(operation)),
            service: service.map(name),
            time: scope_time(scope),
            arguments: hash,
            progress: Progress::Requested,
        }
    }
}
