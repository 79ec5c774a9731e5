//! The ingest pipeline: turns the bytes of a request into durable rows.
//!
//! Receivers submit whole requests, workers parse them into Arrow rows, and the WAL makes the rows durable; only then
//! is the sender's request acknowledged. One WAL record holds everything that its requests yielded: events, traffic,
//! samples of records that could not be read, and the responses to requests with an `Idempotency-Key`. So after a
//! crash either all of a request is kept or nothing.
//!
//! Invariants:
//! - `Ok` from [`Pipeline::submit`] means that the contents of the request are on disk, synced.
//! - A rejected request leaves nothing behind, and is counted by its reason.
//! - Large requests have a worker of their own, so two of them are never in memory at once and no small request waits
//!   for one.
//! - In-flight work is bounded by [`Pipeline::body_permits`] and the slots of the receivers, so no queue here needs a
//!   bound.

mod admission;
mod batch;
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
mod stream_state;
mod traffic;
mod traffic_names;
mod worker;

pub use call_points::{CallDurations, CallPoint};
pub use record_sink::RecordSink;
pub use request::{
    BodyReader, Defaults, Encoding, IdempotencyKey, IngestResponse, Position, RejectedRecord, Request,
};
pub use restore::RestoredState;
pub use self_tracing::TARGET as SELF_TRACING_TARGET;
pub use shared::Clock;
pub use stream_state::StreamState;

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

/// The parts that a pipeline is built from.
pub struct Parts {
    /// The limits on what requests may cost.
    pub limits: Limits,
    /// The rules of the classifier, which say what records mean.
    pub rules: Arc<Rules>,
    /// The write-ahead log, which makes rows durable.
    pub wal: Wal,
    /// The buffered rows, which queries read until they are flushed.
    pub hot: Arc<Hot>,
    /// The source of the current time.
    pub clock: Clock,
    /// The number of workers that parse requests.
    pub workers: usize,
}

/// Errors of starting a pipeline.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The operating system could not start a thread or supply random numbers.
    #[error("cannot start the pipeline: {0}")]
    System(#[from] std::io::Error),
    /// The built-in schemas cannot be encoded, which is a bug.
    #[error(transparent)]
    Codec(#[from] codec::CodecError),
}

/// The handle through which receivers submit requests. It is cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    shared: Arc<Shared>,
    body_permits: Arc<Semaphore>,
    /// The queue of the workers; taken at shutdown, so that they stop when it is empty.
    queue: Arc<Mutex<Option<Sender<Job>>>>,
    workers: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// The read positions that were found in the WAL and the tables at startup, until they are taken.
    positions: Arc<Mutex<Vec<Position>>>,
}

impl Pipeline {
    /// Starts the worker threads.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started.
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
        // The workers hold the other senders, so the queue for large requests closes when they stop.
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

    /// Returns the limits in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Returns the semaphore that bounds the bytes of request bodies: one permit per KiB. Receivers acquire permits
    /// as bytes arrive.
    #[must_use]
    pub fn body_permits(&self) -> &Arc<Semaphore> {
        &self.body_permits
    }

    /// Returns the counters of the collector.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Returns the metrics of the services.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// Returns the largest line, in bytes, that is read.
    #[must_use]
    pub fn max_line_bytes(&self) -> usize {
        self.shared.rules.limits().line_bytes
    }

    /// Returns the budgets that limit how many events of each service are stored one by one; without any, all are.
    #[must_use]
    pub fn budgets(&self) -> &Budgets {
        &self.shared.budgets
    }

    /// Loads known services and groups of errors from the store into the metrics, in the background. Call it before
    /// the first request.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn warm_up_metrics(&self, delta: Option<Arc<DeltaTables>>) -> std::io::Result<()> {
        let records = self.shared.hot.snapshot().records;
        metrics::start_warmup(Arc::clone(&self.shared.metrics), records, delta, self.shared.now())
    }

    pub(crate) fn now(&self) -> i64 {
        self.shared.now()
    }

    /// Returns the statistics of the WAL.
    #[must_use]
    pub fn wal_stats(&self) -> WalStats {
        self.shared.wal.stats()
    }

    /// Returns the buffered rows, which are not flushed yet.
    #[must_use]
    pub fn hot(&self) -> &Arc<Hot> {
        &self.shared.hot
    }

    /// Counts a request that a receiver rejected before it reached the pipeline.
    pub fn record_rejection(&self, source: Source, rejection: &Rejection) {
        self.shared.counters.of(source).requests.add(1);
        self.shared.counters.record_rejection(source, rejection);
    }

    /// Returns the reason why requests would be rejected now, if they would. Calling this also makes a failing WAL
    /// try again.
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

    /// Makes the WAL try again, at most once per retry interval, with an empty record that is as large as the records
    /// that were rejected. The next request would also make it try, but a client that checks readiness first may
    /// never send one.
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

    /// Stores a request. When this returns `Ok`, its contents are durable.
    ///
    /// # Errors
    /// Returns the rejection: nothing of the request is stored, and the rejection has been counted.
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
        // A smaller request may still fit, so one request per retry interval is let through.
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

    /// Makes readiness fail, so that load balancers send no new work; requests that come all the same are still
    /// accepted.
    pub fn announce_shutdown(&self) {
        self.shared.shutdown_announced.store(true, Ordering::Release);
    }

    /// Rejects all new requests; those that were accepted before are finished.
    pub fn stop_accepting(&self) {
        self.shared.closing.store(true, Ordering::Release);
    }

    /// Waits until all accepted requests are durable and answered, and closes the WAL. Blocks the thread.
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
