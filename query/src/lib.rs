//! SQL over the error history, through every endpoint an analyst uses.
//!
//! # A tour
//!
//! 1. An endpoint in [`serve`] (HTTP, the PostgreSQL protocol, Arrow Flight SQL, live events) takes a statement and
//!    passes it to its [`Session`] of the [`QueryService`].
//! 2. The service gives it to a [`worker`] process, whose memory the operating system bounds.
//! 3. There an [`Engine`] knows where rows come from ([`Source`]), what there is to ask about ([`tables`], [`views`]) and
//!    with what words ([`functions`]). The statement passes the [`guard`], is planned, and runs within [`Limits`].
//! 4. Its [`Rows`] come back through a pipe, and go to the client as they come.
//!
//! # What always holds
//!
//! - Nothing here writes: not to the tables, not to the machine.
//! - All tables of one statement are seen as they were at one moment each, taken when the statement began to run; what
//!   was acknowledged before that is in it, once.
//! - No statement can stop the server or outgrow its memory bound: see [`worker`].
//! - Queries run behind ingest; a client that goes away takes its query along.
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
mod statement;
mod stats;
pub mod tables;
pub mod types;
pub mod views;
pub mod worker;

pub use engine::{CATALOG, Engine, EngineSession, Prepared, Resolved, Rows, SCHEMA};
pub use error::{Kind, Limit, Position, QueryError};
pub use limits::Limits;
pub use parameters::parameters;
pub use source::Source;
pub use statement::{Description, Origin, ParameterType, StatementText};
pub use stats::{BOUNDS_MS, Via, ViaStats};
pub use worker::{LiveStore, QueryService, ServiceOptions, Session, Started};
