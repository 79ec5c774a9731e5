//! Turns bytes into events: finds the failures inside response envelopes, classifies them in one cross-dialect
//! taxonomy, groups them and removes their secrets.
//!
//! Servers that agents call reply in envelopes, and most of their failures are invisible: a quota pause or a
//! permission denial travels as JSON text inside a *successful* reply. This library inspects that text.
//!
//! # A tour
//!
//! A record passes through four stages:
//!
//! 1. [`Classifier::classify`] checks the limits, finds the JSON in the record (`framing`), parses it onto a tape and
//!    opens its wrappers until an envelope is found (`envelope`). This stage decides whether a failure is *hidden*.
//!    [`Classifier::span`] and [`Classifier::log`] do the same for the reply that a span or a log record captured;
//!    without one, its own attributes and status are used ([`telemetry`]).
//! 2. `lookup` looks the code up in the [`Registry`]: exact entries first, then categories, ranges and prefixes, then
//!    HTTP statuses and the wording of the message (`evidence`). A guess is marked *inferred*.
//! 3. [`Redactor`] removes the secrets; [`template`] and [`fingerprint`] determine the group that the event belongs
//!    to; [`Finding`]s are improvements that the server could make.
//! 4. The [`Sink`] receives an [`Event`] that borrows from the record, and a [`Call`] for the denominators of rates.
//!
//! ```
//! use std::sync::Arc;
//! use classifier::{Call, Classifier, Event, HashKey, Limits, RecordOrigin, Registry, Rules, Sink, UnrecognizedReason};
//!
//! struct Print(Vec<String>);
//! impl Sink for Print {
//!     fn event(&mut self, event: &Event<'_>) {
//!         self.0.push(format!("{} {} hidden={}", event.category, event.canonical, event.hidden));
//!     }
//!     fn call(&mut self, _: &Call<'_>) {}
//!     fn unrecognized(&mut self, reason: UnrecognizedReason) {
//!         self.0.push(reason.to_string());
//!     }
//! }
//!
//! let rules = Arc::new(Rules::new(Registry::builtin()?, HashKey::FIXED, Limits::default()));
//! let mut classifier = Classifier::new(rules);
//! let mut print = Print(Vec::new());
//! let line = br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":
//!     "{\"success\":false,\"error\":{\"code\":\"RATE_LIMIT_QUOTA_PAUSE\",\"message\":\"Paused\"}}"}]}}"#;
//! classifier.classify(line, &RecordOrigin::default(), &mut print);
//! assert_eq!(print.0, ["RATE_LIMIT RATE_LIMIT_QUOTA_PAUSE hidden=true"]);
//! # Ok::<(), classifier::RegistryError>(())
//! ```
//!
//! # Non-goals
//!
//! The library has no clock, no I/O, no global state and no randomness: the same input with the same registry and the
//! same hash key gives the same output. The time of arrival and the identity of a record are passed in with
//! [`RecordOrigin`].

mod category;
mod classifier;
mod code;
mod context;
mod denial;
mod details;
mod dialect;
mod envelope;
mod event;
mod evidence;
mod fault;
mod findings;
pub mod fingerprint;
mod framing;
mod json;
mod limits;
mod logfmt;
mod lookup;
mod name_table;
mod quota;
mod reason;
mod redact;
pub mod registry;
mod request_tracker;
mod retry_after;
mod string_enum;
mod swar;
pub mod telemetry;
pub mod template;
pub mod time;

pub use category::{Category, Recovery, Severity};
pub use classifier::{Classifier, RecordOrigin, Rules};
pub use context::ContextField;
pub use denial::DangerLevel;
pub use dialect::Dialect;
pub use event::{Call, Context, Event, EventDenial, EventKind, EventQuota, Outcome, Sink, TimeSource};
pub use fault::Fault;
pub use findings::{Finding, Findings};
pub use json::{quote_oversized_numbers, replace_lone_surrogates};
pub use limits::{LimitConstraint, Limits};
pub use lookup::LookupResult;
pub use quota::QuotaLevel;
pub use reason::UnrecognizedReason;
pub use redact::{HashKey, Redactor, Rule, TokenHash};
pub use registry::{Registry, RegistryError};
pub use request_tracker::RequestTracker;
