//! The destinations of chunks: the pipeline of a data directory, or a server. Both respond in the same way.
//!
//! Invariants: a chunk is retried with the same idempotency key, so that it is stored once however often it is sent; a
//! temporary rejection is retried after the time that it names, until nothing has been accepted for too long.

mod parts;
pub(super) mod server;

use bytes::Bytes;
use collector::pipeline::{Defaults, IngestResponse};
use collector::receivers::envelopes;
use collector::{Pipeline, RejectionReason};
use server::IngestServer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The maximum time without progress for a data directory. Its WAL frees space by itself or not at all, so a long wait,
/// as for a server, would not help.
const DIRECTORY_GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// The reason why a chunk was not accepted.
#[derive(Debug)]
pub(super) enum DeliveryError {
    /// The chunk may be accepted later.
    Retry {
        after: Duration,
        reason: String,
        /// True if an operator must act, because a disk is full or fails.
        needs_operator: bool,
    },
    /// The destination could not be reached, or something other than Faultline responded.
    Unreachable { reason: String },
    /// The chunk is too large for one request.
    TooLarge { reason: String },
    /// The key was used for another chunk: one that ends in the same place and begins elsewhere.
    KeyReused { reason: String },
    /// The chunk will not be accepted.
    Permanent { reason: String },
}

/// The reason for the end of a run: a chunk could not be delivered.
#[derive(Debug, Clone)]
pub(super) struct RunFailure {
    pub(super) reason: String,
    /// True if the problem is the data directory rather than a server.
    pub(super) is_directory: bool,
}

/// The destination of chunks.
pub(super) enum Destination {
    Directory(Pipeline),
    IngestServer(Box<IngestServer>),
}

/// Delivers chunks, with retries.
pub(super) struct Delivery {
    destination: Destination,
    defaults: Defaults,
    /// The time without any accepted chunk after which the run fails.
    give_up_after: Duration,
    /// The time at which a chunk was last accepted.
    last_success: Mutex<Option<Instant>>,
    /// The problem that an operator must solve, if chunks have been rejected because of one since the last success.
    operator_problem: Mutex<Option<String>>,
    /// True if the destination has responded, even if only with a rejection.
    has_responded: AtomicBool,
}

/// The number of attempts that are made for a chunk in any case: on a busy machine one may take longer than the wait.
const MIN_ATTEMPTS: usize = 3;

impl Delivery {
    pub(super) fn new(destination: Destination, defaults: Defaults, give_up_after: Duration) -> Self {
        let give_up_after = match &destination {
            Destination::Directory(_) => give_up_after.min(DIRECTORY_GIVE_UP_AFTER),
            Destination::IngestServer(_) => give_up_after,
        };
        Self {
            destination,
            defaults,
            give_up_after,
            last_success: Mutex::new(None),
            operator_problem: Mutex::new(None),
            has_responded: AtomicBool::new(false),
        }
    }

    /// Delivers a chunk; when this returns `Ok`, the chunk is durable. It never returns [`DeliveryError::Retry`].
    pub(super) async fn deliver(
        &self,
        body: Bytes,
        mut key: String,
    ) -> Result<IngestResponse, DeliveryError> {
        let began = Instant::now();
        let mut has_content_key = false;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let (after, reason) = match self.try_once(body.clone(), &key).await {
                Ok(response) => {
                    self.record_success();
                    return Ok(response);
                }
                // A run without this ledger has split the text in other places. Storing lines twice is better than
                // losing them.
                Err(DeliveryError::KeyReused { .. }) if !has_content_key => {
                    has_content_key = true;
                    key = format!("{key}{:032x}", xxhash_rust::xxh3::xxh3_128(&body));
                    continue;
                }
                Err(
                    error @ (DeliveryError::TooLarge { .. }
                    | DeliveryError::Permanent { .. }
                    | DeliveryError::KeyReused { .. }),
                ) => return Err(error),
                // A server that has never responded is unlikely to appear: its address may be wrong.
                Err(DeliveryError::Unreachable { reason }) if !self.has_responded.load(Ordering::Relaxed) => {
                    return Err(DeliveryError::Permanent { reason });
                }
                Err(DeliveryError::Unreachable { reason }) => (Duration::from_millis(500), reason),
                Err(DeliveryError::Retry { after, reason, needs_operator }) => {
                    self.record_retry(needs_operator, &reason);
                    (after, reason)
                }
            };
            if attempts >= MIN_ATTEMPTS && self.idle_since(began) >= self.give_up_after {
                let reason = self.operator_reason().unwrap_or(reason);
                let reason = format!("nothing was taken for {} s: {reason}", self.give_up_after.as_secs());
                return Err(DeliveryError::Permanent { reason });
            }
            tokio::time::sleep(after).await;
        }
    }

    async fn try_once(&self, body: Bytes, key: &str) -> Result<IngestResponse, DeliveryError> {
        let result = match &self.destination {
            Destination::Directory(pipeline) => self.submit(pipeline, body, key).await,
            Destination::IngestServer(server) => server.post(body, key).await,
        };
        if !matches!(result, Err(DeliveryError::Unreachable { .. })) {
            self.has_responded.store(true, Ordering::Relaxed);
        }
        result
    }

    async fn submit(
        &self,
        pipeline: &Pipeline,
        body: Bytes,
        key: &str,
    ) -> Result<IngestResponse, DeliveryError> {
        let request = envelopes::lines(body, self.defaults.clone(), key.to_owned());
        pipeline.submit(request).await.map_err(|rejection| {
            let reason = rejection.to_string();
            match (rejection.reason, rejection.retry_after) {
                (RejectionReason::TooLarge, _) => DeliveryError::TooLarge { reason },
                (RejectionReason::KeyReused, _) => DeliveryError::KeyReused { reason },
                (cause, Some(after)) => DeliveryError::Retry {
                    after,
                    reason,
                    needs_operator: matches!(cause, RejectionReason::WalFull | RejectionReason::DiskFailed),
                },
                (_, None) => DeliveryError::Permanent { reason },
            }
        })
    }

    fn record_success(&self) {
        *self.last_success.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        *self.operator_problem.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn record_retry(&self, needs_operator: bool, reason: &str) {
        if needs_operator {
            *self.operator_problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
        }
    }

    /// Returns the problem that an operator must solve. Other rejections that it causes are less specific.
    fn operator_reason(&self) -> Option<String> {
        self.operator_problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the time for which nothing has been accepted while this chunk was waiting.
    fn idle_since(&self, began: Instant) -> Duration {
        let last = *self.last_success.lock().unwrap_or_else(PoisonError::into_inner);
        last.map_or(began, |last| last.max(began)).elapsed()
    }

    /// Returns the failure of the run for a permanent error.
    pub(super) fn run_failure(&self, error: DeliveryError) -> RunFailure {
        let (DeliveryError::Retry { reason, .. }
        | DeliveryError::Unreachable { reason }
        | DeliveryError::TooLarge { reason }
        | DeliveryError::KeyReused { reason }
        | DeliveryError::Permanent { reason }) = error;
        RunFailure { reason, is_directory: matches!(self.destination, Destination::Directory(_)) }
    }
}
