//! The query engine of one process. It sets up tables and functions once, and runs every statement within limits.
//!
//! A server runs an engine only in its worker processes, with one statement at a time: see [`crate::worker`].

mod catalog;
mod cooperative_yield;
pub(crate) mod deep_stack;
mod memory;
mod rows;
mod session;
mod statement_snapshot;

use catalog::{OrderedCatalog, OrderedSchema};
use cooperative_yield::CooperativeYield;
pub use rows::Rows;
pub(crate) use rows::time_limit_error;
pub use session::{DescribedStatement, EngineSession, PreparedStatement};
pub(crate) use statement_snapshot::StatementSnapshot;

use crate::error::QueryError;
use crate::limits::Limits;
use crate::serve::postgres::StatementParser;
use crate::source::DataSource;
use crate::{functions, tables, views};
use classifier::Rules;
use datafusion::catalog::{CatalogProvider, MemorySchemaProvider};
use datafusion::common::Result;
use datafusion::common::config::Dialect;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;
use store::snapshot::Horizon;
use tokio::runtime::{Builder, Runtime};

/// The name of the catalog, which is also the database name that PostgreSQL clients use.
pub const CATALOG: &str = "faultline";
/// The schema that holds all tables and views.
pub const SCHEMA: &str = "public";

/// The number of threads beyond one for each core, so that a task that does not yield cannot block the others.
const SPARE_THREADS: usize = 2;
/// The number of threads for blocking disk reads.
const BLOCKING_THREADS: usize = 4;
/// The stack size of each thread. Running a plan recurses once for each operator and each level of an expression.
const STACK_BYTES: usize = 8 << 20;

/// Plans and runs SQL statements.
#[derive(Debug, Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) source: DataSource,
    /// The tables, views and functions that every session uses.
    pub(crate) state: SessionState,
    /// Parses the statements of PostgreSQL clients.
    pub(crate) parser: StatementParser,
    /// The threads of the engine, separate from ingest so that no query delays a sender. `None` while it is being
    /// dropped.
    runtime: Option<Runtime>,
}

impl Engine {
    /// Sets up tables, views and functions. It blocks, so it must not be called on an asynchronous thread.
    ///
    /// # Errors
    /// Fails when a thread cannot be started, or when a view does not match the tables.
    pub fn new(source: DataSource, rules: &Arc<Rules>, limits: Limits) -> Result<Self, QueryError> {
        let runtime =
            runtime().map_err(|error| QueryError::new(crate::QueryErrorKind::Internal, error.to_string()))?;
        let state = runtime.block_on(state(&source, rules))?;
        let shared =
            Shared { limits, source, state, parser: StatementParser::default(), runtime: Some(runtime) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Opens a session for one connection. It sees only the data within the horizon.
    #[must_use]
    pub fn session(&self, horizon: Horizon) -> EngineSession {
        EngineSession::new(Arc::clone(&self.shared), horizon)
    }

    /// Returns true when no statement is using a thread. A statement that was cancelled keeps running until it yields.
    pub(crate) fn is_idle(&self) -> bool {
        let alive = self.shared.handle().map_or(0, |handle| handle.metrics().num_alive_tasks());
        alive == 0 && deep_stack::running_threads() == 0
    }

    /// Returns the memory that the stacks of threads that are not running yet may take.
    pub(crate) const fn stack_reserve() -> usize {
        BLOCKING_THREADS * STACK_BYTES + deep_stack::STACK_BYTES
    }
}

impl Shared {
    pub(crate) fn handle(&self) -> Result<&tokio::runtime::Handle, QueryError> {
        let runtime = self.runtime.as_ref().map(Runtime::handle);
        runtime
            .ok_or_else(|| QueryError::new(crate::QueryErrorKind::Cancelled, "the server is shutting down"))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // This may run on an asynchronous thread, which must not block.
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

async fn state(source: &DataSource, rules: &Arc<Rules>) -> Result<SessionState, QueryError> {
    let runtime = tables::runtime_env(source)?;
    let public = Arc::new(MemorySchemaProvider::new());
    let catalog = Arc::new(OrderedCatalog::default());
    catalog.register_schema(SCHEMA, Arc::new(OrderedSchema(Arc::clone(&public))))?;
    let state = SessionStateBuilder::new()
        .with_config(config())
        .with_runtime_env(runtime)
        .with_default_features()
        .with_physical_optimizer_rule(Arc::new(CooperativeYield))
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

/// Returns the settings with which statements are parsed and planned.
pub(crate) fn config() -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        // The PostgreSQL endpoint brings its own information schema, with PostgreSQL's type names.
        .with_information_schema(false);
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    // Spans let error messages name a line and a column.
    options.sql_parser.collect_spans = true;
    options.execution.time_zone = Some("UTC".to_owned());
    options.execution.parquet.pushdown_filters = true;
    options.execution.parquet.reorder_filters = true;
    config
}
