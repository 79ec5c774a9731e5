//! Transcripts of agent hosts: Claude Code, Codex, Gemini CLI, opencode, goose, and the message formats of
//! Anthropic, `OpenAI`, Google, Bedrock and the AI SDK.
//!
//! A line of a transcript is recognized by its `type` or `role`. Its tool results are read like any other
//! tool result; tool calls are remembered, so that a result in a later line can be matched to its tool.
//! Everything else in a transcript is not a reply: text that a model or a person writes is never searched for
//! errors.
//!
//! Invariant: the search descends at most [`MAX_DEPTH`] levels, along known keys only.

mod tool_item;

use super::extra_fields::ExtraFields;
use super::pairing::PairedCall;
use super::tool_result::{is_content, is_flagged};
use super::{EnvelopeFinder, EnvelopeVisitor, Failure, Level, Scope, SearchResult, Success};
use crate::code::Code;
use crate::context::{ContextField, EnvelopeKey, IndexedObject};
use crate::dialect::Dialect;
use crate::json::{Json, Parser};
use crate::reason::UnrecognizedReason;
use crate::request_tracker::{Progress, TrackedCall, TrackedKind};
use tool_item::{ItemRole, ToolItem, Verdict};

const MAX_DEPTH: usize = 5;

/// The keys under which items are nested.
const CONTAINERS: [&str; 12] = [
    "message",
    "item",
    "payload",
    "part",
    "properties",
    "content_block",
    "content",
    "output",
    "parts",
    "event",
    "response",
    "toolCalls",
];

/// The line types that mark a transcript, each with a key that must be present beside it, because other
/// records use the same types.
const LINE_TYPES: [(&str, &str); 37] = [
    ("gemini", "toolCalls"),
    ("ToolCallExecutionEvent", "content"),
    ("user", "message"),
    ("assistant", "message"),
    ("message", "message"),
    ("message", "role"),
    ("system", "subtype"),
    ("result", "subtype"),
    ("summary", "leafUuid"),
    ("progress", "data"),
    ("rate_limit_event", "rate_limit_info"),
    ("stream_event", "event"),
    ("event_msg", "payload"),
    ("response_item", "payload"),
    ("session_meta", "payload"),
    ("turn_context", "payload"),
    ("item.started", "item"),
    ("item.updated", "item"),
    ("item.completed", "item"),
    ("item/completed", "item"),
    ("message.part.updated", "properties"),
    ("message.updated", "properties"),
    ("session.updated", "properties"),
    ("step_start", "part"),
    ("step_finish", "part"),
    ("text", "part"),
    ("content_block_start", "content_block"),
    ("content_block_delta", "delta"),
    ("content_block_stop", "index"),
    ("message_start", "message"),
    ("message_delta", "delta"),
    ("response.output_item.done", "item"),
    ("response.output_item.added", "item"),
    ("response.completed", "response"),
    ("response.mcp_call.failed", "item_id"),
    ("response.mcp_call.completed", "item_id"),
    ("response.mcp_call.in_progress", "item_id"),
];

/// Types of partial lines, whose content a later line repeats as a whole.
const PARTIAL_TYPES: [&str; 3] = ["item.started", "item.updated", "response.output_item.added"];

/// Reasons why a host did not run a call, as hosts write them, with the canonical code of each.
const NON_EXECUTIONS: [(&str, &str); 6] = [
    ("permission-rule", "PERMISSION_DENIED"),
    ("permission-mode", "PERMISSION_DENIED"),
    ("user-rejected", "PERMISSION_DENIED"),
    ("user-denied", "PERMISSION_DENIED"),
    ("hook-blocked", "PERMISSION_DENIED"),
    ("hook", "PERMISSION_DENIED"),
];

/// Tools that are built into hosts. Hosts flag the failures of these tools, and their output is data.
const BUILT_IN_TOOLS: [&str; 17] = [
    "Bash",
    "BashOutput",
    "Read",
    "Grep",
    "Glob",
    "Edit",
    "MultiEdit",
    "Write",
    "NotebookEdit",
    "LS",
    "WebFetch",
    "WebSearch",
    "Task",
    "TodoWrite",
    "command_execution",
    "exec_command_end",
    "local_shell_call",
];

/// The result of searching a transcript line so far.
struct Found {
    searched: SearchResult,
}

impl<R: EnvelopeVisitor> EnvelopeFinder<'_, R> {
    /// Reads a line of a transcript; returns `None` if the object is something else.
    pub(super) fn search_transcript(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> Option<SearchResult> {
        if scope.level == Level::ToolData {
            return None;
        }
        let kind = object.get(EnvelopeKey::Type).and_then(Json::as_str);
        let role = object.get(EnvelopeKey::Role).and_then(Json::as_str);
        let is_response = || {
            let is_bare = object.get(EnvelopeKey::Id).is_some() && object.get(EnvelopeKey::Jsonrpc).is_none();
            is_bare && object.json.get("object").and_then(Json::as_str) == Some("response")
        };
        // Pydantic AI writes its messages with a kind.
        let is_kind =
            || object.json.get("parts").is_some_and(Json::is_array) && object.json.get("kind").is_some();
        if kind.is_none() && role.is_none() && !is_response() && !is_kind() {
            return None;
        }
        let is_item = ToolItem::read(object.json).is_some();
        let is_line = kind.is_some_and(|kind| {
            LINE_TYPES.iter().any(|(known, beside)| *known == kind && object.json.get(beside).is_some())
        });
        let is_message =
            matches!(role, Some("user" | "assistant" | "model" | "system" | "developer" | "tool"))
                && ["content", "parts", "tool_calls"].iter().any(|key| object.json.get(key).is_some());
        if !(is_item || is_line || is_message || is_response() || is_kind()) {
            return None;
        }
        if let Some((server, text)) = Self::embedded_result(object.json) {
            return Some(self.search_embedded_result(server, text, scope, parsers));
        }
        if let Some(failure) = self.session_failure(object) {
            self.report_failure(&failure, scope);
            return Some(Ok(()));
        }
        let mut found = Found { searched: Err(UnrecognizedReason::NotAReply) };
        if !kind.is_some_and(|kind| PARTIAL_TYPES.contains(&kind)) {
            self.walk_transcript(object.json, MAX_DEPTH, scope, parsers, &mut found);
        }
        Some(found.searched)
    }

    /// Returns the server and the text of a tool result that Cline and its descendants write as the words of the
    /// user: `[use_mcp_tool for 'maps'] Result:` and then the text.
    fn embedded_result(message: Json<'_>) -> Option<(&str, &str)> {
        const LEAD: &str = "[use_mcp_tool for '";
        let mut texts = super::tool_result::texts(message.get("content")?).filter_map(Json::as_str);
        let (server, rest) = texts.next()?.trim_start().strip_prefix(LEAD)?.split_once('\'')?;
        let rest = rest.split_once("Result:")?.1.trim();
        Some((server, if rest.is_empty() { texts.next()? } else { rest }))
    }

    fn search_embedded_result(
        &mut self,
        server: &str,
        text: &str,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let own = ExtraFields::default().with_service(Some(server));
        own.replace(scope, |scope| {
            let hidden = Scope { hidden: true, level: Level::ToolData, ..*scope };
            match self.search_tool_text(text, &hidden, parsers) {
                Err(UnrecognizedReason::NoEnvelope) => {
                    self.visitor.on_success(Success::new(Dialect::Jsonrpc), scope);
                    Ok(())
                }
                searched => searched,
            }
        })
    }

    /// Returns the failure of a whole session or of a request to the model, if the line states one.
    fn session_failure<'t>(&self, object: &IndexedObject<'t>) -> Option<Failure<'t>> {
        let kind = object.get(EnvelopeKey::Type)?.as_str()?;
        if kind == "result" && is_flagged(object) {
            let text = object.json.get("result").and_then(Json::as_str);
            let listed = || object.json.get("errors")?.items().next()?.as_str();
            let subtype = || object.json.get("subtype")?.as_str();
            let message = text.or_else(listed).or_else(subtype);
            return Some(Failure { message, ..Failure::new(Dialect::Unknown) });
        }
        let inner = ["payload", "item"].iter().find_map(|key| object.json.get(key)).unwrap_or(Json::NULL);
        if matches!(kind, "event_msg" | "item.completed")
            && inner.get("type").and_then(Json::as_str) == Some("error")
        {
            let message = inner.get("message").and_then(Json::as_str);
            return Some(Failure { message, ..Failure::new(Dialect::Unknown) });
        }
        let is_api_error = object.json.get("isApiErrorMessage").and_then(Json::as_bool) == Some(true);
        is_api_error.then(|| Failure {
            message: object
                .json
                .path("message.content")
                .and_then(|content| super::tool_result::texts(content).find_map(Json::as_str)),
            ..Failure::new(Dialect::Unknown)
        })
    }

    /// Searches the known containers for items.
    fn walk_transcript(
        &mut self,
        value: Json<'_>,
        depth: usize,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
        found: &mut Found,
    ) {
        if value.is_array() {
            for item in value.items().filter(|item| item.is_object()) {
                self.walk_transcript(item, depth, scope, parsers, found);
            }
            return;
        }
        let Some(item) = ToolItem::read(value) else {
            self.remember_tool_calls(value, scope);
            let Some(depth) = depth.checked_sub(1) else { return };
            let containers = CONTAINERS.iter().filter_map(|key| value.get(key));
            for inner in containers.filter(|inner| inner.is_object() || inner.is_array()) {
                self.walk_transcript(inner, depth, scope, parsers, found);
            }
            return;
        };
        match item.role {
            // opencode writes the whole call under the name of its request.
            ItemRole::Use if value.get("part").is_some() => {
                if let Some(part) = value.get("part") {
                    self.read_tool_item(&ToolItem::of_call(part), scope, parsers, found);
                }
            }
            ItemRole::Use => self.remember_tool_use(&item, scope),
            ItemRole::Result => self.read_tool_item(&item, scope, parsers, found),
        }
    }

    /// Remembers the `tool_calls` of a message in the format of `OpenAI`.
    fn remember_tool_calls(&mut self, message: Json<'_>, scope: &Scope<'_>) {
        if self.stream.is_none() {
            return;
        }
        for call in message.get("tool_calls").into_iter().flat_map(Json::items) {
            if let (Some(id), Some(name)) =
                (call.get("id"), call.path("function.name").and_then(Json::as_str))
            {
                let call = self.new_call(name, None, None, scope);
                self.remember(TrackedKind::ToolCall, id, call, scope);
            }
        }
    }

    fn remember_tool_use(&mut self, item: &ToolItem<'_>, scope: &Scope<'_>) {
        if let (Some(id), Some(name)) = (item.id().filter(|_| self.stream.is_some()), item.name()) {
            let call = self.new_call(name, item.server(), item.arguments(), scope);
            self.remember(TrackedKind::ToolCall, id, call, scope);
        }
    }

    /// Matches a tool result to its call, then reports its outcome.
    fn read_tool_item(
        &mut self,
        item: &ToolItem<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
        found: &mut Found,
    ) {
        let verdict = item.verdict();
        if verdict == Verdict::Running {
            return;
        }
        let known = item.id().and_then(|id| self.recall(TrackedKind::ToolCall, id, scope));
        if known.as_ref().is_some_and(|call| call.progress == Progress::Finished) {
            found.searched = found.searched.or(Err(UnrecognizedReason::RepeatedState));
            return;
        }
        if let Some(id) = item.id().filter(|_| self.stream.is_some()) {
            self.remember(TrackedKind::ToolCall, id, TrackedCall::new(Progress::Finished), scope);
        }
        let paired = known.map(|call| PairedCall::new(call, scope));
        let of_call = paired.as_ref().map(|paired| &paired.call);
        let name = item.name().or_else(|| of_call?.operation.as_deref());
        let (server, tool) = name.map_or((None, None), split_mcp_name);
        let server = item.server().or(server).or_else(|| of_call?.service.as_deref());
        let own = ExtraFields::default()
            .with_service(server)
            .with_operation(tool)
            .with_duration_ms(item.duration_ms());
        let scope = Scope {
            request_id: item.id(),
            arguments: of_call.and_then(|call| call.arguments),
            level: Level::Wrapped,
            ..*scope
        };
        found.searched = own.replace(&scope, |scope| match &paired {
            Some(paired) => {
                paired.fields().fill(scope, |scope| self.report_tool_item(item, verdict, scope, parsers))
            }
            None => self.report_tool_item(item, verdict, scope, parsers),
        });
    }

    fn report_tool_item(
        &mut self,
        item: &ToolItem<'_>,
        verdict: Verdict,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let output = item.output();
        if let Some(error) = item.error() {
            self.report_item_failure(Some(error), output, verdict, scope, parsers);
            return Ok(());
        }
        if matches!(verdict, Verdict::Failed | Verdict::Denied) {
            self.report_item_failure(None, output, verdict, scope, parsers);
            return Ok(());
        }
        let hidden = Scope { hidden: true, ..*scope };
        if item.exit_failed() {
            self.report_item_failure(None, output, verdict, &hidden, parsers);
            return Ok(());
        }
        if let Some(text) = output.and_then(Json::as_str).filter(|text| text.contains("\"exit_code\"")) {
            let searched = self.search_json_text(text, parsers, |finder, json, deeper| {
                finder.read_command_output(json, verdict, &hidden, deeper)
            });
            if searched.is_ok() {
                return searched;
            }
        }
        self.read_item_output(output, scope, &hidden, parsers)
    }

    /// Reports a command that did not exit with zero: `{"output": "...", "metadata": {"exit_code": 127}}`.
    fn read_command_output(
        &mut self,
        json: Json<'_>,
        verdict: Verdict,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let code = json.path("metadata.exit_code").or_else(|| json.get("exit_code")).and_then(Json::as_i64);
        if code.is_none_or(|code| code == 0) {
            return Err(UnrecognizedReason::NoEnvelope);
        }
        self.report_item_failure(None, json.get("output"), verdict, scope, parsers);
        Ok(())
    }

    /// Searches the output of a tool whose item does not report a failure.
    fn read_item_output(
        &mut self,
        output: Option<Json<'_>>,
        scope: &Scope<'_>,
        hidden: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let operation = scope.fields[ContextField::Operation as usize].and_then(Json::as_str);
        let is_built_in = operation.is_some_and(|name| BUILT_IN_TOOLS.contains(&name));
        let searched = match output.filter(|_| !is_built_in) {
            Some(output) if output.is_object() => {
                let object = self.names.index(output);
                if super::tool_result::is_tool_result(&object) {
                    return self.read_tool_result(&object, scope, parsers);
                }
                let hidden = Scope { level: Level::ToolData, ..*hidden };
                let value = output.get("value").or_else(|| output.get("output")).unwrap_or(output);
                self.search(value, &hidden, parsers)
            }
            Some(output) if is_content(output) => self.search_content(output, hidden, parsers),
            Some(output) => self.search(output, &Scope { level: Level::ToolData, ..*hidden }, parsers),
            None => Err(UnrecognizedReason::NoEnvelope),
        };
        match searched {
            Ok(()) => {}
            Err(reason @ UnrecognizedReason::TooManyLevels) => return Err(reason),
            Err(_) => self.visitor.on_success(Success::new(Dialect::Jsonrpc), scope),
        }
        Ok(())
    }

    /// Reports the one failure of a call that its transcript marks as failed.
    fn report_item_failure(
        &mut self,
        error: Option<Json<'_>>,
        output: Option<Json<'_>>,
        verdict: Verdict,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) {
        let output_value = output.map(|output| output.get("value").unwrap_or(output));
        let canonical = (verdict == Verdict::Denied)
            .then_some("PERMISSION_DENIED")
            .or_else(|| scope.record.and_then(|record| non_execution(record, scope.request_id)));
        let candidates = [error, output_value];
        if canonical.is_none() {
            for value in candidates.into_iter().flatten() {
                let explained = match self.indexed_result(value) {
                    Some(object) => {
                        self.report_flagged_result(&object, scope, parsers);
                        true
                    }
                    None => {
                        super::tool_result::texts(value).any(|text| self.report_flagged(text, scope, parsers))
                            || self.report_flagged(value, scope, parsers)
                    }
                };
                if explained {
                    return;
                }
            }
        }
        let words = |value: Json<'_>| {
            super::tool_result::texts(value)
                .filter_map(Json::as_str)
                .find(|text| !text.trim_ascii().is_empty())
                .map(str::to_owned)
        };
        let message = candidates.into_iter().flatten().find_map(|value| {
            let inner = value.get("content").or_else(|| value.get("message")).unwrap_or(value);
            words(value).or_else(|| words(inner))
        });
        let block_code = output.and_then(|output| output.get("error_code")).and_then(Json::as_str);
        let code = block_code.map_or(Code::ToolError, Code::from_text);
        let failure = Failure {
            code,
            canonical,
            message: message.as_deref().or(block_code),
            ..Failure::new(Dialect::Jsonrpc)
        };
        self.visitor.on_failure(&failure, scope);
    }

    /// Indexes a tool result with content, which `report_flagged_result` reports.
    fn indexed_result<'t>(&self, value: Json<'t>) -> Option<IndexedObject<'t>> {
        let object = value.is_object().then(|| self.names.index(value))?;
        object.get(EnvelopeKey::Content).is_some().then_some(object)
    }
}

/// Splits `mcp__server__tool` into the server and the tool.
fn split_mcp_name(name: &str) -> (Option<&str>, Option<&str>) {
    match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => (Some(server), Some(tool)),
        _ => (None, Some(name)),
    }
}

/// Returns the canonical code for a call that its host did not run, if the host states the reason.
fn non_execution(record: Json<'_>, id: Option<Json<'_>>) -> Option<&'static str> {
    let id = id?.as_str()?;
    let notes = record.get("tool_result_meta")?;
    let note = notes.items().find(|note| note.get("id").and_then(Json::as_str) == Some(id))?;
    let kind = note.get("non_execution_kind")?.as_str()?;
    NON_EXECUTIONS.iter().find(|(known, _)| *known == kind).map(|(_, canonical)| *canonical)
}
