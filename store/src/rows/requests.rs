//! The state that requests leave besides their rows, stored in the same WAL record, so that it is known after a restart:
//! responses to requests with an `Idempotency-Key`, read positions of texts, and identities by which duplicates are
//! recognized.
//!
//! Invariant: each kind of entry has its own columns, which are null in rows of the other kinds.

use super::column::{Bytes, Identity, Json, Kind, OneOf, Text, Time, Whole};
use crate::schema::Table;
use arrow::array::{
    Array, AsArray, BinaryArray, BooleanArray, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use std::borrow::Cow;

/// The kind of a row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// The response to a request with an `Idempotency-Key`.
    Response,
    /// The position up to which a text was read.
    Position,
    /// Identities of events that have no row of their own.
    EventIdentities,
    /// Identities of counted calls.
    CallIdentities,
}

impl EntryKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Response, Self::Position, Self::EventIdentities, Self::CallIdentities];

    /// Returns the kind as it is stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Position => "position",
            Self::EventIdentities => "event_identities",
            Self::CallIdentities => "call_identities",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRow<'r> {
    /// The time at which the entry was made, in microseconds since 1970.
    pub time: i64,
    /// What is stored.
    pub entry: Entry<'r>,
}

/// What a row of the table stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry<'r> {
    /// The response to a request with an `Idempotency-Key`.
    Response(KeyedResponse<'r>),
    /// The position up to which a text was read.
    Position(ReadPosition<'r>),
    /// Identities of events that have no row of their own, because another row represents them.
    EventIdentities(Cow<'r, [u128]>),
    /// Identities of counted calls, of which only sums are stored. They are needed for a few minutes only, so they are
    /// not flushed to the table: see [`crate::maintenance::recent_calls`].
    CallIdentities(Cow<'r, [u64]>),
}

/// The response to a request with an `Idempotency-Key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyedResponse<'r> {
    /// The hash of the key.
    pub key: u128,
    /// The hash of the contents that were sent with the key.
    pub content: u128,
    /// The response, as JSON.
    pub response: &'r str,
}

/// The position up to which a text, such as a log file, was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadPosition<'r> {
    /// The unique number of the text.
    pub text: u64,
    /// The number of bytes before the position.
    pub offset: u64,
    /// Further data of the reader of the text, as JSON.
    pub note: &'r str,
}

impl Entry<'_> {
    fn kind(&self) -> EntryKind {
        match self {
            Self::Response(_) => EntryKind::Response,
            Self::Position(_) => EntryKind::Position,
            Self::EventIdentities(_) => EntryKind::EventIdentities,
            Self::CallIdentities(_) => EntryKind::CallIdentities,
        }
    }

    fn response(&self) -> Option<&KeyedResponse<'_>> {
        if let Self::Response(response) = self { Some(response) } else { None }
    }

    fn position(&self) -> Option<&ReadPosition<'_>> {
        if let Self::Position(position) = self { Some(position) } else { None }
    }

    /// Returns identities as little-endian bytes.
    fn identities(&self) -> Option<Vec<u8>> {
        match self {
            Self::EventIdentities(identities) => Some(concatenated(identities, u128::to_le_bytes)),
            Self::CallIdentities(identities) => Some(concatenated(identities, u64::to_le_bytes)),
            _ => None,
        }
    }
}

fn concatenated<I: Copy, const N: usize>(identities: &[I], bytes_of: fn(I) -> [u8; N]) -> Vec<u8> {
    identities.iter().map(|identity| bytes_of(*identity)).collect::<Vec<_>>().concat()
}

super::table! {
    /// Builds the list of entries; it is never a table that anybody queries.
    pub RequestRows(row: RequestRow<'_>, Table::Requests) {
        time: Time = Some(row.time), always, "The time at which the entry was made";
        kind: OneOf<EntryKind> = Some(row.entry.kind()), always, "What the row stores: response, position, event_identities or call_identities";
        key: Identity = row.entry.response().map(|response| response.key), optional, "Of a response: the hash of the idempotency key";
        content: Identity = row.entry.response().map(|response| response.content), optional, "Of a response: the hash of the contents that were sent with the key";
        response: Json = row.entry.response().map(|response| response.response), optional, "The response to the request";
        text: Whole = row.entry.position().map(|position| position.text.cast_signed()), optional, "Of a position: the number of the text that was read";
        offset: Whole = row.entry.position().map(|position| position.offset.cast_signed()), optional, "Of a position: the number of bytes before it";
        note: Json = row.entry.position().map(|position| position.note), optional, "Of a position: further data of the reader";
        identities: Bytes = row.entry.identities().as_deref(), optional, "Identities of events (16 bytes each) or calls (8 bytes each), little-endian";
    }
}

/// The columns of a batch of the table, from the WAL or from a file.
pub struct RequestColumns<'b> {
    time: &'b TimestampMicrosecondArray,
    kind: StringArray,
    key: &'b StringArray,
    content: &'b StringArray,
    response: &'b StringArray,
    text: &'b Int64Array,
    offset: &'b Int64Array,
    note: &'b StringArray,
    identities: &'b BinaryArray,
}

impl<'b> RequestColumns<'b> {
    /// Returns the columns of a batch; `None` if they are not those of the table.
    #[must_use]
    pub fn of(batch: &'b RecordBatch) -> Option<Self> {
        let texts = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
        let numbers = |name| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
        Some(Self {
            time: batch.column_by_name("time")?.as_primitive_opt::<TimestampMicrosecondType>()?,
            kind: kinds(batch).ok()?,
            key: texts("key")?,
            content: texts("content")?,
            response: texts("response")?,
            text: numbers("text")?,
            offset: numbers("offset")?,
            note: texts("note")?,
            identities: batch.column_by_name("identities")?.as_binary_opt::<i32>()?,
        })
    }

    /// Returns the rows that can be read.
    pub fn rows(&self) -> impl Iterator<Item = RequestRow<'_>> {
        (0..self.time.len()).filter_map(|row| self.row(row))
    }

    fn row(&self, row: usize) -> Option<RequestRow<'_>> {
        let kind = self.kind.is_valid(row).then(|| self.kind.value(row))?;
        let kind = EntryKind::ALL.into_iter().find(|known| known.as_str() == kind)?;
        let entry = match kind {
            EntryKind::Response => Entry::Response(KeyedResponse {
                key: hash(self.key, row)?,
                content: hash(self.content, row)?,
                response: cell(self.response, row)?,
            }),
            EntryKind::Position => Entry::Position(ReadPosition {
                text: number(self.text, row)?,
                offset: number(self.offset, row)?,
                note: cell(self.note, row)?,
            }),
            EntryKind::EventIdentities => {
                let chunks = self.bytes(row)?.as_chunks().0;
                Entry::EventIdentities(chunks.iter().map(|bytes| u128::from_le_bytes(*bytes)).collect())
            }
            EntryKind::CallIdentities => {
                let chunks = self.bytes(row)?.as_chunks().0;
                Entry::CallIdentities(chunks.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
            }
        };
        Some(RequestRow { time: self.time.value(row), entry })
    }

    fn bytes(&self, row: usize) -> Option<&[u8]> {
        self.identities.is_valid(row).then(|| self.identities.value(row))
    }
}

fn cell(texts: &StringArray, row: usize) -> Option<&str> {
    texts.is_valid(row).then(|| texts.value(row))
}

fn hash(texts: &StringArray, row: usize) -> Option<u128> {
    u128::from_str_radix(cell(texts, row)?, 16).ok()
}

fn number(numbers: &Int64Array, row: usize) -> Option<u64> {
    numbers.is_valid(row).then(|| numbers.value(row).cast_unsigned())
}

/// Returns the kinds of the rows as texts: they are a dictionary in the WAL and plain texts in the tables.
fn kinds(batch: &RecordBatch) -> Result<StringArray, ArrowError> {
    let kinds = batch.column_by_name("kind");
    let kinds = kinds.ok_or_else(|| ArrowError::SchemaError("requests have no kind".to_owned()))?;
    Ok(cast(kinds, &Text::data_type())?.as_string::<i32>().clone())
}

/// Returns the rows that are flushed: all but the identities of calls.
pub(crate) fn without_call_identities(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let is_flushed = |kind: Option<&str>| Some(kind != Some(EntryKind::CallIdentities.as_str()));
    let flushed: BooleanArray = kinds(batch)?.iter().map(is_flushed).collect();
    filter_record_batch(batch, &flushed)
}
