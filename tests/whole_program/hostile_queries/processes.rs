//! The processes of a server, and the memory of each.

use rustix::process::{Pid, Signal, kill_process};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The memory limit of the server itself, which plans and runs no statements.
const SERVER_BYTES: u64 = 700 << 20;
/// The memory limit of a worker: its own limit (448 MiB), and twice the size of the program, because the parts of its
/// file that it has read count as resident too, and a debug build is large.
const WORKER_BYTES: u64 = 700 << 20;
/// The memory limit of all workers: the limit of all queries (512 MiB), the idle memory of eight workers, and the
/// growth between two checks of the server.
const WORKERS_BYTES: u64 = 1280 << 20;

/// Samples a server and its workers many times a second.
pub(crate) struct Processes {
    seen: Arc<Seen>,
    watcher: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    is_over: AtomicBool,
    server: AtomicU64,
    worker: AtomicU64,
    workers: AtomicU64,
}

/// The highest memory that was seen, in bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Highest {
    /// The resident memory of the server.
    pub(crate) server: u64,
    /// The resident memory of one of its workers.
    pub(crate) worker: u64,
    /// The memory of all its workers together, without the parts that they share.
    pub(crate) workers: u64,
}

impl Highest {
    /// Returns the higher of each value.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            server: self.server.max(other.server),
            worker: self.worker.max(other.worker),
            workers: self.workers.max(other.workers),
        }
    }

    /// Checks that everything is within its limit.
    #[track_caller]
    pub(crate) fn assert_bounded(self) {
        assert!(self.server < SERVER_BYTES, "the server took {} bytes", self.server);
        assert!(self.worker < WORKER_BYTES, "a worker took {} bytes", self.worker);
        assert!(self.workers < WORKERS_BYTES, "all workers took {} bytes", self.workers);
    }
}

impl Processes {
    pub(crate) fn watch(server: u32) -> Self {
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let watcher = std::thread::spawn(move || {
            while !shared.is_over.load(Ordering::Relaxed) {
                shared.server.fetch_max(resident(server).unwrap_or(0), Ordering::Relaxed);
                let workers = children(server);
                for worker in &workers {
                    shared.worker.fetch_max(resident(*worker).unwrap_or(0), Ordering::Relaxed);
                }
                let all = workers.iter().filter_map(|worker| field(*worker, "RssAnon:")).sum::<u64>() << 10;
                shared.workers.fetch_max(all, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Self { seen, watcher: Some(watcher) }
    }

    /// Returns the most memory that was seen.
    pub(crate) fn highest(mut self) -> Highest {
        self.seen.is_over.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            watcher.join().expect("the watcher ends");
        }
        let Seen { server, worker, workers, .. } = &*self.seen;
        let [server, worker, workers] = [server, worker, workers].map(|seen| seen.load(Ordering::Relaxed));
        Highest { server, worker, workers }
    }
}

fn field(pid: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn resident(pid: u32) -> Option<u64> {
    field(pid, "VmRSS:").map(|kib| kib << 10)
}

fn all() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the workers of a server.
pub(crate) fn children(server: u32) -> Vec<u32> {
    all().filter(|pid| field(*pid, "PPid:") == Some(u64::from(server)) && is_worker(*pid)).collect()
}

fn is_worker(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|word| word == b"query-worker")
}

/// Returns the processor time that a process has used.
fn used(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let times = after_name.split_whitespace().skip(11).take(2).filter_map(|time| time.parse::<u64>().ok());
    times.sum()
}

/// Returns a worker that has begun to work.
pub(crate) fn busiest_child(server: u32) -> u32 {
    let began = Instant::now();
    let before: Vec<(u32, u64)> = children(server).into_iter().map(|pid| (pid, used(pid))).collect();
    loop {
        let known = |pid: u32| before.iter().find(|(known, _)| *known == pid).map_or(0, |(_, used)| *used);
        // Three seconds of processor time are more than a start takes.
        if let Some(pid) = children(server).into_iter().find(|pid| used(*pid) > known(*pid) + 300) {
            return pid;
        }
        assert!(began.elapsed() < Duration::from_secs(300), "no worker works");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process");
    // It may have ended by itself.
    let _ = kill_process(pid, Signal::KILL);
}

/// Waits until every thread of these workers has ended, because only then does the server know that a worker has ended.
pub(crate) fn wait_until_gone(workers: &[u32]) {
    let began = Instant::now();
    let lives = |pid: &u32| {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let mut status = threads.map(|thread| std::fs::read_to_string(thread.path().join("status")));
        status.any(|status| status.is_ok_and(|status| is_running(&status)))
    };
    while workers.iter().any(lives) {
        assert!(began.elapsed() < Duration::from_secs(120), "a worker that should have ended lives");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_running(status: &str) -> bool {
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
}
