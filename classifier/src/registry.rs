//! The registry: every known code of every dialect, and the rules for codes nobody registered.
//!
//! It is data. One file a dialect, and two more for categories and inference rules, are embedded in the
//! library; everything else (classification, `faultline codes`, the reference page, metric series,
//! runbook anchors) derives from them. **Adding a code is one entry in one file.** Operators add their
//! own with [`OperatorFile`].
//!
//! What always holds: the category of a code is never stored, it is the registered prefix of its
//! canonical code; exact entries come before ranges and prefixes, whatever the dialect.

mod condition;
mod entry;
mod error;
mod inference;
mod load;
mod message;
mod operator;
mod source;
pub(crate) mod words;

pub use condition::Condition;
pub(crate) use condition::Roots;
pub use entry::{Correction, DetailField, Entry, Meaning, Origin};
pub use error::RegistryError;
pub use message::MessageTemplate;
pub use operator::{OperatorEntry, OperatorFile, Profile, RedactionSettings};

use crate::category::Category;
use crate::dialect::Dialect;
use crate::evidence::EvidenceTable;
use crate::fault::Fault;
use inference::{Faults, Prefixes, Statuses};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// Every known code, and the rules for the unknown ones.
#[derive(Debug, Clone)]
pub struct Registry {
    categories: Vec<CategoryInfo>,
    dialects: Vec<DialectInfo>,
    entries: Vec<Entry>,
    ranges: Vec<Range>,
    audits: Vec<AuditEvent>,
    prefixes: Prefixes,
    statuses: Statuses,
    faults: Faults,
    evidence: &'static EvidenceTable,
    /// Entries by code text; a number is its decimal text.
    by_text: HashMap<String, Vec<usize>, foldhash::fast::FixedState>,
    /// Entries by number, so that a numeric code needs no text to be looked up.
    by_number: HashMap<i64, Vec<usize>, foldhash::fast::FixedState>,
    /// The entry that says what a canonical code means when it was not sent itself.
    by_canonical: HashMap<String, usize, foldhash::fast::FixedState>,
    /// Entries that refine a code by the type of the exception: code, type, entry.
    refinements: Vec<(String, String, usize)>,
    operator: OperatorFile,
}

/// An operator's registry file, as it stands on the disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RegistryFile {
    /// What errors call it.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// What a category stands for.
#[derive(Debug, Clone)]
pub struct CategoryInfo {
    /// The category, and what holds for its codes unless they say otherwise.
    pub meaning: Meaning,
    /// One sentence.
    pub description: String,
    /// The heading of the runbook that deals with it.
    pub runbook: String,
}

/// What a dialect is.
#[derive(Debug, Clone)]
pub struct DialectInfo {
    /// The dialect.
    pub dialect: Dialect,
    /// Its name for people.
    pub title: String,
    /// One or two sentences.
    pub description: String,
}

/// Numbers that belong together, for codes without an entry.
#[derive(Debug, Clone)]
pub struct Range {
    /// Whose range it is.
    pub dialect: Dialect,
    /// The numbers, both ends included.
    pub numbers: RangeInclusive<i64>,
    /// What the dialect calls it.
    pub name: String,
    /// The category of its codes.
    pub category: Category,
}

/// A step in the life of a confirmation token: an event, not a failure.
#[derive(Debug, Clone)]
pub struct AuditEvent {
    /// The word in the record's `event` field.
    pub event: String,
    /// Its cross-dialect name.
    pub canonical: String,
    /// One sentence.
    pub description: String,
}

impl Registry {
    /// The registry as it ships.
    pub fn builtin() -> Result<Self, RegistryError> {
        let tables = load::embedded()?;
        let mut registry = Self {
            categories: tables.categories,
            dialects: tables.dialects,
            entries: tables.entries,
            ranges: tables.ranges,
            audits: tables.audits,
            prefixes: tables.prefixes,
            statuses: tables.statuses,
            faults: tables.faults,
            evidence: tables.evidence,
            by_text: HashMap::default(),
            by_number: HashMap::default(),
            by_canonical: HashMap::default(),
            refinements: Vec::new(),
            operator: OperatorFile::default(),
        };
        registry.index();
        Ok(registry)
    }

    /// The shipped registry with an operator's file on top; `file` is the name that errors show.
    pub fn with_operator_file(file: &str, text: &str) -> Result<Self, RegistryError> {
        let mut registry = Self::builtin()?;
        registry.operator = OperatorFile::parse(file, text, &registry)?;
        Ok(registry)
    }

    fn index(&mut self) {
        for (index, entry) in self.entries.iter().enumerate() {
            self.by_text.entry(entry.code.clone()).or_default().push(index);
            if let Ok(number) = entry.code.parse() {
                self.by_number.entry(number).or_default().push(index);
            }
            if let Some((code, name)) = entry.code.split_once('/') {
                self.refinements.push((code.to_owned(), name.to_owned(), index));
            }
            // MCP-AQL comes first, and its names are the canonical ones.
            if entry.code == entry.canonical {
                self.by_canonical.entry(entry.canonical.clone()).or_insert(index);
            }
        }
    }

    /// Every entry, dialect by dialect.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Every category, in the order all tables show them.
    #[must_use]
    pub fn categories(&self) -> &[CategoryInfo] {
        &self.categories
    }

    /// Every dialect that has entries.
    #[must_use]
    pub fn dialects(&self) -> &[DialectInfo] {
        &self.dialects
    }

    /// Every numeric range.
    #[must_use]
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Every audit event.
    #[must_use]
    pub fn audits(&self) -> &[AuditEvent] {
        &self.audits
    }

    /// What the operator added.
    #[must_use]
    pub fn operator(&self) -> &OperatorFile {
        &self.operator
    }

    /// The statuses that say what a failure without a code is, single ones first.
    pub fn statuses(&self) -> impl Iterator<Item = (&RangeInclusive<u16>, &str)> {
        self.statuses.rows()
    }

    /// The wordings that say what a failure without a specific code is, and the canonical code they speak for.
    pub fn phrases(&self) -> impl Iterator<Item = (&[String], &str)> {
        self.evidence.rows()
    }

    /// Whose fault a canonical code is, as far as its name tells.
    #[must_use]
    pub fn fault(&self, canonical: &str) -> Option<Fault> {
        self.faults.find(canonical)
    }

    /// The evidence table: what the words of a failure say.
    pub(crate) fn evidence(&self) -> &EvidenceTable {
        self.evidence
    }

    /// The entries of a code in every dialect.
    pub fn find(&self, code: &str) -> impl Iterator<Item = &Entry> {
        self.by_text.get(code).into_iter().flatten().map(|&index| &self.entries[index])
    }

    pub(crate) fn find_number(&self, number: i64) -> impl Iterator<Item = &Entry> + Clone {
        self.by_number.get(&number).into_iter().flatten().map(|&index| &self.entries[index])
    }

    /// The entry of a code in one dialect.
    #[must_use]
    pub fn entry(&self, dialect: Dialect, code: &str) -> Option<&Entry> {
        self.find(code).find(|entry| entry.dialect == dialect)
    }

    /// The entry that refines a code by the type of the exception.
    pub(crate) fn refined(&self, code: &str, type_name: &str) -> Option<&Entry> {
        let fits = |(refined, name, _): &&(String, String, usize)| refined == code && name == type_name;
        self.refinements.iter().find(fits).map(|&(_, _, index)| &self.entries[index])
    }

    /// What a canonical code means when nothing more is known than its name.
    #[must_use]
    pub fn meaning(&self, canonical: &str) -> Meaning {
        match self.by_canonical.get(canonical) {
            Some(&index) => self.entries[index].meaning,
            None => Meaning { fault: self.fault(canonical), ..self.defaults(self.category(canonical)) },
        }
    }

    /// The registry's own copy of a canonical name, where it has one.
    pub(crate) fn canonical_entry(&self, canonical: &str) -> Option<&Entry> {
        self.by_canonical.get(canonical).map(|&index| &self.entries[index])
    }

    /// The category of a canonical code, or of any code that starts with a registered prefix.
    #[must_use]
    pub fn category(&self, canonical: &str) -> Category {
        self.prefix(canonical).unwrap_or(Category::Unknown)
    }

    /// What holds for the codes of a category that have no entry.
    #[must_use]
    pub fn defaults(&self, category: Category) -> Meaning {
        load::category_defaults(&self.categories, category)
    }

    pub(crate) fn prefix(&self, code: &str) -> Option<Category> {
        self.prefixes.category(code)
    }

    pub(crate) fn status(&self, status: u16) -> Option<&str> {
        self.statuses.canonical(status)
    }

    /// The narrowest range that holds a number, of one dialect or of any; of two alike, plain JSON-RPC's.
    pub(crate) fn range(&self, dialect: Option<Dialect>, number: i64) -> Option<&Range> {
        self.ranges
            .iter()
            .filter(|range| dialect.is_none_or(|dialect| range.dialect == dialect))
            .filter(|range| range.numbers.contains(&number))
            .min_by_key(|range| {
                (range.numbers.end() - range.numbers.start(), range.dialect != Dialect::Jsonrpc)
            })
    }

    pub(crate) fn audit(&self, event: &str) -> Option<&AuditEvent> {
        self.audits.iter().find(|audit| audit.event == event)
    }
}

#[cfg(test)]
mod tests;
