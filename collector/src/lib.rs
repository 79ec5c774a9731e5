//! From sockets to the store: receivers, and the pipeline behind them.
//!
//! # A tour
//!
//! 1. [`receivers`] accepts connections, bounds and frames what arrives, and answers; one file a receiver.
//! 2. [`pipeline`] takes whole requests: [`Pipeline::submit`] returns when what a request held is durable, or says why
//!    it is not. Workers decompress and read; `classifier` decides what records mean; `store` keeps the rows.
//! 3. [`Rejection`] is every way to say no: one table of reasons, each with its statuses and its remedy.
//! 4. [`counters`] is what happened, as numbers, and [`status_api`] shows them, with health and readiness; [`metrics`] is what
//!    services answered, and all of that, for Prometheus.
//!
//! [`Limits`] bounds all of it, in one place; [`Budgets`] keep one noisy service from starving the rest.
//!
//! # What is not here
//!
//! What a record means (`classifier`), what is stored and how (`store`), arguments and files (the binary).

mod budget;
mod content_hash;
pub mod counters;
mod limits;
pub mod metrics;
pub mod pipeline;
pub mod receivers;
mod rejection;
mod source;
pub mod status_api;

pub use budget::{Budget, Budgets};
pub use content_hash::ContentHash;
pub use limits::Limits;
pub use pipeline::Pipeline;
pub use rejection::{Rejection, RejectionReason};
pub use source::Source;
