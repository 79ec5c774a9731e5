//! Step 1: the operator's own entries, with their conditions.
//!
//! An entry without a mapping is a code of its own. An entry with a mapping also replaces other codes or HTTP
//! statuses. A mapping from a status replaces only the result of the default mapping, unless it has a condition; then
//! it replaces any code.

use super::{LookupInput, exact};
use crate::registry::{Entry, OperatorEntry, Registry};

pub(super) fn find<'r>(registry: &'r Registry, input: &LookupInput<'_>) -> Option<&'r Entry> {
    let entries = &registry.operator().entries;
    let entry = entries.iter().find(|entry| in_scope(entry, input) && applies(entry, registry, input))?;
    Some(&entry.entry)
}

fn in_scope(entry: &OperatorEntry, input: &LookupInput<'_>) -> bool {
    let dialect = input.declared_dialect.unwrap_or(input.shape_dialect);
    entry.dialect.is_none_or(|wanted| wanted == dialect)
        && entry.service.as_deref().is_none_or(|wanted| input.service == Some(wanted))
}

fn applies(entry: &OperatorEntry, registry: &Registry, input: &LookupInput<'_>) -> bool {
    let holds = || entry.condition.as_ref().is_none_or(|condition| condition.holds(input.roots));
    let is_own = input.code.matches_text(&entry.entry.code);
    if entry.maps_from.is_empty() && entry.maps_from_http.is_empty() {
        return is_own && holds();
    }
    if is_own || entry.maps_from.iter().any(|code| input.code.matches_text(code)) && holds() {
        return true;
    }
    let Some(status) = input.http_status.filter(|status| entry.maps_from_http.contains(status)) else {
        return false;
    };
    match entry.condition {
        Some(_) => holds(),
        None => matches_default_mapping(registry, input, status),
    }
}

/// Returns true if the code that was sent, if any, is the one that the default mapping gives for the status.
fn matches_default_mapping(registry: &Registry, input: &LookupInput<'_>, status: u16) -> bool {
    match exact::find(registry, input) {
        exact::Match::One(entry) => registry.status(status) == Some(entry.canonical.as_str()),
        exact::Match::Unsupported | exact::Match::None => true,
    }
}
