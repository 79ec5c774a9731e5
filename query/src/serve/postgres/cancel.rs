//! Who may stop which query: a client that wants its query stopped says so on a second connection, with the number and
//! the secret that it was given on the first.

use super::failure::Failure;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Every connection that can be told to stop.
#[derive(Debug, Default)]
pub(super) struct Cancels {
    next: AtomicI32,
    alarms: Mutex<HashMap<i32, Alarm>>,
}

#[derive(Debug)]
struct Alarm {
    secret: i32,
    /// Counts how often it rang.
    rings: watch::Sender<u64>,
}

/// A connection's place among them, until it is dropped.
#[derive(Debug)]
pub(super) struct Registered {
    cancels: Arc<Cancels>,
    pub(super) number: i32,
    pub(super) secret: i32,
    /// Changes when the client wants its query stopped.
    pub(super) alarm: watch::Receiver<u64>,
}

impl Cancels {
    /// A place for a connection.
    pub(super) fn register(self: &Arc<Self>) -> Result<Registered, Failure> {
        let mut secret = [0; 4];
        getrandom::fill(&mut secret)
            .map_err(|error| Failure::fatal("XX000", format!("no random number: {error}")))?;
        let secret = i32::from_be_bytes(secret);
        let (rings, alarm) = watch::channel(0);
        let mut alarms = self.alarms();
        // Numbers come round one day; one that is in use is passed over.
        let number = loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed) & i32::MAX;
            if !alarms.contains_key(&number) {
                break number;
            }
        };
        alarms.insert(number, Alarm { secret, rings });
        drop(alarms);
        Ok(Registered { cancels: Arc::clone(self), number, secret, alarm })
    }

    /// Stops what a connection is running. Nobody is told whether there was anything.
    pub(super) fn cancel(&self, number: i32, secret: i32) {
        if let Some(alarm) = self.alarms().get(&number).filter(|alarm| alarm.secret == secret) {
            alarm.rings.send_modify(|rings| *rings += 1);
        }
    }

    fn alarms(&self) -> MutexGuard<'_, HashMap<i32, Alarm>> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.cancels.alarms().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_secret_stops_a_query() {
        let cancels = Arc::new(Cancels::default());
        let (one, mut other) = (cancels.register().expect("a place"), cancels.register().expect("a place"));
        cancels.cancel(one.number, one.secret.wrapping_add(1));
        cancels.cancel(other.number, other.secret);
        assert!(!one.alarm.has_changed().expect("a sender"));
        assert!(other.alarm.has_changed().expect("a sender"));
        other.alarm.mark_unchanged();
        let (number, secret) = (other.number, other.secret);
        drop(other);
        cancels.cancel(number, secret);
        assert_eq!(cancels.alarms().len(), 1);
    }
}
