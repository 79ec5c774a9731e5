//! After a restart: what the log and the tables still know goes back into memory.
//!
//! Rows that are not sealed become hot again, idempotency keys keep their answers, texts the place they were read to, and
//! the failures and calls of the last two minutes are known for repeats.

use super::keys::KeptOutcome;
use super::positions::Positions;
use super::{Pipeline, Position, reading};
use super::{calls, fold};
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
use store::hot::Hot;
use store::keeper::recent::Counted;
use store::lake::{Lake, LakeError};
use store::log::Record;
use store::snapshot::Decoders;

/// Takes the records of a replay, in order.
pub struct Restored {
    hot: Arc<Hot>,
    /// What is sealed already; none when the tables cannot be opened.
    lake: Option<Arc<Lake>>,
    /// How many answers are kept, and what they may weigh.
    keys: usize,
    key_bytes: usize,
    decoders: Decoders,
    answers: VecDeque<KeyAnswer>,
    answer_bytes: usize,
    positions: Positions,
    /// Identities of events without a row, and of counted calls, with the time they came; no more than are ever
    /// remembered.
    folded: VecDeque<(i64, Vec<u128>)>,
    folded_count: usize,
    repeats: usize,
    /// Events in records that are not sealed.
    pub events: u64,
    /// Records that could not be understood; they stay in the log.
    pub unreadable: u64,
}

struct KeyAnswer {
    time: i64,
    key: u128,
    answer: KeptOutcome,
}

impl Restored {
    /// Nothing yet.
    #[must_use]
    pub fn new(hot: Arc<Hot>, lake: Option<Arc<Lake>>, limits: &Limits) -> Self {
        Self {
            hot,
            lake,
            keys: limits.keys,
            key_bytes: limits.key_bytes,
            decoders: Decoders::default(),
            answers: VecDeque::new(),
            answer_bytes: 0,
            positions: Positions::default(),
            folded: VecDeque::new(),
            folded_count: 0,
            repeats: limits.repeats,
            events: 0,
            unreadable: 0,
        }
    }

    /// Takes what the tables know of answers. To be called before the log is read, which knows newer ones. All that are
    /// kept, whatever the clock says: it may have jumped since.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn take_sealed_answers(&mut self) -> Result<(), LakeError> {
        let Some(lake) = self.lake.clone() else { return Ok(()) };
        let mut found = Vec::new();
        let keys = self.keys;
        // To the end, however many answers there are: the newest position of a text that was quiet may stand far back.
        let mut visit = |requests: RecordBatch| {
            let Kept { answers, positions, folded, .. } = Kept::of(&requests);
            self.positions.extend(positions);
            self.keep_folded(folded);
            if found.len() < keys {
                found.extend(answers);
            }
            ControlFlow::Continue(())
        };
        lake.rows_since(Table::Requests, "time", i64::MIN, &["time", "key", "answer"], &mut visit)?;
        found.sort_by_key(|kept| kept.time);
        self.keep(found);
        Ok(())
    }

    /// Takes the identities of calls that were counted not long ago, and that the log has let go of.
    pub fn take_recent_calls(&mut self, recent: &[Counted]) {
        let identities = |text: &str| Some(calls::from_kept(text)?.into_iter().map(u128::from).collect());
        let counted = recent.iter().filter_map(|(time, text)| Some((*time, identities(text)?)));
        self.keep_folded(counted.collect());
    }

    /// Takes a record of the log.
    pub fn take(&mut self, record: Record) {
        if let Err(error) = self.read(record) {
            self.unreadable += 1;
            tracing::warn!("a record of the log cannot be understood and stays where it is: {error}");
        }
    }

    fn read(&mut self, record: Record) -> Result<(), CodecError> {
        let mut record = self.decoders.record(record)?;
        if let Some(requests) = record.batch(Table::Requests)? {
            let Kept { answers, positions, folded, calls } = Kept::of(&requests);
            // These are not flushed to the table, so it does not lack them.
            let rows = &mut record.rows[Table::Requests as usize];
            *rows = rows.saturating_sub(calls);
            self.keep(answers);
            self.positions.extend(positions);
            self.keep_folded(folded);
        }
        if self.lake.as_ref().is_none_or(|lake| lake.lacks(&record)) {
            self.events += record.rows[Table::Events as usize];
            self.hot.publish(record);
        }
        Ok(())
    }

    /// Keeps the newest answers, as many as will be remembered.
    fn keep(&mut self, answers: Vec<KeyAnswer>) {
        for kept in answers {
            self.answer_bytes += kept.answer.bytes();
            self.answers.push_back(kept);
            while self.answers.len() > self.keys || self.answer_bytes > self.key_bytes {
                let Some(oldest) = self.answers.pop_front() else { break };
                self.answer_bytes -= oldest.answer.bytes();
            }
        }
    }
}

impl Restored {
    /// Keeps the newest identities of events without a row.
    fn keep_folded(&mut self, folded: Vec<(i64, Vec<u128>)>) {
        for (time, identities) in folded {
            self.folded_count += identities.len();
            let place = self.folded.partition_point(|(earlier, _)| *earlier <= time);
            self.folded.insert(place, (time, identities));
            while self.folded_count > self.repeats {
                let Some((_, oldest)) = self.folded.pop_front() else { break };
                self.folded_count -= oldest.len();
            }
        }
    }
}

impl Pipeline {
    /// Gives the pipeline its memory back. To be called before the first request.
    pub fn restore(&self, restored: Restored) {
        let now = self.shared.now();
        *self.positions.lock().unwrap_or_else(PoisonError::into_inner) = restored.positions.into_newest();
        for kept in restored.answers {
            self.shared.keys.restore(kept.key, kept.answer);
        }
        let window = i64::try_from(self.shared.limits.repeat_window.as_micros()).unwrap_or(i64::MAX);
        let oldest = now - window;
        for (_, identities) in restored.folded.iter().filter(|(time, _)| *time >= oldest) {
            for identity in identities {
                self.shared.repeats.remember(*identity, now);
            }
        }
        if let Some(lake) = restored.lake {
            self.remember_sealed(&lake, oldest, now);
        }
        for record in self.shared.hot.snapshot().records.iter().rev() {
            match record.batch(Table::Events) {
                Ok(Some(events)) if !self.remember(&events, oldest, now) => break,
                _ => {}
            }
        }
    }

    /// Takes the newest position of every text that the log or the tables knew of at the start.
    #[must_use]
    pub fn take_positions(&self) -> Vec<Position> {
        std::mem::take(&mut *self.positions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Remembers the failures that were sealed not long ago, as many as are ever remembered.
    fn remember_sealed(&self, lake: &Lake, oldest: i64, now: i64) {
        let mut left = self.shared.limits.repeats;
        let mut visit = |events: RecordBatch| {
            self.remember(&events, oldest, now);
            left = left.saturating_sub(events.num_rows());
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let read = lake.rows_since(Table::Events, "ingested_at", oldest, &Columns::NAMES, &mut visit);
        if let Err(error) = read {
            tracing::warn!(%error, "repeats of what was sealed in the last minutes may not be recognised");
        }
    }

    /// Remembers the failures of a batch; false when it is older than the window.
    fn remember(&self, events: &RecordBatch, oldest: i64, now: i64) -> bool {
        let Some(columns) = Columns::of(events) else { return true };
        if columns.ingested_at.iter().flatten().all(|time| time < oldest) {
            return events.num_rows() == 0;
        }
        for row in 0..events.num_rows() {
            for identity in columns.identities(row) {
                self.shared.repeats.remember(identity, now);
            }
        }
        true
    }
}

/// What repeats are known by.
struct Columns<'b> {
    ingested_at: &'b TimestampMicrosecondArray,
    event_id: &'b StringArray,
    trace_id: &'b StringArray,
    span_id: &'b StringArray,
    source: ArrayRef,
    canonical: ArrayRef,
}

impl<'b> Columns<'b> {
    const NAMES: [&'static str; 6] =
        ["ingested_at", "event_id", "trace_id", "span_id", "source", "canonical"];

    fn of(events: &'b RecordBatch) -> Option<Self> {
        let text = |name| events.column_by_name(name)?.as_string_opt::<i32>();
        // Dictionaries in the log, plain in the tables.
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

    /// The identities under which an event of a span or log record is known.
    fn identities(&self, row: usize) -> impl Iterator<Item = u128> {
        let source = name_at(&self.source, row);
        let signal = match source {
            Some(source) if source == Source::OtlpTraces.as_str() => Some(reading::SPAN),
            Some(source) if source == Source::OtlpLogs.as_str() => Some(reading::LOG),
            _ => None,
        };
        let event = signal.and_then(|_| parse_hex(self.event_id, row));
        let span = signal.and_then(|_| {
            let trace = parse_hex(self.trace_id, row)?.to_be_bytes();
            let span = u64::try_from(parse_hex(self.span_id, row)?).ok()?.to_be_bytes();
            Some(reading::identity_of(&trace, &span))
        });
        let told =
            signal.and_then(|signal| Some(reading::told_by(signal, span?, name_at(&self.canonical, row)?)));
        // Calls that worked leave no row to know them by; their identities are kept beside the answers.
        let call = span.filter(|_| signal == Some(reading::SPAN)).map(reading::call_of);
        event.into_iter().chain(told).chain(call.map(u128::from))
    }
}

fn name_at(names: &ArrayRef, row: usize) -> Option<&str> {
    let names = names.as_string_opt::<i32>()?;
    names.is_valid(row).then(|| names.value(row))
}

fn parse_hex(texts: &StringArray, row: usize) -> Option<u128> {
    texts.is_valid(row).then(|| u128::from_str_radix(texts.value(row), 16).ok()).flatten()
}

/// What a record keeps beside its rows.
#[derive(Default)]
struct Kept {
    answers: Vec<KeyAnswer>,
    positions: Vec<Position>,
    /// Identities of events without a row, and of counted calls, with the time they came.
    folded: Vec<(i64, Vec<u128>)>,
    /// Rows that hold identities of counted calls.
    calls: u64,
}

impl Kept {
    fn of(requests: &RecordBatch) -> Self {
        let column = |name| requests.column_by_name(name);
        let texts = |name| column(name).and_then(|c| c.as_string_opt::<i32>());
        let times = column("time").and_then(|c| c.as_primitive_opt::<TimestampMicrosecondType>());
        let mut found = Self::default();
        let (Some(times), Some(keys), Some(kept)) = (times, texts("key"), texts("answer")) else {
            return found;
        };
        for row in 0..requests.num_rows() {
            let (time, text) = (times.value(row), kept.value(row));
            if let Some(position) = Position::from_json(text) {
                found.positions.push(position);
            } else if let Some(identities) = fold::from_kept(text) {
                found.folded.push((time, identities));
            } else if let Some(identities) = calls::from_kept(text) {
                found.folded.push((time, identities.into_iter().map(u128::from).collect()));
                found.calls += 1;
            } else if let (Some(key), Some(answer)) = (parse_hex(keys, row), KeptOutcome::from_json(text)) {
                found.answers.push(KeyAnswer { time, key, answer });
            }
        }
        found
    }
}
