//! The sink for the records of one request: turns them into rows one by one, and counts them.

mod tracked_call;

use self::tracked_call::TrackedCall;
use super::batch::Batch;
use super::call_points::{CallDurations, CallPoint};
use super::coalesce::{self, Coalescer, Placement};
use super::identities::{
    LOG_SIGNAL, SPAN_SIGNAL, SpanIds, body_text, call_identity, log_identity, report_identity, span_identity,
};
use super::reports;
use super::row_size;
use super::traffic::Traffic;
use super::{Defaults, IngestResponse, RejectedRecord, Shared};
use crate::counters::{RequestCounts, reason_index};
use crate::limits::Limits;
use crate::source::Source;
use classifier::telemetry::{self, LogRecord, Resource, Span, SpanKind};
use classifier::{
    Call, Category, Classifier, Event, RecordOrigin, RequestTracker, Sink, TimeSource, UnrecognizedReason,
};
use store::rows::{EventRow, Reject, Relation};
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The reason of an OTLP record that cannot be read.
const MALFORMED: &str = "malformed";

/// The sink into which a [`BodyReader`](super::BodyReader) pushes the records of one request.
pub struct RecordSink<'w> {
    pub(super) shared: &'w Shared,
    pub(super) classifier: &'w mut Classifier,
    pub(super) batch: &'w mut Batch,
    pub(super) traffic: &'w mut Traffic,
    pub(super) source: Source,
    pub(super) defaults: &'w Defaults,
    /// The time at which the request arrived, in microseconds since 1970.
    pub(super) arrival: i64,
    /// The identity from which the identities of records without their own are derived.
    pub(super) identity: u128,
    /// The size of the rows of the batch before this request, in bytes.
    pub(super) bytes_before: usize,
    /// The limit on the size of the rows of this request, in bytes.
    pub(super) bytes_limit: usize,
    /// The number of spans, log records and data points so far.
    pub(super) records: u64,
    /// State from earlier lines of the stream: requests that wait for their reply, calls and tasks.
    pub(super) tracker: &'w mut RequestTracker,
    pub(super) counts: RequestCounts,
    pub(super) response: IngestResponse,
}

impl RecordSink<'_> {
    /// Returns the limits in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Adds a line of an envelope log, with its number in the body, from 1. Blank lines are ignored.
    pub fn push_line(&mut self, number: u64, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let mut tracker = std::mem::take(self.tracker);
        self.classify(number, line, DedupKeys::default(), |classifier, origin, sink| {
            classifier.classify_stream(line, origin, &mut tracker, sink);
        });
        *self.tracker = tracker;
    }

    /// Adds a span.
    pub fn push_span(&mut self, span: &Span<'_>, resource: &Resource<'_>) {
        let identity = span.trace_id.zip(span.span_id).map(|(trace, span)| span_identity(&trace, &span));
        self.records += 1;
        let dedup_keys = DedupKeys { span: identity, call: identity.map(call_identity) };
        let ids = SpanIds::of_span(span, resource);
        self.classify(self.records, span.name.as_bytes(), dedup_keys, |classifier, origin, sink| {
            sink.span_ids = ids;
            classifier.span(span, resource, origin, sink);
        });
    }

    /// Adds a log record.
    pub fn push_log(&mut self, record: &LogRecord<'_>, resource: &Resource<'_>) {
        let identity = record.trace_id.zip(record.span_id).map(|(trace, span)| span_identity(&trace, &span));
        self.records += 1;
        let body = body_text(record.body).as_bytes();
        let dedup_keys = DedupKeys { span: identity, call: log_identity(record, resource, body) };
        let ids = SpanIds::of_log(record);
        self.classify(self.records, body, dedup_keys, |classifier, origin, sink| {
            sink.span_ids = ids;
            classifier.log(record, resource, origin, sink);
        });
    }

    /// Adds a data point of a histogram of calls.
    pub fn push_call_point(&mut self, point: &CallPoint<'_>, resource: &Resource<'_>) {
        self.records += 1;
        let Some(durations) = self.added_calls(point, resource).filter(|durations| durations.calls > 0)
        else {
            self.counts.accepted += 1;
            return;
        };
        let CallPoint { side, time_ns, attributes, .. } = *point;
        let point = telemetry::CallPoint { side, time_ns, calls: durations.calls, attributes };
        self.classify(self.records, &[], DedupKeys::default(), |classifier, origin, sink| {
            sink.durations = Some(durations);
            classifier.call_point(&point, resource, origin, sink);
        });
    }

    /// Counts data points of metrics that do not describe calls.
    pub fn ignore_points(&mut self, count: u64) {
        self.counts.ignored += count;
    }

    /// Returns the calls that a data point adds to those counted before, or `None` if it was sent before.
    fn added_calls(&mut self, point: &CallPoint<'_>, resource: &Resource<'_>) -> Option<CallDurations> {
        let keys = point.keys(resource);
        if point.is_cumulative {
            let advanced = self.shared.call_series.advance(keys, point, self.arrival);
            self.batch.depends_on_others |= advanced.is_none();
            let (added, previous) = advanced?;
            self.batch.bytes += size_of_val(&previous);
            self.batch.series_states.push(previous);
            return Some(added);
        }
        let identity = point.identity(keys.1);
        if !self.shared.dedup.insert(identity.into(), self.arrival) {
            self.batch.depends_on_others = true;
            self.counts.duplicates += 1;
            return None;
        }
        self.batch.add_counted_call(identity);
        Some(point.durations)
    }

    /// Rejects a record that cannot be read: counts it, stores a sample, and lists it in the response. `sample` is
    /// the raw record.
    pub fn reject(&mut self, number: u64, reason: &'static str, detail: &str, sample: &[u8]) {
        // The detail may quote the record, so it is redacted.
        let detail = &*self.shared.rules.redactor().text(detail);
        self.counts.rejected += 1;
        self.counts.reasons[reason_index(reason)] += 1;
        self.response.rejected_count += 1;
        if self.response.rejected.len() < self.shared.limits.rejected_listed {
            self.response.rejected.push(RejectedRecord { line: number, reason: detail.to_owned() });
        }
        self.sample(number, reason, detail, sample);
    }

    /// Reports whether the rows of this request exceed the limit. Nothing of the request will be kept then, so no
    /// further records are read.
    pub(super) fn is_over_limit(&self) -> bool {
        let bytes = self.batch.bytes - self.bytes_before + self.traffic.bytes();
        bytes > self.bytes_limit
    }

    fn classify(
        &mut self,
        number: u64,
        sample: &[u8],
        dedup_keys: DedupKeys,
        classify: impl FnOnce(&mut Classifier, &RecordOrigin<'_>, &mut RowSink<'_>),
    ) {
        if self.is_over_limit() {
            return;
        }
        let origin = RecordOrigin {
            source: Some(self.source.as_str()),
            service: self.defaults.service.as_deref(),
            environment: self.defaults.environment.as_deref(),
            dialect: self.defaults.dialect,
            arrival: self.arrival,
            identity: xxh3_128_with_seed(&self.identity.to_le_bytes(), number),
        };
        let mut rows = RowSink {
            shared: self.shared,
            batch: self.batch,
            traffic: self.traffic,
            counts: &mut self.counts,
            source: self.source,
            arrival: self.arrival,
            dedup_keys,
            counted: None,
            durations: None,
            span_ids: None,
            call: None,
            unusable: None,
        };
        classify(self.classifier, &origin, &mut rows);
        match rows.unusable {
            Some(reason) if reason.is_unreadable() => {
                self.reject(number, reason.as_str(), &reason.to_string(), sample);
            }
            Some(reason) => {
                self.counts.accepted += 1;
                self.counts.unrecognized += 1;
                self.counts.reasons[reason_index(reason.as_str())] += 1;
                self.sample(number, reason.as_str(), &reason.to_string(), sample);
            }
            None => self.counts.accepted += 1,
        }
    }

    /// Stores the beginning of a record that could not be used, within the limits and without its secrets.
    fn sample(&mut self, number: u64, reason: &str, detail: &str, sample: &[u8]) {
        if !self.shared.sample_limiter.try_acquire(self.arrival) {
            self.shared.counters.samples_dropped.add(1);
            return;
        }
        let text = match (self.source, reason) {
            // The keys and values of a malformed record cannot be told apart, so neither can secrets; the detail must
            // suffice.
            (Source::OtlpTraces | Source::OtlpLogs | Source::OtlpMetrics, MALFORMED) => String::new(),
            _ => self.shared.redacted_sample(sample),
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

/// The keys by which a duplicate of a span or log record is recognized.
#[derive(Debug, Clone, Copy, Default)]
struct DedupKeys {
    /// The identity of the span that it is or belongs to.
    span: Option<u128>,
    /// The identity of its calls, which are counted once.
    call: Option<u64>,
}

/// The sink for the events and calls that the classifier finds in one record.
struct RowSink<'r> {
    shared: &'r Shared,
    batch: &'r mut Batch,
    traffic: &'r mut Traffic,
    counts: &'r mut RequestCounts,
    source: Source,
    arrival: i64,
    dedup_keys: DedupKeys,
    /// True if the calls of this record were counted when it came before; `None` until its first call.
    counted: Option<bool>,
    /// The ids of the span that this record is or belongs to.
    span_ids: Option<SpanIds>,
    /// The tool call that this span is a part of.
    call: Option<TrackedCall>,
    /// The durations of the calls of a data point.
    durations: Option<CallDurations>,
    /// The first reason for which the record, or a part of it, could not be used.
    unusable: Option<UnrecognizedReason>,
}

impl RowSink<'_> {
    /// Reports whether an event was sent before, or was already reported by the other signal of its span.
    fn is_duplicate(&mut self, event: &Event<'_>) -> bool {
        // Two failures of an unknown kind need not be the same.
        let span = self.dedup_keys.span.filter(|_| event.category != Category::Unknown);
        let pair = match (self.source, span) {
            (Source::Envelopes | Source::Files | Source::Stdin | Source::OtlpMetrics, _) => return false,
            (Source::OtlpTraces, Some(span)) => Some((
                report_identity(SPAN_SIGNAL, span, &event.canonical),
                report_identity(LOG_SIGNAL, span, &event.canonical),
            )),
            (Source::OtlpLogs, Some(span)) => Some((
                report_identity(LOG_SIGNAL, span, &event.canonical),
                report_identity(SPAN_SIGNAL, span, &event.canonical),
            )),
            (_, None) => None,
        };
        // A report of a tracked call is judged together with the other reports of that call.
        let is_tracked = self.call.is_some() && reports::is_report(event);
        let is_reported = !is_tracked && pair.is_some_and(|(_, other)| self.shared.dedup.contains(other));
        if is_reported || !self.insert_identity(event.event_id) {
            self.batch.depends_on_others = true;
            return true;
        }
        if let Some((mine, _)) = pair {
            self.insert_identity(mine);
        }
        false
    }

    fn store(&mut self, event: &Event<'_>, relation: Relation) {
        self.batch.bytes += row_size::event_bytes(event);
        self.batch.rows.events.push(EventRow { event, ingested_at: self.arrival, relation });
    }

    /// Stores a report; only the first report of a failure counts as an event.
    fn store_related(&mut self, event: &Event<'_>, relation: Relation, known: usize) {
        if relation == Relation::Primary {
            return self.store_primary(event, known);
        }
        self.batch.depends_on_others = true;
        self.counts.duplicates += 1;
        // If budgets limit the rows, further reports get none.
        if !self.shared.budgets.are_set() {
            self.store(event, relation);
        }
    }

    fn store_primary(&mut self, event: &Event<'_>, known: usize) {
        self.counts.events += 1;
        self.counts.categories.add(event.category, 1);
        self.counts.times_replaced += u64::from(event.context.time_source == TimeSource::Replaced);
        if self.shared.budgets.are_set() {
            return self.store_within_budget(event, known);
        }
        self.store(event, Relation::Primary);
    }

    /// Stores an event, or lets an existing row represent it. The identities of the batch from `known` on are those
    /// of the event.
    fn store_within_budget(&mut self, event: &Event<'_>, known: usize) {
        let (row, now) = (self.batch.rows.events.len(), self.shared.now());
        match self.batch.coalescer.place_event(event, row, &self.shared.budgets, now) {
            Placement::Own => self.store(event, Relation::Primary),
            Placement::Overflow { is_shared_bucket } => {
                self.store(&coalesce::overflow_event(event, is_shared_bucket), Relation::Primary);
            }
            Placement::Shared(row) => {
                self.counts.over_budget += 1;
                let Batch { coalescer, rows, identities, bytes, .. } = &mut *self.batch;
                // Only duplicates of spans and log records are recognized; calls are recognized with the failure of
                // their span.
                let own = identities[known..].iter().copied();
                let call = self.dedup_keys.call.filter(|_| self.source == Source::OtlpTraces);
                coalescer.coalesce(row, &mut rows.events, own.chain(call.map(u128::from)));
                *bytes += Coalescer::BYTES;
            }
        }
    }

    /// Remembers an identity as part of this batch. Returns true if it is new.
    fn insert_identity(&mut self, identity: u128) -> bool {
        let is_new = self.shared.dedup.insert(identity, self.arrival);
        if is_new {
            self.batch.identities.push(identity);
            self.batch.bytes += size_of::<u128>();
        }
        is_new
    }

    fn count_call(&mut self, call: &Call<'_>) {
        self.counts.calls += call.count;
        self.traffic.add(call);
    }

    /// Counts the calls of a data point, unless spans report the same calls.
    fn count_point(&mut self, call: &Call<'_>, durations: &CallDurations) {
        if self.shared.span_reports.contains(call.service, call.operation, self.arrival) {
            self.counts.duplicates += 1;
            return;
        }
        self.counts.calls += call.count;
        self.traffic.add_histogram(call, durations);
    }

    /// Reports whether the calls of this span or log record have been counted before.
    fn are_calls_counted(&mut self) -> bool {
        let Some(call) = self.dedup_keys.call else { return false };
        if let Some(counted) = self.counted {
            return counted;
        }
        let counted = !self.shared.dedup.insert(call.into(), self.arrival);
        self.batch.depends_on_others |= counted;
        if !counted {
            self.batch.add_counted_call(call);
        }
        *self.counted.insert(counted)
    }
}

impl Sink for RowSink<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let known = self.batch.identities.len();
        if self.source == Source::OtlpLogs && self.call.is_none() {
            self.call = self.call_of_log();
        }
        if self.is_duplicate(event) {
            self.counts.duplicates += 1;
            return;
        }
        match self.call.filter(|_| reports::is_report(event)) {
            Some(tracked) => self.store_report(tracked, event, known),
            None => {
                if reports::is_report(event) {
                    self.expect_span(event);
                }
                self.store_primary(event, known);
            }
        }
    }

    fn call(&mut self, call: &Call<'_>) {
        if let Some(durations) = self.durations {
            return self.count_point(call, &durations);
        }
        if self.are_calls_counted() {
            self.counts.duplicates += 1;
            return;
        }
        match self.call {
            Some(tracked) => self.count_tracked(tracked, call),
            None => self.count_call(call),
        }
    }

    fn call_part(&mut self, operation: Option<&str>, side: SpanKind) {
        self.track_call(operation, side);
    }

    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        self.unusable.get_or_insert(reason);
    }
}
