//! What attributes mean: one pass sorts those of a span or a record into slots.
//!
//! Conventions have generations, so most slots have several names, best first. [`NAMES`] and [`FIELDS`] are
//! all we know of them; everything else is what a record carries beside.

use super::{Attribute, Resource, Value};
use crate::code::Code;
use crate::context::{self, Field};
use crate::envelope::looks_like_json;
use crate::json::{Single, whole};
use crate::known::Known;

/// Something that tells how a call went, or in which words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clue {
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
}

const CLUES: usize = Clue::RpcSystem as usize + 1;

/// Where replies are kept, in the order they are looked into.
const CAPTURED: [Clue; 5] =
    [Clue::ToolResult, Clue::EntityOutput, Clue::ResultContent, Clue::ErrorMessage, Clue::ExceptionMessage];

const NAMES: [(Clue, &[&str]); CLUES] = [
    (Clue::ToolResult, &["gen_ai.tool.call.result"]),
    (Clue::EntityOutput, &["traceloop.entity.output"]),
    (Clue::ResultContent, &["mcp.tool.result.content"]),
    (
        Clue::Code,
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
    (Clue::ErrorType, &["error.type"]),
    (Clue::ErrorMessage, &["error.message", "rpc.jsonrpc.error_message"]),
    (Clue::ExceptionType, &["exception.type"]),
    (Clue::ExceptionMessage, &["exception.message"]),
    (Clue::Stacktrace, &["exception.stacktrace"]),
    (Clue::ToolFailed, &["mcp.tool.result.is_error"]),
    (Clue::RpcSystem, &["rpc.system", "rpc.system.name"]),
];

/// Code attributes that hold the status of whatever protocol is spoken.
const RPC_STATUSES: [&str; 4] =
    ["rpc.response.status_code", "rpc.status_code", "rpc.grpc.status_code", "rpc.connect_rpc.error_code"];

const FIELDS: [(Field, &[&str]); 8] = [
    (Field::Service, &["service.name"]),
    (Field::ServiceVersion, &["service.version"]),
    (Field::Environment, &["deployment.environment.name", "deployment.environment"]),
    (Field::Operation, &["gen_ai.tool.name", "mcp.tool.name", "mcp.method.name", "rpc.method"]),
    (Field::HttpStatus, &["http.response.status_code", "http.status_code"]),
    (
        Field::Client,
        &["enduser.id", "enduser.pseudo.id", "user.id", "client.id", "gen_ai.agent.id", "tenant.id"],
    ),
    (
        Field::RequestId,
        &["jsonrpc.request.id", "rpc.jsonrpc.request_id", "mcp.request.id", "request.id", "http.request.id"],
    ),
    (Field::SessionId, &["mcp.session.id", "session.id", "gen_ai.conversation.id"]),
];

/// Fields of which a record's own usual names count as well.
const USUAL: [Field; 4] = [Field::Client, Field::RequestId, Field::SessionId, Field::Dialect];

/// What carries one of these is a call.
const CALL_MARKS: [&str; 2] = ["mcp.method.name", "gen_ai.tool.name"];

/// On a record these rank after what its resource says, whichever name is used.
const OF_RESOURCE: [Field; 3] = [Field::Service, Field::ServiceVersion, Field::Environment];
const AFTER_RESOURCE: u8 = 64;

#[derive(Debug, Clone, Copy)]
enum Slot {
    Clue(Clue),
    Field(Field),
}

/// What a name is to us, and its rank among the names of its slot: the lowest wins.
#[derive(Debug, Clone, Copy)]
struct Role {
    slot: Slot,
    rank: u8,
    marks_call: bool,
}

/// Every attribute we know, with what it is to us.
#[derive(Debug, Clone)]
pub(crate) struct AttributeNames(Known<Role>);

impl AttributeNames {
    /// The names of the conventions, and an operator's own before them.
    pub(crate) fn new(own: &[(String, Field)]) -> Self {
        let mut names = Known::new([]);
        let mut add = |name: &str, slot, rank| {
            let marks_call = CALL_MARKS.contains(&name);
            names.insert(name.to_owned(), Role { slot, rank, marks_call });
        };
        for field in USUAL {
            // After those of the conventions, of which no field has this many.
            context::usual_names(field)
                .zip(32..)
                .for_each(|(name, rank)| add(name, Slot::Field(field), rank));
        }
        for (field, usual) in FIELDS {
            usual.iter().zip(1..).for_each(|(name, rank)| add(name, Slot::Field(field), rank));
        }
        for (clue, usual) in NAMES {
            usual.iter().zip(1..).for_each(|(name, rank)| add(name, Slot::Clue(clue), rank));
        }
        for (name, field) in own {
            add(name, Slot::Field(*field), 0);
        }
        Self(names)
    }
}

/// The attributes that mean something, by what they mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clues<'a> {
    clues: [Option<&'a Attribute<'a>>; CLUES],
    pub(crate) fields: [Option<&'a Attribute<'a>>; context::FIELDS],
    /// One of the attributes that only calls have is there.
    pub(crate) marks_call: bool,
}

/// The ranks of what stands in the slots, while they are being filled.
struct Ranks {
    clues: [u8; CLUES],
    fields: [u8; context::FIELDS],
}

impl<'a> Clues<'a> {
    /// Sorts the attributes of a span or a record, and those of its resource.
    pub(crate) fn read(
        names: &AttributeNames,
        resource: &Resource<'a>,
        attributes: &'a [Attribute<'a>],
    ) -> Self {
        let mut clues = Self { clues: [None; CLUES], fields: [None; context::FIELDS], marks_call: false };
        let mut ranks = Ranks { clues: [u8::MAX; CLUES], fields: [u8::MAX; context::FIELDS] };
        for attribute in resource.attributes {
            match names.0.get(&attribute.key) {
                Some(Role { slot: Slot::Field(field), rank, .. }) if OF_RESOURCE.contains(&field) => {
                    clues.put_field(attribute, field, rank, &mut ranks);
                }
                _ => {}
            }
        }
        for attribute in attributes {
            let Some(role) = names.0.get(&attribute.key) else { continue };
            clues.marks_call |= role.marks_call;
            match role.slot {
                Slot::Clue(clue) => clues.put_clue(attribute, clue, role.rank, &mut ranks),
                Slot::Field(field) if role.rank > 0 && OF_RESOURCE.contains(&field) => {
                    clues.put_field(attribute, field, role.rank + AFTER_RESOURCE, &mut ranks);
                }
                Slot::Field(field) => clues.put_field(attribute, field, role.rank, &mut ranks),
            }
        }
        clues
    }

    fn put_clue(&mut self, attribute: &'a Attribute<'a>, clue: Clue, rank: u8, ranks: &mut Ranks) {
        if rank < ranks.clues[clue as usize] && is_usable(clue, &attribute.value) {
            ranks.clues[clue as usize] = rank;
            self.clues[clue as usize] = Some(attribute);
        }
    }

    fn put_field(&mut self, attribute: &'a Attribute<'a>, field: Field, rank: u8, ranks: &mut Ranks) {
        let single = single(&attribute.value);
        let is_usable = match field {
            Field::HttpStatus => context::http_status(single.json()).is_some(),
            _ => is_name(&attribute.value),
        };
        if is_usable && rank < ranks.fields[field as usize] {
            ranks.fields[field as usize] = rank;
            self.fields[field as usize] = Some(attribute);
        }
    }

    /// Takes the exception that an event tells of; a later one replaces it, what the span itself says stays.
    pub(crate) fn add_exception(&mut self, attributes: &'a [Attribute<'a>], own: &Self) {
        const PARTS: [Clue; 3] = [Clue::ExceptionType, Clue::ExceptionMessage, Clue::Stacktrace];
        for clue in PARTS.into_iter().filter(|clue| own.get(*clue).is_none()) {
            let is = |attribute: &&Attribute<'_>| NAMES[clue as usize].1.contains(&&*attribute.key);
            self.clues[clue as usize] =
                attributes.iter().find(is).filter(|attribute| is_usable(clue, &attribute.value));
        }
    }

    pub(crate) fn get(&self, clue: Clue) -> Option<&'a Attribute<'a>> {
        self.clues[clue as usize]
    }

    /// The text of a clue.
    pub(crate) fn text(&self, clue: Clue) -> Option<&'a str> {
        self.get(clue)?.value.as_text()
    }

    /// The code that an attribute gives; never one that stands for a success.
    pub(crate) fn code(&self) -> Code<'a> {
        self.get(Clue::Code).map_or(Code::Missing, |attribute| code_of(&attribute.value))
    }

    /// True when the code may be a status of gRPC: by what is spoken or, where nobody says that, by the
    /// attribute that only statuses stand in.
    pub(crate) fn may_be_grpc(&self) -> bool {
        match self.text(Clue::RpcSystem) {
            Some(system) => GRPC_SYSTEMS.contains(&system),
            None => self.get(Clue::Code).is_some_and(|code| RPC_STATUSES.contains(&&*code.key)),
        }
    }

    /// True when JSON-RPC is spoken.
    pub(crate) fn speaks_jsonrpc(&self) -> bool {
        self.marks_call || self.text(Clue::RpcSystem) == Some("jsonrpc")
    }

    /// What the attributes say in words. A tool that failed says it in its result.
    pub(crate) fn message(&self) -> Option<&'a str> {
        let is_words = |text: &&str| !text.trim_ascii().is_empty() && !looks_like_json(text);
        let result = || CAPTURED.into_iter().filter_map(|clue| self.text(clue)).find(is_words);
        self.text(Clue::ExceptionMessage)
            .or_else(|| self.text(Clue::ErrorMessage))
            .or_else(|| result().filter(|_| self.is_tool_error()))
    }

    /// True when the tool itself says that it failed.
    pub(crate) fn is_tool_error(&self) -> bool {
        self.get(Clue::ToolFailed).is_some() || self.text(Clue::ErrorType) == Some("tool_error")
    }

    /// The HTTP status.
    pub(crate) fn http_status(&self) -> Option<u16> {
        let attribute = self.fields[Field::HttpStatus as usize]?;
        context::http_status(single(&attribute.value).json())
    }

    /// The attributes that may hold a reply.
    pub(crate) fn captured(&self) -> impl Iterator<Item = &'a Attribute<'a>> {
        let clues = self.clues;
        CAPTURED.into_iter().filter_map(move |clue| clues[clue as usize])
    }
}

/// What `rpc.system` calls gRPC and its like.
const GRPC_SYSTEMS: [&str; 3] = ["grpc", "connect_rpc", "connectrpc"];

/// A value that can be what its name promises; another name may still have one.
fn is_usable(clue: Clue, value: &Value<'_>) -> bool {
    match clue {
        Clue::ToolResult | Clue::EntityOutput | Clue::ResultContent => {
            matches!(value, Value::Text(_) | Value::Json(_))
        }
        Clue::Code => !matches!(code_of(value), Code::Unusable) && !is_success(code_of(value)),
        Clue::ToolFailed => single(value).json().as_bool() == Some(true),
        Clue::ErrorType => is_name(value) && !is_success(code_of(value)),
        _ => matches!(value, Value::Text(text) if !text.trim_ascii().is_empty()),
    }
}

fn is_name(value: &Value<'_>) -> bool {
    match value {
        Value::Text(text) => !text.trim_ascii().is_empty(),
        Value::Int(_) => true,
        Value::Double(number) => whole(*number).is_some(),
        _ => false,
    }
}

/// A code as an attribute gives it: conventions ask for texts, so quotes say nothing about the sender.
pub(crate) fn code_of<'a>(value: &'a Value<'a>) -> Code<'a> {
    let number = match value {
        Value::Int(number) => Some(*number),
        Value::Double(number) => whole(*number),
        Value::Text(text) => match Code::of_text(text.trim_ascii()) {
            Code::Number { value, .. } => Some(value),
            code => return code,
        },
        _ => None,
    };
    number.map_or(Code::Unusable, |value| Code::Number { value, quoted: false })
}

/// `0` and `OK` of gRPC, and the statuses of HTTP that are no errors.
fn is_success(code: Code<'_>) -> bool {
    match code {
        Code::Number { value, .. } => value == 0 || (100..400).contains(&value),
        Code::Text(text) => text.eq_ignore_ascii_case("ok"),
        _ => false,
    }
}

/// A value as JSON; what is JSON text already, or nothing, is none.
pub(crate) fn single<'a>(value: &'a Value<'a>) -> Single<'a> {
    match value {
        Value::Text(text) => Single::text(text),
        Value::Int(number) => Single::int(*number),
        Value::Double(number) => Single::float(*number),
        Value::Bool(value) => Single::bool(*value),
        Value::Empty | Value::Json(_) => Single::NULL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clue_has_its_own_slot() {
        for (index, (clue, _)) in NAMES.iter().enumerate() {
            assert_eq!(*clue as usize, index);
        }
    }

    #[test]
    fn successes_are_no_codes() {
        for text in ["0", "OK", "ok", "200", "204", "0.0"] {
            assert!(is_success(code_of(&Value::Text(text.into()))), "{text}");
        }
        for text in ["-32602", "NOT_FOUND", "5", "404", "1001", "_OTHER"] {
            assert!(!is_success(code_of(&Value::Text(text.into()))), "{text}");
        }
    }
}
