//! The keeper of the lake: seals what is hot, and looks after the tables, in the background.
//!
//! Two threads. The *sealer* seals when enough has gathered or the oldest rows are old enough; then it lets the hot
//! buffer and the log go of them. *Upkeep* merges, expires, checkpoints and clears away, with what ingest and sealing
//! leave of the processor.
//!
//! What always holds:
//! - The log is released one seal later than it could be, so that the rows of the newest commit are still in it, should
//!   that commit turn out to be damaged. Where they are not (the log runs out of room; the table is seldom written), a
//!   checkpoint holds what the commit did before the log is released.
//! - What fails is tried again, later and later, and is seen in [`KeeperStats`]; nothing is let go meanwhile.
//! - Nothing is removed because it is old while it is not certain what time it is: see [`crate::clock`].
//! - At most [`SealOptions::bytes`] of the log are sealed at once, or one record, so the memory that it takes is bounded.

use crate::directory::DataDirectory;
use crate::disk::Disk;
use crate::hot::{Hot, HotRecord};
use crate::lake::{Lake, LakeError, LakeOptions, Maintenance};
use crate::log::{CommitError, Log, LogError, LogView};
use crate::schema::Table;
use crate::snapshot::Decoders;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use stats::Counters;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

mod clock;
pub mod recent;
mod stats;

pub use clock::ClockStats;
use clock::{Clocks, Trusted};
pub use stats::{KeeperStats, TableSize};

/// How often the sealer looks whether there is something to do.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often upkeep does, when the last round found nothing.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);
/// How long to wait after a failure, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A stop is not held up for longer than this, and a seal: what is left is in the log.
const LAST_SEALS: Duration = Duration::from_secs(10);
/// Upkeep is to have what others leave.
const UPKEEP_NICENESS: i32 = 10;

/// When rows are sealed.
#[derive(Debug, Clone, Copy)]
pub struct SealOptions {
    /// When so many bytes of the log have gathered; also how much is sealed at once.
    pub bytes: usize,
    /// When so many rows have gathered.
    pub rows: u64,
    /// When the oldest is so old.
    pub age: Duration,
    /// What the log may take on the disk: when it runs out of room, everything is sealed, and released at once.
    pub log_bytes: u64,
}

/// Everything that the keeper looks after.
#[derive(Debug)]
pub struct Parts {
    /// The file system.
    pub disk: Arc<dyn Disk>,
    /// The data directory.
    pub directory: DataDirectory,
    /// The log, to be released.
    pub log: Log,
    /// What is to be sealed.
    pub hot: Arc<Hot>,
    /// When.
    pub seal: SealOptions,
    /// How the tables are kept.
    pub tables: LakeOptions,
    /// What may be done to them besides sealing.
    pub maintenance: Maintenance,
}

/// The keeper. Clones are the same.
#[derive(Debug, Clone)]
pub struct Keeper {
    shared: Arc<Shared>,
    stop: Arc<Mutex<Option<Sender<()>>>>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

#[derive(Debug)]
struct Shared {
    parts: Parts,
    /// None while the tables cannot be opened.
    lake: RwLock<Option<Arc<Lake>>>,
    /// What is damaged, while they cannot be opened for that reason.
    damage: Mutex<Option<String>>,
    counters: Counters,
    clocks: Clocks,
}

impl Keeper {
    /// Starts the threads. Tables that could not be opened are tried again: until then the log keeps everything.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn start(parts: Parts, lake: Result<Arc<Lake>, LakeError>) -> io::Result<Self> {
        let clocks = Clocks::new(&parts.directory, parts.tables.clock);
        let damage = Mutex::new(lake.as_ref().err().and_then(damage_of));
        let (lake, counters) = (RwLock::new(lake.ok()), Counters::default());
        let shared = Arc::new(Shared { parts, lake, damage, counters, clocks });
        // Nothing is ever sent: that the sender is gone is the message.
        let (stop, stopped) = bounded(0);
        let sealer =
            Sealer { shared: Arc::clone(&shared), stopped: stopped.clone(), done: 0, retry: RETRY.0 };
        let upkeep = Upkeep { shared: Arc::clone(&shared), stopped };
        let threads = vec![
            thread::Builder::new().name("sealer".into()).spawn(move || sealer.run())?,
            thread::Builder::new().name("upkeep".into()).spawn(move || upkeep.run())?,
        ];
        Ok(Self { shared, stop: Arc::new(Mutex::new(Some(stop))), threads: Arc::new(Mutex::new(threads)) })
    }

    /// Seals what is left, and stops. To be called when nothing is written to the log any more. Blocks.
    pub fn stop(&self) {
        drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the keeper panicked");
            }
        }
    }

    /// The tables; none while they cannot be opened.
    #[must_use]
    pub fn lake(&self) -> Option<Arc<Lake>> {
        self.shared.lake()
    }

    /// What is damaged, while the tables cannot be opened for that reason.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        self.shared.damage().clone()
    }

    /// What was done so far, and how things stand.
    #[must_use]
    pub fn stats(&self) -> KeeperStats {
        KeeperStats { clock: self.shared.clocks.stats(), ..self.shared.counters.read(self.lake().as_deref()) }
    }
}

impl Shared {
    /// What time it is, for one step of maintenance. Who only stores something does not have to know whether that is
    /// right, and does not judge it for those that come later.
    fn trusted_time(&self, lake: &Lake) -> Trusted {
        match self.parts.maintenance {
            Maintenance::Full | Maintenance::WithoutRemoval => self.clocks.look(lake),
            Maintenance::CheckpointsOnly => {
                Trusted { now_us: (self.parts.tables.clock)(), may_remove: false }
            }
        }
    }

    fn lake(&self) -> Option<Arc<Lake>> {
        self.lake.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn damage(&self) -> MutexGuard<'_, Option<String>> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tables, opened if they have not been.
    fn open_lake(&self) -> Result<Arc<Lake>, LakeError> {
        if let Some(lake) = self.lake() {
            return Ok(lake);
        }
        let Parts { disk, directory, tables, .. } = &self.parts;
        let opened = Lake::open(disk, directory.path(), tables.clone());
        *self.damage() = opened.as_ref().err().and_then(damage_of);
        let lake = Arc::new(opened?);
        *self.lake.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&lake));
        Ok(lake)
    }
}

/// What is damaged, when that is why the tables cannot be opened.
fn damage_of(error: &LakeError) -> Option<String> {
    matches!(error, LakeError::Damaged { .. }).then(|| error.to_string())
}

/// Why sealing did not work.
#[derive(Debug, thiserror::Error)]
enum SealError {
    #[error(transparent)]
    Lake(#[from] LakeError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the log could not be released: {0}")]
    Release(io::Error),
    #[error("nothing is sealed: {0}")]
    Displaced(CommitError),
}

struct Sealer {
    shared: Arc<Shared>,
    stopped: Receiver<()>,
    /// Everything up to here is in all tables.
    done: u64,
    retry: Duration,
}

impl Sealer {
    fn run(mut self) {
        let mut wait = LOOK_EVERY;
        while self.stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            wait = self.attempt(false);
        }
        // What is left, once: the log has it in any case.
        self.attempt(true);
    }

    /// Seals what is due, and says when to look again.
    fn attempt(&mut self, everything: bool) -> Duration {
        match self.seal_due(everything) {
            Ok(()) => {
                self.shared.counters.seals_work();
                self.retry = RETRY.0;
                LOOK_EVERY
            }
            Err(error) => {
                self.shared.counters.seal_failed(&error.to_string());
                tracing::error!(%error, retry_in_s = self.retry.as_secs(), "sealing failed; the log keeps the rows");
                let wait = self.retry;
                self.retry = (wait * 2).min(RETRY.1);
                wait
            }
        }
    }

    fn seal_due(&mut self, everything: bool) -> Result<(), SealError> {
        let begun = Instant::now();
        // Whoever waits for the tables to be mended does not have to send something first.
        self.shared.open_lake()?;
        while self.is_due(everything) {
            // Or a data directory that somebody has removed would be begun anew, without its past.
            self.shared.parts.log.is_in_place().map_err(SealError::Displaced)?;
            // A stop comes between two seals; what is then left is sealed for a while, and the rest at the next start.
            let is_enough = if everything { begun.elapsed() >= LAST_SEALS } else { self.is_stopped() };
            if is_enough {
                break;
            }
            let lake = self.shared.open_lake()?;
            let records = self.next_records()?;
            let Some(up_to) = records.last().map(|record| record.sequence) else {
                // What made room is not in the log either: it was sealed before this process began.
                self.done = self.done.max(self.shared.parts.hot.evicted());
                break;
            };
            self.shared.parts.hot.seal(&records);
            let now_us = self.shared.trusted_time(&lake).now_us;
            self.keep_calls(&records, up_to);
            let begun = Instant::now();
            let sealed = lake.seal(&records, up_to, now_us)?;
            self.shared.counters.sealed(records.len() as u64, sealed, begun.elapsed());
            drop(records);
            self.let_go(up_to)?;
        }
        if self.is_tight() {
            self.release(self.done)?;
        }
        Ok(())
    }

    /// Keeps the identities of counted calls for a while. That it fails is no reason to keep rows from their tables.
    fn keep_calls(&self, records: &[Arc<HotRecord>], up_to: u64) {
        let Parts { disk, directory, tables, .. } = &self.shared.parts;
        let kept = recent::keep(&**disk, &directory.recent_calls(), records, up_to, (tables.clock)());
        if let Err(error) = kept {
            tracing::warn!(%error, "calls of the last minutes may be counted again if they are resent after a restart");
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.try_recv() == Err(TryRecvError::Disconnected)
    }

    fn is_due(&self, everything: bool) -> bool {
        let Parts { hot, seal, .. } = &self.shared.parts;
        let size = hot.size();
        hot.evicted() > self.done
            || size.bytes >= seal.bytes
            || size.rows >= seal.rows
            || ((everything || self.is_tight()) && size.records > 0)
            || hot.age().is_some_and(|age| age >= seal.age)
    }

    /// Whether the log runs out of room. Two segments are always there: the one being written, and the next.
    fn is_tight(&self) -> bool {
        let Parts { log, seal, .. } = &self.shared.parts;
        let stats = log.stats();
        stats.full || stats.bytes > seal.log_bytes / 8 * 5
    }

    /// The oldest records that are not sealed yet: from memory, or from the log where they had to make room.
    fn next_records(&self) -> Result<Vec<Arc<HotRecord>>, LogError> {
        let Parts { hot, seal, disk, directory, .. } = &self.shared.parts;
        let snapshot = hot.snapshot();
        let mut chunk = Chunk { records: Vec::new(), left: seal.bytes, is_full: false };
        if snapshot.evicted > self.done {
            let first_hot = snapshot.records.first().map_or(u64::MAX, |record| record.sequence);
            let mut decoders = Decoders::default();
            LogView::open(&**disk, &directory.log())?.read(self.done, &mut |record| {
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

    /// Lets memory and log go of what is sealed: the log of what was sealed before this.
    fn let_go(&mut self, up_to: u64) -> Result<(), SealError> {
        let before = std::mem::replace(&mut self.done, up_to);
        self.shared.parts.hot.release(up_to);
        self.release(before)
    }

    fn release(&self, up_to: u64) -> Result<(), SealError> {
        if let Some(lake) = self.shared.lake().filter(|_| up_to > 0) {
            lake.secure(up_to)?;
            self.shared.parts.log.release(up_to).map_err(SealError::Release)?;
        }
        Ok(())
    }
}

/// Records that are sealed together.
struct Chunk {
    records: Vec<Arc<HotRecord>>,
    left: usize,
    is_full: bool,
}

impl Chunk {
    /// Takes a record if there is room for it. A giant is taken alone.
    fn take(&mut self, record: Arc<HotRecord>) -> ControlFlow<()> {
        if self.is_full || (record.bytes() > self.left && !self.records.is_empty()) {
            self.is_full = true;
            return ControlFlow::Break(());
        }
        self.left = self.left.saturating_sub(record.bytes());
        self.records.push(record);
        ControlFlow::Continue(())
    }
}

struct Upkeep {
    shared: Arc<Shared>,
    stopped: Receiver<()>,
}

impl Upkeep {
    fn run(self) {
        if let Err(error) = rustix::process::setpriority_process(None, UPKEEP_NICENESS) {
            tracing::debug!(%error, "upkeep runs with the priority of all others");
        }
        let mut wait = UPKEEP_EVERY;
        while self.stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            wait = if self.round() { Duration::ZERO } else { UPKEEP_EVERY };
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
        let Some(lake) = self.shared.lake().filter(|_| self.is_in_place()) else { return false };
        let mut is_worth_another = false;
        for table in Table::ALL {
            let begun = Instant::now();
            let Trusted { now_us, may_remove } = self.shared.trusted_time(&lake);
            let maintenance = match self.shared.parts.maintenance {
                Maintenance::Full if !may_remove => Maintenance::WithoutRemoval,
                other => other,
            };
            match lake.upkeep(table, maintenance, now_us) {
                Ok(kept) => {
                    is_worth_another |= kept.merged > 0;
                    self.shared.counters.kept(table, kept, begun.elapsed());
                }
                Err(error) => {
                    self.shared.counters.upkeep_failed(&error.to_string());
                    tracing::error!(table = table.name(), %error, "upkeep failed; the table is as it was");
                }
            }
        }
        self.shared.counters.round_ended();
        is_worth_another
    }
}
