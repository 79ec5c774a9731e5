//! Compares the CPU time that a span costs in Faultline and in the OpenTelemetry Collector, side by side.
//!
//! `cargo bench --bench side_by_side [-- SECONDS [ROUNDS]] [--svg FILE]` starts the real `faultline serve`, and the
//! Collector in three configurations: one that decodes spans and discards them, and two that forward them to another
//! Collector, compressed and not. All of them get the same requests over gRPC: 1000 spans with unique ids, a fifth of them failures, over
//! four connections, as fast as responses arrive. They take turns, and the table has the medians of the rounds. The CPU
//! time of a round counts until the process is quiet again, so that batches, fsync and Parquet files are part of it.
//!
//! Faultline also runs with TLS, with tokens, and with a budget for each service, to show what each of them costs.
//!
//! The Collector is built once, with Go, from the modules that `collector.yaml` names. Without Go, or with another
//! program in `OTELCOL`, that is used; without either, only Faultline is measured. `FAULTLINE_AGAINST` names another
//! build of Faultline to measure.
#![allow(clippy::print_stdout)]

mod collector;
mod faultline;
mod plot;
#[path = "../sender/mod.rs"]
mod sender;

use anyhow::{Context, bail, ensure};
use sender::bodies::{Bodies, Encoding, RECORDS};
use sender::connection::Target;
use sender::load::{self, Pace};
use sender::process::Process;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SECONDS: f64 = 4.0;
const ROUNDS: f64 = 3.0;
const CONNECTIONS: usize = 4;
const WARM_UP: Duration = Duration::from_millis(500);
/// A process that used no CPU time for so long has finished its work.
const QUIET: Duration = Duration::from_millis(600);
const PATIENCE: Duration = Duration::from_secs(120);
const MIB: f64 = (1 << 20) as f64;

/// A server that is measured.
struct Contender {
    name: String,
    does: &'static str,
    process: Process,
    target: Target,
    running: Running,
    rounds: Vec<Round>,
}

/// What a contender keeps running.
enum Running {
    Faultline(sender::server::Server),
    /// The collector, and the one that receives what it forwards.
    Collector {
        _processes: Vec<collector::Running>,
    },
}

/// The result of one round.
struct Round {
    /// CPU seconds for a million spans.
    cpu: f64,
    /// Spans a second until they were acknowledged.
    rate: f64,
    peak_mib: f64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse()?;
    let folder = tempfile::Builder::new().prefix("side-by-side-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let mut contenders = collector::contenders(folder.path())?;
    contenders.extend(faultline::contenders(folder.path())?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for round in 0..=arguments.rounds {
        for contender in &mut contenders {
            let duration = if round == 0 { WARM_UP } else { arguments.duration };
            let result = contender.round(&runtime, duration).with_context(|| contender.name.clone())?;
            contender.rounds.extend((round > 0).then_some(result));
        }
    }
    print_table(&contenders);
    match arguments.svg {
        Some(file) => {
            std::fs::write(&file, plot::svg(&contenders)).with_context(|| file.display().to_string())
        }
        None => Ok(()),
    }
}

struct Arguments {
    duration: Duration,
    rounds: usize,
    svg: Option<PathBuf>,
}

impl Arguments {
    fn parse() -> anyhow::Result<Self> {
        let (mut numbers, mut svg) = (Vec::new(), None);
        let mut given = std::env::args().skip(1);
        while let Some(argument) = given.next() {
            match argument.as_str() {
                "--svg" => svg = Some(given.next().context("--svg wants a file")?.into()),
                // Cargo passes this.
                "--bench" => {}
                number => {
                    let number = number.parse::<f64>().with_context(|| format!("not a number: {number}"))?;
                    numbers.push(number);
                }
            }
        }
        let number = |place: usize, default| numbers.get(place).copied().unwrap_or(default);
        ensure!(numbers.len() <= 2, "too many numbers");
        let duration = Duration::from_secs_f64(number(0, SECONDS));
        Ok(Self { duration, rounds: number(1, ROUNDS) as usize, svg })
    }
}

impl Contender {
    fn round(&self, runtime: &tokio::runtime::Runtime, duration: Duration) -> anyhow::Result<Round> {
        let mut bodies = Bodies::spans(Encoding::Plain, true)?;
        self.process.reset_peak();
        let before = self.process.cpu()?;
        let load = load::run_over(CONNECTIONS, &self.target, &mut bodies, Pace::Top, duration);
        let loaded = runtime.block_on(load)?;
        self.settle()?;
        let cpu = self.process.cpu()? - before;
        let spans = loaded.records();
        ensure!(spans > 0.0, "no request was acknowledged");
        Ok(Round {
            cpu: cpu.as_secs_f64() * 1e6 / spans,
            rate: loaded.rate() * RECORDS as f64,
            peak_mib: self.process.resident()?.highest as f64 / MIB,
        })
    }

    /// Waits until the process has finished what it was sent.
    fn settle(&self) -> anyhow::Result<()> {
        if let Running::Faultline(server) = &self.running {
            server.flushes()?;
        }
        let begin = Instant::now();
        let mut before = self.process.cpu()?;
        loop {
            std::thread::sleep(QUIET);
            let now = self.process.cpu()?;
            if now - before <= Duration::from_millis(10) {
                return Ok(());
            }
            before = now;
            if begin.elapsed() > PATIENCE {
                bail!("{} is not quiet after {PATIENCE:?}", self.name);
            }
        }
    }

    fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.rounds.iter().map(figure).collect();
        figures.sort_unstable_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn range(&self) -> (f64, f64) {
        let cpu = self.rounds.iter().map(|round| round.cpu);
        (cpu.clone().fold(f64::INFINITY, f64::min), cpu.fold(0.0, f64::max))
    }
}

fn print_table(contenders: &[Contender]) {
    println!(
        "| server | what it does | CPU-s per million spans | spans/s | peak MiB | CPU against forwarding |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let forwarding = contenders.iter().find(|contender| contender.name == collector::FORWARDING);
    let forwarding = forwarding.map(|contender| contender.median(|round| round.cpu));
    for contender in contenders {
        let cpu = contender.median(|round| round.cpu);
        let (lowest, highest) = contender.range();
        let ratio =
            forwarding.map_or_else(|| "-".to_owned(), |forwarding| format!("{:.2}", cpu / forwarding));
        println!(
            "| {} | {} | {cpu:.2} ({lowest:.2} to {highest:.2}) | {:.0} | {:.0} | {ratio} |",
            contender.name,
            contender.does,
            contender.median(|round| round.rate),
            contender.median(|round| round.peak_mib),
        );
    }
}

/// Returns the program under test, and another build of it if the environment names one.
fn programs() -> Vec<(&'static str, PathBuf)> {
    let mut programs = vec![("Faultline", PathBuf::from(env!("CARGO_BIN_EXE_faultline")))];
    programs
        .extend(std::env::var_os("FAULTLINE_AGAINST").map(|other| ("Faultline, other build", other.into())));
    programs
}

/// Runs a command that must succeed.
fn run(command: &mut std::process::Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns a folder below that of Cargo's temporary files, which survives the run.
fn cache(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}
