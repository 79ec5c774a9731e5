//! One tool call or tool result in the transcript of an agent host.
//!
//! Hosts differ in names, not in substance: an id, a tool, perhaps a server, a status or a flag, an error, an
//! output. The tables of names are data.

use crate::context::millis_with_unit;
use crate::json::Json;

/// The role of a transcript item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemRole {
    /// The request of a model to call a tool.
    Use,
    /// The result of a call.
    Result,
}

/// The item types that hosts write under `type`, with their roles.
const ITEM_TYPES: [(&str, ItemRole); 41] = [
    ("tool_use", ItemRole::Use),
    ("mcp_tool_use", ItemRole::Use),
    ("server_tool_use", ItemRole::Use),
    ("function_call", ItemRole::Use),
    ("custom_tool_call", ItemRole::Use),
    ("local_shell_call", ItemRole::Use),
    ("mcp_tool_call_begin", ItemRole::Use),
    ("exec_command_begin", ItemRole::Use),
    ("tool-call", ItemRole::Use),
    ("tool-input-available", ItemRole::Use),
    ("tool-input-start", ItemRole::Use),
    ("toolRequest", ItemRole::Use),
    ("toolCall", ItemRole::Use),
    ("tool.execution_start", ItemRole::Use),
    ("tool_result", ItemRole::Result),
    ("mcp_tool_result", ItemRole::Result),
    ("web_search_tool_result", ItemRole::Result),
    ("web_fetch_tool_result", ItemRole::Result),
    ("code_execution_tool_result", ItemRole::Result),
    ("bash_code_execution_tool_result", ItemRole::Result),
    ("text_editor_code_execution_tool_result", ItemRole::Result),
    ("mcp_tool_call", ItemRole::Result),
    ("mcp_call", ItemRole::Result),
    ("mcp_list_tools", ItemRole::Result),
    ("function_call_output", ItemRole::Result),
    ("custom_tool_call_output", ItemRole::Result),
    ("local_shell_call_output", ItemRole::Result),
    ("mcp_tool_call_output", ItemRole::Result),
    ("mcp_tool_call_end", ItemRole::Result),
    ("exec_command_end", ItemRole::Result),
    ("command_execution", ItemRole::Result),
    ("tool-result", ItemRole::Result),
    ("tool-error", ItemRole::Result),
    ("tool-output-error", ItemRole::Result),
    ("tool-output-available", ItemRole::Result),
    ("tool-output-denied", ItemRole::Result),
    ("dynamic-tool", ItemRole::Result),
    ("tool", ItemRole::Result),
    ("toolResponse", ItemRole::Result),
    ("toolResult", ItemRole::Result),
    ("tool.execution_complete", ItemRole::Result),
];

const ID_KEYS: [&str; 9] = [
    "tool_use_id",
    "tool_call_id",
    "call_id",
    "callID",
    "callId",
    "toolCallId",
    "toolUseId",
    "tool_id",
    "id",
];
const NAME_KEYS: [&str; 6] = ["tool", "tool_name", "toolName", "function_name", "name", "command"];
const SERVER_KEYS: [&str; 5] = ["server", "server_name", "serverName", "server_label", "mcp_server"];
const ARGUMENT_KEYS: [&str; 5] = ["input", "arguments", "args", "parameters", "toolCall"];
const ERROR_KEYS: [&str; 4] = ["error", "errorText", "error_text", "errorMessage"];
const OUTPUT_KEYS: [&str; 8] =
    ["output", "content", "result", "value", "response", "aggregated_output", "success", "rejected"];

/// The outcome of a call, as its item states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Failed,
    /// A person or a policy denied the call.
    Denied,
    Worked,
    Running,
    /// The item does not state an outcome.
    Unknown,
}

const STATUS_WORDS: [(&str, Verdict); 30] = [
    ("retry-prompt", Verdict::Failed),
    ("failed", Verdict::Failed),
    ("error", Verdict::Failed),
    ("failure", Verdict::Failed),
    ("output-error", Verdict::Failed),
    ("input-error", Verdict::Failed),
    ("incomplete", Verdict::Failed),
    ("timed_out", Verdict::Failed),
    ("error-text", Verdict::Failed),
    ("error-json", Verdict::Failed),
    ("tool-error", Verdict::Failed),
    ("tool-output-error", Verdict::Failed),
    ("denied", Verdict::Denied),
    ("declined", Verdict::Denied),
    ("rejected", Verdict::Denied),
    ("output-denied", Verdict::Denied),
    ("execution-denied", Verdict::Denied),
    ("tool-output-denied", Verdict::Denied),
    ("completed", Verdict::Worked),
    ("success", Verdict::Worked),
    ("output-available", Verdict::Worked),
    ("running", Verdict::Running),
    ("in_progress", Verdict::Running),
    ("pending", Verdict::Running),
    ("calling", Verdict::Running),
    ("input-streaming", Verdict::Running),
    ("input-available", Verdict::Running),
    ("approval-requested", Verdict::Running),
    ("approval-responded", Verdict::Running),
    ("validating", Verdict::Running),
];

/// A tool call or a tool result.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolItem<'t> {
    item: Json<'t>,
    /// The inner object that holds the state of the call.
    state: Option<Json<'t>>,
    pub(super) role: ItemRole,
    typed_name: Option<&'t str>,
}

impl<'t> ToolItem<'t> {
    /// Recognizes an item by its type, its role, or its only key.
    pub(super) fn read(item: Json<'t>) -> Option<Self> {
        if item.get("type").is_none()
            && let Some(part) = Self::read_named_part(item).or_else(|| Self::read_untyped(item))
        {
            return Some(part);
        }
        if matches!(item.get("role").and_then(Json::as_str), Some("tool" | "toolResult")) {
            let has_parts = item
                .get("content")
                .is_some_and(|content| content.items().any(|part| Self::read(part).is_some()));
            return (!has_parts).then(|| Self::new(item, ItemRole::Result, None));
        }
        let name = item.get("type")?.as_str()?;
        if name == "tool_call" {
            return Self::read_cursor_call(item);
        }
        if let Some((_, role)) = ITEM_TYPES.iter().find(|(known, _)| *known == name) {
            let is_ours = match name {
                // Other formats use this type for other things.
                "tool" => {
                    item.get("state").is_some_and(Json::is_object) || item.get("tool_call_id").is_some()
                }
                "toolResult" | "toolResponse" => {
                    item.get("toolResult").is_some() || item.get("content").is_some()
                }
                _ => true,
            };
            return is_ours.then(|| Self::new(item, *role, None));
        }
        // Parts of the AI SDK have the name of the tool in their type.
        let typed_name = name.strip_prefix("tool-").filter(|_| item.get("toolCallId").is_some())?;
        item.get("state")?.as_str()?;
        Some(Self::new(item, ItemRole::Result, Some(typed_name)))
    }

    /// Reads a part that is named by its key: `{"functionResponse": {...}}`, `{"toolResult": {...}}`.
    fn read_named_part(item: Json<'t>) -> Option<Self> {
        const PARTS: [(&str, ItemRole); 4] = [
            ("functionResponse", ItemRole::Result),
            ("toolResult", ItemRole::Result),
            ("functionCall", ItemRole::Use),
            ("toolUse", ItemRole::Use),
        ];
        let (inner, role) = PARTS.iter().find_map(|(key, role)| Some((item.get(key)?, *role)))?;
        let response = inner.get("response").filter(|response| response.is_object());
        inner.is_object().then(|| Self { state: response, ..Self::new(inner, role, None) })
    }

    /// Reads an item without a type: a part of Pydantic AI, a tool call of Gemini CLI, or a result that has the id of
    /// its call and a flag.
    fn read_untyped(item: Json<'t>) -> Option<Self> {
        if let Some(kind) = item.get("part_kind").and_then(Json::as_str) {
            return match kind {
                "tool-call" => Some(Self::new(item, ItemRole::Use, None)),
                "tool-return" => Some(Self::new(item, ItemRole::Result, None)),
                "retry-prompt" if item.get("tool_name").is_some() => {
                    Some(Self::new(item, ItemRole::Result, None))
                }
                _ => None,
            };
        }
        let has = |key| item.get(key).is_some();
        if has("args") && has("name") && has("status") && has("result") {
            let response = item.get("result")?.items().next()?.path("functionResponse.response");
            return Some(Self { state: response, ..Self::new(item, ItemRole::Result, None) });
        }
        let is_flagged =
            ["is_error", "isError"].iter().any(|key| item.get(key).and_then(Json::as_bool).is_some());
        let has_id = ID_KEYS[..7].iter().any(|key| has(key));
        (is_flagged && has_id && has("content")).then(|| Self::new(item, ItemRole::Result, None))
    }

    /// Reads a tool call of Cursor:
    /// `{"type": "tool_call", "tool_call": {"mcpToolCall": {"args": {...}, "result": {"success": {...}}}}}`.
    fn read_cursor_call(item: Json<'t>) -> Option<Self> {
        let (kind, call) = item.get("tool_call")?.fields().find(|(_, call)| call.get("args").is_some())?;
        let arguments = call.get("args").unwrap_or(Json::NULL);
        let name = ["toolName", "name"].iter().find_map(|key| arguments.get(key)?.as_str());
        let result = call.get("result").filter(|result| result.is_object());
        let role = if result.is_some() { ItemRole::Result } else { ItemRole::Use };
        Some(Self { state: result, ..Self::new(item, role, name.or(kind.strip_suffix("ToolCall"))) })
    }

    /// Returns the item of a whole call with its state, whatever its type.
    pub(super) fn of_call(item: Json<'t>) -> Self {
        Self::new(item, ItemRole::Result, None)
    }

    fn new(item: Json<'t>, role: ItemRole, typed_name: Option<&'t str>) -> Self {
        const INNER: [&str; 4] = ["state", "toolResult", "data", "part"];
        let state = INNER.iter().find_map(|key| item.get(key).filter(|inner| inner.is_object()));
        Self { item, state, role, typed_name }
    }

    fn find(&self, keys: &[&str]) -> Option<Json<'t>> {
        let of = |object: Json<'t>| keys.iter().find_map(|key| object.present(key));
        of(self.item).or_else(|| self.state.and_then(of))
    }

    pub(super) fn id(&self) -> Option<Json<'t>> {
        self.find(&ID_KEYS)
    }

    /// Returns the name of the tool, or of the kind of command.
    pub(super) fn name(&self) -> Option<&'t str> {
        let invocation = self.item.get("invocation").and_then(|call| call.get("tool"));
        let nested = || self.item.path("toolCall.value.name").or_else(|| self.item.path("function.name"));
        let kind = || match self.item.get("type")?.as_str()? {
            name @ ("command_execution" | "exec_command_end" | "local_shell_call" | "mcp_list_tools") => {
                Some(name)
            }
            _ => None,
        };
        self.typed_name
            .or_else(kind)
            .or_else(|| invocation.and_then(Json::as_str))
            .or_else(|| NAME_KEYS[..5].iter().find_map(|key| self.find(&[key])?.as_str()))
            .or_else(|| nested()?.as_str())
    }

    pub(super) fn server(&self) -> Option<&'t str> {
        let invocation = self.item.get("invocation").and_then(|call| call.get("server"));
        invocation.or_else(|| self.find(&SERVER_KEYS))?.as_str()
    }

    pub(super) fn arguments(&self) -> Option<Json<'t>> {
        self.find(&ARGUMENT_KEYS)
    }

    /// Returns the error that the item states, if it is not empty.
    pub(super) fn error(&self) -> Option<Json<'t>> {
        let says_something = |error: &Json<'t>| match error.as_str() {
            Some(text) => !text.trim_ascii().is_empty(),
            None => error.as_bool() != Some(false) && !error.is_null(),
        };
        let in_result = || self.item.get("result")?.present("Err");
        in_result().or_else(|| self.find(&ERROR_KEYS)).filter(says_something)
    }

    /// Returns the output of the tool.
    pub(super) fn output(&self) -> Option<Json<'t>> {
        let in_result = || self.item.get("result")?.present("Ok");
        in_result().or_else(|| {
            let of = |object: Json<'t>| OUTPUT_KEYS.iter().find_map(|key| object.present(key));
            self.state.and_then(of).or_else(|| of(self.item))
        })
    }

    pub(super) fn verdict(&self) -> Verdict {
        let flag = self.find(&["is_error", "isError"]).and_then(Json::as_bool);
        let success = self.find(&["success"]).and_then(Json::as_bool);
        if flag == Some(true) || success == Some(false) {
            return Verdict::Failed;
        }
        if self.state.is_some_and(|state| state.get("rejected").is_some()) {
            return Verdict::Denied;
        }
        // The outer status is more specific to the call than the status of its parts.
        let output = self.output().filter(|output| output.is_object());
        let words = [
            self.item.get("type"),
            self.item.get("part_kind"),
            self.item.get("status"),
            self.item.get("state"),
            self.state.and_then(|state| state.get("status")),
            output.and_then(|output| output.get("type")),
        ];
        let known = words.into_iter().flatten().filter_map(Json::as_str).find_map(|word| {
            STATUS_WORDS.iter().find(|(known, _)| *known == word).map(|(_, verdict)| *verdict)
        });
        let is_error_block = output.is_some_and(|output| {
            output.get("type").and_then(Json::as_str).is_some_and(|name| name.ends_with("_error"))
        });
        match known {
            _ if is_error_block => Verdict::Failed,
            Some(verdict) => verdict,
            None if flag == Some(false) || success == Some(true) => Verdict::Worked,
            None => Verdict::Unknown,
        }
    }

    /// Reports whether a program exited with a code other than zero.
    pub(super) fn exit_failed(&self) -> bool {
        let details = |object: Json<'t>| ["details", "metadata"].iter().find_map(|key| object.get(key));
        let in_details = details(self.item).or_else(|| details(self.state?));
        let of = |object: Json<'t>| object.get("exit_code").or_else(|| object.get("exitCode"));
        of(self.item)
            .or_else(|| of(in_details?).or_else(|| in_details?.get("exit")))
            .and_then(Json::as_i64)
            .is_some_and(|code| code != 0)
    }

    pub(super) fn duration_ms(&self) -> Option<f64> {
        let millis = self.find(&["duration_ms", "durationMs"]).and_then(Json::as_f64);
        let parts = || {
            let duration = self.item.get("duration")?;
            let written = duration.as_str().and_then(millis_with_unit);
            let seconds =
                || Some(duration.get("secs")?.as_f64()? * 1e3 + duration.get("nanos")?.as_f64()? / 1e6);
            written.or_else(seconds)
        };
        let span = || {
            let time = self.state?.get("time")?;
            Some(time.get("end")?.as_f64()? - time.get("start")?.as_f64()?).filter(|millis| *millis >= 0.0)
        };
        millis.or_else(parts).or_else(span)
    }
}
