//! What a token is for.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// To send: envelopes, spans, log records.
    Ingest,
    /// To read: SQL, tails, metrics, status.
    Query,
    /// Everything.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ingest, Self::Query, Self::Admin];

    /// A short, stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Query => "query",
            Self::Admin => "admin",
        }
    }

    /// Whether a token of this scope will do where another is wanted.
    #[must_use]
    pub fn allows(self, wanted: Self) -> bool {
        self == Self::Admin || self == wanted
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        known.ok_or_else(|| "a scope is ingest, query or admin".to_owned())
    }
}
