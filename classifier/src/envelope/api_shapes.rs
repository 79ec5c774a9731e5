//! The shapes in which upstream APIs report a failed request, as tools pass them on.
//!
//! Each rule is one small function for one shape. [`Strictness`] depends on the context: in a reply that its
//! protocol reports as a success, a shape must be unmistakable, because tools return job records, findings
//! and log entries that look much like errors.
//!
//! Invariant: only the fields of the object itself decide, never the data that they hold. The one exception
//! is an error object or a list of errors, whose first element provides the message.

mod build;
mod keys;

use super::{Failure, prose};
use crate::code::Code;
use crate::context::http_status;
use crate::dialect::Dialect;
use crate::json::Json;
use crate::registry::Registry;
use aho_corasick::AhoCorasick;
use build::build;
use keys::{ShapeFields, Slot};
use std::sync::LazyLock;

/// The amount of evidence that a shape needs to count as a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// The protocol already reports a failed call, so anything that reads like an error may explain it.
    Given,
    /// The object is a log record, which has context fields beside the shape.
    Record,
    /// The object is the data of a reply that its protocol reports as a success.
    Required,
}

/// Reads a failure from an object whose shape reports a failed request.
pub(super) fn read<'t>(registry: &Registry, object: Json<'t>, strictness: Strictness) -> Option<Failure<'t>> {
    let fields = ShapeFields::read(object);
    let failed = match strictness {
        Strictness::Given => has_explanation(&fields),
        Strictness::Record => RECORD_RULES.iter().any(|rule| rule(&fields)) && !is_harmless(object),
        Strictness::Required => !says_success(&fields) && REPLY_RULES.iter().any(|rule| rule(&fields)),
    };
    failed.then(|| build(registry, &fields))
}

/// Reads a failure from an object that a tool returned without an error flag. The object must have an
/// unmistakable shape, or hold nothing but a message that states a failure.
pub(super) fn read_tool_data<'t>(registry: &Registry, object: Json<'t>) -> Option<Failure<'t>> {
    let fields = ShapeFields::read(object);
    if says_success(&fields) {
        return None;
    }
    if REPLY_RULES.iter().any(|rule| rule(&fields)) {
        return Some(build(registry, &fields));
    }
    let text = fields.text(Slot::Message).filter(|_| fields.unknown + fields.record == 0)?;
    let states_failure = !fields.has(Slot::Data) && prose::is_failure(registry, text);
    states_failure.then(|| Failure::from_text(Dialect::Unknown, text))
}

/// Reports whether an object is data rather than a failed reply: a record with an identity or a list, or one
/// that states success.
pub(super) fn is_data_record(object: Json<'_>) -> bool {
    let fields = ShapeFields::read(object);
    fields.record > 1 || fields.record == 1 && fields.unknown > 0 || says_success(&fields)
}

/// Reads the message and the code that a failed reply states in its own fields.
pub(super) fn explain<'t>(registry: &Registry, object: Json<'t>) -> Option<Failure<'t>> {
    let fields = ShapeFields::read(object);
    has_explanation(&fields).then(|| build(registry, &fields))
}

type ShapeRule = fn(&ShapeFields<'_>) -> bool;

/// The rules that apply to a reply.
const REPLY_RULES: [ShapeRule; 16] = [
    is_named_error,
    verdict_is_false,
    error_flag_is_set,
    calls_itself_an_error,
    is_kubernetes_status,
    is_problem,
    is_oauth_error,
    is_error_value,
    status_says_error,
    status_says_failed,
    is_jsend_failure,
    has_only_errors,
    has_http_error_status,
    is_documented_message,
    is_bare_detail,
    is_code_and_message,
];

/// The rules that apply to a log record; bare statuses and weak forms are read elsewhere.
const RECORD_RULES: [ShapeRule; 14] = [
    is_named_error,
    is_error_text,
    verdict_is_false,
    error_flag_is_set,
    calls_itself_an_error,
    is_kubernetes_status,
    is_problem,
    is_oauth_error,
    status_says_error,
    is_jsend_failure,
    has_only_errors,
    is_bare_detail,
    is_bare_jsonrpc_error,
    is_logged_error,
];

/// The number of bytes of a message in which the announcement of another attempt is looked for.
const MAX_NOTICE_BYTES: usize = 120;

/// The slots whose texts may explain a failure.
const TEXTS: [Slot; 6] = [Slot::Message, Slot::Error, Slot::ErrorText, Slot::Detail, Slot::Title, Slot::Body];

/// Matches `{"ok": false}`, `{"success": 0}` and `{"result": false, "code": 7, "message": "..."}`. A list of findings with a verdict is the result of a check,
/// not a failure.
fn verdict_is_false(fields: &ShapeFields<'_>) -> bool {
    let says_false = |verdict: &Json<'_>| verdict.as_bool() == Some(false);
    let result = || fields.get(Slot::Status).filter(says_false).filter(|_| fields.has(Slot::Code));
    let Some(verdict) = fields.get(Slot::Verdict).or_else(result) else { return false };
    let is_false = verdict.as_bool() == Some(false)
        || verdict.as_i64() == Some(0)
        || verdict.as_str().is_some_and(|word| matches_any(word, &["no", "0", "failed", "error"]));
    let has_error = fields.has(Slot::Error) || fields.has(Slot::Errors) || fields.has_text(&TEXTS);
    is_false && (fields.record == 0 || has_error)
}

/// Matches `{"is_error": true, "error_description": "..."}` and `{"error": true, "message": "..."}`.
fn error_flag_is_set(fields: &ShapeFields<'_>) -> bool {
    let is_true =
        |slot| fields.get(slot).is_some_and(|flag| flag.as_bool() == Some(true) || flag.as_i64() == Some(1));
    (is_true(Slot::ErrorFlag) || is_true(Slot::Error)) && (fields.has_text(&TEXTS) || fields.has(Slot::Code))
}

/// Matches `{"type": "error", "error": {...}}`, `{"object": "error", "message": "..."}` and
/// `{"__type": "...Exception"}`.
fn calls_itself_an_error(fields: &ShapeFields<'_>) -> bool {
    if !fields.has(Slot::Type) {
        return false;
    }
    let names_class = || fields.object.get("__type").is_some_and(|class| class.as_str().is_some());
    let says_error = fields.text(Slot::Type).is_some_and(|text| text.eq_ignore_ascii_case("error"))
        || fields.object.get("object").and_then(Json::as_str) == Some("error");
    (says_error || names_class()) && (fields.has(Slot::Error) || fields.has_text(&TEXTS))
}

/// Matches `{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}`.
fn is_kubernetes_status(fields: &ShapeFields<'_>) -> bool {
    fields.text(Slot::Kind) == Some("Status") && fields.text(Slot::Status) == Some("Failure")
}

/// Matches `application/problem+json`: a title and a status, or a title and a type that is a URI.
fn is_problem(fields: &ShapeFields<'_>) -> bool {
    let has_status = error_status(fields).is_some();
    let has_uri =
        fields.text(Slot::Type).is_some_and(|text| text.starts_with("http") || text.starts_with("about:"));
    let has_words = fields.has_text(&[Slot::Detail]) || fields.has(Slot::Errors);
    fields.has_text(&[Slot::Title])
        && fields.record == 0
        && (has_status && (has_words || has_uri || fields.unknown == 0) || has_uri && has_words)
}

/// Matches `{"error": "invalid_grant", "error_description": "..."}`.
fn is_oauth_error(fields: &ShapeFields<'_>) -> bool {
    fields.has_text(&[Slot::Error]) && fields.object.get("error_description").is_some()
}

/// Matches a non-empty `error` in an object that is not a record of something else.
fn is_error_value(fields: &ShapeFields<'_>) -> bool {
    const MAX_UNKNOWN: usize = 4;
    if fields.record > 0 || fields.unknown > MAX_UNKNOWN {
        return false;
    }
    // This is the state of a job that a tool looked up.
    if says_failed(fields) && fields.unknown > 1 {
        return false;
    }
    if fields.text(Slot::ErrorText).is_some_and(|text| !is_benign(text)) && fields.unknown <= 1 {
        return true;
    }
    let Some(error) = fields.get(Slot::Error) else { return false };
    match error.as_str() {
        Some(text) => !is_benign(text),
        None if error.is_object() => has_explanation(&ShapeFields::read(error)),
        None => error.items().next().is_some_and(|first| first.as_str().is_some() || first.is_object()),
    }
}

/// Matches `{"status": "error", "message": "..."}`.
fn status_says_error(fields: &ShapeFields<'_>) -> bool {
    const WORDS: [&str; 7] = ["error", "err", "fail", "failure", "denied", "unauthorized", "forbidden"];
    let is_word = fields.text(Slot::Status).is_some_and(|word| matches_any(word, &WORDS));
    let explains = fields.has(Slot::Error) || fields.has(Slot::Errors) || fields.has_text(&TEXTS);
    is_word && explains && fields.record == 0
}

/// Matches `{"status": "failed", "message": "..."}`. The state of a job looks the same, so at most one
/// unknown field is allowed.
fn status_says_failed(fields: &ShapeFields<'_>) -> bool {
    let explains = fields.has(Slot::Error) || fields.has_text(&[Slot::Message, Slot::ErrorText]);
    says_failed(fields) && explains && fields.record == 0 && fields.unknown <= 1
}

/// Reports whether the status is a word for the failed end of a job.
fn says_failed(fields: &ShapeFields<'_>) -> bool {
    const WORDS: [&str; 7] =
        ["failed", "rejected", "timeout", "timed_out", "not_found", "invalid", "unavailable"];
    fields.text(Slot::Status).is_some_and(|word| matches_any(word, &WORDS))
}

/// Matches `{"status": "fail", "data": {"field": "is required"}}`.
fn is_jsend_failure(fields: &ShapeFields<'_>) -> bool {
    fields.text(Slot::Status) == Some("fail") && fields.has(Slot::Data) && fields.unknown + fields.record == 0
}

/// Matches a list of errors without data beside it, as GraphQL, JSON:API and others return it.
fn has_only_errors(fields: &ShapeFields<'_>) -> bool {
    let Some(errors) = fields.get(Slot::Errors) else { return false };
    if fields.unknown + fields.record > 0 || fields.get(Slot::Data).is_some_and(|data| !holds_nothing(data)) {
        return false;
    }
    match errors.items().next() {
        Some(first) if first.is_object() => !is_finding(first) && has_explanation(&ShapeFields::read(first)),
        Some(first) => first.as_str().is_some(),
        // Jira and Rails key the errors by field; numbers are counts.
        None => match errors.fields().next() {
            Some((_, first)) => {
                first.as_str().is_some() || first.items().next().is_some_and(|item| item.as_str().is_some())
            }
            None => errors.as_str().is_some(),
        },
    }
}

/// Matches `{"statusCode": 500, "message": "..."}` and
/// `{"status": 404, "code": "object_not_found", "message": "..."}`.
fn has_http_error_status(fields: &ShapeFields<'_>) -> bool {
    const MAX_UNKNOWN: usize = 3;
    error_status(fields).is_some()
        && (fields.has_text(&[Slot::Message, Slot::Error, Slot::ErrorText, Slot::Detail])
            || fields.has(Slot::Error))
        && fields.record == 0
        && fields.unknown <= MAX_UNKNOWN
}

/// Matches `{"message": "Not Found", "documentation_url": "..."}`.
fn is_documented_message(fields: &ShapeFields<'_>) -> bool {
    fields.has_text(&[Slot::Message])
        && fields.has(Slot::Documentation)
        && fields.record + fields.unknown == 0
}

/// Matches `{"name": "UNPROCESSABLE_ENTITY", "message": "...", "debug_id": "..."}`.
fn is_named_error(fields: &ShapeFields<'_>) -> bool {
    let is_constant =
        |name: &str| name.contains('_') && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    fields.unknown <= 1
        && fields.record == 0
        && fields.has_text(&[Slot::Message])
        && fields.object.get("name").and_then(Json::as_str).is_some_and(is_constant)
}

/// Matches `{"errorMessage": "...", "errorDetails": {...}}`.
fn is_error_text(fields: &ShapeFields<'_>) -> bool {
    fields.text(Slot::ErrorText).is_some_and(|text| !is_benign(text))
        && fields.unknown <= 1
        && fields.record == 0
}

/// Matches `{"detail": "..."}`, `{"detail": {"error": "..."}}` and `{"detail": [{"loc": [...], "msg": "..."}]}` without
/// any other field.
fn is_bare_detail(fields: &ShapeFields<'_>) -> bool {
    if fields.count != 1 {
        return false;
    }
    let Some(detail) = fields.object.get("detail") else { return false };
    let has_message = |item: Json<'_>| item.get("msg").is_some() && item.get("loc").is_some();
    let has_error =
        || detail.is_object() && ShapeFields::read(detail).has_text(&[Slot::Error, Slot::Message]);
    detail.as_str().is_some() || detail.items().next().is_some_and(has_message) || has_error()
}

/// Matches `{"code": 10003, "message": "Unknown Channel"}` and `{"code": "AccessDenied", "message": "..."}`.
fn is_code_and_message(fields: &ShapeFields<'_>) -> bool {
    let is_error_code = match Code::read(fields.get(Slot::Code)) {
        Code::Number { value, .. } => value != 0 && !(200..400).contains(&value),
        Code::Text(code) => is_error_name(code),
        _ => false,
    };
    is_error_code
        && [Slot::Message, Slot::ErrorText]
            .into_iter()
            .any(|slot| fields.text(slot).is_some_and(|text| !is_benign(text)))
        && !fields.has(Slot::Data)
        && fields.unknown + fields.record == 0
}

/// Matches `{"code": -32603, "message": "..."}`, a JSON-RPC error without its frame.
fn is_bare_jsonrpc_error(fields: &ShapeFields<'_>) -> bool {
    let code = || Code::read(fields.object.get("code"));
    fields.has(Slot::Code)
        && fields.has_text(&[Slot::Message])
        && matches!(code(), Code::Number { value: -32768..=-32000, .. })
}

/// Matches `{"level": "error", "msg": "tool call failed", "tool": "x", "err": "denied"}`.
fn is_logged_error(fields: &ShapeFields<'_>) -> bool {
    const TOOL_KEYS: [&str; 5] = ["tool", "tool_name", "toolName", "ToolName", "mcp.tool.name"];
    const LEVEL_KEYS: [&str; 6] = ["level", "severity", "lvl", "levelname", "@l", "at"];
    const LEVELS: [&str; 5] = ["error", "fatal", "critical", "err", "severe"];
    const PINO_ERROR: i64 = 50;
    if !fields.has(Slot::Error) && !fields.has(Slot::Message) {
        return false;
    }
    let level = LEVEL_KEYS.iter().find_map(|key| fields.object.get(key)).unwrap_or(Json::NULL);
    let is_error = level.as_str().is_some_and(|level| matches_any(level, &LEVELS))
        || level.as_i64().is_some_and(|level| level >= PINO_ERROR);
    let names_tool =
        || TOOL_KEYS.iter().any(|key| fields.object.get(key).is_some_and(|tool| tool.as_str().is_some()));
    is_error && (fields.has(Slot::Error) || fields.has_text(&[Slot::Message]) && names_tool())
}

/// Reports whether a field can be shown as the reason of a failure.
fn has_explanation(fields: &ShapeFields<'_>) -> bool {
    const REASONS: [Slot; 5] = [Slot::Message, Slot::Error, Slot::ErrorText, Slot::Detail, Slot::Title];
    fields.has_text(&REASONS)
        || fields.has(Slot::Errors)
        || fields.get(Slot::Error).is_some_and(|error| error.is_object() || error.is_array())
        || fields.get(Slot::Detail).is_some_and(Json::is_array)
        || fields.get(Slot::Code).is_some_and(|code| code.as_str().is_some_and(is_error_name))
}

/// Matches `{"ok": true}` and `{"status": "completed"}`: the request succeeded, whatever the other fields
/// are.
fn says_success(fields: &ShapeFields<'_>) -> bool {
    const WORDS: [&str; 11] = [
        "ok",
        "success",
        "succeeded",
        "complete",
        "completed",
        "done",
        "passed",
        "healthy",
        "active",
        "running",
        "approved",
    ];
    fields.get(Slot::Verdict).and_then(Json::as_bool) == Some(true)
        || fields.text(Slot::Status).is_some_and(|word| matches_any(word, &WORDS))
        || fields.get(Slot::Status).and_then(http_status).is_some_and(|status| status < 400)
}

/// Reports whether a log record has a harmless level: trace, debug or info.
fn is_harmless(record: Json<'_>) -> bool {
    let level = record.get("level").or_else(|| record.get("severity")).and_then(Json::as_str);
    level.is_some_and(|level| matches_any(level, &["trace", "debug", "info"]))
}

/// Reports whether a log record announces another attempt, so that its error is not the outcome of a call.
pub(super) fn announces_retry(record: Json<'_>) -> bool {
    const NOTICES: [&str; 5] = ["reconnecting", "retrying", "will retry", "retry in ", "trying again"];
    // `None` if it cannot be built, which a test rules out.
    static FINDER: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(NOTICES).ok());
    let message = ["message", "msg"].iter().find_map(|key| record.get(key)?.as_str()).unwrap_or_default();
    let finder = FINDER.as_ref();
    finder.is_some_and(|finder| finder.is_match(crate::limits::truncate_str(message, MAX_NOTICE_BYTES)))
}

/// Reports whether an item is an entry of a report: it has a location in a file, or its own severity.
fn is_finding(item: Json<'_>) -> bool {
    const KEYS: [&str; 11] = [
        "line", "column", "file", "filename", "filePath", "severity", "rule", "ruleId", "level", "range",
        "start",
    ];
    item.fields().any(|(key, value)| KEYS.contains(&key) && !value.is_null())
}

/// Reports whether a value is `null` or an object with only `null` fields, which GraphQL returns when nothing
/// could be resolved.
fn holds_nothing(data: Json<'_>) -> bool {
    data.is_null() || data.is_object() && data.fields().all(|(_, value)| value.is_null())
}

/// Returns the HTTP status of a failure, if a field holds one.
fn error_status(fields: &ShapeFields<'_>) -> Option<u16> {
    [Slot::HttpStatus, Slot::Status, Slot::Code]
        .into_iter()
        .filter_map(|slot| fields.get(slot).and_then(http_status))
        .find(|status| (400..600).contains(status))
}

/// Reports whether a text is one that APIs put under `error` when nothing went wrong.
fn is_benign(text: &str) -> bool {
    const WORDS: [&str; 11] =
        ["none", "null", "nil", "no", "false", "0", "ok", "success", "n/a", "no error", "undefined"];
    matches_any(text, &WORDS)
}

/// Reports whether a code is the name of an error: `object_not_found`, `AccessDenied`, `ENOENT`.
fn is_error_name(code: &str) -> bool {
    const MAX_LENGTH: usize = 96;
    let is_slug =
        is_slug(code) && code.len() <= MAX_LENGTH && code.bytes().any(|byte| byte.is_ascii_alphabetic());
    const MIN_WORD: usize = 5;
    let is_word = code.len() >= MIN_WORD && code.bytes().filter(u8::is_ascii_uppercase).count() > 1;
    let has_words = code.contains('_') || is_word;
    is_slug && has_words && !is_benign(code)
}

fn is_slug(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/'))
}

fn matches_any(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| word.trim().eq_ignore_ascii_case(other))
}
