//! One request while it is read: takes records one by one, turns them into rows, keeps the tally.

use super::batch::Batch;
use super::fold::{self, Folds, Place};
use super::traffic::Traffic;
use super::weight;
use super::{Answer, Defaults, Rejected, Shared};
use crate::counters::{Tally, reason_place};
use crate::limits::Limits;
use crate::source::Source;
use store::rows::{EventRow, Reject};
use taxonomy::signal::{LogRecord, Resource, Span, Value};
use taxonomy::{Call, Category, Classifier, Event, Origin, Reason, Sink, TimeSource};
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

/// The word for a record of OTLP that cannot be read.
const MALFORMED: &str = "malformed";

/// One request as a [`ReadBody`](super::ReadBody) sees it.
pub struct Reading<'w> {
    pub(super) shared: &'w Shared,
    pub(super) classifier: &'w mut Classifier,
    pub(super) batch: &'w mut Batch,
    pub(super) traffic: &'w mut Traffic,
    pub(super) source: Source,
    pub(super) defaults: &'w Defaults,
    /// When the request arrived, in microseconds since 1970.
    pub(super) arrival: i64,
    /// What the identities of records without one of their own are made from.
    pub(super) identity: u128,
    /// What the rows weighed before this request.
    pub(super) bytes_before: usize,
    /// What the rows of this request may weigh.
    pub(super) bytes_limit: usize,
    /// Spans or log records so far.
    pub(super) records: u64,
    pub(super) tally: Tally,
    pub(super) answer: Answer,
}

impl Reading<'_> {
    /// The bounds in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// A line of an envelope log, by its place in the body, from 1. Blank lines hold nothing.
    pub fn line(&mut self, number: u64, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        self.classify(number, line, Told::default(), |classifier, origin, sink| {
            classifier.classify(line, origin, sink);
        });
    }

    /// A span.
    pub fn span(&mut self, span: &Span<'_>, resource: &Resource<'_>) {
        let identity = span.trace_id.zip(span.span_id).map(|(trace, span)| identity_of(&trace, &span));
        self.records += 1;
        let told = Told { span: identity, call: identity.map(call_of) };
        self.classify(self.records, span.name.as_bytes(), told, |classifier, origin, sink| {
            classifier.span(span, resource, origin, sink);
        });
    }

    /// A log record.
    pub fn log(&mut self, record: &LogRecord<'_>, resource: &Resource<'_>) {
        let identity = record.trace_id.zip(record.span_id).map(|(trace, span)| identity_of(&trace, &span));
        self.records += 1;
        let body = text_of(record.body).as_bytes();
        let told = Told { span: identity, call: identity_of_log(record, resource, body) };
        self.classify(self.records, body, told, |classifier, origin, sink| {
            classifier.log(record, resource, origin, sink);
        });
    }

    /// A record that cannot be read: counted, sampled, listed in the answer. `sample` is what came.
    pub fn reject(&mut self, number: u64, reason: &'static str, detail: &str, sample: &[u8]) {
        // What is wrong with a record may be said in its own words.
        let detail = &*self.shared.rules.redactor().text(detail);
        self.tally.rejected += 1;
        self.tally.reasons[reason_place(reason)] += 1;
        self.answer.rejected_count += 1;
        if self.answer.rejected.len() < self.shared.limits.rejected_listed {
            self.answer.rejected.push(Rejected { line: number, reason: detail.to_owned() });
        }
        self.sample(number, reason, detail, sample);
    }

    /// True when the rows of this request have outgrown the limit: nothing of it will be kept, so nothing more
    /// is read.
    pub(super) fn is_over_limit(&self) -> bool {
        let bytes = self.batch.bytes - self.bytes_before + self.traffic.bytes();
        bytes > self.bytes_limit
    }

    fn classify(
        &mut self,
        number: u64,
        sample: &[u8],
        told: Told,
        classify: impl FnOnce(&mut Classifier, &Origin<'_>, &mut Rows<'_>),
    ) {
        if self.is_over_limit() {
            return;
        }
        let origin = Origin {
            source: Some(self.source.as_str()),
            service: self.defaults.service.as_deref(),
            environment: self.defaults.environment.as_deref(),
            dialect: self.defaults.dialect,
            arrival: self.arrival,
            identity: xxh3_128_with_seed(&self.identity.to_le_bytes(), number),
        };
        let mut rows = Rows {
            shared: self.shared,
            batch: self.batch,
            traffic: self.traffic,
            tally: &mut self.tally,
            source: self.source,
            arrival: self.arrival,
            told,
            counted: None,
            unusable: None,
        };
        classify(self.classifier, &origin, &mut rows);
        match rows.unusable {
            Some(reason) if reason.is_unreadable() => {
                self.reject(number, reason.as_str(), &reason.to_string(), sample);
            }
            Some(reason) => {
                self.tally.accepted += 1;
                self.tally.unrecognized += 1;
                self.tally.reasons[reason_place(reason.as_str())] += 1;
                self.sample(number, reason.as_str(), &reason.to_string(), sample);
            }
            None => self.tally.accepted += 1,
        }
    }

    /// Keeps the beginning of a record that could not be used, within the bounds, without its secrets.
    fn sample(&mut self, number: u64, reason: &str, detail: &str, sample: &[u8]) {
        if !self.shared.samples.take(self.arrival) {
            self.shared.counters.samples_dropped.add(1);
            return;
        }
        let text = match (self.source, reason) {
            // Its keys and values cannot be told apart, so neither can secrets: the detail must do.
            (Source::OtlpTraces | Source::OtlpLogs, MALFORMED) => String::new(),
            _ => self.shared.sample_of(sample),
        };
        self.batch.rows.rejects.push(Reject {
            time: self.arrival,
            source: self.source.as_str(),
            service: self.defaults.service.as_deref(),
            reason,
            detail,
            line: i64::try_from(number).unwrap_or(i64::MAX),
            bytes: i64::try_from(sample.len()).unwrap_or(i64::MAX),
            sample: &text,
        });
    }
}

/// What a span or a log record is known by when it comes again.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    /// The span that it is or belongs to.
    span: Option<u128>,
    /// Its calls, which are counted once.
    call: Option<u64>,
}

/// Takes what one record yields.
struct Rows<'r> {
    shared: &'r Shared,
    batch: &'r mut Batch,
    traffic: &'r mut Traffic,
    tally: &'r mut Tally,
    source: Source,
    arrival: i64,
    told: Told,
    /// Whether the calls of this record were counted when it came before; known from the first of them on.
    counted: Option<bool>,
    /// The first reason why the record, or a part of it, could not be used.
    unusable: Option<Reason>,
}

impl Rows<'_> {
    /// True when an event was sent before, or its span or log record already told of it.
    fn is_repeat(&mut self, event: &Event<'_>) -> bool {
        // Two failures of which nobody knows what they are need not be the same.
        let span = self.told.span.filter(|_| event.category != Category::Unknown);
        let pair = match (self.source, span) {
            (Source::Envelopes | Source::Files | Source::Stdin, _) => return false,
            (Source::OtlpTraces, Some(span)) => {
                Some((told_by(SPAN, span, &event.canonical), told_by(LOG, span, &event.canonical)))
            }
            (Source::OtlpLogs, Some(span)) => {
                Some((told_by(LOG, span, &event.canonical), told_by(SPAN, span, &event.canonical)))
            }
            (_, None) => None,
        };
        let is_told = pair.is_some_and(|(_, other)| self.shared.repeats.knows(other));
        if is_told || !self.remember(event.event_id) {
            self.batch.leans_on_others = true;
            return true;
        }
        if let Some((mine, _)) = pair {
            self.remember(mine);
        }
        false
    }

    fn store(&mut self, event: &Event<'_>) {
        self.batch.bytes += weight::of_event(event);
        self.batch.rows.events.push(EventRow { event, ingested_at: self.arrival });
    }

    /// Stores an event, or has a row of its like stand for it. What was remembered from `known` on is its identity.
    fn store_within_budget(&mut self, event: &Event<'_>, known: usize) {
        let (row, now) = (self.batch.rows.events.len(), self.shared.now());
        match self.batch.folds.place(event, row, &self.shared.budgets, now) {
            Place::Own => self.store(event),
            Place::Rest { is_of_many } => self.store(&fold::rest_of(event, is_of_many)),
            Place::Shared(row) => {
                self.tally.over_budget += 1;
                let Batch { folds, rows, remembered, bytes, .. } = &mut *self.batch;
                // Only those of spans and log records are known again; calls with the failure of their span.
                let own = remembered[known..].iter().copied();
                let call = self.told.call.filter(|_| self.source == Source::OtlpTraces);
                folds.fold(row, &mut rows.events, own.chain(call.map(u128::from)));
                *bytes += Folds::BYTES;
            }
        }
    }

    /// Remembers an identity together with this batch; true when it is new.
    fn remember(&mut self, identity: u128) -> bool {
        let is_new = self.shared.repeats.remember(identity, self.arrival);
        if is_new {
            self.batch.remembered.push(identity);
            self.batch.bytes += size_of::<u128>();
        }
        is_new
    }

    /// True when the calls of this span or log record have been counted before.
    fn is_counted(&mut self) -> bool {
        let Some(call) = self.told.call else { return false };
        if let Some(counted) = self.counted {
            return counted;
        }
        let counted = !self.remember(call.into());
        self.batch.leans_on_others |= counted;
        if !counted {
            self.batch.calls.push(call);
            // Once as it is, and once as it is written.
            self.batch.bytes += 3 * size_of::<u64>();
        }
        *self.counted.insert(counted)
    }
}

impl Sink for Rows<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let known = self.batch.remembered.len();
        if self.is_repeat(event) {
            self.tally.repeats += 1;
            return;
        }
        self.tally.events += 1;
        self.tally.categories.add(event.category, 1);
        self.tally.times_replaced += u64::from(event.context.time_source == TimeSource::Replaced);
        if self.shared.budgets.are_set() {
            return self.store_within_budget(event, known);
        }
        self.store(event);
    }

    fn call(&mut self, call: &Call<'_>) {
        if self.is_counted() {
            self.tally.repeats += 1;
            return;
        }
        self.tally.calls += call.count;
        self.traffic.add(call);
    }

    fn unrecognized(&mut self, reason: Reason) {
        self.unusable.get_or_insert(reason);
    }
}

/// Makes the identity of "this span was counted" of a span's own.
const COUNTED: u128 = 0x8f1b_2c5d_93a6_47e0_b1d4_6e83_5f07_c92a;

/// The two signals that tell of a span's failure.
pub(super) const SPAN: u64 = 1;
pub(super) const LOG: u64 = 2;

/// The identity of "this signal told that this span failed with this code".
pub(super) fn told_by(signal: u64, span: u128, canonical: &str) -> u128 {
    span ^ xxh3_128_with_seed(canonical.as_bytes(), signal)
}

/// The identity of the call that a span is.
pub(super) fn call_of(span: u128) -> u64 {
    short(span ^ COUNTED)
}

/// Eight bytes of an identity: all are kept in the WAL, so they are to be short.
fn short(identity: u128) -> u64 {
    (identity & u128::from(u64::MAX)) as u64
}

/// The identity of a log record that may hold calls: those of a span are counted with it. As for events, two
/// records are the same only when their time and body are.
fn identity_of_log(record: &LogRecord<'_>, resource: &Resource<'_>, body: &[u8]) -> Option<u64> {
    let time_ns = if record.time_ns > 0 { record.time_ns } else { record.observed_ns };
    if record.span_id.is_some() || body.is_empty() || time_ns == 0 {
        return None;
    }
    let service = resource.attributes.iter().find(|attribute| attribute.key == "service.name");
    let service = service.and_then(|service| service.value.as_text()).unwrap_or_default();
    Some(short(xxh3_128_with_seed(body, time_ns) ^ xxh3_128(service.as_bytes())))
}

/// The text of a log body.
fn text_of<'a>(body: Option<&'a Value<'a>>) -> &'a str {
    match body {
        Some(Value::Text(text) | Value::Json(text)) => text,
        _ => "",
    }
}

/// The identity of a span.
pub(super) fn identity_of(trace: &[u8; 16], span: &[u8; 8]) -> u128 {
    let mut bytes = [0; 24];
    bytes[..16].copy_from_slice(trace);
    bytes[16..].copy_from_slice(span);
    xxh3_128(&bytes)
}
