//! The rows of one WAL record while they are collected, and the steps that follow when the record is durable or has
//! failed.
//!
//! Several small requests share a record if they are queued together, so that the cost of a record is shared under
//! load.
//!
//! Invariant: a request that is rejected while it is parsed leaves no row. Builders cannot remove rows, so the record
//! is closed at the mark before the request ([`BatchMark`]).

use super::call_points::PreviousState;
use super::call_tracker::CallRef;
use super::coalesce::{CoalesceMark, Coalescer, SpentTokens};
use super::idempotency::{ClaimedKey, SubmitResult};
use super::inflight_epochs::EpochGuard;
use super::{IngestResponse, Position, Shared};
use crate::counters::RequestCounts;
use crate::metrics::BatchSummary;
use crate::rejection::{Rejection, RejectionReason};
use crate::source::Source;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Table;
use store::codec::{CodecError, Encoder};
use store::hot::BufferedRecord;
use store::rows::{
    Entry, EventRows, KeyedResponse, ReadPosition, RejectRows, RequestRow, RequestRows, TrafficRows,
};
use store::wal::CommitError;
use tokio::sync::oneshot;

/// The number of identities of coalesced events that are stored in one row of the requests table.
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

/// The numbers of rows and other entries of a batch at one moment, such as before a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BatchMark {
    rows: [usize; Table::IN_WAL.len()],
    identities: usize,
    counted_calls: usize,
    series_states: usize,
    reported_calls: usize,
    coalescer: CoalesceMark,
}

/// A request that has been parsed and waits for its rows to be durable.
pub(super) struct PendingRequest {
    pub(super) source: Source,
    /// The idempotency key that it has claimed, if it has one.
    pub(super) claimed: Option<ClaimedKey>,
    pub(super) response: IngestResponse,
    pub(super) counts: RequestCounts,
    pub(super) reply: oneshot::Sender<SubmitResult>,
    /// The permits for the memory of the body; released with the response.
    pub(super) permits: Vec<tokio::sync::OwnedSemaphorePermit>,
}

/// One WAL record that is being built.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) rows: Rows,
    /// The approximate size of the rows in memory, in bytes.
    pub(super) bytes: usize,
    /// Identities that these rows added to the dedup window, except for those of calls.
    pub(super) identities: Vec<u128>,
    /// Identities of counted calls, which were added to the dedup window and must still be recognized after a restart.
    counted_calls: Vec<u64>,
    /// The states of cumulative series before points of this batch were added.
    pub(super) series_states: Vec<PreviousState>,
    /// Calls that were reported or counted by this batch.
    pub(super) reported_calls: Vec<CallRef>,
    /// Coalesces the events that exceed the budget of their service.
    pub(super) coalescer: Coalescer,
    /// The WAL epoch of the batch; set when the first request begins.
    epoch_guard: Option<EpochGuard>,
    /// True if the batch contains a duplicate of something that may not be durable yet: its acknowledgement must wait
    /// for that.
    pub(super) depends_on_others: bool,
    pending: Vec<PendingRequest>,
}

impl Batch {
    /// Begins a request. Call it before anything is looked up for the request.
    pub(super) fn begin(&mut self, shared: &Shared) {
        self.epoch_guard.get_or_insert_with(|| shared.inflight_epochs.begin(|| shared.wal.epoch()));
        self.coalescer.begin();
    }

    /// Adds the identity of a call that was counted and added to the dedup window.
    pub(super) fn add_counted_call(&mut self, identity: u64) {
        self.counted_calls.push(identity);
        // The identity is in memory once as it is, and once as it is encoded.
        self.bytes += 2 * size_of::<u64>();
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

    /// Returns the number of rows; small requests share a record up to a limit on it.
    pub(super) fn row_count(&self) -> usize {
        self.mark().rows.iter().sum()
    }

    /// Reports whether no request waits for this batch and nothing is left in it: no rows and no undo state.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.mark() == BatchMark::default()
    }

    /// Adds a request that has been parsed completely.
    pub(super) fn finish(&mut self, request: PendingRequest, position: Option<&Position>, now: i64) {
        if let Some(position) = position {
            let note = position.note.to_string();
            let entry = ReadPosition { text: position.text, offset: position.offset, note: &note };
            self.rows.requests.push(RequestRow { time: now, entry: Entry::Position(entry) });
        }
        if let Some(ClaimedKey { key, content }) =
            request.claimed.filter(|_| request.response.is_replayable())
        {
            let entry = KeyedResponse { key, content, response: &request.response.to_json() };
            self.rows.requests.push(RequestRow { time: now, entry: Entry::Response(entry) });
        }
        self.pending.push(request);
    }

    /// Takes the batch without the rows after a mark, and returns the bytes of the record and the commit that answers
    /// its senders.
    pub(super) fn close(
        &mut self,
        mark: BatchMark,
        encoder: &mut Encoder,
        shared: &Arc<Shared>,
    ) -> Result<(Buffer, PendingCommit), CodecError> {
        let mut taken = std::mem::take(self);
        shared.dedup.remove_all(&taken.identities[mark.identities..]);
        taken.identities.truncate(mark.identities);
        shared.dedup.remove_calls(&taken.counted_calls[mark.counted_calls..]);
        taken.counted_calls.truncate(mark.counted_calls);
        shared.call_series.restore(&taken.series_states[mark.series_states..]);
        taken.series_states.truncate(mark.series_states);
        shared.call_reports.forget(&taken.reported_calls[mark.reported_calls..]);
        taken.reported_calls.truncate(mark.reported_calls);
        let (coalesced, spent) = taken.coalescer.finish(mark.coalescer, &mut taken.rows.events);
        let calls = taken.counted_calls;
        let record = taken.rows.encode(mark, &coalesced, &calls, encoder, shared.now());
        let (identities, pending, epoch_guard) = (taken.identities, taken.pending, taken.epoch_guard);
        let Self { series_states, reported_calls, .. } = taken;
        let undo = Undo { identities, counted_calls: calls, series_states, reported_calls };
        let (shared, summary) = (Arc::clone(shared), BatchSummary::default());
        let mut commit = PendingCommit { shared, undo, spent, pending, epoch_guard, summary };
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

    /// Abandons a batch whose builders may be inconsistent, and rejects its requests.
    pub(super) fn abort(self, shared: &Arc<Shared>, rejection: &Rejection) {
        let Self { identities, counted_calls, series_states, reported_calls, .. } = self;
        let undo = Undo { identities, counted_calls, series_states, reported_calls };
        let Self { coalescer, mut rows, pending, epoch_guard, .. } = self;
        let (shared, summary) = (Arc::clone(shared), BatchSummary::default());
        let mark = coalescer.mark();
        let (_, spent) = coalescer.finish(mark, &mut rows.events);
        PendingCommit { shared, undo, spent, pending, epoch_guard, summary }.reject(rejection);
    }

    /// Reports whether the batch depends on another one that may fail without the WAL failing this one too.
    pub(super) fn may_depend_on_failed_batch(&self) -> bool {
        self.depends_on_others
            && self.epoch_guard.as_ref().is_some_and(|epoch_guard| epoch_guard.overlaps_older_epoch)
    }

    /// Reports whether the batch must go through the WAL. It need not if there is nothing to store or no sender
    /// waits.
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
        // A discarded request has left no stored response, so these rows come right after those of the others.
        let events_of = coalesced.chunks(IDENTITIES_PER_ROW).map(Cow::Borrowed).map(Entry::EventIdentities);
        let calls_of = calls.chunks(CALLS_PER_ROW).map(Cow::Borrowed).map(Entry::CallIdentities);
        for entry in events_of.chain(calls_of) {
            self.requests.push(RequestRow { time: now, entry });
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
        for (table, batch) in Table::IN_WAL.into_iter().zip(batches) {
            if batch.num_rows() > 0 {
                encoder.append(&mut record, table, batch)?;
            }
        }
        // The record stays in memory until it is flushed.
        record.shrink_to_fit();
        Ok((record, summary))
    }
}

/// State changes of a batch that are reverted if it cannot be stored.
struct Undo {
    identities: Vec<u128>,
    counted_calls: Vec<u64>,
    series_states: Vec<PreviousState>,
    reported_calls: Vec<CallRef>,
}

/// The responses that wait for the outcome of one record.
pub(super) struct PendingCommit {
    shared: Arc<Shared>,
    undo: Undo,
    /// Budget tokens, which are returned if nothing is stored.
    spent: SpentTokens,
    pending: Vec<PendingRequest>,
    /// The guard of the WAL epoch; released last, when the identities are durable or removed.
    epoch_guard: Option<EpochGuard>,
    /// The summary of the rows for the metrics.
    summary: BatchSummary,
}

impl PendingCommit {
    /// Returns the WAL epoch in which the batch began.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch_guard.as_ref().map_or(0, |epoch_guard| epoch_guard.epoch)
    }

    /// Handles the result of the WAL: publishes the record and acknowledges the requests, or reverts the state and
    /// rejects them.
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

    /// Acknowledges the requests: everything is durable, or there was nothing to store.
    pub(super) fn acknowledge(self) {
        self.shared.metrics.enqueue(self.summary);
        let now = self.shared.now();
        for request in self.pending {
            let counters = self.shared.counters.of(request.source);
            counters.add(&request.counts);
            // The sender of such a request gets an error; OTLP has partial success for that.
            if request.source == Source::Envelopes && !request.response.is_replayable() {
                counters.rejected_requests[RejectionReason::Unreadable as usize].add(1);
            }
            request.respond(&self.shared, Ok, now);
        }
    }

    /// Rejects all requests of the batch: nothing of it is stored.
    pub(super) fn reject(self, rejection: &Rejection) {
        self.shared.dedup.remove_all(&self.undo.identities);
        self.shared.dedup.remove_calls(&self.undo.counted_calls);
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
    /// Sends the response, also to requests that wait with the same idempotency key.
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
        // The sender may have gone away.
        drop(self.reply.send(outcome));
    }
}
