//! The registry's data files as they are written, before validation.

use serde::Deserialize;

/// The contents of `categories.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Categories {
    pub(super) category: Vec<CategoryRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CategoryRow {
    pub(super) name: String,
    pub(super) severity: String,
    pub(super) retryable: Option<bool>,
    pub(super) recovery: String,
    pub(super) description: String,
    pub(super) runbook: String,
}

/// The contents of `inference.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Inference {
    pub(super) prefixes: Vec<PrefixRow>,
    pub(super) statuses: Vec<StatusRow>,
    pub(super) faults: Vec<FaultRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrefixRow {
    pub(super) prefix: String,
    pub(super) category: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusRow {
    pub(super) status: StatusPattern,
    pub(super) canonical: String,
}

/// An HTTP status such as `404`, or `"4xx"` for the rest of a hundred.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum StatusPattern {
    One(u16),
    Hundred(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultRow {
    pub(super) prefix: String,
    pub(super) fault: String,
}

/// The contents of the file of one dialect.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DialectFile {
    pub(super) dialect: String,
    pub(super) title: String,
    pub(super) description: String,
    #[serde(default)]
    pub(super) ranges: Vec<RangeRow>,
    #[serde(default)]
    pub(super) code: Vec<CodeRow>,
    #[serde(default)]
    pub(super) audit: Vec<AuditRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RangeRow {
    pub(super) low: i64,
    pub(super) high: i64,
    pub(super) name: String,
    pub(super) category: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CodeRow {
    pub(super) code: CodeText,
    pub(super) name: Option<String>,
    pub(super) canonical: Option<String>,
    pub(super) description: String,
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) details: Vec<String>,
    #[serde(default)]
    pub(super) types: Vec<String>,
    pub(super) severity: Option<String>,
    pub(super) retryable: Option<Retryable>,
    pub(super) recovery: Option<String>,
    pub(super) http_status: Option<u16>,
    pub(super) origin: Option<String>,
    pub(super) runbook: Option<String>,
    /// True if the code only states that something failed, so that the wording of the message may be more specific.
    #[serde(default)]
    pub(super) generic: bool,
    #[serde(default)]
    pub(super) corrections: Vec<CorrectionRow>,
}

/// A code, which is a text or a whole number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(untagged)]
pub(super) enum CodeText {
    Number(i64),
    Text(String),
}

impl CodeText {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.trim().to_owned(),
        }
    }
}

/// The `retryable` field: `true`, `false`, or `"unknown"` if the category has a default that does not apply to the
/// code.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Retryable {
    Known(bool),
    Word(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CorrectionRow {
    pub(super) http_status: Option<u16>,
    pub(super) message: Option<String>,
    pub(super) data: Option<String>,
    pub(super) canonical: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditRow {
    pub(super) event: String,
    pub(super) canonical: String,
    pub(super) description: String,
}
