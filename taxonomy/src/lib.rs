//! From bytes to events: finds the failures inside response envelopes, classifies them in one
//! cross-dialect taxonomy, groups them and takes the secrets out.
//!
//! Servers that agents call answer in envelopes, and most of their failures are invisible: a quota pause or
//! a permission denial travels as JSON text inside a *successful* reply. This library looks inside.
//!
//! # A tour
//!
//! One record goes through four rooms:
//!
//! 1. [`Classifier::classify`] bounds it, parses it onto a tape and opens its wrappers until an envelope is
//!    found (`envelope`). Whether a failure is *hidden* is decided there.
//!    [`Classifier::span`] and [`Classifier::log`] do the same for what a span or a log record keeps of a
//!    reply, and else take their own word for it ([`signal`]).
//! 2. `classify` looks the code up in the [`Registry`]: exact entries, then categories, ranges and prefixes,
//!    then HTTP statuses and phrases. What is a guess is marked *inferred*.
//! 3. [`Redactor`] takes the secrets out; [`template`] and [`fingerprint`] say which group it belongs to;
//!    [`Finding`]s say what the server could do better.
//! 4. The [`Sink`] gets an [`Event`] that borrows from the record, and a [`Call`] for the denominators.
//!
//! ```
//! use std::sync::Arc;
//! use taxonomy::{Call, Classifier, Event, HashKey, Limits, Origin, Reason, Registry, Rules, Sink};
//!
//! struct Print(Vec<String>);
//! impl Sink for Print {
//!     fn event(&mut self, event: &Event<'_>) {
//!         self.0.push(format!("{} {} hidden={}", event.category, event.canonical, event.hidden));
//!     }
//!     fn call(&mut self, _: &Call<'_>) {}
//!     fn unrecognized(&mut self, reason: Reason) {
//!         self.0.push(reason.to_string());
//!     }
//! }
//!
//! let rules = Arc::new(Rules::new(Registry::builtin()?, HashKey::FIXED, Limits::default()));
//! let mut classifier = Classifier::new(rules);
//! let mut print = Print(Vec::new());
//! let line = br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":
//!     "{\"success\":false,\"error\":{\"code\":\"RATE_LIMIT_QUOTA_PAUSE\",\"message\":\"Paused\"}}"}]}}"#;
//! classifier.classify(line, &Origin::default(), &mut print);
//! assert_eq!(print.0, ["RATE_LIMIT RATE_LIMIT_QUOTA_PAUSE hidden=true"]);
//! # Ok::<(), taxonomy::RegistryError>(())
//! ```
//!
//! # What is not here
//!
//! No clock, no IO, no global state, no randomness: the same input with the same registry and the same hash
//! key gives the same output. The time of arrival and the identity of a record come in with [`Origin`].

mod category;
mod classifier;
mod classify;
mod code;
mod context;
mod denial;
mod details;
mod dialect;
mod eight;
mod envelope;
mod event;
mod findings;
pub mod fingerprint;
mod json;
mod known;
mod limits;
mod logfmt;
mod quota;
mod reason;
mod redact;
pub mod registry;
mod retry_after;
pub mod signal;
pub mod template;
pub mod time;

pub use category::{Category, Recovery, Severity};
pub use classifier::{Classifier, Origin, Rules};
pub use classify::LookedUp;
pub use context::Field;
pub use denial::DangerLevel;
pub use dialect::Dialect;
pub use event::{Call, Context, Event, Kind, Outcome, Sink, TimeSource};
pub use findings::{Finding, Findings};
pub use json::{mend_numbers, mend_surrogates};
pub use limits::{Limits, Relation};
pub use quota::QuotaLevel;
pub use reason::Reason;
pub use redact::{HashKey, Redactor, Rule, TokenHash};
pub use registry::{Registry, RegistryError};
