//! Where events are kept.
pub mod disk;
pub mod lock;
pub mod log;
