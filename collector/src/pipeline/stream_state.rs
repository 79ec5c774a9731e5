//! The state of a stream of lines between its requests: the calls of a file or pipe that await their reply.
//!
//! A receiver that reads a stream piece by piece gives each piece the same [`StreamState`], and submits a piece only after
//! the one before it was answered, so the pieces are parsed in their order, whichever worker parses them.
//!
//! Invariants: what a piece changes counts only once the piece is durable ([`StreamState::commit`]); a piece that was
//! rejected and is submitted again finds the state that it found before; memory is bounded.

use classifier::RequestTracker;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of calls that one stream remembers. Each of a few hundred open files takes a quarter of a mebibyte at most.
const CAPACITY: usize = 1_024;

/// The calls of one stream.
#[derive(Debug, Clone)]
pub struct StreamState(Arc<Mutex<RequestTracker>>);

impl Default for StreamState {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(RequestTracker::new(CAPACITY))))
    }
}

impl StreamState {
    /// Keeps what the last piece has changed. Call it when the piece is durable.
    pub fn commit(&self) {
        self.lock().commit();
    }

    /// Begins a piece: takes back what an earlier piece changed that was not committed.
    pub(super) fn begin(&self) -> MutexGuard<'_, RequestTracker> {
        let mut tracker = self.lock();
        tracker.begin();
        tracker
    }

    fn lock(&self) -> MutexGuard<'_, RequestTracker> {
        self.0.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            // A worker panicked, and what it left may be inconsistent.
            self.0.clear_poison();
            let mut tracker = poisoned.into_inner();
            *tracker = RequestTracker::new(CAPACITY);
            tracker
        })
    }
}
