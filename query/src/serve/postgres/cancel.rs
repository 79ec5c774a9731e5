//! Cancel requests: a client that wants to stop its query connects a second time, and sends the number and the secret that
//! it got on the first connection.

use super::error::PgError;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The connections whose queries can be cancelled.
#[derive(Debug, Default)]
pub(super) struct CancelRegistry {
    next: AtomicI32,
    targets: Mutex<HashMap<i32, CancelTarget>>,
}

#[derive(Debug)]
struct CancelTarget {
    secret: i32,
    /// Counts the cancel requests.
    requests: watch::Sender<u64>,
}

/// The registration of a connection, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct CancelKey {
    cancels: Arc<CancelRegistry>,
    pub(super) number: i32,
    pub(super) secret: i32,
    /// Changes with every cancel request.
    pub(super) requested: watch::Receiver<u64>,
}

impl CancelRegistry {
    /// Registers a connection.
    pub(super) fn register(self: &Arc<Self>) -> Result<CancelKey, PgError> {
        let mut secret = [0; 4];
        getrandom::fill(&mut secret)
            .map_err(|error| PgError::fatal("XX000", format!("no random number: {error}")))?;
        let secret = i32::from_be_bytes(secret);
        let (requests, requested) = watch::channel(0);
        let mut targets = self.targets();
        // Numbers wrap around one day; those in use are skipped.
        let number = loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed) & i32::MAX;
            if !targets.contains_key(&number) {
                break number;
            }
        };
        targets.insert(number, CancelTarget { secret, requests });
        drop(targets);
        Ok(CancelKey { cancels: Arc::clone(self), number, secret, requested })
    }

    /// Cancels the query of a connection. The protocol has no response, whether there was one or not.
    pub(super) fn cancel(&self, number: i32, secret: i32) {
        if let Some(requested) = self.targets().get(&number).filter(|requested| requested.secret == secret) {
            requested.requests.send_modify(|requests| *requests += 1);
        }
    }

    fn targets(&self) -> MutexGuard<'_, HashMap<i32, CancelTarget>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CancelKey {
    fn drop(&mut self) {
        self.cancels.targets().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_secret_stops_a_query() {
        let cancels = Arc::new(CancelRegistry::default());
        let (one, mut other) =
            (cancels.register().expect("a registration"), cancels.register().expect("a registration"));
        cancels.cancel(one.number, one.secret.wrapping_add(1));
        cancels.cancel(other.number, other.secret);
        assert!(!one.requested.has_changed().expect("a sender"));
        assert!(other.requested.has_changed().expect("a sender"));
        other.requested.mark_unchanged();
        let (number, secret) = (other.number, other.secret);
        drop(other);
        cancels.cancel(number, secret);
        assert_eq!(cancels.targets().len(), 1);
    }
}
