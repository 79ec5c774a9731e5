//! Measures the whole program under load: from a socket to a response that means "on disk, synced".
//!
//! `cargo bench --bench ingest [-- SECONDS [ROUNDS]] [CASE]` starts the real `faultline serve` on a directory of the
//! real disk and sends it typical requests: NDJSON envelopes and OTLP spans, a thousand in each request, plain and
//! compressed. The sender is one thread of this process, and its CPU time is counted separately. Each case first runs
//! as fast as responses arrive (*top*), and until all records are flushed: that time and that CPU time count too. Then
//! it runs at half of that rate with a fixed schedule (*half*), where a response time counts from when its request was
//! due. Cases take turns, and the report has the medians of the rounds.
//!
//! The ratio is the server's CPU time for a line over that of `serde_json` parsing the same line into `Value` here, in
//! the same round. A request that fails, or a count that does not agree with the server's own, ends the benchmark with
//! an error.
//!
//! `FAULTLINE_AGAINST=/path/to/another/faultline` measures that program too, in turns with this one. On a busy machine,
//! many short rounds are more informative than few long ones.

mod cases;
mod report;
#[path = "../sender/mod.rs"]
mod sender;

use anyhow::{Context, ensure};
use cases::Case;
use sender::bodies::RECORDS;
use sender::load::{self, Loaded, Pace};
use sender::process::{Process, Resident, this_thread_cpu};
use sender::server::Server;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ROUNDS: f64 = 3.0;
const SECONDS: f64 = 3.0;
const STARTS: usize = 3;
/// The time for which a WAL is filled before it is read back.
const REPLAYED: Duration = Duration::from_secs(8);
/// The time of load before the first round, so that the first round does not include one-time costs.
const WARM_UP: Duration = Duration::from_millis(500);

fn main() -> anyhow::Result<()> {
    // Cargo passes flags of its own; a bare number and a bare word are arguments of this benchmark.
    let given: Vec<String> = std::env::args().skip(1).filter(|given| !given.starts_with('-')).collect();
    let mut numbers = given.iter().filter_map(|given| given.parse::<f64>().ok());
    let (seconds, rounds) = (numbers.next().unwrap_or(SECONDS), numbers.next().unwrap_or(ROUNDS));
    let wanted = given.iter().find(|given| given.parse::<f64>().is_err()).map_or("", String::as_str);
    let folder = tempfile::Builder::new().prefix("ingest-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut contenders = Vec::new();
    for program in programs() {
        let data = folder.path().join(contenders.len().to_string());
        contenders.push(Contender::new(program, &data, wanted)?);
    }
    for round in 0..=rounds as usize {
        for case in 0..contenders[0].cases.len() {
            for Contender { server, cases, .. } in &mut contenders {
                let bench = Bench { server, runtime: &runtime };
                match round {
                    0 => drop(bench.load(&mut cases[case], Pace::Top, WARM_UP)?),
                    _ => bench.round(&mut cases[case], Duration::from_secs_f64(seconds))?,
                }
            }
        }
    }
    if let [ours, other] = &contenders[..] {
        ours.cases.iter().zip(&other.cases).for_each(|(ours, other)| report::compared(ours, other));
    }
    contenders.into_iter().try_for_each(Contender::finish)?;
    replay(&runtime, folder.path())
}

/// Returns the program under test, and another one to compare it with if the environment names one.
fn programs() -> impl Iterator<Item = PathBuf> {
    let other = std::env::var_os("FAULTLINE_AGAINST").map(PathBuf::from);
    [PathBuf::from(env!("CARGO_BIN_EXE_faultline"))].into_iter().chain(other)
}

/// A program that is measured.
struct Contender {
    program: PathBuf,
    data: PathBuf,
    starts: Vec<Duration>,
    server: Server,
    idle: Resident,
    cases: Vec<Case>,
}

impl Contender {
    fn new(program: PathBuf, data: &Path, wanted: &str) -> anyhow::Result<Self> {
        let cases = Case::all(wanted)?;
        ensure!(!cases.is_empty(), "there is no case {wanted}");
        let empty = |number| {
            let server = Server::start(&program, &data.with_extension(format!("empty-{number}")))?;
            let took = server.took;
            server.stop().map(|()| took)
        };
        let starts = (0..STARTS).map(empty).collect::<anyhow::Result<_>>()?;
        let server = Server::start(&program, data)?;
        let idle = server.process.resident()?;
        Ok(Self { program, data: data.to_owned(), starts, server, idle, cases })
    }

    /// Checks the counts, restarts the server on its stored data, and reports.
    fn finish(self) -> anyhow::Result<()> {
        let Self { program, data, starts, server, idle, cases } = self;
        let status = check(&server, &cases)?;
        let idle_after = server.process.resident()?;
        server.stop()?;
        let again = Server::start(&program, &data)?;
        let events = again.count_of_start("stored_events")?;
        let expected = cases::total_of(&status, "received_events");
        ensure!(events == expected, "{events} events are stored of {expected}");
        report::head(&program);
        cases.iter().for_each(Case::report);
        report::server(&starts, idle, idle_after, &status);
        report::tables(&status, &cases);
        report::again(again.took);
        again.stop()
    }
}

/// Measures how fast an unflushed WAL is read back.
fn replay(runtime: &tokio::runtime::Runtime, folder: &Path) -> anyhow::Result<()> {
    let (program, data) = (PathBuf::from(env!("CARGO_BIN_EXE_faultline")), folder.join("replay"));
    let server = Server::start_unflushed(&program, &data)?;
    let mut case = Case::all("envelopes")?.swap_remove(0);
    Bench { server: &server, runtime }.load(&mut case, Pace::Top, REPLAYED)?;
    let expected = cases::total_of(&server.status()?, "received_events");
    drop(server);
    std::fs::remove_file(data.join("endpoints.json"))?;
    let server = Server::start(&program, &data)?;
    let events = server.count_of_start("replayed_events")?;
    ensure!(events == expected, "{events} events were read back of {expected}");
    report::replay(events, server.took);
    Ok(())
}

/// The result of one case in one round.
struct Round {
    /// The CPU time of `serde_json` for a record; envelopes only.
    parsing: Option<f64>,
    /// The CPU time of the server for a record, at the top rate.
    server: f64,
    /// The CPU time of this process for a record, at the top rate.
    sender: f64,
    top: Loaded,
    /// The time that flushes took after the last response.
    flushing: Duration,
    half: Loaded,
    /// The highest resident memory of the server at the top rate.
    peak: u64,
}

struct Bench<'b> {
    server: &'b Server,
    runtime: &'b tokio::runtime::Runtime,
}

impl Bench<'_> {
    fn round(&self, case: &mut Case, duration: Duration) -> anyhow::Result<()> {
        let parsing = case.lines().map(parse).transpose()?;
        self.server.process.reset_peak();
        let before = (self.server.process.cpu()?, Process::this().cpu()?);
        let top = self.load(case, Pace::Top, duration)?;
        let flushing = self.server.flushes()?;
        let after = (self.server.process.cpu()?, Process::this().cpu()?);
        let peak = self.server.process.resident()?.highest;
        let half = self.load(case, Pace::Requests(top.rate() / 2.0), duration)?;
        let each = |cpu: Duration| cpu.as_secs_f64() / top.records();
        case.rounds.push(Round {
            parsing,
            server: each(after.0 - before.0),
            sender: each(after.1 - before.1),
            top,
            flushing,
            half,
            peak,
        });
        Ok(())
    }

    fn load(&self, case: &mut Case, pace: Pace, duration: Duration) -> anyhow::Result<Loaded> {
        let loaded =
            self.runtime.block_on(load::run(&case.target(self.server)?, &mut case.bodies, pace, duration));
        let loaded = loaded.with_context(|| case.name.to_owned())?;
        case.sent += loaded.requests() as u64 * RECORDS as u64;
        Ok(loaded)
    }
}

/// Returns the CPU time in seconds that `serde_json` takes for a line.
fn parse(body: &[u8]) -> anyhow::Result<f64> {
    let before = this_thread_cpu()?;
    let mut lines = 0_u32;
    for line in body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        drop(black_box(serde_json::from_slice::<serde_json::Value>(line)));
        lines += 1;
    }
    Ok((this_thread_cpu()? - before).as_secs_f64() / f64::from(lines))
}

/// Returns the server's own counters, which must agree with the sent records.
fn check(server: &Server, cases: &[Case]) -> anyhow::Result<serde_json::Value> {
    let status = server.status()?;
    for source in cases::SOURCES {
        let sent: u64 = cases.iter().filter(|case| case.source() == source).map(|case| case.sent).sum();
        let counted = &status["sources"][source];
        let count = |name: &str| counted[name].as_u64().unwrap_or(u64::MAX);
        ensure!(
            count("accepted_records") + count("rejected_records") == sent,
            "{sent} {source} were sent, not {counted}"
        );
        ensure!(count("duplicate_records") == 0, "{source} were taken for repeats: {counted}");
        ensure!(counted["rejected_requests"] == serde_json::json!({}), "{source} were rejected: {counted}");
    }
    ensure!(status["server"]["panics"] == 0, "the server caught panics: {status}");
    Ok(status)
}
