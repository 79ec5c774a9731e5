//! From a request's bytes to durable rows.
//!
//! Receivers submit whole requests; workers read them into Arrow rows; the log makes those durable; only then
//! is the sender told yes. One record of the log holds everything that its requests yielded: events, traffic,
//! samples of what could not be read, and the answers to requests with an `Idempotency-Key`. So a crash keeps
//! all of a request or nothing.
//!
//! What always holds:
//! - `Ok` from [`Pipeline::submit`] means that what the request held is on disk, synced.
//! - A refused request leaves nothing behind, and is counted by its reason.
//! - Giants have a worker of their own, so two of them never meet in memory and nobody waits behind one.
//! - What is in flight is bounded by [`Pipeline::body_permits`] and the receivers' slots, so no queue here needs a bound.

mod admission;
mod batch;
mod call_identities;
mod call_points;
mod call_tracker;
mod coalesce;
mod decompress;
mod dedup;
mod idempotency;
mod identities;
mod inflight_epochs;
mod read_positions;
mod record_sink;
mod reports;
mod request;
mod restore;
mod row_size;
mod sample_limiter;
mod self_tracing;
mod shared;
mod span_reports;
mod traffic;
mod worker;

pub use call_points::{CallDurations, CallPoint};
pub use record_sink::RecordSink;
pub use request::{
    BodyReader, Defaults, Encoding, IdempotencyKey, IngestResponse, Position, RejectedRecord, Request,
};
pub use restore::RestoredState;
pub use self_tracing::TARGET as SELF_TRACING_TARGET;
pub use shared::Clock;

use crate::budget::Budgets;
use crate::counters::Counters;
use crate::limits::Limits;
use crate::metrics::{self, Metrics};
use crate::rejection::{Rejection, RejectionReason};
use crate::source::Source;
use arrow::buffer::Buffer;
use classifier::Rules;
use crossbeam_channel::Sender;
use shared::Shared;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use store::codec;
use store::delta::DeltaTables;
use store::hot::{BufferedRecord, Hot};
use store::wal::{CommitError, Wal, WalStats};
use tokio::sync::{Semaphore, oneshot};
use tracing::Instrument;
use worker::{Job, Worker, WorkerRole};

/// What a pipeline is made of.
pub struct Parts {
    /// The bounds.
    pub limits: Limits,
    /// What records mean.
    pub rules: Arc<Rules>,
    /// Where rows become durable.
    pub wal: Wal,
    /// Where readers find them.
    pub hot: Arc<Hot>,
    /// What time it is.
    pub clock: Clock,
    /// How many workers read requests.
    pub workers: usize,
}

/// Why a pipeline could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The system gave no thread, or no random numbers.
    #[error("cannot start the pipeline: {0}")]
    System(#[from] std::io::Error),
    /// Our own schemas cannot be encoded: a defect.
    #[error(transparent)]
    Codec(#[from] codec::CodecError),
}

/// The way in for receivers. Cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    shared: Arc<Shared>,
    body_permits: Arc<Semaphore>,
    /// Taken away at the end, so that workers stop when the queue is empty.
    queue: Arc<Mutex<Option<Sender<Job>>>>,
    workers: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// What the log knew of positions at the start, until somebody takes them.
    positions: Arc<Mutex<Vec<Position>>>,
}

impl Pipeline {
    /// Starts the workers.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn start(parts: Parts) -> Result<Self, StartError> {
        let limits = parts.limits;
        let count = parts.workers.max(1);
        let shared = Arc::new(Shared::new(parts)?);
        let (sender, receiver) = crossbeam_channel::unbounded();
        let (large_sender, large_receiver) = crossbeam_channel::unbounded();
        let mut workers = Vec::new();
        for number in 0..count {
            let worker = Worker::new(Arc::clone(&shared), WorkerRole::Forwards(large_sender.clone()));
            workers.push(worker.start(&format!("worker-{number}"), receiver.clone())?);
        }
        // Its queue ends with the others.
        drop(large_sender);
        workers.push(
            Worker::new(Arc::clone(&shared), WorkerRole::LargeRequests)
                .start("worker-large", large_receiver)?,
        );
        Ok(Self {
            shared,
            body_permits: Arc::new(Semaphore::new(limits.inflight_bytes.div_ceil(1 << 10))),
            queue: Arc::new(Mutex::new(Some(sender))),
            workers: Arc::new(Mutex::new(workers)),
            positions: Arc::default(),
        })
    }

    /// The bounds in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Room for bodies, a permit a KiB. A receiver takes it as bytes arrive.
    #[must_use]
    pub fn body_permits(&self) -> &Arc<Semaphore> {
        &self.body_permits
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// What services answered so far.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// A longer line is not read.
    #[must_use]
    pub fn max_line_bytes(&self) -> usize {
        self.shared.rules.limits().line_bytes
    }

    /// How many events of each service are stored one by one; of all, until something is set.
    #[must_use]
    pub fn budgets(&self) -> &Budgets {
        &self.shared.budgets
    }

    /// Tells the metrics what the store holds, in the background. To be called before the first request.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn warm_up_metrics(&self, delta: Option<Arc<DeltaTables>>) -> std::io::Result<()> {
        let records = self.shared.hot.snapshot().records;
        metrics::start_warmup(Arc::clone(&self.shared.metrics), records, delta, self.shared.now())
    }

    pub(crate) fn now(&self) -> i64 {
        self.shared.now()
    }

    /// What the log did so far.
    #[must_use]
    pub fn wal_stats(&self) -> WalStats {
        self.shared.wal.stats()
    }

    /// The newest rows.
    #[must_use]
    pub fn hot(&self) -> &Arc<Hot> {
        &self.shared.hot
    }

    /// Counts a request that a receiver refused before it came this far.
    pub fn record_rejection(&self, source: Source, rejection: &Rejection) {
        self.shared.counters.of(source).requests.add(1);
        self.shared.counters.record_rejection(source, rejection);
    }

    /// Why requests would be refused now, if they would. Asking is enough for a log that failed to try again.
    #[must_use]
    pub fn readiness_error(&self) -> Option<Rejection> {
        let shared = &self.shared;
        if shared.closing.load(Ordering::Acquire) || shared.shutdown_announced.load(Ordering::Acquire) {
            return Some(shared.retryable(RejectionReason::ShuttingDown, "the collector is stopping"));
        }
        if let Err(error @ CommitError::Displaced(_)) = shared.wal.is_in_place() {
            return Some(shared.rejection_for(&error));
        }
        let wal = shared.wal.stats();
        if wal.full {
            return Some(shared.retryable(RejectionReason::WalFull, "the log has reached its limit on disk"));
        }
        if wal.failing {
            self.probe_wal();
            let error = wal.last_error.unwrap_or_default();
            return Some(
                shared.retryable(RejectionReason::DiskFailed, format!("the log cannot be written: {error}")),
            );
        }
        if self.body_permits.available_permits() == 0 {
            return Some(shared.retryable(RejectionReason::Busy, "all room for requests is taken"));
        }
        None
    }

    /// Has the log try again, once in a while, with a record of nothing that is as large as what was refused. It would
    /// try with the next request; but whoever asks first whether we are ready may never send one.
    fn probe_wal(&self) {
        let Some(bytes) = self.shared.wal_probe_bytes() else { return };
        let (shared, empty_record) = (Arc::clone(&self.shared), Buffer::from_vec(codec::nothing(bytes)));
        let stored = empty_record.clone();
        let done = move |result: Result<u64, CommitError>| {
            if let Ok(sequence) = result {
                shared.publish(BufferedRecord::new(sequence, stored, Arc::clone(&shared.decoder)));
            }
        };
        self.shared.wal.submit(empty_record, self.shared.wal.epoch(), Box::new(done));
    }

    /// Takes a request; when this returns `Ok`, what it held is durable.
    ///
    /// # Errors
    /// Refused: nothing of it is stored. It has been counted.
    pub async fn submit(&self, mut request: Request) -> Result<IngestResponse, Rejection> {
        request.defaults.redact(self.shared.rules.redactor());
        let span = self_tracing::request_span(&request);
        let outcome = self.process(request).instrument(span.clone()).await;
        self_tracing::record_outcome(&span, &outcome);
        outcome
    }

    async fn process(&self, request: Request) -> Result<IngestResponse, Rejection> {
        let counters = self.shared.counters.of(request.source);
        counters.requests.add(1);
        counters.wire_bytes.add(request.body.len() as u64);
        let arrival = self.shared.now();
        let source = request.source;
        let (reply, outcome) = oneshot::channel();
        if let Err(rejection) = self.enqueue(Job { request, claimed: None, arrival, reply }) {
            self.shared.counters.record_rejection(source, &rejection);
            return Err(rejection);
        }
        outcome.await.unwrap_or_else(|_| Err(self.shared.shutting_down()))
    }

    fn enqueue(&self, job: Job) -> Result<(), Rejection> {
        // What is left may do for a smaller request, so one in a while is let through.
        if self.shared.wal.stats().full && self.shared.wal_probe_bytes().is_none() {
            return Err(self
                .shared
                .retryable(RejectionReason::WalFull, "the log has reached its limit on disk"));
        }
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = queue
            .as_ref()
            .filter(|_| !self.shared.closing.load(Ordering::Acquire))
            .is_some_and(|queue| queue.send(job).is_ok());
        if sent { Ok(()) } else { Err(self.shared.shutting_down()) }
    }

    /// Turns readiness off, so that nobody sends new work; what comes all the same is still taken.
    pub fn announce_shutdown(&self) {
        self.shared.shutdown_announced.store(true, Ordering::Release);
    }

    /// Says no to everything new; what was begun goes on.
    pub fn stop_accepting(&self) {
        self.shared.closing.store(true, Ordering::Release);
    }

    /// Waits until everything that was taken is durable and answered, and closes the log. Blocks.
    pub fn close(&self) {
        self.stop_accepting();
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let workers = std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        for worker in workers {
            if worker.join().is_err() {
                self.shared.counters.panics.add(1);
            }
        }
        self.shared.wal.close();
    }
}

#[cfg(test)]
mod tests;
