//! Where events are kept.
pub mod log;
