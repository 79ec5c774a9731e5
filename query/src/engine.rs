//! The engine of one process: tables and functions are set up once, and every statement runs within limits.
//!
//! A server has it in its worker processes only, one statement at a time: see [`crate::worker`].

mod catalog;
mod courtesy;
pub(crate) mod deep_stack;
mod memory;
mod moment;
mod rows;
mod session;

use catalog::{OrderedCatalog, OrderedSchema};
use courtesy::Courtesy;
pub(crate) use moment::Moment;
pub use rows::Rows;
pub(crate) use rows::too_slow;
pub use session::{EngineSession, Prepared, Resolved};

use crate::error::QueryError;
use crate::limits::Limits;
use crate::serve::postgres::Reader;
use crate::source::Source;
use crate::{functions, tables, views};
use datafusion::catalog::{CatalogProvider, MemorySchemaProvider};
use datafusion::common::Result;
use datafusion::common::config::Dialect;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;
use store::snapshot::Horizon;
use taxonomy::Rules;
use tokio::runtime::{Builder, Runtime};

/// The catalog, and the database that PostgreSQL clients name.
pub const CATALOG: &str = "faultline";
/// The schema of all tables and views.
pub const SCHEMA: &str = "public";

/// Threads beyond one for each core: one that does not yield after all must not keep the others waiting.
const SPARE_THREADS: usize = 2;
/// Threads that wait for the disk.
const BLOCKING_THREADS: usize = 4;
/// The stack of each of these. Running a plan recurses once for each operator and each level of an expression.
const STACK_BYTES: usize = 8 << 20;

/// Answers questions.
#[derive(Debug, Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) source: Source,
    /// Tables, views and functions, ready to be used by any session.
    pub(crate) state: SessionState,
    /// Reads the statements of PostgreSQL clients.
    pub(crate) reader: Reader,
    /// Queries have threads of their own, so that none can keep a sender waiting. `None` once it is being dropped.
    runtime: Option<Runtime>,
}

impl Engine {
    /// Sets up tables, views and functions. Must not be called on an asynchronous thread.
    ///
    /// # Errors
    /// When a thread cannot be started, or a view does not fit the tables.
    pub fn new(source: Source, rules: &Arc<Rules>, limits: Limits) -> Result<Self, QueryError> {
        let runtime = runtime().map_err(|error| QueryError::new(crate::Kind::Internal, error.to_string()))?;
        let state = runtime.block_on(state(&source, rules))?;
        let shared = Shared { limits, source, state, reader: Reader::default(), runtime: Some(runtime) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// A session for one connection, which sees what lies within a horizon.
    #[must_use]
    pub fn session(&self, horizon: Horizon) -> EngineSession {
        EngineSession::new(Arc::clone(&self.shared), horizon)
    }

    /// Whether nothing of any statement is computed any more. One that was stopped may go on for a while, if it does not
    /// yield.
    pub(crate) fn is_quiet(&self) -> bool {
        let alive = self.shared.handle().map_or(0, |handle| handle.metrics().num_alive_tasks());
        alive == 0 && deep_stack::running() == 0
    }

    /// Memory that the stacks of its threads may take beyond those that run already.
    pub(crate) const fn stack_reserve() -> usize {
        BLOCKING_THREADS * STACK_BYTES + deep_stack::STACK_BYTES
    }
}

impl Shared {
    pub(crate) fn handle(&self) -> Result<&tokio::runtime::Handle, QueryError> {
        let runtime = self.runtime.as_ref().map(Runtime::handle);
        runtime.ok_or_else(|| QueryError::new(crate::Kind::Cancelled, "the server is stopping"))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Whoever drops it may be on an asynchronous thread, which must not wait.
            runtime.shutdown_background();
        }
    }
}

fn runtime() -> std::io::Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) + SPARE_THREADS;
    Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_stack_size(STACK_BYTES)
        .thread_name("query")
        .enable_all()
        .build()
}

async fn state(source: &Source, rules: &Arc<Rules>) -> Result<SessionState, QueryError> {
    let runtime = tables::runtime_env(source)?;
    let public = Arc::new(MemorySchemaProvider::new());
    let catalog = Arc::new(OrderedCatalog::default());
    catalog.register_schema(SCHEMA, Arc::new(OrderedSchema(Arc::clone(&public))))?;
    let state = SessionStateBuilder::new()
        .with_config(config())
        .with_runtime_env(runtime)
        .with_default_features()
        .with_physical_optimizer_rule(Arc::new(Courtesy))
        .build();
    let context = SessionContext::new_with_state(state);
    context.register_catalog(CATALOG, catalog);
    functions::register(&context, rules)?;
    tables::register(&public, rules.registry())?;
    views::register(&context, &public).await?;
    tables::columns::register(&public).await?;
    crate::serve::postgres::catalog::register(&context).await?;
    Ok(context.state())
}

/// How statements are read and planned, wherever that happens.
pub(crate) fn config() -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        // The PostgreSQL door brings one that also knows PostgreSQL's names of types.
        .with_information_schema(false);
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    // Errors say where.
    options.sql_parser.collect_spans = true;
    options.execution.time_zone = Some("UTC".to_owned());
    options.execution.parquet.pushdown_filters = true;
    options.execution.parquet.reorder_filters = true;
    config
}
