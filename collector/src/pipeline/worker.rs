//! A worker thread: takes requests from the queue, parses them into rows, and hands the records to the WAL.
//!
//! Each worker is a thread with its own buffers; workers share nothing but the queue and [`Shared`]. One of them
//! handles the large requests: those whose body, or whose rows, exceed `Limits::large_bytes`. The others forward such
//! a request as soon as they recognize it.
//!
//! Invariants: every request that was accepted is answered: it is durable, rejected, or rejected because of a panic,
//! which is caught here and does not affect other workers. Only one large request is in memory at a time.

use super::batch::{Batch, BatchMark, PendingRequest};
use super::decompress::decompress;
use super::idempotency::{self, Claim, ClaimedKey, SubmitResult};
use super::record_sink::RecordSink;
use super::traffic::Traffic;
use super::{IngestResponse, Request, Shared, StreamState};
use crate::counters::RequestCounts;
use crate::limits::Limits;
use crate::rejection::{Rejection, RejectionReason};
use crate::source::Source;
use classifier::{Classifier, RequestTracker};
use crossbeam_channel::{Receiver, Sender};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use store::codec::Encoder;
use tokio::sync::oneshot;

/// Requests that are queued together share a WAL record, up to about this many rows.
const MAX_SHARED_ROWS: usize = 4096;

/// A request on its way to a worker.
pub(super) struct Job {
    pub(super) request: Request,
    /// The `Idempotency-Key` of the request, once a worker has decompressed the body and claimed the key.
    pub(super) claimed: Option<ClaimedKey>,
    /// The time at which the request arrived, in microseconds since 1970.
    pub(super) arrival: i64,
    pub(super) reply: oneshot::Sender<SubmitResult>,
}

impl Job {
    /// Claims the `Idempotency-Key` of the request for its contents, unless that was done before. The body borrows
    /// from the worker's buffer or from the request itself.
    fn claim(&mut self, body: &[u8], shared: &Shared) -> Result<(), ReadError> {
        let Some(idempotency) = self.request.idempotency_key.as_ref().filter(|_| self.claimed.is_none())
        else {
            return Ok(());
        };
        let key = idempotency::key_identity(idempotency.token.as_deref(), &idempotency.key);
        let claimed =
            ClaimedKey { key, content: idempotency::content_hash(&self.request, idempotency.form, body) };
        // The table of keys takes the reply channel; an unused channel replaces it meanwhile.
        let reply = std::mem::replace(&mut self.reply, oneshot::channel().0);
        let (reply, outcome) = match shared.idempotency.claim(claimed, reply, self.arrival) {
            Claim::First(reply) => {
                self.claimed = Some(claimed);
                (reply, Ok(()))
            }
            Claim::Completed(reply, response) => {
                // The replay is counted before it is sent, so that the client finds it counted.
                shared.counters.idempotent_replays.add(1);
                // The sender may have gone away.
                drop(reply.send(Ok(response)));
                return Err(ReadError::Duplicate);
            }
            Claim::Joined => {
                shared.counters.idempotent_replays.add(1);
                return Err(ReadError::Duplicate);
            }
            Claim::Conflict(reply) => (reply, Err(idempotency::conflict().into())),
        };
        self.reply = reply;
        outcome
    }
}

/// The role of a worker with regard to large requests.
#[derive(Clone)]
pub(super) enum WorkerRole {
    /// The worker handles large requests.
    LargeRequests,
    /// The worker forwards large requests to the one that handles them.
    Forwards(Sender<Job>),
}

impl WorkerRole {
    /// Returns the limits on the decompressed body and on its rows in this role, in bytes.
    fn limits(&self, limits: &Limits) -> (usize, usize) {
        match self {
            Self::LargeRequests => (limits.body_bytes, limits.batch_bytes),
            Self::Forwards(_) => {
                let large = limits.large_bytes;
                (large.min(limits.body_bytes), large.min(limits.batch_bytes))
            }
        }
    }
}

/// Errors of parsing a request.
enum ReadError {
    Rejected(Rejection),
    /// The request exceeds the limits of this worker's role; the rejection is used if no other worker can take it.
    TooLarge(Rejection),
    /// The request was sent before. It has been answered, or will be together with the first one.
    Duplicate,
}

impl From<Rejection> for ReadError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

pub(super) struct Worker {
    shared: Arc<Shared>,
    role: WorkerRole,
    classifier: Classifier,
    encoder: Encoder,
    batch: Batch,
    traffic: Traffic,
    /// The buffer for decompressed bodies.
    body: Vec<u8>,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, role: WorkerRole) -> Self {
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

    /// Starts the thread of the worker.
    pub(super) fn start(self, name: &str, jobs: Receiver<Job>) -> std::io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name(name.to_owned()).spawn(move || self.run(&jobs))
    }

    /// Processes requests until the queue is closed and empty.
    fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            self.process(job);
            while self.can_add_request()
                && let Ok(job) = jobs.try_recv()
            {
                self.process(job);
            }
            self.commit(self.batch.mark());
        }
    }

    /// Reports whether another request may share the record.
    fn can_add_request(&self) -> bool {
        let is_small = self.batch.bytes < self.shared.limits.large_bytes;
        matches!(self.role, WorkerRole::Forwards(_)) && self.batch.row_count() < MAX_SHARED_ROWS && is_small
    }

    /// Parses one request into the batch, or rejects it.
    fn process(&mut self, mut job: Job) {
        self.batch.begin(&self.shared);
        let mark = self.batch.mark();
        if let Some(rejection) = self.wait_exceeded(&job) {
            return self.reject(job, &rejection, mark);
        }
        let read = catch_unwind(AssertUnwindSafe(|| self.read(&mut job)));
        self.reset_buffers();
        match read {
            Ok(Ok((response, counts))) => {
                let Job { request, claimed, arrival, reply } = job;
                let pending = PendingRequest {
                    source: request.source,
                    claimed,
                    response,
                    counts,
                    reply,
                    permits: request.permits,
                };
                self.batch.finish(pending, request.position.as_ref(), arrival);
            }
            Ok(Err(ReadError::Rejected(rejection))) => self.reject(job, &rejection, mark),
            Ok(Err(ReadError::Duplicate)) => {}
            Ok(Err(ReadError::TooLarge(rejection))) => self.forward(job, &rejection, mark),
            Err(_) => self.recover_from_panic(job),
        }
    }

    /// Returns a rejection if a large request has waited too long; it is then not parsed.
    fn wait_exceeded(&self, job: &Job) -> Option<Rejection> {
        let wait = i64::try_from(self.shared.limits.large_wait.as_micros()).unwrap_or(i64::MAX);
        let is_late =
            matches!(self.role, WorkerRole::LargeRequests) && self.shared.now() - job.arrival > wait;
        is_late.then(|| self.shared.retryable(RejectionReason::Busy, "too many large requests at once"))
    }

    fn read(&mut self, job: &mut Job) -> Result<(IngestResponse, RequestCounts), ReadError> {
        let Self { shared, role, classifier, batch, traffic, body, .. } = self;
        let Request { source, encoding, .. } = job.request;
        let (body_limit, bytes_limit) = role.limits(&shared.limits);
        // This shares the bytes, so that the job itself can be changed below.
        let compressed = job.request.body.clone();
        let Some(body) = decompress(encoding, &compressed, body, body_limit)? else {
            let limit = body_limit >> 20;
            return Err(too_large(format!("the body is over {limit} MiB after decompression")));
        };
        job.claim(body, shared)?;
        let stream = job.request.stream.clone();
        let mut of_stream = stream.as_ref().map(StreamState::begin);
        let mut of_body = RequestTracker::default();
        let mut sink = RecordSink {
            shared,
            classifier,
            bytes_before: batch.bytes,
            bytes_limit,
            batch,
            traffic,
            source,
            defaults: &job.request.defaults,
            arrival: job.arrival,
            identity: job.claimed.map_or_else(|| shared.next_identity(), ClaimedKey::identity),
            records: 0,
            tracker: of_stream.as_deref_mut().unwrap_or(&mut of_body),
            counts: RequestCounts::default(),
            response: IngestResponse::default(),
        };
        (job.request.read)(body, &mut sink)?;
        if sink.is_over_limit() {
            return Err(too_large(format!("the body yields over {} MiB of rows", bytes_limit >> 20)));
        }
        let RecordSink { counts, response, .. } = sink;
        shared.counters.of(source).body_bytes.add(body.len() as u64);
        self.batch.bytes += self.traffic.bytes();
        if source == Source::OtlpTraces {
            for (service, operation) in self.traffic.operations() {
                self.shared.span_reports.record(service, operation, job.arrival);
            }
        }
        self.traffic.write(source, &mut self.batch.rows.traffic);
        Ok((response.with_counts(&counts), counts))
    }

    /// Clears the buffers for the next request, and frees those that a large request left behind.
    fn reset_buffers(&mut self) {
        self.traffic.clear();
        if self.body.capacity() > self.shared.limits.large_bytes {
            self.body = Vec::new();
        }
    }

    /// Rejects a request and discards the rows that it left, if any.
    fn reject(&mut self, job: Job, rejection: &Rejection, mark: BatchMark) {
        let now = self.shared.now();
        self.discard_after(mark);
        let source = job.request.source;
        self.shared.counters.record_rejection(source, rejection);
        unread_request(job).respond(&self.shared, |_| Err(rejection.clone()), now);
    }

    /// Forwards a large request to the worker that handles them; that worker rejects what exceeds its own limits.
    fn forward(&mut self, job: Job, rejection: &Rejection, mark: BatchMark) {
        self.discard_after(mark);
        match self.role.clone() {
            WorkerRole::LargeRequests => self.reject(job, rejection, self.batch.mark()),
            WorkerRole::Forwards(large_requests) => {
                if let Err(unsent) = large_requests.send(job) {
                    let rejection = self.shared.shutting_down();
                    self.reject(unsent.into_inner(), &rejection, self.batch.mark());
                }
            }
        }
    }

    /// Commits the batch up to the mark if a failed request has left rows after it.
    fn discard_after(&mut self, mark: BatchMark) {
        if self.batch.mark() != mark {
            self.commit(mark);
        }
    }

    /// Recovers from a panic: replaces the buffers, which may be inconsistent, and rejects all requests of the batch.
    fn recover_from_panic(&mut self, job: Job) {
        self.shared.counters.panics.add(1);
        tracing::error!(
            source = job.request.source.as_str(),
            "a request made a worker panic; it was rejected"
        );
        let fresh = Self::new(Arc::clone(&self.shared), self.role.clone());
        let broken = std::mem::replace(self, fresh);
        let others = Rejection::retryable(
            RejectionReason::Busy,
            "a worker was restarted",
            self.shared.limits.retry_after,
        );
        broken.batch.abort(&self.shared, &others);
        let rejection = Rejection::new(RejectionReason::Internal, "the request could not be worked on");
        self.reject(job, &rejection, self.batch.mark());
    }

    /// Hands the rows before a mark to the WAL, as soon as admission lets them through.
    fn commit(&mut self, mark: BatchMark) {
        if self.batch.is_empty() {
            self.batch = Batch::default();
            return;
        }
        if self.batch.may_depend_on_failed_batch() {
            let rejection =
                self.shared.retryable(RejectionReason::Busy, "an earlier request could not be stored");
            return std::mem::take(&mut self.batch).abort(&self.shared, &rejection);
        }
        self.shared.metrics.drain_if_behind();
        // Admission comes before the encoding, because during it the rows are in memory twice.
        let needs_wal = self.batch.needs_wal(mark);
        let permit = needs_wal.then(|| self.shared.wal_admission.admit(self.batch.bytes));
        if let Ok((record, commit)) = self.batch.close(mark, &mut self.encoder, &self.shared) {
            if needs_wal {
                // The WAL and the buffer share the same bytes, so that a large record is not copied once more.
                let (bytes, epoch) = (record.clone(), commit.epoch());
                let on_commit = move |result| {
                    commit.complete(result, &record);
                    drop(permit);
                };
                self.shared.wal.submit(bytes, epoch, Box::new(on_commit));
            } else {
                commit.acknowledge();
            }
        }
    }
}

fn too_large(detail: String) -> ReadError {
    ReadError::TooLarge(Rejection::new(RejectionReason::TooLarge, detail))
}

/// Turns a job that was not parsed into a request that can be answered.
fn unread_request(job: Job) -> PendingRequest {
    let Job { request, claimed, reply, .. } = job;
    PendingRequest {
        source: request.source,
        claimed,
        response: IngestResponse::default(),
        counts: RequestCounts::default(),
        reply,
        permits: request.permits,
    }
}
