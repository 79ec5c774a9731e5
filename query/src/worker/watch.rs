//! Watches the memory of all workers together, and ends the largest query when it is too much.
//!
//! Each worker has a limit of its own, which the operating system enforces. Eight of them at that limit would still be
//! more than an operator has given to queries.

use super::child;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// How often workers that run a query are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long nobody looks whether there is anything to watch; a query that begins wakes us.
const REST: Duration = Duration::from_secs(5);

/// The workers that run a query.
#[derive(Debug, Default)]
pub(super) struct Watched {
    busy: Mutex<HashMap<u32, Busy>>,
    wake: Notify,
}

#[derive(Debug)]
struct Busy {
    /// What the worker took before the query.
    idle_bytes: u64,
    was_ended: Arc<AtomicBool>,
}

/// A worker that runs a query, until this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    watched: Arc<Watched>,
    pid: u32,
    was_ended: Arc<AtomicBool>,
}

impl Watched {
    /// Begins to watch a worker.
    pub(super) fn begin(self: &Arc<Self>, pid: u32, idle_bytes: u64) -> Watch {
        let was_ended = Arc::new(AtomicBool::new(false));
        self.busy().insert(pid, Busy { idle_bytes, was_ended: Arc::clone(&was_ended) });
        self.wake.notify_one();
        Watch { watched: Arc::clone(self), pid, was_ended }
    }

    /// How many queries are running.
    pub(super) fn count(&self) -> usize {
        self.busy().len()
    }

    /// Ends the largest query whenever all together take more than this. Returns when nobody can begin another.
    pub(super) async fn run(watched: Weak<Self>, most: u64) {
        loop {
            let Some(all) = watched.upgrade() else { return };
            if all.count() == 0 && tokio::time::timeout(REST, all.wake.notified()).await.is_err() {
                continue;
            }
            all.look(most);
            drop(all);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The lock is held while a process is ended, and by whoever reaps one: so the number is still that process's.
    fn look(&self, most: u64) {
        let busy = self.busy();
        let taken = |(pid, worker): (&u32, &Busy)| {
            let bytes = child::memory(*pid).unwrap_or_default().saturating_sub(worker.idle_bytes);
            (bytes, *pid)
        };
        let taken: Vec<(u64, u32)> = busy.iter().map(taken).collect();
        if taken.iter().map(|(bytes, _)| bytes).sum::<u64>() <= most {
            return;
        }
        let Some((bytes, pid)) = taken.into_iter().max() else { return };
        let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
        if let Some(worker) = busy.get(&pid) {
            worker.was_ended.store(true, Ordering::Relaxed);
            tracing::warn!(
                bytes,
                limit = most,
                "queries take too much memory together; the largest was ended"
            );
            // It may have ended by itself.
            kill_process(process, Signal::KILL).ok();
        }
    }

    fn busy(&self) -> MutexGuard<'_, HashMap<u32, Busy>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Whether the worker was ended because all together took too much.
    pub(super) fn was_ended(&self) -> bool {
        self.was_ended.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watched.busy().remove(&self.pid);
    }
}
