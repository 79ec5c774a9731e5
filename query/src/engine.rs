//! One factory of read-only sessions: the tables and functions are set up once, and every statement runs within limits.

mod courtesy;
mod memory;
mod moment;
mod rows;
mod session;
mod stats;

use courtesy::Courtesy;
pub(crate) use moment::Moment;
pub use rows::Rows;
pub use session::{Prepared, Session};
pub use stats::{BOUNDS_MS, Via, ViaStats};

use crate::error::QueryError;
use crate::limits::Limits;
use crate::source::Source;
use crate::{functions, tables, views};
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::common::Result;
use datafusion::common::config::Dialect;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::{SessionConfig, SessionContext};
use stats::Stats;
use std::sync::Arc;
use taxonomy::Rules;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

/// The catalog, and the database that PostgreSQL clients name.
pub const CATALOG: &str = "faultline";
/// The schema of all tables and views.
pub const SCHEMA: &str = "public";

/// Threads beyond one for each core.
const SPARE_THREADS: usize = 2;
/// Behind ingest, whose senders wait for a yes.
const NICENESS: i32 = 5;

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
    /// Memory of all queries.
    pub(crate) pool: Arc<dyn MemoryPool>,
    /// Queries that may run at once.
    pub(crate) turns: Arc<Semaphore>,
    pub(crate) stats: Stats,
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
        let shared = Shared {
            limits,
            source,
            state,
            pool: Arc::new(GreedyMemoryPool::new(limits.memory)),
            turns: Arc::new(Semaphore::new(limits.concurrent)),
            stats: Stats::default(),
            runtime: Some(runtime),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// What queries may take.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// A session for one connection, which comes in by a door.
    #[must_use]
    pub fn session(&self, via: Via) -> Session {
        Session::new(Arc::clone(&self.shared), via)
    }

    /// What was asked so far by one door.
    #[must_use]
    pub fn stats(&self, via: Via) -> ViaStats {
        self.shared.stats.of(via)
    }

    /// How many statements are running.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.limits.concurrent.saturating_sub(self.shared.turns.available_permits())
    }

    /// Tables, views and functions, to plan with.
    pub(crate) fn state(&self) -> &SessionState {
        &self.shared.state
    }

    /// Where rows come from.
    pub(crate) fn source(&self) -> &Source {
        &self.shared.source
    }

    /// The threads of queries.
    pub(crate) fn handle(&self) -> Result<&tokio::runtime::Handle, QueryError> {
        self.shared.handle()
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
    let yield_to_ingest = || {
        // A kernel that refuses leaves us as fast as everyone else.
        rustix::process::nice(NICENESS).ok();
    };
    // One that does not yield after all must not keep the others waiting.
    let threads = std::thread::available_parallelism().map_or(1, usize::from) + SPARE_THREADS;
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("query")
        .on_thread_start(yield_to_ingest)
        .enable_all()
        .build()
}

async fn state(source: &Source, rules: &Arc<Rules>) -> Result<SessionState, QueryError> {
    let runtime = tables::runtime_env(source)?;
    let public = Arc::new(MemorySchemaProvider::new());
    let catalog = Arc::new(MemoryCatalogProvider::new());
    catalog.register_schema(SCHEMA, Arc::clone(&public) as Arc<dyn SchemaProvider>)?;
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

fn config() -> SessionConfig {
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
