//! The hot buffer: the newest records of the WAL in memory, which queries can read as soon as they are durable.
//!
//! A record is kept as the very bytes that stand in the log; arrays are decoded from them, without a copy,
//! when somebody looks. So what is hot weighs what it weighs in the log, and ingest pays nothing for readers.
//!
//! What always holds: records are published in the order of the log, and only durable ones; a snapshot holds all
//! that follows the last one that had to go, and stays as it is whatever comes after. Records go when they are
//! flushed, or, oldest first, when there is no room; then they are read from the log. Whoever follows the log may look
//! at the newest flushed ones for a little longer.

use crate::codec::{CodecError, Decoder};
use crate::delta::schema_evolution;
use crate::schema::Table;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For so long a flushed record can still be followed: a reader looks many times a second, but may be held up.
const LINGER: Duration = Duration::from_secs(10);
/// And at most so much of them is kept.
const LINGER_BYTES: usize = 4 << 20;

/// A durable record in the buffer.
#[derive(Debug)]
pub struct BufferedRecord {
    /// Its place in the log.
    pub sequence: u64,
    /// The number of rows of each table in the record, by [`Table::ALL`].
    pub rows: [u64; Table::ALL.len()],
    bytes: Buffer,
    decoder: Arc<Decoder>,
}

impl BufferedRecord {
    /// A record, with the decoder of the segment it stands in.
    ///
    /// # Errors
    /// When the bytes are not laid out as a record.
    pub fn new(sequence: u64, bytes: Buffer, decoder: Arc<Decoder>) -> Result<Self, CodecError> {
        Ok(Self { sequence, rows: crate::codec::rows(&bytes)?, bytes, decoder })
    }

    /// The size of the record.
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
        let adapted = |batch| Ok(schema_evolution::adapted(batch, &table.schema())?);
        self.batch(table)?.map(adapted).transpose()
    }
}

/// The newest records, within a limit on their size.
#[derive(Debug)]
pub struct Hot {
    limit: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// The records, with the time at which they were added.
    records: VecDeque<(Instant, Arc<BufferedRecord>)>,
    /// Flushed ones that can still be followed.
    flushed: Flushed,
    size: BufferSize,
    /// The highest sequence that went for want of room.
    evicted: u64,
    /// The highest sequence that went, for whatever reason.
    gone: u64,
    /// The running flush: its last sequence, and the size of those of its records that have left the buffer.
    flushing: (u64, usize),
}

/// Flushed records, with the time of the flush and their size.
#[derive(Debug, Default)]
struct Flushed {
    records: VecDeque<(Instant, Arc<BufferedRecord>)>,
    bytes: usize,
}

/// The contents of the buffer at one point in time.
#[derive(Debug, Clone, Default)]
pub struct BufferSnapshot {
    /// The records, oldest first.
    pub records: Vec<Arc<BufferedRecord>>,
    /// Records up to this sequence may be missing though they are not flushed: the log has them.
    pub evicted: u64,
}

/// The records after a position in the WAL.
#[derive(Debug, Clone, Default)]
pub struct Following {
    /// The buffered records after the position, oldest first.
    pub records: Vec<Arc<BufferedRecord>>,
    /// Records up to this sequence have left the buffer. A reader that is not so far has missed some.
    pub gone: u64,
}

/// The size of the buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BufferSize {
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

    /// Adds a durable record, and removes the oldest ones when the buffer is full.
    pub fn publish(&self, record: BufferedRecord) {
        let mut held = self.held();
        held.size.add(&record);
        held.records.push_back((Instant::now(), Arc::new(record)));
        let room = self.limit.saturating_sub(held.size.bytes + held.flushing.1);
        held.forget(room);
        while held.size.bytes + held.flushing.1 > self.limit {
            let Some((_, oldest)) = held.records.pop_front() else { break };
            held.size.remove(&oldest);
            held.size.evicted += 1;
            held.evicted = held.evicted.max(oldest.sequence);
            held.gone = held.gone.max(oldest.sequence);
            if oldest.sequence <= held.flushing.0 {
                held.flushing.1 += oldest.bytes();
            }
        }
    }

    /// Says which records are being flushed: they stay in memory whether they are in here or not, so they count.
    pub fn flush(&self, records: &[Arc<BufferedRecord>]) {
        let mut held = self.held();
        let first = held.records.front().map_or(u64::MAX, |(_, record)| record.sequence);
        let elsewhere = records.iter().filter(|record| record.sequence < first).map(|record| record.bytes());
        held.flushing = (records.last().map_or(0, |record| record.sequence), elsewhere.sum());
    }

    /// Removes records that are flushed.
    pub fn release(&self, up_to: u64) {
        let mut held = self.held();
        held.flushing = (0, 0);
        while let Some((_, flushed)) = held.records.pop_front_if(|(_, record)| record.sequence <= up_to) {
            held.size.remove(&flushed);
            held.flushed.bytes += flushed.bytes();
            held.flushed.records.push_back((Instant::now(), flushed));
        }
        let room = self.limit.saturating_sub(held.size.bytes);
        held.forget(room);
        if held.records.is_empty() {
            held.records.shrink_to_fit();
        }
    }

    /// The records as they are now.
    #[must_use]
    pub fn snapshot(&self) -> BufferSnapshot {
        let held = self.held();
        let records = held.records.iter().map(|(_, record)| Arc::clone(record)).collect();
        BufferSnapshot { records, evicted: held.evicted }
    }

    /// The records after a sequence, at most so many of them.
    #[must_use]
    pub fn after(&self, sequence: u64, most: usize) -> Following {
        let held = self.held();
        let records = following(&held.flushed.records, sequence).chain(following(&held.records, sequence));
        Following { records: records.take(most).map(Arc::clone).collect(), gone: held.gone }
    }

    /// The newest sequence that was ever here, and the oldest that can be followed.
    #[must_use]
    pub fn ends(&self) -> (u64, Option<u64>) {
        let held = self.held();
        let sequence = |(_, record): &(Instant, Arc<BufferedRecord>)| record.sequence;
        let newest = held.records.back().or(held.flushed.records.back()).map_or(held.gone, sequence);
        (newest, held.flushed.records.front().or(held.records.front()).map(sequence))
    }

    /// Returns the size of the buffer.
    #[must_use]
    pub fn size(&self) -> BufferSize {
        self.held().size
    }

    /// The age of the oldest record in the buffer.
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
    /// Removes flushed records that were kept long enough for followers, or for which there is no room.
    fn forget(&mut self, room: usize) {
        let room = room.min(LINGER_BYTES);
        while let Some((since, oldest)) = self.flushed.records.front() {
            if self.flushed.bytes <= room && since.elapsed() < LINGER {
                break;
            }
            self.gone = self.gone.max(oldest.sequence);
            self.flushed.bytes -= oldest.bytes();
            self.flushed.records.pop_front();
        }
    }
}

/// The records after a sequence.
fn following(
    records: &VecDeque<(Instant, Arc<BufferedRecord>)>,
    sequence: u64,
) -> impl Iterator<Item = &Arc<BufferedRecord>> {
    let first = records.partition_point(|(_, record)| record.sequence <= sequence);
    records.range(first..).map(|(_, record)| record)
}

impl BufferSize {
    fn add(&mut self, record: &BufferedRecord) {
        self.records += 1;
        self.events += record.rows[Table::Events as usize];
        self.rows += record.rows.iter().sum::<u64>();
        self.bytes += record.bytes.len();
    }

    fn remove(&mut self, record: &BufferedRecord) {
        self.records -= 1;
        self.events -= record.rows[Table::Events as usize];
        self.rows -= record.rows.iter().sum::<u64>();
        self.bytes -= record.bytes.len();
    }
}
