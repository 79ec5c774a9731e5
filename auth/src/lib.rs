//! Authentication and authorization of clients, and the accept loop and TLS of every listener.
//!
//! # A tour
//!
//! 1. [`Secret`] is the text of a token: 32 random bytes, shown to the owner once.
//! 2. [`Tokens`] is the set of known tokens: names, scopes, expiry and hashes, from a file or the environment.
//! 3. [`Authenticator`] accepts or denies the [`Credentials`] of a client, counts the denials and slows them down.
//! 4. [`scram`] lets a PostgreSQL client prove that it has a token without sending it.
//! 5. [`require_scope`] is the middleware in front of routes. A [`Client`] is an authenticated client, and knows when
//!    its authentication ends.
//! 6. [`listener`] is the accept loop of every listener: it limits, counts and drains connections. [`tls`] has their
//!    TLS configuration, which may require client certificates.
//! 7. The `host_header` check keeps foreign web pages from reaching a listener on loopback by DNS rebinding; an allowed
//!    [`Origin`] is one whose pages may use the endpoints.
//! 8. [`browser_session`] lets a user sign in once, and then use a cookie in place of the token.
//! 9. [`ConnectionLimiter`] limits connections, and keeps one address from holding all of them.
//! 10. [`metrics`] declares and reports what connections and authentication count.
//!
//! # Invariants
//!
//! - A secret is never stored or printed, and is never compared in a time that depends on it; only its hash is stored.
//! - A file with a mistake changes nothing, and the error message does not quote the file.

mod authenticator;
pub mod browser_session;
mod client;
mod connection_limiter;
mod credentials;
mod denial;
mod host_header;
pub mod listener;
pub mod metrics;
mod middleware;
mod origin;
mod revocation;
mod scope;
pub mod scram;
mod secret;
pub mod tls;
mod tokens;

pub use authenticator::{Authenticator, PendingScram, SignInError, SignedIn};
pub use client::Client;
pub use connection_limiter::{ConnectionLimit, ConnectionLimiter, ConnectionPermit};
pub use credentials::Credentials;
pub use denial::{CROSS_SITE_REMEDY, Denial, DenialReason};
pub use middleware::{allow_anonymous, require_scope, require_scope_or_session};
pub use origin::Origin;
pub use scope::Scope;
pub use secret::Secret;
pub use tokens::{Token, Tokens, TokensError};
