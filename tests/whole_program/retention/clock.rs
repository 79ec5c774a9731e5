//! A clock that jumps: libfaketime makes the wall clock of a real server say what a file says.

use super::{FLUSH_AT_ONCE, failures, stored, until_maintained, until_status};
use crate::whole_program::server::Server;
use crate::whole_program::support::{Folder, program};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options with the default retention, where files that leave a table are deleted at once.
const ARGUMENTS: [&str; 2] = ["--vacuum-grace", "0s"];

/// Returns the path of the library on Debian and its derivatives, by architecture.
fn library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").expect("/usr/lib").flatten();
    let mut found = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    found.find(|path| path.exists()).expect("libfaketime is missing: apt-get install faketime")
}

/// A machine whose wall clock is set by a file.
pub(crate) struct Machine {
    folder: Folder,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let machine = Self { folder: Folder::new() };
        machine.set("+0");
        machine
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("clock")
    }

    /// Sets the clock, by its difference to the real one. The file is replaced atomically, as it is read all the time.
    pub(crate) fn set(&self, difference: &str) {
        let beside = self.folder.path().join("clock.new");
        std::fs::write(&beside, format!("{difference}\n")).expect("a file");
        std::fs::rename(&beside, self.file()).expect("another name");
    }

    fn command(&self) -> Command {
        let mut command = Command::new(program());
        command
            .env("LD_PRELOAD", library())
            .env("FAKETIME_TIMESTAMP_FILE", self.file())
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("NO_FAKE_STAT", "1");
        command
    }

    fn start(&self) -> Server {
        self.start_with(&[&FLUSH_AT_ONCE[..], &ARGUMENTS].concat())
    }

    pub(crate) fn start_with(&self, arguments: &[&str]) -> Server {
        Server::run(&self.folder, self.command(), arguments)
    }

    /// Starts a demo.
    pub(crate) fn demo(&self, arguments: &[&str]) -> Server {
        let mut server = Server::spawn_as("demo", &self.folder, self.command(), arguments);
        assert!(server.gets_ready(), "the demo ended: {:?}\n{}", server.wait(), server.said());
        server
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn confirm(&self) -> String {
        let data = self.folder.path().join("data");
        let run = self.command().args(["check", "--confirm-clock", "--data-dir"]).arg(data).output();
        let run = run.expect("it runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).expect("UTF-8")
    }
}

fn is_held(server: &Server, expected: bool) {
    let what = if expected { "removal is held" } else { "removal goes on" };
    until_status(server, what, |status| status["maintenance"]["paused"] == u64::from(expected));
}

/// Checks that everything that was stored is still there after a round of maintenance.
#[track_caller]
fn is_whole(server: &Server, events: usize) {
    until_maintained(server);
    assert_eq!(stored(server.data_dir(), "live"), events, "{}", server.said());
    assert_eq!(server.status()["tables"]["events"]["expired_rows"], 0);
}

fn data_files(data_dir: &Path) -> usize {
    let folders = std::fs::read_dir(data_dir.join("tables/events")).expect("the table").flatten();
    let days = folders.filter(|folder| folder.file_name().to_string_lossy().starts_with("date="));
    days.flat_map(|day| std::fs::read_dir(day.path()).expect("a day").flatten()).count()
}

/// Scenario: the clock of a running server jumps 600 days ahead, and back; 600 days back, and again to where it was;
/// the server is started anew while the clock is wrong; at last an operator confirms a clock that is 600 days ahead.
/// Guarantee: while the clock is wrong nothing is removed and everything is taken, and the log, the status and the
/// metrics say so; when it is right again, or was confirmed, what is old is removed, and only then.
#[test]
fn a_clock_that_jumps_removes_nothing() {
    let machine = Machine::new();
    let today = now();
    let server = machine.start();
    server.post_lines(&failures("live", &today, 5)).is(200);
    is_whole(&server, 5);
    is_held(&server, false);

    machine.set("+600d");
    is_held(&server, true);
    server.post_lines(&failures("live.then", &today, 2)).is(200);
    is_whole(&server, 7);
    let said = server.said();
    assert!(said.contains("the clock jumped") && said.contains("--confirm-clock"), "{said}");
    let metrics = String::from_utf8(server.get("/metrics").is(200).body).expect("UTF-8");
    assert!(metrics.contains("faultline_maintenance_paused 1"), "{metrics}");
    assert!(metrics.contains("faultline_clock_jumps_total 1"), "{metrics}");
    machine.set("+0");
    is_held(&server, false);
    machine.set("-600d");
    is_held(&server, true);
    is_whole(&server, 7);
    machine.set("+0");
    is_held(&server, false);
    assert!(server.stop().success());

    // The clock is wrong from the start; and the server is killed, so that the next one finds the state of a crash.
    machine.set("+600d");
    for _ in 0..2 {
        let server = machine.start();
        is_held(&server, true);
        is_whole(&server, 7);
        server.kill();
    }

    let server = machine.start();
    is_held(&server, true);
    assert!(machine.confirm().contains("confirmed"));
    is_held(&server, false);
    until_status(&server, "what is old goes", |status| status["tables"]["events"]["expired_rows"] == 7);
    until_status(&server, "and leaves the disk", |_| data_files(server.data_dir()) == 0);
    assert_eq!(stored(server.data_dir(), "live"), 0);
    assert!(server.stop().success());
}

/// Returns the time, as senders write it.
fn now() -> String {
    jiff::Timestamp::now().to_string()
}
