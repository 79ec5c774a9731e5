//! The encoding of batches as bytes, which are the content of a WAL record.
//!
//! A record is a list of parts, one for each table that has rows: a head of sixteen bytes, then Arrow IPC messages
//! (dictionaries, then the batch), all on eight-byte boundaries. Schemas are not repeated in every record: they are in
//! the preamble of each WAL segment, so that a segment can be read by itself, whatever version wrote it.
//!
//! Invariants: decoding copies nothing (arrays are slices of the record's bytes) and trusts nothing: Arrow checks the
//! data that it reads.

use crate::schema::Table;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::{
    DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions, write_message,
};
use arrow::ipc::{CompressionType, MetadataVersion};

/// The alignment of the widest column, in bytes. A larger one would only add padding.
const ALIGNMENT: usize = 8;
/// The length of the head before each part: table, rows and length.
const HEAD: usize = 16;

/// The reason why bytes could not be decoded into batches.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The bytes are not in the expected format. The record is skipped.
    #[error("the record is not laid out as one: {0}")]
    Layout(&'static str),
    /// Arrow rejected the bytes. The record is skipped.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// Encodes batches into the bytes of a record. It reuses its buffers.
#[derive(Default)]
pub struct Encoder {
    context: IpcWriteContext,
}

impl Encoder {
    /// Appends one table's batch to a record. It takes the batch by value, so that a very large one is freed as soon as
    /// possible.
    ///
    /// # Errors
    /// Fails when Arrow cannot encode it, which would be a bug.
    pub fn append(
        &mut self,
        record: &mut Vec<u8>,
        table: Table,
        batch: RecordBatch,
    ) -> Result<(), CodecError> {
        let rows = u32::try_from(batch.num_rows()).map_err(|_| CodecError::Layout("too many rows"))?;
        let start = record.len();
        record.extend_from_slice(&(table as u32).to_le_bytes());
        record.extend_from_slice(&rows.to_le_bytes());
        record.extend_from_slice(&[0; 8]);
        let options = options()?;
        let mut tracker = tracker(&batch.schema());
        let generator = IpcDataGenerator::default();
        let (dictionaries, rows) = generator.encode(&batch, &mut tracker, &options, &mut self.context)?;
        drop(batch);
        for message in dictionaries.into_iter().chain([rows]) {
            write_message(&mut *record, message, &options)?;
        }
        let length = (record.len() - start - HEAD) as u64;
        record[start + 8..start + HEAD].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }
}

fn options() -> Result<IpcWriteOptions, ArrowError> {
    let none: Option<CompressionType> = None;
    IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?.try_with_compression(none)
}

/// Returns a tracker in which every dictionary of a schema has its number, as writing the schema would assign it.
fn tracker(schema: &SchemaRef) -> DictionaryTracker {
    let mut tracker = DictionaryTracker::new(false);
    for field in schema.fields() {
        for _ in 0..dictionaries(field.data_type()) {
            tracker.next_dict_id();
        }
    }
    tracker
}

fn dictionaries(data_type: &DataType) -> usize {
    match data_type {
        DataType::Dictionary(..) => 1,
        DataType::List(item) => dictionaries(item.data_type()),
        _ => 0,
    }
}

/// Returns the schemas that records are written with, which are the preamble of a WAL segment.
///
/// # Errors
/// Fails when Arrow cannot encode them, which would be a bug.
pub fn preamble() -> Result<Vec<u8>, CodecError> {
    let mut preamble = Vec::new();
    for table in Table::IN_WAL {
        let mut tracker = DictionaryTracker::new(false);
        let options = options()?;
        let schema = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(
            &table.schema(),
            &mut tracker,
            &options,
        );
        let start = preamble.len();
        preamble.extend_from_slice(&(table as u32).to_le_bytes());
        preamble.extend_from_slice(&[0; 12]);
        write_message(&mut preamble, schema, &options)?;
        let length = (preamble.len() - start - HEAD) as u64;
        preamble[start + 8..start + HEAD].copy_from_slice(&length.to_le_bytes());
    }
    Ok(preamble)
}

/// Returns a record without rows that takes at least this many bytes, to find out whether a record of that size is
/// accepted. It has one part, of a table that does not exist.
#[must_use]
pub fn nothing(bytes: usize) -> Vec<u8> {
    let messages = bytes.saturating_sub(HEAD);
    let mut record = Vec::with_capacity(HEAD + messages);
    record.extend_from_slice(&u32::MAX.to_le_bytes());
    record.extend_from_slice(&0_u32.to_le_bytes());
    record.extend_from_slice(&(messages as u64).to_le_bytes());
    record.resize(HEAD + messages, 0);
    record
}

/// One part of a record or preamble: the table's number, its rows, and its messages.
struct Part {
    table: u32,
    rows: u32,
    messages: Buffer,
}

/// Splits bytes into parts.
fn parts(mut bytes: Buffer) -> impl Iterator<Item = Result<Part, CodecError>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let part = next_part(&mut bytes);
        if part.is_err() {
            bytes = Buffer::from_vec(Vec::<u8>::new());
        }
        Some(part)
    })
}

fn next_part(bytes: &mut Buffer) -> Result<Part, CodecError> {
    let head = bytes.get(..HEAD).ok_or(CodecError::Layout("a part's head is cut off"))?;
    let word =
        |at: usize| head.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes);
    let (table, rows) = (word(0), word(4));
    let length = (u64::from(word(12)) << 32 | u64::from(word(8))) as usize;
    bytes.advance(HEAD);
    if length > bytes.len() {
        return Err(CodecError::Layout("a part is cut off"));
    }
    let messages = bytes.slice_with_length(0, length);
    bytes.advance(length);
    Ok(Part { table, rows, messages })
}

/// Returns the number of rows of each table in a record, by [`Table::ALL`]. It reads only the heads.
///
/// # Errors
/// Fails when the bytes are not in the format of a record.
pub fn rows(record: &Buffer) -> Result<[u64; Table::ALL.len()], CodecError> {
    let mut rows = [0; Table::ALL.len()];
    for part in parts(record.clone()) {
        let part = part?;
        if let Some(count) = rows.get_mut(part.table as usize) {
            *count += u64::from(part.rows);
        }
    }
    Ok(rows)
}

/// Decodes the bytes of records into batches, with the schemas of their segment.
#[derive(Debug, Clone)]
pub struct Decoder {
    /// The schema message of each table; `None` for a table that the writer did not know.
    schemas: [Option<Buffer>; Table::ALL.len()],
}

impl Decoder {
    /// Creates a decoder for segments with this preamble.
    ///
    /// # Errors
    /// Fails when the bytes are not in the format of a preamble.
    pub fn new(preamble: &[u8]) -> Result<Self, CodecError> {
        let mut schemas = [const { None }; Table::ALL.len()];
        for part in parts(Buffer::from(preamble)) {
            let part = part?;
            // A newer version may have tables that this version does not know.
            if let Some(schema) = schemas.get_mut(part.table as usize) {
                *schema = Some(part.messages);
            }
        }
        Ok(Self { schemas })
    }

    /// Creates a decoder for records of this process.
    ///
    /// # Errors
    /// Fails when Arrow cannot encode the schemas, which would be a bug.
    pub fn current() -> Result<Self, CodecError> {
        Self::new(&preamble()?)
    }

    /// Returns the batch of one table in a record, if the record has one.
    ///
    /// # Errors
    /// Fails when the bytes are not in the expected format.
    pub fn batch(&self, record: &Buffer, table: Table) -> Result<Option<RecordBatch>, CodecError> {
        for part in parts(record.clone()) {
            let part = part?;
            if part.table == table as u32 {
                return self.decode(part, table).map(Some);
            }
        }
        Ok(None)
    }

    fn decode(&self, part: Part, table: Table) -> Result<RecordBatch, CodecError> {
        let schema = self.schemas[table as usize].clone();
        let mut schema = schema.ok_or(CodecError::Layout("the segment has no schema for a table"))?;
        let mut decoder = StreamDecoder::new();
        decoder.decode(&mut schema)?;
        let mut messages = part.messages;
        decoder.decode(&mut messages)?.ok_or(CodecError::Layout("a part without a batch"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_nothing_holds_no_row() {
        for bytes in [0, 1, HEAD, 100, 1 << 20] {
            let record = nothing(bytes);
            assert!(record.len() >= bytes && record.len() <= bytes.max(HEAD));
            let record = Buffer::from_vec(record);
            assert_eq!(rows(&record).unwrap(), [0; Table::ALL.len()]);
            for table in Table::ALL {
                assert!(Decoder::current().unwrap().batch(&record, table).unwrap().is_none());
            }
        }
    }
}
