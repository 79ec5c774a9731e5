//! Restores the in-memory state after a restart from the WAL and the tables.
//!
//! Rows that are not flushed are buffered again, idempotency keys get their responses, texts get their read
//! positions, and the failures and calls of the dedup window are recognized as duplicates again.

use super::idempotency::StoredResponse;
use super::read_positions::LatestPositions;
use super::{IngestResponse, Pipeline, Position, identities};
use crate::limits::Limits;
use crate::source::Source;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};
use store::Table;
use store::codec::CodecError;
use store::delta::{DeltaError, DeltaTables};
use store::hot::Hot;
use store::maintenance::recent_calls::TimedIdentities;
use store::rows::{Entry, ReadPosition, RequestColumns, RequestRow, RequestRows};
use store::snapshot::Decoders;
use store::wal::Record;

/// Collects the state that is restored from the tables and from the records of a WAL replay, in order.
pub struct RestoredState {
    hot: Arc<Hot>,
    /// The tables, which hold what is flushed; `None` if they cannot be opened.
    delta: Option<Arc<DeltaTables>>,
    /// The limits on the number of responses and on their bytes.
    max_keys: usize,
    max_response_bytes: usize,
    decoders: Decoders,
    responses: VecDeque<RestoredResponse>,
    response_bytes: usize,
    positions: LatestPositions,
    /// Identities of events without a row and of counted calls, with the time they came; no more than the dedup
    /// window can hold.
    identities: VecDeque<(i64, Vec<u128>)>,
    identity_count: usize,
    max_identities: usize,
    /// The number of events in records that are not flushed.
    pub events: u64,
    /// The number of records that could not be decoded; they stay in the WAL.
    pub unreadable: u64,
}

struct RestoredResponse {
    time: i64,
    key: u128,
    response: StoredResponse,
}

impl RestoredState {
    /// Creates an empty state.
    #[must_use]
    pub fn new(hot: Arc<Hot>, delta: Option<Arc<DeltaTables>>, limits: &Limits) -> Self {
        Self {
            hot,
            delta,
            max_keys: limits.idempotency_keys,
            max_response_bytes: limits.idempotency_bytes,
            decoders: Decoders::default(),
            responses: VecDeque::new(),
            response_bytes: 0,
            positions: LatestPositions::default(),
            identities: VecDeque::new(),
            identity_count: 0,
            max_identities: limits.dedup_entries,
            events: 0,
            unreadable: 0,
        }
    }

    /// Loads responses, positions and identities from the tables. Call it before the WAL is replayed, which has newer
    /// ones. All stored responses are considered, whatever their time, because the clock may have jumped since.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read.
    pub fn load_flushed_responses(&mut self) -> Result<(), DeltaError> {
        let Some(delta) = self.delta.clone() else { return Ok(()) };
        let mut found = Vec::new();
        let keys = self.max_keys;
        // This reads to the end, however many responses there are: the newest position of a text that was quiet may
        // be far back.
        let mut visit = |requests: RecordBatch| {
            let RestoredEntries { responses, positions, identities, .. } = RestoredEntries::of(&requests);
            self.positions.extend(positions);
            self.add_identities(identities);
            if found.len() < keys {
                found.extend(responses);
            }
            ControlFlow::Continue(())
        };
        let columns: Vec<&str> = RequestRows::COLUMNS.iter().map(|column| column.name).collect();
        delta.rows_since(Table::Requests, "time", i64::MIN, &columns, &mut visit)?;
        found.sort_by_key(|stored| stored.time);
        self.add_responses(found);
        Ok(())
    }

    /// Loads the identities of calls that were counted recently and whose records have been removed from the WAL.
    pub fn load_recent_calls(&mut self, recent: &[TimedIdentities]) {
        let counted =
            recent.iter().map(|(time, calls)| (*time, calls.iter().copied().map(u128::from).collect()));
        self.add_identities(counted.collect());
    }

    /// Loads a record of the WAL.
    pub fn load_record(&mut self, record: Record) {
        if let Err(error) = self.read(record) {
            self.unreadable += 1;
            tracing::warn!("a record of the log cannot be understood and stays where it is: {error}");
        }
    }

    fn read(&mut self, record: Record) -> Result<(), CodecError> {
        let mut record = self.decoders.record(record)?;
        if let Some(requests) = record.batch(Table::Requests)? {
            let RestoredEntries { responses, positions, identities, calls } = RestoredEntries::of(&requests);
            // Rows of call identities are never flushed to the table, so the table does not lack them.
            let rows = &mut record.rows[Table::Requests as usize];
            *rows = rows.saturating_sub(calls);
            self.add_responses(responses);
            self.positions.extend(positions);
            self.add_identities(identities);
        }
        if self.delta.as_ref().is_none_or(|delta| delta.lacks(&record)) {
            self.events += record.rows[Table::Events as usize];
            self.hot.publish(record);
        }
        Ok(())
    }

    /// Adds responses, and drops the oldest beyond the limits.
    fn add_responses(&mut self, responses: Vec<RestoredResponse>) {
        for stored in responses {
            self.response_bytes += stored.response.bytes();
            self.responses.push_back(stored);
            while self.responses.len() > self.max_keys || self.response_bytes > self.max_response_bytes {
                let Some(oldest) = self.responses.pop_front() else { break };
                self.response_bytes -= oldest.response.bytes();
            }
        }
    }
}

impl RestoredState {
    /// Adds identities in order of time, and drops the oldest beyond the limit.
    fn add_identities(&mut self, identities: Vec<(i64, Vec<u128>)>) {
        for (time, identities) in identities {
            self.identity_count += identities.len();
            let index = self.identities.partition_point(|(earlier, _)| *earlier <= time);
            self.identities.insert(index, (time, identities));
            while self.identity_count > self.max_identities {
                let Some((_, oldest)) = self.identities.pop_front() else { break };
                self.identity_count -= oldest.len();
            }
        }
    }
}

impl Pipeline {
    /// Restores the state of the pipeline. Call it before the first request.
    pub fn restore(&self, restored: RestoredState) {
        let now = self.shared.now();
        *self.positions.lock().unwrap_or_else(PoisonError::into_inner) = restored.positions.into_vec();
        for stored in restored.responses {
            self.shared.idempotency.restore(stored.key, stored.response);
        }
        let window = i64::try_from(self.shared.limits.dedup_window.as_micros()).unwrap_or(i64::MAX);
        let oldest = now - window;
        for (_, identities) in restored.identities.iter().filter(|(time, _)| *time >= oldest) {
            for identity in identities {
                self.shared.dedup.insert(*identity, now);
            }
        }
        if let Some(delta) = restored.delta {
            self.load_flushed_identities(&delta, oldest, now);
        }
        for record in self.shared.hot.snapshot().records.iter().rev() {
            match record.batch(Table::Events) {
                Ok(Some(events)) if !self.load_identities(&events, oldest, now) => break,
                _ => {}
            }
        }
    }

    /// Takes the newest read position of every text that the WAL or the tables had at startup.
    #[must_use]
    pub fn take_positions(&self) -> Vec<Position> {
        std::mem::take(&mut *self.positions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds the identities of recently flushed failures to the dedup window, as many as it can hold.
    fn load_flushed_identities(&self, delta: &DeltaTables, oldest: i64, now: i64) {
        let mut left = self.shared.limits.dedup_entries;
        let mut visit = |events: RecordBatch| {
            self.load_identities(&events, oldest, now);
            left = left.saturating_sub(events.num_rows());
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let read =
            delta.rows_since(Table::Events, "ingested_at", oldest, &IdentityColumns::NAMES, &mut visit);
        if let Err(error) = read {
            tracing::warn!(%error, "repeats of what was flushed in the last minutes may not be recognised");
        }
    }

    /// Adds the identities of a batch of events to the dedup window. Returns false if all are older than the window.
    fn load_identities(&self, events: &RecordBatch, oldest: i64, now: i64) -> bool {
        let Some(columns) = IdentityColumns::of(events) else { return true };
        if columns.ingested_at.iter().flatten().all(|time| time < oldest) {
            return events.num_rows() == 0;
        }
        for row in 0..events.num_rows() {
            for identity in columns.identities(row) {
                self.shared.dedup.insert(identity, now);
            }
        }
        true
    }
}

/// The columns from which the identities of events are computed.
struct IdentityColumns<'b> {
    ingested_at: &'b TimestampMicrosecondArray,
    event_id: &'b StringArray,
    trace_id: &'b StringArray,
    span_id: &'b StringArray,
    source: ArrayRef,
    canonical: ArrayRef,
}

impl<'b> IdentityColumns<'b> {
    const NAMES: [&'static str; 6] =
        ["ingested_at", "event_id", "trace_id", "span_id", "source", "canonical"];

    fn of(events: &'b RecordBatch) -> Option<Self> {
        let text = |name| events.column_by_name(name)?.as_string_opt::<i32>();
        // The columns are dictionaries in the WAL and plain strings in the tables.
        let names = |name| cast(events.column_by_name(name)?, &DataType::Utf8).ok();
        Some(Self {
            ingested_at: events
                .column_by_name("ingested_at")?
                .as_primitive_opt::<TimestampMicrosecondType>()?,
            event_id: text("event_id")?,
            trace_id: text("trace_id")?,
            span_id: text("span_id")?,
            source: names("source")?,
            canonical: names("canonical")?,
        })
    }

    /// Returns the identities of an event that came as a span or log record.
    fn identities(&self, row: usize) -> impl Iterator<Item = u128> {
        let source = text_at(&self.source, row);
        let signal = match source {
            Some(source) if source == Source::OtlpTraces.as_str() => Some(identities::SPAN_SIGNAL),
            Some(source) if source == Source::OtlpLogs.as_str() => Some(identities::LOG_SIGNAL),
            _ => None,
        };
        let event = signal.and_then(|_| parse_hex(self.event_id, row));
        let span = signal.and_then(|_| {
            let trace = parse_hex(self.trace_id, row)?.to_be_bytes();
            let span = u64::try_from(parse_hex(self.span_id, row)?).ok()?.to_be_bytes();
            Some(identities::span_identity(&trace, &span))
        });
        let report = signal.and_then(|signal| {
            Some(identities::report_identity(signal, span?, text_at(&self.canonical, row)?))
        });
        // Successful calls leave no row; their identities are stored beside the responses instead.
        let call = span.filter(|_| signal == Some(identities::SPAN_SIGNAL)).map(identities::call_identity);
        event.into_iter().chain(report).chain(call.map(u128::from))
    }
}

fn text_at(names: &ArrayRef, row: usize) -> Option<&str> {
    let names = names.as_string_opt::<i32>()?;
    names.is_valid(row).then(|| names.value(row))
}

fn parse_hex(texts: &StringArray, row: usize) -> Option<u128> {
    texts.is_valid(row).then(|| u128::from_str_radix(texts.value(row), 16).ok()).flatten()
}

/// The contents of the requests table of one record: responses, positions and identities.
#[derive(Default)]
struct RestoredEntries {
    responses: Vec<RestoredResponse>,
    positions: Vec<Position>,
    /// Identities of events without a row and of counted calls, with the time they came.
    identities: Vec<(i64, Vec<u128>)>,
    /// The number of rows that hold identities of counted calls.
    calls: u64,
}

impl RestoredEntries {
    fn of(requests: &RecordBatch) -> Self {
        let mut found = Self::default();
        let Some(columns) = RequestColumns::of(requests) else { return found };
        for RequestRow { time, entry } in columns.rows() {
            match entry {
                Entry::Response(stored) => {
                    found.responses.extend(IngestResponse::from_json(stored.response).map(|response| {
                        let response = StoredResponse::new(response, stored.content);
                        RestoredResponse { time, key: stored.key, response }
                    }));
                }
                Entry::Position(ReadPosition { text, offset, note }) => {
                    let note = serde_json::from_str(note).ok();
                    found.positions.extend(note.map(|note| Position { text, offset, note }));
                }
                Entry::EventIdentities(identities) => {
                    found.identities.push((time, identities.into_owned()));
                }
                Entry::CallIdentities(identities) => {
                    found.identities.push((time, identities.iter().copied().map(u128::from).collect()));
                    found.calls += 1;
                }
            }
        }
        found
    }
}
