//! Counts events by category, code and service, and by group, for `classify --summary`.
//!
//! Invariant: a hostile or merely large log cannot make the tables grow without bound. A table accepts no new keys once
//! it reaches its limit, and counts further events in one row, `(other)`.

mod tables;

use classifier::{Category, Event, EventKind};
use std::collections::HashMap;
use std::hash::Hash;

/// The maximum number of distinct keys in each table.
const MAX_KEYS: usize = 100_000;
/// The number of characters of a template that are kept, which is about what a terminal shows.
const TEMPLATE_CHARS: usize = 160;

/// The number of events, and of hidden ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    events: u64,
    hidden: u64,
}

impl Counts {
    fn add(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.hidden += u64::from(event.hidden);
    }
}

/// The events with one code from one service.
#[derive(Debug)]
struct CodeRow {
    category: Category,
    canonical: String,
    service: String,
    counts: Counts,
}

/// The events with one fingerprint, described by the first of them.
#[derive(Debug)]
struct Group {
    fingerprint: u64,
    template: String,
    canonical: String,
    service: String,
    operation: String,
    counts: Counts,
}

/// A map that accepts no new keys once it has reached its limit.
#[derive(Debug)]
struct BoundedMap<K, V> {
    rows: HashMap<K, V>,
    limit: usize,
    /// The events that arrived when the table was full.
    other: Counts,
}

impl<K: Hash + Eq, V> BoundedMap<K, V> {
    fn new(limit: usize) -> Self {
        Self { rows: HashMap::new(), limit, other: Counts::default() }
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.limit
    }
}

/// All counts of the summary.
#[derive(Debug)]
pub(super) struct Summary {
    kinds: HashMap<EventKind, u64>,
    categories: HashMap<Category, Counts>,
    codes: BoundedMap<String, CodeRow>,
    groups: BoundedMap<u64, Group>,
    /// The key of a code and a service. The buffer is reused, so that an event needs no allocation.
    key: String,
}

impl Default for Summary {
    fn default() -> Self {
        Self::with_limit(MAX_KEYS)
    }
}

impl Summary {
    fn with_limit(limit: usize) -> Self {
        Self {
            kinds: HashMap::new(),
            categories: HashMap::new(),
            codes: BoundedMap::new(limit),
            groups: BoundedMap::new(limit),
            key: String::new(),
        }
    }

    /// Counts one event.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        *self.kinds.entry(event.kind).or_default() += 1;
        self.categories.entry(event.category).or_default().add(event);
        self.code_counts(event).add(event);
        self.group_counts(event).add(event);
    }

    fn code_counts(&mut self, event: &Event<'_>) -> &mut Counts {
        let Self { codes, key, .. } = self;
        key.clear();
        key.push_str(&event.canonical);
        // A canonical code cannot contain this character, so no two pairs share a key.
        key.push('\0');
        key.push_str(event.context.service.as_deref().unwrap_or_default());
        if !codes.rows.contains_key(key.as_str()) {
            if codes.is_full() {
                return &mut codes.other;
            }
            codes.rows.insert(key.clone(), CodeRow::from_event(event));
        }
        codes.rows.get_mut(key.as_str()).map_or(&mut codes.other, |row| &mut row.counts)
    }

    fn group_counts(&mut self, event: &Event<'_>) -> &mut Counts {
        let groups = &mut self.groups;
        if groups.is_full() && !groups.rows.contains_key(&event.fingerprint) {
            return &mut groups.other;
        }
        &mut groups.rows.entry(event.fingerprint).or_insert_with(|| Group::from_event(event)).counts
    }
}

impl CodeRow {
    fn from_event(event: &Event<'_>) -> Self {
        Self {
            category: event.category,
            canonical: event.canonical.clone().into_owned(),
            service: event.context.service.as_deref().unwrap_or_default().to_owned(),
            counts: Counts::default(),
        }
    }
}

impl Group {
    fn from_event(event: &Event<'_>) -> Self {
        let context = &event.context;
        Self {
            fingerprint: event.fingerprint,
            template: event.template.unwrap_or_default().chars().take(TEMPLATE_CHARS).collect(),
            canonical: event.canonical.clone().into_owned(),
            service: context.service.as_deref().unwrap_or_default().to_owned(),
            operation: context.operation.as_deref().unwrap_or_default().to_owned(),
            counts: Counts::default(),
        }
    }
}

#[cfg(test)]
mod tests;
