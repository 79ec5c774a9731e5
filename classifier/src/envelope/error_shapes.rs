//! The shapes of errors: objects and texts, with or without a protocol around them.

use super::Failure;
use crate::code::Code;
use crate::context::{EnvelopeKey, IndexedObject};
use crate::details::DetailKey;
use crate::dialect::Dialect;
use crate::json::Json;
use crate::registry::Registry;

/// Reads an object that is an error by itself: `{"error": {...}}`, `{"error": "...", "code": "..."}`.
pub(super) fn read_error<'t>(registry: &Registry, object: &IndexedObject<'t>) -> Option<Failure<'t>> {
    let error = object.get(EnvelopeKey::Error)?;
    if error.is_object() {
        return is_error_object(error).then(|| read_error_object(registry, error));
    }
    let text = error.as_str().filter(|text| !super::looks_like_json(text))?;
    let code = Code::read(object.get(EnvelopeKey::Code));
    if code.is_absent() {
        return None;
    }
    let (type_name, message) = split_class_name(text);
    // A text beside a code is a published form, so it is not reported as a malformed error.
    Some(Failure {
        code,
        type_name,
        is_string_error: false,
        ..Failure::from_text(dialect_of_text_code(registry, code), message)
    })
}

/// Reads the shapes that count only if no wrapper holds anything better: a bare text, or a bare error object.
pub(super) fn read_weak_error<'t>(registry: &Registry, object: &IndexedObject<'t>) -> Option<Failure<'t>> {
    if let Some(error) = object.get(EnvelopeKey::Error) {
        if let Some(text) = error.as_str().filter(|text| !text.trim().is_empty()) {
            let (type_name, message) = split_class_name(text);
            return Some(Failure { type_name, ..Failure::from_text(Dialect::Unknown, message) });
        }
        if error.is_object() && error.fields().next().is_some() {
            // An object of ids only, beside which the code and the message stand.
            let beside = || super::api_shapes::explain(registry, object.json);
            return if is_error_object(error) { None } else { beside() }
                .or_else(|| Some(read_error_object(registry, error)));
        }
    }
    // The record is the error object itself: it has a known code, or a code with a known prefix and a level
    // that is not harmless.
    let Code::Text(code) = Code::read(object.get(EnvelopeKey::Code)) else { return None };
    let level = object.json.get("level").and_then(Json::as_str).unwrap_or_default();
    let is_harmless = ["trace", "debug", "info"].iter().any(|harmless| level.eq_ignore_ascii_case(harmless));
    let looks_like_ours = || registry.prefix(code).is_some() && !is_harmless;
    (registry.find(code).next().is_some() || looks_like_ours())
        .then(|| Failure::from_object(Dialect::Unknown, object.json))
}

/// Reads an error that was flattened into the fields of a log line: `mcp.error.code=-32602`.
pub(super) fn read_flat_error<'t>(registry: &Registry, object: Json<'t>) -> Option<Failure<'t>> {
    let (mut code, mut message, mut type_name) = (Code::Missing, None, None);
    for (key, value) in object.fields().filter(|(_, value)| !value.is_null()) {
        match key {
            "mcp.error.code" | "rpc.jsonrpc.error_code" | "error.code" | "error_code" => {
                code = Code::read(Some(value));
            }
            "mcp.error.message" | "rpc.jsonrpc.error_message" | "error.message" | "error_message" => {
                message = value.as_str().filter(|text| !text.trim().is_empty());
            }
            "error.type" => type_name = value.as_str(),
            _ => {}
        }
    }
    let says_error = if code.is_absent() { message.is_some() } else { !code.matches_text("0") };
    let failure = || Failure { code, message, type_name, ..Failure::new(dialect_of_code(registry, code)) };
    says_error.then(failure)
}

pub(super) fn is_error_object(error: Json<'_>) -> bool {
    error.fields().any(|(key, value)| matches!(key, "code" | "message") && !value.is_null())
}

fn read_error_object<'t>(registry: &Registry, error: Json<'t>) -> Failure<'t> {
    let failure = Failure::from_object(Dialect::Unknown, error);
    let has = |key| failure.error_fields.get(key).is_some();
    let shape_dialect = match failure.code {
        Code::Number { .. } if has(DetailKey::Retryable) && !is_jsonrpc_number(failure.code) => {
            Dialect::McpReference
        }
        Code::Text(_)
            if failure.type_name.is_some() && (has(DetailKey::Status) || error.present("hint").is_some()) =>
        {
            Dialect::AgentSkills
        }
        code => dialect_of_code(registry, code),
    };
    Failure { shape_dialect, ..failure }
}

/// Returns the dialect that a code indicates by itself.
pub(crate) fn dialect_of_code(registry: &Registry, code: Code<'_>) -> Dialect {
    if is_jsonrpc_number(code) { Dialect::Jsonrpc } else { dialect_of_text_code(registry, code) }
}

/// Reports whether a code is in the range that JSON-RPC reserves.
fn is_jsonrpc_number(code: Code<'_>) -> bool {
    matches!(code, Code::Number { value: -32768..=-32000, .. })
}

/// Returns the dialect of a text code: that of its first registry entry.
fn dialect_of_text_code(registry: &Registry, code: Code<'_>) -> Dialect {
    match code {
        Code::Text(text) => registry.find(text).next().map_or(Dialect::Unknown, |entry| entry.dialect),
        _ => Dialect::Unknown,
    }
}

/// Reads the error of a JSON-RPC reply; its data may hold a code of agent-skills.
pub(super) fn read_jsonrpc_error(shape_dialect: Dialect, error: Json<'_>) -> Failure<'_> {
    let failure = Failure::from_object(shape_dialect, error);
    let Some(data) = failure.details else { return failure };
    match data.present("agent_skills_code") {
        Some(code) => Failure {
            shape_dialect: Dialect::AgentSkills,
            code: Code::read(Some(code)),
            type_name: data.get("type").and_then(Json::as_str),
            ..failure
        },
        None => failure,
    }
}

/// Reads the error inside a JSON-RPC result, which is how the numeric model reports a failed tool.
pub(super) fn read_result_error(error: Json<'_>) -> Failure<'_> {
    let failure = Failure::from_object(Dialect::Unknown, error);
    let shape_dialect = match failure.code {
        Code::Number { value: -32768..=-32000, .. } => Dialect::Jsonrpc,
        Code::Text(_) => Dialect::Unknown,
        _ => Dialect::McpReference,
    };
    Failure { shape_dialect, ..failure }
}

/// Reads a failure of which only the HTTP status is known, and perhaps a line of text.
pub(super) fn read_http_status<'t>(object: &IndexedObject<'t>) -> Failure<'t> {
    let message = [EnvelopeKey::Message, EnvelopeKey::Msg, EnvelopeKey::Error]
        .into_iter()
        .find_map(|key| object.get(key)?.as_str());
    Failure { message, ..Failure::new(Dialect::Http) }
}

/// Splits `SkillNotFoundError: Skill 'x' not found.` into a class and a message.
pub(super) fn split_class_name(text: &str) -> (Option<&str>, &str) {
    match text.split_once(": ") {
        Some((name, message)) if is_class_name(name) => (Some(name), message),
        _ => (None, text),
    }
}

fn is_class_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.')
        && ["Error", "Exception"].iter().any(|ending| name.ends_with(ending) && name != *ending)
}
