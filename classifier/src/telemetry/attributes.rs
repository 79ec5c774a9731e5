//! The meaning of attributes: one pass sorts those of a span or a record into slots.
//!
//! Conventions have changed over time, so most slots have several names, in order of preference.
//! [`KEY_NAMES`] and [`CONTEXT_FIELD_NAMES`] list all known names; any other attribute belongs to the record
//! as it is.

use super::span_role::{METHOD_NAME, OPERATION_NAMES};
use super::{Attribute, Resource, Value};
use crate::code::Code;
use crate::context::{self, ContextField};
use crate::envelope::looks_like_json;
use crate::json::{ScalarNode, exact_integer};
use crate::name_table::NameTable;

/// An attribute that states the outcome of a call, its output or its error message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttributeKey {
    ToolResult,
    EntityOutput,
    ResultContent,
    Code,
    ErrorType,
    ErrorMessage,
    ExceptionType,
    ExceptionMessage,
    Stacktrace,
    ToolFailed,
    RpcSystem,
    ResponseValue,
    OutputValue,
    SpanRole,
    WorkflowName,
}

const KEY_COUNT: usize = AttributeKey::WorkflowName as usize + 1;

/// The attributes that hold the content of a reply, successful or not, in the order in which they are
/// searched.
pub(super) const CONTENT_KEYS: [AttributeKey; 5] = [
    AttributeKey::ToolResult,
    AttributeKey::EntityOutput,
    AttributeKey::ResponseValue,
    AttributeKey::ResultContent,
    AttributeKey::OutputValue,
];

const KEY_NAMES: [(AttributeKey, &[&str]); KEY_COUNT] = [
    (AttributeKey::ToolResult, &["gen_ai.tool.call.result", "ai.toolCall.result", "tool_response"]),
    (AttributeKey::EntityOutput, &["traceloop.entity.output"]),
    (AttributeKey::ResultContent, &["mcp.tool.result.content", "mcp.tool.result.0.content"]),
    (
        AttributeKey::Code,
        &[
            "error.code",
            "mcp.error.code",
            "rpc.response.status_code",
            "rpc.status_code",
            "rpc.jsonrpc.error_code",
            "rpc.grpc.status_code",
            "rpc.connect_rpc.error_code",
        ],
    ),
    (AttributeKey::ErrorType, &["error.type"]),
    (AttributeKey::ErrorMessage, &["error.message", "rpc.jsonrpc.error_message"]),
    (AttributeKey::ExceptionType, &["exception.type"]),
    (AttributeKey::ExceptionMessage, &["exception.message"]),
    (AttributeKey::Stacktrace, &["exception.stacktrace"]),
    (AttributeKey::ToolFailed, &["mcp.tool.result.is_error"]),
    (AttributeKey::RpcSystem, &["rpc.system", "rpc.system.name"]),
    (AttributeKey::ResponseValue, &["mcp.response.value"]),
    (AttributeKey::OutputValue, &["output.value"]),
    (AttributeKey::SpanRole, &["traceloop.span.kind", "openinference.span.kind"]),
    (AttributeKey::WorkflowName, &["traceloop.workflow.name"]),
];

/// The code attributes that hold the status of any RPC protocol.
const RPC_STATUSES: [&str; 4] =
    ["rpc.response.status_code", "rpc.status_code", "rpc.grpc.status_code", "rpc.connect_rpc.error_code"];

const CONTEXT_FIELD_NAMES: [(ContextField, &[&str]); 9] = [
    (ContextField::Time, &["event.timestamp"]),
    (ContextField::Service, &["service.name"]),
    (ContextField::ServiceVersion, &["service.version"]),
    (ContextField::Environment, &["deployment.environment.name", "deployment.environment"]),
    (ContextField::Operation, &OPERATION_NAMES),
    (ContextField::HttpStatus, &["http.response.status_code", "http.status_code"]),
    (
        ContextField::Client,
        &["enduser.id", "enduser.pseudo.id", "user.id", "client.id", "gen_ai.agent.id", "tenant.id"],
    ),
    (
        ContextField::RequestId,
        &[
            "jsonrpc.request.id",
            "rpc.jsonrpc.request_id",
            "mcp.request.id",
            "request.id",
            "http.request.id",
            "gen_ai.tool.call.id",
            "call_id",
            "tool_use_id",
        ],
    ),
    (ContextField::SessionId, &["mcp.session.id", "session.id", "gen_ai.conversation.id", "conversation.id"]),
];

/// The fields for which the usual names of records also count.
const SHARED_FIELDS: [ContextField; 4] =
    [ContextField::Client, ContextField::RequestId, ContextField::SessionId, ContextField::Dialect];

/// A span or a record with one of these attributes is a call.
const CALL_ATTRIBUTES: [&str; 4] = [METHOD_NAME, "gen_ai.tool.name", "mcp.tool.name", "ai.toolCall.name"];

/// The fields for which a record's own attributes rank after those of its resource, whichever name is used.
const RESOURCE_FIELDS: [ContextField; 3] =
    [ContextField::Service, ContextField::ServiceVersion, ContextField::Environment];
const RESOURCE_RANK_OFFSET: u8 = 64;

#[derive(Debug, Clone, Copy)]
enum Slot {
    Key(AttributeKey),
    ContextField(ContextField),
}

/// The slot of a name, and its rank among the names of that slot: the lowest wins.
#[derive(Debug, Clone, Copy)]
struct AttributeRole {
    slot: Slot,
    rank: u8,
    marks_call: bool,
}

/// Every known attribute name with its role.
#[derive(Debug, Clone)]
pub(crate) struct AttributeNames(NameTable<AttributeRole>);

impl AttributeNames {
    /// Creates the table from the names of the conventions and those of the operator, which take precedence.
    pub(crate) fn new(operator_names: &[(String, ContextField)]) -> Self {
        let mut names = NameTable::new([]);
        let mut add = |name: &str, slot, rank| {
            let marks_call = CALL_ATTRIBUTES.contains(&name);
            names.insert(name.to_owned(), AttributeRole { slot, rank, marks_call });
        };
        for field in SHARED_FIELDS {
            // These rank after the names of the conventions, of which no field has 32.
            context::default_names(field)
                .zip(32..)
                .for_each(|(name, rank)| add(name, Slot::ContextField(field), rank));
        }
        for (field, names_by_rank) in CONTEXT_FIELD_NAMES {
            names_by_rank.iter().zip(1..).for_each(|(name, rank)| add(name, Slot::ContextField(field), rank));
        }
        for (key, names_by_rank) in KEY_NAMES {
            names_by_rank.iter().zip(1..).for_each(|(name, rank)| add(name, Slot::Key(key), rank));
        }
        for (name, field) in operator_names {
            add(name, Slot::ContextField(*field), 0);
        }
        Self(names)
    }
}

/// The known attributes, sorted by meaning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexedAttributes<'a> {
    by_key: [Option<&'a Attribute<'a>>; KEY_COUNT],
    pub(crate) fields: [Option<&'a Attribute<'a>>; context::FIELD_COUNT],
    /// True if an attribute that only calls have is present.
    pub(crate) has_call_attribute: bool,
}

/// The ranks of the attributes in the slots, while these are being filled.
struct Ranks {
    by_key: [u8; KEY_COUNT],
    fields: [u8; context::FIELD_COUNT],
}

impl<'a> IndexedAttributes<'a> {
    /// Sorts the attributes of a span or a record, and those of its resource.
    pub(crate) fn new(
        names: &AttributeNames,
        resource: &Resource<'a>,
        attributes: &'a [Attribute<'a>],
    ) -> Self {
        let mut indexed = Self {
            by_key: [None; KEY_COUNT],
            fields: [None; context::FIELD_COUNT],
            has_call_attribute: false,
        };
        let mut ranks = Ranks { by_key: [u8::MAX; KEY_COUNT], fields: [u8::MAX; context::FIELD_COUNT] };
        for attribute in resource.attributes {
            match names.0.get(&attribute.key) {
                Some(AttributeRole { slot: Slot::ContextField(field), rank, .. })
                    if RESOURCE_FIELDS.contains(&field) =>
                {
                    indexed.set_field(attribute, field, rank, &mut ranks);
                }
                _ => {}
            }
        }
        for attribute in attributes {
            let Some(role) = names.0.get(&attribute.key) else { continue };
            indexed.has_call_attribute |= role.marks_call;
            match role.slot {
                Slot::Key(key) => indexed.set_key(attribute, key, role.rank, &mut ranks),
                Slot::ContextField(field) if role.rank > 0 && RESOURCE_FIELDS.contains(&field) => {
                    indexed.set_field(attribute, field, role.rank + RESOURCE_RANK_OFFSET, &mut ranks);
                }
                Slot::ContextField(field) => indexed.set_field(attribute, field, role.rank, &mut ranks),
            }
        }
        if indexed.get(AttributeKey::SpanRole).is_some() || indexed.get(AttributeKey::OutputValue).is_some() {
            indexed.apply_role();
        }
        indexed
    }

    fn set_key(&mut self, attribute: &'a Attribute<'a>, key: AttributeKey, rank: u8, ranks: &mut Ranks) {
        if rank < ranks.by_key[key as usize] && is_usable(key, &attribute.value) {
            ranks.by_key[key as usize] = rank;
            self.by_key[key as usize] = Some(attribute);
        }
    }

    fn set_field(&mut self, attribute: &'a Attribute<'a>, field: ContextField, rank: u8, ranks: &mut Ranks) {
        let is_usable = || match field {
            ContextField::HttpStatus => context::http_status(to_scalar(&attribute.value).as_json()).is_some(),
            _ => is_name(&attribute.value),
        };
        if rank < ranks.fields[field as usize] && is_usable() {
            ranks.fields[field as usize] = rank;
            self.fields[field as usize] = Some(attribute);
        }
    }

    /// Adds the exception of an event. A later exception replaces it, but the span's own attributes stay.
    pub(crate) fn add_exception(&mut self, attributes: &'a [Attribute<'a>], own: &Self) {
        const EXCEPTION_KEYS: [AttributeKey; 3] =
            [AttributeKey::ExceptionType, AttributeKey::ExceptionMessage, AttributeKey::Stacktrace];
        for key in EXCEPTION_KEYS.into_iter().filter(|key| own.get(*key).is_none()) {
            let is = |attribute: &&Attribute<'_>| KEY_NAMES[key as usize].1.contains(&&*attribute.key);
            self.by_key[key as usize] =
                attributes.iter().find(is).filter(|attribute| is_usable(key, &attribute.value));
        }
    }

    pub(crate) fn get(&self, key: AttributeKey) -> Option<&'a Attribute<'a>> {
        self.by_key[key as usize]
    }

    pub(super) fn remove(&mut self, key: AttributeKey) {
        self.by_key[key as usize] = None;
    }

    /// Returns the text of an attribute.
    pub(crate) fn text(&self, key: AttributeKey) -> Option<&'a str> {
        self.get(key)?.value.as_text()
    }

    /// Returns the code that an attribute states; never a code that means success.
    pub(crate) fn code(&self) -> Code<'a> {
        self.get(AttributeKey::Code).map_or(Code::Missing, |attribute| parse_code(&attribute.value))
    }

    /// Reports whether the code may be a gRPC status: by the RPC system or, if that is not stated, by an
    /// attribute that only holds statuses.
    pub(crate) fn may_be_grpc(&self) -> bool {
        match self.text(AttributeKey::RpcSystem) {
            Some(system) => GRPC_SYSTEMS.contains(&system),
            None => self.get(AttributeKey::Code).is_some_and(|code| RPC_STATUSES.contains(&&*code.key)),
        }
    }

    /// Reports whether the protocol is JSON-RPC.
    pub(crate) fn uses_jsonrpc(&self) -> bool {
        self.has_call_attribute || self.text(AttributeKey::RpcSystem) == Some("jsonrpc")
    }

    /// Returns the message that the attributes state. A failed tool states it in its result.
    pub(crate) fn message(&self) -> Option<&'a str> {
        let is_plain_text = |text: &&str| !text.trim_ascii().is_empty() && !looks_like_json(text);
        let result = || CONTENT_KEYS.into_iter().filter_map(|key| self.text(key)).find(is_plain_text);
        self.text(AttributeKey::ExceptionMessage)
            .or_else(|| self.text(AttributeKey::ErrorMessage))
            .or_else(|| result().filter(|_| self.is_tool_error()))
    }

    /// Reports whether the tool itself reports a failure.
    pub(crate) fn is_tool_error(&self) -> bool {
        self.get(AttributeKey::ToolFailed).is_some()
            || self.text(AttributeKey::ErrorType) == Some("tool_error")
    }

    /// Returns the HTTP status.
    pub(crate) fn http_status(&self) -> Option<u16> {
        let attribute = self.fields[ContextField::HttpStatus as usize]?;
        context::http_status(to_scalar(&attribute.value).as_json())
    }

    /// Returns the attributes that hold the output of a call.
    pub(crate) fn content_attributes(&self) -> impl Iterator<Item = &'a Attribute<'a>> + use<'a> {
        let by_key = self.by_key;
        CONTENT_KEYS.into_iter().filter_map(move |key| by_key[key as usize])
    }

    /// Returns the attributes whose message may be a whole reply.
    pub(crate) fn message_attributes(&self) -> impl Iterator<Item = &'a Attribute<'a>> + use<'a> {
        [AttributeKey::ErrorMessage, AttributeKey::ExceptionMessage]
            .map(|key| self.by_key[key as usize])
            .into_iter()
            .flatten()
    }
}

/// The values of `rpc.system` for gRPC and protocols with the same statuses.
const GRPC_SYSTEMS: [&str; 3] = ["grpc", "connect_rpc", "connectrpc"];

/// Reports whether a value is valid for its key. If not, another name of the key may have a valid one.
fn is_usable(key: AttributeKey, value: &Value<'_>) -> bool {
    match key {
        AttributeKey::ToolResult
        | AttributeKey::EntityOutput
        | AttributeKey::ResponseValue
        | AttributeKey::ResultContent
        | AttributeKey::OutputValue => {
            matches!(value, Value::Text(_) | Value::Json(_))
        }
        AttributeKey::Code => !matches!(parse_code(value), Code::Unusable) && !is_success(parse_code(value)),
        AttributeKey::ToolFailed => to_scalar(value).as_json().as_bool() == Some(true),
        AttributeKey::ErrorType => is_name(value) && !is_success(parse_code(value)),
        _ => matches!(value, Value::Text(text) if !text.trim_ascii().is_empty()),
    }
}

fn is_name(value: &Value<'_>) -> bool {
    match value {
        // The first byte decides nearly always.
        Value::Text(text) => text.bytes().any(|byte| !byte.is_ascii_whitespace()),
        Value::Int(_) => true,
        Value::Double(number) => exact_integer(*number).is_some(),
        _ => false,
    }
}

/// Parses the code of an attribute. Conventions require texts, so a number in quotes is not marked as quoted.
pub(crate) fn parse_code<'a>(value: &'a Value<'a>) -> Code<'a> {
    let number = match value {
        Value::Int(number) => Some(*number),
        Value::Double(number) => exact_integer(*number),
        Value::Text(text) => match Code::from_text(text.trim_ascii()) {
            Code::Number { value, .. } => Some(value),
            code => return code,
        },
        _ => None,
    };
    number.map_or(Code::Unusable, |value| Code::Number { value, quoted: false })
}

/// Reports whether a code means success: `0` and `OK` of gRPC, and the HTTP statuses that are not errors.
fn is_success(code: Code<'_>) -> bool {
    match code {
        Code::Number { value, .. } => value == 0 || (100..400).contains(&value),
        Code::Text(text) => text.eq_ignore_ascii_case("ok"),
        _ => false,
    }
}

/// Converts a value to a JSON scalar. JSON texts and empty values become `null`.
pub(crate) fn to_scalar<'a>(value: &'a Value<'a>) -> ScalarNode<'a> {
    match value {
        Value::Text(text) => ScalarNode::text(text),
        Value::Int(number) => ScalarNode::int(*number),
        Value::Double(number) => ScalarNode::float(*number),
        Value::Bool(value) => ScalarNode::bool(*value),
        Value::Empty | Value::Json(_) => ScalarNode::NULL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clue_has_its_own_slot() {
        for (index, (key, _)) in KEY_NAMES.iter().enumerate() {
            assert_eq!(*key as usize, index);
        }
    }

    #[test]
    fn successes_are_no_codes() {
        for text in ["0", "OK", "ok", "200", "204", "0.0"] {
            assert!(is_success(parse_code(&Value::Text(text.into()))), "{text}");
        }
        for text in ["-32602", "NOT_FOUND", "5", "404", "1001", "_OTHER"] {
            assert!(!is_success(parse_code(&Value::Text(text.into()))), "{text}");
        }
    }
}
