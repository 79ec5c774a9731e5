//! What the registry knows about one code.

use super::message::MessageTemplate;
use crate::category::{Category, Recovery, Severity};
use crate::dialect::Dialect;
use crate::fault::Fault;

/// One code of one dialect, with every default filled in.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Whose code it is.
    pub dialect: Dialect,
    /// The code as it is sent: `TOKEN_EXPIRED`, `-32002`, `not_found`.
    pub code: String,
    /// What the dialect calls it; the code itself unless it is a number.
    pub name: String,
    /// The cross-dialect name.
    pub canonical: String,
    /// What the canonical code, or the payload's silence, means for the caller.
    pub meaning: Meaning,
    /// The HTTP status that the dialect gives to it.
    pub http_status: Option<u16>,
    /// When a server sends it, in one sentence.
    pub description: String,
    /// How its message should read.
    pub message: Option<MessageTemplate>,
    /// The details fields that its specification names.
    pub details: Vec<DetailField>,
    /// The exception classes that stand for it.
    pub types: Vec<String>,
    /// Where we know it from.
    pub origin: Origin,
    /// The heading of the runbook that deals with it.
    pub runbook: String,
    /// What real emitters mean by it under a condition.
    pub corrections: Vec<Correction>,
    /// The code only says that something failed, so that the words of the message may say more.
    pub generic: bool,
    /// The words of its name, stemmed, to be looked for in a message.
    pub(crate) words: Vec<String>,
}

impl Entry {
    /// The details fields that must be there.
    pub fn required_details(&self) -> impl Iterator<Item = &str> {
        self.details.iter().filter(|field| !field.optional).map(|field| field.name.as_str())
    }
}

/// What follows from a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    /// The category of the canonical code.
    pub category: Category,
    /// How bad it is.
    pub severity: Severity,
    /// Whether sending the same again can help; `None` when only the payload can tell.
    pub retryable: Option<bool>,
    /// What to do.
    pub recovery: Recovery,
    /// Whose fault it is, as far as the code tells.
    pub fault: Option<Fault>,
}

/// A field of `details` or `data` that a specification names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetailField {
    /// Its key.
    pub name: String,
    /// Whether a conforming payload may leave it out.
    pub optional: bool,
}

/// Where a code is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The dialect's published document.
    Specification,
    /// Seen in what servers send.
    Field,
    /// The operator's own file.
    Operator,
}

/// A code that means something else when a condition holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// Holds when the payload carries this status.
    pub http_status: Option<u16>,
    /// Holds when the message contains this, ignoring case.
    pub message: Option<String>,
    /// Holds when the details or the data have this key.
    pub data: Option<String>,
    /// What the code means then.
    pub canonical: String,
}
