//! SQL over the error history, through every door an analyst uses.
//!
//! # A tour
//!
//! 1. An [`Engine`] knows where rows come from ([`Source`]), what there is to ask about ([`tables`], [`views`]) and
//!    with what words ([`functions`]). Each connection has a [`Session`] of it.
//! 2. A statement passes the [`guard`], is planned, and runs within [`Limits`]: time, memory, rows, and how many at once.
//! 3. Its [`Rows`] come out of one of the doors in [`serve`]: HTTP, the PostgreSQL protocol, Arrow Flight SQL.
//!
//! # What always holds
//!
//! - Nothing here writes: not to the tables, not to the machine.
//! - All tables of one statement are seen as they were at one moment each, taken when the statement began to run; what
//!   was acknowledged before that is in it, once.
//! - Queries run on threads of their own, behind ingest; whoever goes away takes his query along.
//!
//! # What is not here
//!
//! No receivers, no metrics, no alerts: `collector` and this library meet at the store.

mod engine;
mod error;
pub mod functions;
pub mod guard;
mod limits;
mod parameters;
pub mod serve;
mod source;
pub mod tables;
pub mod types;
pub mod views;

pub use engine::{BOUNDS_MS, CATALOG, Engine, Prepared, Rows, SCHEMA, Session, Via, ViaStats};
pub use error::{Kind, Limit, Position, QueryError};
pub use limits::Limits;
pub use parameters::parameters;
pub use source::Source;
