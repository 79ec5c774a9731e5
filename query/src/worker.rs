//! Worker processes that run the queries, so that no query can harm the server.
//!
//! The engine accounts for the memory of sorts, joins and groups, but not for plans, expressions, window functions or
//! values that functions build, and a stack overflow aborts its process. The server itself therefore plans and runs no
//! statement. It keeps a few *worker processes* of the same program ([`process`]). Each runs one statement at a time
//! under a hard memory limit of the operating system, and exchanges statements and rows with the server through pipes
//! (`protocol`).
//!
//! Invariants:
//! - A worker that dies ends only its own query, and the client learns which limit was exceeded.
//! - `memory_monitor` watches all workers together. When they exceed the memory of all queries, it kills the largest.
//! - A worker that does not stop after its client disconnected or its time ran out is killed.
//! - Workers end with the server, however it ends, because their standard input is closed then.
//! - A statement sees everything that was acknowledged before it arrived, and nothing else
//!   ([`store::snapshot::Horizon`]).

mod child;
mod lease;
mod memory_monitor;
pub mod process;
mod protocol;
mod service;

pub use service::{LiveStore, QueryService, RunningQuery, ServiceOptions, Session};
