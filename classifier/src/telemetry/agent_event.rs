//! Log events with which agent hosts report tool calls: Claude Code, Codex, Gemini CLI, Qwen Code.
//!
//! Each host has its own names for the same few facts, and texts where others have numbers and booleans. The
//! events state whether a call failed and, at best, an error message; they do not hold the tool's reply.
//!
//! Invariant: only an event with a known name is read as a call, so an ordinary log record with a field
//! called `success` is not one.

use super::{Attribute, LogRecord, Value};
use crate::json::Parser;

/// The names of the events that report one tool call each.
const TOOL_EVENTS: [&str; 4] =
    ["claude_code.tool_result", "codex.tool_result", "gemini_cli.tool_call", "qwen-code.tool_call"];
/// The attribute that names the event of a record without an event name.
const EVENT_NAME: &str = "event.name";
const SUCCESS: &str = "success";
/// The attributes with the error message, in order of preference.
const MESSAGES: [&str; 4] = ["error", "error.message", "error_message", "output"];
/// The attributes with the type of the failure.
const ERROR_TYPES: [&str; 2] = ["error_type", "error.type"];
/// The attributes with the duration of the call in milliseconds.
const DURATIONS: [&str; 2] = ["duration_ms", "duration"];
/// The tool name that Claude Code reports for every tool of an MCP server, unless details are enabled.
const ANY_MCP_TOOL: &str = "mcp_tool";
/// The attribute with the details as JSON text; its field [`PARAMETER_TOOL`] is the tool's name.
const PARAMETERS: &str = "tool_parameters";
const PARAMETER_TOOL: &str = "mcp_tool_name";
const TOOL: &str = "tool_name";

/// One tool call, as a host reports it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentToolCall<'a> {
    attributes: &'a [Attribute<'a>],
    pub(crate) succeeded: bool,
}

impl<'a> AgentToolCall<'a> {
    /// Reads a record. Returns `None` if it is not a known event, or does not state the outcome of the call.
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

    /// Returns the error message of the failure.
    pub(crate) fn message(&self) -> Option<&'a Attribute<'a>> {
        MESSAGES.into_iter().find_map(|key| {
            find(self.attributes, key).filter(|attribute| {
                attribute.value.as_text().is_some_and(|text| !text.trim_ascii().is_empty())
            })
        })
    }

    /// Returns the type of the failure.
    pub(crate) fn error_type(&self) -> Option<&'a Attribute<'a>> {
        ERROR_TYPES.into_iter().find_map(|key| find(self.attributes, key))
    }

    /// Returns the duration of the call in microseconds.
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

    /// Returns the tool name from the details, if the event itself only names the generic MCP tool.
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
