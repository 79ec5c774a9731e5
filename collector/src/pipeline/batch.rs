//! The rows of one log record while they are gathered, and what has to happen when it is durable or is not.
//!
//! Several small requests share a record when they wait for a worker together, so that the cost of a record
//! is shared under load.
//!
//! What always holds: a request that is refused while it is read leaves no row. Builders cannot take rows
//! back, so the record is closed at the mark before it ([`BatchMark`]).

use super::call_points::PreviousState;
use super::call_tracker::CallRef;
use super::coalesce::{self, CoalesceMark, Coalescer, SpentTokens};
use super::idempotency::{ClaimedKey, StoredResponse, SubmitResult};
use super::inflight_epochs::EpochGuard;
use super::{IngestResponse, Position, Shared, call_identities, read_positions};
use crate::counters::RequestCounts;
use crate::metrics::BatchSummary;
use crate::rejection::{Rejection, RejectionReason};
use crate::source::Source;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Table;
use store::codec::{CodecError, Encoder};
use store::hot::BufferedRecord;
use store::rows::{EventRows, KeptAnswer, RejectRows, RequestRows, TrafficRows};
use store::wal::CommitError;
use tokio::sync::oneshot;

/// Identities of events without a row that are kept in one row of the answers.
const IDENTITIES_PER_ROW: usize = 1024;
/// The number of identities of counted calls that are stored in one row.
const CALLS_PER_ROW: usize = 8192;

/// The builders of all tables.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) events: EventRows,
    pub(super) traffic: TrafficRows,
    pub(super) rejects: RejectRows,
    requests: RequestRows,
}

/// How many rows there were before a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BatchMark {
    rows: [usize; Table::ALL.len()],
    identities: usize,
    counted_calls: usize,
    series_states: usize,
    reported_calls: usize,
    coalescer: CoalesceMark,
}

/// A request that has been read, and waits for its rows to be durable.
pub(super) struct PendingRequest {
    pub(super) source: Source,
    /// The key that it has claimed, if it has one.
    pub(super) claimed: Option<ClaimedKey>,
    pub(super) response: IngestResponse,
    pub(super) counts: RequestCounts,
    pub(super) reply: oneshot::Sender<SubmitResult>,
    /// The room of the body, given back with the response.
    pub(super) permits: Vec<tokio::sync::OwnedSemaphorePermit>,
}

/// One log record in the making.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) rows: Rows,
    /// What the rows weigh.
    pub(super) bytes: usize,
    /// Identities that these rows added to the dedup table.
    pub(super) identities: Vec<u128>,
    /// Identities of counted calls, which a restart must still recognize.
    pub(super) counted_calls: Vec<u64>,
    /// How cumulative series were before points of this batch were added.
    pub(super) series_states: Vec<PreviousState>,
    /// Calls of which something was reported or counted by this batch.
    pub(super) reported_calls: Vec<CallRef>,
    /// What is past the budget of its service.
    pub(super) coalescer: Coalescer,
    /// Taken when the first request was begun.
    epoch_guard: Option<EpochGuard>,
    /// A repeat of something that may not be durable yet was found: the response must wait for it.
    pub(super) depends_on_others: bool,
    pending: Vec<PendingRequest>,
}

impl Batch {
    /// To be called before anything is looked up for a request.
    pub(super) fn begin(&mut self, shared: &Shared) {
        self.epoch_guard.get_or_insert_with(|| shared.inflight_epochs.begin(|| shared.wal.epoch()));
        self.coalescer.begin();
    }

    pub(super) fn mark(&self) -> BatchMark {
        let rows = &self.rows;
        BatchMark {
            rows: [rows.events.len(), rows.traffic.len(), rows.rejects.len(), rows.requests.len()],
            identities: self.identities.len(),
            counted_calls: self.counted_calls.len(),
            series_states: self.series_states.len(),
            reported_calls: self.reported_calls.len(),
            coalescer: self.coalescer.mark(),
        }
    }

    /// How many rows there are; small requests share a record up to a point.
    pub(super) fn row_count(&self) -> usize {
        self.mark().rows.iter().sum()
    }

    /// True when nobody waits for it and nothing was left in it, not even a memory.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.mark() == BatchMark::default()
    }

    /// Adds a request that has been read whole.
    pub(super) fn finish(&mut self, request: PendingRequest, position: Option<&Position>, now: i64) {
        if let Some(position) = position {
            let key = read_positions::position_key(position);
            self.rows.requests.push(KeptAnswer { time: now, key, answer: &position.to_json() });
        }
        if let Some(ClaimedKey { key, content }) =
            request.claimed.filter(|_| request.response.is_replayable())
        {
            let stored = StoredResponse::new(request.response.clone(), content);
            self.rows.requests.push(KeptAnswer { time: now, key, answer: &stored.to_json() });
        }
        self.pending.push(request);
    }

    /// Takes the batch, without the rows after a mark, as the bytes of a record and the commit that answers its senders.
    pub(super) fn close(
        &mut self,
        mark: BatchMark,
        encoder: &mut Encoder,
        shared: &Arc<Shared>,
    ) -> Result<(Buffer, PendingCommit), CodecError> {
        let mut taken = std::mem::take(self);
        shared.dedup.remove_all(&taken.identities[mark.identities..]);
        taken.identities.truncate(mark.identities);
        shared.call_series.restore(&taken.series_states[mark.series_states..]);
        taken.series_states.truncate(mark.series_states);
        shared.call_reports.forget(&taken.reported_calls[mark.reported_calls..]);
        taken.reported_calls.truncate(mark.reported_calls);
        let (coalesced, spent) = taken.coalescer.finish(mark.coalescer, &mut taken.rows.events);
        let calls = &taken.counted_calls[..mark.counted_calls];
        let record = taken.rows.encode(mark, &coalesced, calls, encoder, shared.now());
        let (identities, pending, epoch_guard) = (taken.identities, taken.pending, taken.epoch_guard);
        let undo = Undo { series_states: taken.series_states, reported_calls: taken.reported_calls };
        let (shared, summary) = (Arc::clone(shared), BatchSummary::default());
        let mut commit = PendingCommit { shared, identities, undo, spent, pending, epoch_guard, summary };
        match record {
            Ok((record, summary)) => {
                commit.summary = summary;
                Ok((Buffer::from_vec(record), commit))
            }
            Err(error) => {
                commit.reject(&Rejection::new(RejectionReason::Internal, error.to_string()));
                Err(error)
            }
        }
    }

    /// Gives a batch up whose builders cannot be trusted any more.
    pub(super) fn abort(self, shared: &Arc<Shared>, rejection: &Rejection) {
        let Self { identities, series_states, reported_calls, .. } = self;
        let undo = Undo { series_states, reported_calls };
        let Self { coalescer, mut rows, pending, epoch_guard, .. } = self;
        let (shared, summary) = (Arc::clone(shared), BatchSummary::default());
        let mark = coalescer.mark();
        let (_, spent) = coalescer.finish(mark, &mut rows.events);
        PendingCommit { shared, identities, undo, spent, pending, epoch_guard, summary }.reject(rejection);
    }

    /// True when it leans on a batch that may be refused without the log knowing that this one leans on it.
    pub(super) fn may_depend_on_failed_batch(&self) -> bool {
        self.depends_on_others
            && self.epoch_guard.as_ref().is_some_and(|epoch_guard| epoch_guard.overlaps_older_epoch)
    }

    /// False when the senders can be told yes without the log, or there is nobody to be told.
    pub(super) fn needs_wal(&self, mark: BatchMark) -> bool {
        !self.pending.is_empty() && (mark.rows != BatchMark::default().rows || self.depends_on_others)
    }
}

impl Rows {
    fn encode(
        &mut self,
        mark: BatchMark,
        coalesced: &[u128],
        calls: &[u64],
        encoder: &mut Encoder,
        now: i64,
    ) -> Result<(Vec<u8>, BatchSummary), CodecError> {
        let [events, traffic, rejects, mut requests] = mark.rows;
        // A request that is taken back has left no response, so these come right after the others.
        for identities in coalesced.chunks(IDENTITIES_PER_ROW) {
            let key = identities.first().copied().unwrap_or_default();
            self.requests.push(KeptAnswer {
                time: now,
                key,
                answer: &coalesce::encode_identities(identities),
            });
            requests += 1;
        }
        for identities in calls.chunks(CALLS_PER_ROW) {
            let key = identities.first().copied().unwrap_or_default().into();
            self.requests.push(KeptAnswer { time: now, key, answer: &call_identities::encode(identities) });
            requests += 1;
        }
        let batches = [
            self.events.finish()?.slice(0, events),
            self.traffic.finish()?.slice(0, traffic),
            self.rejects.finish()?.slice(0, rejects),
            self.requests.finish()?.slice(0, requests),
        ];
        let summary = BatchSummary::new(now, &batches[0], &batches[1]);
        let bytes: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
        let mut record = Vec::with_capacity(bytes / 2);
        for (table, batch) in Table::ALL.into_iter().zip(batches) {
            if batch.num_rows() > 0 {
                encoder.append(&mut record, table, batch)?;
            }
        }
        // It stays in memory while it is hot.
        record.shrink_to_fit();
        Ok((record, summary))
    }
}

/// What was learned from a batch, and is unlearned when it cannot be stored.
struct Undo {
    series_states: Vec<PreviousState>,
    reported_calls: Vec<CallRef>,
}

/// The response that the senders of a record get once its fate is known.
pub(super) struct PendingCommit {
    shared: Arc<Shared>,
    identities: Vec<u128>,
    undo: Undo,
    /// Given back if nothing is stored.
    spent: SpentTokens,
    pending: Vec<PendingRequest>,
    /// Released last, when the identities are durable or removed.
    epoch_guard: Option<EpochGuard>,
    /// What the rows mean for the metrics.
    summary: BatchSummary,
}

impl PendingCommit {
    /// The log's epoch that the batch began under.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch_guard.as_ref().map_or(0, |epoch_guard| epoch_guard.epoch)
    }

    /// The log has spoken: publish and say yes, or forget and refuse.
    pub(super) fn complete(self, result: Result<u64, CommitError>, record: &Buffer) {
        match result {
            Ok(sequence) => {
                self.shared.largest_rejected_record.store(0, Ordering::Relaxed);
                self.shared.publish(BufferedRecord::new(
                    sequence,
                    record.clone(),
                    Arc::clone(&self.shared.decoder),
                ));
                self.acknowledge();
            }
            Err(error) => {
                self.shared.largest_rejected_record.fetch_max(record.len(), Ordering::Relaxed);
                let rejection = self.shared.rejection_for(&error);
                self.reject(&rejection);
            }
        }
    }

    /// Says yes: everything is durable, or there was nothing to store.
    pub(super) fn acknowledge(self) {
        self.shared.metrics.enqueue(self.summary);
        let now = self.shared.now();
        for request in self.pending {
            let counters = self.shared.counters.of(request.source);
            counters.add(&request.counts);
            // Its sender is told so; OTLP has partial success for that.
            if request.source == Source::Envelopes && !request.response.is_replayable() {
                counters.rejected_requests[RejectionReason::Unreadable as usize].add(1);
            }
            request.respond(&self.shared, Ok, now);
        }
    }

    /// Says no to everyone: nothing of this is stored.
    pub(super) fn reject(self, rejection: &Rejection) {
        self.shared.dedup.remove_all(&self.identities);
        self.shared.call_series.restore(&self.undo.series_states);
        self.shared.call_reports.forget(&self.undo.reported_calls);
        self.spent.give_back();
        let now = self.shared.now();
        for request in self.pending {
            self.shared.counters.record_rejection(request.source, rejection);
            request.respond(&self.shared, |_| Err(rejection.clone()), now);
        }
    }
}

impl PendingRequest {
    /// Answers, and lets others with the same key know.
    pub(super) fn respond(
        self,
        shared: &Shared,
        outcome: impl FnOnce(IngestResponse) -> SubmitResult,
        now: i64,
    ) {
        let outcome = outcome(self.response);
        if let Some(claimed) = self.claimed {
            shared.idempotency.complete(claimed, &outcome, now);
        }
        drop(self.permits);
        // A sender that went away does not need it.
        drop(self.reply.send(outcome));
    }
}
