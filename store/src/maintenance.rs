//! Background maintenance: it flushes buffered records to the Delta tables, compacts them, and removes expired data.
//!
//! Two threads. The *flusher* flushes when enough has gathered or the oldest rows are old enough; then it lets the hot
//! buffer and the log go of them. *Maintenance* merges, expires, checkpoints and clears away, with what ingest and flushing
//! leave of the processor.
//!
//! What always holds:
//! - The log is released one flush later than it could be, so that the rows of the newest commit are still in it, should
//!   that commit turn out to be damaged. Where they are not (the log runs out of room; the table is seldom written), a
//!   checkpoint holds what the commit did before the log is released.
//! - What fails is tried again, later and later, and is seen in [`MaintenanceStats`]; nothing is let go meanwhile.
//! - Nothing is removed because it is old while it is not certain what time it is: see [`crate::clock`].
//! - At most [`FlushOptions::bytes`] of the log are flushed at once, or one record, so the memory that it takes is bounded.

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
/// Maintenance is to have what others leave.
const MAINTENANCE_NICENESS: i32 = 10;

/// When rows are flushed.
#[derive(Debug, Clone, Copy)]
pub struct FlushOptions {
    /// When so many bytes of the log have gathered; also how much is flushed at once.
    pub bytes: usize,
    /// When so many rows have gathered.
    pub rows: u64,
    /// When the oldest is so old.
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
    /// The log, to be released.
    pub log: Wal,
    /// The records to be flushed.
    pub hot: Arc<Hot>,
    /// When.
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
    /// None while the tables cannot be opened.
    delta: RwLock<Option<Arc<DeltaTables>>>,
    /// The damage that keeps the tables from being opened, if there is any.
    damage: Mutex<Option<String>>,
    counters: Counters,
    clocks: Clocks,
}

impl Maintenance {
    /// Starts the threads. Tables that could not be opened are tried again: until then the log keeps everything.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn start(parts: Parts, delta: Result<Arc<DeltaTables>, DeltaError>) -> io::Result<Self> {
        let clocks = Clocks::new(&parts.directory, parts.tables.clock);
        let damage = Mutex::new(delta.as_ref().err().and_then(damage_of));
        let (delta, counters) = (RwLock::new(delta.ok()), Counters::default());
        let shared = Arc::new(Shared { parts, delta, damage, counters, clocks });
        // Nothing is ever sent: that the sender is gone is the message.
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

    /// The tables; none while they cannot be opened.
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
    /// What time it is, for one step of maintenance. Who only stores something does not have to know whether that is
    /// right, and does not judge it for those that come later.
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

    /// The tables, opened if they have not been.
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

/// Why flushing did not work.
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
    /// Everything up to here is in all tables.
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
            // Or a data directory that somebody has removed would be begun anew, without its past.
            self.shared.parts.log.is_in_place().map_err(FlushError::Displaced)?;
            // A stop comes between two flushes; what is then left is flushed for a while, and the rest at the next start.
            let is_enough = if everything { begun.elapsed() >= LAST_FLUSHES } else { self.is_stopped() };
            if is_enough {
                break;
            }
            let delta = self.shared.open_delta()?;
            let records = self.next_records()?;
            let Some(up_to) = records.last().map(|record| record.sequence) else {
                // What made room is not in the log either: it was flushed before this process began.
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

    /// Keeps the identities of counted calls for a while. That it fails is no reason to keep rows from their tables.
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

    /// Whether the log runs out of room. Two segments are always there: the one being written, and the next.
    fn is_tight(&self) -> bool {
        let Parts { log, flush, .. } = &self.shared.parts;
        let stats = log.stats();
        stats.full || stats.bytes > flush.log_bytes / 8 * 5
    }

    /// The oldest records that are not flushed yet: from memory, or from the log where they had to make room.
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
    /// Takes a record if there is room for it. A giant is taken alone.
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

    /// One round over all tables; true when it is worth another at once.
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
                Ok(kept) => {
                    is_worth_another |= kept.merged > 0;
                    self.shared.counters.kept(table, kept, begun.elapsed());
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
