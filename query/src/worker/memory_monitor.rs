//! Monitors the memory of all workers together, and kills the largest query when it exceeds the limit.
//!
//! Each worker has its own limit, which the operating system enforces. Eight workers at that limit would still take more
//! than the operator allows for all queries.

use super::child;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// The interval at which the memory of busy workers is measured.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The longest wait while no query is running. A query that starts wakes the monitor.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);

/// The set of workers that are running a query.
#[derive(Debug, Default)]
pub(super) struct MemoryMonitor {
    busy: Mutex<HashMap<u32, BusyWorker>>,
    wake: Notify,
}

#[derive(Debug)]
struct BusyWorker {
    /// The memory of the worker before the query.
    idle_bytes: u64,
    was_killed: Arc<AtomicBool>,
}

/// Registers a worker as busy until it is dropped.
#[derive(Debug)]
pub(super) struct MonitorGuard {
    monitor: Arc<MemoryMonitor>,
    pid: u32,
    was_killed: Arc<AtomicBool>,
}

impl MemoryMonitor {
    /// Registers a worker that starts to run a query.
    pub(super) fn register(self: &Arc<Self>, pid: u32, idle_bytes: u64) -> MonitorGuard {
        let was_killed = Arc::new(AtomicBool::new(false));
        self.busy().insert(pid, BusyWorker { idle_bytes, was_killed: Arc::clone(&was_killed) });
        self.wake.notify_one();
        MonitorGuard { monitor: Arc::clone(self), pid, was_killed }
    }

    /// Returns the number of running queries.
    pub(super) fn count(&self) -> usize {
        self.busy().len()
    }

    /// Kills the largest query whenever all queries together exceed the limit. Returns when the monitor was dropped.
    pub(super) async fn run(monitor: Weak<Self>, limit: u64) {
        loop {
            let Some(monitor) = monitor.upgrade() else { return };
            let woken = || tokio::time::timeout(IDLE_INTERVAL, monitor.wake.notified());
            if monitor.count() == 0 && woken().await.is_err() {
                continue;
            }
            monitor.check(limit);
            drop(monitor);
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Kills the largest query if all together exceed the limit. The lock is held while a process is killed and while a
    /// guard is dropped, so that the process id cannot have been reused.
    fn check(&self, limit: u64) {
        let busy = self.busy();
        let usage = |(pid, worker): (&u32, &BusyWorker)| {
            let bytes = child::anonymous_memory(*pid).unwrap_or_default().saturating_sub(worker.idle_bytes);
            (bytes, *pid)
        };
        let usage: Vec<(u64, u32)> = busy.iter().map(usage).collect();
        if usage.iter().map(|(bytes, _)| bytes).sum::<u64>() <= limit {
            return;
        }
        let Some((bytes, pid)) = usage.into_iter().max() else { return };
        let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
        if let Some(worker) = busy.get(&pid) {
            worker.was_killed.store(true, Ordering::Relaxed);
            tracing::warn!(
                bytes,
                limit,
                "all queries together exceeded their memory limit; killed the largest query"
            );
            // The process may already have ended.
            kill_process(process, Signal::KILL).ok();
        }
    }

    fn busy(&self) -> MutexGuard<'_, HashMap<u32, BusyWorker>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MonitorGuard {
    /// Returns true when the monitor killed the worker because all queries together exceeded the limit.
    pub(super) fn was_killed(&self) -> bool {
        self.was_killed.load(Ordering::Relaxed)
    }
}

impl Drop for MonitorGuard {
    fn drop(&mut self) {
        self.monitor.busy().remove(&self.pid);
    }
}
