//! Tests of runs that are killed, stopped, and repeated: every line is stored once.

use super::*;
use crate::whole_program::server::Server;
use rustix::process::{Pid, Signal, kill_process};
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::time::{Duration, Instant};

/// The number of rounds before the file is ingested without interruption.
const ROUNDS: usize = 6;
/// The number of lines that are added in every round: some megabytes, so that there is time for an interruption.
const ADDED: usize = 2000;

/// Returns a random number below a bound.
fn dice(below: u64) -> u64 {
    RandomState::new().hash_one(0) % below
}

fn kill(mut child: Child) {
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
}

/// Scenario: a log grows, and whoever ingests it is killed at a random instant; the next one starts on what is there.
/// Sometimes the last line has no newline yet. In the end it is ingested in peace.
/// Guarantee: every line is stored once.
fn killed_again_and_again(bench: &Bench, arguments: &[&str], mut in_between: impl FnMut(usize)) {
    for round in 1..=ROUNDS {
        let text = log(0..round * ADDED);
        let text = if round % 2 == 0 { text.trim_end() } else { &text };
        let file = bench.file("a.log", text);
        let child = bench.spawn(&[arguments, &[&file]].concat());
        let pause = Duration::from_micros(dice(900_000));
        std::thread::sleep(pause);
        kill(child);
        in_between(round);
    }
    let run = bench.ingest(&[arguments, &["a.log"]].concat());
    // The last process may have been killed when all was done.
    assert!(run.code == 0 || run.err.contains("already ingested"), "{}{}", run.out, run.err);
    bench.stores(&each(0..ROUNDS * ADDED, 1));
    bench.ingest(&[arguments, &["a.log"]].concat()).ends_with(1);
}

#[test]
fn a_directory_has_every_line_once_after_kills() {
    let bench = Bench::new();
    killed_again_and_again(&bench, &[], |_| {});
}

#[test]
fn a_server_has_every_line_once_after_kills() {
    let bench = Bench::new();
    let server = Server::start(&bench.folder);
    let url = format!("http://{}", server.address("otlp_http"));
    killed_again_and_again(&bench, &["--to", &url], |_| {});
}

/// A deliberate second load counts as a new one: killed and repeated, it adds every line once.
#[test]
fn again_adds_every_line_once_after_kills() {
    let bench = Bench::new();
    let file = bench.file("a.log", log(0..ADDED));
    bench.ingest(&[&file]).ends_with(0);
    for _ in 0..3 {
        let child = bench.spawn(&["--again", &file]);
        std::thread::sleep(Duration::from_micros(dice(100_000)));
        kill(child);
    }
    let stored = bench.ids();
    assert!(stored.values().all(|times| *times <= 2), "{stored:?}");
    bench.ingest(&["--again", &file]).ends_with(0);
    // A run that was killed after its end has nothing left to do, so the last one may start a third load.
    let was_complete = stored == each(0..ADDED, 2);
    let is_third_time = was_complete && bench.ids() != stored;
    bench.stores(&each(0..ADDED, if is_third_time { 3 } else { 2 }));
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).expect("the process is ours");
}

/// Waits until a process handles SIGINT: before that, SIGINT would kill it.
fn wait_for_handler(child: &Child) {
    let began = Instant::now();
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("/proc");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a field");
        if u64::from_str_radix(caught.trim(), 16).expect("hex digits") & 0b10 != 0 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it never listens");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Scenario: Ctrl-C, SIGTERM and Ctrl-C again, each in the middle of a file; then the same command in peace.
/// Guarantee: each stop says what was stored and how to go on; in the end every line is stored once.
#[test]
fn ctrl_c_stops_cleanly_and_the_same_command_goes_on() {
    let bench = Bench::new();
    let mut count = 16_000;
    let mut file = bench.file("a.log", log(0..count));
    let mut stops = 0;
    while stops < 3 {
        let child = bench.spawn(&["--format", "json", &file]);
        wait_for_handler(&child);
        std::thread::sleep(Duration::from_millis(20 + 40 * stops));
        signal(&child, if stops == 1 { Signal::TERM } else { Signal::INT });
        let run = ended(child);
        let report: Value = serde_json::from_str(&run.out).unwrap_or_default();
        let state = report["files"][0]["state"].as_str().unwrap_or_default();
        if state == "ingested" || state == "continued" {
            // The file was read to its end before the signal came, so the next one is made longer.
            count += 16_000;
            assert!(count < 500_000, "no signal comes in time");
            file = bench.file("a.log", log(0..count));
            continue;
        }
        assert_eq!(run.code, 130, "{}{}", run.out, run.err);
        assert!(run.err.contains("the same command goes on from there"), "{}", run.err);
        assert!(state == "stopped" || (state == "not begun" && report["lines"] == 0), "{}", run.out);
        // Everything that the run reported is stored, and everything that is stored was reported.
        let before: usize = bench.ids().len();
        let ledger = std::fs::read_to_string(bench.data_dir().join("ingest.json")).unwrap_or_default();
        assert!(before == 0 || ledger.contains(&format!("\"lines\":{before}")), "{before}: {ledger}");
        stops += 1;
    }
    let run = bench.ingest(&[&file]).ends_with(0);
    assert!(run.out.contains("continued") || run.out.contains("ingested"), "{}", run.out);
    bench.stores(&each(0..count, 1));
}

/// Lines of a pipe that stays open are stored as they arrive, and waiting for more can be stopped.
#[test]
fn a_live_source_is_followed_and_can_be_stopped() {
    let bench = Bench::new();
    let server = Server::start(&bench.folder);
    let url = format!("http://{}", server.address("otlp_http"));
    let mut child = bench.command(&["-", "--to", &url]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let began = Instant::now();
    for round in 0..2 {
        stdin.write_all(log(round * 5..round * 5 + 5).as_bytes()).unwrap();
        while bench.ids() != each(0..round * 5 + 5, 1) {
            assert!(began.elapsed() < Duration::from_secs(60), "{:?}", bench.ids());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("stopped after 10 lines"), "{said}");
    drop(stdin);
}
