//! A data directory with the pipeline running on it: what `serve` and `ingest` have in common.

use crate::limits::Limits;
use crate::quantity;
use crate::refused::Refused;
use collector::Pipeline;
use collector::pipeline::{Parts, Restored};
use query::{LiveStore, ServiceOptions};
use std::sync::Arc;
use std::time::Duration;
use store::disk::{Disk, RealDisk};
use store::hot::Hot;
use store::keeper::{self, Keeper, SealOptions, recent};
use store::lake::{Lake, LakeError, LakeOptions, Maintenance, Retention};
use store::log::{Log, LogOptions, Replay};
use store::{DataDirectory, Table, codec, schema};
use taxonomy::registry::RegistryFile;
use taxonomy::{HashKey, Rules};

/// So many rows are sealed without waiting for more bytes.
const SEAL_ROWS: u64 = 1 << 20;
/// Calls that were counted before this long ago are not asked for any more; the pipeline knows its window exactly.
const RECENT_US: i64 = 5 * 60 * 1_000_000;
/// Answers to requests with an `Idempotency-Key` are remembered for a day.
const ANSWERS_KEPT: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// What the store may take of the machine, and what it keeps.
#[derive(Debug, clap::Args)]
pub(crate) struct Room {
    /// Disk space for the log; when it is full, senders are told to come back later.
    #[arg(long, value_name = "BYTES", default_value = "16GiB", value_parser = quantity::log_bytes, env = "FAULTLINE_LOG_BYTES")]
    log_bytes: u64,
    /// Memory for the newest rows.
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = quantity::bytes, env = "FAULTLINE_HOT_BYTES")]
    hot_bytes: u64,
    /// Seal rows into the tables when so much of the log has gathered.
    #[arg(long, value_name = "BYTES", default_value = "32MiB", value_parser = quantity::bytes, env = "FAULTLINE_SEAL_BYTES")]
    seal_bytes: u64,
    /// Seal rows into the tables when the oldest have waited so long.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::duration, env = "FAULTLINE_SEAL_AFTER")]
    seal_after: Duration,
    /// How much to keep of events: an age, a size, both as in 400d,50GiB, or forever.
    #[arg(long, value_name = "HOW MUCH", default_value = "400d", value_parser = quantity::retention, env = "FAULTLINE_KEEP_EVENTS")]
    keep_events: Retention,
    /// How much to keep of traffic.
    #[arg(long, value_name = "HOW MUCH", default_value = "400d", value_parser = quantity::retention, env = "FAULTLINE_KEEP_TRAFFIC")]
    keep_traffic: Retention,
    /// How much to keep of rejects.
    #[arg(long, value_name = "HOW MUCH", default_value = "30d", value_parser = quantity::retention, env = "FAULTLINE_KEEP_REJECTS")]
    keep_rejects: Retention,
    /// How long files that left a table stay on disk, for those who are reading them.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = quantity::duration, env = "FAULTLINE_GRACE")]
    grace: Duration,
}

impl Room {
    fn tables(&self) -> LakeOptions {
        let answers = Retention { age: Some(ANSWERS_KEPT), bytes: None };
        let retention = Table::ALL.map(|table| match table {
            Table::Events => self.keep_events,
            Table::Traffic => self.keep_traffic,
            Table::Rejects => self.keep_rejects,
            Table::Requests => answers,
        });
        LakeOptions { retention, grace: self.grace, clock: now }
    }

    fn seal(&self) -> SealOptions {
        let bytes = usize::try_from(self.seal_bytes).unwrap_or(usize::MAX);
        SealOptions { bytes, rows: SEAL_ROWS, age: self.seal_after, log_bytes: self.log_bytes }
    }
}

fn now() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

/// What was found in the data directory, and what runs on it.
pub(crate) struct Opened {
    pub(crate) pipeline: Pipeline,
    pub(crate) rules: Arc<Rules>,
    pub(crate) keeper: Keeper,
    pub(crate) replay: Replay,
    /// What the log may take on disk.
    pub(crate) log_limit: u64,
    /// Events that are stored, in the tables and in the log.
    pub(crate) events: u64,
    /// Those of them that were read back from the log.
    pub(crate) replayed: u64,
}

impl Opened {
    /// Opens the tables, reads the log back, and starts the pipeline.
    pub(crate) fn new(
        room: &Room,
        limits: &Limits,
        registry: taxonomy::Registry,
        directory: &DataDirectory,
        maintenance: Maintenance,
    ) -> anyhow::Result<Self> {
        let key = HashKey::new(directory.hash_key().map_err(Refused::directory)?);
        let (of_records, limits) = (limits.of_records(), limits.of_senders());
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let opened = open_lake(&disk, directory, room.tables());
        let lake = opened.as_ref().ok().cloned();
        let hot = Arc::new(Hot::new(usize::try_from(room.hot_bytes).unwrap_or(usize::MAX)));
        let restored = Restored::new(Arc::clone(&hot), lake.clone(), &limits);
        let (log, replay, restored) = open_log(room, directory, lake.as_deref(), restored)?;
        let rules = Arc::new(Rules::new(registry, key, of_records));
        let pipeline = Pipeline::start(Parts {
            limits,
            rules: Arc::clone(&rules),
            log: log.clone(),
            hot: Arc::clone(&hot),
            clock: now,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
        })?;
        let replayed = restored.events;
        let events = replayed + lake.as_ref().map_or(0, |lake| lake.files(Table::Events).rows());
        pipeline.restore(restored);
        let directory = directory.clone();
        let (seal, tables) = (room.seal(), room.tables());
        let parts = keeper::Parts { disk, directory, log, hot, seal, tables, maintenance };
        let keeper = Keeper::start(parts, opened)?;
        Ok(Self { pipeline, rules, keeper, replay, log_limit: room.log_bytes, events, replayed })
    }
}

impl Opened {
    /// What queries of this data directory need to know.
    pub(crate) fn query_options(
        &self,
        directory: &DataDirectory,
        registry: Option<RegistryFile>,
        limits: query::Limits,
    ) -> anyhow::Result<ServiceOptions> {
        Ok(ServiceOptions {
            data_dir: directory.path().to_owned(),
            registry,
            hash_key: directory.hash_key().map_err(Refused::directory)?,
            limits,
            live: Some(LiveStore { keeper: self.keeper.clone(), hot: Arc::clone(self.pipeline.hot()) }),
        })
    }
}

/// The tables, or why they cannot be opened. Then everything is still taken and kept in the log, and sealed when
/// they can be.
fn open_lake(
    disk: &Arc<dyn Disk>,
    directory: &DataDirectory,
    options: LakeOptions,
) -> Result<Arc<Lake>, LakeError> {
    let opened = Lake::open(disk, directory.path(), options).map(Arc::new);
    opened.inspect_err(|error| {
        tracing::error!(%error, "the tables cannot be opened; the log keeps everything until they can be");
    })
}

fn open_log(
    room: &Room,
    directory: &DataDirectory,
    lake: Option<&Lake>,
    mut restored: Restored,
) -> anyhow::Result<(Log, Replay, Restored)> {
    if let Err(error) = restored.take_sealed_answers() {
        tracing::warn!(%error, "answers to requests with an Idempotency-Key may be forgotten");
    }
    restored.take_recent_calls(&recent::read(&RealDisk, &directory.recent_calls(), now() - RECENT_US));
    let options = LogOptions {
        max_bytes: room.log_bytes,
        preamble: codec::preamble()?,
        schema: schema::VERSION,
        // Should the log have been lost, none of its numbers is given again.
        first_sequence: lake.map_or(0, Lake::newest) + 1,
        ..LogOptions::default()
    };
    let disk = Arc::new(RealDisk);
    let (log, replay) = Log::open(disk, &directory.log(), options, &mut |record| restored.take(record))
        .map_err(Refused::directory)?;
    Ok((log, replay, restored))
}
