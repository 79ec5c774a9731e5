//! Step 2: exact entries, and which dialect's entry it is when several have the same number.

use super::{SERVER_ERRORS, Subject};
use crate::code::Code;
use crate::dialect::Dialect;
use crate::registry::{Entry, Registry, words};

/// What the exact entries say.
pub(super) enum Match<'r> {
    One {
        entry: &'r Entry,
        /// The number is one dialect's alone, but nothing in the payload speaks for that dialect.
        inferred: bool,
    },
    /// Dialects disagree about the number, and nothing in the payload speaks for one of them.
    Ambiguous,
    None,
}

impl<'r> Match<'r> {
    fn certain(entry: Option<&'r Entry>) -> Self {
        entry.map_or(Self::None, |entry| Self::One { entry, inferred: false })
    }
}

pub(super) fn find<'r>(registry: &'r Registry, subject: &Subject<'_>) -> Match<'r> {
    match subject.code {
        Code::Text(code) => Match::certain(text(registry, subject, code)),
        Code::Number { value, .. } => number(registry, subject, value),
        Code::Missing | Code::Unusable => Match::certain(by_type(registry, subject)),
        Code::ToolError => Match::None,
    }
}

fn text<'r>(registry: &'r Registry, subject: &Subject<'_>, code: &str) -> Option<&'r Entry> {
    // A code may be refined by the type of the exception.
    let refined = subject.type_name.and_then(|name| registry.refined(code, name));
    let preferred = subject.named.unwrap_or(subject.shape);
    let own = || registry.entry(preferred, code);
    let any = || registry.find(code).next();
    refined.or_else(own).or_else(any)
}

/// An exception class stands for a code where the dialect's document says so.
fn by_type<'r>(registry: &'r Registry, subject: &Subject<'_>) -> Option<&'r Entry> {
    let name = subject.type_name?;
    let known = |entry: &&Entry| entry.types.iter().any(|known| known == name);
    registry
        .entries()
        .iter()
        .find(known)
        .filter(|entry| subject.named.is_none_or(|named| named == entry.dialect))
}

fn number<'r>(registry: &'r Registry, subject: &Subject<'_>, number: i64) -> Match<'r> {
    let of = |dialect: Dialect| registry.find_number(number).find(|entry| entry.dialect == dialect);
    if let Some(named) = subject.named {
        // Every dialect that speaks JSON-RPC keeps the numbers of its standard.
        return Match::certain(of(named).or_else(|| of(Dialect::Jsonrpc)));
    }
    if !matches!(subject.shape, Dialect::Jsonrpc | Dialect::Unknown)
        && let Some(entry) = of(subject.shape)
    {
        return Match::One { entry, inferred: false };
    }
    let entries = registry.find_number(number);
    let Some(first) = entries.clone().next() else { return Match::None };
    if entries.clone().nth(1).is_none() {
        let assumed =
            SERVER_ERRORS.contains(&number) && !has_keys(first, subject) && !has_words(first, subject);
        return Match::One { entry: first, inferred: assumed };
    }
    if entries.clone().all(|entry| entry.canonical == first.canonical) {
        let plain = of(Dialect::Jsonrpc).unwrap_or(first);
        return Match::One { entry: plain, inferred: false };
    }
    only(entries.clone().filter(|entry| has_words(entry, subject)))
        .or_else(|| only(entries.filter(|entry| has_keys(entry, subject))))
        .map_or(Match::Ambiguous, |entry| Match::One { entry, inferred: false })
}

/// The one element there is, unless there are several.
fn only<'r>(mut entries: impl Iterator<Item = &'r Entry>) -> Option<&'r Entry> {
    let first = entries.next()?;
    entries.next().is_none().then_some(first)
}

/// The words of the entry's name, or its message, stand in the message.
fn has_words(entry: &Entry, subject: &Subject<'_>) -> bool {
    let Some(message) = subject.message else { return false };
    entry.message.as_ref().is_some_and(|template| template.fits(message))
        || words::all_in(&entry.words, message)
}

/// The payload carries a key that the entry's specification names.
fn has_keys(entry: &Entry, subject: &Subject<'_>) -> bool {
    let Some(details) = subject.details else { return false };
    entry.details.iter().any(|field| details.present(&field.name).is_some())
}
