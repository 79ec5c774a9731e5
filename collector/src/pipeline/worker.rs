//! A worker: takes requests from the queue, reads them into rows, hands the record to the log.
//!
//! Each worker is a thread with buffers of its own; they share nothing but the queue and [`Shared`]. One of
//! them takes giants: requests whose body, or what it yields, is above `Limits::large_bytes`. The others pass
//! these on to it as soon as they know one.
//!
//! What always holds: every request that was taken is answered, whatever happens: refused, durable, or
//! refused because of a defect of ours, which is caught here and harms nobody else's worker. Only one giant is
//! in memory at a time.

use super::batch::{Batch, Mark, Waiting};
use super::decompress::decompress;
use super::keys::{self, Claim, Claimed, Outcome};
use super::reading::Reading;
use super::traffic::Traffic;
use super::{Answer, Request, Shared};
use crate::counters::Tally;
use crate::limits::Limits;
use crate::refusal::{Cause, Refusal};
use crossbeam_channel::{Receiver, Sender};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use store::codec::Encoder;
use taxonomy::Classifier;
use tokio::sync::oneshot;

/// Requests that wait together share a record up to about this many rows.
const SHARED_ROWS: usize = 4096;

/// A request on its way to a worker.
pub(super) struct Job {
    pub(super) request: Request,
    /// Its `Idempotency-Key`, once a worker has read the body and claimed the key.
    pub(super) claimed: Option<Claimed>,
    /// When it arrived, in microseconds since 1970.
    pub(super) arrival: i64,
    pub(super) reply: oneshot::Sender<Outcome>,
}

impl Job {
    /// Claims the `Idempotency-Key` of the request for what it holds, unless that was done before. The body is a
    /// borrow of somebody else's buffer, or of the request itself.
    fn claim(&mut self, body: &[u8], shared: &Shared) -> Result<(), Unread> {
        let Some(idempotency) = self.request.idempotency_key.as_ref().filter(|_| self.claimed.is_none())
        else {
            return Ok(());
        };
        let key = keys::identity_of(idempotency.token.as_deref(), &idempotency.key);
        let claimed = Claimed { key, content: keys::content_of(&self.request, idempotency.form, body) };
        // The way to answer goes to whoever has the key; a channel of no use stands in its place.
        let reply = std::mem::replace(&mut self.reply, oneshot::channel().0);
        let (reply, outcome) = match shared.keys.claim(claimed, reply, self.arrival) {
            Claim::First(reply) => {
                self.claimed = Some(claimed);
                (reply, Ok(()))
            }
            Claim::Answered(reply, answer) => {
                // Counted before it is said, so that whoever hears it finds it counted.
                shared.counters.answered_again.add(1);
                // A sender that went away does not need it.
                drop(reply.send(Ok(answer)));
                return Err(Unread::Shared);
            }
            Claim::Shared => {
                shared.counters.answered_again.add(1);
                return Err(Unread::Shared);
            }
            Claim::Reused(reply) => (reply, Err(keys::reused().into())),
        };
        self.reply = reply;
        outcome
    }
}

/// What a worker does about giants.
#[derive(Clone)]
pub(super) enum Role {
    /// It is the one that takes them.
    TakesGiants,
    /// It passes them on to the one that does.
    PassesOn(Sender<Job>),
}

impl Role {
    /// What a body, decompressed, may weigh here, and what its rows may.
    fn limits(&self, limits: &Limits) -> (usize, usize) {
        match self {
            Self::TakesGiants => (limits.body_bytes, limits.batch_bytes),
            Self::PassesOn(_) => {
                let large = limits.large_bytes;
                (large.min(limits.body_bytes), large.min(limits.batch_bytes))
            }
        }
    }
}

/// Why a request was not read.
enum Unread {
    Refused(Refusal),
    /// It is over the limits of this worker's role; this is what to say if there is no other.
    Outgrown(Refusal),
    /// It was sent before, and has been answered or will be with the first one.
    Shared,
}

impl From<Refusal> for Unread {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

pub(super) struct Worker {
    shared: Arc<Shared>,
    role: Role,
    classifier: Classifier,
    encoder: Encoder,
    batch: Batch,
    traffic: Traffic,
    /// The decompressed body.
    body: Vec<u8>,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, role: Role) -> Self {
        Self {
            classifier: Classifier::new(Arc::clone(&shared.rules)),
            shared,
            role,
            encoder: Encoder::default(),
            batch: Batch::default(),
            traffic: Traffic::default(),
            body: Vec::new(),
        }
    }

    /// Starts its thread.
    pub(super) fn start(self, name: &str, jobs: Receiver<Job>) -> std::io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name(name.to_owned()).spawn(move || self.run(&jobs))
    }

    /// Works until the queue is closed and empty.
    fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            self.take(job);
            while self.may_share()
                && let Ok(job) = jobs.try_recv()
            {
                self.take(job);
            }
            self.commit(self.batch.mark());
        }
    }

    /// True when another request may go into the same record.
    fn may_share(&self) -> bool {
        let is_light = self.batch.bytes < self.shared.limits.large_bytes;
        matches!(self.role, Role::PassesOn(_)) && self.batch.row_count() < SHARED_ROWS && is_light
    }

    /// Reads one request into the batch, or refuses it.
    fn take(&mut self, mut job: Job) {
        self.batch.begin(&self.shared);
        let mark = self.batch.mark();
        if let Some(refusal) = self.too_late(&job) {
            return self.refuse(job, &refusal, mark);
        }
        let read = catch_unwind(AssertUnwindSafe(|| self.read(&mut job)));
        self.tidy();
        match read {
            Ok(Ok((answer, tally))) => {
                let Job { request, claimed, arrival, reply } = job;
                let waiting =
                    Waiting { source: request.source, claimed, answer, tally, reply, room: request.room };
                self.batch.finish(waiting, request.position.as_ref(), arrival);
            }
            Ok(Err(Unread::Refused(refusal))) => self.refuse(job, &refusal, mark),
            Ok(Err(Unread::Shared)) => {}
            Ok(Err(Unread::Outgrown(refusal))) => self.pass_on(job, &refusal, mark),
            Err(_) => self.recover(job),
        }
    }

    /// A giant that has waited too long is refused unread.
    fn too_late(&self, job: &Job) -> Option<Refusal> {
        let wait = i64::try_from(self.shared.limits.large_wait.as_micros()).unwrap_or(i64::MAX);
        let is_late = matches!(self.role, Role::TakesGiants) && self.shared.now() - job.arrival > wait;
        is_late.then(|| self.shared.later(Cause::Busy, "too many large requests at once"))
    }

    fn read(&mut self, job: &mut Job) -> Result<(Answer, Tally), Unread> {
        let Self { shared, role, classifier, batch, traffic, body, .. } = self;
        let Request { source, encoding, .. } = job.request;
        let (body_limit, bytes_limit) = role.limits(&shared.limits);
        // Shares the bytes, so that the job itself can be changed below.
        let arrived = job.request.body.clone();
        let Some(body) = decompress(encoding, &arrived, body, body_limit)? else {
            let limit = body_limit >> 20;
            return Err(outgrown(format!("the body is over {limit} MiB after decompression")));
        };
        job.claim(body, shared)?;
        let mut reading = Reading {
            shared,
            classifier,
            bytes_before: batch.bytes,
            bytes_limit,
            batch,
            traffic,
            source,
            defaults: &job.request.defaults,
            arrival: job.arrival,
            identity: job.claimed.map_or_else(|| shared.next_identity(), Claimed::identity),
            records: 0,
            tally: Tally::default(),
            answer: Answer::default(),
        };
        (job.request.read)(body, &mut reading)?;
        if reading.is_over_limit() {
            return Err(outgrown(format!("the body yields over {} MiB of rows", bytes_limit >> 20)));
        }
        let Reading { tally, answer, .. } = reading;
        shared.counters.of(source).body_bytes.add(body.len() as u64);
        self.batch.bytes += self.traffic.bytes();
        self.traffic.write(source, &mut self.batch.rows.traffic);
        Ok((answer.with(&tally), tally))
    }

    /// Ready for the next request; what a giant left behind is not kept.
    fn tidy(&mut self) {
        self.traffic.clear();
        if self.body.capacity() > self.shared.limits.large_bytes {
            self.body = Vec::new();
        }
    }

    /// Refuses a request that left rows or not.
    fn refuse(&mut self, job: Job, refusal: &Refusal, mark: Mark) {
        let now = self.shared.now();
        self.take_back(mark);
        let source = job.request.source;
        self.shared.counters.refused(source, refusal);
        waiting(job).tell(&self.shared, |_| Err(refusal.clone()), now);
    }

    /// Hands a giant to the worker that takes them; that one refuses what is too much even for it.
    fn pass_on(&mut self, job: Job, refusal: &Refusal, mark: Mark) {
        self.take_back(mark);
        match self.role.clone() {
            Role::TakesGiants => self.refuse(job, refusal, self.batch.mark()),
            Role::PassesOn(giants) => {
                if let Err(back) = giants.send(job) {
                    let stopping = self.shared.stopping();
                    self.refuse(back.into_inner(), &stopping, self.batch.mark());
                }
            }
        }
    }

    /// If a request has left rows that are not to be kept, the batch is closed before them.
    fn take_back(&mut self, mark: Mark) {
        if self.batch.mark() != mark {
            self.commit(mark);
        }
    }

    /// A defect of ours: the buffers are of no use any more, and nobody waits for nothing.
    fn recover(&mut self, job: Job) {
        self.shared.counters.panics.add(1);
        tracing::error!(
            source = job.request.source.as_str(),
            "a request made a worker panic; it was refused"
        );
        let fresh = Self::new(Arc::clone(&self.shared), self.role.clone());
        let broken = std::mem::replace(self, fresh);
        let others = Refusal::later(Cause::Busy, "a worker was restarted", self.shared.limits.retry_after);
        broken.batch.abandon(&self.shared, &others);
        let refusal = Refusal::new(Cause::Internal, "the request could not be worked on");
        self.refuse(job, &refusal, self.batch.mark());
    }

    /// Hands the rows before a mark to the log, as soon as there is room.
    fn commit(&mut self, mark: Mark) {
        if self.batch.is_untouched() {
            self.batch = Batch::default();
            return;
        }
        if self.batch.is_doubtful() {
            let refusal = self.shared.later(Cause::Busy, "an earlier request could not be stored");
            return std::mem::take(&mut self.batch).abandon(&self.shared, &refusal);
        }
        self.shared.metrics.keep_up();
        // Before the rows are written as a record: until then they stand in memory twice.
        let needs_log = self.batch.needs_log(mark);
        let inside = needs_log.then(|| self.shared.unwritten.enter(self.batch.bytes));
        if let Ok((record, promise)) = self.batch.close(mark, &mut self.encoder, &self.shared) {
            if needs_log {
                // The same bytes for the log and for readers: a giant is not copied once more.
                let (bytes, epoch) = (record.clone(), promise.epoch());
                let settle = move |fate| {
                    promise.settle(fate, &record);
                    drop(inside);
                };
                self.shared.log.submit(bytes, epoch, Box::new(settle));
            } else {
                promise.keep();
            }
        }
    }
}

fn outgrown(detail: String) -> Unread {
    Unread::Outgrown(Refusal::new(Cause::TooLarge, detail))
}

/// A request that was not read.
fn waiting(job: Job) -> Waiting {
    let Job { request, claimed, reply, .. } = job;
    Waiting {
        source: request.source,
        claimed,
        answer: Answer::default(),
        tally: Tally::default(),
        reply,
        room: request.room,
    }
}
