//! From sockets to the store: receivers, and the pipeline behind them.

pub mod counters;
mod limits;
pub mod pipeline;
pub mod receive;
mod refusal;
mod source;
pub mod web;

pub use limits::Limits;
pub use pipeline::Pipeline;
pub use refusal::{Cause, Refusal};
pub use source::Source;
