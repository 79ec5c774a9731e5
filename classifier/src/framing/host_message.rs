//! One-line messages of agent hosts about a server or a call, without JSON.
//!
//! The tables are data. Unmistakable openings count anywhere; ambiguous ones count only after the prefix of a
//! log line. A phrase that only MCP software writes counts wherever it stands in the line.

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
const OPENINGS: [(&str, HostOutcome, bool); 48] = [
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
    ("Successfully called tool", HostOutcome::Worked, true),
    ("Client error for command", HostOutcome::Failed, true),
    ("HTTP Connection failed", HostOutcome::Failed, true),
    ("SSE Connection failed", HostOutcome::Failed, true),
    ("STDIO Connection failed", HostOutcome::Failed, true),
    ("Transport error: ", HostOutcome::Failed, true),
    ("Failed to load extension", HostOutcome::Failed, true),
    ("Failed to reload client", HostOutcome::Failed, true),
    ("failed to connect", HostOutcome::Failed, true),
    ("failed to start", HostOutcome::Failed, true),
    ("Can't start ", HostOutcome::Failed, false),
];

/// Phrases that only report a failed call or a failed server of MCP, wherever they stand in a line.
const PHRASES: [&str; 8] = [
    "MCP error -3",
    "failed to start mcp ",
    "failed to start MCP ",
    "failed to initialize MCP ",
    "Error executing MCP tool",
    "status sending message to http",
    "Error POSTing to endpoint",
    "failed: MCP startup failed",
];

/// Levels at which a log line that mentions MCP or a tool and states a failure reports one.
const ERROR_LEVELS: [&str; 7] = ["error", "err", "fatal", "critical", "crit", "severe", "e"];

/// The maximum length of the name that some hosts write before a message, as in `ools: Found 3 tools`.
const MAX_TAG_BYTES: usize = 40;

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
        let text = text.trim_start_matches(['>', '•', '✗', '✘', '×', '❌', ' ']).trim();
        let text = text.strip_prefix("Error: ").filter(|rest| rest.starts_with("Tool ")).unwrap_or(text);
        read_tool(text)
            .or_else(|| read_server_start(text))
            .or_else(|| read_panic(text))
            .or_else(|| Self::read_opening(prefix, text))
            .or_else(|| Self::read_opening(prefix, after_tag(text)?))
            .or_else(|| Self::read_phrase(text))
    }

    fn read_opening(prefix: &Prefix<'_>, text: &'t str) -> Option<Self> {
        let (_, outcome, _) = OPENINGS.iter().find(|(opening, _, needs_prefix)| {
            text.starts_with(opening) && (!needs_prefix || prefix.parts > 0)
        })?;
        let operation = (*outcome == HostOutcome::Worked).then(|| quoted(text)).flatten();
        Some(Self { outcome: *outcome, operation, service: None, duration_ms: None, message: text })
    }

    fn read_phrase(text: &'t str) -> Option<Self> {
        let is_said = PHRASES.iter().any(|phrase| text.contains(phrase));
        is_said.then(|| Self::failed(text))
    }

    /// Returns a failure whose message is the text.
    pub(crate) fn failed(text: &'t str) -> Self {
        Self {
            outcome: HostOutcome::Failed,
            operation: None,
            service: None,
            duration_ms: None,
            message: text,
        }
    }

    /// Returns true if a line is at an error level and mentions MCP or a tool, so that a text in it which states a
    /// failure reports a failed call or a failed server.
    pub(crate) fn may_report(prefix: &Prefix<'_>, line: &str) -> bool {
        const TOPICS: [&str; 5] = ["mcp", "MCP", "Mcp", "tool", "context_server"];
        prefix.level.is_some_and(|level| ERROR_LEVELS.iter().any(|known| level.eq_ignore_ascii_case(known)))
            && TOPICS.iter().any(|topic| line.contains(topic))
    }
}

/// Returns the message after the name of a logger that is one word: `maps: Failed to reload client`.
fn after_tag(text: &str) -> Option<&str> {
    let (tag, rest) = text.split_once(": ")?;
    let is_tag = !tag.is_empty()
        && tag.len() <= MAX_TAG_BYTES
        && tag
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'@' | b'/'));
    is_tag.then_some(rest)
}

/// Returns the first name in quotes.
fn quoted(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('\'')?;
    rest.split_once('\'').map(|(name, _)| name)
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
