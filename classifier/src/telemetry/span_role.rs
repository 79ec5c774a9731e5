//! The role of a span in a call: the tool's own span, a part of the transport, or an enclosing span; the side
//! of the call that it reports, and the tool that it names.
//!
//! Instrumentations state this in their own attributes, or only in the name of the span. Everything here is
//! decided from one span alone; the collector decides which spans belong to the same call.

use super::SpanKind;
use super::attributes::{AttributeKey, CONTENT_KEYS, IndexedAttributes};
use crate::context::ContextField;

/// The method that calls a tool.
const TOOL_CALL_METHOD: &str = "tools/call";
/// The attribute that names the method of a call, used if none names its tool.
pub(super) const METHOD_NAME: &str = "mcp.method.name";
/// The attribute that names the entity of an `openllmetry` span.
pub(super) const ENTITY_NAME: &str = "traceloop.entity.name";
/// The attribute in which `openllmetry` states the role of a span.
const ENTITY_ROLE: &str = "traceloop.span.kind";
/// The attribute with the id of an MCP request, on spans of any transport.
const MCP_REQUEST_ID: &str = "mcp.request.id";
/// The suffix of workflow names that denote an MCP server rather than an agent.
const SERVER_WORKFLOW_SUFFIX: &str = ".mcp";

/// The attributes that name the tool of a call, followed by those that name its method.
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
/// The attributes of [`OPERATION_NAMES`] that name a method, not a tool.
const METHOD_NAMES: [&str; 2] = [METHOD_NAME, "rpc.method"];

/// The prefixes of the names of tool call spans, before the name of the tool.
const TOOL_SPAN_PREFIXES: [&str; 3] = ["MCP send tools/call ", "tools/call ", "execute_tool "];
/// The prefix of the names of spans that delegate a call inside a server; it only counts together with the
/// method.
const DELEGATE_PREFIX: &str = "delegate ";

/// The words that instrumentations use for the role of a span.
const ROLES: [(&str, SpanRole); 4] = [
    ("tool", SpanRole::Tool),
    ("TOOL", SpanRole::Tool),
    ("server", SpanRole::Transport),
    ("session", SpanRole::Session),
];

/// The role of a span, as stated by its instrumentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanRole {
    /// One call of a tool.
    Tool,
    /// The server that a call travels through.
    Transport,
    /// The session that many calls travel through.
    Session,
    /// A workflow, an agent or a model, whose output is not the reply of a tool.
    Other,
}

impl<'a> IndexedAttributes<'a> {
    /// Returns the role of the span; `None` if no attribute states it.
    pub(crate) fn role(&self) -> Option<SpanRole> {
        let word = self.text(AttributeKey::SpanRole)?;
        Some(ROLES.iter().find(|(known, _)| *known == word).map_or(SpanRole::Other, |(_, role)| *role))
    }

    /// Removes the attributes that have another meaning on a span of this role.
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

    /// Returns the side of the call that the span reports. `openllmetry` marks all its spans as internal; those of a
    /// server name the server as their workflow, are the server, or hold the response that it writes.
    pub(crate) fn side(&self, kind: SpanKind) -> SpanKind {
        if !matches!(kind, SpanKind::Internal | SpanKind::Unspecified) {
            return kind;
        }
        let Some(role) = self.get(AttributeKey::SpanRole) else {
            let writes_response = self.get(AttributeKey::ResponseValue).is_some();
            return if writes_response { SpanKind::Server } else { kind };
        };
        match self.role() {
            Some(SpanRole::Tool) if role.key == ENTITY_ROLE => {
                let workflow = self.text(AttributeKey::WorkflowName);
                let is_server = workflow.is_some_and(|name| name.ends_with(SERVER_WORKFLOW_SUFFIX));
                if is_server { SpanKind::Server } else { SpanKind::Client }
            }
            Some(SpanRole::Transport) => SpanKind::Server,
            _ => kind,
        }
    }

    /// Reports whether a server uses the span to delegate a call inside itself.
    pub(crate) fn is_delegate(&self, kind: SpanKind, span_name: &str) -> bool {
        kind == SpanKind::Internal && span_name.starts_with(DELEGATE_PREFIX)
    }

    /// Returns the tool in the name of the span, if no attribute names it.
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

    /// Reports whether a span is a part of one call, so that the other spans of that call can be found.
    pub(crate) fn is_part_of_call(&self) -> bool {
        let has_request_id =
            || self.fields[ContextField::RequestId as usize].is_some_and(|field| field.key == MCP_REQUEST_ID);
        self.has_call_attribute
            || matches!(self.role(), Some(SpanRole::Tool | SpanRole::Transport))
            || self.get(AttributeKey::ResponseValue).is_some()
            || has_request_id()
    }

    /// Returns the tool or method that the span names.
    pub(crate) fn named_operation(&self) -> Option<&'a str> {
        self.fields[ContextField::Operation as usize]?.value.as_text()
    }

    /// Reports whether a tool was called, so that its reply may hold a hidden failure.
    pub(crate) fn calls_tool(&self) -> bool {
        let names_tool = |key: &str| OPERATION_NAMES.contains(&key) && !METHOD_NAMES.contains(&key);
        self.role() == Some(SpanRole::Tool)
            || self.fields[ContextField::Operation as usize].is_some_and(|field| {
                (names_tool(&field.key) && field.key != ENTITY_NAME)
                    || (field.key == METHOD_NAME && field.value.as_text() == Some(TOOL_CALL_METHOD))
            })
    }

    /// Reports whether the content of a reply was captured.
    pub(crate) fn has_reply_content(&self) -> bool {
        CONTENT_KEYS.into_iter().any(|key| self.get(key).is_some())
    }
}
