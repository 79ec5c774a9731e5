//! One-line messages of agent hosts about a server or a call, without JSON.
//!
//! The tables are data. Unmistakable openings count anywhere; ambiguous ones count only after the prefix of a
//! log line.

use super::prefix::Prefix;
use crate::context::millis_with_unit;

/// The outcome of a call, as a host's message states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostOutcome {
    Failed,
    Worked,
    /// A call begins, or the message is not about a call.
    Notice,
}

/// A message of a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HostMessage<'t> {
    pub(crate) outcome: HostOutcome,
    pub(crate) operation: Option<&'t str>,
    pub(crate) service: Option<&'t str>,
    pub(crate) duration_ms: Option<f64>,
    /// The reason of a failure, or else the whole message.
    pub(crate) message: &'t str,
}

/// The openings of messages with their outcomes; true if the opening needs the prefix of a log line before
/// it.
const OPENINGS: [(&str, HostOutcome, bool); 37] = [
    ("Server disconnected", HostOutcome::Failed, true),
    ("Server transport closed unexpectedly", HostOutcome::Failed, true),
    ("Server exited", HostOutcome::Failed, true),
    ("Server crashed", HostOutcome::Failed, true),
    ("Server failed to start", HostOutcome::Failed, true),
    ("Connection state: Error", HostOutcome::Failed, true),
    ("Connection error", HostOutcome::Failed, true),
    ("Connection failed", HostOutcome::Failed, true),
    ("Connection closed", HostOutcome::Failed, true),
    ("Connection timeout", HostOutcome::Failed, true),
    ("Connection to server", HostOutcome::Failed, true),
    ("Could not attach to MCP server", HostOutcome::Failed, false),
    ("Could not connect to MCP server", HostOutcome::Failed, false),
    ("Failed to connect to MCP server", HostOutcome::Failed, false),
    ("Failed to start MCP server", HostOutcome::Failed, false),
    ("Failed to initialize MCP server", HostOutcome::Failed, false),
    ("Failed to connect", HostOutcome::Failed, true),
    ("Failed to start", HostOutcome::Failed, true),
    ("Failed to reconnect", HostOutcome::Failed, true),
    ("Failed to fetch tools", HostOutcome::Failed, true),
    ("Failed to spawn", HostOutcome::Failed, true),
    ("MCP client for ", HostOutcome::Failed, false),
    ("MCP error -", HostOutcome::Failed, false),
    ("McpError: ", HostOutcome::Failed, false),
    ("Error POSTing to endpoint", HostOutcome::Failed, false),
    ("Streamable HTTP error", HostOutcome::Failed, false),
    ("SSE error: ", HostOutcome::Failed, false),
    ("Error executing tool", HostOutcome::Failed, false),
    ("Error calling tool", HostOutcome::Failed, false),
    ("Error during MCP server execution", HostOutcome::Failed, false),
    ("API Error: ", HostOutcome::Failed, false),
    ("panic: ", HostOutcome::Failed, false),
    ("Tool call failed", HostOutcome::Failed, true),
    ("Tool execution failed", HostOutcome::Failed, true),
    ("tool call failed", HostOutcome::Failed, true),
    ("MCP tool call failed", HostOutcome::Failed, false),
    ("Calling MCP tool", HostOutcome::Notice, false),
];

/// The phrases that follow `Tool 'x' `, with their outcomes.
const TOOL_VERBS: [(&str, HostOutcome); 12] = [
    ("failed", HostOutcome::Failed),
    ("execution failed", HostOutcome::Failed),
    ("call failed", HostOutcome::Failed),
    ("returned isError:true", HostOutcome::Failed),
    ("returned isError: true", HostOutcome::Failed),
    ("returned an error", HostOutcome::Failed),
    ("returned error", HostOutcome::Failed),
    ("timed out", HostOutcome::Failed),
    ("threw", HostOutcome::Failed),
    ("completed successfully", HostOutcome::Worked),
    ("succeeded", HostOutcome::Worked),
    ("still running", HostOutcome::Notice),
];

impl<'t> HostMessage<'t> {
    /// Reads the message of a line whose prefix was already read.
    pub(crate) fn read(prefix: &Prefix<'_>, text: &'t str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix("Error: ").filter(|rest| rest.starts_with("Tool ")).unwrap_or(text);
        read_tool(text).or_else(|| read_server_start(text)).or_else(|| read_panic(text)).or_else(|| {
            let (_, outcome, _) = OPENINGS.iter().find(|(opening, _, needs_prefix)| {
                text.starts_with(opening) && (!needs_prefix || prefix.parts > 0)
            })?;
            Some(Self { outcome: *outcome, operation: None, service: None, duration_ms: None, message: text })
        })
    }
}

/// Reads `Tool 'x' failed after 3s: MCP error -32000: Connection closed`.
fn read_tool(text: &str) -> Option<HostMessage<'_>> {
    let rest =
        ["Tool call ", "MCP tool ", "Tool ", "tool "].iter().find_map(|lead| text.strip_prefix(lead))?;
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"' | '`'))?;
    let (name, rest) = rest[1..].split_once(quote)?;
    let rest = rest.trim_start();
    let (verb, outcome) = TOOL_VERBS.iter().find(|(verb, _)| rest.starts_with(verb))?;
    let after = rest[verb.len()..].trim_start();
    let timed = after.strip_prefix("after ").or_else(|| after.strip_prefix("in "));
    let written = timed.map(|timed| timed.split([':', ' ', ',']).next().unwrap_or_default());
    let why = after.split_once(": ").map(|(_, why)| why.trim()).filter(|why| !why.is_empty());
    Some(HostMessage {
        outcome: *outcome,
        operation: Some(name),
        service: None,
        duration_ms: written.and_then(millis_with_unit),
        message: why.unwrap_or(text),
    })
}

/// Reads `mcp: weather failed: ...`.
fn read_server_start(text: &str) -> Option<HostMessage<'_>> {
    let (name, why) = text.strip_prefix("mcp: ")?.split_once(" failed: ")?;
    (!name.contains(' ')).then_some(HostMessage {
        outcome: HostOutcome::Failed,
        operation: None,
        service: Some(name),
        duration_ms: None,
        message: why,
    })
}

/// Reads `thread 'main' panicked at src/main.rs:4:9: ...`.
fn read_panic(text: &str) -> Option<HostMessage<'_>> {
    let is_panic = text.strip_prefix("thread '").is_some_and(|rest| {
        rest.split_once('\'').is_some_and(|(_, rest)| {
            rest.trim_start().starts_with("panicked at") || rest.contains(") panicked at")
        })
    });
    is_panic.then_some(HostMessage {
        outcome: HostOutcome::Failed,
        operation: None,
        service: None,
        duration_ms: None,
        message: text,
    })
}
