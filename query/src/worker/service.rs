//! The query service that endpoints use. It opens sessions, queues their statements, and runs them in worker processes.

use super::child::Worker;
use super::lease::Lease;
use super::memory_monitor::MemoryMonitor;
use super::protocol::{Request, Setup, Task, encode_values};
use crate::engine::{Rows, time_limit_error};
use crate::error::{QueryError, QueryErrorKind};
use crate::limits::Limits;
use crate::statement::{Description, StatementText};
use crate::stats::{Endpoint, EndpointStats, Outcome, StatementTimer, Stats};
use classifier::registry::RegistryFile;
use datafusion::common::ParamValues;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::Table;
use store::delta::files::Files;
use store::hot::Hot;
use store::maintenance::Maintenance;
use store::snapshot::Horizon;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// The number of batches that are buffered for a slow client.
const WAITING_BATCHES: usize = 2;
/// The number of threads that forward rows and follow live events. The queries themselves run in the workers.
const THREADS: usize = 2;
/// The niceness of these threads, which workers inherit. It puts queries behind ingest, whose senders wait for an
/// acknowledgement.
const NICENESS: i32 = 5;
/// A worker whose memory has grown by more than this is not reused.
const MAX_GROWTH_BYTES: u64 = 64 << 20;
/// The number of idle workers that are kept for the next statements. Any other worker ends after its statement.
const MAX_IDLE_WORKERS: usize = 2;

/// The options of a query service.
#[derive(Debug)]
pub struct ServiceOptions {
    /// The data directory.
    pub data_dir: PathBuf,
    /// The operator's registry file.
    pub registry: Option<RegistryFile>,
    /// The key that tokens are hashed with.
    pub hash_key: [u8; 16],
    /// The limits of queries.
    pub limits: Limits,
    /// The store that this process writes to; none when it only reads the data directory.
    pub live: Option<LiveStore>,
}

/// The parts of a running store that know which rows were acknowledged.
#[derive(Debug, Clone)]
pub struct LiveStore {
    /// The flusher, which knows the tables.
    pub maintenance: Maintenance,
    /// The rows that are not in a table yet.
    pub hot: Arc<Hot>,
}

/// A service that runs statements in worker processes.
#[derive(Debug, Clone)]
pub struct QueryService {
    shared: Arc<Shared>,
}

/// The session of one connection.
#[derive(Debug, Clone)]
pub struct Session {
    shared: Arc<Shared>,
    endpoint: Endpoint,
    /// The time limit of each statement.
    time: Duration,
}

/// A statement that is running.
#[derive(Debug)]
pub struct RunningQuery {
    /// Its columns and parameters.
    pub description: Description,
    /// Its result rows.
    pub rows: Rows,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) monitor: Arc<MemoryMonitor>,
    setup: Request,
    live: Option<LiveStore>,
    stats: Arc<Stats>,
    /// One permit for each statement that may run at once.
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Worker>>,
    /// True while a worker for a future statement is being started.
    is_starting_spare: AtomicBool,
    /// The number of the next statement.
    next: AtomicU64,
    /// The threads of the service. `None` while it is being dropped.
    runtime: Option<Runtime>,
}

impl QueryService {
    /// Creates a service and starts the first worker in the background.
    ///
    /// # Errors
    /// Fails when no thread can be started.
    pub fn new(options: ServiceOptions) -> Result<Self, QueryError> {
        let ServiceOptions { data_dir, registry, hash_key, limits, live } = options;
        let runtime =
            runtime().map_err(|error| QueryError::new(QueryErrorKind::Internal, error.to_string()))?;
        let monitor = Arc::new(MemoryMonitor::default());
        runtime.spawn(MemoryMonitor::run(Arc::downgrade(&monitor), limits.memory as u64));
        let shared = Arc::new(Shared {
            limits,
            monitor,
            setup: Request::Setup(Setup { data_dir, registry, hash_key, limits }),
            live,
            stats: Arc::default(),
            permits: Arc::new(Semaphore::new(limits.concurrent)),
            idle: Mutex::default(),
            is_starting_spare: AtomicBool::new(false),
            next: AtomicU64::new(1),
            runtime: Some(runtime),
        });
        shared.start_spare_worker();
        Ok(Self { shared })
    }

    /// Returns the limits of queries.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Opens a session for one connection.
    #[must_use]
    pub fn session(&self, endpoint: Endpoint) -> Session {
        Session { shared: Arc::clone(&self.shared), endpoint, time: self.shared.limits.time }
    }

    /// Returns the statistics of one endpoint.
    #[must_use]
    pub fn stats(&self, endpoint: Endpoint) -> EndpointStats {
        self.shared.stats.snapshot(endpoint)
    }

    /// Returns the number of statements that are running.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.monitor.count()
    }

    /// Returns the store that this process writes to, for live tails.
    pub(crate) fn live(&self) -> Option<&LiveStore> {
        self.shared.live.as_ref()
    }

    /// Runs a future on the threads of the service, which have a lower priority than ingest.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.shared.spawn(work);
    }
}

impl Session {
    /// Sets the time limit of later statements, at most the limit of the service. Zero means the limit of the service.
    pub fn set_time_limit(&mut self, time: Duration) {
        let limit = self.shared.limits.time;
        self.time = if time.is_zero() { limit } else { time.min(limit) };
    }

    /// Returns the time limit of a statement.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        self.time
    }

    /// Plans a statement and returns its description. If values are given, they are bound before it is described.
    ///
    /// # Errors
    /// Fails when the text is not SQL, the statement is not allowed or does not match the tables or its values, or too
    /// many other statements are running.
    pub async fn describe(
        &self,
        text: &StatementText,
        values: Option<&ParamValues>,
    ) -> Result<Description, QueryError> {
        let started_at = Instant::now();
        let mut lease = self.count_failure(started_at, self.lease().await)?;
        let task = self.task(text, values, &lease)?;
        let described = async {
            let description = lease.start(task, Request::Describe).await?;
            lease.finish().await?;
            Ok(description)
        };
        let described = tokio::time::timeout(self.time, described).await;
        self.count_failure(started_at, described.unwrap_or_else(|_| Err(time_limit_error(self.time))))
    }

    /// Plans a statement and starts to run it.
    ///
    /// # Errors
    /// Fails like [`Self::describe`].
    pub async fn run(&self, text: &StatementText, values: &ParamValues) -> Result<RunningQuery, QueryError> {
        let started_at = Instant::now();
        let files = self.shared.files();
        let mut lease = self.count_failure(started_at, self.lease().await)?;
        // The time limit begins when the statement has its permit and a worker.
        let leased_at = Instant::now();
        let task = self.task(text, Some(values), &lease)?;
        let described = tokio::time::timeout(self.time, lease.start(task, Request::Run)).await;
        let description =
            self.count_failure(started_at, described.unwrap_or_else(|_| Err(time_limit_error(self.time))))?;
        let (sender, batches) = mpsc::channel(WAITING_BATCHES);
        let (time, left) = (self.time, self.time.saturating_sub(leased_at.elapsed()));
        let query = self.shared.handle()?.spawn(async move {
            let forwarded = tokio::time::timeout(left, lease.forward_rows(&sender)).await;
            if forwarded.is_err() {
                // The receiver may have been dropped.
                drop(sender.send(Err(time_limit_error(time))).await);
            }
            drop(files);
        });
        let timer = StatementTimer::new(Arc::clone(&self.shared.stats), self.endpoint, started_at);
        let schema = Arc::clone(&description.schema);
        let rows = Rows::new(schema, batches, query.abort_handle(), (time, left), self.shared.limits.rows);
        Ok(RunningQuery { description, rows: rows.with_stats(timer) })
    }

    /// Plans and runs a plain statement without parameters.
    ///
    /// # Errors
    /// Fails like [`Self::describe`].
    pub async fn query(&self, sql: &str) -> Result<Rows, QueryError> {
        let running = self.run(&StatementText::plain(sql), &ParamValues::List(Vec::new())).await?;
        Ok(running.rows)
    }

    /// Counts the statement as failed if it failed before it returned rows.
    fn count_failure<T>(&self, started_at: Instant, outcome: Result<T, QueryError>) -> Result<T, QueryError> {
        outcome.inspect_err(|_| self.shared.stats.count(self.endpoint, Outcome::Failed, started_at.elapsed()))
    }

    async fn lease(&self) -> Result<Lease, QueryError> {
        let permit = self.shared.acquire_permit().await?;
        let shared = Arc::clone(&self.shared);
        let (sender, receiver) = oneshot::channel();
        // The worker starts on the service's own threads, which its pipes belong to. If the caller stops waiting, the
        // lease is dropped and the worker is kept for the next statement.
        self.shared.spawn(async move {
            let number = shared.next.fetch_add(1, Ordering::Relaxed);
            let worker = shared.worker().await;
            drop(sender.send(worker.map(|worker| Lease::new(shared, worker, permit, number))));
        });
        receiver.await.unwrap_or_else(|_| Err(shutting_down_error()))
    }

    fn task(
        &self,
        text: &StatementText,
        values: Option<&ParamValues>,
        lease: &Lease,
    ) -> Result<Task, QueryError> {
        let encoded = values.map(encode_values).transpose();
        let encoded = encoded.map_err(|error| QueryError::new(QueryErrorKind::Invalid, error.to_string()))?;
        let Horizon { visible, flushed } = self.shared.horizon();
        let values = encoded.flatten();
        Ok(Task { number: lease.number(), text: text.clone(), values, visible, flushed, time: self.time })
    }
}

impl Shared {
    /// Returns the data that a statement that arrives now may see.
    fn horizon(&self) -> Horizon {
        match &self.live {
            Some(LiveStore { maintenance, hot }) => Horizon::now(maintenance.delta().as_deref(), hot),
            None => Horizon::ALL,
        }
    }

    /// Returns handles of the current table files. Files are not removed from disk while a handle exists.
    fn files(&self) -> Vec<Arc<Files>> {
        let delta = self.live.as_ref().and_then(|live| live.maintenance.delta());
        delta.map(|delta| Table::ALL.map(|table| delta.files(table)).into()).unwrap_or_default()
    }

    /// Waits until the statement may run.
    async fn acquire_permit(&self) -> Result<OwnedSemaphorePermit, QueryError> {
        let limits = &self.limits;
        let permit = Arc::clone(&self.permits).acquire_owned();
        match tokio::time::timeout(limits.wait, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(QueryError::new(
                QueryErrorKind::Busy,
                format!(
                    "{} queries are already running, and none finished within {:?}",
                    limits.concurrent, limits.wait
                ),
            )
            .hint("try again in a moment")),
        }
    }

    /// Takes an idle worker or starts a new one.
    async fn worker(self: &Arc<Self>) -> Result<Worker, QueryError> {
        loop {
            let idle = self.idle().pop();
            let Some(mut worker) = idle else { break };
            if worker.is_alive() {
                if self.idle().is_empty() {
                    self.start_spare_worker();
                }
                return Ok(worker);
            }
        }
        Worker::start(&self.setup).await
    }

    /// Starts a worker for a future statement, unless one is already being started.
    fn start_spare_worker(self: &Arc<Self>) {
        if self.is_starting_spare.swap(true, Ordering::Relaxed) {
            return;
        }
        let shared = Arc::clone(self);
        self.spawn(async move {
            match Worker::start(&shared.setup).await {
                Ok(worker) => shared.return_worker(worker),
                Err(error) => tracing::warn!("{error}"),
            }
            shared.is_starting_spare.store(false, Ordering::Relaxed);
        });
    }

    /// Keeps a worker for the next statement, or drops it if there are enough or it has grown too much.
    pub(super) fn return_worker(&self, worker: Worker) {
        let bytes = super::child::anonymous_memory(worker.pid).unwrap_or_default();
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE_WORKERS && bytes <= worker.idle_bytes + MAX_GROWTH_BYTES {
            idle.push(worker);
        }
    }

    /// Runs a future in the background while the service exists.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }

    fn handle(&self) -> Result<&tokio::runtime::Handle, QueryError> {
        let runtime = self.runtime.as_ref().map(Runtime::handle);
        runtime.ok_or_else(shutting_down_error)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
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

fn shutting_down_error() -> QueryError {
    QueryError::new(QueryErrorKind::Cancelled, "the server is shutting down")
}

fn runtime() -> std::io::Result<Runtime> {
    let lower_priority = || {
        // If this fails, the threads keep the normal priority.
        rustix::process::nice(NICENESS).ok();
    };
    Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("query")
        .on_thread_start(lower_priority)
        .enable_all()
        .build()
}
