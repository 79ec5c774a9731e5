//! The rows of one log record while they are gathered, and what has to happen when it is durable or is not.
//!
//! Several small requests share a record when they wait for a worker together, so that the cost of a record
//! is shared under load.
//!
//! What always holds: a request that is refused while it is read leaves no row. Builders cannot take rows
//! back, so the record is closed at the mark before it ([`Mark`]).

use super::epochs::Ticket;
use super::fold::{self, FoldMark, Folds, Spent};
use super::keys::{Claimed, KeptOutcome};
use super::{Answer, Position, Shared, calls, keys, positions};
use crate::counters::Tally;
use crate::metrics::Counted;
use crate::refusal::{Cause, Refusal};
use crate::source::Source;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Table;
use store::codec::{CodecError, Encoder};
use store::hot::HotRecord;
use store::log::CommitError;
use store::rows::{EventRows, KeptAnswer, RejectRows, RequestRows, TrafficRows};
use tokio::sync::oneshot;

/// Identities of events without a row that are kept in one row of the answers.
const KEPT_TOGETHER: usize = 1024;
/// Identities of counted calls that are kept in one row.
const CALLS_TOGETHER: usize = 8192;

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
pub(super) struct Mark {
    rows: [usize; Table::ALL.len()],
    remembered: usize,
    calls: usize,
    folds: FoldMark,
}

/// A request that has been read, and waits for its rows to be durable.
pub(super) struct Waiting {
    pub(super) source: Source,
    /// The key that it has claimed, if it has one.
    pub(super) claimed: Option<Claimed>,
    pub(super) answer: Answer,
    pub(super) tally: Tally,
    pub(super) reply: oneshot::Sender<keys::Outcome>,
    /// The room of the body, given back with the answer.
    pub(super) room: Vec<tokio::sync::OwnedSemaphorePermit>,
}

/// One log record in the making.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) rows: Rows,
    /// What the rows weigh.
    pub(super) bytes: usize,
    /// Identities that were remembered for these rows.
    pub(super) remembered: Vec<u128>,
    /// Identities of calls that were counted, to be known after a restart.
    pub(super) calls: Vec<u64>,
    /// What is past the budget of its service.
    pub(super) folds: Folds,
    /// Taken when the first request was begun.
    ticket: Option<Ticket>,
    /// A repeat of something that may not be durable yet was found: the answer must wait for it.
    pub(super) leans_on_others: bool,
    waiting: Vec<Waiting>,
}

impl Batch {
    /// To be called before anything is looked up for a request.
    pub(super) fn begin(&mut self, shared: &Shared) {
        self.ticket.get_or_insert_with(|| shared.epochs.begin(|| shared.log.epoch()));
        self.folds.begin();
    }

    pub(super) fn mark(&self) -> Mark {
        let rows = &self.rows;
        Mark {
            rows: [rows.events.len(), rows.traffic.len(), rows.rejects.len(), rows.requests.len()],
            remembered: self.remembered.len(),
            calls: self.calls.len(),
            folds: self.folds.mark(),
        }
    }

    /// How many rows there are; small requests share a record up to a point.
    pub(super) fn row_count(&self) -> usize {
        self.mark().rows.iter().sum()
    }

    /// True when nobody waits for it and nothing was left in it, not even a memory.
    pub(super) fn is_untouched(&self) -> bool {
        self.waiting.is_empty() && self.mark() == Mark::default()
    }

    /// Adds a request that has been read whole.
    pub(super) fn finish(&mut self, waiting: Waiting, position: Option<&Position>, now: i64) {
        if let Some(position) = position {
            let key = positions::key_of(position);
            self.rows.requests.push(KeptAnswer { time: now, key, answer: &position.to_json() });
        }
        if let Some(Claimed { key, content }) = waiting.claimed.filter(|_| waiting.answer.is_worth_keeping())
        {
            let kept = KeptOutcome::new(waiting.answer.clone(), content);
            self.rows.requests.push(KeptAnswer { time: now, key, answer: &kept.to_json() });
        }
        self.waiting.push(waiting);
    }

    /// Takes the batch, without the rows after a mark, as the bytes of a record and the promise to answer.
    pub(super) fn close(
        &mut self,
        mark: Mark,
        encoder: &mut Encoder,
        shared: &Arc<Shared>,
    ) -> Result<(Buffer, Promise), CodecError> {
        let mut taken = std::mem::take(self);
        shared.repeats.forget(&taken.remembered[mark.remembered..]);
        taken.remembered.truncate(mark.remembered);
        let (folded, spent) = taken.folds.close(mark.folds, &mut taken.rows.events);
        let calls = &taken.calls[..mark.calls];
        let record = taken.rows.encode(mark, &folded, calls, encoder, shared.now());
        let (remembered, waiting, ticket) = (taken.remembered, taken.waiting, taken.ticket);
        let (shared, counted) = (Arc::clone(shared), Counted::default());
        let mut promise = Promise { shared, remembered, spent, waiting, ticket, counted };
        match record {
            Ok((record, counted)) => {
                promise.counted = counted;
                Ok((Buffer::from_vec(record), promise))
            }
            Err(error) => {
                promise.refuse(&Refusal::new(Cause::Internal, error.to_string()));
                Err(error)
            }
        }
    }

    /// Gives a batch up whose builders cannot be trusted any more.
    pub(super) fn abandon(self, shared: &Arc<Shared>, refusal: &Refusal) {
        let Self { remembered, folds, mut rows, waiting, ticket, .. } = self;
        let (shared, counted) = (Arc::clone(shared), Counted::default());
        let mark = folds.mark();
        let (_, spent) = folds.close(mark, &mut rows.events);
        Promise { shared, remembered, spent, waiting, ticket, counted }.refuse(refusal);
    }

    /// True when it leans on a batch that may be refused without the log knowing that this one leans on it.
    pub(super) fn is_doubtful(&self) -> bool {
        self.leans_on_others && self.ticket.as_ref().is_some_and(|ticket| ticket.is_doubtful)
    }

    /// False when the senders can be told yes without the log, or there is nobody to be told.
    pub(super) fn needs_log(&self, mark: Mark) -> bool {
        !self.waiting.is_empty() && (mark.rows != Mark::default().rows || self.leans_on_others)
    }
}

impl Rows {
    fn encode(
        &mut self,
        mark: Mark,
        folded: &[u128],
        calls: &[u64],
        encoder: &mut Encoder,
        now: i64,
    ) -> Result<(Vec<u8>, Counted), CodecError> {
        let [events, traffic, rejects, mut requests] = mark.rows;
        // A request that is taken back has left no answer, so these come right after the others.
        for identities in folded.chunks(KEPT_TOGETHER) {
            let key = identities.first().copied().unwrap_or_default();
            self.requests.push(KeptAnswer { time: now, key, answer: &fold::kept(identities) });
            requests += 1;
        }
        for identities in calls.chunks(CALLS_TOGETHER) {
            let key = identities.first().copied().unwrap_or_default().into();
            self.requests.push(KeptAnswer { time: now, key, answer: &calls::kept(identities) });
            requests += 1;
        }
        let batches = [
            self.events.finish()?.slice(0, events),
            self.traffic.finish()?.slice(0, traffic),
            self.rejects.finish()?.slice(0, rejects),
            self.requests.finish()?.slice(0, requests),
        ];
        let counted = Counted::new(now, &batches[0], &batches[1]);
        let weight: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
        let mut record = Vec::with_capacity(weight / 2);
        for (table, batch) in Table::ALL.into_iter().zip(batches) {
            if batch.num_rows() > 0 {
                encoder.append(&mut record, table, batch)?;
            }
        }
        // It stays in memory while it is hot.
        record.shrink_to_fit();
        Ok((record, counted))
    }
}

/// What was promised to the senders of a record: an answer, once its fate is known.
pub(super) struct Promise {
    shared: Arc<Shared>,
    remembered: Vec<u128>,
    /// Given back if nothing is stored.
    spent: Spent,
    waiting: Vec<Waiting>,
    /// Given back last: when what was remembered is durable or forgotten.
    ticket: Option<Ticket>,
    /// What the rows mean for the metrics.
    counted: Counted,
}

impl Promise {
    /// The log's epoch that the batch began under.
    pub(super) fn epoch(&self) -> u64 {
        self.ticket.as_ref().map_or(0, |ticket| ticket.epoch)
    }

    /// The log has spoken: publish and say yes, or forget and refuse.
    pub(super) fn settle(self, fate: Result<u64, CommitError>, record: &Buffer) {
        match fate {
            Ok(sequence) => {
                self.shared.refused_bytes.store(0, Ordering::Relaxed);
                self.shared.publish(HotRecord::new(
                    sequence,
                    record.clone(),
                    Arc::clone(&self.shared.decoder),
                ));
                self.keep();
            }
            Err(error) => {
                self.shared.refused_bytes.fetch_max(record.len(), Ordering::Relaxed);
                let refusal = self.shared.refusal_of(&error);
                self.refuse(&refusal);
            }
        }
    }

    /// Says yes: everything is durable, or there was nothing to store.
    pub(super) fn keep(self) {
        self.shared.metrics.hand_in(self.counted);
        let now = self.shared.now();
        for waiting in self.waiting {
            let counters = self.shared.counters.of(waiting.source);
            counters.add(&waiting.tally);
            // Its sender is told so; OTLP has partial success for that.
            if waiting.source == Source::Envelopes && !waiting.answer.is_worth_keeping() {
                counters.refused[Cause::Unreadable as usize].add(1);
            }
            waiting.tell(&self.shared, Ok, now);
        }
    }

    /// Says no to everyone: nothing of this is stored.
    pub(super) fn refuse(self, refusal: &Refusal) {
        self.shared.repeats.forget(&self.remembered);
        self.spent.give_back();
        let now = self.shared.now();
        for waiting in self.waiting {
            self.shared.counters.refused(waiting.source, refusal);
            waiting.tell(&self.shared, |_| Err(refusal.clone()), now);
        }
    }
}

impl Waiting {
    /// Answers, and lets others with the same key know.
    pub(super) fn tell(self, shared: &Shared, outcome: impl FnOnce(Answer) -> keys::Outcome, now: i64) {
        let outcome = outcome(self.answer);
        if let Some(claimed) = self.claimed {
            shared.keys.settle(claimed, &outcome, now);
        }
        drop(self.room);
        // A sender that went away does not need it.
        drop(self.reply.send(outcome));
    }
}
