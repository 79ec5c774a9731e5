//! The registry: every known code of every dialect, and the rules for codes that are not registered.
//!
//! It is data. One file per dialect and two more for categories and inference rules are embedded in the library;
//! everything else (classification, `faultline codes`, the reference page, metric series, runbook anchors) is derived
//! from them. **Adding a code takes one entry in one file.** Operators add their own codes with [`OperatorFile`].
//!
//! Invariants: the category of a code is never stored, because it is the registered prefix of its canonical code;
//! exact entries take precedence over ranges and prefixes, whatever the dialect.

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
pub use entry::{Correction, DetailField, Entry, EntryOrigin, Meaning};
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

/// Every known code, and the rules for unknown codes.
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
    /// Entries by code text. A number is stored as its decimal text.
    by_text: HashMap<String, Vec<usize>, foldhash::fast::FixedState>,
    /// Entries by number, so that a numeric code is looked up without converting it to text.
    by_number: HashMap<i64, Vec<usize>, foldhash::fast::FixedState>,
    /// The entry that determines the meaning of a canonical code that was not itself sent.
    by_canonical: HashMap<String, usize, foldhash::fast::FixedState>,
    /// Entries that refine a code by the type of the exception: code, type, entry.
    refinements: Vec<(String, String, usize)>,
    operator: OperatorFile,
}

/// An operator's registry file as it is stored on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RegistryFile {
    /// The name of the file in error messages.
    pub name: String,
    /// The contents of the file.
    pub text: String,
}

/// The description of a category.
#[derive(Debug, Clone)]
pub struct CategoryInfo {
    /// The category and the defaults of its codes.
    pub meaning: Meaning,
    /// A description in one sentence.
    pub description: String,
    /// The heading of the runbook for the category.
    pub runbook: String,
}

/// The description of a dialect.
#[derive(Debug, Clone)]
pub struct DialectInfo {
    /// The dialect.
    pub dialect: Dialect,
    /// The title of the dialect.
    pub title: String,
    /// A description in one or two sentences.
    pub description: String,
}

/// A range of numbers with a common category, for codes without an entry.
#[derive(Debug, Clone)]
pub struct Range {
    /// The dialect that the range belongs to.
    pub dialect: Dialect,
    /// The numbers, both ends included.
    pub numbers: RangeInclusive<i64>,
    /// The name of the range in the dialect.
    pub name: String,
    /// The category of its codes.
    pub category: Category,
}

/// A step in the life of a confirmation token, which is an event and not a failure.
#[derive(Debug, Clone)]
pub struct AuditEvent {
    /// The word in the record's `event` field.
    pub event: String,
    /// The cross-dialect name.
    pub canonical: String,
    /// A description in one sentence.
    pub description: String,
}

impl Registry {
    /// Returns the registry that ships with the library.
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

    /// Returns the shipped registry with an operator's file added. `file` is the name that error messages show.
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
            // MCP-AQL is the first dialect, and its names are the canonical ones.
            if entry.code == entry.canonical {
                self.by_canonical.entry(entry.canonical.clone()).or_insert(index);
            }
        }
    }

    /// Returns all entries, dialect by dialect.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns all categories, in the order in which all tables show them.
    #[must_use]
    pub fn categories(&self) -> &[CategoryInfo] {
        &self.categories
    }

    /// Returns all dialects that have entries.
    #[must_use]
    pub fn dialects(&self) -> &[DialectInfo] {
        &self.dialects
    }

    /// Returns all numeric ranges.
    #[must_use]
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Returns all audit events.
    #[must_use]
    pub fn audits(&self) -> &[AuditEvent] {
        &self.audits
    }

    /// Returns the operator's additions.
    #[must_use]
    pub fn operator(&self) -> &OperatorFile {
        &self.operator
    }

    /// Returns the HTTP statuses that determine the meaning of a failure without a code, single statuses first.
    pub fn statuses(&self) -> impl Iterator<Item = (&RangeInclusive<u16>, &str)> {
        self.statuses.rows()
    }

    /// Returns the wordings that determine the meaning of a failure without a specific code, and the canonical code
    /// that each indicates.
    pub fn phrases(&self) -> impl Iterator<Item = (&[String], &str)> {
        self.evidence.rows()
    }

    /// Returns the party at fault for a canonical code, as far as its name tells.
    #[must_use]
    pub fn fault(&self, canonical: &str) -> Option<Fault> {
        self.faults.find(canonical)
    }

    /// Returns the evidence table, which maps the wording of failures to canonical codes.
    pub(crate) fn evidence(&self) -> &EvidenceTable {
        self.evidence
    }

    /// Returns the entries of a code in every dialect.
    pub fn find(&self, code: &str) -> impl Iterator<Item = &Entry> {
        self.by_text.get(code).into_iter().flatten().map(|&index| &self.entries[index])
    }

    pub(crate) fn find_number(&self, number: i64) -> impl Iterator<Item = &Entry> + Clone {
        self.by_number.get(&number).into_iter().flatten().map(|&index| &self.entries[index])
    }

    /// Returns the entry of a code in one dialect.
    #[must_use]
    pub fn entry(&self, dialect: Dialect, code: &str) -> Option<&Entry> {
        self.find(code).find(|entry| entry.dialect == dialect)
    }

    /// Returns the entry that refines a code by the type of the exception.
    pub(crate) fn refined(&self, code: &str, type_name: &str) -> Option<&Entry> {
        let fits = |(refined, name, _): &&(String, String, usize)| refined == code && name == type_name;
        self.refinements.iter().find(fits).map(|&(_, _, index)| &self.entries[index])
    }

    /// Returns the meaning of a canonical code if nothing but its name is known.
    #[must_use]
    pub fn meaning(&self, canonical: &str) -> Meaning {
        match self.by_canonical.get(canonical) {
            Some(&index) => self.entries[index].meaning,
            None => Meaning { fault: self.fault(canonical), ..self.defaults(self.category(canonical)) },
        }
    }

    /// Returns the entry whose code is this canonical code, if there is one.
    pub(crate) fn canonical_entry(&self, canonical: &str) -> Option<&Entry> {
        self.by_canonical.get(canonical).map(|&index| &self.entries[index])
    }

    /// Returns the category of a canonical code, or of any code that starts with a registered prefix.
    #[must_use]
    pub fn category(&self, canonical: &str) -> Category {
        self.prefix(canonical).unwrap_or(Category::Unknown)
    }

    /// Returns the defaults for the codes of a category that have no entry.
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

    /// Returns the narrowest range that contains a number, of one dialect or of any. If two are equally narrow, plain
    /// JSON-RPC is preferred.
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
