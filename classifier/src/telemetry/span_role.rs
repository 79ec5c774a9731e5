//! What a span is in a call: the tool's own, a part of the transport, or something around it; which side of
//! the call it reports, and which tool it names.
//!
//! Instrumentations say this in attributes of their own, or only in the name of the span. Everything here is
//! decided from one span alone; which spans belong to the same call is the collector's business.

use super::SpanKind;
use super::attributes::{AttributeKey, CONTENT_KEYS, IndexedAttributes};
use crate::context::ContextField;

/// The method that calls a tool.
const TOOL_CALL_METHOD: &str = "tools/call";
/// The attribute that names the method of a call, where none names its tool.
pub(super) const METHOD_NAME: &str = "mcp.method.name";
/// The attribute that names whatever a span of `openllmetry` stands for.
pub(super) const ENTITY_NAME: &str = "traceloop.entity.name";
/// The attribute of the request, on spans of whatever carries it.
const MCP_REQUEST_ID: &str = "mcp.request.id";
/// How the workflows end that stand for an MCP server, not for an agent.
const SERVER_WORKFLOW_SUFFIX: &str = ".mcp";

/// Attributes that name the tool of a call, and after them those that name its method.
pub(super) const OPERATION_NAMES: [&str; 9] = [
    "gen_ai.tool.name",
    "mcp.tool.name",
    "ai.toolCall.name",
    "tool.name",
    ENTITY_NAME,
    "tool_name",
    "function_name",
    METHOD_NAME,
    "rpc.method",
];
/// Those that do not name a tool.
const METHOD_NAMES: [&str; 2] = [METHOD_NAME, "rpc.method"];

/// How spans of a tool call are named, before the name of the tool.
const TOOL_SPAN_PREFIXES: [&str; 3] = ["MCP send tools/call ", "tools/call ", "execute_tool "];
/// How spans are named that pass a call on inside a server; only together with the method.
const DELEGATE_PREFIX: &str = "delegate ";

/// The words that instrumentations use for what a span stands for.
const ROLES: [(&str, SpanRole); 4] = [
    ("tool", SpanRole::Tool),
    ("TOOL", SpanRole::Tool),
    ("server", SpanRole::Transport),
    ("session", SpanRole::Session),
];

/// What a span stands for, as its instrumentation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanRole {
    /// One call of a tool.
    Tool,
    /// The server that a call travels through.
    Transport,
    /// The session that many calls travel through.
    Session,
    /// A workflow, an agent, a model: what it puts out is no reply of a tool.
    Other,
}

impl<'a> IndexedAttributes<'a> {
    /// What the span stands for; none when nothing says.
    pub(crate) fn role(&self) -> Option<SpanRole> {
        let word = self.text(AttributeKey::SpanRole)?;
        Some(ROLES.iter().find(|(known, _)| *known == word).map_or(SpanRole::Other, |(_, role)| *role))
    }

    /// Forgets what attributes of this name do not mean on a span of this role.
    pub(super) fn apply_role(&mut self) {
        let role = self.role();
        if role != Some(SpanRole::Tool) {
            self.remove(AttributeKey::OutputValue);
        }
        if role == Some(SpanRole::Other) {
            self.remove(AttributeKey::EntityOutput);
        }
        let operation = self.fields[ContextField::Operation as usize];
        let is_around = matches!(role, Some(SpanRole::Transport | SpanRole::Session));
        if is_around && operation.is_some_and(|field| field.key == ENTITY_NAME) {
            self.fields[ContextField::Operation as usize] = None;
        }
    }

    /// The side of the call that the span reports. `openllmetry` calls all its spans internal; those of a
    /// server name the server as their workflow.
    pub(crate) fn side(&self, kind: SpanKind) -> SpanKind {
        let is_unsaid = matches!(kind, SpanKind::Internal | SpanKind::Unspecified);
        let is_entity =
            self.get(AttributeKey::SpanRole).is_some_and(|role| role.key == "traceloop.span.kind");
        if !is_unsaid || !is_entity || self.role() != Some(SpanRole::Tool) {
            return kind;
        }
        let workflow = self.text(AttributeKey::WorkflowName);
        let is_server = workflow.is_some_and(|name| name.ends_with(SERVER_WORKFLOW_SUFFIX));
        if is_server { SpanKind::Server } else { SpanKind::Client }
    }

    /// True for a span by which a server passes a call on inside itself.
    pub(crate) fn is_delegate(&self, kind: SpanKind, span_name: &str) -> bool {
        kind == SpanKind::Internal && span_name.starts_with(DELEGATE_PREFIX)
    }

    /// The tool that only the name of the span tells.
    pub(crate) fn tool_in_name<'n>(&self, span_name: &'n str) -> Option<&'n str> {
        let operation = self.fields[ContextField::Operation as usize];
        let method = operation.filter(|field| METHOD_NAMES.contains(&&*field.key));
        let calls_tool = method.is_some_and(|method| method.value.as_text() == Some(TOOL_CALL_METHOD));
        if operation.is_some() && !calls_tool {
            return None;
        }
        let delegated = || span_name.strip_prefix(DELEGATE_PREFIX).filter(|_| calls_tool);
        let tool = TOOL_SPAN_PREFIXES
            .iter()
            .find_map(|prefix| span_name.strip_prefix(prefix))
            .or_else(delegated)?
            .trim_ascii();
        (!tool.is_empty()).then_some(tool)
    }

    /// True for a span that is a part of one call, so that those of the same call can be found.
    pub(crate) fn is_part_of_call(&self) -> bool {
        let has_request_id =
            || self.fields[ContextField::RequestId as usize].is_some_and(|field| field.key == MCP_REQUEST_ID);
        self.has_call_attribute
            || matches!(self.role(), Some(SpanRole::Tool | SpanRole::Transport))
            || self.get(AttributeKey::ResponseValue).is_some()
            || has_request_id()
    }

    /// The tool or method that the span names.
    pub(crate) fn named_operation(&self) -> Option<&'a str> {
        self.fields[ContextField::Operation as usize]?.value.as_text()
    }

    /// True when a tool was called, so that its reply might hold a hidden failure.
    pub(crate) fn calls_tool(&self) -> bool {
        let names_tool = |key: &str| OPERATION_NAMES.contains(&key) && !METHOD_NAMES.contains(&key);
        self.role() == Some(SpanRole::Tool)
            || self.fields[ContextField::Operation as usize].is_some_and(|field| {
                (names_tool(&field.key) && field.key != ENTITY_NAME)
                    || (field.key == METHOD_NAME && field.value.as_text() == Some(TOOL_CALL_METHOD))
            })
    }

    /// True when the content of a reply was captured.
    pub(crate) fn has_reply_content(&self) -> bool {
        CONTENT_KEYS.into_iter().any(|key| self.get(key).is_some())
    }
}
