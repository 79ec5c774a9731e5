//! Compiles the evidence files into a table.

use super::normalize::Normalized;
use super::opening::{Beginnings, Endings, Openings};
use super::source::{EvidenceFile, EvidenceRow, OpeningsFile};
use super::{EvidenceTable, Pattern, PatternFinder, Role, Row, Sqlstate, Status};
use crate::category::Category;
use crate::fault::Fault;
use aho_corasick::AhoCorasick;
use std::collections::HashMap;

/// The embedded files of the table, one per theme.
const FILES: [(&str, &str); 10] = [
    ("access.toml", include_str!("../../registry/evidence/access.toml")),
    ("not-found.toml", include_str!("../../registry/evidence/not-found.toml")),
    ("validation.toml", include_str!("../../registry/evidence/validation.toml")),
    ("conflict.toml", include_str!("../../registry/evidence/conflict.toml")),
    ("limits.toml", include_str!("../../registry/evidence/limits.toml")),
    ("internal.toml", include_str!("../../registry/evidence/internal.toml")),
    ("transport.toml", include_str!("../../registry/evidence/transport.toml")),
    ("protocol.toml", include_str!("../../registry/evidence/protocol.toml")),
    ("statuses.toml", include_str!("../../registry/evidence/statuses.toml")),
    ("languages.toml", include_str!("../../registry/evidence/languages.toml")),
];
const OPENINGS: &str = include_str!("../../registry/evidence/openings.toml");

/// Reads and compiles the table. `category` returns the category of a canonical code.
pub(crate) fn load(category: impl Fn(&str) -> Option<Category>) -> Result<EvidenceTable, String> {
    let mut builder =
        Builder { category, rows: Vec::new(), statuses: Vec::new(), sqlstates: Vec::new(), uses: Vec::new() };
    for (name, text) in FILES {
        let file: EvidenceFile = toml::from_str(text).map_err(|error| format!("evidence/{name}: {error}"))?;
        builder.add(file).map_err(|reason| format!("evidence/{name}: {reason}"))?;
    }
    let file: OpeningsFile =
        toml::from_str(OPENINGS).map_err(|error| format!("evidence/openings.toml: {error}"))?;
    builder.finish(file)
}

struct Builder<C> {
    category: C,
    rows: Vec<Row>,
    statuses: Vec<Status>,
    sqlstates: Vec<Sqlstate>,
    /// The wordings, each with the row and the role in which it is used.
    uses: Vec<(String, usize, Role)>,
}

impl<C: Fn(&str) -> Option<Category>> Builder<C> {
    fn add(&mut self, file: EvidenceFile) -> Result<(), String> {
        for row in file.evidence {
            self.add_row(row)?;
        }
        for row in file.status {
            self.statuses.push(Status {
                category: self.category_of(&row.canonical)?,
                statuses: row.low..=row.high.unwrap_or(row.low),
                canonical: row.canonical,
                weight: row.weight,
                fault: fault(row.fault.as_deref())?,
            });
        }
        for row in file.sqlstate {
            self.sqlstates.push(Sqlstate {
                category: self.category_of(&row.canonical)?,
                prefix: row.prefix.to_ascii_lowercase(),
                canonical: row.canonical,
                fault: fault(row.fault.as_deref())?,
            });
        }
        Ok(())
    }

    fn category_of(&self, canonical: &str) -> Result<Category, String> {
        (self.category)(canonical).ok_or_else(|| format!("'{canonical}' starts with no registered prefix"))
    }

    fn add_row(&mut self, row: EvidenceRow) -> Result<(), String> {
        let index = self.rows.len();
        if row.weight == 0 || row.any.is_empty() {
            return Err(format!("a row of '{}' has no weight or no wording", row.canonical));
        }
        let roles = [(&row.any, Role::Any), (&row.with, Role::With), (&row.without, Role::Without)];
        for (wordings, role) in roles {
            self.uses.extend(wordings.iter().map(|wording| (wording.clone(), index, role)));
        }
        self.rows.push(Row {
            category: self.category_of(&row.canonical)?,
            fault: fault(row.fault.as_deref())?,
            weight: row.weight,
            has_with: !row.with.is_empty(),
            any: row.any,
            canonical: row.canonical,
        });
        Ok(())
    }

    fn finish(mut self, openings: OpeningsFile) -> Result<EvidenceTable, String> {
        self.uses.extend(openings.advice.iter().map(|wording| (wording.clone(), 0, Role::Advice)));
        self.uses.extend(openings.causes.iter().map(|wording| (wording.clone(), 0, Role::Cause)));
        let mut patterns: Vec<Pattern> = Vec::new();
        let mut texts: Vec<String> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for (wording, row, role) in self.uses {
            let (text, is_stem) = match wording.strip_suffix('*') {
                Some(stem) => (Normalized::of_pattern(stem), true),
                None => (Normalized::of_pattern(&wording), false),
            };
            if text.trim().is_empty() {
                return Err(format!("'{wording}' has no words"));
            }
            let is_class = !wording.contains(' ')
                && ["Error", "Exception"]
                    .iter()
                    .any(|ending| wording.ends_with(ending) && wording != *ending);
            let index = *known.entry(format!("{text}\0{is_stem}\0{is_class}")).or_insert_with(|| {
                texts.push(text.clone());
                patterns.push(Pattern { is_stem, is_class, uses: Vec::new() });
                patterns.len() - 1
            });
            patterns[index].uses.push((row, role));
        }
        if self.rows.len() >= usize::from(u16::MAX) {
            return Err(format!("{} rows are too many", self.rows.len()));
        }
        // Single statuses and longer prefixes come first.
        self.statuses.sort_by_key(|row| row.statuses.end() - row.statuses.start());
        self.sqlstates.sort_by_key(|row| std::cmp::Reverse(row.prefix.len()));
        let normalized = |list: Vec<String>| -> Vec<String> {
            list.iter()
                .map(|text| {
                    let stem = text.strip_suffix('*');
                    let form = Normalized::of_pattern(stem.unwrap_or(text));
                    if stem.is_some() { form + "*" } else { form }
                })
                .collect()
        };
        let beginnings = |list| Beginnings::new(normalized(list));
        let finder_of = |list: Vec<String>| {
            let error = |error| format!("the openings cannot be searched for: {error}");
            AhoCorasick::new(normalized(list)).map(Some).map_err(error)
        };
        let openings = Openings {
            statements: beginnings(openings.statements),
            phrases: beginnings(openings.phrases),
            short_statements: beginnings(openings.short_statements),
            harmless: beginnings(openings.harmless),
            endings: Endings::new(normalized(openings.endings)),
            none_given: normalized(openings.none_given),
            inside: finder_of(openings.inside)?,
            worked: finder_of(openings.worked)?,
        };
        Ok(EvidenceTable {
            rows: self.rows,
            patterns,
            finder: PatternFinder::new(texts),
            statuses: self.statuses,
            sqlstates: self.sqlstates,
            openings,
        })
    }
}

fn fault(word: Option<&str>) -> Result<Option<Fault>, String> {
    word.map(|word| Fault::from_name(word).ok_or_else(|| format!("unknown fault '{word}'"))).transpose()
}
