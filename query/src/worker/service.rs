//! What endpoints ask: sessions whose statements run in worker processes.

use super::child::Worker;
use super::lease::Lease;
use super::protocol::{Request, Setup, Task, encoded_values};
use super::watch::Watched;
use crate::engine::{Rows, too_slow};
use crate::error::{Kind, QueryError};
use crate::limits::Limits;
use crate::statement::{Description, StatementText};
use crate::stats::{End, Running, Stats, Via, ViaStats};
use datafusion::common::ParamValues;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::Table;
use store::hot::Hot;
use store::keeper::Keeper;
use store::lake::files::Files;
use store::snapshot::Horizon;
use taxonomy::registry::RegistryFile;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Batches that wait for a slow client.
const WAITING_BATCHES: usize = 2;
/// Threads that pass rows on and follow live events. The work itself is done by the workers.
const THREADS: usize = 2;
/// Behind ingest, whose senders wait for an acknowledgement. Workers inherit it.
const NICENESS: i32 = 5;
/// A worker that has grown by more than this is not used again.
const GROWTH: u64 = 64 << 20;
/// Workers that wait for statements, at most; the others end when their statement has.
const IDLE_WORKERS: usize = 2;

/// What a service is made of.
#[derive(Debug)]
pub struct ServiceOptions {
    /// The data directory.
    pub data_dir: PathBuf,
    /// The operator's registry file.
    pub registry: Option<RegistryFile>,
    /// The key that tokens are hashed with.
    pub hash_key: [u8; 16],
    /// What queries may take.
    pub limits: Limits,
    /// What this process writes into the data directory; none when it only reads.
    pub live: Option<LiveStore>,
}

/// The part of a store that knows what was acknowledged.
#[derive(Debug, Clone)]
pub struct LiveStore {
    /// Who flushes, and knows the tables.
    pub keeper: Keeper,
    /// What is in no table yet.
    pub hot: Arc<Hot>,
}

/// Runs statements in worker processes.
#[derive(Debug, Clone)]
pub struct QueryService {
    shared: Arc<Shared>,
}

/// A connection's view of the service.
#[derive(Debug, Clone)]
pub struct Session {
    shared: Arc<Shared>,
    via: Via,
    /// How long each of its statements may run.
    time: Duration,
}

/// A statement that has begun to run.
#[derive(Debug)]
pub struct Started {
    /// What is known of it.
    pub description: Description,
    /// Its rows.
    pub rows: Rows,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) watched: Arc<Watched>,
    setup: Request,
    live: Option<LiveStore>,
    stats: Arc<Stats>,
    /// Statements that may run at once.
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<Worker>>,
    /// Whether a worker is being started that nobody waits for.
    is_warming_up: AtomicBool,
    next: AtomicU64,
    /// None once it is being dropped.
    runtime: Option<Runtime>,
}

impl QueryService {
    /// Makes a service, and starts the first worker in the background.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(options: ServiceOptions) -> Result<Self, QueryError> {
        let ServiceOptions { data_dir, registry, hash_key, limits, live } = options;
        let runtime = runtime().map_err(|error| QueryError::new(Kind::Internal, error.to_string()))?;
        let watched = Arc::new(Watched::default());
        runtime.spawn(Watched::run(Arc::downgrade(&watched), limits.memory as u64));
        let shared = Arc::new(Shared {
            limits,
            watched,
            setup: Request::Setup(Setup { data_dir, registry, hash_key, limits }),
            live,
            stats: Arc::default(),
            turns: Arc::new(Semaphore::new(limits.concurrent)),
            idle: Mutex::default(),
            is_warming_up: AtomicBool::new(false),
            next: AtomicU64::new(1),
            runtime: Some(runtime),
        });
        shared.warm_up();
        Ok(Self { shared })
    }

    /// What queries may take.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// A session for one connection.
    #[must_use]
    pub fn session(&self, via: Via) -> Session {
        Session { shared: Arc::clone(&self.shared), via, time: self.shared.limits.time }
    }

    /// What was asked so far by one endpoint.
    #[must_use]
    pub fn stats(&self, via: Via) -> ViaStats {
        self.shared.stats.of(via)
    }

    /// How many statements are running.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.watched.count()
    }

    /// What this process writes, for those who follow it.
    pub(crate) fn live(&self) -> Option<&LiveStore> {
        self.shared.live.as_ref()
    }

    /// Does something on the threads of queries, which are behind those of ingest.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.shared.spawn(work);
    }
}

impl Session {
    /// How long statements may run from now on: at most what the service allows, which zero also means.
    pub fn set_time(&mut self, time: Duration) {
        let limit = self.shared.limits.time;
        self.time = if time.is_zero() { limit } else { time.min(limit) };
    }

    /// How long a statement may run.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Plans a statement, and says what is known of it; with values, as they make it.
    ///
    /// # Errors
    /// When it is no SQL, not allowed, does not fit the tables or its values, or too many others are running.
    pub async fn describe(
        &self,
        text: &StatementText,
        values: Option<&ParamValues>,
    ) -> Result<Description, QueryError> {
        let began = Instant::now();
        let mut lease = self.counted(began, self.lease().await)?;
        let task = self.task(text, values, &lease)?;
        let described = async {
            let description = lease.begin(task, Request::Describe).await?;
            lease.end().await?;
            Ok(description)
        };
        let described = tokio::time::timeout(self.time, described).await;
        self.counted(began, described.unwrap_or_else(|_| Err(too_slow(self.time))))
    }

    /// Plans a statement and begins to run it.
    ///
    /// # Errors
    /// As [`Self::describe`].
    pub async fn run(&self, text: &StatementText, values: &ParamValues) -> Result<Started, QueryError> {
        let began = Instant::now();
        let files = self.shared.files();
        let mut lease = self.counted(began, self.lease().await)?;
        // Its time begins when it has its turn, and a process.
        let leased = Instant::now();
        let task = self.task(text, Some(values), &lease)?;
        let described = tokio::time::timeout(self.time, lease.begin(task, Request::Run)).await;
        let description = self.counted(began, described.unwrap_or_else(|_| Err(too_slow(self.time))))?;
        let (sender, batches) = mpsc::channel(WAITING_BATCHES);
        let (time, left) = (self.time, self.time.saturating_sub(leased.elapsed()));
        let query = self.shared.handle()?.spawn(async move {
            let passed_on = tokio::time::timeout(left, lease.pass_on(&sender)).await;
            if passed_on.is_err() {
                // Nobody may be there to hear it.
                drop(sender.send(Err(too_slow(time))).await);
            }
            drop(files);
        });
        let running = Running::new(Arc::clone(&self.shared.stats), self.via, began);
        let schema = Arc::clone(&description.schema);
        let rows = Rows::new(schema, batches, query.abort_handle(), (time, left), self.shared.limits.rows);
        Ok(Started { description, rows: rows.counted(running) })
    }

    /// Plans and runs a plain statement without parameters.
    ///
    /// # Errors
    /// As [`Self::describe`].
    pub async fn query(&self, sql: &str) -> Result<Rows, QueryError> {
        let started = self.run(&StatementText::plain(sql), &ParamValues::List(Vec::new())).await?;
        Ok(started.rows)
    }

    /// Counts a statement that failed before it ran.
    fn counted<T>(&self, began: Instant, outcome: Result<T, QueryError>) -> Result<T, QueryError> {
        outcome.inspect_err(|_| self.shared.stats.count(self.via, End::Failed, began.elapsed()))
    }

    async fn lease(&self) -> Result<Lease, QueryError> {
        let turn = self.shared.turn().await?;
        let shared = Arc::clone(&self.shared);
        let (sender, receiver) = oneshot::channel();
        // On our own threads, which the pipes belong to. Whoever does not wait for it leaves it to the next one.
        self.shared.spawn(async move {
            let number = shared.next.fetch_add(1, Ordering::Relaxed);
            let worker = shared.worker().await;
            drop(sender.send(worker.map(|worker| Lease::new(shared, worker, turn, number))));
        });
        receiver.await.unwrap_or_else(|_| Err(stopping()))
    }

    fn task(
        &self,
        text: &StatementText,
        values: Option<&ParamValues>,
        lease: &Lease,
    ) -> Result<Task, QueryError> {
        let encoded = values.map(encoded_values).transpose();
        let encoded = encoded.map_err(|error| QueryError::new(Kind::Invalid, error.to_string()))?;
        let Horizon { visible, flushed } = self.shared.horizon();
        let values = encoded.flatten();
        Ok(Task { number: lease.number(), text: text.clone(), values, visible, flushed, time: self.time })
    }
}

impl Shared {
    /// What a statement that comes now may see.
    fn horizon(&self) -> Horizon {
        match &self.live {
            Some(LiveStore { keeper, hot }) => Horizon::now(keeper.lake().as_deref(), hot),
            None => Horizon::ALL,
        }
    }

    /// The files that are there now: what is held here is not removed from the disk.
    fn files(&self) -> Vec<Arc<Files>> {
        let lake = self.live.as_ref().and_then(|live| live.keeper.lake());
        lake.map(|lake| Table::ALL.map(|table| lake.files(table)).into()).unwrap_or_default()
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit, QueryError> {
        let limits = &self.limits;
        let turn = Arc::clone(&self.turns).acquire_owned();
        match tokio::time::timeout(limits.wait, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(QueryError::new(
                Kind::Busy,
                format!("{} queries are running, and none ended within {:?}", limits.concurrent, limits.wait),
            )
            .hint("try again in a moment")),
        }
    }

    /// A worker that waits, or a new one.
    async fn worker(self: &Arc<Self>) -> Result<Worker, QueryError> {
        loop {
            let waiting = self.idle().pop();
            let Some(mut worker) = waiting else { break };
            if worker.is_alive() {
                if self.idle().is_empty() {
                    self.warm_up();
                }
                return Ok(worker);
            }
        }
        Worker::start(&self.setup).await
    }

    /// Starts a worker that waits for the next statement, unless one is being started.
    fn warm_up(self: &Arc<Self>) {
        if self.is_warming_up.swap(true, Ordering::Relaxed) {
            return;
        }
        let shared = Arc::clone(self);
        self.spawn(async move {
            match Worker::start(&shared.setup).await {
                Ok(worker) => shared.keep(worker),
                Err(error) => tracing::warn!("{error}"),
            }
            shared.is_warming_up.store(false, Ordering::Relaxed);
        });
    }

    /// Keeps a worker for the next statement, or lets it end.
    pub(super) fn keep(&self, worker: Worker) {
        let bytes = super::child::memory(worker.pid).unwrap_or_default();
        let mut idle = self.idle();
        if idle.len() < IDLE_WORKERS && bytes <= worker.idle_bytes + GROWTH {
            idle.push(worker);
        }
    }

    /// Does something in the background, as long as the service is there.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }

    fn handle(&self) -> Result<&tokio::runtime::Handle, QueryError> {
        let runtime = self.runtime.as_ref().map(Runtime::handle);
        runtime.ok_or_else(stopping)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
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

fn stopping() -> QueryError {
    QueryError::new(Kind::Cancelled, "the server is stopping")
}

fn runtime() -> std::io::Result<Runtime> {
    let yield_to_ingest = || {
        // A kernel that refuses leaves us as fast as everyone else.
        rustix::process::nice(NICENESS).ok();
    };
    Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("query")
        .on_thread_start(yield_to_ingest)
        .enable_all()
        .build()
}
