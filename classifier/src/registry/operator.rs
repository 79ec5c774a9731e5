//! The operator's registry file: codes, profiles, and the ways in which the operator's records differ from the
//! defaults.
//!
//! ```toml
//! [[code]]                                   # a code that you define, and its meaning
//! code = "GITHUB_ABUSE_DETECTED"
//! category = "RATE_LIMIT"
//! message = "Abuse detection triggered: {reason}"
//! maps_from_http = [403]                     # also: maps_from = [4001, "SOME_CODE"]
//! condition = "message contains 'abuse'"     # guards the mapping
//!
//! [profiles.services]                        # a dialect per service; a trailing * matches any text
//! "orders-*" = "mcp-reference"
//!
//! [find]
//! paths = ["kubernetes.payload"]             # where else an envelope may be
//!
//! [fields]
//! service = ["svc"]                          # other names of context fields
//!
//! [redact]
//! keys = ["national_id"]
//! patterns = ["ACME-[0-9]{6}"]
//! off = ["email"]
//! ```
//!
//! If anything in the file is wrong, the whole file is rejected, because half a file would classify half of the
//! traffic in a way that nobody wrote down.

use super::Registry;
use super::condition::Condition;
use super::entry::{Entry, EntryOrigin, Meaning};
use super::error::{RegistryError, line_of, nearest, parse};
use super::load::{category, detail, dialect, meaning, runbook};
use super::message::MessageTemplate;
use super::source::{CodeText, Retryable};
use super::words::stems;
use crate::context::ContextField;
use crate::dialect::Dialect;
use crate::redact::Rule;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// An operator's file after validation.
#[derive(Debug, Clone, Default)]
pub struct OperatorFile {
    /// Codes and mappings in the order in which they are written. The first one that applies wins.
    pub entries: Vec<OperatorEntry>,
    /// Dialects by service name.
    pub services: Vec<Profile>,
    /// Dialects by source.
    pub sources: Vec<Profile>,
    /// Dotted paths of further locations in which an envelope may be found.
    pub paths: Vec<String>,
    /// Additional names of context fields.
    pub fields: Vec<(String, ContextField)>,
    /// Additions and exceptions to redaction.
    pub redaction: RedactionSettings,
}

/// A code that the operator defines, or a mapping to a code.
#[derive(Debug, Clone)]
pub struct OperatorEntry {
    /// The entry of the code.
    pub entry: Entry,
    /// The only dialect to whose records it applies, if any.
    pub dialect: Option<Dialect>,
    /// The only service to which it applies, if any.
    pub service: Option<String>,
    /// Other codes that it replaces.
    pub maps_from: Vec<String>,
    /// HTTP statuses for which it replaces the default mapping.
    pub maps_from_http: Vec<u16>,
    /// The condition of the mapping, or of the code itself if there is no mapping.
    pub condition: Option<Condition>,
    /// The line in the file.
    pub line: usize,
}

/// The dialect of everything whose name matches a pattern.
#[derive(Debug, Clone)]
pub struct Profile {
    /// A name. A trailing `*` matches any text.
    pub pattern: String,
    /// The dialect.
    pub dialect: Dialect,
}

impl Profile {
    /// Returns true if a name matches the pattern.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == self.pattern,
        }
    }
}

/// An operator's changes to redaction.
#[derive(Debug, Clone, Default)]
pub struct RedactionSettings {
    /// Additional keys whose values are secrets.
    pub keys: Vec<String>,
    /// Additional patterns of secrets.
    pub patterns: Vec<regex::Regex>,
    /// Rules that are disabled.
    pub off: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    code: Vec<Spanned<Row>>,
    #[serde(default)]
    profiles: Profiles,
    #[serde(default)]
    find: Find,
    #[serde(default)]
    fields: BTreeMap<Spanned<String>, Vec<String>>,
    #[serde(default)]
    redact: Redact,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    code: Spanned<CodeText>,
    category: Option<Spanned<String>>,
    canonical: Option<Spanned<String>>,
    #[serde(default)]
    description: String,
    #[serde(alias = "message_template")]
    message: Option<String>,
    #[serde(default)]
    details: Vec<String>,
    severity: Option<String>,
    retryable: Option<Retryable>,
    recovery: Option<String>,
    runbook: Option<String>,
    dialect: Option<Spanned<String>>,
    service: Option<String>,
    #[serde(default)]
    maps_from: Vec<CodeText>,
    #[serde(default)]
    maps_from_http: Vec<Spanned<u16>>,
    condition: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Profiles {
    services: BTreeMap<String, Spanned<String>>,
    sources: BTreeMap<String, Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Find {
    paths: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Redact {
    keys: Vec<String>,
    patterns: Vec<Spanned<String>>,
    off: Vec<Spanned<String>>,
}

/// The byte offset and the reason of a rejection.
type Refusal = (usize, String);

impl OperatorFile {
    /// Parses and validates a file against the shipped registry.
    pub(super) fn parse(file: &str, text: &str, registry: &Registry) -> Result<Self, RegistryError> {
        let source: File = parse(file, text)?;
        checked(source, text, registry).map_err(|(offset, reason)| RegistryError {
            file: file.to_owned(),
            line: line_of(text, offset),
            reason,
        })
    }

    /// Returns the dialect that a profile assigns to a service or a source.
    pub(crate) fn profile(&self, service: Option<&str>, source: Option<&str>) -> Option<Dialect> {
        let find = |profiles: &[Profile], name: Option<&str>| {
            profiles
                .iter()
                .find(|profile| name.is_some_and(|name| profile.fits(name)))
                .map(|profile| profile.dialect)
        };
        find(&self.services, service).or_else(|| find(&self.sources, source))
    }
}

fn checked(source: File, text: &str, registry: &Registry) -> Result<OperatorFile, Refusal> {
    let mut entries: Vec<OperatorEntry> = Vec::new();
    for row in source.code {
        let at = row.span().start;
        let entry = operator_entry(row.into_inner(), line_of(text, at), registry)?;
        collision(&entry, &entries, registry).map_or(Ok(()), |reason| Err((at, reason)))?;
        entries.push(entry);
    }
    Ok(OperatorFile {
        entries,
        services: profiles(source.profiles.services)?,
        sources: profiles(source.profiles.sources)?,
        paths: source.find.paths,
        fields: fields(source.fields)?,
        redaction: redaction(source.redact)?,
    })
}

/// Adds the offset to the reason of an error.
fn at<T>(offset: usize, result: Result<T, String>) -> Result<T, Refusal> {
    result.map_err(|reason| (offset, reason))
}

fn operator_entry(row: Row, line: usize, registry: &Registry) -> Result<OperatorEntry, Refusal> {
    let here = row.code.span().start;
    let code = row.code.into_inner().into_text();
    if code.is_empty() {
        return Err((here, "the code is empty".to_owned()));
    }
    let shipped = registry.canonical_entry(&code);
    let category = match row.category {
        Some(word) => Some(at(word.span().start, category(word.get_ref()))?),
        None => None,
    };
    let canonical =
        canonical(&code, category, row.canonical, shipped, registry).map_err(|reason| (here, reason))?;
    let category = registry.category(&canonical);
    let defaults: Meaning = shipped.map_or_else(|| registry.defaults(category), |entry| entry.meaning);
    let condition = match row.condition {
        Some(text) => Some(at(text.span().start, Condition::parse(text.get_ref()))?),
        None => None,
    };
    let maps_from_http = row
        .maps_from_http
        .iter()
        .map(|status| match status.get_ref() {
            100..=599 => Ok(*status.get_ref()),
            other => Err((status.span().start, format!("{other} is not an HTTP status (100 to 599)"))),
        })
        .collect::<Result<_, _>>()?;
    let entry = Entry {
        dialect: Dialect::Unknown,
        name: code.clone(),
        words: stems(&code),
        meaning: at(
            here,
            meaning(defaults, row.severity.as_deref(), row.retryable, row.recovery.as_deref()),
        )?,
        http_status: row.maps_from_http.first().map(|status| *status.get_ref()),
        description: row.description,
        message: row.message.as_deref().map(MessageTemplate::new),
        details: row.details.iter().map(|field| detail(field)).collect(),
        types: Vec::new(),
        origin: EntryOrigin::Operator,
        runbook: row.runbook.unwrap_or_else(|| runbook(registry.categories(), category)),
        generic: false,
        corrections: Vec::new(),
        code,
        canonical,
    };
    Ok(OperatorEntry {
        entry,
        dialect: match row.dialect {
            Some(word) => Some(at(word.span().start, dialect(word.get_ref()))?),
            None => None,
        },
        service: row.service,
        maps_from: row.maps_from.into_iter().map(CodeText::into_text).collect(),
        maps_from_http,
        condition,
        line,
    })
}

/// Returns the canonical code of an operator's code, or an error if it contradicts the category that the operator
/// claims.
fn canonical(
    code: &str,
    category: Option<crate::category::Category>,
    canonical: Option<Spanned<String>>,
    shipped: Option<&Entry>,
    registry: &Registry,
) -> Result<String, String> {
    if let Some(canonical) = canonical {
        let canonical = canonical.into_inner();
        let own = registry.prefix(&canonical).ok_or_else(|| {
            format!("canonical '{canonical}' starts with no registered prefix, such as RATE_LIMIT_")
        })?;
        return match category {
            Some(category) if category != own => {
                Err(format!("canonical '{canonical}' is {own}, but the category says {category}"))
            }
            _ => Ok(canonical),
        };
    }
    match (shipped, category, registry.prefix(code)) {
        (Some(entry), Some(category), _) if entry.meaning.category != category => Err(format!(
            "'{code}' is {} in the registry that ships ({}), so its category cannot be {category}",
            entry.meaning.category, entry.dialect
        )),
        (Some(entry), _, _) => Ok(entry.canonical.clone()),
        (None, Some(category), Some(own)) if own == category => Ok(code.to_owned()),
        (None, Some(category), _) => Ok(crate::lookup::canonical_name(category, code)),
        (None, None, Some(_)) => Ok(code.to_owned()),
        (None, None, None) => Err(format!("'{code}' needs a category, such as category = \"RATE_LIMIT\"")),
    }
}

/// Returns the reason for which an entry conflicts with earlier or shipped entries, if it does.
fn collision(new: &OperatorEntry, before: &[OperatorEntry], registry: &Registry) -> Option<String> {
    let code = &new.entry.code;
    let defines = |entry: &OperatorEntry| entry.maps_from.is_empty() && entry.maps_from_http.is_empty();
    if defines(new)
        && new.condition.is_none()
        && let Some(shipped) =
            registry.find(code).find(|entry| new.dialect.is_none_or(|d| d == entry.dialect))
    {
        return Some(format!(
            "'{code}' collides with the entry that ships for {}; give it a condition, or map it with maps_from",
            shipped.dialect
        ));
    }
    let same_scope = |other: &OperatorEntry| other.dialect == new.dialect && other.service == new.service;
    for other in before.iter().filter(|other| same_scope(other)) {
        let twice = other.entry.code == *code
            && other.condition == new.condition
            && other.maps_from == new.maps_from
            && other.maps_from_http == new.maps_from_http;
        if twice {
            return Some(format!("'{code}' collides with the same code on line {}", other.line));
        }
        let unguarded = other.condition.is_none() && new.condition.is_none();
        if unguarded && let Some(code) = new.maps_from.iter().find(|code| other.maps_from.contains(code)) {
            return Some(format!(
                "code '{code}' is already mapped to '{}' on line {}, and neither has a condition",
                other.entry.code, other.line
            ));
        }
        if unguarded
            && let Some(status) =
                new.maps_from_http.iter().find(|status| other.maps_from_http.contains(status))
        {
            return Some(format!(
                "status {status} is already mapped to '{}' on line {}, and neither has a condition",
                other.entry.code, other.line
            ));
        }
    }
    None
}

fn profiles(rows: BTreeMap<String, Spanned<String>>) -> Result<Vec<Profile>, Refusal> {
    let mut profiles = rows
        .into_iter()
        .map(|(pattern, word)| {
            Ok(Profile { pattern, dialect: at(word.span().start, dialect(word.get_ref()))? })
        })
        .collect::<Result<Vec<_>, Refusal>>()?;
    // The most specific pattern is tried first, and an exact name before any pattern.
    profiles
        .sort_by_key(|profile| (profile.pattern.ends_with('*'), std::cmp::Reverse(profile.pattern.len())));
    Ok(profiles)
}

fn fields(rows: BTreeMap<Spanned<String>, Vec<String>>) -> Result<Vec<(String, ContextField)>, Refusal> {
    let mut fields = Vec::new();
    for (word, names) in rows {
        let field = ContextField::from_name(word.get_ref()).ok_or_else(|| {
            let known = ContextField::ALL.iter().map(|field| field.as_str());
            let hint = nearest(word.get_ref(), known.clone())
                .map(|near| format!("did you mean '{near}'? "))
                .unwrap_or_default();
            let known = known.collect::<Vec<_>>().join(", ");
            (word.span().start, format!("unknown field '{}'; {hint}known: {known}", word.get_ref()))
        })?;
        fields.extend(names.into_iter().map(|name| (name, field)));
    }
    Ok(fields)
}

fn redaction(source: Redact) -> Result<RedactionSettings, Refusal> {
    let patterns = source
        .patterns
        .into_iter()
        .map(|pattern| {
            let compiled = regex::RegexBuilder::new(pattern.get_ref()).size_limit(1 << 20).build();
            at(pattern.span().start, compiled.map_err(|error| format!("not a regular expression: {error}")))
        })
        .collect::<Result<_, _>>()?;
    let off = source
        .off
        .into_iter()
        .map(|word| {
            Rule::from_name(word.get_ref()).ok_or_else(|| {
                let known = Rule::ALL.iter().map(|rule| rule.as_str()).collect::<Vec<_>>().join(", ");
                (word.span().start, format!("unknown redaction rule '{}'; known: {known}", word.get_ref()))
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(RedactionSettings { keys: source.keys, patterns, off })
}
