//! The evidence files as they are written, before validation.

use serde::Deserialize;

/// One file of evidence: a theme such as access, limits or validation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EvidenceFile {
    #[serde(default)]
    pub(super) evidence: Vec<EvidenceRow>,
    #[serde(default)]
    pub(super) status: Vec<StatusRow>,
    #[serde(default)]
    pub(super) sqlstate: Vec<SqlstateRow>,
}

/// One pattern: words that indicate a canonical code, or that count against its category.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EvidenceRow {
    /// The wordings. A `*` at the end allows the last word to continue.
    pub(super) any: Vec<String>,
    /// At least one of these must occur in the text as well.
    #[serde(default)]
    pub(super) with: Vec<String>,
    /// None of these may occur in the text.
    #[serde(default)]
    pub(super) without: Vec<String>,
    pub(super) canonical: String,
    pub(super) weight: i32,
    pub(super) fault: Option<String>,
    /// The language of the wordings, for readers of the file.
    #[serde(default, rename = "language")]
    _language: Option<String>,
}

/// The meaning of HTTP statuses inside a text. Without `high`, the row is about one status.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusRow {
    pub(super) low: u16,
    pub(super) high: Option<u16>,
    pub(super) canonical: String,
    pub(super) weight: i32,
    pub(super) fault: Option<String>,
}

/// The meaning of the SQLSTATEs that begin with these characters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SqlstateRow {
    pub(super) prefix: String,
    pub(super) canonical: String,
    pub(super) fault: Option<String>,
}

/// The contents of `openings.toml`: the beginnings of texts that state a failure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpeningsFile {
    /// Openings that state a failure by themselves.
    pub(super) statements: Vec<String>,
    /// Openings that state a failure if punctuation or a preposition follows, but not a noun.
    pub(super) phrases: Vec<String>,
    /// Openings that state a failure only in a short text whose wording is strong evidence as well.
    pub(super) short_statements: Vec<String>,
    /// Words at the end of a short sentence that states a failure.
    pub(super) endings: Vec<String>,
    /// Words inside a short sentence that states a failure.
    pub(super) inside: Vec<String>,
    /// Openings of texts that report no failure, whatever words follow.
    pub(super) harmless: Vec<String>,
    /// Words of a short text that state that the call succeeded.
    pub(super) worked: Vec<String>,
    /// Words at the end of a sentence that begins with "no" and states a failure.
    pub(super) none_given: Vec<String>,
    /// Words that introduce the cause.
    pub(super) causes: Vec<String>,
    /// Words that introduce advice instead of the failure.
    pub(super) advice: Vec<String>,
}
