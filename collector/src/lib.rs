//! Ingest, from sockets to the store: the receivers, and the pipeline behind them.
//!
//! # A tour
//!
//! 1. [`receivers`] accepts connections, bounds and frames what arrives, and sends the responses; each receiver has
//!    its own module.
//! 2. [`pipeline`] takes whole requests: [`Pipeline::submit`] returns when the contents of a request are durable, or
//!    returns the rejection. Workers decompress and parse; `classifier` decides what records mean; `store` keeps the
//!    rows.
//! 3. [`Rejection`] covers every way to reject a request: one table of reasons, each with its status codes and its
//!    remedy.
//! 4. [`counters`] counts what happened, and [`status_api`] shows the counters, with health and readiness;
//!    [`metrics`] holds the metrics of the services, and exports all of that to Prometheus.
//!
//! [`Limits`] bounds all of it in one place; [`Budgets`] keep one noisy service from starving the rest.
//!
//! # What is not here
//!
//! The meaning of records is in `classifier`, storage in `store`, and arguments and config files in the binary.

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
