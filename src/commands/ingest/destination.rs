//! Where pieces go: into the pipeline of a data directory, or to a server. Both answer alike.
//!
//! What always holds: a piece is tried again under the same key, so that it is stored once however often it is sent;
//! whoever says "later" is asked again after the time it names, until nothing at all has been taken for too long.

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

/// A directory's log makes room by itself or not at all, so nobody waits for it as long as for a server.
const DIRECTORY_GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// Why a piece was not taken.
#[derive(Debug)]
pub(super) enum DeliveryError {
    /// It may be taken later.
    Retry {
        after: Duration,
        reason: String,
        /// Somebody has to do something about it: a disk is full, or fails.
        needs_operator: bool,
    },
    /// Nobody was there to take it, or somebody else.
    Unreachable { reason: String },
    /// It is too much at once.
    TooLarge { reason: String },
    /// Its key is known for another piece: one that ends in the same place and begins elsewhere.
    KeyReused { reason: String },
    /// It will not be taken.
    Permanent { reason: String },
}

/// The end of a run: a piece could not be delivered.
#[derive(Debug, Clone)]
pub(super) struct RunFailure {
    pub(super) reason: String,
    /// The data directory is the reason, rather than a server.
    pub(super) is_directory: bool,
}

/// Who takes pieces.
pub(super) enum Destination {
    Directory(Pipeline),
    IngestServer(Box<IngestServer>),
}

/// Delivers pieces, as often as it takes.
pub(super) struct Delivery {
    destination: Destination,
    defaults: Defaults,
    /// How long to go on without anything being taken.
    give_up_after: Duration,
    /// When something was last taken.
    last_success: Mutex<Option<Instant>>,
    /// Why nothing is taken since, as far as somebody has to do something about it.
    operator_problem: Mutex<Option<String>>,
    /// Somebody has answered, be it with a no.
    has_responded: AtomicBool,
}

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

    /// Delivers a piece; when this returns `Ok`, it is durable. Never says that it may be taken later.
    pub(super) async fn deliver(
        &self,
        body: Bytes,
        mut key: String,
    ) -> Result<IngestResponse, DeliveryError> {
        let began = Instant::now();
        let mut has_content_key = false;
        loop {
            let (after, reason) = match self.try_once(body.clone(), &key).await {
                Ok(answer) => {
                    self.record_success();
                    return Ok(answer);
                }
                // A run without our ledger has cut the text in other places. Rather store lines twice than not at all.
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
                // Whoever was never there will hardly come: an address may be wrong.
                Err(DeliveryError::Unreachable { reason }) if !self.has_responded.load(Ordering::Relaxed) => {
                    return Err(DeliveryError::Permanent { reason });
                }
                Err(DeliveryError::Unreachable { reason }) => (Duration::from_millis(500), reason),
                Err(DeliveryError::Retry { after, reason, needs_operator }) => {
                    self.record_retry(needs_operator, &reason);
                    (after, reason)
                }
            };
            if self.idle_since(began) >= self.give_up_after {
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
        pipeline.submit(request).await.map_err(|refusal| {
            let reason = refusal.to_string();
            match (refusal.reason, refusal.retry_after) {
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

    /// What somebody should do something about: others are told no because of it, in words that say less.
    fn operator_reason(&self) -> Option<String> {
        self.operator_problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long nothing has been taken while this piece was waiting.
    fn idle_since(&self, began: Instant) -> Duration {
        let last = *self.last_success.lock().unwrap_or_else(PoisonError::into_inner);
        last.map_or(began, |last| last.max(began)).elapsed()
    }

    /// What a no that is final means for the run.
    pub(super) fn run_failure(&self, error: DeliveryError) -> RunFailure {
        let (DeliveryError::Retry { reason, .. }
        | DeliveryError::Unreachable { reason }
        | DeliveryError::TooLarge { reason }
        | DeliveryError::KeyReused { reason }
        | DeliveryError::Permanent { reason }) = error;
        RunFailure { reason, is_directory: matches!(self.destination, Destination::Directory(_)) }
    }
}
