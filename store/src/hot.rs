//! The hot buffer: the newest records of the WAL in memory, which queries can read as soon as they are durable.
//!
//! A record is kept as exactly the bytes that are in the WAL; arrays are decoded from them, without a copy, when a
//! reader asks for them. So a buffered record has the same size as in the WAL, and readers cost ingest nothing.
//!
//! Invariants: records are published in the order of the WAL, and only durable ones. A snapshot holds all records after
//! the last one that was evicted, and never changes afterwards. Records leave when they are flushed, or, oldest first,
//! when the buffer is full; then they are read from the WAL. Readers that follow the WAL can read the newest flushed
//! records a little longer.

use crate::codec::{CodecError, Decoder};
use crate::delta::schema_evolution;
use crate::schema::Table;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time for which a flushed record can still be followed. A reader polls many times a second, but may be delayed.
const LINGER: Duration = Duration::from_secs(10);
/// The maximum size of flushed records that are kept for followers.
const LINGER_BYTES: usize = 4 << 20;

/// A durable record in the buffer.
#[derive(Debug)]
pub struct BufferedRecord {
    /// The record's sequence in the WAL.
    pub sequence: u64,
    /// The number of rows of each table in the record, by [`Table::ALL`].
    pub rows: [u64; Table::ALL.len()],
    bytes: Buffer,
    decoder: Arc<Decoder>,
}

impl BufferedRecord {
    /// Creates a record with the decoder of its segment.
    ///
    /// # Errors
    /// Fails when the bytes are not in the format of a record.
    pub fn new(sequence: u64, bytes: Buffer, decoder: Arc<Decoder>) -> Result<Self, CodecError> {
        Ok(Self { sequence, rows: crate::codec::rows(&bytes)?, bytes, decoder })
    }

    /// Returns the size of the record.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the batch of one table, if the record has one.
    ///
    /// # Errors
    /// Fails when the bytes are not in the expected format.
    pub fn batch(&self, table: Table) -> Result<Option<RecordBatch>, CodecError> {
        self.decoder.batch(&self.bytes, table)
    }

    /// Returns the batch of one table with its current columns, whatever version wrote it.
    ///
    /// # Errors
    /// Fails when the bytes are not in the expected format.
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
    /// The flushed records that can still be followed.
    flushed: Flushed,
    size: BufferSize,
    /// The highest sequence that was evicted because the buffer was full.
    evicted: u64,
    /// The highest sequence that has left the buffer for any reason.
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
    /// The highest sequence that was evicted without being flushed. Such records are in the WAL.
    pub evicted: u64,
}

/// The records after a position in the WAL.
#[derive(Debug, Clone, Default)]
pub struct Following {
    /// The buffered records after the position, oldest first.
    pub records: Vec<Arc<BufferedRecord>>,
    /// The highest sequence that has left the buffer. A reader that has not reached it has missed records.
    pub gone: u64,
}

/// The size of the buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BufferSize {
    /// The number of records.
    pub records: u64,
    /// The number of events in them.
    pub events: u64,
    /// The number of rows in them, in all tables.
    pub rows: u64,
    /// The size of the records.
    pub bytes: usize,
    /// The number of records that were evicted because the buffer was full; they are in the WAL.
    pub evicted: u64,
}

impl Hot {
    /// Creates an empty buffer of at most this many bytes.
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

    /// Marks records as being flushed. They stay in memory even after they leave the buffer, so they count towards its
    /// limit.
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

    /// Returns a snapshot of the records.
    #[must_use]
    pub fn snapshot(&self) -> BufferSnapshot {
        let held = self.held();
        let records = held.records.iter().map(|(_, record)| Arc::clone(record)).collect();
        BufferSnapshot { records, evicted: held.evicted }
    }

    /// Returns the records after a sequence, at most `most` of them.
    #[must_use]
    pub fn after(&self, sequence: u64, most: usize) -> Following {
        let held = self.held();
        let records = following(&held.flushed.records, sequence).chain(following(&held.records, sequence));
        Following { records: records.take(most).map(Arc::clone).collect(), gone: held.gone }
    }

    /// Returns the newest sequence that was ever in the buffer, and the oldest that can be followed.
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

    /// Returns the age of the oldest record in the buffer.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        self.held().records.front().map(|(since, _)| since.elapsed())
    }

    /// Returns the highest sequence that was evicted because the buffer was full.
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

/// Returns the records after a sequence.
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
