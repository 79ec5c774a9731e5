//! Tests that rows move from the WAL to open tables without an effect on senders or readers, even after a kill.
//!
//! | file | proves |
//! |---|---|
//! | `readers` | other programs open the tables, and see what `dump` sees |
//! | `kill` | a kill at any step of flushing and maintenance neither loses nor duplicates anything |
//! | `damage` | the newest of a table's files may be torn or missing: its rows come back from the WAL |
//! | `disk_full` | a disk that is full, or fails, while rows are flushed |
//! | `snapshot` | readers beside a server that flushes and deletes files; responses that outlive the WAL |
//! | `stop` | a stop does not wait for a slow flush |
//! | `soak` | memory, files and times do not grow |
//!
//! Needs strace, root (a small tmpfs, and tracing a thread of a server), and the Python clients: a test that lacks one
//! says so and fails.

mod damage;
mod disk_full;
mod kill;
mod readers;
mod snapshot;
mod soak;
mod stop;
mod tables;
mod threads;

use super::server::Server;
use serde_json::Value;
use std::time::{Duration, Instant};

/// A timeout that is long enough for a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Options that flush every record by itself, and at once.
pub(super) const FLUSH_AT_ONCE: [&str; 4] = ["--flush-bytes", "1", "--flush-after", "1ms"];

/// Waits until a condition holds.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a condition on the status holds.
#[track_caller]
pub(super) fn until_status(server: &Server, what: &str, is_so: impl Fn(&Value) -> bool) {
    let began = Instant::now();
    loop {
        let status = server.status();
        if is_so(&status) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "in vain: {what}: {status:#}\n{}", server.said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until everything that was accepted is in the tables.
#[track_caller]
pub(super) fn until_flushed(server: &Server) {
    until_status(server, "everything is flushed", |status| status["buffer"]["records"] == 0);
}

/// Returns a number of the status, as in `["flush", "flushes"]`.
#[track_caller]
fn number(status: &Value, path: [&str; 2]) -> u64 {
    status[path[0]][path[1]].as_u64().unwrap_or_else(|| panic!("no number {path:?}: {status:#}"))
}
