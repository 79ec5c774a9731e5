//! Looks up the dialect and the meaning of a failure. The first of these steps that gives a result wins:
//!
//! 1. the operator's own entries
//! 2. exact entries
//! 3. an explicit category in the payload
//! 4. ranges, or the longest prefix
//! 5. evidence: the words of the message, of the code and of the exception, and HTTP statuses
//! 6. unknown
//!
//! Step 5 is a guess, and marked `inferred`. A code that only states that something failed yields to strong evidence.
//! Any other registered code does not, so no text is read for it. A number that only one project registers is
//! attributed to that project only if something else in the payload supports it. The lookup is followed by the
//! corrections that real emitters need, which are data as well.

mod by_code;
mod exact;
mod operator;

pub use by_code::LookupResult;

use crate::category::Category;
use crate::code::Code;
use crate::dialect::Dialect;
use crate::evidence::{self, Evidence, Scores, Strength};
use crate::fault::Fault;
use crate::json::Json;
use crate::registry::{Entry, Meaning, Registry, Roots};
use std::borrow::Cow;

/// The facts about a failure that its lookup is based on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookupInput<'s> {
    /// The dialect that the record or a profile declares, which is certain.
    pub(crate) declared_dialect: Option<Dialect>,
    /// The dialect that the shape of the envelope suggests.
    pub(crate) shape_dialect: Dialect,
    pub(crate) code: Code<'s>,
    pub(crate) message: Option<&'s str>,
    /// The canonical code of another protocol's status.
    pub(crate) canonical: Option<&'static str>,
    /// The category that the payload itself names.
    pub(crate) category: Option<&'s str>,
    pub(crate) details: Option<Json<'s>>,
    /// The class of the exception that caused the failure.
    pub(crate) type_name: Option<&'s str>,
    pub(crate) http_status: Option<u16>,
    pub(crate) service: Option<&'s str>,
    /// The values in which an operator's conditions are evaluated.
    pub(crate) roots: Roots<'s, 's>,
}

impl<'s> LookupInput<'s> {
    /// Returns an input of which nothing but a dialect and a code is known.
    pub(crate) fn new(shape_dialect: Dialect, code: Code<'s>) -> Self {
        Self {
            declared_dialect: None,
            shape_dialect,
            code,
            message: None,
            canonical: None,
            category: None,
            details: None,
            type_name: None,
            http_status: None,
            service: None,
            roots: &[Json::NULL; 3],
        }
    }
}

/// The result of a lookup.
#[derive(Debug, Clone)]
pub(crate) struct Classification<'r> {
    pub(crate) dialect: Dialect,
    pub(crate) canonical: Cow<'r, str>,
    pub(crate) meaning: Meaning,
    /// The exact entry, if there is one and no correction overruled it.
    pub(crate) entry: Option<&'r Entry>,
    /// True if the code is in a registry, whatever meaning was chosen.
    pub(crate) registered: bool,
    pub(crate) inferred: bool,
    /// The party at fault: from the wording if it tells, otherwise from the canonical code.
    pub(crate) fault: Option<Fault>,
    /// True if the code by itself is an internal error, but the wording decided otherwise.
    pub(crate) overrules_internal: bool,
}

/// Numbers for which MCP states that receivers must not assume a meaning.
const SERVER_ERRORS: std::ops::RangeInclusive<i64> = -32099..=-32000;

/// Looks up a failure.
pub(crate) fn resolve<'r>(registry: &'r Registry, input: &LookupInput<'_>) -> Classification<'r> {
    if let Some(entry) = operator::find(registry, input) {
        return from_entry(entry, input.declared_dialect.unwrap_or(input.shape_dialect), false);
    }
    if let Some(canonical) = input.canonical {
        return from_protocol_status(registry, input, canonical);
    }
    match exact::find(registry, input) {
        exact::Match::One(entry) => {
            let by_code = apply_corrections(registry, input, entry);
            if is_generic(entry, input) { by_words_or(registry, input, entry, by_code) } else { by_code }
        }
        exact::Match::Unsupported => {
            let dialect = input.declared_dialect.unwrap_or(Dialect::Jsonrpc);
            let words = infer(registry, input, dialect);
            Classification { registered: true, ..words }
        }
        exact::Match::None => resolve_unregistered(registry, input),
    }
}

fn from_entry(entry: &Entry, dialect: Dialect, inferred: bool) -> Classification<'_> {
    Classification {
        dialect,
        canonical: Cow::Borrowed(&entry.canonical),
        meaning: entry.meaning,
        entry: Some(entry),
        registered: true,
        inferred,
        fault: entry.meaning.fault,
        overrules_internal: false,
    }
}

/// Returns true if the code only states that something failed. This includes a server-defined number, unless its name
/// occurs in the message.
fn is_generic(entry: &Entry, input: &LookupInput<'_>) -> bool {
    entry.generic || {
        let is_server_error =
            matches!(input.code, Code::Number { value, .. } if SERVER_ERRORS.contains(&value));
        is_server_error && input.declared_dialect.is_none() && !exact::matches_words(entry, input)
    }
}

/// Returns the meaning of the wording if it is strong evidence, otherwise the meaning of the code.
fn by_words_or<'r>(
    registry: &'r Registry,
    input: &LookupInput<'_>,
    entry: &Entry,
    by_code: Classification<'r>,
) -> Classification<'r> {
    // The message states only the code's own name, or the correction has examined the wording already.
    let says_own_name = entry.message.as_ref().is_some_and(|template| {
        input.message.is_none_or(|message| message.eq_ignore_ascii_case(template.text()))
    });
    if says_own_name && error_status(input).is_none() || is_corrected_by_words(entry, &by_code) {
        return by_code;
    }
    let words = LookupInput { code: Code::Missing, type_name: None, ..*input };
    let Some(evidence) = gather(registry, &words) else { return by_code };
    let Some(canonical) = evidence.canonical else { return by_code };
    let fault = evidence.fault.or(by_code.fault);
    // A text code is chosen with more care than a number, so it takes stronger evidence to overrule it.
    let needed = if matches!(input.code, Code::Text(_)) { Strength::Decisive } else { Strength::Strong };
    let category = by_code.meaning.category;
    if evidence.strength < needed {
        return by_code;
    }
    if evidence.category == category && (category != Category::Internal || canonical == by_code.canonical) {
        return Classification { fault, ..by_code };
    }
    // If the code was corrected already, that was because of the same words.
    if by_code.entry.is_none() && evidence.category == category {
        return by_code;
    }
    let meaning = registry.meaning(canonical);
    Classification {
        canonical: Cow::Borrowed(canonical),
        meaning,
        entry: None,
        inferred: true,
        fault: evidence.fault.or(meaning.fault),
        overrules_internal: entry.meaning.category == Category::Internal,
        ..by_code
    }
}

/// Returns the meaning of another protocol's status. If that is "unknown", the wording is used instead.
fn from_protocol_status<'r>(
    registry: &'r Registry,
    input: &LookupInput<'_>,
    canonical: &'static str,
) -> Classification<'r> {
    let inferred_code = infer(
        registry,
        &LookupInput { code: Code::Missing, ..*input },
        input.declared_dialect.unwrap_or(input.shape_dialect),
    );
    let meaning = registry.meaning(canonical);
    if meaning.category == Category::Unknown {
        return Classification { registered: true, ..inferred_code };
    }
    Classification {
        canonical: Cow::Borrowed(canonical),
        meaning,
        fault: meaning.fault,
        registered: true,
        inferred: true,
        ..inferred_code
    }
}

/// Returns the dialect of a failure with an exact entry. A shape that belongs to one dialect takes precedence.
fn dialect_of(entry: &Entry, input: &LookupInput<'_>) -> Dialect {
    match input.declared_dialect.unwrap_or(input.shape_dialect) {
        Dialect::Jsonrpc | Dialect::Http | Dialect::Unknown if input.declared_dialect.is_none() => {
            entry.dialect
        }
        certain => certain,
    }
}

/// Returns true if a correction that requires words in the message was applied.
fn is_corrected_by_words(entry: &Entry, by_code: &Classification<'_>) -> bool {
    let asks_words = |correction: &crate::registry::Correction| {
        correction.message.is_some() && by_code.canonical == correction.canonical.as_str()
    };
    by_code.entry.is_none() && entry.corrections.iter().any(asks_words)
}

fn apply_corrections<'r>(
    registry: &'r Registry,
    input: &LookupInput<'_>,
    entry: &'r Entry,
) -> Classification<'r> {
    let classification = from_entry(entry, dialect_of(entry, input), false);
    let applies = |correction: &&crate::registry::Correction| {
        let status = correction.http_status.is_none_or(|status| input.http_status == Some(status));
        let words = correction.message.as_deref().is_none_or(|words| {
            input.message.is_some_and(|message| message.to_ascii_lowercase().contains(words))
        });
        let data = correction
            .data
            .as_deref()
            .is_none_or(|key| input.details.is_some_and(|details| details.present(key).is_some()));
        status && words && data
    };
    match entry.corrections.iter().find(applies) {
        None => classification,
        Some(correction) => {
            let meaning = registry.meaning(&correction.canonical);
            Classification {
                canonical: Cow::Borrowed(&correction.canonical),
                meaning,
                entry: None,
                fault: meaning.fault,
                ..classification
            }
        }
    }
}

/// Steps 3 to 6, for a code that has no entry.
fn resolve_unregistered<'r>(registry: &'r Registry, input: &LookupInput<'_>) -> Classification<'r> {
    let dialect = input.declared_dialect.unwrap_or(input.shape_dialect);
    if let Some(category) = payload_category(input) {
        return from_category(registry, dialect, category, input.code);
    }
    match input.code {
        Code::Text(code) => {
            if let Some(category) = registry.prefix(code) {
                return from_category(registry, dialect, category, input.code);
            }
        }
        Code::Number { value, .. } => {
            if let Some((range_dialect, category)) = find_range(registry, input, value) {
                return Classification {
                    canonical: Cow::Owned(format!("{category}_UNREGISTERED")),
                    ..from_category(registry, range_dialect, category, Code::Missing)
                };
            }
        }
        _ => {}
    }
    infer(registry, input, dialect)
}

/// Step 3: the payload states its own category.
fn payload_category(input: &LookupInput<'_>) -> Option<Category> {
    input.category.and_then(Category::from_payload)
}

/// Step 4 for numbers: uses the ranges of the dialect if it is certain, otherwise those of JSON-RPC itself, because a
/// number of an unknown dialect has no meaning. A range whose category is "unknown" is ignored.
fn find_range(registry: &Registry, input: &LookupInput<'_>, number: i64) -> Option<(Dialect, Category)> {
    let dialect = match input.declared_dialect.unwrap_or(input.shape_dialect) {
        dialect @ (Dialect::McpReference | Dialect::Erlmcp) => dialect,
        dialect if input.declared_dialect.is_some() => dialect,
        _ => Dialect::Jsonrpc,
    };
    let range = registry.range(Some(dialect), number)?;
    let dialect = match input.shape_dialect {
        Dialect::Jsonrpc | Dialect::Unknown if input.declared_dialect.is_none() => range.dialect,
        shape_dialect => input.declared_dialect.unwrap_or(shape_dialect),
    };
    (range.category != Category::Unknown).then_some((dialect, range.category))
}

fn from_category<'r>(
    registry: &'r Registry,
    dialect: Dialect,
    category: Category,
    code: Code<'_>,
) -> Classification<'r> {
    let canonical = match code {
        Code::Text(code) => canonical_name(category, code),
        _ => format!("{category}_UNREGISTERED"),
    };
    let meaning = registry.defaults(category);
    let fault = registry.fault(&canonical).or(meaning.fault);
    Classification {
        dialect,
        meaning,
        canonical: Cow::Owned(canonical),
        entry: None,
        registered: false,
        inferred: false,
        fault,
        overrules_internal: false,
    }
}

/// Collects the evidence of the message, the code, the exception class and the statuses.
fn gather<'r, 't>(registry: &'r Registry, input: &LookupInput<'t>) -> Option<Evidence<'r, 't>> {
    let mut scores = Scores::new(registry.evidence());
    let message = input.message.map_or(evidence::NO_MESSAGE, |message| scores.add_message(message));
    if let Code::Text(code) = input.code {
        scores.add_name(code);
    }
    if let Some(name) = input.type_name {
        scores.add_name(name);
    }
    if let Some((status, canonical)) =
        error_status(input).and_then(|status| Some((status, registry.status(status)?)))
    {
        scores.add_status(status, canonical, registry.category(canonical));
    }
    scores.finish(message)
}

/// Steps 5 and 6: guesses the meaning from the wording and the statuses. A JSON-RPC code in the text is looked up like
/// one that was sent.
fn infer<'r>(registry: &'r Registry, input: &LookupInput<'_>, dialect: Dialect) -> Classification<'r> {
    let is_silent =
        input.message.is_none() && input.type_name.is_none() && !matches!(input.code, Code::Text(_));
    let evidence = if is_silent { None } else { gather(registry, input) };
    let by_status =
        || error_status(input).and_then(|status| registry.status(status)).map(|canonical| (canonical, None));
    let embedded = evidence.and_then(|evidence| evidence.code).filter(|_| input.code.is_absent());
    if let Some(value) = embedded {
        let code = Code::Number { value, quoted: true };
        let message = evidence.map(|evidence| evidence.message).filter(|message| !message.is_empty());
        let inner =
            resolve(registry, &LookupInput { code, message, shape_dialect: Dialect::Jsonrpc, ..*input });
        if inner.meaning.category != Category::Unknown {
            return Classification { dialect, entry: None, registered: true, inferred: true, ..inner };
        }
    }
    let said = evidence.and_then(|evidence| Some((evidence.canonical?, evidence.fault)));
    let known = said.or_else(|| if is_silent { by_status() } else { None });
    let canonical = known.map_or(
        match input.code {
            Code::ToolError => "UNKNOWN_TOOL_ERROR",
            Code::Text(_) | Code::Number { .. } => "UNKNOWN_UNREGISTERED",
            Code::Missing | Code::Unusable => "UNKNOWN_ERROR",
        },
        |(canonical, _)| canonical,
    );
    let meaning = registry.meaning(canonical);
    Classification {
        dialect,
        meaning,
        canonical: Cow::Borrowed(canonical),
        entry: None,
        registered: input.code == Code::ToolError,
        inferred: known.is_some(),
        fault: known.and_then(|(_, fault)| fault).or(meaning.fault),
        overrules_internal: false,
    }
}

/// Returns the HTTP status of a failure. Some servers send it as the code.
fn error_status(input: &LookupInput<'_>) -> Option<u16> {
    let as_code = match input.code {
        Code::Number { value, .. } => u16::try_from(value).ok(),
        _ => None,
    };
    input.http_status.or(as_code).filter(|status| (400..600).contains(status))
}

/// Returns the canonical name of a code that is not registered: the code itself if it starts with its category,
/// otherwise with the category in front. Only capitals, digits and `_` are kept, because the name becomes a label.
pub(crate) fn canonical_name(category: Category, code: &str) -> String {
    const MAX_CODE_CHARS: usize = 96;
    let name: String = code
        .chars()
        .take(MAX_CODE_CHARS)
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    let prefix = category.as_str();
    if name == prefix {
        return format!("{prefix}_UNREGISTERED");
    }
    match name.strip_prefix(prefix) {
        Some(rest) if rest.starts_with('_') => name,
        _ => format!("{prefix}_{name}"),
    }
}

#[cfg(test)]
mod tests;
