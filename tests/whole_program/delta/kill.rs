//! Tests that kill servers in the middle of flushing, merging, expiring, checkpointing and deleting files.
//!
//! strace attaches to one thread of a server, and kills the server before that thread's Nth call of some system call.
//! The purpose of the call is known from its path, so that every test hits its target.

use super::threads::{Thread, Traced};
use super::{FLUSH_AT_ONCE, number, until_flushed};
use crate::whole_program::durability::kill::{Dice, rounds};
use crate::whole_program::durability::ledger::{Batch, Ledger};
use crate::whole_program::durability::load::{Load, send, settle};
use crate::whole_program::server::{Server, ask};
use crate::whole_program::support::Folder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Rounds of each test.
const FLUSH_ROUNDS: u64 = 12;
const MAINTENANCE_ROUNDS: u64 = 12;
/// The number of servers at once, because maintenance waits five seconds before it starts.
const LIVES: u64 = 4;
/// The number of servers that run one after the other on one directory.
const LIFE_ROUNDS: u64 = 3;
/// The number of batches that are acknowledged in a round: enough files for a merge.
const BATCHES: usize = 12;
/// The time after which a round ends if the call does not come.
const ROUND: Duration = Duration::from_secs(15);
/// Options with which everything is always due. Rows of 2020 expire a second after they were stored, and rows of today
/// at the end of the day.
const ARGUMENTS: [&str; 8] =
    ["--wal-bytes", "16MiB", "--vacuum-grace", "0s", "--keep-events", "1s", "--keep-traffic", "1s"];
/// The time before the end of a day in which no test starts.
const LONGEST: u64 = 240;

/// The thread and system call to die in, and the highest number of the call.
type Target = (Thread, &'static str, u64);

/// The system calls of a flush: files, then a commit, for each table; then the release of the WAL.
const FLUSH: [Target; 8] = [
    (Thread::Flusher, "linkat", 12),
    (Thread::Flusher, "openat", 40),
    (Thread::Flusher, "fdatasync", 24),
    (Thread::Flusher, "unlink", 12),
    (Thread::Flusher, "writev", 24),
    (Thread::Flusher, "fsync", 24),
    (Thread::Flusher, "mkdir", 1),
    (Thread::Flusher, "fallocate", 24),
];

/// The system calls of maintenance: a commit that removes old files, a merged file and its commit, a checkpoint and the
/// name that points to it, and files that are deleted.
const MAINTENANCE: [Target; 12] = [
    (Thread::Maintenance, "linkat", 4),
    (Thread::DeltaTables, "rename", 4),
    (Thread::Maintenance, "unlink", 20),
    (Thread::Maintenance, "writev", 6),
    (Thread::DeltaTables, "fdatasync", 4),
    (Thread::Maintenance, "fsync", 6),
    (Thread::Maintenance, "fdatasync", 5),
    (Thread::DeltaTables, "writev", 4),
    (Thread::Maintenance, "pread64", 400),
    (Thread::DeltaTables, "fsync", 4),
    (Thread::Maintenance, "fallocate", 5),
    (Thread::Maintenance, "rmdir", 1),
];

/// The phase in which a server died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Writing a file of flushed rows, or its folder.
    Rows,
    /// Reading or writing a file for a merge.
    Merge,
    /// Writing a commit.
    Commit,
    /// Writing a commit, by the thread that writes checkpoints.
    Checkpoint,
    /// Deleting a file or an empty folder.
    Vacuum,
    /// Any other step.
    Other,
}

impl Phase {
    fn of(thread: Thread, call: &str) -> Self {
        let is_removal = call.contains("unlink(") || call.contains("rmdir(");
        if call.contains("/_delta_log") {
            return if thread == Thread::DeltaTables { Self::Checkpoint } else { Self::Commit };
        }
        match thread {
            _ if !call.contains("/tables/") => Self::Other,
            Thread::Maintenance if is_removal => Self::Vacuum,
            Thread::Maintenance => Self::Merge,
            _ => Self::Rows,
        }
    }
}

/// Scenario: every record is flushed by itself while senders, some with keys, keep sending; the server is killed in the
/// middle of a flush, before a file is written, synced or named, before a commit is, before the log is let go; then the
/// next server on the same directory.
/// Guarantee: after every kill, and after a last server has flushed everything, every acknowledged event is there once,
/// and nothing that was refused; and no kill is taken for damage.
#[test]
fn nothing_is_lost_or_doubled_by_kills_while_flushing() {
    wait_for_midnight();
    let mut dice = Dice::new();
    let mut hits = Hits::default();
    let mut life = Life::new("flush");
    let targets = shuffled(&FLUSH, &mut dice);
    for round in 0..rounds(FLUSH_ROUNDS) {
        life = life.or_next();
        life.round(targets[round as usize % targets.len()], &mut dice, &mut hits);
    }
    let wanted = [Phase::Rows, Phase::Commit];
    life.until_all_were_hit(&wanted, &targets, &mut dice, &mut hits);
    hits.check(&wanted);
}

/// Scenario: as above, with files to merge and rows to expire; the server is killed in the middle of maintenance:
/// before a merged file or its commit, a checkpoint or the name that points to it, before and between removals.
/// Guarantee: as above; what has expired may be gone, whole.
#[test]
fn nothing_is_lost_or_doubled_by_kills_during_maintenance() {
    wait_for_midnight();
    let hits = Arc::new(Mutex::new(Hits::default()));
    let targets = shuffled(&MAINTENANCE, &mut Dice::new());
    let each = rounds(MAINTENANCE_ROUNDS).div_ceil(LIVES);
    let lives = (0..LIVES).map(|number| {
        let (hits, targets) = (Arc::clone(&hits), targets.clone());
        std::thread::spawn(move || {
            let mut dice = Dice::new();
            let mut life = Life::new(&format!("maintenance {number}"));
            let mut mine = Hits::default();
            for round in 0..each {
                life = life.or_next();
                life.round(targets[(number * each + round) as usize % targets.len()], &mut dice, &mut mine);
            }
            life.end();
            hits.lock().expect("no life panicked").add(mine);
        })
    });
    let lives: Vec<_> = lives.collect();
    for life in lives {
        life.join().expect("a life ends without a panic");
    }
    let mut hits = std::mem::take(&mut *hits.lock().expect("no life panicked"));
    let wanted = [Phase::Commit, Phase::Checkpoint, Phase::Merge, Phase::Vacuum];
    Life::new("maintenance again").until_all_were_hit(&wanted, &targets, &mut Dice::new(), &mut hits);
    hits.check(&wanted);
}

/// Waits for the next day when this one is about to end: its rows would expire in the middle of a test.
fn wait_for_midnight() {
    let seconds_left = || 86_400 - jiff::Timestamp::now().as_second().unsigned_abs() % 86_400;
    while seconds_left() < LONGEST {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn shuffled(targets: &[Target], dice: &mut Dice) -> Vec<Target> {
    let mut targets = targets.to_vec();
    for place in (1..targets.len()).rev() {
        targets.swap(place, dice.below(place as u64 + 1) as usize);
    }
    targets
}

/// The number of servers that died in each phase.
#[derive(Debug, Default)]
struct Hits {
    phases: BTreeMap<Phase, u64>,
    missed: u64,
}

impl Hits {
    fn add(&mut self, other: Self) {
        self.missed += other.missed;
        for (phase, hits) in other.phases {
            *self.phases.entry(phase).or_default() += hits;
        }
    }

    fn lacks(&self, wanted: &[Phase]) -> bool {
        wanted.iter().any(|phase| !self.phases.contains_key(phase))
    }

    /// Checks that at least half of the servers made the call they were to die in, and that it belonged to the tables.
    /// (The number of calls of a thread until it has nothing left to do depends on how busy the machine is.)
    #[track_caller]
    fn check(&self, wanted: &[Phase]) {
        eprintln!("{self:?}");
        let aimed: u64 =
            self.phases.iter().filter(|(phase, _)| **phase != Phase::Other).map(|(_, hits)| hits).sum();
        let all = self.missed + self.phases.values().sum::<u64>();
        assert!(aimed * 2 >= all, "only {aimed} of {all} servers died at their tables: {self:?}");
        for phase in wanted {
            assert!(self.phases.contains_key(phase), "none died in {phase:?}: {self:?}");
        }
    }
}

/// The servers on one data directory, one after the other.
struct Life {
    folder: Folder,
    ledger: Arc<Ledger>,
    rounds: u64,
    /// The name of this life, for failure messages.
    name: String,
}

impl Life {
    fn new(name: &str) -> Self {
        Self { folder: Folder::new(), ledger: Arc::default(), rounds: 0, name: name.to_owned() }
    }

    /// Returns itself, or a new life when it has lasted long enough.
    fn or_next(self) -> Self {
        if self.rounds < LIFE_ROUNDS {
            return self;
        }
        let name = self.name.clone();
        self.end();
        Self::new(&name)
    }

    /// Runs more rounds, each dying early, as long as a phase is missing, because the phase that a kill hits is partly
    /// chance.
    fn until_all_were_hit(mut self, wanted: &[Phase], targets: &[Target], dice: &mut Dice, hits: &mut Hits) {
        // Which call dies in which phase is chance, and more so on a busy machine.
        for (thread, call, most) in targets.iter().copied().cycle().take(3 * targets.len()) {
            if !hits.lacks(wanted) {
                break;
            }
            self = self.or_next();
            self.round((thread, call, most.div_ceil(4)), dice, hits);
        }
        self.end();
    }

    fn start(&self) -> Server {
        Server::start_with(&self.folder, &[&FLUSH_AT_ONCE[..], &ARGUMENTS].concat())
    }

    /// Loads a server until it dies in the call, or until it is clear that it will not.
    fn round(&mut self, (thread, call, most): Target, dice: &mut Dice, hits: &mut Hits) {
        self.rounds += 1;
        let count = 1 + dice.below(most);
        let mut server = self.start();
        let traced = Traced::attach(&server, thread, call, &format!("signal=KILL:when={count}"));
        let name = format!("r{}", self.rounds);
        self.send_old(&server, &name);
        let load = Load::start(server.address("otlp_http"), &self.ledger, &name);
        load.until(BATCHES, || server.has_ended());
        load.end();
        let began = Instant::now();
        while !server.has_ended() && began.elapsed() < ROUND && !is_done(&server, thread) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let has_died = server.has_ended();
        server.kill();
        let phase =
            has_died.then(|| traced.detach().last().map_or(Phase::Other, |last| Phase::of(thread, last)));
        eprintln!(
            "{} round {}: {thread:?} {call} {count}: {phase:?}, {} acknowledged",
            self.name,
            self.rounds,
            self.ledger.acknowledged()
        );
        match phase {
            Some(phase) => *hits.phases.entry(phase).or_default() += 1,
            None => hits.missed += 1,
        }
        self.ledger.check(&self.data_dir());
    }

    /// Sends some batches that have expired already. A server may die before it responds.
    fn send_old(&self, server: &Server, name: &str) {
        for number in 0..3 {
            let batch = Batch { is_old: true, ..Batch::new(format!("{name}.old{number}"), 2, false) };
            self.ledger.sending(&batch);
            let headers = [("Content-Type", "application/x-ndjson")];
            let body = batch.body();
            let answer = ask(server.address("otlp_http"), "POST", "/v1/envelopes", &headers, body.as_bytes());
            if let Ok(answer) = answer {
                self.ledger.answered(&batch, &answer);
            }
        }
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts a last server, which answers open requests, flushes everything, and is stopped regularly.
    fn end(self) {
        let server = self.start();
        settle(server.address("otlp_http"), &self.ledger);
        let last = Batch::new("last", 2, true);
        assert_eq!(send(server.address("otlp_http"), &self.ledger, &last).status, 200);
        let status = server.status();
        assert_eq!(status["replay"]["damaged"], 0, "{status:#}");
        assert_eq!(status["set_aside"].as_array().map(Vec::len), Some(0), "{}", server.said());
        until_flushed(&server);
        assert_eq!(number(&server.status(), ["flush", "failures"]), 0, "{}", server.said());
        assert!(server.stop().success());
        self.ledger.check(&self.data_dir());
    }
}

/// Returns true if the thread has nothing left to do: all is flushed, or maintenance has merged, written a checkpoint
/// and cleared.
fn is_done(server: &Server, thread: Thread) -> bool {
    // A server that does not respond is dying.
    let Ok(answer) = ask(server.address("web"), "GET", "/api/v1/status", &[], b"") else { return false };
    let Ok(status) = serde_json::from_slice::<Value>(&answer.body) else { return false };
    match thread {
        Thread::Flusher => status["buffer"]["records"] == 0,
        _ => status["maintenance"]["vacuumed_files"].as_u64().is_some_and(|files| files > 24),
    }
}
