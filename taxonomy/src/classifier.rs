//! The way from bytes to events, put together.
//!
//! [`Rules`] is everything that does not change from record to record; share it. [`Classifier`] holds the
//! buffers of one thread and is fed record after record; nothing is allocated per field where it can be
//! helped.

mod build;
mod emit;
mod frame;
mod judge;
mod place;
mod signals;

use crate::context::Names;
use crate::dialect::Dialect;
use crate::envelope::{Finder, Scope};
use crate::event::Sink;
use crate::json::{Json, Parser};
use crate::limits::{Limits, MAX_ENVELOPE_LEVELS};
use crate::logfmt;
use crate::reason::Reason;
use crate::redact::{HashKey, Redactor};
use crate::registry::Registry;
use crate::signal::clues::AttributeNames;
use build::{Builder, Scratch};
use emit::Emitter;
use std::sync::Arc;

/// Keys of details and attributes that no specification names, but many records have.
const OTHER_COMMON_KEYS: [&str; 12] = [
    "type", "hint", "level", "severity", "audit", "method", "path", "logger", "host", "caller", "stream",
    "id",
];

/// What does not change from record to record: the registry, redaction, names and limits.
#[derive(Debug, Clone)]
pub struct Rules {
    registry: Registry,
    redactor: Redactor,
    names: Names,
    attribute_names: AttributeNames,
    limits: Limits,
}

impl Rules {
    /// Rules from a registry, with the key of the token hash.
    #[must_use]
    pub fn new(registry: Registry, hash_key: HashKey, limits: Limits) -> Self {
        let mut redactor = Redactor::new(hash_key, &registry.operator().redaction);
        let named =
            registry.entries().iter().flat_map(|entry| &entry.details).map(|field| field.name.as_str());
        redactor.judge(named.chain(OTHER_COMMON_KEYS));
        let own = &registry.operator().fields;
        let (names, attribute_names) = (Names::new(own), AttributeNames::new(own));
        Self { redactor, names, attribute_names, registry, limits }
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The registry in use.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The redactor in use.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

/// Where a record comes from, and what holds when it says nothing itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin<'a> {
    /// The receiver or file it came in by.
    pub source: Option<&'a str>,
    /// The service, when the record names none.
    pub service: Option<&'a str>,
    /// The environment, when the record names none.
    pub environment: Option<&'a str>,
    /// The dialect, when the record names none.
    pub dialect: Option<Dialect>,
    /// When it arrived, in microseconds since 1970.
    pub arrival: i64,
    /// Makes event ids; equal for a record that is sent again, different for any other.
    pub identity: u128,
}

/// Turns records into events, one after another.
pub struct Classifier {
    rules: Arc<Rules>,
    /// One for the record, and one for each level that may be opened below it.
    parsers: Vec<Parser>,
    /// The values of a logfmt line that were written with escapes.
    unescaped: Vec<u8>,
    scratch: Scratch,
}

impl Classifier {
    /// A classifier with empty buffers; they grow to what records need and stay.
    #[must_use]
    pub fn new(rules: Arc<Rules>) -> Self {
        let levels = rules.limits.envelope_levels.min(MAX_ENVELOPE_LEVELS);
        Self {
            parsers: (0..=levels).map(|_| Parser::new(rules.limits.json_depth)).collect(),
            scratch: Scratch::new(rules.limits.json_depth),
            rules,
            unescaped: Vec::new(),
        }
    }

    /// Classifies one record: a line of JSON or logfmt. Blank lines hold nothing and are passed over.
    pub fn classify(&mut self, record: &[u8], origin: &Origin<'_>, sink: &mut impl Sink) {
        let record = trim(record);
        if record.is_empty() {
            return;
        }
        if let Err(reason) = self.read(record, origin, sink) {
            sink.unrecognized(reason);
        }
    }

    fn read(&mut self, record: &[u8], origin: &Origin<'_>, sink: &mut impl Sink) -> Result<(), Reason> {
        if record.len() > self.rules.limits.line_bytes {
            return Err(Reason::TooLong);
        }
        let Self { rules, parsers, unescaped, scratch } = self;
        let Some((parser, deeper)) = parsers.split_first_mut() else { return Err(Reason::TooManyLevels) };
        let mut emitter = Emitter::new(Builder::new(rules, origin, None), scratch, sink);
        let mut finder = Finder { registry: &rules.registry, names: &rules.names, receiver: &mut emitter };
        let look = |json: Json<'_>| finder.record(json, &Scope::EMPTY, deeper);
        match record[0] {
            b'{' | b'[' | b'"' => parser.parse(record, look),
            _ => read_logfmt(record, parser, unescaped, look),
        }
    }
}

/// Without the byte-order mark and the white space around it.
fn trim(record: &[u8]) -> &[u8] {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    let record = record.strip_prefix(BYTE_ORDER_MARK).unwrap_or(record);
    record.trim_ascii()
}

/// A line that does not start like JSON may be logfmt.
fn read_logfmt(
    record: &[u8],
    parser: &mut Parser,
    unescaped: &mut Vec<u8>,
    look: impl FnOnce(Json<'_>),
) -> Result<(), Reason> {
    let text = std::str::from_utf8(record).map_err(|_| Reason::InvalidUtf8)?;
    unescaped.resize(unescaped.len().max(text.len()), 0);
    let read = parser.read_fields(|tape| logfmt::read(text, unescaped, tape), look);
    // A bare number or word is JSON, but holds nothing.
    let is_scalar = || matches!(text, "null" | "true" | "false") || text.parse::<f64>().is_ok();
    read.ok_or_else(|| if is_scalar() { Reason::NoEnvelope } else { Reason::NotJson { at: 0 } })
}

#[cfg(test)]
mod tests;
