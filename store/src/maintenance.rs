//! Background maintenance: it flushes buffered records to the Delta tables, compacts them, and removes expired data.
//!
//! There are two threads. The *flusher* flushes when enough rows have gathered or the oldest rows are old enough; then
//! it releases them from the buffer and the WAL. *Maintenance* merges files, removes expired rows, writes checkpoints
//! and deletes files, with the processor time that ingest and flushing leave.
//!
//! Invariants:
//! - The WAL is released one flush later than possible, so that the rows of the newest commit are still in it if that
//!   commit turns out to be damaged. Where they are not (the WAL runs out of space; the table is seldom written), a
//!   checkpoint with that commit is written before the WAL is released.
//! - A failed operation is retried with increasing delays, and is visible in [`MaintenanceStats`]; nothing is released
//!   meanwhile.
//! - No data is removed because of its age while the time is not certain: see [`crate::clock`].
//! - At most [`FlushOptions::bytes`] of the WAL are flushed at once, or one record, so the memory for a flush is
//!   bounded.

use crate::delta::{DeltaError, DeltaOptions, DeltaTables, MaintenanceMode};
use crate::directory::DataDirectory;
use crate::disk::Disk;
use crate::hot::{BufferedRecord, Hot};
use crate::schema::Table;
use crate::snapshot::Decoders;
use crate::wal::{CommitError, Wal, WalError, WalView};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use stats::Counters;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

mod clock;
pub mod recent_calls;
mod stats;

pub use clock::ClockStats;
use clock::{Clocks, Trusted};
pub use stats::{MaintenanceStats, TableSize};

/// The interval at which the flusher checks whether there is something to do.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The interval between rounds of maintenance when the last round found nothing.
const MAINTENANCE_EVERY: Duration = Duration::from_secs(5);
/// The wait after a failure, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// The maximum delay of a stop, in addition to one flush. The remaining records are in the WAL.
const LAST_FLUSHES: Duration = Duration::from_secs(10);
/// The niceness of maintenance, which uses the processor time that other threads leave.
const MAINTENANCE_NICENESS: i32 = 10;

/// The conditions under which rows are flushed.
#[derive(Debug, Clone, Copy)]
pub struct FlushOptions {
    /// The size of buffered records that triggers a flush, and the size that is flushed at once.
    pub bytes: usize,
    /// The number of buffered rows that triggers a flush.
    pub rows: u64,
    /// The age of the oldest record that triggers a flush.
    pub age: Duration,
    /// The size limit of the WAL: when it runs out of space, everything is flushed, and released at once.
    pub log_bytes: u64,
}

/// The parts of the store that maintenance works on.
#[derive(Debug)]
pub struct Parts {
    /// The file system.
    pub disk: Arc<dyn Disk>,
    /// The data directory.
    pub directory: DataDirectory,
    /// The WAL, whose flushed records are released.
    pub log: Wal,
    /// The records to be flushed.
    pub hot: Arc<Hot>,
    /// The conditions under which rows are flushed.
    pub flush: FlushOptions,
    /// The Delta tables.
    pub tables: DeltaOptions,
    /// The changes that may be made to the tables besides flushing.
    pub mode: MaintenanceMode,
}

/// A handle to the background maintenance. Clones refer to the same threads.
#[derive(Debug, Clone)]
pub struct Maintenance {
    shared: Arc<Shared>,
    stop: Arc<Mutex<Option<Sender<()>>>>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

#[derive(Debug)]
struct Shared {
    parts: Parts,
    /// The tables; `None` while they cannot be opened.
    delta: RwLock<Option<Arc<DeltaTables>>>,
    /// The damage that keeps the tables from being opened, if there is any.
    damage: Mutex<Option<String>>,
    counters: Counters,
    clocks: Clocks,
}

impl Maintenance {
    /// Starts the threads. Tables that could not be opened are tried again; until then the WAL keeps everything.
    ///
    /// # Errors
    /// Fails when a thread cannot be started.
    pub fn start(parts: Parts, delta: Result<Arc<DeltaTables>, DeltaError>) -> io::Result<Self> {
        let clocks = Clocks::new(&parts.directory, parts.tables.clock);
        let damage = Mutex::new(delta.as_ref().err().and_then(damage_of));
        let (delta, counters) = (RwLock::new(delta.ok()), Counters::default());
        let shared = Arc::new(Shared { parts, delta, damage, counters, clocks });
        // Nothing is ever sent: dropping the sender is the signal.
        let (stop, stopped) = bounded(0);
        let flusher =
            Flusher { shared: Arc::clone(&shared), stopped: stopped.clone(), done: 0, retry: RETRY.0 };
        let worker = MaintenanceWorker { shared: Arc::clone(&shared), stopped };
        let threads = vec![
            thread::Builder::new().name("flusher".into()).spawn(move || flusher.run())?,
            thread::Builder::new().name("maintenance".into()).spawn(move || worker.run())?,
        ];
        Ok(Self { shared, stop: Arc::new(Mutex::new(Some(stop))), threads: Arc::new(Mutex::new(threads)) })
    }

    /// Flushes the remaining records, and stops. It blocks. Nothing may be written to the WAL after the call.
    pub fn stop(&self) {
        drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the maintenance panicked");
            }
        }
    }

    /// Returns the tables, or `None` while they cannot be opened.
    #[must_use]
    pub fn delta(&self) -> Option<Arc<DeltaTables>> {
        self.shared.delta()
    }

    /// Returns the damage that keeps the tables from being opened, if there is any.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        self.shared.damage().clone()
    }

    /// Returns the counters and the present state.
    #[must_use]
    pub fn stats(&self) -> MaintenanceStats {
        MaintenanceStats {
            clock: self.shared.clocks.stats(),
            ..self.shared.counters.read(self.delta().as_deref())
        }
    }
}

impl Shared {
    /// Returns the time for one step of maintenance. A command that only stores data does not need to know whether the
    /// clock is right, and does not store a judgement for later processes.
    fn trusted_time(&self, delta: &DeltaTables) -> Trusted {
        match self.parts.mode {
            MaintenanceMode::Full | MaintenanceMode::WithoutRemoval => self.clocks.look(delta),
            MaintenanceMode::CheckpointsOnly => {
                Trusted { now_us: (self.parts.tables.clock)(), may_remove: false }
            }
        }
    }

    fn delta(&self) -> Option<Arc<DeltaTables>> {
        self.delta.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn damage(&self) -> MutexGuard<'_, Option<String>> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tables, and opens them if they are not open.
    fn open_delta(&self) -> Result<Arc<DeltaTables>, DeltaError> {
        if let Some(delta) = self.delta() {
            return Ok(delta);
        }
        let Parts { disk, directory, tables, .. } = &self.parts;
        let opened = DeltaTables::open(disk, directory.path(), tables.clone());
        *self.damage() = opened.as_ref().err().and_then(damage_of);
        let delta = Arc::new(opened?);
        *self.delta.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&delta));
        Ok(delta)
    }
}

/// Returns the damage, if that is the reason why the tables cannot be opened.
fn damage_of(error: &DeltaError) -> Option<String> {
    matches!(error, DeltaError::Damaged { .. }).then(|| error.to_string())
}

/// The reason why a flush failed.
#[derive(Debug, thiserror::Error)]
enum FlushError {
    #[error(transparent)]
    DeltaTables(#[from] DeltaError),
    #[error(transparent)]
    Wal(#[from] WalError),
    #[error("the log could not be released: {0}")]
    Release(io::Error),
    #[error("nothing is flushed: {0}")]
    Displaced(CommitError),
}

struct Flusher {
    shared: Arc<Shared>,
    stopped: Receiver<()>,
    /// All records up to this sequence are in all tables.
    done: u64,
    retry: Duration,
}

impl Flusher {
    fn run(mut self) {
        let mut wait = LOOK_EVERY;
        while self.stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            wait = self.attempt(false);
        }
        // The rest is flushed once; the WAL has it in any case.
        self.attempt(true);
    }

    /// Flushes what is due, and returns when to check again.
    fn attempt(&mut self, everything: bool) -> Duration {
        match self.flush_due(everything) {
            Ok(()) => {
                self.shared.counters.flushes_work();
                self.retry = RETRY.0;
                LOOK_EVERY
            }
            Err(error) => {
                self.shared.counters.flush_failed(&error.to_string());
                tracing::error!(%error, retry_in_s = self.retry.as_secs(), "flushing failed; the log keeps the rows");
                let wait = self.retry;
                self.retry = (wait * 2).min(RETRY.1);
                wait
            }
        }
    }

    fn flush_due(&mut self, everything: bool) -> Result<(), FlushError> {
        let begun = Instant::now();
        // Repaired tables are opened even if no new record arrives.
        self.shared.open_delta()?;
        while self.is_due(everything) {
            // Otherwise a data directory that someone has removed would be created again, without its data.
            self.shared.parts.log.is_in_place().map_err(FlushError::Displaced)?;
            // A stop happens between two flushes. The remaining records are flushed for a limited time, and the rest at
            // the next start.
            let is_enough = if everything { begun.elapsed() >= LAST_FLUSHES } else { self.is_stopped() };
            if is_enough {
                break;
            }
            let delta = self.shared.open_delta()?;
            let records = self.next_records()?;
            let Some(up_to) = records.last().map(|record| record.sequence) else {
                // Evicted records that are not in the WAL either were flushed before this process started.
                self.done = self.done.max(self.shared.parts.hot.evicted());
                break;
            };
            self.shared.parts.hot.flush(&records);
            let now_us = self.shared.trusted_time(&delta).now_us;
            self.keep_calls(&records, up_to);
            let begun = Instant::now();
            let flushed = delta.flush(&records, up_to, now_us)?;
            self.shared.counters.flushed(records.len() as u64, flushed, begun.elapsed());
            drop(records);
            self.let_go(up_to)?;
        }
        if self.is_tight() {
            self.release(self.done)?;
        }
        Ok(())
    }

    /// Keeps the identities of counted calls for a while. A failure must not prevent the flush of rows.
    fn keep_calls(&self, records: &[Arc<BufferedRecord>], up_to: u64) {
        let Parts { disk, directory, tables, .. } = &self.shared.parts;
        let kept = recent_calls::keep(&**disk, &directory.recent_calls(), records, up_to, (tables.clock)());
        if let Err(error) = kept {
            tracing::warn!(%error, "calls of the last minutes may be counted again if they are resent after a restart");
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.try_recv() == Err(TryRecvError::Disconnected)
    }

    fn is_due(&self, everything: bool) -> bool {
        let Parts { hot, flush, .. } = &self.shared.parts;
        let size = hot.size();
        hot.evicted() > self.done
            || size.bytes >= flush.bytes
            || size.rows >= flush.rows
            || ((everything || self.is_tight()) && size.records > 0)
            || hot.age().is_some_and(|age| age >= flush.age)
    }

    /// Returns true if the WAL runs out of space. Two segments always exist: the one being written, and the next.
    fn is_tight(&self) -> bool {
        let Parts { log, flush, .. } = &self.shared.parts;
        let stats = log.stats();
        stats.full || stats.bytes > flush.log_bytes / 8 * 5
    }

    /// Returns the oldest records that are not flushed yet, from memory, or from the WAL if they were evicted.
    fn next_records(&self) -> Result<Vec<Arc<BufferedRecord>>, WalError> {
        let Parts { hot, flush, disk, directory, .. } = &self.shared.parts;
        let snapshot = hot.snapshot();
        let mut chunk = Chunk { records: Vec::new(), left: flush.bytes, is_full: false };
        if snapshot.evicted > self.done {
            let first_hot = snapshot.records.first().map_or(u64::MAX, |record| record.sequence);
            let mut decoders = Decoders::default();
            WalView::open(&**disk, &directory.wal())?.read(self.done, &mut |record| {
                if record.sequence >= first_hot || record.sequence > snapshot.evicted {
                    return ControlFlow::Break(());
                }
                let sequence = record.sequence;
                match decoders.record(record) {
                    Ok(record) => chunk.take(Arc::new(record)),
                    Err(error) => {
                        tracing::error!(sequence, %error, "a record of the log cannot be understood");
                        ControlFlow::Continue(())
                    }
                }
            });
        }
        for record in snapshot.records.into_iter().filter(|record| record.sequence > self.done) {
            if chunk.take(record).is_break() {
                break;
            }
        }
        Ok(chunk.records)
    }

    /// Releases flushed records from the buffer, and from the WAL those that were flushed before.
    fn let_go(&mut self, up_to: u64) -> Result<(), FlushError> {
        let before = std::mem::replace(&mut self.done, up_to);
        self.shared.parts.hot.release(up_to);
        self.release(before)
    }

    fn release(&self, up_to: u64) -> Result<(), FlushError> {
        if let Some(delta) = self.shared.delta().filter(|_| up_to > 0) {
            delta.secure(up_to)?;
            self.shared.parts.log.release(up_to).map_err(FlushError::Release)?;
        }
        Ok(())
    }
}

/// Records that are flushed together.
struct Chunk {
    records: Vec<Arc<BufferedRecord>>,
    left: usize,
    is_full: bool,
}

impl Chunk {
    /// Takes a record if there is room for it. A record that is too large for a chunk is taken alone.
    fn take(&mut self, record: Arc<BufferedRecord>) -> ControlFlow<()> {
        if self.is_full || (record.bytes() > self.left && !self.records.is_empty()) {
            self.is_full = true;
            return ControlFlow::Break(());
        }
        self.left = self.left.saturating_sub(record.bytes());
        self.records.push(record);
        ControlFlow::Continue(())
    }
}

struct MaintenanceWorker {
    shared: Arc<Shared>,
    stopped: Receiver<()>,
}

impl MaintenanceWorker {
    fn run(self) {
        if let Err(error) = rustix::process::setpriority_process(None, MAINTENANCE_NICENESS) {
            tracing::debug!(%error, "maintenance runs with the priority of all others");
        }
        let mut wait = MAINTENANCE_EVERY;
        while self.stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            wait = if self.round() { Duration::ZERO } else { MAINTENANCE_EVERY };
        }
        if self.is_in_place() {
            self.shared.clocks.remember();
        }
    }

    fn is_in_place(&self) -> bool {
        self.shared.parts.log.is_in_place().is_ok()
    }

    /// Runs one round over all tables. Returns true when another round should follow at once.
    fn round(&self) -> bool {
        let Some(delta) = self.shared.delta().filter(|_| self.is_in_place()) else { return false };
        let mut is_worth_another = false;
        for table in Table::ALL {
            let begun = Instant::now();
            let Trusted { now_us, may_remove } = self.shared.trusted_time(&delta);
            let mode = match self.shared.parts.mode {
                MaintenanceMode::Full if !may_remove => MaintenanceMode::WithoutRemoval,
                other => other,
            };
            match delta.maintain(table, mode, now_us) {
                Ok(result) => {
                    is_worth_another |= result.merged > 0;
                    self.shared.counters.maintained(table, result, begun.elapsed());
                }
                Err(error) => {
                    self.shared.counters.maintenance_failed(&error.to_string());
                    tracing::error!(table = table.name(), %error, "maintenance failed; the table is as it was");
                }
            }
        }
        self.shared.counters.round_ended();
        is_worth_another
    }
}
