//! The sink for the records of one request: turns them into rows one by one, and counts them.

use super::batch::Batch;
use super::call_points::{CallDurations, CallPoint};
use super::identities::{SpanIds, body_text, call_identity, log_identity, span_identity};
use super::row_sink::{CallPart, DedupKeys, RowSink};
use super::traffic::Traffic;
use super::{Defaults, IngestResponse, RejectedRecord, Shared};
use crate::counters::{RequestCounts, reason_index};
use crate::limits::Limits;
use crate::source::Source;
use classifier::telemetry::{self, LogRecord, Resource, Span};
use classifier::{Classifier, RecordOrigin, RequestTracker};
use store::rows::Reject;
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
            part: CallPart::None,
            unusable: None,
        };
        classify(self.classifier, &origin, &mut rows);
        rows.tracked_call();
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
