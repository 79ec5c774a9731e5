//! Who may come in. Every door shows what a client says of itself, and hears yes or no here, and nowhere else.

use std::fmt;
use std::sync::Arc;

/// What a client says of itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Credentials<'c> {
    /// Nothing.
    None,
    /// A bearer token: HTTP and Flight.
    Bearer(&'c str),
    /// A name and a password: PostgreSQL.
    Password {
        /// The name.
        user: &'c str,
        /// The password.
        password: &'c str,
    },
}

/// Secrets are never printed.
impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "nothing",
            Self::Bearer(_) => "a bearer token",
            Self::Password { .. } => "a password",
        })
    }
}

/// Why someone may not come in, in a sentence for him.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Denied(pub String);

/// Decides who may come in.
pub trait Gate: fmt::Debug + Send + Sync {
    /// Whether a client has to say something of itself at all.
    fn asks(&self) -> bool;

    /// Says yes or no.
    ///
    /// # Errors
    /// When it is no.
    fn admit(&self, credentials: Credentials<'_>) -> Result<(), Denied>;
}

/// Lets everyone in: for loopback.
#[derive(Debug, Clone, Copy)]
pub struct Open;

impl Gate for Open {
    fn asks(&self) -> bool {
        false
    }

    fn admit(&self, _: Credentials<'_>) -> Result<(), Denied> {
        Ok(())
    }
}

/// A gate, shared by all doors.
pub type SharedGate = Arc<dyn Gate>;
