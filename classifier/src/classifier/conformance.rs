//! Conformance checks: they derive the findings that tell the authors of a server how to improve an error.

use super::event_builder::Message;
use crate::category::Category;
use crate::code::Code;
use crate::dialect::Dialect;
use crate::envelope::Failure;
use crate::event::EventKind;
use crate::findings::{Finding, Findings, blames_caller};
use crate::lookup::Classification;
use crate::registry::Entry;
use std::borrow::Cow;

/// The codes that MCP reserves.
const RESERVED_CODES: std::ops::RangeInclusive<i64> = -32099..=-32020;
/// The reserved codes that MCP has assigned.
const ASSIGNED_CODES: [i64; 4] = [-32020, -32021, -32022, -32042];

/// Returns the findings that follow from a failure and its classification.
pub(super) fn check(
    failure: &Failure<'_>,
    classification: &Classification<'_>,
    message: &Message<'_>,
) -> Findings {
    let mut findings = Findings::default();
    let text = message.text.as_deref();
    let has_code = !failure.code.is_absent();
    findings.insert_if(Finding::StringError, failure.is_string_error);
    findings.insert_if(Finding::UnregisteredCode, has_code && !classification.registered);
    // A code of the dialect's own registry has the right format, so only other codes are checked.
    let is_dialect_code = classification.entry.is_some_and(|entry| entry.dialect == classification.dialect);
    let has_bad_format = !has_good_format(failure, classification.dialect, is_dialect_code);
    let has_reply = !failure.is_from_telemetry;
    findings.insert_if(Finding::BadCodeFormat, has_reply && !failure.is_string_error && has_bad_format);
    findings.insert_if(
        Finding::MissingMessage,
        has_reply && text.is_none() && failure.shape_dialect != Dialect::Http,
    );
    findings.insert_if(Finding::ReservedCode, is_reserved(failure.code));
    findings.insert_if(Finding::SecretInMessage, matches!(message.text, Some(Cow::Owned(_))));
    findings.insert_if(Finding::LeakyMessage, message.leaks.path || message.leaks.internals);
    findings.insert_if(
        Finding::InternalForCallerMistake,
        (classification.meaning.category == Category::Internal || classification.overrules_internal)
            && text.is_some_and(blames_caller),
    );
    findings.insert_if(
        Finding::WarningInError,
        failure.kind == EventKind::Error && classification.canonical.ends_with("_WARNING"),
    );
    if let Some(entry) = classification.entry.filter(|_| has_reply) {
        findings.insert_if(Finding::MissingDetails, lacks_details(entry, failure));
        findings.insert_if(
            Finding::TemplateMismatch,
            text.is_some_and(|text| entry.message.as_ref().is_some_and(|template| !template.fits(text))),
        );
    }
    findings
}

fn lacks_details(entry: &Entry, failure: &Failure<'_>) -> bool {
    entry.required_details().any(|key| failure.details.is_none_or(|details| details.present(key).is_none()))
}

fn is_reserved(code: Code<'_>) -> bool {
    matches!(code, Code::Number { value, .. } if RESERVED_CODES.contains(&value) && !ASSIGNED_CODES.contains(&value))
}

/// Returns true if the code has the format that its dialect requires. It is also true where no code is expected, as in
/// a tool error or an HTTP status.
fn has_good_format(failure: &Failure<'_>, dialect: Dialect, is_dialect_code: bool) -> bool {
    match (failure.code, dialect) {
        (Code::Text(_), _) if is_dialect_code => true,
        (Code::ToolError, _) | (_, Dialect::Http) => true,
        _ if failure.shape_dialect == Dialect::Http => true,
        (Code::Missing | Code::Unusable, _) => false,
        (Code::Number { quoted, .. }, Dialect::Jsonrpc | Dialect::Erlmcp | Dialect::McpReference) => !quoted,
        (Code::Text(_), Dialect::Jsonrpc | Dialect::Erlmcp | Dialect::McpReference) => false,
        (Code::Number { .. }, Dialect::McpAql | Dialect::AgentSkills) => false,
        (Code::Text(code), Dialect::McpAql) => {
            is_snake_words(code, u8::is_ascii_uppercase) && code.contains('_')
        }
        (Code::Text(code), Dialect::AgentSkills) => is_snake_words(code, u8::is_ascii_lowercase),
        (_, Dialect::Unknown) => true,
    }
}

/// Returns true for words of digits and of letters of one case that are joined by single underscores.
fn is_snake_words(code: &str, is_letter: fn(&u8) -> bool) -> bool {
    code.split('_')
        .all(|word| !word.is_empty() && word.bytes().all(|byte| is_letter(&byte) || byte.is_ascii_digit()))
}
