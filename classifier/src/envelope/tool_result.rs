//! Tool results, `{"content": [...], "isError": ...}`, and the failures that their texts state.
//!
//! Invariants: a result with `isError: true` is exactly one failure, whatever its texts hold, unless a batch
//! inside it lists its own failures; in a result without the flag only an unmistakable shape or statement is
//! a failure, and it is a hidden one.

use super::api_shapes::{self, Strictness};
use super::{
    EnvelopeFinder, EnvelopeVisitor, Failure, Level, Scope, SearchResult, Success, error_shapes,
    looks_like_json, more_specific, prose,
};
use crate::code::Code;
use crate::context::{EnvelopeKey, IndexedObject};
use crate::dialect::Dialect;
use crate::event::Outcome;
use crate::framing;
use crate::json::{Json, Parser};
use crate::reason::UnrecognizedReason;

/// Reports whether an object is a tool result, by its `content`, `structuredContent` or `isError`.
pub(super) fn is_tool_result(object: &IndexedObject<'_>) -> bool {
    let content = object.get(EnvelopeKey::Content);
    // Other records have their own flag in snake_case.
    let has_flag = object.get(EnvelopeKey::IsError).and_then(Json::as_bool).is_some()
        && (content.is_some() || object.json.get("isError").is_some());
    has_flag || object.get(EnvelopeKey::StructuredContent).is_some() || content.is_some_and(is_content)
}

/// Reports whether a value is a list of content parts: `[{"type": "text", "text": "..."}]`.
pub(super) fn is_content(value: Json<'_>) -> bool {
    value.items().next().is_some_and(|item| item.get("type").is_some())
}

/// Reports whether the protocol marks the tool call as failed.
pub(super) fn is_flagged(object: &IndexedObject<'_>) -> bool {
    object.get(EnvelopeKey::IsError).and_then(Json::as_bool) == Some(true)
}

/// Returns the texts of the content of a tool result: those of its parts, or the content itself if it is a
/// text. Some dumps write the text of a part under `content`.
pub(super) fn texts<'t>(content: Json<'t>) -> impl Iterator<Item = Json<'t>> {
    let part = |item: Json<'t>| {
        let is_text = |value: &Json<'t>| value.as_str().is_some();
        item.get("text").filter(is_text).or_else(|| item.get("content").filter(is_text))
    };
    let bare = content.as_str().map(|_| content);
    bare.into_iter().chain(content.items().filter_map(part))
}

/// Returns the first text that is not blank.
fn first_text(content: Json<'_>) -> Option<&str> {
    texts(content).filter_map(Json::as_str).find(|text| !text.trim_ascii().is_empty())
}

/// Reports whether an object is a batch with a failed item.
fn has_failed_items(object: &IndexedObject<'_>) -> bool {
    let items = object.get(EnvelopeKey::Results).into_iter().flat_map(Json::items);
    let mut results = items.map(|item| item.present("result").unwrap_or(item));
    results.any(|result| result.get("success").and_then(Json::as_bool) == Some(false))
}

/// The keys under which a failed reply may hold its error.
const ERROR_HOLDERS: [EnvelopeKey; 10] = [
    EnvelopeKey::Error,
    EnvelopeKey::Response,
    EnvelopeKey::Result,
    EnvelopeKey::Envelope,
    EnvelopeKey::Body,
    EnvelopeKey::Payload,
    EnvelopeKey::Data,
    EnvelopeKey::Message,
    EnvelopeKey::Msg,
    EnvelopeKey::StructuredContent,
];

impl<R: EnvelopeVisitor> EnvelopeFinder<'_, R> {
    /// Reads `{"content": [...], "isError": ...}`. An envelope inside it counts, whatever `isError` says.
    pub(super) fn read_tool_result(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        if is_flagged(object) {
            self.report_flagged_result(object, scope, parsers);
            return Ok(());
        }
        let inner = Scope { hidden: true, level: Level::ToolData, ..*scope };
        let content = object.get(EnvelopeKey::Content).unwrap_or(Json::NULL);
        let mut searched = Err(UnrecognizedReason::NoEnvelope);
        if let Some(structured) = object.get(EnvelopeKey::StructuredContent) {
            searched = self.search_nested(structured, &inner, parsers);
        }
        // The text repeats the structured content, so searching one of them is enough.
        if let Err(reason) = searched {
            searched =
                self.search_content(content, &inner, parsers).map_err(|other| more_specific(reason, other));
        }
        if searched.is_ok() || searched == Err(UnrecognizedReason::TooManyLevels) {
            return searched;
        }
        if requires_input(object) {
            self.report_input_required(scope);
        } else {
            self.visitor.on_success(Success::new(Dialect::Jsonrpc), scope);
        }
        Ok(())
    }

    /// Searches the output of a tool that has no error flag, for an envelope in its texts or a stated
    /// failure.
    pub(super) fn search_content(
        &mut self,
        content: Json<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let scope = Scope { level: Level::ToolData, ..*scope };
        let mut searched = Err(UnrecognizedReason::NoEnvelope);
        for text in texts(content) {
            match self.search(text, &scope, parsers) {
                Ok(()) => searched = Ok(()),
                Err(reason) => searched = searched.map_err(|before| more_specific(before, reason)),
            }
        }
        searched
    }

    /// Searches a text that a tool returned. JSON is parsed, and prose counts if it states a failure.
    pub(super) fn search_tool_text(
        &mut self,
        text: &str,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        if looks_like_json(text) {
            let mut is_json = false;
            let searched = self.search_json_text(text, parsers, |finder, json, deeper| {
                is_json = true;
                finder.search(json, scope, deeper)
            });
            if is_json || searched == Err(UnrecognizedReason::TooManyLevels) {
                return searched;
            }
        }
        if !prose::is_failure(self.registry, text) {
            return Err(UnrecognizedReason::NoEnvelope);
        }
        if !self.report_embedded_json(text, scope, parsers) {
            self.report_failure(&Failure { message: Some(text), ..Failure::new(Dialect::Jsonrpc) }, scope);
        }
        Ok(())
    }

    /// Reports the one failure of a result that its protocol marks as failed.
    pub(super) fn report_flagged_result(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) {
        let content = object.get(EnvelopeKey::Content).unwrap_or(Json::NULL);
        let structured = object.get(EnvelopeKey::StructuredContent);
        let found = structured.is_some_and(|value| self.report_flagged(value, scope, parsers))
            || texts(content).any(|text| self.report_flagged(text, scope, parsers));
        if !found {
            let in_structured = || structured?.get("result")?.as_str();
            let failure = Failure {
                code: Code::ToolError,
                message: first_text(content).or_else(in_structured),
                ..Failure::new(Dialect::Jsonrpc)
            };
            self.visitor.on_failure(&failure, scope);
        }
    }

    /// Reports a failure that the protocol has already signalled, if the value explains it. Returns true if
    /// it does.
    pub(super) fn report_flagged(
        &mut self,
        value: Json<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> bool {
        if let Some(text) = value.as_str() {
            return self.report_flagged_text(text, scope, parsers);
        }
        if value.is_array() {
            return value.items().any(|item| item.is_object() && self.report_flagged(item, scope, parsers));
        }
        if !value.is_object() {
            return false;
        }
        let object = self.names.index(value);
        let fields = self.merge_meta(scope.fields, &object);
        let scope = Scope { fields: &fields, envelope: Some(value), ..*scope };
        self.report_flagged_object(&object, &scope, parsers)
    }

    fn report_flagged_object(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> bool {
        match object.get(EnvelopeKey::Success).and_then(Json::as_bool) {
            Some(false) => return self.read_mcp_aql(false, object, scope, parsers).is_ok(),
            // A batch lists its own failures.
            Some(true) if has_failed_items(object) => {
                return self.read_mcp_aql(true, object, scope, parsers).is_ok();
            }
            _ => {}
        }
        if object.get(EnvelopeKey::Jsonrpc).is_some() && object.get(EnvelopeKey::Error).is_some() {
            return self.read_jsonrpc(object, scope, parsers).is_ok();
        }
        if is_flagged(object) && object.get(EnvelopeKey::Content).is_some() {
            self.report_flagged_result(object, scope, parsers);
            return true;
        }
        let holders = ERROR_HOLDERS.into_iter().filter_map(|key| object.get(key));
        let holds_more = |value: &Json<'_>| value.as_str().is_some_and(looks_like_json);
        for text in holders.clone().filter(holds_more) {
            if self.report_flagged(text, scope, parsers) {
                return true;
            }
        }
        let failure = error_shapes::read_error(self.registry, object)
            .or_else(|| api_shapes::read(self.registry, object.json, Strictness::Given));
        if let Some(failure) = failure {
            self.report_failure(&failure, scope);
            return true;
        }
        let Some((_, deeper)) = parsers.split_first_mut() else { return false };
        for inner in holders.filter(|value| value.is_object() || value.is_array()) {
            if self.report_flagged(inner, scope, deeper) {
                return true;
            }
        }
        false
    }

    fn report_flagged_text(&mut self, text: &str, scope: &Scope<'_>, parsers: &mut [Parser]) -> bool {
        if !looks_like_json(text) {
            return self.report_embedded_json(text, scope, parsers);
        }
        let searched = self.search_json_text(text, parsers, |finder, json, deeper| {
            if finder.report_flagged(json, scope, deeper) {
                Ok(())
            } else {
                Err(UnrecognizedReason::NoEnvelope)
            }
        });
        searched.is_ok()
    }

    /// Reports a failure whose text is followed by JSON: `GitLab API error: 401 Unauthorized {...}`. The JSON
    /// is read in full if it is an MCP-AQL or JSON-RPC envelope; any other body provides only the code, and
    /// the whole text stays the message.
    fn report_embedded_json(&mut self, text: &str, scope: &Scope<'_>, parsers: &mut [Parser]) -> bool {
        let Some((_, json)) = framing::split_json(text) else { return false };
        let searched = self.search_json_text(json, parsers, |finder, json, deeper| {
            let object = finder.names.index(json);
            let is_envelope = object.get(EnvelopeKey::Success).and_then(Json::as_bool) == Some(false)
                || object.get(EnvelopeKey::Jsonrpc).is_some();
            if is_envelope && finder.report_flagged(json, scope, deeper) {
                return Ok(());
            }
            let failure = api_shapes::read(finder.registry, json, Strictness::Given)
                .filter(|_| json.is_object())
                .ok_or(UnrecognizedReason::NoEnvelope)?;
            finder.report_failure(&failure.with_message(Some(text)), scope);
            Ok(())
        });
        searched.is_ok()
    }

    pub(super) fn report_input_required(&mut self, scope: &Scope<'_>) {
        let success = Success { outcome: Outcome::InputRequired, ..Success::new(Dialect::Jsonrpc) };
        self.visitor.on_success(success, scope);
    }
}

pub(super) fn requires_input(object: &IndexedObject<'_>) -> bool {
    object.get(EnvelopeKey::ResultType).and_then(Json::as_str) == Some("input_required")
}
