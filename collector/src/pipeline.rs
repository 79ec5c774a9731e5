//! From a request's bytes to durable rows.
//!
//! Receivers submit whole requests; workers read them into Arrow rows; the log makes those durable; only then
//! is the sender told yes. One record of the log holds everything that its requests yielded: events, traffic,
//! samples of what could not be read, and the answers to requests with an `Idempotency-Key`. So a crash keeps
//! all of a request or nothing.
//!
//! What always holds:
//! - `Ok` from [`Pipeline::submit`] means that what the request held is on disk, synced.
//! - A refused request leaves nothing behind, and is counted by its cause.
//! - Giants have a worker of their own, so two of them never meet in memory and nobody waits behind one.
//! - What is in flight is bounded by [`Pipeline::room`] and the receivers' slots, so no queue here needs a bound.

mod batch;
mod calls;
mod decompress;
mod epochs;
mod fold;
mod gate;
mod keys;
mod own_span;
mod positions;
mod reading;
mod repeats;
mod request;
mod restore;
mod samples;
mod shared;
mod traffic;
mod weight;
mod worker;

pub use own_span::TARGET as OWN_SPANS;
pub use reading::Reading;
pub use request::{Answer, Defaults, Encoding, IdempotencyKey, Position, ReadBody, Rejected, Request};
pub use restore::Restored;
pub use shared::Clock;

use crate::budget::Budgets;
use crate::counters::Counters;
use crate::limits::Limits;
use crate::metrics::{self, Metrics};
use crate::refusal::{Cause, Refusal};
use crate::source::Source;
use arrow::buffer::Buffer;
use crossbeam_channel::Sender;
use shared::Shared;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use store::codec;
use store::hot::{Hot, HotRecord};
use store::lake::Lake;
use store::log::{CommitError, Log, LogStats};
use taxonomy::Rules;
use tokio::sync::{Semaphore, oneshot};
use tracing::Instrument;
use worker::{Job, Role, Worker};

/// What a pipeline is made of.
pub struct Parts {
    /// The bounds.
    pub limits: Limits,
    /// What records mean.
    pub rules: Arc<Rules>,
    /// Where rows become durable.
    pub log: Log,
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
    room: Arc<Semaphore>,
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
        let (giants, of_giants) = crossbeam_channel::unbounded();
        let mut workers = Vec::new();
        for number in 0..count {
            let worker = Worker::new(Arc::clone(&shared), Role::PassesOn(giants.clone()));
            workers.push(worker.start(&format!("worker-{number}"), receiver.clone())?);
        }
        // Its queue ends with the others.
        drop(giants);
        workers.push(Worker::new(Arc::clone(&shared), Role::TakesGiants).start("worker-giants", of_giants)?);
        Ok(Self {
            shared,
            room: Arc::new(Semaphore::new(limits.inflight_bytes.div_ceil(1 << 10))),
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
    pub fn room(&self) -> &Arc<Semaphore> {
        &self.room
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
    pub fn longest_line(&self) -> usize {
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
    pub fn remember_services(&self, lake: Option<Arc<Lake>>) -> std::io::Result<()> {
        let records = self.shared.hot.snapshot().records;
        metrics::remember(Arc::clone(&self.shared.metrics), records, lake, self.shared.now())
    }

    pub(crate) fn now(&self) -> i64 {
        self.shared.now()
    }

    /// What the log did so far.
    #[must_use]
    pub fn log_stats(&self) -> LogStats {
        self.shared.log.stats()
    }

    /// The newest rows.
    #[must_use]
    pub fn hot(&self) -> &Arc<Hot> {
        &self.shared.hot
    }

    /// Counts a request that a receiver refused before it came this far.
    pub fn refused(&self, source: Source, refusal: &Refusal) {
        self.shared.counters.of(source).requests.add(1);
        self.shared.counters.refused(source, refusal);
    }

    /// Why requests would be refused now, if they would. Asking is enough for a log that failed to try again.
    #[must_use]
    pub fn unready(&self) -> Option<Refusal> {
        let shared = &self.shared;
        if shared.closing.load(Ordering::Acquire) || shared.stopping_soon.load(Ordering::Acquire) {
            return Some(shared.later(Cause::ShuttingDown, "the collector is stopping"));
        }
        if let Err(error @ CommitError::Displaced(_)) = shared.log.is_in_place() {
            return Some(shared.refusal_of(&error));
        }
        let log = shared.log.stats();
        if log.full {
            return Some(shared.later(Cause::LogFull, "the log has reached its limit on disk"));
        }
        if log.failing {
            self.try_log_again();
            let error = log.last_error.unwrap_or_default();
            return Some(shared.later(Cause::DiskFailed, format!("the log cannot be written: {error}")));
        }
        if self.room.available_permits() == 0 {
            return Some(shared.later(Cause::Busy, "all room for requests is taken"));
        }
        None
    }

    /// Has the log try again, once in a while, with a record of nothing that is as large as what was refused. It would
    /// try with the next request; but whoever asks first whether we are ready may never send one.
    fn try_log_again(&self) {
        let Some(bytes) = self.shared.bytes_to_try() else { return };
        let (shared, nothing) = (Arc::clone(&self.shared), Buffer::from_vec(codec::nothing(bytes)));
        let stored = nothing.clone();
        let done = move |fate: Result<u64, CommitError>| {
            if let Ok(sequence) = fate {
                shared.publish(HotRecord::new(sequence, stored, Arc::clone(&shared.decoder)));
            }
        };
        self.shared.log.submit(nothing, self.shared.log.epoch(), Box::new(done));
    }

    /// Takes a request; when this returns `Ok`, what it held is durable.
    ///
    /// # Errors
    /// Refused: nothing of it is stored. It has been counted.
    pub async fn submit(&self, mut request: Request) -> Result<Answer, Refusal> {
        request.defaults.redact(self.shared.rules.redactor());
        let span = own_span::of(&request);
        let outcome = self.take(request).instrument(span.clone()).await;
        own_span::finish(&span, &outcome);
        outcome
    }

    async fn take(&self, request: Request) -> Result<Answer, Refusal> {
        let counters = self.shared.counters.of(request.source);
        counters.requests.add(1);
        counters.wire_bytes.add(request.body.len() as u64);
        let arrival = self.shared.now();
        let source = request.source;
        let (reply, outcome) = oneshot::channel();
        if let Err(refusal) = self.enqueue(Job { request, claimed: None, arrival, reply }) {
            self.shared.counters.refused(source, &refusal);
            return Err(refusal);
        }
        outcome.await.unwrap_or_else(|_| Err(self.shared.stopping()))
    }

    fn enqueue(&self, job: Job) -> Result<(), Refusal> {
        // What is left may do for a smaller request, so one in a while is let through.
        if self.shared.log.stats().full && self.shared.bytes_to_try().is_none() {
            return Err(self.shared.later(Cause::LogFull, "the log has reached its limit on disk"));
        }
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = queue
            .as_ref()
            .filter(|_| !self.shared.closing.load(Ordering::Acquire))
            .is_some_and(|queue| queue.send(job).is_ok());
        if sent { Ok(()) } else { Err(self.shared.stopping()) }
    }

    /// Turns readiness off, so that nobody sends new work; what comes all the same is still taken.
    pub fn announce_stop(&self) {
        self.shared.stopping_soon.store(true, Ordering::Release);
    }

    /// Says no to everything new; what was begun goes on.
    pub fn stop_taking(&self) {
        self.shared.closing.store(true, Ordering::Release);
    }

    /// Waits until everything that was taken is durable and answered, and closes the log. Blocks.
    pub fn close(&self) {
        self.stop_taking();
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let workers = std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        for worker in workers {
            if worker.join().is_err() {
                self.shared.counters.panics.add(1);
            }
        }
        self.shared.log.close();
    }
}

#[cfg(test)]
mod tests;
