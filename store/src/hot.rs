//! The hot buffer: the newest records of the log, in memory, readable the moment they are durable.
//!
//! A record is kept as the very bytes that stand in the log; arrays are decoded from them, without a copy,
//! when somebody looks. So what is hot weighs what it weighs in the log, and ingest pays nothing for readers.
//!
//! What always holds: records are published in the order of the log, and only durable ones; a snapshot is a
//! stretch of the log without gaps, and stays as it is whatever comes after.

use crate::codec::{CodecError, Decoder};
use crate::schema::Table;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

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

    /// The batch of one table, if the record has one.
    ///
    /// # Errors
    /// When the bytes are not what we write.
    pub fn batch(&self, table: Table) -> Result<Option<RecordBatch>, CodecError> {
        self.decoder.batch(&self.bytes, table)
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
    records: VecDeque<Arc<HotRecord>>,
    size: HotSize,
}

/// How much is hot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HotSize {
    /// Records of the log.
    pub records: u64,
    /// Their events.
    pub events: u64,
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
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.size.add(&record);
        held.records.push_back(Arc::new(record));
        while held.size.bytes > self.limit {
            let Some(oldest) = held.records.pop_front() else { break };
            held.size.remove(&oldest);
        }
    }

    /// The records as they are now, oldest first.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Arc<HotRecord>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.records.iter().cloned().collect()
    }

    /// How much is held.
    #[must_use]
    pub fn size(&self) -> HotSize {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).size
    }
}

impl HotSize {
    fn add(&mut self, record: &HotRecord) {
        self.records += 1;
        self.events += record.rows[Table::Events as usize];
        self.bytes += record.bytes.len();
    }

    fn remove(&mut self, record: &HotRecord) {
        self.records -= 1;
        self.events -= record.rows[Table::Events as usize];
        self.bytes -= record.bytes.len();
        self.evicted += 1;
    }
}
