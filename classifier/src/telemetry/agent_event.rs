//! Log events by which agent hosts tell of their tool calls: Claude Code, Codex, Gemini CLI.
//!
//! Each has names of its own for the same few facts, and texts where others have numbers and truth values.
//! They say whether a call failed and, at best, in which words; what the tool answered is not in them.
//!
//! Invariant: only an event of a known name is read as a call, so that an ordinary log record with a field
//! called `success` is none.

use super::{Attribute, LogRecord, Value};
use crate::json::Parser;

/// The events that tell of one tool call each.
const TOOL_EVENTS: [&str; 4] =
    ["claude_code.tool_result", "codex.tool_result", "gemini_cli.tool_call", "qwen-code.tool_call"];
/// The attribute that names an event whose record has no field for it.
const EVENT_NAME: &str = "event.name";
const SUCCESS: &str = "success";
/// What went wrong, best first.
const MESSAGES: [&str; 4] = ["error", "error.message", "error_message", "output"];
/// What sort of failure it is.
const ERROR_TYPES: [&str; 2] = ["error_type", "error.type"];
/// How long the call took, in milliseconds.
const DURATIONS: [&str; 2] = ["duration_ms", "duration"];
/// What Claude Code calls every tool of an MCP server, unless details are turned on.
const ANY_MCP_TOOL: &str = "mcp_tool";
/// Where the details stand then, as JSON text, and which of them is the tool's name.
const PARAMETERS: &str = "tool_parameters";
const PARAMETER_TOOL: &str = "mcp_tool_name";
const TOOL: &str = "tool_name";

/// One tool call, as a host tells of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentToolCall<'a> {
    attributes: &'a [Attribute<'a>],
    pub(crate) succeeded: bool,
}

impl<'a> AgentToolCall<'a> {
    /// Reads a record. None when it is no event that we know, or does not say how the call went.
    pub(crate) fn read(record: &LogRecord<'a>) -> Option<Self> {
        let attributes = record.attributes;
        let is_known = |name: &str| TOOL_EVENTS.contains(&name);
        let in_attribute = || find(attributes, EVENT_NAME).and_then(|name| name.value.as_text());
        let in_body = || record.body.and_then(Value::as_text);
        if !(is_known(record.event_name)
            || in_attribute().is_some_and(is_known)
            || in_body().is_some_and(is_known))
        {
            return None;
        }
        let succeeded = match &find(attributes, SUCCESS)?.value {
            Value::Bool(succeeded) => *succeeded,
            Value::Text(text) if text.eq_ignore_ascii_case("true") => true,
            Value::Text(text) if text.eq_ignore_ascii_case("false") => false,
            Value::Int(number @ 0..=1) => *number == 1,
            _ => return None,
        };
        Some(Self { attributes, succeeded })
    }

    /// What was said about the failure.
    pub(crate) fn message(&self) -> Option<&'a Attribute<'a>> {
        MESSAGES.into_iter().find_map(|key| {
            find(self.attributes, key).filter(|attribute| {
                attribute.value.as_text().is_some_and(|text| !text.trim_ascii().is_empty())
            })
        })
    }

    /// What sort of failure it is.
    pub(crate) fn error_type(&self) -> Option<&'a Attribute<'a>> {
        ERROR_TYPES.into_iter().find_map(|key| find(self.attributes, key))
    }

    /// How long the call took, in microseconds.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    pub(crate) fn duration_us(&self) -> Option<i64> {
        let millis = match &DURATIONS.into_iter().find_map(|key| find(self.attributes, key))?.value {
            Value::Int(number) => *number as f64,
            Value::Double(number) => *number,
            Value::Text(text) => text.trim_ascii().parse().ok()?,
            _ => return None,
        };
        let is_sane = millis.is_finite() && (0.0..1e12).contains(&millis);
        is_sane.then_some((millis * 1000.0).round() as i64)
    }

    /// The tool that stands in the details, where the event itself only says that it is one of a server.
    pub(crate) fn detailed_tool(&self, parser: &mut Parser, longest: usize) -> Option<String> {
        let is_any = find(self.attributes, TOOL)?.value.as_text() == Some(ANY_MCP_TOOL);
        let parameters = find(self.attributes, PARAMETERS)?.value.as_json_text()?;
        if !is_any || parameters.len() > longest {
            return None;
        }
        parser
            .parse(parameters.as_bytes(), |json| json.get(PARAMETER_TOOL)?.as_str().map(str::to_owned))
            .ok()?
    }
}

fn find<'a>(attributes: &'a [Attribute<'a>], key: &str) -> Option<&'a Attribute<'a>> {
    attributes.iter().find(|attribute| attribute.key == key)
}
