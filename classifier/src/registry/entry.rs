//! The entry of one code in the registry.

use super::message::MessageTemplate;
use crate::category::{Category, Recovery, Severity};
use crate::dialect::Dialect;
use crate::fault::Fault;

/// One code of one dialect, with every default filled in.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The dialect of the code.
    pub dialect: Dialect,
    /// The code as it is sent: `TOKEN_EXPIRED`, `-32002`, `not_found`.
    pub code: String,
    /// The name of the code in the dialect, which is the code itself unless it is a number.
    pub name: String,
    /// The cross-dialect name.
    pub canonical: String,
    /// The meaning of the canonical code, with the entry's own values.
    pub meaning: Meaning,
    /// The HTTP status that the dialect assigns to the code.
    pub http_status: Option<u16>,
    /// The situation in which a server sends the code, in one sentence.
    pub description: String,
    /// The template that the message should follow.
    pub message: Option<MessageTemplate>,
    /// The details fields that its specification names.
    pub details: Vec<DetailField>,
    /// The exception classes that correspond to the code.
    pub types: Vec<String>,
    /// The origin of the entry.
    pub origin: EntryOrigin,
    /// The heading of the runbook for the code.
    pub runbook: String,
    /// Other meanings that real emitters give to the code under a condition.
    pub corrections: Vec<Correction>,
    /// True if the code only states that something failed, so that the wording of the message may be more specific.
    pub generic: bool,
    /// The stemmed words of its name, which are searched in messages.
    pub(crate) words: Vec<String>,
}

impl Entry {
    /// Returns the details fields that are required.
    pub fn required_details(&self) -> impl Iterator<Item = &str> {
        self.details.iter().filter(|field| !field.optional).map(|field| field.name.as_str())
    }
}

/// The meaning of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    /// The category of the canonical code.
    pub category: Category,
    /// The severity.
    pub severity: Severity,
    /// True if sending the same request again can help; `None` if only the payload can tell.
    pub retryable: Option<bool>,
    /// The recommended recovery.
    pub recovery: Recovery,
    /// The party at fault, as far as the code tells.
    pub fault: Option<Fault>,
}

/// A field of `details` or `data` that a specification names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetailField {
    /// The key of the field.
    pub name: String,
    /// True if a conforming payload may omit it.
    pub optional: bool,
}

/// The origin of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryOrigin {
    /// The dialect's published document.
    Specification,
    /// The code was seen in the payloads that servers send.
    Field,
    /// The operator's own file.
    Operator,
}

/// Another meaning of a code if a condition holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// The HTTP status that the payload must state.
    pub http_status: Option<u16>,
    /// The text that the message must contain, ignoring case.
    pub message: Option<String>,
    /// The key that the details or the data must contain.
    pub data: Option<String>,
    /// The canonical code if the condition holds.
    pub canonical: String,
}
