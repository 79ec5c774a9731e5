//! Batches as bytes: what a record of the log holds.
//!
//! A record is a list of parts, one for each table that has rows: a head of sixteen bytes, then Arrow IPC
//! messages (dictionaries, then the batch), all on eight-byte boundaries. Schemas are not repeated with every
//! record: they stand in the preamble of each log segment, so that a segment can be read by itself, whatever
//! version wrote it.
//!
//! What always holds: decoding copies nothing (arrays are slices of the record's bytes) and trusts nothing:
//! Arrow checks what it reads.

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

/// Eight bytes are what our widest column needs; more would be padding.
const ALIGNMENT: usize = 8;
/// Table, rows and length, before each part.
const HEAD: usize = 16;

/// Why bytes could not be turned into batches.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The bytes are not what we write: pass the record over.
    #[error("the record is not laid out as one: {0}")]
    Layout(&'static str),
    /// Arrow refused them: pass the record over.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// Turns batches into the bytes of a record; keeps its buffers.
#[derive(Default)]
pub struct Encoder {
    context: IpcWriteContext,
}

impl Encoder {
    /// Appends one table's batch to a record. Taken by value, so that a giant does not stand in memory for longer
    /// than it must.
    ///
    /// # Errors
    /// When Arrow cannot encode it, which would be a defect of ours.
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

/// A tracker that has given every dictionary of a schema its number, as writing the schema would.
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

/// The schemas that records are written with: the preamble of a log segment.
///
/// # Errors
/// When Arrow cannot encode them, which would be a defect of ours.
pub fn preamble() -> Result<Vec<u8>, CodecError> {
    let mut preamble = Vec::new();
    for table in Table::ALL {
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

/// A record that holds nothing, and takes at least this many bytes: to find out whether one of that size is taken.
/// It has one part, of a table that is none.
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

/// One part of a record or preamble: the table's number, its rows, its messages.
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

/// Returns the number of rows of each table in a record, by [`Table::ALL`]; reads only the heads.
///
/// # Errors
/// When the bytes are not laid out as a record.
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

/// Turns the bytes of records back into batches, with the schemas of the segment they stand in.
#[derive(Debug, Clone)]
pub struct Decoder {
    /// The schema message of each table; none for a table that the writer did not know.
    schemas: [Option<Buffer>; Table::ALL.len()],
}

impl Decoder {
    /// A decoder for segments with this preamble.
    ///
    /// # Errors
    /// When the bytes are not laid out as a preamble.
    pub fn new(preamble: &[u8]) -> Result<Self, CodecError> {
        let mut schemas = [const { None }; Table::ALL.len()];
        for part in parts(Buffer::from(preamble)) {
            let part = part?;
            // A newer version may have tables that we do not know.
            if let Some(schema) = schemas.get_mut(part.table as usize) {
                *schema = Some(part.messages);
            }
        }
        Ok(Self { schemas })
    }

    /// A decoder for what this process writes.
    ///
    /// # Errors
    /// When Arrow cannot encode our schemas, which would be a defect of ours.
    pub fn current() -> Result<Self, CodecError> {
        Self::new(&preamble()?)
    }

    /// The batch of one table in a record, if it has one.
    ///
    /// # Errors
    /// When the bytes are not what we write.
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
