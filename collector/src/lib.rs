//! From sockets to the store: receivers, and the pipeline behind them.
//!
//! # A tour
//!
//! 1. [`receive`] accepts connections, bounds and frames what arrives, and answers; one file a receiver.
//! 2. [`pipeline`] takes whole requests: [`Pipeline::submit`] returns when what a request held is durable, or says why
//!    it is not. Workers decompress and read; `taxonomy` decides what records mean; `store` keeps the rows.
//! 3. [`Refusal`] is every way to say no: one table of causes, each with its statuses and its remedy.
//! 4. [`counters`] is what happened, as numbers, and [`web`] shows them, with health and readiness; [`metrics`] is what
//!    services answered, and all of that, for Prometheus.
//!
//! [`Limits`] bounds all of it, in one place; [`Budgets`] keep one noisy service from starving the rest.
//!
//! # What is not here
//!
//! What a record means (`taxonomy`), what is stored and how (`store`), arguments and files (the binary).

mod budget;
pub mod counters;
mod digest;
mod limits;
pub mod metrics;
pub mod pipeline;
pub mod receive;
mod refusal;
mod source;
pub mod web;

pub use budget::{Budget, Budgets};
pub use digest::Digest;
pub use limits::Limits;
pub use pipeline::Pipeline;
pub use refusal::{Cause, Refusal};
pub use source::Source;
