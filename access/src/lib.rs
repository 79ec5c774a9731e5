//! Who may come in: tokens with scopes, the gate that every door asks, and TLS around all of it.
//!
//! # A tour
//!
//! 1. [`Secret`] is a token as its owner has it: 32 random bytes, shown once.
//! 2. [`Tokens`] is what we know of tokens: names, scopes, expiry, hashes; from a file or the environment.
//! 3. [`Gate`] says yes or no to what a client says of itself ([`Credentials`]), and counts and slows the noes.
//! 4. [`scram`] is how a PostgreSQL client proves that it has a token without sending it.
//! 5. [`guarded`] puts the gate before routes; a [`Client`] is who was let in, and knows when that ends.
//! 6. [`tls`] is what listeners encrypt with; it may want certificates of clients.
//! 7. [`host`] keeps web pages of others from reaching a listener on loopback through a browser under a name of
//!    their own; [`Origin`]s are those whose pages may use the endpoints at all.
//! 8. [`Peers`] keeps one address from holding all connections of a listener.
//!
//! # What must always hold
//!
//! - A secret is never stored, printed or compared in a time that depends on it; only its hash is.
//! - A file with a mistake changes nothing, and what is said about it does not quote it.

mod client;
mod gate;
pub mod host;
mod layer;
mod origin;
mod peers;
mod revocation;
mod scope;
pub mod scram;
mod secret;
pub mod tls;
mod tokens;

pub use client::Client;
pub use gate::{CROSS_SITE_REMEDY, Credentials, Denied, Gate, Proof, Reason, credentials};
pub use layer::{guarded, open_to_all};
pub use origin::Origin;
pub use peers::{PeerSlot, Peers};
pub use scope::Scope;
pub use secret::Secret;
pub use tokens::{Token, Tokens, TokensError};
