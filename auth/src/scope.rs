//! The scopes of tokens.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The permissions of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Permits sending envelopes, spans and log records.
    Ingest,
    /// Permits reading: SQL, tails, metrics, status.
    Query,
    /// Permits everything.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Ingest, Self::Query, Self::Admin];

    /// Returns the name of the scope, which is stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Query => "query",
            Self::Admin => "admin",
        }
    }

    /// Returns true when a token with this scope may be used where `required` is required.
    #[must_use]
    pub fn allows(self, required: Self) -> bool {
        self == Self::Admin || self == required
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
        let scope = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        scope.ok_or_else(|| "unknown scope; use ingest, query or admin".to_owned())
    }
}
