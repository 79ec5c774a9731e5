//! Step 1: the operator's own entries, with their conditions.
//!
//! An entry without a mapping is a code of its own. One with a mapping stands for other codes or for HTTP
//! statuses as well. A status alone replaces only what the default mapping would have said; with a
//! condition it replaces whatever was sent.

use super::{Subject, exact};
use crate::registry::{Entry, OperatorEntry, Registry};

pub(super) fn find<'r>(registry: &'r Registry, subject: &Subject<'_>) -> Option<&'r Entry> {
    let entries = &registry.operator().entries;
    let entry = entries.iter().find(|entry| in_scope(entry, subject) && applies(entry, registry, subject))?;
    Some(&entry.entry)
}

fn in_scope(entry: &OperatorEntry, subject: &Subject<'_>) -> bool {
    let dialect = subject.named.unwrap_or(subject.shape);
    entry.dialect.is_none_or(|wanted| wanted == dialect)
        && entry.service.as_deref().is_none_or(|wanted| subject.service == Some(wanted))
}

fn applies(entry: &OperatorEntry, registry: &Registry, subject: &Subject<'_>) -> bool {
    let holds = || entry.condition.as_ref().is_none_or(|condition| condition.holds(subject.roots));
    let is_own = subject.code.spells(&entry.entry.code);
    if entry.maps_from.is_empty() && entry.maps_from_http.is_empty() {
        return is_own && holds();
    }
    if is_own || entry.maps_from.iter().any(|code| subject.code.spells(code)) && holds() {
        return true;
    }
    let Some(status) = subject.http_status.filter(|status| entry.maps_from_http.contains(status)) else {
        return false;
    };
    match entry.condition {
        Some(_) => holds(),
        None => says_no_more_than(registry, subject, status),
    }
}

/// True when the code sent, if any, is just what the default mapping makes of the status.
fn says_no_more_than(registry: &Registry, subject: &Subject<'_>, status: u16) -> bool {
    match exact::find(registry, subject) {
        exact::Match::One { entry, .. } => registry.status(status) == Some(entry.canonical.as_str()),
        exact::Match::Ambiguous | exact::Match::None => true,
    }
}
