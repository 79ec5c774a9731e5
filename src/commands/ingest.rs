//! `faultline ingest` loads logs in bulk, into a data directory or to a running server, each line once.
//!
//! A thread reads and decompresses the inputs ([`reader`]), the text is split into chunks of whole lines ([`chunks`]),
//! several chunks are in flight at once ([`mod@run`]), and a ledger records the progress of every file ([`ledger`]).
//!
//! Invariants: a line is stored once, however often a run is stopped, killed or repeated. A chunk that was acknowledged
//! is either in the ledger or is sent again with the same idempotency key, and a key is stored once.

mod chunks;
mod destination;
mod hashing_reader;
mod inputs;
mod ledger;
mod reader;
mod report;
mod resume;
mod run;
mod target;

use crate::cli::exit_code;
use crate::cli::progress::Progress;
use crate::cli::signals::ShutdownSignal;
use crate::cli::terminal::{self, OutputStyle, format_count};
use crate::client::ClientTlsArgs;
use crate::commands::classify::dialect;
use crate::config::ConfigFileArg;
use crate::config::limits::{IngestLimitArgs, LimitConflict};
use crate::config::storage::StorageArgs;
use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use classifier::Dialect;
use collector::pipeline::Defaults;
use destination::server::IngestUrl;
use inputs::InputFiles;
use reader::Reader;
use report::Report;
use run::{IdempotencyKeys, IngestRun, MAX_IN_FLIGHT, RunResult};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use target::IngestTarget;
use xxhash_rust::xxh3::xxh3_128;

const EXAMPLES: &str = "\
Examples:
  faultline ingest app.ndjson
  faultline ingest archive.ndjson.zst --data-dir archive --format json
  faultline ingest '*.ndjson' --service orders --environment production --data-dir orders
  cat app.ndjson | faultline ingest - --data-dir piped
  faultline ingest --again app.ndjson

  faultline ingest --to http://127.0.0.1:4318 'logs/*.gz'
  faultline ingest --to https://faultline.example:4318 --ca ca.pem app.ndjson

Every line is stored once. If a run is stopped, or was killed within the last day, the same command
continues where it was. If a file has grown, the next run loads the new lines. A copy of a file is
recognized under another name and with another compression. The progress is kept in ingest.json in
the data directory, or for --to in $XDG_STATE_HOME/faultline (else ~/.local/state/faultline), one
file for each server. Standard input and pipes are not remembered.

A last line without a newline is stored as it is. If the file grows after it, the next run continues
there; if that line itself grows, it counts as another line.

--again loads known files once more; if stopped, the same command continues for a day. ingest waits
for a server that is full or unreachable (--wait).

ingest reads the config file of the server (faultline.toml, --config): data directory, retention,
registry and limits. It deletes nothing: only a server does, and the age of loaded data counts from
the day you load it.

Environment:
  FAULTLINE_DATA_DIR  the data directory, unless --data-dir or --to is given
  FAULTLINE_TOKEN     a token for --to; or FAULTLINE_TOKEN_FILE, a file that holds it

Exit codes:
  0    everything was loaded
  1    a file cannot be read or was loaded before, or the server accepts nothing
  2    wrong usage, or nothing in the input could be read
  3    the data directory cannot be used: unreadable, full, or in use by another process
  130  stopped by Ctrl-C or SIGTERM; stored lines are kept, and the same command continues";

/// The exit code of a command that a signal stopped, by the convention of shells.
const INTERRUPTED: u8 = 130;
/// The exit code if the data directory cannot be used.
const DATA_DIRECTORY: u8 = 3;
/// The exit code if nothing in the input could be read.
const UNREADABLE_INPUT: u8 = 2;

/// Loads log files in bulk, each line once.
///
/// Reads lines of JSON or logfmt from plain, gzip or zstd files, and stores their events in a data directory that no server
/// is using, or through a running server (--to).
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files to read: plain, gzip or zstd, recognized by their first bytes; patterns such as 'logs/*.gz'; `-` is stdin.
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// The data directory; created if it does not exist [default: faultline-data].
    #[arg(long, value_name = "DIR", conflicts_with = "to", value_hint = clap::ValueHint::DirPath)]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    _config: ConfigFileArg,
    /// Send to a running server instead of a data directory: the address of its OTLP/HTTP listener.
    #[arg(long, value_name = "URL")]
    to: Option<IngestUrl>,
    #[command(flatten)]
    tls: ClientTlsArgs,
    /// The service of records that name none.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    service: Option<String>,
    /// The environment of records that name none.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    environment: Option<String>,
    /// The dialect of records that name none.
    #[arg(long, value_parser = dialect())]
    dialect: Option<Dialect>,
    /// Load files again that were loaded before.
    #[arg(long)]
    again: bool,
    /// A registry file with your own codes, profiles and redaction rules, as in examples/registry.toml; a server uses its own.
    #[arg(long, value_name = "FILE", conflicts_with = "to", value_hint = clap::ValueHint::FilePath)]
    registry: Option<PathBuf>,
    /// Longest wait for a server that is full or unreachable and accepts nothing.
    #[arg(long, value_name = "SECONDS", default_value_t = 180)]
    wait: u64,
    /// The output format of the summary.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Do not show the progress bar and the note at the end.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    storage: StorageArgs,
    #[command(flatten)]
    limits: IngestLimitArgs,
}

/// The output format of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables, with bars on a terminal.
    Table,
    /// One JSON object.
    Json,
}

impl Arguments {
    /// Checks that the limits are consistent.
    pub(crate) fn validate(&self) -> Result<(), LimitConflict> {
        self.limits.validate()
    }

    fn defaults(&self) -> Defaults {
        Defaults {
            service: self.service.clone(),
            environment: self.environment.clone(),
            dialect: self.dialect,
        }
    }

    /// Returns a hash of the defaults for lines that do not name a service, an environment or a dialect.
    fn defaults_hash(&self) -> u128 {
        let dialect = self.dialect.map(Dialect::as_str);
        xxh3_128(format!("{:?} {:?} {dialect:?}", self.service, self.environment).as_bytes())
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    exit_code::report_exit_error(ingest(arguments))
}

fn ingest(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let input_files = InputFiles::from_arguments(&arguments.files);
    input_files.errors.iter().for_each(|error| terminal::print_error(error));
    if input_files.inputs.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    print_stdin_hint(arguments, &input_files);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // The target is opened outside of `block_on`, because the tables block on a runtime of their own.
    let target = {
        let _context = runtime.enter();
        IngestTarget::open(arguments)?
    };
    // From here on, a signal causes an orderly shutdown.
    let shutdown = runtime.block_on(async { ShutdownSignal::new() });
    let (result, target) = runtime.block_on(run_ingest(arguments, &input_files, target, &shutdown))?;
    target.close();
    let code = finish(arguments, &result, began.elapsed())?;
    // A reader that is blocked on stdin must not keep the process alive.
    runtime.shutdown_background();
    Ok(if input_files.errors.is_empty() { code } else { fail_if_success(code) })
}

/// Prints a hint if the command waits for lines from a terminal.
fn print_stdin_hint(arguments: &Arguments, input_files: &InputFiles) {
    let reads_stdin = input_files.inputs.iter().any(crate::cli::input::Input::is_stdin);
    if !arguments.quiet && reads_stdin && io::stdin().is_terminal() {
        terminal::print_note("reading lines from the keyboard; end with Ctrl-D, or give a FILE");
    }
}

async fn run_ingest(
    arguments: &Arguments,
    input_files: &InputFiles,
    mut target: IngestTarget,
    shutdown: &ShutdownSignal,
) -> anyhow::Result<(RunResult, IngestTarget)> {
    let clock = || jiff::Timestamp::now().as_microsecond();
    let run_name = format!("{:016x}", random_id()?);
    let progress =
        if arguments.quiet { Progress::hidden() } else { Progress::for_inputs(&input_files.inputs) };
    let (sender, messages) = tokio::sync::mpsc::channel(MAX_IN_FLIGHT);
    let (delivery, ledger) = target.start(arguments)?;
    let reader = Reader {
        inputs: input_files.inputs.clone(),
        ingested: ledger.resumable_entries(arguments.again, clock()),
        again: arguments.again.then(|| run_name.clone()),
        progress: progress.handle(),
        messages: sender,
        next_id: random_id()?,
    };
    std::thread::Builder::new().name("reader".to_owned()).spawn(move || reader.run())?;
    let keys = IdempotencyKeys { defaults: arguments.defaults_hash(), run: run_name };
    let run = IngestRun::new(delivery, ledger, Report::new(&input_files.inputs), progress, keys, clock);
    Ok((run.drive(messages, shutdown).await, target))
}

fn random_id() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Prints the summary and the notes, and returns the exit code.
fn finish(arguments: &Arguments, result: &RunResult, took: Duration) -> anyhow::Result<ExitCode> {
    let report = &result.report;
    let summary = match arguments.format {
        Format::Table => report.tables(OutputStyle::for_stdout()),
        Format::Json => report.json(took),
    };
    terminal::write_stdout(summary.as_bytes())?;
    if let Some(rest) = report.unreported() {
        terminal::print_note(&rest);
    }
    if !arguments.quiet {
        terminal::print_note(&throughput(report, took));
    }
    if let Some(failure) = &result.failure {
        terminal::print_error(&format!(
            "{}; what was taken is kept, and the same command goes on from there",
            failure.reason
        ));
    } else if result.is_stopped {
        terminal::print_note(&format!(
            "stopped after {}; they are kept, and the same command goes on from there",
            format_count(report.total().lines(), "line")
        ));
    }
    Ok(exit_code(result))
}

fn exit_code(result: &RunResult) -> ExitCode {
    match (&result.failure, result.is_stopped) {
        (Some(failure), _) if failure.is_directory => ExitCode::from(DATA_DIRECTORY),
        (Some(_), _) => ExitCode::FAILURE,
        (None, true) => ExitCode::from(INTERRUPTED),
        (None, false) if result.report.is_incomplete() || result.ledger_failure.is_some() => {
            ExitCode::FAILURE
        }
        (None, false) if result.report.nothing_was_readable() => ExitCode::from(UNREADABLE_INPUT),
        (None, false) => ExitCode::SUCCESS,
    }
}

/// Turns success into failure. A mistake in the arguments is a failure, even if everything else was loaded.
fn fail_if_success(code: ExitCode) -> ExitCode {
    if code == ExitCode::SUCCESS { ExitCode::FAILURE } else { code }
}

/// Formats the throughput: `1,200 lines, 600 events in 0.2 s (6,000 lines/s)`.
fn throughput(report: &Report, took: Duration) -> String {
    let total = report.total();
    let rate = (total.lines() as f64 / took.as_secs_f64().max(0.001)) as u64;
    format!(
        "{}, {} in {:.1} s ({} lines/s)",
        format_count(total.lines(), "line"),
        format_count(total.events, "event"),
        took.as_secs_f64(),
        indicatif::HumanCount(rate),
    )
}
