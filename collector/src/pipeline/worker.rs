//! A worker: takes requests from the queue, reads them into rows, hands the record to the log.
//!
//! Each worker is a thread with buffers of its own; they share nothing but the queue and [`Shared`].
//!
//! What always holds: every request that was taken is answered, whatever happens: refused, durable, or
//! refused because of a defect of ours, which is caught here and harms nobody else's worker.

use super::batch::{Batch, Mark, Waiting};
use super::decompress::decompress;
use super::keys::Outcome;
use super::reading::Reading;
use super::traffic::Traffic;
use super::{Answer, Request, Shared};
use crate::counters::Tally;
use crate::refusal::{Cause, Refusal};
use crossbeam_channel::Receiver;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use store::codec::Encoder;
use taxonomy::Classifier;
use tokio::sync::oneshot;

/// Requests that wait together share a record up to about this many rows.
const SHARED_ROWS: usize = 4096;

/// A request on its way to a worker.
pub(super) struct Job {
    pub(super) request: Request,
    /// The identity of its `Idempotency-Key`.
    pub(super) key: Option<u128>,
    /// When it arrived, in microseconds since 1970.
    pub(super) arrival: i64,
    pub(super) reply: oneshot::Sender<Outcome>,
}

pub(super) struct Worker {
    shared: Arc<Shared>,
    classifier: Classifier,
    encoder: Encoder,
    batch: Batch,
    traffic: Traffic,
    /// The decompressed body.
    body: Vec<u8>,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            classifier: Classifier::new(Arc::clone(&shared.rules)),
            shared,
            encoder: Encoder::default(),
            batch: Batch::default(),
            traffic: Traffic::default(),
            body: Vec::new(),
        }
    }

    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            self.batch.epoch = self.shared.log.epoch();
            self.take(job);
            while self.batch.row_count() < SHARED_ROWS
                && let Ok(job) = jobs.try_recv()
            {
                self.take(job);
            }
            self.commit(self.batch.mark());
        }
    }

    /// Reads one request into the batch, or refuses it.
    fn take(&mut self, job: Job) {
        let shared = Arc::clone(&self.shared);
        let is_large =
            job.request.encoding.is_compressed() || job.request.body.len() > shared.limits.large_bytes;
        // Held until the record is handed over: two giants would be too much for the memory.
        let _alone = is_large.then(|| shared.large.lock().unwrap_or_else(PoisonError::into_inner));
        let mark = self.batch.mark();
        let read = catch_unwind(AssertUnwindSafe(|| self.read(&job)));
        self.traffic.clear();
        match read {
            Ok(Ok((answer, tally))) => {
                let Job { request, key, arrival, reply } = job;
                let waiting =
                    Waiting { source: request.source, key, answer, tally, reply, room: request.room };
                self.batch.finish(waiting, arrival);
            }
            Ok(Err(refusal)) => self.refuse(job, &refusal, mark),
            Err(_) => self.recover(job),
        }
        if is_large {
            self.commit(self.batch.mark());
        }
    }

    fn read(&mut self, job: &Job) -> Result<(Answer, Tally), Refusal> {
        let Self { shared, classifier, batch, traffic, body, .. } = self;
        let Request { source, encoding, .. } = job.request;
        let counters = shared.counters.of(source);
        let body = decompress(encoding, &job.request.body, body, &shared.limits)?;
        counters.body_bytes.add(body.len() as u64);
        let mut reading = Reading {
            shared,
            classifier,
            bytes_before: batch.bytes,
            batch,
            traffic,
            source,
            defaults: &job.request.defaults,
            arrival: job.arrival,
            identity: job.key.unwrap_or_else(|| shared.next_identity()),
            records: 0,
            tally: Tally::default(),
            answer: Answer::default(),
        };
        (job.request.read)(body, &mut reading)?;
        if reading.is_over_limit() {
            let limit = shared.limits.batch_bytes >> 20;
            return Err(Refusal::new(Cause::TooLarge, format!("the body yields over {limit} MiB of rows")));
        }
        let Reading { tally, answer, .. } = reading;
        self.batch.bytes += self.traffic.bytes();
        self.traffic.write(source, &mut self.batch.rows.traffic);
        Ok((answer.with(&tally), tally))
    }

    /// Refuses a request; if it has left rows, the batch is closed before them.
    fn refuse(&mut self, job: Job, refusal: &Refusal, mark: Mark) {
        let now = self.shared.now();
        if self.batch.mark() != mark {
            self.commit(mark);
        }
        let source = job.request.source;
        self.shared.counters.refused(source, refusal);
        waiting(job).tell(&self.shared, |_| Err(refusal.clone()), now);
    }

    /// A defect of ours: the buffers are of no use any more, and nobody waits for nothing.
    fn recover(&mut self, job: Job) {
        self.shared.counters.panics.add(1);
        tracing::error!(
            source = job.request.source.as_str(),
            "a request made a worker panic; it was refused"
        );
        let fresh = Self::new(Arc::clone(&self.shared));
        let broken = std::mem::replace(self, fresh);
        let others = Refusal::later(Cause::Busy, "a worker was restarted", self.shared.limits.retry_after);
        broken.batch.abandon(&self.shared, &others);
        let refusal = Refusal::new(Cause::Internal, "the request could not be worked on");
        self.refuse(job, &refusal, self.batch.mark());
        self.batch.epoch = self.shared.log.epoch();
    }

    /// Hands the rows before a mark to the log.
    fn commit(&mut self, mark: Mark) {
        if self.batch.is_empty() && self.batch.row_count() == 0 {
            return;
        }
        let epoch = self.batch.epoch;
        let needs_log = !self.batch.has_nothing_to_store();
        if let Ok((record, promise)) = self.batch.close(mark, &mut self.encoder, &self.shared) {
            if needs_log {
                // The same bytes for the log and for readers: a giant is not copied once more.
                self.shared.log.submit(
                    record.clone(),
                    epoch,
                    Box::new(move |fate| promise.settle(fate, &record)),
                );
            } else {
                promise.keep();
            }
        }
        self.batch.epoch = self.shared.log.epoch();
    }
}

/// A request that was not read.
fn waiting(job: Job) -> Waiting {
    let Job { request, key, reply, .. } = job;
    Waiting {
        source: request.source,
        key,
        answer: Answer::default(),
        tally: Tally::default(),
        reply,
        room: request.room,
    }
}
