//! Where pieces go: into the pipeline of a data directory, or to a server. Both answer alike.
//!
//! What always holds: a piece is tried again under the same key, so that it is stored once however often it is sent;
//! whoever says "later" is asked again after the time it names, until nothing at all has been taken for too long.

mod parts;
pub(super) mod server;

use bytes::Bytes;
use collector::pipeline::{Answer, Defaults};
use collector::receive::envelopes;
use collector::{Cause, Pipeline};
use server::Server;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A directory's log makes room by itself or not at all, so nobody waits for it as long as for a server.
const DIRECTORY_PATIENCE: Duration = Duration::from_secs(30);

/// Why a piece was not taken.
#[derive(Debug)]
pub(super) enum No {
    /// It may be taken later.
    Later {
        after: Duration,
        reason: String,
        /// Somebody has to do something about it: a disk is full, or fails.
        is_grave: bool,
    },
    /// Nobody was there to take it, or somebody else.
    Away { reason: String },
    /// It is too much at once.
    TooLarge { reason: String },
    /// Its key is known for another piece: one that ends in the same place and begins elsewhere.
    KeyReused { reason: String },
    /// It will not be taken.
    Never { reason: String },
}

/// The end of a run: a piece could not be delivered.
#[derive(Debug, Clone)]
pub(super) struct Undelivered {
    pub(super) reason: String,
    /// The data directory is the reason, rather than a server.
    pub(super) is_directory: bool,
}

/// Who takes pieces.
pub(super) enum Destination {
    Directory(Pipeline),
    Server(Box<Server>),
}

/// Delivers pieces, as often as it takes.
pub(super) struct Delivery {
    destination: Destination,
    defaults: Defaults,
    /// How long to go on without anything being taken.
    patience: Duration,
    /// When something was last taken.
    last_yes: Mutex<Option<Instant>>,
    /// Why nothing is taken since, as far as somebody has to do something about it.
    grave: Mutex<Option<String>>,
    /// Somebody has answered, be it with a no.
    is_met: AtomicBool,
}

impl Delivery {
    pub(super) fn new(destination: Destination, defaults: Defaults, patience: Duration) -> Self {
        let patience = match &destination {
            Destination::Directory(_) => patience.min(DIRECTORY_PATIENCE),
            Destination::Server(_) => patience,
        };
        Self {
            destination,
            defaults,
            patience,
            last_yes: Mutex::new(None),
            grave: Mutex::new(None),
            is_met: AtomicBool::new(false),
        }
    }

    /// Delivers a piece; when this returns `Ok`, it is durable. Never says that it may be taken later.
    pub(super) async fn deliver(&self, body: Bytes, mut key: String) -> Result<Answer, No> {
        let began = Instant::now();
        let mut has_own_key = false;
        loop {
            let (after, reason) = match self.try_once(body.clone(), &key).await {
                Ok(answer) => {
                    self.said_yes();
                    return Ok(answer);
                }
                // A run without our ledger has cut the text in other places. Rather store lines twice than not at all.
                Err(No::KeyReused { .. }) if !has_own_key => {
                    has_own_key = true;
                    key = format!("{key}{:032x}", xxhash_rust::xxh3::xxh3_128(&body));
                    continue;
                }
                Err(no @ (No::TooLarge { .. } | No::Never { .. } | No::KeyReused { .. })) => return Err(no),
                // Whoever was never there will hardly come: an address may be wrong.
                Err(No::Away { reason }) if !self.is_met.load(Ordering::Relaxed) => {
                    return Err(No::Never { reason });
                }
                Err(No::Away { reason }) => (Duration::from_millis(500), reason),
                Err(No::Later { after, reason, is_grave }) => {
                    self.said_later(is_grave, &reason);
                    (after, reason)
                }
            };
            if self.waited_since(began) >= self.patience {
                let reason = self.grave_reason().unwrap_or(reason);
                let reason = format!("nothing was taken for {} s: {reason}", self.patience.as_secs());
                return Err(No::Never { reason });
            }
            tokio::time::sleep(after).await;
        }
    }

    async fn try_once(&self, body: Bytes, key: &str) -> Result<Answer, No> {
        let answered = match &self.destination {
            Destination::Directory(pipeline) => self.submit(pipeline, body, key).await,
            Destination::Server(server) => server.post(body, key).await,
        };
        if !matches!(answered, Err(No::Away { .. })) {
            self.is_met.store(true, Ordering::Relaxed);
        }
        answered
    }

    async fn submit(&self, pipeline: &Pipeline, body: Bytes, key: &str) -> Result<Answer, No> {
        let request = envelopes::lines(body, self.defaults.clone(), key.to_owned());
        pipeline.submit(request).await.map_err(|refusal| {
            let reason = refusal.to_string();
            match (refusal.cause, refusal.retry_after) {
                (Cause::TooLarge, _) => No::TooLarge { reason },
                (Cause::KeyReused, _) => No::KeyReused { reason },
                (cause, Some(after)) => {
                    No::Later { after, reason, is_grave: matches!(cause, Cause::LogFull | Cause::DiskFailed) }
                }
                (_, None) => No::Never { reason },
            }
        })
    }

    fn said_yes(&self) {
        *self.last_yes.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        *self.grave.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn said_later(&self, is_grave: bool, reason: &str) {
        if is_grave {
            *self.grave.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
        }
    }

    /// What somebody should do something about: others are told no because of it, in words that say less.
    fn grave_reason(&self) -> Option<String> {
        self.grave.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long nothing has been taken while this piece was waiting.
    fn waited_since(&self, began: Instant) -> Duration {
        let last = *self.last_yes.lock().unwrap_or_else(PoisonError::into_inner);
        last.map_or(began, |last| last.max(began)).elapsed()
    }

    /// What a no that is final means for the run.
    pub(super) fn undelivered(&self, no: No) -> Undelivered {
        let (No::Later { reason, .. }
        | No::Away { reason }
        | No::TooLarge { reason }
        | No::KeyReused { reason }
        | No::Never { reason }) = no;
        Undelivered { reason, is_directory: matches!(self.destination, Destination::Directory(_)) }
    }
}
