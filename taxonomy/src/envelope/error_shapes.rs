//! The shapes of an error: objects and texts, with or without a protocol around them.

use super::Failure;
use crate::code::Code;
use crate::context::{Part, Sorted};
use crate::details::Key;
use crate::dialect::Dialect;
use crate::json::Json;
use crate::registry::Registry;

/// An object that is an error by itself: `{"error": {...}}`, `{"error": "...", "code": "..."}`.
pub(super) fn read<'t>(registry: &Registry, sorted: &Sorted<'t>) -> Option<Failure<'t>> {
    let error = sorted.part(Part::Error)?;
    if error.is_object() {
        return is_error_object(error).then(|| of_object(registry, error));
    }
    let text = error.as_str().filter(|text| !super::looks_like_json(text))?;
    let code = Code::read(sorted.part(Part::Code));
    if code.is_absent() {
        return None;
    }
    let (type_name, message) = split_type(text);
    // A text beside a code is a published form, and no fault.
    Some(Failure {
        code,
        type_name,
        is_text: false,
        ..Failure::of_text(of_text_code(registry, code), message)
    })
}

/// Shapes that only count when no wrapper holds anything better: a bare text, or an error object without
/// anything around it.
pub(super) fn read_weak<'t>(registry: &Registry, sorted: &Sorted<'t>) -> Option<Failure<'t>> {
    if let Some(error) = sorted.part(Part::Error) {
        if let Some(text) = error.as_str().filter(|text| !text.trim().is_empty()) {
            let (type_name, message) = split_type(text);
            return Some(Failure { type_name, ..Failure::of_text(Dialect::Unknown, message) });
        }
        if error.is_object() && error.fields().next().is_some() {
            return Some(of_object(registry, error));
        }
    }
    // The error object itself, logged as the record: a known code, or one that looks like a code of ours in a
    // record that does not call itself harmless.
    let Code::Text(code) = Code::read(sorted.part(Part::Code)) else { return None };
    let level = sorted.object.get("level").and_then(Json::as_str).unwrap_or_default();
    let is_harmless = ["trace", "debug", "info"].iter().any(|harmless| level.eq_ignore_ascii_case(harmless));
    let looks_like_ours = || registry.prefix(code).is_some() && !is_harmless;
    (registry.find(code).next().is_some() || looks_like_ours())
        .then(|| Failure::of_object(Dialect::Unknown, sorted.object))
}

pub(super) fn is_error_object(error: Json<'_>) -> bool {
    error.fields().any(|(key, value)| matches!(key, "code" | "message") && !value.is_null())
}

fn of_object<'t>(registry: &Registry, error: Json<'t>) -> Failure<'t> {
    let failure = Failure::of_object(Dialect::Unknown, error);
    let has = |key| failure.beside.get(key).is_some();
    let shape = match failure.code {
        Code::Number { .. } if has(Key::Retryable) && !is_jsonrpc_number(failure.code) => {
            Dialect::McpReference
        }
        Code::Text(_)
            if failure.type_name.is_some() && (has(Key::Status) || error.present("hint").is_some()) =>
        {
            Dialect::AgentSkills
        }
        code => of_code(registry, code),
    };
    Failure { shape, ..failure }
}

/// The dialect that a code shows by itself.
pub(crate) fn of_code(registry: &Registry, code: Code<'_>) -> Dialect {
    if is_jsonrpc_number(code) { Dialect::Jsonrpc } else { of_text_code(registry, code) }
}

/// The numbers that JSON-RPC keeps for itself.
fn is_jsonrpc_number(code: Code<'_>) -> bool {
    matches!(code, Code::Number { value: -32768..=-32000, .. })
}

/// A text code that one dialect alone has shows that dialect.
fn of_text_code(registry: &Registry, code: Code<'_>) -> Dialect {
    match code {
        Code::Text(text) => registry.find(text).next().map_or(Dialect::Unknown, |entry| entry.dialect),
        _ => Dialect::Unknown,
    }
}

/// The error of a reply; its data may name a code of agent-skills.
pub(super) fn of_jsonrpc_object(shape: Dialect, error: Json<'_>) -> Failure<'_> {
    let failure = Failure::of_object(shape, error);
    let Some(data) = failure.details else { return failure };
    match data.present("agent_skills_code") {
        Some(code) => Failure {
            shape: Dialect::AgentSkills,
            code: Code::read(Some(code)),
            type_name: data.get("type").and_then(Json::as_str),
            ..failure
        },
        None => failure,
    }
}

/// The error inside a JSON-RPC result: the numeric model's way to say that a tool failed.
pub(super) fn of_result_error(error: Json<'_>) -> Failure<'_> {
    let failure = Failure::of_object(Dialect::Unknown, error);
    let shape = match failure.code {
        Code::Number { value: -32768..=-32000, .. } => Dialect::Jsonrpc,
        Code::Text(_) => Dialect::Unknown,
        _ => Dialect::McpReference,
    };
    Failure { shape, ..failure }
}

/// A failure of which only the HTTP status is known, and perhaps a line of text.
pub(super) fn of_status<'t>(sorted: &Sorted<'t>) -> Failure<'t> {
    let message =
        [Part::Message, Part::Msg, Part::Error].into_iter().find_map(|part| sorted.part(part)?.as_str());
    Failure { message, ..Failure::of_shape(Dialect::Http) }
}

/// `SkillNotFoundError: Skill 'x' not found.` is a class and a message.
fn split_type(text: &str) -> (Option<&str>, &str) {
    match text.split_once(": ") {
        Some((name, message)) if is_class(name) => (Some(name), message),
        _ => (None, text),
    }
}

fn is_class(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.')
        && ["Error", "Exception"].iter().any(|ending| name.ends_with(ending) && name != *ending)
}
