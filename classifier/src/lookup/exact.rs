//! Step 2: exact entries, and the choice of a dialect if several register the same number.

use super::LookupInput;
use crate::code::Code;
use crate::dialect::Dialect;
use crate::registry::{Entry, Registry, words};

/// The result of searching the exact entries.
pub(super) enum Match<'r> {
    One(&'r Entry),
    /// The number is known, but nothing in the payload supports a dialect that knows it: only one project registers
    /// it, or dialects disagree about it.
    Unsupported,
    None,
}

impl<'r> Match<'r> {
    fn certain(entry: Option<&'r Entry>) -> Self {
        entry.map_or(Self::None, Self::One)
    }
}

pub(super) fn find<'r>(registry: &'r Registry, input: &LookupInput<'_>) -> Match<'r> {
    match input.code {
        Code::Text(code) => Match::certain(find_text(registry, input, code)),
        Code::Number { value, .. } => find_number(registry, input, value),
        Code::Missing | Code::Unusable => Match::certain(find_by_exception_class(registry, input)),
        Code::ToolError => Match::None,
    }
}

fn find_text<'r>(registry: &'r Registry, input: &LookupInput<'_>, code: &str) -> Option<&'r Entry> {
    // A code may be refined by the type of the exception.
    let refined = input.type_name.and_then(|name| registry.refined(code, name));
    let preferred = input.declared_dialect.unwrap_or(input.shape_dialect);
    let own = || registry.entry(preferred, code);
    let any = || registry.find(code).next();
    refined.or_else(own).or_else(any)
}

/// Returns the entry of an exception class, for dialects whose documents map classes to codes.
fn find_by_exception_class<'r>(registry: &'r Registry, input: &LookupInput<'_>) -> Option<&'r Entry> {
    let name = input.type_name?;
    let known = |entry: &&Entry| entry.types.iter().any(|known| known == name);
    registry
        .entries()
        .iter()
        .find(known)
        .filter(|entry| input.declared_dialect.is_none_or(|declared| declared == entry.dialect))
}

fn find_number<'r>(registry: &'r Registry, input: &LookupInput<'_>, number: i64) -> Match<'r> {
    let of = |dialect: Dialect| registry.find_number(number).find(|entry| entry.dialect == dialect);
    if let Some(declared) = input.declared_dialect {
        // The numbers of the JSON-RPC standard are valid in every dialect that uses JSON-RPC.
        return Match::certain(of(declared).or_else(|| of(Dialect::Jsonrpc)));
    }
    if !matches!(input.shape_dialect, Dialect::Jsonrpc | Dialect::Unknown)
        && let Some(entry) = of(input.shape_dialect)
    {
        return Match::One(entry);
    }
    let entries = registry.find_number(number);
    let Some(first) = entries.clone().next() else { return Match::None };
    if entries.clone().nth(1).is_none() {
        let is_supported = first.dialect == Dialect::Jsonrpc
            || matches_detail_keys(first, input)
            || matches_words(first, input);
        return if is_supported { Match::One(first) } else { Match::Unsupported };
    }
    if entries.clone().all(|entry| entry.canonical == first.canonical) {
        let plain = of(Dialect::Jsonrpc).unwrap_or(first);
        return Match::One(plain);
    }
    single(entries.clone().filter(|entry| matches_words(entry, input)))
        .or_else(|| single(entries.filter(|entry| matches_detail_keys(entry, input))))
        .map_or(Match::Unsupported, Match::One)
}

/// Returns the only element, or `None` if there are several or none.
fn single<'r>(mut entries: impl Iterator<Item = &'r Entry>) -> Option<&'r Entry> {
    let first = entries.next()?;
    entries.next().is_none().then_some(first)
}

/// Returns true if the words of the entry's name, or its message template, occur in the message.
pub(super) fn matches_words(entry: &Entry, input: &LookupInput<'_>) -> bool {
    let Some(message) = input.message else { return false };
    entry.message.as_ref().is_some_and(|template| template.fits(message))
        || words::all_in(&entry.words, message)
}

/// Returns true if the payload contains a key that the entry's specification names.
fn matches_detail_keys(entry: &Entry, input: &LookupInput<'_>) -> bool {
    let Some(details) = input.details else { return false };
    entry.details.iter().any(|field| details.present(&field.name).is_some())
}
