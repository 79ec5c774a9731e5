//! Conformance: what the server could do better about this error.

use super::build::Message;
use crate::category::Category;
use crate::classify::Verdict;
use crate::code::Code;
use crate::dialect::Dialect;
use crate::envelope::Failure;
use crate::event::Kind;
use crate::findings::{Finding, Findings, blames_caller};
use crate::registry::Entry;
use std::borrow::Cow;

/// The numbers that MCP keeps for itself.
const RESERVED: std::ops::RangeInclusive<i64> = -32099..=-32020;
/// Those of them that it has assigned.
const ASSIGNED: [i64; 4] = [-32020, -32021, -32022, -32042];

/// The findings that follow from the failure and its verdict.
pub(super) fn findings(failure: &Failure<'_>, verdict: &Verdict<'_>, message: &Message<'_>) -> Findings {
    let mut findings = Findings::default();
    let text = message.text.as_deref();
    let has_code = !failure.code.is_absent();
    findings.note(Finding::StringError, failure.is_text);
    findings.note(Finding::UnregisteredCode, has_code && !verdict.registered);
    // A code of the dialect's own registry has its form; only others need a look.
    let is_own = verdict.entry.is_some_and(|entry| entry.dialect == verdict.dialect);
    let is_odd = !has_good_format(failure, verdict.dialect, is_own);
    let has_form = !failure.is_hearsay;
    findings.note(Finding::BadCodeFormat, has_form && !failure.is_text && is_odd);
    findings.note(Finding::MissingMessage, has_form && text.is_none() && failure.shape != Dialect::Http);
    findings.note(Finding::ReservedCode, is_reserved(failure.code));
    findings.note(Finding::SecretInMessage, matches!(message.text, Some(Cow::Owned(_))));
    findings.note(Finding::LeakyMessage, message.noticed.path || message.noticed.internals);
    findings.note(
        Finding::InternalForCallerMistake,
        verdict.meaning.category == Category::Internal && text.is_some_and(blames_caller),
    );
    findings.note(
        Finding::WarningInError,
        failure.kind == Kind::Error && verdict.canonical.ends_with("_WARNING"),
    );
    if let Some(entry) = verdict.entry.filter(|_| has_form) {
        findings.note(Finding::MissingDetails, lacks_details(entry, failure));
        findings.note(
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
    matches!(code, Code::Number { value, .. } if RESERVED.contains(&value) && !ASSIGNED.contains(&value))
}

/// Whether the code has the form that its dialect asks for. Where no code belongs, none is missing.
fn has_good_format(failure: &Failure<'_>, dialect: Dialect, is_own: bool) -> bool {
    match (failure.code, dialect) {
        (Code::Text(_), _) if is_own => true,
        (Code::ToolError, _) | (_, Dialect::Http) => true,
        _ if failure.shape == Dialect::Http => true,
        (Code::Missing | Code::Unusable, _) => false,
        (Code::Number { quoted, .. }, Dialect::Jsonrpc | Dialect::Erlmcp | Dialect::McpReference) => !quoted,
        (Code::Text(_), Dialect::Jsonrpc | Dialect::Erlmcp | Dialect::McpReference) => false,
        (Code::Number { .. }, Dialect::McpAql | Dialect::AgentSkills) => false,
        (Code::Text(code), Dialect::McpAql) => is_words(code, u8::is_ascii_uppercase) && code.contains('_'),
        (Code::Text(code), Dialect::AgentSkills) => is_words(code, u8::is_ascii_lowercase),
        (_, Dialect::Unknown) => true,
    }
}

/// Letters of one case and digits, in words joined by single underscores.
fn is_words(code: &str, is_letter: fn(&u8) -> bool) -> bool {
    code.split('_')
        .all(|word| !word.is_empty() && word.bytes().all(|byte| is_letter(&byte) || byte.is_ascii_digit()))
}
