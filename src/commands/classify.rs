//! `faultline classify` reads lines, and prints one JSON event per line, or a summary. It stores nothing.
//!
//! Invariants: memory is bounded, whatever the input is; the results of a chunk of input are written before more input
//! is read, so that the command can follow a live log; lines that cannot be read are reported or counted, never dropped
//! silently.
//!
//! Event ids are derived from the position of the file among the arguments and the number of the line in it, so the
//! same files in the same order give the same ids on every run.

mod lines;
mod sink;
mod stats;
mod summary;

use crate::cli::input::{Input, errors};
use crate::cli::progress::Progress;
use crate::cli::terminal::{self, OutputStyle};
use crate::config::registry;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use classifier::{
    Classifier, Dialect, HashKey, Limits, RecordOrigin, RequestTracker, Rules, Sink, UnrecognizedReason,
};
use lines::{Line, LineReader};
use sink::{EventSink, Output};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  faultline classify app.ndjson
  faultline classify --summary --top 5 app.ndjson.gz archive.ndjson.zst
  cat app.ndjson | faultline classify --service orders --environment production
  faultline classify --registry registry.toml app.ndjson > events.ndjson

Lines that cannot be read are reported on stderr as FILE:LINE: reason, the first 100 of them in
full. Event ids come from the position of the file among the arguments and the number of the line,
so the same files in the same order have the same ids on every run.

Exit codes:
  0  success, even if some lines could not be read
  1  a file could not be read (the others still are), or the registry has a mistake
  2  wrong usage, or nothing in the input could be read";

/// The default number of rows in a table of the summary.
const DEFAULT_TOP: usize = 20;

/// Finds the failures in log lines, and prints JSON events or a summary.
///
/// Reads lines of JSON or logfmt, looks into the response envelopes they hold, and prints every error,
/// warning and audit event as one JSON object, classified and with secrets redacted.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files to read: plain, gzip or zstd, recognized by their first bytes. `-`, or no file, is stdin.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Print tables by code and by group instead of the events.
    #[arg(long)]
    summary: bool,
    /// The number of rows in each table of the summary; 0 shows all [default: 20].
    #[arg(long, value_name = "N", requires = "summary")]
    top: Option<usize>,
    /// A registry file with your own codes, profiles and redaction rules, as in examples/registry.toml.
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
    /// Do not show the progress bar and the note at the end.
    #[arg(long, short)]
    quiet: bool,
}

impl Arguments {
    /// Returns the origin of the records of an input, without their identity.
    fn origin<'o>(&'o self, source: &'o str, arrival: i64) -> RecordOrigin<'o> {
        RecordOrigin {
            source: Some(source),
            service: self.service.as_deref(),
            environment: self.environment.as_deref(),
            dialect: self.dialect,
            arrival,
            identity: 0,
        }
    }
}

/// Returns the identity of a record: the number of the file, then that of the line. It is unique within a run, and the
/// same on every run.
fn identity(file: usize, line: u64) -> u128 {
    (file as u128) << 64 | u128::from(line)
}

/// Returns a parser for the dialects that have a registry file.
pub(crate) fn dialect() -> impl TypedValueParser<Value = Dialect> {
    PossibleValuesParser::new(Dialect::REGISTERED.map(Dialect::as_str))
        .try_map(|word| Dialect::from_name(&word).ok_or("no such dialect"))
}

/// Runs the command. `arrival` is the time, in microseconds since 1970, of records that do not have one.
pub(crate) fn run(arguments: &Arguments, arrival: i64) -> anyhow::Result<ExitCode> {
    let registry = registry::load(arguments.registry.as_deref())?;
    let limits = Limits::default();
    let inputs = Input::list(&arguments.files);
    let mut run = ClassifyRun {
        arguments,
        arrival,
        max_line_bytes: limits.line_bytes,
        classifier: Classifier::new(Arc::new(Rules::new(registry, HashKey::FIXED, limits))),
        tracker: RequestTracker::default(),
        sink: EventSink::new(output(arguments)),
        progress: if arguments.quiet { Progress::hidden() } else { Progress::for_inputs(&inputs) },
        style: OutputStyle::for_stdout(),
        failed_inputs: 0,
    };
    run.print_stdin_hint(&inputs);
    for (index, input) in inputs.iter().enumerate() {
        run.read(index, input)?;
    }
    run.finish()
}

fn output(arguments: &Arguments) -> Output {
    if arguments.summary { Output::Summary(Box::default()) } else { Output::events() }
}

/// The state of one run of the command.
struct ClassifyRun<'r> {
    arguments: &'r Arguments,
    arrival: i64,
    max_line_bytes: usize,
    classifier: Classifier,
    /// The requests seen so far in the current input; replies are paired with requests of the same input only.
    tracker: RequestTracker,
    sink: EventSink,
    progress: Progress,
    style: OutputStyle,
    /// The number of inputs that could not be opened or read to their end.
    failed_inputs: usize,
}

impl ClassifyRun<'_> {
    /// Prints a hint if the command waits for lines from a terminal.
    fn print_stdin_hint(&self, inputs: &[Input]) {
        if !self.arguments.quiet && inputs.iter().any(Input::is_stdin) && io::stdin().is_terminal() {
            terminal::print_note("reading lines from the keyboard; end with Ctrl-D, or give a FILE");
        }
    }

    /// Reads one input to its end. An error is one of writing the output, after which it is pointless to continue.
    fn read(&mut self, index: usize, input: &Input) -> io::Result<()> {
        let progress = self.progress.handle();
        progress.set_input(input);
        let mut lines = match input.open(&progress) {
            Ok(reader) => LineReader::new(reader, self.max_line_bytes),
            Err(error) => {
                self.fail_input(&errors::open_error(&input.name, &error));
                return Ok(());
            }
        };
        self.sink.line = 0;
        self.tracker = RequestTracker::default();
        loop {
            match lines.fill() {
                Ok(true) => self.classify_lines(&mut lines, index, input)?,
                Ok(false) => return Ok(()),
                Err(error) => {
                    self.fail_input(&errors::read_error(&input.name, &error));
                    return Ok(());
                }
            }
        }
    }

    /// Classifies every line in the buffer, and writes the results.
    fn classify_lines(
        &mut self,
        lines: &mut LineReader<impl io::Read>,
        file: usize,
        input: &Input,
    ) -> io::Result<()> {
        let origin = self.arguments.origin(&input.name, self.arrival);
        while let Some(line) = lines.next_line() {
            self.sink.line += 1;
            self.sink.stats.lines += 1;
            match line {
                Line::Complete(line) => {
                    let origin = RecordOrigin { identity: identity(file, self.sink.line), ..origin };
                    self.classifier.classify_stream(line, &origin, &mut self.tracker, &mut self.sink);
                }
                Line::TooLong => self.sink.unrecognized(UnrecognizedReason::TooLong),
            }
        }
        self.flush(input)
    }

    /// Writes the pending output, without the progress bar on the screen if both go to a terminal.
    fn flush(&mut self, input: &Input) -> io::Result<()> {
        let Self { progress, sink, style, .. } = self;
        progress.tick();
        if style.terminal {
            progress.suspend(|| sink.flush())?;
        } else {
            sink.flush()?;
        }
        if sink.has_reports() {
            progress.suspend(|| sink.report(&input.name));
        }
        Ok(())
    }

    fn fail_input(&mut self, sentence: &str) {
        self.failed_inputs += 1;
        self.progress.suspend(|| terminal::print_error(sentence));
    }

    /// Prints the summary and the notes, and returns the exit code.
    fn finish(self) -> anyhow::Result<ExitCode> {
        self.progress.finish();
        let stats = &self.sink.stats;
        if let Output::Summary(summary) = &self.sink.output {
            let top = self.arguments.top.unwrap_or(DEFAULT_TOP);
            terminal::write_stdout(summary.text(stats, top, self.style).as_bytes())?;
        }
        if let Some(rest) = stats.unreported() {
            terminal::print_note(&rest);
        }
        if !self.arguments.quiet {
            terminal::print_note(&stats.to_string());
        }
        Ok(match (self.failed_inputs, stats.nothing_was_readable()) {
            (1.., _) => ExitCode::FAILURE,
            (0, true) => ExitCode::from(2),
            (0, false) => ExitCode::SUCCESS,
        })
    }
}
