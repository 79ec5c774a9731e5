//! Replies: MCP-AQL envelopes and JSON-RPC replies, with the failures hidden in them.

use super::api_shapes::{self, Strictness};
use super::tool_result::{is_tool_result, requires_input};
use super::{EnvelopeFinder, EnvelopeVisitor, Failure, Level, Scope, SearchResult, Success, error_shapes};
use crate::code::Code;
use crate::context::{EnvelopeKey, IndexedObject};
use crate::dialect::Dialect;
use crate::event::EventKind;
use crate::json::{Json, Parser};
use crate::reason::UnrecognizedReason;

/// Matches `{"id": ..., "result": {"error": {...}}}`: JSON-RPC without a `jsonrpc` field.
pub(super) fn is_bare_result_error(object: &IndexedObject<'_>) -> bool {
    let error = || object.get(EnvelopeKey::Result)?.get("error");
    object.get(EnvelopeKey::Id).is_some() && error().is_some_and(Json::is_object)
}

/// Reports whether a value claims to be an envelope, rather than being arbitrary data.
pub(super) fn claims_reply(value: Json<'_>) -> bool {
    match value.as_str() {
        Some(text) => text.contains("\"success\"") || text.contains("\"jsonrpc\""),
        None => value.get("success").or_else(|| value.get("jsonrpc")).is_some(),
    }
}

impl<R: EnvelopeVisitor> EnvelopeFinder<'_, R> {
    /// Reads an MCP-AQL envelope: `{"success": ...}`.
    pub(super) fn read_mcp_aql(
        &mut self,
        success: bool,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let error =
            object.get(EnvelopeKey::Error).filter(|error| error.is_object() || error.as_str().is_some());
        // Some servers always send the field, and leave it empty on success.
        let is_empty = |error: &Json<'_>| {
            error.as_str().is_some_and(|text| text.trim_ascii().is_empty())
                || error.is_object() && error.fields().next().is_none()
        };
        let error = error.filter(|error| !success || !is_empty(error));
        // A failure under `success: true` is hidden.
        let inner = Scope { hidden: scope.hidden || success, ..*scope };
        match error {
            None if self.search_nested_reply(success, object, &inner, parsers).is_ok() => {}
            None if success => self.report_mcp_aql_success(object, scope, parsers),
            _ => self.report_mcp_aql_failure(error, object, &inner, parsers),
        }
        self.report_warnings(object, scope);
        Ok(())
    }

    /// Searches for a whole reply beside a logger's own `success`, because the reply is more specific.
    fn search_nested_reply(
        &mut self,
        success: bool,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        const REPLIES: [EnvelopeKey; 5] = [
            EnvelopeKey::Response,
            EnvelopeKey::Result,
            EnvelopeKey::Envelope,
            EnvelopeKey::Body,
            EnvelopeKey::Payload,
        ];
        // The result of a successful call is data and may hold anything, unless it claims to be an envelope
        // itself.
        let tells = |reply: &Json<'_>| !success || claims_reply(*reply);
        for reply in REPLIES.into_iter().filter_map(|key| object.get(key)).filter(tells) {
            if self.search_nested(reply, scope, parsers).is_ok() {
                return Ok(());
            }
        }
        Err(UnrecognizedReason::NoEnvelope)
    }

    fn report_mcp_aql_failure(
        &mut self,
        error: Option<Json<'_>>,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) {
        let confirmation = object.get(EnvelopeKey::Confirmation);
        match error.and_then(Json::as_str) {
            Some(text) => self.report_text_error(Dialect::McpAql, text, confirmation, scope, parsers),
            None => {
                // Without an error object, its parts may be in the envelope itself.
                let failure = match error {
                    Some(error) => Failure::from_object(Dialect::McpAql, error),
                    None => self.read_mcp_aql_parts(object.json),
                };
                self.report_failure(&Failure { confirmation, ..failure }, scope);
            }
        }
    }

    /// Reads a failure without an error object or text. Its parts may be in the envelope itself, or under the
    /// keys that other APIs use.
    fn read_mcp_aql_parts<'t>(&self, object: Json<'t>) -> Failure<'t> {
        let failure = Failure::from_object(Dialect::McpAql, object);
        if failure.message.is_some() {
            return failure;
        }
        match api_shapes::explain(self.registry, object) {
            Some(other) => Failure {
                code: if failure.code.is_absent() { other.code } else { failure.code },
                shape_dialect: failure.shape_dialect,
                ..other
            },
            None => failure,
        }
    }

    /// Reports an error that is a text: prose, or a JSON-encoded error object.
    fn report_text_error(
        &mut self,
        shape_dialect: Dialect,
        text: &str,
        confirmation: Option<Json<'_>>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) {
        let opened = self.search_json_text(text, parsers, |finder, json, _| {
            if !error_shapes::is_error_object(json) {
                return Err(UnrecognizedReason::NoEnvelope);
            }
            finder.report_failure(
                &Failure { confirmation, ..error_shapes::read_jsonrpc_error(shape_dialect, json) },
                scope,
            );
            Ok(())
        });
        if opened.is_err() {
            self.report_failure(&Failure { confirmation, ..Failure::from_text(shape_dialect, text) }, scope);
        }
    }

    /// Reports the errors of the items of a batch error in place of the batch error itself. Returns false if
    /// the failure is not a batch error, or lists no errors.
    pub(super) fn report_batch_errors(&mut self, failure: &Failure<'_>, scope: &Scope<'_>) -> bool {
        if failure.code != Code::Text("BATCH_PARTIAL_FAILURE") {
            return false;
        }
        let Some(details) = failure.details else { return false };
        let Some(errors) = details.get("errors").filter(|errors| errors.items().next().is_some()) else {
            return false;
        };
        for (position, error) in (0..).zip(errors.items()) {
            let item = item_scope(error, position, scope);
            let inner = error.get("error").filter(|inner| inner.is_object()).unwrap_or(error);
            self.visitor.on_failure(&Failure::from_item(Dialect::McpAql, inner), &item);
        }
        let succeeded = details.get("succeeded").and_then(Json::as_i64).unwrap_or(0);
        if let Ok(count @ 1..=1_000_000) = u64::try_from(succeeded) {
            self.visitor.on_success(Success { count, ..Success::new(Dialect::McpAql) }, scope);
        }
        true
    }

    fn report_mcp_aql_success(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) {
        // A tool may return any list under this name.
        let is_batch = |results: &Json<'_>| {
            let is_item = |item: Json<'_>| item.present("result").is_some() || item.get("success").is_some();
            results.is_array() && (scope.level != Level::ToolData || results.items().any(is_item))
        };
        match object.get(EnvelopeKey::Results).filter(is_batch) {
            Some(results) => self.search_batch_results(results, scope, parsers),
            None => self.visitor.on_success(Success::new(Dialect::McpAql), scope),
        }
    }

    /// Searches each item of a batch; a failure under `success: true` is hidden.
    fn search_batch_results(&mut self, results: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) {
        for (position, item) in (0..).zip(results.items()) {
            let item_scope = Scope { hidden: true, ..item_scope(item, position, scope) };
            let result = item.present("result").unwrap_or(item);
            let searched = match parsers.split_first_mut() {
                Some((_, deeper)) => self.search(result, &item_scope, deeper),
                None => Err(UnrecognizedReason::TooManyLevels),
            };
            match searched {
                Ok(()) => {}
                Err(UnrecognizedReason::TooManyLevels) => {
                    self.visitor.on_unrecognized(UnrecognizedReason::TooManyLevels);
                }
                Err(_) => self.visitor.on_success(Success::new(Dialect::McpAql), &item_scope),
            }
        }
    }

    fn report_warnings(&mut self, object: &IndexedObject<'_>, scope: &Scope<'_>) {
        let Some(warnings) = object.get(EnvelopeKey::Warnings) else { return };
        // A warning is not a failure, so it is never hidden.
        let scope = Scope { hidden: false, ..*scope };
        for warning in warnings.items() {
            let failure =
                Failure { kind: EventKind::Warning, ..Failure::from_item(Dialect::McpAql, warning) };
            self.visitor.on_failure(&failure, &scope);
        }
    }

    /// Reads a JSON-RPC message: `{"jsonrpc": "2.0", ...}`.
    pub(super) fn read_jsonrpc(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        if object.get(EnvelopeKey::Error).is_none() && object.json.get("result").is_none() {
            let is_request = object.get(EnvelopeKey::Method).is_some();
            return if is_request {
                self.read_jsonrpc_request(object, scope, parsers)
            } else {
                Err(UnrecognizedReason::NoEnvelope)
            };
        }
        let scope = Scope { request_id: object.get(EnvelopeKey::Id), ..*scope };
        match self.take_request(&scope) {
            Some(request) => {
                request.with_scope(&scope, |scope| self.read_jsonrpc_reply(object, scope, parsers))
            }
            None => self.read_jsonrpc_reply(object, &scope, parsers),
        }
    }

    /// Reads a request or a notification, which is not a reply, except that it may report the state of a
    /// task.
    fn read_jsonrpc_request(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let Some(method) = object.get(EnvelopeKey::Method).and_then(Json::as_str) else {
            return Err(UnrecognizedReason::NotAReply);
        };
        if method.starts_with("notifications/tasks")
            && let Some(task) = object.json.get("params").filter(|params| params.is_object())
            && let Some(searched) = self.read_task_result(&self.names.index(task), scope, parsers)
        {
            return searched;
        }
        self.remember_request(method, object, scope);
        Err(UnrecognizedReason::NotAReply)
    }

    fn read_jsonrpc_reply(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        if let Some(error) = object.get(EnvelopeKey::Error) {
            match error.as_str() {
                Some(text) => self.report_text_error(Dialect::Jsonrpc, text, None, scope, parsers),
                None => {
                    self.report_failure(&error_shapes::read_jsonrpc_error(Dialect::Jsonrpc, error), scope);
                }
            }
            return Ok(());
        }
        let searched = match object.get(EnvelopeKey::Result) {
            Some(result) => self.search_result(result, scope, parsers),
            None => Err(UnrecognizedReason::NoEnvelope),
        };
        match searched {
            // A poll of a task whose state is already known is not a separate call.
            Err(reason @ (UnrecognizedReason::TooManyLevels | UnrecognizedReason::RepeatedState)) => {
                Err(reason)
            }
            Err(_) => {
                self.visitor.on_success(Success::new(Dialect::Jsonrpc), scope);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Searches the result of a JSON-RPC reply, which the protocol reports as a success, so a failure in it
    /// is hidden.
    pub(super) fn search_result(
        &mut self,
        result: Json<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        if !result.is_object() {
            let level = if result.as_str().is_some() { Level::ToolData } else { scope.level };
            return self.search(result, &Scope { hidden: true, level, ..*scope }, parsers);
        }
        let object = self.names.index(result);
        let fields = self.merge_meta(scope.fields, &object);
        let scope = Scope { fields: &fields, ..*scope };
        let hidden = Scope { hidden: true, ..scope };
        if object.get(EnvelopeKey::Success).and_then(Json::as_bool).is_some() {
            return self.search(result, &hidden, parsers);
        }
        if let Some(searched) = self.read_task_result(&object, &scope, parsers) {
            return searched;
        }
        if let Some(error) = object.get(EnvelopeKey::Error).filter(|error| error.is_object()) {
            self.report_failure(&error_shapes::read_result_error(error), &hidden);
            return Ok(());
        }
        if is_tool_result(&object) {
            let scope = Scope { envelope: Some(result), ..scope };
            return self.read_tool_result(&object, &scope, parsers);
        }
        if requires_input(&object) {
            self.report_input_required(&scope);
            return Ok(());
        }
        let failure = error_shapes::read_error(self.registry, &object)
            .or_else(|| error_shapes::read_weak_error(self.registry, &object))
            .or_else(|| api_shapes::read(self.registry, result, Strictness::Required))
            .ok_or(UnrecognizedReason::NoEnvelope)?;
        self.report_failure(&failure, &hidden);
        Ok(())
    }
}

/// Returns the scope of one item of a batch.
fn item_scope<'t>(item: Json<'t>, position: i64, scope: &Scope<'t>) -> Scope<'t> {
    Scope {
        batch_index: Some(item.get("index").and_then(Json::as_i64).unwrap_or(position)),
        operation: item.get("operation").and_then(Json::as_str).or(scope.operation),
        ..*scope
    }
}
