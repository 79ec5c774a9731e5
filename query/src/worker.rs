//! Queries run in processes of their own, so that none can harm the server whatever it asks for.
//!
//! The engine accounts for the memory of its sorts, joins and groups, but not for plans, expressions, window functions
//! or values that functions build; and a stack that overflows ends its process. So the server itself plans and runs
//! nothing. It keeps a few *worker processes* of the same program ([`process`]), each of which runs one statement at a
//! time under a hard memory limit of the operating system, and passes statements and rows through pipes (`protocol`).
//!
//! What always holds:
//! - A worker that dies takes its own query along, and nothing else; the client is told which limit was passed.
//! - All workers together are watched (`watch`): past the memory of all queries the largest one is ended.
//! - A worker that does not stop when its client has gone, or its time is up, is ended.
//! - Workers end with the server, however that ends: their standard input is closed then.
//! - A statement sees everything that was acknowledged before it came, and nothing else ([`store::snapshot::Horizon`]).

mod child;
mod lease;
pub mod process;
mod protocol;
mod service;
mod watch;

pub use service::{LiveStore, QueryService, ServiceOptions, Session, Started};
