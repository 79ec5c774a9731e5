//! `faultline classify`: lines in, one JSON event a line out, or a summary of them. Stores nothing.
//!
//! What always holds: memory is bounded, whatever the input is; results that a chunk of input yields are
//! written before more input is waited for, so that it can follow a live log; what could not be read is
//! reported or counted, never dropped in silence.
//!
//! Event ids are made from the number of the file among the arguments and the number of the line in it, so
//! the same files in the same order give the same ids on every run.

mod lines;
mod sink;
mod summary;
mod tally;

use crate::input::{Input, refusal};
use crate::progress::Progress;
use crate::registry;
use crate::terminal::{self, Look};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lines::{Line, Lines};
use sink::{Collector, Output};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use taxonomy::{Classifier, Dialect, HashKey, Limits, Origin, Reason, Rules, Sink};

const EXAMPLES: &str = "\
Examples:
  faultline classify app.ndjson
  faultline classify --summary --top 5 app.ndjson.gz archive.ndjson.zst
  cat app.ndjson | faultline classify --service orders --environment production
  faultline classify --registry registry.toml app.ndjson > events.ndjson

Lines that cannot be read are reported on stderr as FILE:LINE: reason, the first 100 of them in full.
Event ids come from the place of the file among the arguments and the number of the line: the same
files in the same order have the same ids on every run.

Exit codes:
  0  it worked, also when some lines could not be read
  1  a file could not be opened or unpacked (the others are still read), or the registry was refused
  2  wrong usage, or there was input and nothing in it could be read";

/// How many rows a table of the summary shows.
const TOP: usize = 20;

/// Finds the failures in log lines: one JSON event a line, or a summary.
///
/// Reads lines of JSON or logfmt, looks into the response envelopes they hold, and prints every error,
/// warning and audit event as one JSON object, classified and with its secrets taken out.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files to read: plain, gzip or zstd, told by their first bytes. `-`, or none, is stdin.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Print tables of what was found instead of the events.
    #[arg(long)]
    summary: bool,
    /// How many rows the tables of the summary show; 0 shows all [default: 20].
    #[arg(long, value_name = "N", requires = "summary")]
    top: Option<usize>,
    /// Your own codes, profiles and redaction, as in examples/registry.toml.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    registry: Option<PathBuf>,
    /// The service of records that name none.
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// The environment of records that name none.
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// The dialect of records that name none.
    #[arg(long, value_parser = dialect())]
    dialect: Option<Dialect>,
    /// Show neither the progress bar nor the note at the end.
    #[arg(long, short)]
    quiet: bool,
}

impl Arguments {
    /// What holds for every record of an input.
    fn origin<'o>(&'o self, source: &'o str, arrival: i64) -> Origin<'o> {
        Origin {
            source: Some(source),
            service: self.service.as_deref(),
            environment: self.environment.as_deref(),
            dialect: self.dialect,
            arrival,
            identity: 0,
        }
    }
}

/// The place of a record: the file's number, then the line's. The same on every run, and never twice in one.
fn identity(file: usize, line: u64) -> u128 {
    (file as u128) << 64 | u128::from(line)
}

/// One of the dialects that have a registry file.
pub(crate) fn dialect() -> impl TypedValueParser<Value = Dialect> {
    PossibleValuesParser::new(Dialect::REGISTERED.map(Dialect::as_str))
        .try_map(|word| Dialect::from_word(&word).ok_or("no such dialect"))
}

/// Reads all inputs. `arrival` is the time, in microseconds since 1970, for records that tell none.
pub(crate) fn run(arguments: &Arguments, arrival: i64) -> anyhow::Result<ExitCode> {
    let registry = registry::load(arguments.registry.as_deref())?;
    let limits = Limits::default();
    let inputs = Input::list(&arguments.files);
    let mut run = Run {
        arguments,
        arrival,
        longest: limits.line_bytes,
        classifier: Classifier::new(Arc::new(Rules::new(registry, HashKey::FIXED, limits))),
        collector: Collector::new(output(arguments)),
        progress: if arguments.quiet { Progress::none() } else { Progress::over(&inputs) },
        look: Look::of_stdout(),
        refused: 0,
    };
    run.hint(&inputs);
    for (index, input) in inputs.iter().enumerate() {
        run.read(index, input)?;
    }
    run.finish()
}

fn output(arguments: &Arguments) -> Output {
    if arguments.summary { Output::Summary(Box::default()) } else { Output::events() }
}

/// What one call of the command works with.
struct Run<'r> {
    arguments: &'r Arguments,
    arrival: i64,
    longest: usize,
    classifier: Classifier,
    collector: Collector,
    progress: Progress,
    look: Look,
    /// Inputs that could not be opened or read to their end.
    refused: usize,
}

impl Run<'_> {
    /// A terminal that waits should say what for.
    fn hint(&self, inputs: &[Input]) {
        if !self.arguments.quiet && inputs.iter().any(Input::is_stdin) && io::stdin().is_terminal() {
            terminal::note("reading lines from the keyboard; end with Ctrl-D, or give a FILE");
        }
    }

    /// Reads one input to its end. An error is one of our output: there is no point in going on.
    fn read(&mut self, index: usize, input: &Input) -> io::Result<()> {
        let meter = self.progress.meter();
        meter.at(input);
        let mut lines = match input.open(&meter) {
            Ok(reader) => Lines::new(reader, self.longest),
            Err(error) => {
                self.refuse(&refusal::opening(&input.name, &error));
                return Ok(());
            }
        };
        self.collector.line = 0;
        loop {
            match lines.fill() {
                Ok(true) => self.take(&mut lines, index, input)?,
                Ok(false) => return Ok(()),
                Err(error) => {
                    self.refuse(&refusal::reading(&input.name, &error));
                    return Ok(());
                }
            }
        }
    }

    /// Classifies every line that is there, and writes what they yield.
    fn take(&mut self, lines: &mut Lines<impl io::Read>, file: usize, input: &Input) -> io::Result<()> {
        let origin = self.arguments.origin(&input.name, self.arrival);
        while let Some(line) = lines.next_line() {
            self.collector.line += 1;
            self.collector.tally.lines += 1;
            match line {
                Line::Whole(line) => {
                    let origin = Origin { identity: identity(file, self.collector.line), ..origin };
                    self.classifier.classify(line, &origin, &mut self.collector);
                }
                Line::TooLong => self.collector.unrecognized(Reason::TooLong),
            }
        }
        self.show(input)
    }

    /// Writes what has gathered, with the progress bar out of the way where both would meet.
    fn show(&mut self, input: &Input) -> io::Result<()> {
        let Self { progress, collector, look, .. } = self;
        progress.tick();
        if look.terminal {
            progress.aside(|| collector.flush())?;
        } else {
            collector.flush()?;
        }
        if collector.has_reports() {
            progress.aside(|| collector.report(&input.name));
        }
        Ok(())
    }

    fn refuse(&mut self, sentence: &str) {
        self.refused += 1;
        self.progress.aside(|| terminal::complain(sentence));
    }

    /// Prints the summary and the notes, and says how it went.
    fn finish(self) -> anyhow::Result<ExitCode> {
        self.progress.end();
        let tally = &self.collector.tally;
        if let Output::Summary(summary) = &self.collector.output {
            let top = self.arguments.top.unwrap_or(TOP);
            terminal::print(summary.text(tally, top, self.look).as_bytes())?;
        }
        if let Some(rest) = tally.unreported() {
            terminal::note(&rest);
        }
        if !self.arguments.quiet {
            terminal::note(&tally.to_string());
        }
        Ok(match (self.refused, tally.nothing_was_readable()) {
            (1.., _) => ExitCode::FAILURE,
            (0, true) => ExitCode::from(2),
            (0, false) => ExitCode::SUCCESS,
        })
    }
}
