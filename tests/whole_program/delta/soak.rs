//! A long run in a short time: everything that could grow is watched, and must not grow.

use super::number;
use super::tables::{TABLES, files_below};
use crate::whole_program::server::{Server, ask, dump};
use crate::whole_program::support::Folder;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time in which the top speed is measured; the run uses a part of that speed.
const TOP_SPEED: Duration = Duration::from_secs(3);
/// The interval between two samples.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The number of lines of a request.
const LINES: usize = 20;
/// The size limit of the WAL, as a flag and in bytes.
const LOG_BYTES: (&str, u64) = ("256MiB", 256 << 20);

/// The parameters of a run and of its server.
struct Plan {
    /// The length of a run. It includes a warm-up: files have to be merged, to expire and to be deleted before their
    /// number can be stable.
    length: Duration,
    /// The share of the requests that the server could accept: one in this many.
    one_in: u64,
    flush_bytes: &'static str,
    /// The retention of events, and of the other tables.
    keep: &'static str,
    keep_bytes: u64,
    grace: &'static str,
}

/// A run beside other tests, on a busy machine.
const SHORT: Plan = Plan {
    length: Duration::from_secs(48),
    one_in: 4,
    flush_bytes: "512KiB",
    keep: "400KiB",
    keep_bytes: 400 << 10,
    grace: "1s",
};
/// A run when `FAULTLINE_SOAK_MINUTES` is set.
const LONG: Plan = Plan {
    length: Duration::ZERO,
    one_in: 2,
    flush_bytes: "8MiB",
    keep: "64MiB",
    keep_bytes: 64 << 20,
    grace: "10s",
};

impl Plan {
    fn asked_for() -> Self {
        let Ok(minutes) = std::env::var("FAULTLINE_SOAK_MINUTES") else { return SHORT };
        let minutes: u64 = minutes.parse().expect("FAULTLINE_SOAK_MINUTES is a number");
        Self { length: Duration::from_secs(minutes * 60), ..LONG }
    }

    fn start(&self, folder: &Folder) -> Server {
        let keep =
            [("--keep-events", self.keep), ("--keep-traffic", self.keep), ("--keep-rejects", self.keep)];
        let flush =
            [("--flush-bytes", self.flush_bytes), ("--flush-after", "200ms"), ("--vacuum-grace", self.grace)];
        let arguments = [&keep[..], &flush, &[("--wal-bytes", LOG_BYTES.0)]].concat();
        let arguments: Vec<&str> = arguments.iter().flat_map(|(flag, value)| [*flag, *value]).collect();
        Server::start_with(folder, &arguments)
    }
}

/// Scenario: traffic of every dialect at a part of what the server can take, flushed into many small files, of which
/// only the newest are kept; at half of it and for an hour when `FAULTLINE_SOAK_MINUTES=60` asks for that.
/// Guarantee: in its second half the run takes no more memory, open files, files on disk and time for a flush than in
/// its first; what is kept stays within its bounds; nothing failed.
#[test]
fn nothing_grows() {
    let (plan, folder) = (Plan::asked_for(), Folder::new());
    let server = plan.start(&folder);
    let senders = Senders::start(server.address("otlp_http"));
    std::thread::sleep(TOP_SPEED);
    senders.slow_down(plan.one_in);
    let looks = watch(&server, &senders, plan.length);
    let sent = senders.end();
    let status = server.status();
    eprintln!("{sent} requests; {:#}", status["maintenance"]);
    check_steady(&looks);
    check_bounds(&server, &status, plan.keep_bytes);
    let data_dir = server.data_dir().to_owned();
    assert!(server.stop().success());
    assert!(!dump(&data_dir, "events").is_empty());
}

/// The state of the server at one moment.
#[derive(Debug, Clone, Copy)]
struct Look {
    memory: u64,
    open: u64,
    files: u64,
    /// The bytes of everything except the WAL, whose segments are preallocated: one segment more or less is 64 MiB.
    bytes: u64,
    /// The bytes of the WAL's segments.
    log: u64,
    /// The bytes that wait to be flushed.
    hot: u64,
    flushes: u64,
    flush_micros: u64,
}

impl Look {
    fn at(server: &Server) -> Self {
        let status = server.status();
        let files = files_below(server.data_dir());
        let length = |path: &PathBuf| path.metadata().map_or(0, |file| file.len());
        let (log, rest): (Vec<_>, Vec<_>) =
            files.iter().partition(|path| path.starts_with(server.data_dir().join("wal")));
        Self {
            memory: server.resident().0,
            open: open_files(server),
            files: files.len() as u64,
            bytes: rest.into_iter().map(length).sum(),
            log: log.into_iter().map(length).sum(),
            hot: number(&status, ["buffer", "bytes"]),
            flushes: number(&status, ["flush", "flushes"]),
            flush_micros: (status["flush"]["seconds"].as_f64().expect("a number") * 1e6) as u64,
        }
    }
}

fn open_files(server: &Server) -> u64 {
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("/proc");
    open.count() as u64
}

fn watch(server: &Server, senders: &Senders, length: Duration) -> Vec<Look> {
    let began = Instant::now();
    let mut looks = Vec::new();
    while began.elapsed() < length {
        std::thread::sleep(LOOK_EVERY);
        looks.push(Look::at(server));
        senders.are_well();
    }
    looks
}

/// A value that must not grow, with a margin in percent and in its own unit for other tests and chance.
type Bound = (&'static str, fn(&Look) -> u64, u64, u64);

/// The first third is the warm-up; of the rest, the second half is compared with the first.
#[track_caller]
fn check_steady(looks: &[Look]) {
    let rest = &looks[looks.len() / 3..];
    let (first, second) = rest.split_at(rest.len() / 2);
    let most = |looks: &[Look], of: fn(&Look) -> u64| looks.iter().map(of).max().expect("looks");
    let bounds: [Bound; 5] = [
        ("bytes of memory", |look| look.memory, 125, 32 << 20),
        ("open files", |look| look.open, 125, 16),
        ("files on disk", |look| look.files, 150, 40),
        ("bytes to be flushed", |look| look.hot, 150, 4 << 20),
        ("bytes on disk", |look| look.bytes, 150, 4 << 20),
    ];
    for (what, of, percent, more) in bounds {
        let (before, after) = (most(first, of), most(second, of));
        eprintln!("{what}: at most {before}, then {after}");
        assert!(after <= before * percent / 100 + more, "{what} grow: {before}, then {after}");
    }
    let log = most(rest, |look| look.log);
    assert!(log <= LOG_BYTES.1, "the log takes {log} bytes");
    let mean = |looks: &[Look]| {
        let (begin, end) = (looks[0], looks[looks.len() - 1]);
        assert!(end.flushes > begin.flushes, "nothing is flushed");
        (end.flush_micros - begin.flush_micros) / (end.flushes - begin.flushes)
    };
    let (before, after) = (mean(first), mean(second));
    eprintln!("a flush: {before} us, then {after} us");
    assert!(after <= before * 3 + 200_000, "flushes get slower: {before} us, then {after} us");
}

#[track_caller]
fn check_bounds(server: &Server, status: &Value, keep_bytes: u64) {
    for (part, what) in [("flush", "failures"), ("maintenance", "failures")] {
        assert_eq!(number(status, [part, what]), 0, "{}", server.said());
    }
    for what in
        ["compacted_files", "expired_files", "checkpoints", "removed_table_log_files", "vacuumed_files"]
    {
        assert!(number(status, ["maintenance", what]) > 0, "no {what}: {status:#}");
    }
    for table in TABLES {
        let bytes = status["tables"][table]["bytes"].as_u64().expect("a number");
        // Rows that were flushed since the last maintenance may exceed the limit.
        assert!(bytes <= keep_bytes * 3, "{table} has {bytes} bytes");
    }
}

/// The threads that send, first as fast as they can and then at a part of that speed.
struct Senders {
    shared: Arc<Shared>,
    threads: Vec<std::thread::JoinHandle<()>>,
    began: Instant,
}

#[derive(Default)]
struct Shared {
    sent: AtomicU64,
    refused: AtomicU64,
    /// The pause between two requests of a thread; 0 while the top speed is measured.
    pause_us: AtomicU64,
    enough: AtomicBool,
}

impl Senders {
    const THREADS: u64 = 2;

    fn start(address: SocketAddr) -> Self {
        let shared = Arc::new(Shared::default());
        let spawn = |number| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.send(address, number))
        };
        let threads = (0..Self::THREADS).map(spawn).collect();
        Self { shared, threads, began: Instant::now() }
    }

    fn slow_down(&self, one_in: u64) {
        let sent = self.shared.sent.load(Ordering::Relaxed).max(1);
        let each = self.began.elapsed().as_micros() as u64 * Self::THREADS / sent;
        eprintln!("a request takes {each} us");
        self.shared.pause_us.store(each * one_in, Ordering::Relaxed);
    }

    #[track_caller]
    fn are_well(&self) {
        assert!(self.threads.iter().all(|thread| !thread.is_finished()), "a sender has given up");
        assert_eq!(self.shared.refused.load(Ordering::Relaxed), 0, "it refuses what it could take");
    }

    fn end(self) -> u64 {
        self.shared.enough.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a sender ends without a panic");
        }
        self.shared.sent.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn send(&self, address: SocketAddr, seed: u64) {
        let now = jiff::Timestamp::now().as_microsecond();
        let mut traffic = demo::Traffic::new(seed).at(now - 3_600_000_000);
        while !self.enough.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let mut body = Vec::new();
            (0..LINES).for_each(|_| traffic.next_line(&mut body));
            let headers = [("Content-Type", "application/x-ndjson")];
            let answer = ask(address, "POST", "/v1/envelopes", &headers, &body).expect("an answer");
            let counter = if answer.status == 200 { &self.sent } else { &self.refused };
            counter.fetch_add(1, Ordering::Relaxed);
            let pause = Duration::from_micros(self.pause_us.load(Ordering::Relaxed));
            std::thread::sleep(pause.saturating_sub(begun.elapsed()));
        }
    }
}
