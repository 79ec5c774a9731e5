//! The kill test: a server under load, killed again and again.

use super::ledger::Ledger;
use super::load::{Load, settle};
use super::strace;
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// The number of rounds of each of the two tests.
const ROUNDS: u64 = 40;
/// The size limit of the WAL. A segment has a quarter of it, so that a long round fills more than one.
const ARGUMENTS: [&str; 2] = ["--wal-bytes", "10MiB"];
/// The number of batches in the longest round: up to three megabytes of WAL.
const BATCHES: u64 = 200;
/// The WAL size, or the number of rounds, after which a new data directory is used, so that the longest round fits.
const LIFE_BYTES: u64 = 5 << 20;
const LIFE_ROUNDS: u64 = 8;

/// The system calls between a request and its response, or between a start and its first request; and the number of the
/// call at which the thread is killed. The kill happens before the call is carried out.
const TARGETS: [(&str, &[u64]); 10] = [
    ("fdatasync", &[1, 2, 3, 5, 8, 13, 21]),
    // These are calls for the WAL, and for responses.
    ("writev", &[1, 2, 3, 5, 8, 13, 21]),
    ("fsync", &[1, 2, 3, 4]),
    ("fallocate", &[1, 2]),
    ("ftruncate", &[1, 2, 3]),
    ("rename", &[1, 2]),
    ("unlink", &[1]),
    ("flock", &[1]),
    ("openat", &[25, 30]),
    ("write", &[4, 9, 30]),
];

/// Scenario: four senders, some with keys that they repeat until they get an answer; SIGKILL at a random instant,
/// sometimes during the start; the next server on the same directory.
/// Guarantee: after every kill, everything that was acknowledged is stored, once and whole; what was repeated
/// with its key is stored once; sums of traffic agree; and the log takes no kill for damage.
#[test]
fn nothing_acknowledged_is_lost_by_kills_at_random() {
    let mut dice = Dice::new();
    let mut life = Life::new();
    for round in 0..rounds(ROUNDS) {
        life = life.or_next();
        life.said = format!("round {round}, {dice:?}");
        let server = Server::spawn(&life.folder, Command::new(env!("CARGO_BIN_EXE_faultline")), &ARGUMENTS);
        if dice.below(4) == 0 {
            std::thread::sleep(Duration::from_micros(dice.below(150_000)));
            server.kill();
        } else {
            let most = 1 + dice.below(BATCHES);
            let (batches, pause) = (1 + dice.below(most), Duration::from_micros(dice.below(3000)));
            life.round(server, batches, |server| {
                std::thread::sleep(pause);
                server.kill();
            });
        }
        life.check();
    }
    life.end();
}

/// Scenario: as above, but the kill comes from strace, at the Nth call of one of the system calls that the log, the
/// start and the answers are made of.
/// Guarantee: as above.
#[test]
fn nothing_acknowledged_is_lost_by_kills_at_system_calls() {
    let targets: Vec<_> =
        TARGETS.iter().flat_map(|(call, counts)| counts.iter().map(move |count| (*call, *count))).collect();
    let (rounds, mut hit) = (rounds(ROUNDS), 0);
    let mut life = Life::new();
    for round in 0..rounds {
        life = life.or_next();
        // The stride makes one life use different calls; later passes use higher counts.
        let (call, count) = targets[(round * 5) as usize % targets.len()];
        let count = count + round / targets.len() as u64;
        life.said = format!("round {round}, {call} {count}");
        let strace = strace::strace(call, &format!("signal=KILL:when={count}"));
        let server = strace::spawn(&life.folder, strace, &ARGUMENTS);
        life.round(server, BATCHES, |mut server| {
            hit += u64::from(server.has_ended());
            server.kill();
        });
        life.check();
    }
    life.end();
    eprintln!("{hit} of {rounds} died in the call");
    assert!(hit * 3 > rounds * 2, "only {hit} of {rounds} servers made the call they were to die in");
}

/// The servers on one data directory, one after the other.
struct Life {
    folder: Folder,
    ledger: Arc<Ledger>,
    rounds: u64,
    /// The current position, for failure messages.
    said: String,
}

impl Life {
    fn new() -> Self {
        Self { folder: Folder::new(), ledger: Arc::default(), rounds: 0, said: String::new() }
    }

    /// Returns itself, or a new life when it has lasted long enough.
    fn or_next(self) -> Self {
        if self.rounds < LIFE_ROUNDS && self.log_bytes() < LIFE_BYTES {
            return self;
        }
        self.end();
        Self::new()
    }

    /// Loads a server until it has acknowledged this many batches or is gone, then ends it.
    fn round(&mut self, mut server: Server, batches: u64, end: impl FnOnce(Server)) {
        self.rounds += 1;
        if !server.gets_ready() {
            return end(server);
        }
        let load = Load::start(server.address("otlp_http"), &self.ledger, &format!("r{}", self.rounds));
        load.until(batches as usize, || server.has_ended());
        end(server);
        load.end();
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns the size of the WAL on disk.
    fn log_bytes(&self) -> u64 {
        let Ok(files) = std::fs::read_dir(self.data_dir().join("wal")) else { return 0 };
        files.map(|file| file.expect("a file").metadata().expect("its length").len()).sum()
    }

    fn check(&self) {
        eprintln!("{}: {} acknowledged", self.said, self.ledger.acknowledged());
        if self.data_dir().join("wal").exists() {
            self.ledger.check(&self.data_dir());
        }
    }

    /// Starts a last server, which answers open requests and is stopped regularly.
    fn end(self) {
        let server = Server::start_with(&self.folder, &ARGUMENTS);
        settle(server.address("otlp_http"), &self.ledger);
        let replay = &server.status()["replay"];
        assert_eq!((&replay["damaged"], &replay["unreadable_segments"]), (&0.into(), &0.into()), "{replay}");
        assert!(server.stop().success());
        self.check();
    }
}

/// Returns the number of rounds, which `FAULTLINE_KILL_ROUNDS` can raise.
pub(crate) fn rounds(usual: u64) -> u64 {
    let asked = std::env::var("FAULTLINE_KILL_ROUNDS").ok();
    asked.map_or(0, |text| text.parse().expect("FAULTLINE_KILL_ROUNDS is a number")).max(usual)
}

/// Random numbers that differ in each run (`SplitMix64`).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new() -> Self {
        Self(RandomState::new().hash_one("dice"))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
