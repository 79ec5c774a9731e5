//! A data directory with a running pipeline, as `serve` and `ingest` use it.

use crate::cli::exit_code::ExitError;
use crate::config::limits::IngestLimitArgs;
use crate::config::storage::StorageArgs;
use classifier::registry::RegistryFile;
use classifier::{HashKey, Rules};
use collector::Pipeline;
use collector::pipeline::{Parts, RestoredState};
use query::{LiveStore, ServiceOptions};
use std::sync::Arc;
use std::time::Duration;
use store::delta::{DeltaError, DeltaOptions, DeltaTables, MaintenanceMode, Retention};
use store::disk::{Disk, RealDisk};
use store::hot::Hot;
use store::maintenance::{self, FlushOptions, Maintenance, recent_calls};
use store::metrics::StoreMetrics;
use store::wal::{Replay, Wal, WalOptions};
use store::{DataDirectory, Table, codec, schema};

/// The number of rows that are flushed without waiting for more bytes.
const FLUSH_ROWS: u64 = 1 << 20;
/// The age of the oldest recent calls that are loaded at the start. The pipeline then applies its exact time window.
const RECENT_CALLS_US: i64 = 5 * 60 * 1_000_000;
/// The retention of responses to requests with an `Idempotency-Key`, which are remembered for at least a day.
const RESPONSE_RETENTION: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// Returns the options of the tables.
fn table_options(storage: &StorageArgs) -> DeltaOptions {
    let responses = Retention { age: Some(RESPONSE_RETENTION), bytes: None };
    let retention = Table::ALL.map(|table| match table {
        Table::Events | Table::EventCounts => storage.keep_events,
        Table::Traffic => storage.keep_traffic,
        Table::Rejects => storage.keep_rejects,
        Table::Requests => responses,
    });
    DeltaOptions { retention, grace: storage.vacuum_grace, clock: now }
}

/// Returns the thresholds at which rows are flushed.
fn flush_options(storage: &StorageArgs) -> FlushOptions {
    let bytes = usize::try_from(storage.flush_bytes).unwrap_or(usize::MAX);
    FlushOptions { bytes, rows: FLUSH_ROWS, age: storage.flush_after, log_bytes: storage.wal_bytes }
}

fn now() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

/// The pipeline and the store of a data directory, with the counts from the start.
pub(crate) struct RunningPipeline {
    pub(crate) pipeline: Pipeline,
    pub(crate) rules: Arc<Rules>,
    pub(crate) maintenance: Maintenance,
    pub(crate) replay: Replay,
    wal: Wal,
    /// The size limit of the WAL.
    wal_limit: u64,
    /// The number of stored events, in the tables and in the WAL.
    pub(crate) events: u64,
    /// The number of those events that were replayed from the WAL.
    pub(crate) replayed: u64,
}

impl RunningPipeline {
    /// Opens the tables, replays the WAL, and starts the pipeline.
    pub(crate) fn new(
        storage: &StorageArgs,
        limits: &IngestLimitArgs,
        registry: classifier::Registry,
        directory: &DataDirectory,
        mode: MaintenanceMode,
    ) -> anyhow::Result<Self> {
        let key = HashKey::new(directory.hash_key().map_err(ExitError::data_directory)?);
        let (record_limits, limits) = (limits.record_limits(), limits.ingest_limits());
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let opened = open_delta(&disk, directory, table_options(storage));
        let delta = opened.as_ref().ok().cloned();
        let hot = Arc::new(Hot::new(usize::try_from(storage.buffer_bytes).unwrap_or(usize::MAX)));
        let restored = RestoredState::new(Arc::clone(&hot), delta.clone(), &limits);
        let (log, replay, restored) = open_log(storage, directory, delta.as_deref(), restored)?;
        let rules = Arc::new(Rules::new(registry, key, record_limits));
        let pipeline = Pipeline::start(Parts {
            limits,
            rules: Arc::clone(&rules),
            wal: log.clone(),
            hot: Arc::clone(&hot),
            clock: now,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
        })?;
        let replayed = restored.events;
        let events = replayed + delta.as_ref().map_or(0, |delta| delta.files(Table::Events).rows());
        pipeline.restore(restored);
        let directory = directory.clone();
        let (flush, tables) = (flush_options(storage), table_options(storage));
        let parts = maintenance::Parts { disk, directory, log: log.clone(), hot, flush, tables, mode };
        let maintenance = Maintenance::start(parts, opened)?;
        let wal_limit = storage.wal_bytes;
        Ok(Self { pipeline, rules, maintenance, replay, wal: log, wal_limit, events, replayed })
    }
}

impl RunningPipeline {
    /// Returns the metrics of the store.
    pub(crate) fn metrics(&self) -> StoreMetrics {
        StoreMetrics {
            wal: self.wal.clone(),
            wal_limit: self.wal_limit,
            hot: Arc::clone(self.pipeline.hot()),
            maintenance: self.maintenance.clone(),
        }
    }

    /// Returns the options for queries of this data directory.
    pub(crate) fn query_options(
        &self,
        directory: &DataDirectory,
        registry: Option<RegistryFile>,
        limits: query::Limits,
    ) -> anyhow::Result<ServiceOptions> {
        Ok(ServiceOptions {
            data_dir: directory.path().to_owned(),
            registry,
            hash_key: directory.hash_key().map_err(ExitError::data_directory)?,
            limits,
            live: Some(LiveStore {
                maintenance: self.maintenance.clone(),
                hot: Arc::clone(self.pipeline.hot()),
            }),
        })
    }
}

/// Opens the tables. If that fails, the server still accepts everything and keeps it in the WAL, and flushes it when
/// the tables can be opened.
fn open_delta(
    disk: &Arc<dyn Disk>,
    directory: &DataDirectory,
    options: DeltaOptions,
) -> Result<Arc<DeltaTables>, DeltaError> {
    let opened = DeltaTables::open(disk, directory.path(), options).map(Arc::new);
    opened.inspect_err(|error| {
        tracing::error!(%error, "the tables cannot be opened; the log keeps everything until they can be");
    })
}

fn open_log(
    storage: &StorageArgs,
    directory: &DataDirectory,
    delta: Option<&DeltaTables>,
    mut restored: RestoredState,
) -> anyhow::Result<(Wal, Replay, RestoredState)> {
    if let Err(error) = restored.load_flushed_responses() {
        tracing::warn!(%error, "responses to requests with an Idempotency-Key may be forgotten");
    }
    restored.load_recent_calls(&recent_calls::read(
        &RealDisk,
        &directory.recent_calls(),
        now() - RECENT_CALLS_US,
    ));
    let options = WalOptions {
        max_bytes: storage.wal_bytes,
        preamble: codec::preamble()?,
        schema: schema::VERSION,
        // If the WAL was lost, none of its sequence numbers is used again.
        first_sequence: delta.map_or(0, DeltaTables::newest) + 1,
        ..WalOptions::default()
    };
    let disk = Arc::new(RealDisk);
    let (log, replay) =
        Wal::open(disk, &directory.wal(), options, &mut |record| restored.load_record(record))
            .map_err(ExitError::data_directory)?;
    Ok((log, replay, restored))
}
