//! The evidence files as they are written, before anything is checked.

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

/// One pattern: words that speak for a canonical code, or against its category.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EvidenceRow {
    /// The wordings; a `*` at the end lets the last word go on.
    pub(super) any: Vec<String>,
    /// At least one of these must stand in the text as well.
    #[serde(default)]
    pub(super) with: Vec<String>,
    /// None of these may stand in the text.
    #[serde(default)]
    pub(super) without: Vec<String>,
    pub(super) canonical: String,
    pub(super) weight: i32,
    pub(super) fault: Option<String>,
    /// The language of the wordings, for whoever reads the file.
    #[serde(default, rename = "language")]
    _language: Option<String>,
}

/// What HTTP statuses inside a text stand for; without `high`, one status.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusRow {
    pub(super) low: u16,
    pub(super) high: Option<u16>,
    pub(super) canonical: String,
    pub(super) weight: i32,
    pub(super) fault: Option<String>,
}

/// What the SQLSTATEs that begin with these characters stand for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SqlstateRow {
    pub(super) prefix: String,
    pub(super) canonical: String,
    pub(super) fault: Option<String>,
}

/// `openings.toml`: how a text that states a failure begins.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpeningsFile {
    /// Openings that state a failure by themselves.
    pub(super) statements: Vec<String>,
    /// Openings that do so where a mark or a preposition follows, and not a noun.
    pub(super) phrases: Vec<String>,
    /// Openings that do so only in a short text whose words say the same.
    pub(super) short_statements: Vec<String>,
    /// Words that end a short sentence which states a failure.
    pub(super) endings: Vec<String>,
    /// Words inside a short sentence which states a failure.
    pub(super) inside: Vec<String>,
    /// Openings of texts that report no failure, whatever words follow.
    pub(super) harmless: Vec<String>,
    /// Words of a short text that say that the call worked.
    pub(super) worked: Vec<String>,
    /// Words that end a sentence which begins with "no" and states a failure.
    pub(super) none_given: Vec<String>,
    /// Words after which the cause follows.
    pub(super) causes: Vec<String>,
    /// Words after which advice follows, not the failure.
    pub(super) advice: Vec<String>,
}
