//! Replies: MCP-AQL envelopes, JSON-RPC replies, tool results, and what is hidden in them.

use super::{Failure, Finder, Look, Receiver, Scope, Success, error_shapes, worse};
use crate::code::Code;
use crate::context::{Part, Sorted};
use crate::dialect::Dialect;
use crate::event::{Kind, Outcome};
use crate::json::{Json, Parser};
use crate::reason::Reason;

/// `content`, `structuredContent` or `isError` make a tool result.
pub(super) fn is_tool_result(sorted: &Sorted<'_>) -> bool {
    sorted.part(Part::IsError).and_then(Json::as_bool).is_some()
        || sorted.part(Part::StructuredContent).is_some()
        || sorted.part(Part::Content).is_some_and(is_content)
}

/// `[{"type": "text", "text": "..."}]`.
fn is_content(value: Json<'_>) -> bool {
    value.items().next().is_some_and(|item| item.get("type").is_some())
}

/// The texts of the content of a tool result.
fn texts(content: Json<'_>) -> impl Iterator<Item = Json<'_>> {
    content.items().filter_map(|item| item.get("text"))
}

/// `{"id": ..., "result": {"error": {...}}}`: JSON-RPC that does not say so.
pub(super) fn is_bare_result_error(sorted: &Sorted<'_>) -> bool {
    let error = || sorted.part(Part::Result)?.get("error");
    sorted.part(Part::Id).is_some() && error().is_some_and(Json::is_object)
}

impl<R: Receiver> Finder<'_, R> {
    /// `{"success": ...}`.
    pub(super) fn mcp_aql(
        &mut self,
        success: bool,
        sorted: &Sorted<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> Look {
        let error = sorted.part(Part::Error).filter(|error| error.is_object() || error.as_str().is_some());
        // A failure under `success: true` is one that its envelope calls a success.
        let inner = Scope { hidden: scope.hidden || success, ..*scope };
        match error {
            None if self.more_telling(success, sorted, &inner, parsers).is_ok() => {}
            None if success => self.mcp_aql_success(sorted, scope, parsers),
            _ => self.mcp_aql_failure(error, sorted, &inner, parsers),
        }
        self.warnings(sorted, scope);
        Ok(())
    }

    /// A logger's own `success` may stand beside a whole reply, which tells more.
    fn more_telling(
        &mut self,
        success: bool,
        sorted: &Sorted<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> Look {
        const REPLIES: [Part; 5] = [Part::Response, Part::Result, Part::Envelope, Part::Body, Part::Payload];
        // A result that worked is data, and may hold anything, unless it claims to be an envelope itself.
        let claims = |reply: &Json<'_>| match reply.as_str() {
            Some(text) => text.contains("\"success\"") || text.contains("\"jsonrpc\""),
            None => reply.get("success").or_else(|| reply.get("jsonrpc")).is_some(),
        };
        let tells = |reply: &Json<'_>| !success || claims(reply);
        for reply in REPLIES.into_iter().filter_map(|part| sorted.part(part)).filter(tells) {
            if self.inside(reply, scope, parsers).is_ok() {
                return Ok(());
            }
        }
        Err(Reason::NoEnvelope)
    }

    fn mcp_aql_failure(
        &mut self,
        error: Option<Json<'_>>,
        sorted: &Sorted<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) {
        let confirmation = sorted.part(Part::Confirmation);
        match error.and_then(Json::as_str) {
            Some(text) => self.error_text(Dialect::McpAql, text, confirmation, scope, parsers),
            None => {
                // Without an error object, its parts may stand in the envelope itself.
                let object = error.unwrap_or(sorted.object);
                self.failed(&Failure { confirmation, ..Failure::of_object(Dialect::McpAql, object) }, scope);
            }
        }
    }

    /// An error that is a text: words, or an error object that was encoded once more.
    fn error_text(
        &mut self,
        shape: Dialect,
        text: &str,
        confirmation: Option<Json<'_>>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) {
        let opened = self.open(text, parsers, |finder, json, _| {
            if !error_shapes::is_error_object(json) {
                return Err(Reason::NoEnvelope);
            }
            finder.failed(&Failure { confirmation, ..error_shapes::of_jsonrpc_object(shape, json) }, scope);
            Ok(())
        });
        if opened.is_err() {
            self.failed(&Failure { confirmation, ..Failure::of_text(shape, text) }, scope);
        }
    }

    /// A batch error that lists the errors of its items stands for these, and is not one more.
    pub(super) fn partial_failure(&mut self, failure: &Failure<'_>, scope: &Scope<'_>) -> bool {
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
            self.receiver.failure(&Failure::of_item(Dialect::McpAql, inner), &item);
        }
        let succeeded = details.get("succeeded").and_then(Json::as_i64).unwrap_or(0);
        if let Ok(count @ 1..=1_000_000) = u64::try_from(succeeded) {
            self.receiver.success(Success { count, ..Success::of(Dialect::McpAql) }, scope);
        }
        true
    }

    fn mcp_aql_success(&mut self, sorted: &Sorted<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) {
        match sorted.part(Part::Results).filter(|results| results.is_array()) {
            Some(results) => self.results(results, scope, parsers),
            None => self.receiver.success(Success::of(Dialect::McpAql), scope),
        }
    }

    /// The items of a batch, each on its own; what fails under `success: true` is hidden.
    fn results(&mut self, results: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) {
        for (position, item) in (0..).zip(results.items()) {
            let item_scope = Scope { hidden: true, ..item_scope(item, position, scope) };
            let result = item.present("result").unwrap_or(item);
            let looked = match parsers.split_first_mut() {
                Some((_, deeper)) => self.look(result, &item_scope, deeper),
                None => Err(Reason::TooManyLevels),
            };
            match looked {
                Ok(()) => {}
                Err(Reason::TooManyLevels) => self.receiver.nothing(Reason::TooManyLevels),
                Err(_) => self.receiver.success(Success::of(Dialect::McpAql), &item_scope),
            }
        }
    }

    fn warnings(&mut self, sorted: &Sorted<'_>, scope: &Scope<'_>) {
        let Some(warnings) = sorted.part(Part::Warnings) else { return };
        // A warning is not a failure, so nothing of it is hidden.
        let scope = Scope { hidden: false, ..*scope };
        for warning in warnings.items() {
            let failure = Failure { kind: Kind::Warning, ..Failure::of_item(Dialect::McpAql, warning) };
            self.receiver.failure(&failure, &scope);
        }
    }

    /// `{"jsonrpc": "2.0", ...}`.
    pub(super) fn jsonrpc(&mut self, sorted: &Sorted<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Look {
        if let Some(error) = sorted.part(Part::Error) {
            match error.as_str() {
                Some(text) => self.error_text(Dialect::Jsonrpc, text, None, scope, parsers),
                None => self.failed(&error_shapes::of_jsonrpc_object(Dialect::Jsonrpc, error), scope),
            }
            return Ok(());
        }
        let Some(result) = sorted.part(Part::Result) else {
            if sorted.object.get("result").is_some() {
                self.receiver.success(Success::of(Dialect::Jsonrpc), scope);
                return Ok(());
            }
            let is_request = sorted.part(Part::Method).is_some();
            return Err(if is_request { Reason::NotAReply } else { Reason::NoEnvelope });
        };
        match self.result(result, scope, parsers) {
            Ok(()) => Ok(()),
            Err(Reason::TooManyLevels) => Err(Reason::TooManyLevels),
            Err(_) => {
                self.receiver.success(Success::of(Dialect::Jsonrpc), scope);
                Ok(())
            }
        }
    }

    /// What JSON-RPC calls a success: a failure in it is hidden.
    fn result(&mut self, result: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Look {
        if !result.is_object() {
            return self.look(result, &Scope { hidden: true, ..*scope }, parsers);
        }
        let sorted = self.names.sort(result);
        let fields = self.with_meta(scope.fields, &sorted);
        let scope = Scope { fields: &fields, ..*scope };
        let hidden = Scope { hidden: true, ..scope };
        if sorted.part(Part::Success).and_then(Json::as_bool).is_some() {
            return self.look(result, &hidden, parsers);
        }
        if let Some(error) = sorted.part(Part::Error).filter(|error| error.is_object()) {
            self.failed(&error_shapes::of_result_error(error), &hidden);
            return Ok(());
        }
        if is_tool_result(&sorted) {
            let scope = Scope { envelope: Some(result), ..scope };
            return self.tool_result(&sorted, &scope, parsers);
        }
        if asks_for_input(&sorted) {
            self.input_required(&scope);
            return Ok(());
        }
        let failure = error_shapes::read(self.registry, &sorted)
            .or_else(|| error_shapes::read_weak(self.registry, &sorted))
            .ok_or(Reason::NoEnvelope)?;
        self.failed(&failure, &hidden);
        Ok(())
    }

    fn input_required(&mut self, scope: &Scope<'_>) {
        let asked = Success { outcome: Outcome::InputRequired, ..Success::of(Dialect::Jsonrpc) };
        self.receiver.success(asked, scope);
    }

    /// `{"content": [...], "isError": ...}`: the envelope inside counts, whatever `isError` says.
    pub(super) fn tool_result(
        &mut self,
        sorted: &Sorted<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> Look {
        let is_error = sorted.part(Part::IsError).and_then(Json::as_bool) == Some(true);
        let inner = Scope { hidden: scope.hidden || !is_error, ..*scope };
        let content = sorted.part(Part::Content).unwrap_or(Json::NULL);
        let mut looked = Err(Reason::NoEnvelope);
        if let Some(structured) = sorted.part(Part::StructuredContent) {
            looked = self.inside(structured, &inner, parsers);
        }
        // The text repeats structured content, so one of them is enough.
        if let Err(reason) = looked {
            looked = self.content(content, &inner, parsers).map_err(|other| worse(reason, other));
        }
        if looked.is_ok() || looked == Err(Reason::TooManyLevels) {
            return looked;
        }
        if is_error {
            let message = texts(content).find_map(Json::as_str);
            let failure = Failure { code: Code::ToolError, message, ..Failure::of_shape(Dialect::Jsonrpc) };
            self.receiver.failure(&failure, &inner);
        } else if asks_for_input(sorted) {
            self.input_required(scope);
        } else {
            self.receiver.success(Success::of(Dialect::Jsonrpc), scope);
        }
        Ok(())
    }

    /// The envelopes in the texts of a tool result.
    fn content(&mut self, content: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Look {
        let mut looked = Err(Reason::NoEnvelope);
        for text in texts(content) {
            match self.look(text, scope, parsers) {
                Ok(()) => looked = Ok(()),
                Err(reason) => looked = looked.map_err(|before| worse(before, reason)),
            }
        }
        looked
    }

    /// What telemetry keeps of a call: the reply, the tool's result, or only the content of that.
    pub(crate) fn captured(&mut self, value: Json<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> Look {
        if is_content(value) { self.content(value, scope, parsers) } else { self.look(value, scope, parsers) }
    }
}

fn asks_for_input(sorted: &Sorted<'_>) -> bool {
    sorted.part(Part::ResultType).and_then(Json::as_str) == Some("input_required")
}

/// The scope of one item of a batch.
fn item_scope<'t>(item: Json<'t>, position: i64, scope: &Scope<'t>) -> Scope<'t> {
    Scope {
        batch_index: Some(item.get("index").and_then(Json::as_i64).unwrap_or(position)),
        operation: item.get("operation").and_then(Json::as_str).or(scope.operation),
        ..*scope
    }
}
