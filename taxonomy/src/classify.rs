//! Which dialect, which meaning: one lookup, the first step that answers.
//!
//! 1. the operator's own entries
//! 2. exact entries
//! 3. an explicit category in the payload
//! 4. ranges, or the longest prefix
//! 5. an HTTP status
//! 6. phrases of the message
//! 7. unknown
//!
//! Steps 5 and 6 are guesses, and marked `inferred`. Exact entries of any dialect come before ranges of
//! any dialect. After the lookup come the corrections that real emitters need; they are data, too.

mod bare;
mod exact;
mod operator;

pub use bare::LookedUp;

use crate::category::Category;
use crate::code::Code;
use crate::dialect::Dialect;
use crate::json::Json;
use crate::registry::{Entry, Meaning, Registry, Roots};
use std::borrow::Cow;

/// What is known about a failure before it is looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'s> {
    /// Named by the record or by a profile: certain.
    pub(crate) named: Option<Dialect>,
    /// What the shape of the envelope shows.
    pub(crate) shape: Dialect,
    pub(crate) code: Code<'s>,
    pub(crate) message: Option<&'s str>,
    /// What the status of another protocol stands for.
    pub(crate) canonical: Option<&'static str>,
    /// The category that the payload itself names.
    pub(crate) category: Option<&'s str>,
    pub(crate) details: Option<Json<'s>>,
    /// The class of the exception behind it.
    pub(crate) type_name: Option<&'s str>,
    pub(crate) http_status: Option<u16>,
    pub(crate) service: Option<&'s str>,
    /// Where an operator's conditions look.
    pub(crate) roots: Roots<'s, 's>,
}

/// What the lookup says.
#[derive(Debug, Clone)]
pub(crate) struct Verdict<'r> {
    pub(crate) dialect: Dialect,
    pub(crate) canonical: Cow<'r, str>,
    pub(crate) meaning: Meaning,
    /// The exact entry, when there is one and no correction overruled it.
    pub(crate) entry: Option<&'r Entry>,
    /// True when the code is in a registry, whatever it was taken to mean.
    pub(crate) registered: bool,
    pub(crate) inferred: bool,
}

/// Numbers for which MCP says that receivers must not assume a meaning.
const SERVER_ERRORS: std::ops::RangeInclusive<i64> = -32099..=-32000;

/// Looks a failure up.
pub(crate) fn classify<'r>(registry: &'r Registry, subject: &Subject<'_>) -> Verdict<'r> {
    if let Some(entry) = operator::find(registry, subject) {
        return of_entry(entry, subject.named.unwrap_or(subject.shape), false);
    }
    if let Some(canonical) = subject.canonical {
        return of_protocol(registry, subject, canonical);
    }
    match exact::find(registry, subject) {
        exact::Match::One { entry, inferred } => corrected(registry, subject, entry, inferred),
        exact::Match::Ambiguous => Verdict { registered: true, ..guess(registry, subject, Dialect::Jsonrpc) },
        exact::Match::None => unregistered(registry, subject),
    }
}

fn of_entry(entry: &Entry, dialect: Dialect, inferred: bool) -> Verdict<'_> {
    Verdict {
        dialect,
        canonical: Cow::Borrowed(&entry.canonical),
        meaning: entry.meaning,
        entry: Some(entry),
        registered: true,
        inferred,
    }
}

/// What another protocol's status stands for; where that says "unknown", the words know more.
fn of_protocol<'r>(registry: &'r Registry, subject: &Subject<'_>, canonical: &'static str) -> Verdict<'r> {
    let guessed =
        guess(registry, &Subject { code: Code::Missing, ..*subject }, subject.named.unwrap_or(subject.shape));
    let meaning = registry.meaning(canonical);
    if meaning.category == Category::Unknown {
        return Verdict { registered: true, ..guessed };
    }
    Verdict { canonical: Cow::Borrowed(canonical), meaning, registered: true, inferred: true, ..guessed }
}

/// The dialect of a failure whose exact entry is known: a shape that belongs to one dialect keeps it.
fn dialect_of(entry: &Entry, subject: &Subject<'_>) -> Dialect {
    match subject.named.unwrap_or(subject.shape) {
        Dialect::Jsonrpc | Dialect::Http | Dialect::Unknown if subject.named.is_none() => entry.dialect,
        certain => certain,
    }
}

fn corrected<'r>(
    registry: &'r Registry,
    subject: &Subject<'_>,
    entry: &'r Entry,
    inferred: bool,
) -> Verdict<'r> {
    let verdict = of_entry(entry, dialect_of(entry, subject), inferred);
    let applies = |correction: &&crate::registry::Correction| {
        let status = correction.http_status.is_none_or(|status| subject.http_status == Some(status));
        let words = correction.message.as_deref().is_none_or(|words| {
            subject.message.is_some_and(|message| message.to_ascii_lowercase().contains(words))
        });
        status && words
    };
    match entry.corrections.iter().find(applies) {
        None => verdict,
        Some(correction) => Verdict {
            canonical: Cow::Borrowed(&correction.canonical),
            meaning: registry.meaning(&correction.canonical),
            entry: None,
            ..verdict
        },
    }
}

/// Steps 3 to 7, for a code that has no entry.
fn unregistered<'r>(registry: &'r Registry, subject: &Subject<'_>) -> Verdict<'r> {
    let dialect = subject.named.unwrap_or(subject.shape);
    if let Some(category) = stated_category(subject) {
        return of_category(registry, dialect, category, subject.code);
    }
    match subject.code {
        Code::Text(code) => {
            if let Some(category) = registry.prefix(code) {
                return of_category(registry, dialect, category, subject.code);
            }
        }
        Code::Number { value, .. } => {
            if let Some((range_dialect, category)) = range(registry, subject, value) {
                return Verdict {
                    canonical: Cow::Owned(format!("{category}_UNREGISTERED")),
                    ..of_category(registry, range_dialect, category, Code::Missing)
                };
            }
        }
        _ => {}
    }
    guess(registry, subject, dialect)
}

/// Step 3: the payload says what it is.
fn stated_category(subject: &Subject<'_>) -> Option<Category> {
    subject.category.and_then(Category::from_payload)
}

/// Step 4 for numbers: the ranges of the dialect that is certain, else the narrowest of any. A range that
/// only says "unknown" is no answer.
fn range(registry: &Registry, subject: &Subject<'_>, number: i64) -> Option<(Dialect, Category)> {
    let certain = match subject.named.unwrap_or(subject.shape) {
        dialect @ (Dialect::McpReference | Dialect::Erlmcp) => Some(dialect),
        dialect if subject.named.is_some() => Some(dialect),
        _ if SERVER_ERRORS.contains(&number) => Some(Dialect::Jsonrpc),
        _ => None,
    };
    let range = registry.range(certain, number).or_else(|| {
        let free = subject.named.is_none() && !SERVER_ERRORS.contains(&number);
        free.then(|| registry.range(None, number)).flatten()
    })?;
    let dialect = match subject.shape {
        Dialect::Jsonrpc | Dialect::Unknown if subject.named.is_none() => range.dialect,
        shape => subject.named.unwrap_or(shape),
    };
    (range.category != Category::Unknown).then_some((dialect, range.category))
}

fn of_category<'r>(
    registry: &'r Registry,
    dialect: Dialect,
    category: Category,
    code: Code<'_>,
) -> Verdict<'r> {
    let canonical = match code {
        Code::Text(code) => canonical_name(category, code),
        _ => format!("{category}_UNREGISTERED"),
    };
    Verdict {
        dialect,
        meaning: registry.defaults(category),
        canonical: Cow::Owned(canonical),
        entry: None,
        registered: false,
        inferred: false,
    }
}

/// Steps 5 to 7: what a status or the words let us guess. The words of a code or of a type are the last clue:
/// `rate_limit_exceeded` says what it is, though nobody registered it.
fn guess<'r>(registry: &'r Registry, subject: &Subject<'_>, dialect: Dialect) -> Verdict<'r> {
    let code = match subject.code {
        Code::Text(code) => Some(code),
        _ => None,
    };
    let by_status = status(subject).and_then(|status| registry.status(status));
    let by_message = || subject.message.and_then(|message| registry.phrase(message));
    let by_name = |name: &str| registry.phrase(&name.replace(['_', '-', '.'], " "));
    let by_class = |name: &str| registry.phrase(&class_words(name));
    let by_names = || code.and_then(by_name).or_else(|| subject.type_name.and_then(by_class));
    let guessed = by_status.or_else(by_message).or_else(by_names);
    let canonical = guessed.unwrap_or(match subject.code {
        Code::ToolError => "UNKNOWN_TOOL_ERROR",
        Code::Text(_) | Code::Number { .. } => "UNKNOWN_UNREGISTERED",
        Code::Missing | Code::Unusable => "UNKNOWN_ERROR",
    });
    Verdict {
        dialect,
        meaning: registry.meaning(canonical),
        canonical: registry.canonical_entry(canonical).map_or_else(
            || Cow::Owned(canonical.to_owned()),
            |entry| Cow::Borrowed(entry.canonical.as_str()),
        ),
        entry: None,
        registered: subject.code == Code::ToolError,
        inferred: guessed.is_some(),
    }
}

/// The words of a class: `FileNotFoundError` says "file not found".
fn class_words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut after_small = false;
    for c in name.chars() {
        if after_small && c.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(if matches!(c, '_' | '-' | '.') { ' ' } else { c });
        after_small = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    words
}

/// The status of a failure; some servers send it as the code.
fn status(subject: &Subject<'_>) -> Option<u16> {
    let as_code = match subject.code {
        Code::Number { value, .. } => u16::try_from(value).ok(),
        _ => None,
    };
    subject.http_status.or(as_code).filter(|status| (400..600).contains(status))
}

/// The canonical name of a code that nobody registered: itself when it starts with its category, else with
/// the category in front. Only capitals, digits and `_` come through, since it becomes a label.
pub(crate) fn canonical_name(category: Category, code: &str) -> String {
    const LONGEST: usize = 96;
    let name: String = code
        .chars()
        .take(LONGEST)
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
