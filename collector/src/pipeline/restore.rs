//! After a restart: what the log still knows goes back into memory.
//!
//! The newest rows become hot again, idempotency keys keep their answers, and the failures of the last two
//! minutes are known for repeats.

use super::{Answer, Pipeline, reading};
use crate::limits::Limits;
use crate::source::Source;
use arrow::array::{Array, AsArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{Int32Type, TimestampMicrosecondType};
use std::collections::VecDeque;
use std::sync::Arc;
use store::Table;
use store::codec::{CodecError, Decoder};
use store::hot::{Hot, HotRecord};
use store::log::Record;

/// Takes the records of a replay, in order.
pub struct Restored {
    hot: Arc<Hot>,
    /// How many answers are kept, and what they may weigh.
    keys: usize,
    key_bytes: usize,
    /// The decoder of the last preamble: segments of one version share it.
    decoder: Option<(Arc<[u8]>, Arc<Decoder>)>,
    answers: VecDeque<KeyAnswer>,
    answer_bytes: usize,
    /// Events in all records.
    pub events: u64,
    /// Records that could not be understood; they stay in the log.
    pub unreadable: u64,
}

struct KeyAnswer {
    time: i64,
    key: u128,
    answer: Answer,
}

impl Restored {
    /// Nothing yet.
    #[must_use]
    pub fn new(hot: Arc<Hot>, limits: &Limits) -> Self {
        Self {
            hot,
            keys: limits.keys,
            key_bytes: limits.key_bytes,
            decoder: None,
            answers: VecDeque::new(),
            answer_bytes: 0,
            events: 0,
            unreadable: 0,
        }
    }

    /// Takes a record of the log.
    pub fn take(&mut self, record: Record) {
        if let Err(error) = self.read(record) {
            self.unreadable += 1;
            tracing::warn!("a record of the log cannot be understood and stays where it is: {error}");
        }
    }

    fn read(&mut self, record: Record) -> Result<(), CodecError> {
        let decoder = self.decoder_of(&record.preamble)?;
        let record = HotRecord::new(record.sequence, record.payload, decoder)?;
        self.events += record.rows[Table::Events as usize];
        if let Some(requests) = record.batch(Table::Requests)? {
            self.keep(answers(&requests));
        }
        self.hot.publish(record);
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

    fn decoder_of(&mut self, preamble: &Arc<[u8]>) -> Result<Arc<Decoder>, CodecError> {
        if let Some((known, decoder)) = &self.decoder
            && known == preamble
        {
            return Ok(Arc::clone(decoder));
        }
        let decoder = Arc::new(Decoder::new(preamble)?);
        self.decoder = Some((Arc::clone(preamble), Arc::clone(&decoder)));
        Ok(decoder)
    }
}

impl Pipeline {
    /// Gives the pipeline its memory back. To be called before the first request.
    pub fn restore(&self, restored: Restored) {
        let now = self.shared.now();
        for kept in restored.answers {
            self.shared.keys.restore(kept.key, kept.answer, kept.time);
        }
        let window = i64::try_from(self.shared.limits.repeat_window.as_micros()).unwrap_or(i64::MAX);
        for record in self.shared.hot.snapshot().iter().rev() {
            match record.batch(Table::Events) {
                Ok(Some(events)) if !self.remember(&events, now - window, now) => break,
                _ => {}
            }
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
    source: Names<'b>,
    canonical: Names<'b>,
}

/// A column of names that recur.
type Names<'b> = arrow::array::TypedDictionaryArray<'b, Int32Type, StringArray>;

impl<'b> Columns<'b> {
    fn of(events: &'b RecordBatch) -> Option<Self> {
        let text = |name| events.column_by_name(name)?.as_string_opt::<i32>();
        let names = |name| {
            events.column_by_name(name)?.as_dictionary_opt::<Int32Type>()?.downcast_dict::<StringArray>()
        };
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
        // Calls that worked leave no row to know them by.
        let call = span.filter(|_| signal == Some(reading::SPAN)).map(reading::call_of);
        event.into_iter().chain(told).chain(call)
    }
}

fn name_at<'b>(names: &Names<'b>, row: usize) -> Option<&'b str> {
    let key = names.keys().is_valid(row).then(|| names.keys().value(row))?;
    Some(names.values().value(usize::try_from(key).ok()?))
}

fn parse_hex(texts: &StringArray, row: usize) -> Option<u128> {
    texts.is_valid(row).then(|| u128::from_str_radix(texts.value(row), 16).ok()).flatten()
}

/// The answers that a record keeps.
fn answers(requests: &RecordBatch) -> Vec<KeyAnswer> {
    let column = |name| requests.column_by_name(name);
    let Some(times) = column("time").and_then(|c| c.as_primitive_opt::<TimestampMicrosecondType>()) else {
        return Vec::new();
    };
    let texts = |name| column(name).and_then(|c| c.as_string_opt::<i32>());
    let (Some(keys), Some(answers)) = (texts("key"), texts("answer")) else { return Vec::new() };
    (0..requests.num_rows())
        .filter_map(|row| {
            let answer = Answer::from_json(answers.value(row))?;
            Some(KeyAnswer { time: times.value(row), key: parse_hex(keys, row)?, answer })
        })
        .collect()
}
