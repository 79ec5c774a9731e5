//! Loads the embedded data files into validated tables.
//!
//! The files are part of the binary, so a mistake in one is a bug of this crate. It is still reported as an error with
//! its file and reason, for people who edit the files.

use super::entry::{Correction, DetailField, Entry, EntryOrigin, Meaning};
use super::error::{RegistryError, nearest, parse};
use super::message::MessageTemplate;
use super::source::{
    AuditRow, Categories, CategoryRow, CodeRow, CorrectionRow, DialectFile, Inference, RangeRow, Retryable,
    StatusPattern,
};
use super::words::stems;
use super::{AuditEvent, CategoryInfo, DialectInfo, Faults, Prefixes, Range, Statuses};
use crate::category::{Category, Recovery, Severity};
use crate::dialect::Dialect;
use crate::evidence::{self, EvidenceTable};
use crate::fault::Fault;
use std::sync::OnceLock;

/// The data files of a dialect, embedded.
const DIALECTS: [(&str, &str); 5] = [
    ("mcp-aql.toml", include_str!("../../registry/mcp-aql.toml")),
    ("mcp-reference.toml", include_str!("../../registry/mcp-reference.toml")),
    ("agent-skills.toml", include_str!("../../registry/agent-skills.toml")),
    ("erlmcp.toml", include_str!("../../registry/erlmcp.toml")),
    ("jsonrpc.toml", include_str!("../../registry/jsonrpc.toml")),
];
const CATEGORIES: &str = include_str!("../../registry/categories.toml");
const INFERENCE: &str = include_str!("../../registry/inference.toml");

/// The contents of all data files.
pub(super) struct Tables {
    pub(super) categories: Vec<CategoryInfo>,
    pub(super) prefixes: Prefixes,
    pub(super) statuses: Statuses,
    pub(super) faults: Faults,
    pub(super) evidence: &'static EvidenceTable,
    pub(super) dialects: Vec<DialectInfo>,
    pub(super) entries: Vec<Entry>,
    pub(super) ranges: Vec<Range>,
    pub(super) audits: Vec<AuditEvent>,
}

pub(super) fn embedded() -> Result<Tables, RegistryError> {
    let categories: Categories = parse("categories.toml", CATEGORIES)?;
    let inference: Inference = parse("inference.toml", INFERENCE)?;
    let (prefixes, statuses, faults) = inferences(inference).map_err(whole_file("inference.toml"))?;
    let categories = categories
        .category
        .into_iter()
        .map(|row| category_info(row, &faults).map_err(whole_file("categories.toml")))
        .collect::<Result<Vec<_>, _>>()?;
    let evidence = evidence(&prefixes).map_err(whole_file("evidence"))?;
    let mut tables = Tables {
        categories,
        prefixes,
        statuses,
        faults,
        evidence,
        dialects: Vec::new(),
        entries: Vec::new(),
        ranges: Vec::new(),
        audits: Vec::new(),
    };
    for (file, text) in DIALECTS {
        tables.add(parse(file, text)?).map_err(whole_file(file))?;
    }
    Ok(tables)
}

/// Returns the evidence table, which is the same for every registry and compiled only once.
fn evidence(prefixes: &Prefixes) -> Result<&'static EvidenceTable, String> {
    static TABLE: OnceLock<Result<EvidenceTable, String>> = OnceLock::new();
    TABLE
        .get_or_init(|| evidence::load(|canonical| prefixes.category(canonical)))
        .as_ref()
        .map_err(String::clone)
}

/// Creates errors for a whole file. Their reasons name the entry, so that a line number would add little.
fn whole_file(file: &str) -> impl Fn(String) -> RegistryError {
    move |reason| RegistryError { file: file.to_owned(), line: 1, reason }
}

impl Tables {
    fn add(&mut self, file: DialectFile) -> Result<(), String> {
        let dialect = dialect(&file.dialect)?;
        for row in file.code {
            let entry = self.entry(dialect, row)?;
            if self.entries.iter().any(|other| other.dialect == dialect && other.code == entry.code) {
                return Err(format!("code '{}' is there twice", entry.code));
            }
            self.entries.push(entry);
        }
        for row in file.ranges {
            self.ranges.push(range(dialect, row)?);
        }
        self.audits.extend(file.audit.into_iter().map(audit));
        self.dialects.push(DialectInfo { dialect, title: file.title, description: file.description });
        Ok(())
    }

    fn entry(&self, dialect: Dialect, row: CodeRow) -> Result<Entry, String> {
        let code = row.code.into_text();
        let canonical = row.canonical.unwrap_or_else(|| code.clone());
        let category = self.prefixes.category(&canonical).ok_or_else(|| {
            format!("canonical '{canonical}' of code '{code}' starts with no registered prefix")
        })?;
        let defaults = category_defaults(&self.categories, category);
        let name = row.name.unwrap_or_else(|| code.clone());
        Ok(Entry {
            dialect,
            words: stems(&name),
            name,
            meaning: Meaning {
                fault: self.faults.find(&canonical),
                ..meaning(defaults, row.severity.as_deref(), row.retryable, row.recovery.as_deref())?
            },
            http_status: row.http_status,
            description: row.description,
            message: row.message.as_deref().map(MessageTemplate::new),
            details: row.details.iter().map(|field| detail(field)).collect(),
            types: row.types,
            origin: origin(row.origin.as_deref())?,
            runbook: row.runbook.unwrap_or_else(|| runbook(&self.categories, category)),
            generic: row.generic,
            corrections: row.corrections.into_iter().map(correction).collect(),
            code,
            canonical,
        })
    }
}

/// Returns the defaults of a category. A test verifies that every category has a row.
pub(super) fn category_defaults(categories: &[CategoryInfo], category: Category) -> Meaning {
    categories.iter().find(|info| info.meaning.category == category).map_or(
        Meaning {
            category,
            severity: Severity::Error,
            retryable: None,
            recovery: Recovery::Inspect,
            fault: None,
        },
        |info| info.meaning,
    )
}

pub(super) fn runbook(categories: &[CategoryInfo], category: Category) -> String {
    categories
        .iter()
        .find(|info| info.meaning.category == category)
        .map(|info| info.runbook.clone())
        .unwrap_or_default()
}

/// Returns the defaults of a category, overridden by the values of an entry.
pub(super) fn meaning(
    defaults: Meaning,
    severity: Option<&str>,
    retryable: Option<Retryable>,
    recovery: Option<&str>,
) -> Result<Meaning, String> {
    Ok(Meaning {
        category: defaults.category,
        severity: severity.map_or(Ok(defaults.severity), self::severity)?,
        retryable: match retryable {
            None => defaults.retryable,
            Some(Retryable::Known(value)) => Some(value),
            Some(Retryable::Word(word)) if word == "unknown" => None,
            Some(Retryable::Word(word)) => {
                return Err(format!("retryable is true, false or \"unknown\", not '{word}'"));
            }
        },
        recovery: recovery.map_or(Ok(defaults.recovery), self::recovery)?,
        fault: defaults.fault,
    })
}

/// Looks up a word in a closed list. The error lists the allowed words.
fn one_of<T: Copy>(what: &str, word: &str, all: &[T], text: impl Fn(T) -> &'static str) -> Result<T, String> {
    if let Some(&value) = all.iter().find(|&&value| text(value) == word) {
        return Ok(value);
    }
    let words = || all.iter().map(|&value| text(value));
    let hint = nearest(word, words()).map(|near| format!("did you mean '{near}'? ")).unwrap_or_default();
    Err(format!("unknown {what} '{word}'; {hint}known: {}", words().collect::<Vec<_>>().join(", ")))
}

pub(super) fn category(word: &str) -> Result<Category, String> {
    one_of("category", word, Category::ALL, Category::as_str)
}

pub(super) fn dialect(word: &str) -> Result<Dialect, String> {
    one_of("dialect", word, &Dialect::REGISTERED, Dialect::as_str)
}

fn severity(word: &str) -> Result<Severity, String> {
    one_of("severity", word, Severity::ALL, Severity::as_str)
}

fn recovery(word: &str) -> Result<Recovery, String> {
    one_of("recovery", word, Recovery::ALL, Recovery::as_str)
}

fn origin(word: Option<&str>) -> Result<EntryOrigin, String> {
    match word {
        None => Ok(EntryOrigin::Specification),
        Some("field") => Ok(EntryOrigin::Field),
        Some(other) => Err(format!("unknown origin '{other}'; leave it out, or write \"field\"")),
    }
}

/// Parses the name of a details field: `operation?` is optional, `operation` is not.
pub(super) fn detail(field: &str) -> DetailField {
    match field.strip_suffix('?') {
        Some(name) => DetailField { name: name.to_owned(), optional: true },
        None => DetailField { name: field.to_owned(), optional: false },
    }
}

fn correction(row: CorrectionRow) -> Correction {
    Correction {
        http_status: row.http_status,
        message: row.message.map(|text| text.to_ascii_lowercase()),
        data: row.data,
        canonical: row.canonical,
    }
}

fn audit(row: AuditRow) -> AuditEvent {
    AuditEvent { event: row.event, canonical: row.canonical, description: row.description }
}

fn category_info(row: CategoryRow, faults: &Faults) -> Result<CategoryInfo, String> {
    let meaning = Meaning {
        category: category(&row.name)?,
        severity: severity(&row.severity)?,
        retryable: row.retryable,
        recovery: recovery(&row.recovery)?,
        fault: faults.find(&row.name),
    };
    Ok(CategoryInfo { meaning, description: row.description, runbook: row.runbook })
}

fn range(dialect: Dialect, row: RangeRow) -> Result<Range, String> {
    if row.low > row.high {
        return Err(format!("range '{}' runs from {} to {}", row.name, row.low, row.high));
    }
    Ok(Range { dialect, numbers: row.low..=row.high, name: row.name, category: category(&row.category)? })
}

fn inferences(source: Inference) -> Result<(Prefixes, Statuses, Faults), String> {
    let prefixes = source
        .prefixes
        .into_iter()
        .map(|row| Ok((row.prefix, category(&row.category)?)))
        .collect::<Result<Vec<_>, String>>()?;
    let statuses = source
        .statuses
        .into_iter()
        .map(|row| Ok((statuses(&row.status)?, row.canonical)))
        .collect::<Result<Vec<_>, String>>()?;
    let faults = source
        .faults
        .into_iter()
        .map(|row| Ok((row.prefix, one_of("fault", &row.fault, Fault::ALL, Fault::as_str)?)))
        .collect::<Result<Vec<_>, String>>()?;
    Ok((Prefixes::new(prefixes), Statuses::new(statuses), Faults::new(faults)))
}

fn statuses(pattern: &StatusPattern) -> Result<std::ops::RangeInclusive<u16>, String> {
    match pattern {
        StatusPattern::One(status) => Ok(*status..=*status),
        StatusPattern::Hundred(text) => {
            match text.strip_suffix("xx").and_then(|digit| digit.parse::<u16>().ok()) {
                Some(hundred @ 1..=9) => Ok(hundred * 100..=hundred * 100 + 99),
                _ => Err(format!("status '{text}' is neither a number nor of the form \"4xx\"")),
            }
        }
    }
}
