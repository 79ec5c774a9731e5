//! A data directory with the pipeline running on it: what `serve` and `ingest` have in common.

use crate::quantity;
use crate::refused::Refused;
use collector::pipeline::{Parts, Restored};
use collector::{Limits, Pipeline};
use std::sync::Arc;
use store::disk::RealDisk;
use store::hot::Hot;
use store::log::{Log, LogOptions, Replay};
use store::{DataDirectory, codec, schema};
use taxonomy::{HashKey, Rules};

/// What the store may take of the machine.
#[derive(Debug, clap::Args)]
pub(crate) struct Room {
    /// Disk space for the log; when it is full, senders are told to come back later.
    #[arg(long, value_name = "BYTES", default_value = "16GiB", value_parser = quantity::log_bytes, env = "FAULTLINE_LOG_BYTES")]
    log_bytes: u64,
    /// Memory for the newest rows.
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = quantity::bytes, env = "FAULTLINE_HOT_BYTES")]
    hot_bytes: u64,
}

/// What was found in the data directory, and what runs on it.
pub(crate) struct Opened {
    pub(crate) pipeline: Pipeline,
    pub(crate) replay: Replay,
    /// Events in the log.
    pub(crate) events: u64,
}

impl Opened {
    /// Reads the log back and starts the pipeline.
    pub(crate) fn new(
        room: &Room,
        registry: taxonomy::Registry,
        directory: &DataDirectory,
    ) -> anyhow::Result<Self> {
        let key = HashKey::new(directory.hash_key().map_err(Refused::directory)?);
        let limits = Limits::default();
        let hot = Arc::new(Hot::new(usize::try_from(room.hot_bytes).unwrap_or(usize::MAX)));
        let mut restored = Restored::new(Arc::clone(&hot), &limits);
        let options = LogOptions {
            max_bytes: room.log_bytes,
            preamble: codec::preamble()?,
            schema: schema::VERSION,
            ..LogOptions::default()
        };
        let disk = Arc::new(RealDisk);
        let (log, replay) = Log::open(disk, &directory.log(), options, &mut |record| restored.take(record))
            .map_err(Refused::directory)?;
        let pipeline = Pipeline::start(Parts {
            limits,
            rules: Arc::new(Rules::new(registry, key, taxonomy::Limits::default())),
            log,
            hot,
            clock: || jiff::Timestamp::now().as_microsecond(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
        })?;
        let events = restored.events;
        pipeline.restore(restored);
        Ok(Self { pipeline, replay, events })
    }
}
