//! `faultline ingest`: logs in bulk, into a data directory or to a running server, each line once.
//!
//! A thread reads and unpacks ([`reader`]), the text is cut into pieces of whole lines ([`pieces`]), several of them are
//! on their way at once ([`mod@run`]), and a ledger remembers how far every file got ([`ledger`]).
//!
//! What always holds: a line is stored once, however often a run is stopped, killed or repeated. What was acknowledged is
//! in the ledger, or is sent again under the same key, and a key is stored once.

mod destination;
mod files;
mod ledger;
mod pieces;
mod place;
mod reader;
mod report;
mod resume;
mod run;
mod text;

use crate::classify::dialect;
use crate::client::Trust;
use crate::limits::{Conflict, Limits};
use crate::opened::Room;
use crate::progress::Progress;
use crate::refused;
use crate::settings::SettingsFile;
use crate::stop::Stop;
use crate::terminal::{self, Look, counted};
use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use collector::pipeline::Defaults;
use destination::server::Target;
use files::Named;
use place::Place;
use reader::Reader;
use report::Report;
use run::{Ending, Keys, ON_THEIR_WAY, Run};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use taxonomy::Dialect;
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

Every line is stored once. Stopped, or killed no longer than a day ago, the same command goes on where
it was; a log that has grown since goes on where it ended; a copy is known under another name and in
another packing. That is kept in ingest.json in the data directory, or for --to in
$XDG_STATE_HOME/faultline (else ~/.local/state/faultline), one file a server. What is read from stdin or
a pipe is not remembered.

A last line without a newline is stored as it is. When the file goes on after it, so does the next run;
when that very line goes on, it is another line, and stored as one.

--again stores files once more that are known; stopped, the same command goes on for a day. A server
that is full or away is waited for (--wait).

The settings file of the server holds here, too (faultline.toml, --settings): where its data is, what
is kept, its registry and its limits. Nothing is removed, however old: only a server does that, and what
is loaded today is kept for its whole age from today on.

Environment:
  FAULTLINE_DATA_DIR  the data directory, unless --data-dir or --to is given
  FAULTLINE_TOKEN     a token for --to; or FAULTLINE_TOKEN_FILE, a file that holds it

Exit codes:
  0    everything is ingested
  1    a file cannot be read, or was ingested before; or a server takes nothing
  2    wrong usage, or input of which nothing could be read
  3    the data directory cannot be used: unreadable, full, or another process has it
  130  stopped by Ctrl-C or SIGTERM; what was taken is kept, and the same command goes on";

/// Stopped by a signal, as shells say it.
const STOPPED: u8 = 130;
/// The data directory cannot be used.
const DIRECTORY: u8 = 3;
/// Nothing could be read.
const UNREADABLE: u8 = 2;

/// Loads logs in bulk, with a progress bar, each line once.
///
/// Reads lines of JSON or logfmt, plain, gzip or zstd, and stores what they hold: in a data directory that no server is
/// using, or through a running server (--to).
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files to read: plain, gzip or zstd, told by their first bytes; patterns such as 'logs/*.gz'; `-` is stdin.
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Where everything is kept; made if it is not there [default: faultline-data].
    #[arg(long, value_name = "DIR", conflicts_with = "to", value_hint = clap::ValueHint::DirPath)]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    _settings: SettingsFile,
    /// A running server instead of a data directory: the address of its OTLP/HTTP listener.
    #[arg(long, value_name = "URL")]
    to: Option<Target>,
    #[command(flatten)]
    trust: Trust,
    /// The service of records that name none.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    service: Option<String>,
    /// The environment of records that name none.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    environment: Option<String>,
    /// The dialect of records that name none.
    #[arg(long, value_parser = dialect())]
    dialect: Option<Dialect>,
    /// Store files that were ingested before once more.
    #[arg(long)]
    again: bool,
    /// Your own codes, profiles and redaction, as in examples/registry.toml; a server has its own.
    #[arg(long, value_name = "FILE", conflicts_with = "to", value_hint = clap::ValueHint::FilePath)]
    registry: Option<PathBuf>,
    /// How long to wait for a server that is full or away, without anything being taken.
    #[arg(long, value_name = "SECONDS", default_value_t = 180)]
    wait: u64,
    /// How the summary is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Show neither the progress bar nor the note at the end.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    room: Room,
    #[command(flatten)]
    limits: Limits,
}

/// How the summary is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables, with bars on a terminal.
    Table,
    /// One JSON object.
    Json,
}

impl Arguments {
    /// Whether what was set fits together.
    pub(crate) fn check(&self) -> Result<(), Conflict> {
        self.limits.fit_together()
    }

    fn defaults(&self) -> Defaults {
        Defaults {
            service: self.service.clone(),
            environment: self.environment.clone(),
            dialect: self.dialect,
        }
    }

    /// What holds for lines that do not say, as a number.
    fn identity(&self) -> u128 {
        let dialect = self.dialect.map(Dialect::as_str);
        xxh3_128(format!("{:?} {:?} {dialect:?}", self.service, self.environment).as_bytes())
    }
}

/// Ingests all files.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    refused::or_exit_code(ingest(arguments))
}

fn ingest(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let named = Named::by(&arguments.files);
    named.mistakes.iter().for_each(|mistake| terminal::complain(mistake));
    if named.inputs.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    hint(arguments, &named);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Not inside of it: the tables wait on a runtime of their own.
    let place = {
        let _context = runtime.enter();
        Place::open(arguments)?
    };
    // From here on a signal stops in an orderly way.
    let stop = runtime.block_on(async { Stop::new() });
    let (ending, place) = runtime.block_on(drive(arguments, &named, place, &stop))?;
    place.close();
    let code = finish(arguments, &ending, began.elapsed())?;
    // A reader that waits for stdin must not keep the process.
    runtime.shutdown_background();
    Ok(if named.mistakes.is_empty() { code } else { at_least_failed(code) })
}

/// A terminal that waits should say what for.
fn hint(arguments: &Arguments, named: &Named) {
    let reads_stdin = named.inputs.iter().any(crate::input::Input::is_stdin);
    if !arguments.quiet && reads_stdin && io::stdin().is_terminal() {
        terminal::note("reading lines from the keyboard; end with Ctrl-D, or give a FILE");
    }
}

async fn drive(
    arguments: &Arguments,
    named: &Named,
    mut place: Place,
    stop: &Stop,
) -> anyhow::Result<(Ending, Place)> {
    let clock = || jiff::Timestamp::now().as_microsecond();
    let run_name = format!("{:016x}", random()?);
    let progress = if arguments.quiet { Progress::none() } else { Progress::over(&named.inputs) };
    let (sender, told) = tokio::sync::mpsc::channel(ON_THEIR_WAY);
    let (delivery, ledger) = place.take(arguments)?;
    let reader = Reader {
        inputs: named.inputs.clone(),
        known: ledger.tellers(arguments.again, clock()),
        again: arguments.again.then(|| run_name.clone()),
        meter: progress.meter(),
        told: sender,
        next_id: random()?,
    };
    std::thread::Builder::new().name("reader".to_owned()).spawn(move || reader.run())?;
    let keys = Keys { defaults: arguments.identity(), run: run_name };
    let run = Run::new(delivery, ledger, Report::new(&named.inputs), progress, keys, clock);
    Ok((run.drive(told, stop).await, place))
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Prints the summary and the notes, and says how it went.
fn finish(arguments: &Arguments, ending: &Ending, took: Duration) -> anyhow::Result<ExitCode> {
    let report = &ending.report;
    let text = match arguments.format {
        Format::Table => report.tables(Look::of_stdout()),
        Format::Json => report.json(took),
    };
    terminal::print(text.as_bytes())?;
    if let Some(rest) = report.unreported() {
        terminal::note(&rest);
    }
    if !arguments.quiet {
        terminal::note(&pace(report, took));
    }
    if let Some(failure) = &ending.failure {
        terminal::complain(&format!(
            "{}; what was taken is kept, and the same command goes on from there",
            failure.reason
        ));
    } else if ending.is_stopped {
        terminal::note(&format!(
            "stopped after {}; they are kept, and the same command goes on from there",
            counted(report.total().lines(), "line")
        ));
    }
    Ok(exit_code(ending))
}

fn exit_code(ending: &Ending) -> ExitCode {
    match (&ending.failure, ending.is_stopped) {
        (Some(failure), _) if failure.is_directory => ExitCode::from(DIRECTORY),
        (Some(_), _) => ExitCode::FAILURE,
        (None, true) => ExitCode::from(STOPPED),
        (None, false) if ending.report.is_incomplete() || ending.ledger_failure.is_some() => {
            ExitCode::FAILURE
        }
        (None, false) if ending.report.nothing_was_readable() => ExitCode::from(UNREADABLE),
        (None, false) => ExitCode::SUCCESS,
    }
}

/// A mistake among the arguments is one, however well the rest went.
fn at_least_failed(code: ExitCode) -> ExitCode {
    if code == ExitCode::SUCCESS { ExitCode::FAILURE } else { code }
}

/// `1,200 lines, 600 events in 0.2 s (6,000 lines/s)`.
fn pace(report: &Report, took: Duration) -> String {
    let total = report.total();
    let rate = (total.lines() as f64 / took.as_secs_f64().max(0.001)) as u64;
    format!(
        "{}, {} in {:.1} s ({} lines/s)",
        counted(total.lines(), "line"),
        counted(total.events, "event"),
        took.as_secs_f64(),
        indicatif::HumanCount(rate),
    )
}
