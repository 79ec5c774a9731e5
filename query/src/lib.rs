//! SQL queries over the error history, through HTTP, the PostgreSQL protocol, Arrow Flight SQL and live tails.
//!
//! # The path of a query
//!
//! 1. An endpoint in [`serve`] receives a statement and passes it to its [`Session`] of the [`QueryService`].
//! 2. The service hands the statement to a [`worker`] process, whose memory the operating system limits.
//! 3. In the worker, an [`Engine`] reads rows from a [`DataSource`] and offers [`tables`], [`views`] and [`functions`]. The
//!    [`guard`] checks the statement; then it is planned and runs within [`Limits`].
//! 4. The [`Rows`] come back through a pipe and are sent to the client as they arrive.
//!
//! # Invariants
//!
//! - Nothing here writes, neither to the tables nor to the machine.
//! - A statement reads one snapshot of each table, taken when the statement begins to run. The snapshot contains every
//!   row that was acknowledged before that, exactly once.
//! - No statement can stop the server or exceed its memory limit: see [`worker`].
//! - Queries run at a lower priority than ingest, and a query is cancelled when its client disconnects.
//!
//! # What is not here
//!
//! This crate has no receivers and no alerts. It shares only the store with `collector`. [`metrics`] reports what it
//! counts; the collector exports it.

mod engine;
mod error;
pub mod functions;
pub mod guard;
mod limits;
pub mod metrics;
mod parameters;
pub mod serve;
mod source;
mod statement;
mod stats;
pub mod tables;
pub mod types;
pub mod views;
pub mod worker;

pub use engine::{CATALOG, DescribedStatement, Engine, EngineSession, PreparedStatement, Rows, SCHEMA};
pub use error::{Limit, Position, QueryError, QueryErrorKind};
pub use limits::Limits;
pub use parameters::parameters;
pub use source::DataSource;
pub use statement::{Description, ParameterType, StatementOrigin, StatementText};
pub use stats::{DURATION_BOUNDS_MS, Endpoint, EndpointStats};
pub use worker::{LiveStore, QueryService, RunningQuery, ServiceOptions, Session};
