//! The hot buffer: the newest records of the log, in memory, readable the moment they are durable.
//!
//! A record is kept as the very bytes that stand in the log; arrays are decoded from them, without a copy,
//! when somebody looks. So what is hot weighs what it weighs in the log, and ingest pays nothing for readers.
//!
//! What always holds: records are published in the order of the log, and only durable ones; a snapshot holds all
//! that follows the last one that had to go, and stays as it is whatever comes after. Records go when they are
//! sealed, or, oldest first, when there is no room; then they are read from the log. Whoever follows the log may look
//! at the newest sealed ones for a little longer.

use crate::codec::{CodecError, Decoder};
use crate::lake::evolve;
use crate::schema::Table;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For so long a sealed record can still be followed: a reader looks many times a second, but may be held up.
const LINGER: Duration = Duration::from_secs(10);
/// And at most so much of them is kept.
const LINGER_BYTES: usize = 4 << 20;

/// A durable record.
#[derive(Debug)]
pub struct HotRecord {
    /// Its place in the log.
    pub sequence: u64,
    /// How many rows of each table it holds, by [`Table::ALL`].
    pub rows: [u64; Table::ALL.len()],
    bytes: Buffer,
    decoder: Arc<Decoder>,
}

impl HotRecord {
    /// A record, with the decoder of the segment it stands in.
    ///
    /// # Errors
    /// When the bytes are not laid out as a record.
    pub fn new(sequence: u64, bytes: Buffer, decoder: Arc<Decoder>) -> Result<Self, CodecError> {
        Ok(Self { sequence, rows: crate::codec::rows(&bytes)?, bytes, decoder })
    }

    /// What it weighs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The batch of one table, if the record has one.
    ///
    /// # Errors
    /// When the bytes are not what we write.
    pub fn batch(&self, table: Table) -> Result<Option<RecordBatch>, CodecError> {
        self.decoder.batch(&self.bytes, table)
    }

    /// The batch of one table with its current columns, whatever version wrote it.
    ///
    /// # Errors
    /// When the bytes are not what we write.
    pub fn current_batch(&self, table: Table) -> Result<Option<RecordBatch>, CodecError> {
        let adapted = |batch| Ok(evolve::adapted(batch, &table.schema())?);
        self.batch(table)?.map(adapted).transpose()
    }
}

/// The newest records, within a bound on their weight.
#[derive(Debug)]
pub struct Hot {
    limit: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// With the moment they became hot.
    records: VecDeque<(Instant, Arc<HotRecord>)>,
    /// Sealed ones that can still be followed.
    sealed: Sealed,
    size: HotSize,
    /// The highest sequence that went for want of room.
    evicted: u64,
    /// The highest sequence that went, for whatever reason.
    gone: u64,
    /// What is being sealed: up to which sequence, and the weight of what of it is no longer in here.
    sealing: (u64, usize),
}

/// Sealed records, with the moment they were, and their weight.
#[derive(Debug, Default)]
struct Sealed {
    records: VecDeque<(Instant, Arc<HotRecord>)>,
    bytes: usize,
}

/// What was hot at one moment.
#[derive(Debug, Clone, Default)]
pub struct HotSnapshot {
    /// The records, oldest first.
    pub records: Vec<Arc<HotRecord>>,
    /// Records up to this sequence may be missing though they are not sealed: the log has them.
    pub evicted: u64,
}

/// What follows a place in the log.
#[derive(Debug, Clone, Default)]
pub struct Following {
    /// The records after it that are hot, oldest first.
    pub records: Vec<Arc<HotRecord>>,
    /// Records up to this sequence have gone: whoever has not seen them all has missed something.
    pub gone: u64,
}

/// How much is hot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HotSize {
    /// Records of the log.
    pub records: u64,
    /// Their events.
    pub events: u64,
    /// Their rows, in all tables.
    pub rows: u64,
    /// Their weight.
    pub bytes: usize,
    /// Records that had to make room; they are in the log.
    pub evicted: u64,
}

impl Hot {
    /// An empty buffer of at most this many bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, held: Mutex::default() }
    }

    /// Adds a durable record, and lets go of the oldest ones when there is no room.
    pub fn publish(&self, record: HotRecord) {
        let mut held = self.held();
        held.size.add(&record);
        held.records.push_back((Instant::now(), Arc::new(record)));
        let room = self.limit.saturating_sub(held.size.bytes + held.sealing.1);
        held.forget(room);
        while held.size.bytes + held.sealing.1 > self.limit {
            let Some((_, oldest)) = held.records.pop_front() else { break };
            held.size.remove(&oldest);
            held.size.evicted += 1;
            held.evicted = held.evicted.max(oldest.sequence);
            held.gone = held.gone.max(oldest.sequence);
            if oldest.sequence <= held.sealing.0 {
                held.sealing.1 += oldest.bytes();
            }
        }
    }

    /// Says which records are being sealed: they stay in memory whether they are in here or not, so they count.
    pub fn seal(&self, records: &[Arc<HotRecord>]) {
        let mut held = self.held();
        let first = held.records.front().map_or(u64::MAX, |(_, record)| record.sequence);
        let elsewhere = records.iter().filter(|record| record.sequence < first).map(|record| record.bytes());
        held.sealing = (records.last().map_or(0, |record| record.sequence), elsewhere.sum());
    }

    /// Lets go of records that are sealed.
    pub fn release(&self, up_to: u64) {
        let mut held = self.held();
        held.sealing = (0, 0);
        while let Some((_, sealed)) = held.records.pop_front_if(|(_, record)| record.sequence <= up_to) {
            held.size.remove(&sealed);
            held.sealed.bytes += sealed.bytes();
            held.sealed.records.push_back((Instant::now(), sealed));
        }
        let room = self.limit.saturating_sub(held.size.bytes);
        held.forget(room);
        if held.records.is_empty() {
            held.records.shrink_to_fit();
        }
    }

    /// The records as they are now.
    #[must_use]
    pub fn snapshot(&self) -> HotSnapshot {
        let held = self.held();
        let records = held.records.iter().map(|(_, record)| Arc::clone(record)).collect();
        HotSnapshot { records, evicted: held.evicted }
    }

    /// The records after a sequence, at most so many of them.
    #[must_use]
    pub fn after(&self, sequence: u64, most: usize) -> Following {
        let held = self.held();
        let records = following(&held.sealed.records, sequence).chain(following(&held.records, sequence));
        Following { records: records.take(most).map(Arc::clone).collect(), gone: held.gone }
    }

    /// The newest sequence that was ever here, and the oldest that can be followed.
    #[must_use]
    pub fn ends(&self) -> (u64, Option<u64>) {
        let held = self.held();
        let sequence = |(_, record): &(Instant, Arc<HotRecord>)| record.sequence;
        let newest = held.records.back().or(held.sealed.records.back()).map_or(held.gone, sequence);
        (newest, held.sealed.records.front().or(held.records.front()).map(sequence))
    }

    /// How much is held.
    #[must_use]
    pub fn size(&self) -> HotSize {
        self.held().size
    }

    /// How long the oldest record has been hot.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        self.held().records.front().map(|(since, _)| since.elapsed())
    }

    /// The highest sequence that went for want of room.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.held().evicted
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Lets go of sealed records that have been followed long enough, or for which there is no room.
    fn forget(&mut self, room: usize) {
        let room = room.min(LINGER_BYTES);
        while let Some((since, oldest)) = self.sealed.records.front() {
            if self.sealed.bytes <= room && since.elapsed() < LINGER {
                break;
            }
            self.gone = self.gone.max(oldest.sequence);
            self.sealed.bytes -= oldest.bytes();
            self.sealed.records.pop_front();
        }
    }
}

/// The records after a sequence.
fn following(
    records: &VecDeque<(Instant, Arc<HotRecord>)>,
    sequence: u64,
) -> impl Iterator<Item = &Arc<HotRecord>> {
    let first = records.partition_point(|(_, record)| record.sequence <= sequence);
    records.range(first..).map(|(_, record)| record)
}

impl HotSize {
    fn add(&mut self, record: &HotRecord) {
        self.records += 1;
        self.events += record.rows[Table::Events as usize];
        self.rows += record.rows.iter().sum::<u64>();
        self.bytes += record.bytes.len();
    }

    fn remove(&mut self, record: &HotRecord) {
        self.records -= 1;
        self.events -= record.rows[Table::Events as usize];
        self.rows -= record.rows.iter().sum::<u64>();
        self.bytes -= record.bytes.len();
    }
}
