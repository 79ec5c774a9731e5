//! Runs statements one after the other and shows their results, until one fails or the user interrupts.

use super::error::SqlError;
use super::formats::{Encoder, Format};
use super::output::{Output, Sink};
use super::statements::{Script, Statement};
use super::table;
use super::target::{QueryResult, QueryTarget};
use crate::cli::progress::Spinner;
use crate::cli::terminal::{self, OutputStyle, format_count};
use arrow::array::RecordBatch;
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Interval;

/// The maximum number of rows that are shown as a table.
const MAX_TABLE_ROWS: usize = 2_000;
/// The maximum number of rows that are shown record by record, of which each fills a screen.
const MAX_RECORDS: usize = 200;
/// The interval at which the spinner is updated.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// The outcome of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunOutcome {
    Success,
    Failed,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// The reason why the result of a statement was not shown completely.
enum StatementError {
    Failed(SqlError),
    Interrupted,
    /// The output could not be written.
    Output(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for StatementError {
    fn from(error: E) -> Self {
        Self::Output(error.into())
    }
}

/// Runs queries, and shows their results.
pub(super) struct QueryRunner {
    runtime: Runtime,
    pub(super) target: QueryTarget,
    pub(super) format: Format,
    pub(super) output: Output,
    pub(super) style: OutputStyle,
    /// True if a note with the number of rows is printed.
    pub(super) has_notes: bool,
    /// True if that note includes the time.
    pub(super) has_timer: bool,
}

impl QueryRunner {
    pub(super) fn new(
        target: QueryTarget,
        format: Format,
        output: Output,
        style: OutputStyle,
    ) -> io::Result<Self> {
        // The engine has threads of its own; this runtime only waits.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, target, format, output, style, has_notes: true, has_timer: true })
    }

    /// Runs statements until one fails.
    pub(super) fn run(&mut self, script: &Script, values: &[Value]) -> anyhow::Result<RunOutcome> {
        for statement in script.statements() {
            let outcome = self.statement(&statement, values);
            match outcome {
                Ok(is_complete) if is_complete => {}
                Ok(_) => return Ok(RunOutcome::Failed),
                Err(StatementError::Failed(error)) => {
                    terminal::print_error(&error.explain(&statement, script.name.as_deref()));
                    return Ok(RunOutcome::Failed);
                }
                Err(StatementError::Interrupted) => {
                    terminal::print_note("stopped");
                    return Ok(RunOutcome::Interrupted);
                }
                Err(StatementError::Output(error)) => return Err(error),
            }
        }
        Ok(RunOutcome::Success)
    }

    /// Runs a query for the program itself, and returns its rows without showing them.
    pub(super) fn fetch(&self, statement: &str, values: &[Value]) -> Result<Vec<RecordBatch>, SqlError> {
        self.runtime.block_on(async {
            let mut result = self.target.query(statement, values).await?;
            let mut batches = Vec::new();
            while let Some(batch) = result.next().await? {
                batches.push(batch);
            }
            Ok(batches)
        })
    }

    /// Runs a statement, and shows its result. Returns false when the result is incomplete.
    fn statement(&mut self, statement: &Statement<'_>, values: &[Value]) -> Result<bool, StatementError> {
        let started = Instant::now();
        let format = self.format.resolve(self.output.path(), self.style);
        if format.is_single() && self.output.results() > 0 {
            return Err(StatementError::Failed(output_is_full(&self.output, format)));
        }
        let Self { runtime, target, output, style, .. } = self;
        let summary = runtime.block_on(async {
            let mut interruptible = Interruptible::new()?;
            let mut result = interruptible.on(target.query(statement.text, values)).await?;
            if format.is_for_people() {
                render_rows(&mut result, &mut interruptible, output, format, *style).await
            } else {
                write_rows(&mut result, &mut interruptible, output, format).await
            }
        })?;
        self.print_summary(&summary, started.elapsed());
        Ok(summary.is_complete())
    }

    fn print_summary(&self, summary: &ResultSummary, took: Duration) {
        if summary.is_truncated && summary.limit.is_none() {
            let rows = format_count(summary.rows, "row");
            let message = format!(
                "the server left rows out after {rows}: the answer is too long for it; narrow it with LIMIT or a \
                 shorter time range, or read the data directory with --data-dir"
            );
            if summary.is_for_people {
                terminal::print_note(&message);
            } else {
                terminal::print_error(&message);
            }
        }
        if !self.has_notes {
            return;
        }
        let mut note = match summary.limit {
            Some(limit) => format!(
                "the first {}; LIMIT asks for fewer, and csv, ndjson or parquet hold all",
                format_count(limit as u64, "row")
            ),
            None => format_count(summary.rows, "row"),
        };
        if self.has_timer {
            note.push_str(&format!(" in {}", format_elapsed(took)));
        }
        if let Some(left_out) = &summary.left_out {
            note.push_str(&format!("; left out: {left_out}"));
        }
        if let Some(path) = self.output.path() {
            note.push_str(&format!("; in {}", path.display()));
        }
        terminal::print_note(&note);
    }
}

fn output_is_full(output: &Output, format: Format) -> SqlError {
    let path = output.path().map_or_else(|| "stdout".to_owned(), |path| path.display().to_string());
    SqlError {
        hint: Some("choose another file, or csv or ndjson".to_owned()),
        ..SqlError::new(format!("{path} holds an answer already, and only one fits as {}", format.name()))
    }
}

/// Formats a time: `12 ms`, `1.25 s`.
fn format_elapsed(took: Duration) -> String {
    match took.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.2} s", took.as_secs_f64()),
    }
}

/// The properties of a result that was shown.
struct ResultSummary {
    rows: u64,
    /// True if the server left out rows.
    is_truncated: bool,
    is_for_people: bool,
    /// The number of rows after which this program left out the rest, if it did.
    limit: Option<usize>,
    left_out: Option<String>,
}

impl ResultSummary {
    /// Returns true when the result is complete for its reader. A user sees the note about a truncated table; a program
    /// does not.
    fn is_complete(&self) -> bool {
        !self.is_truncated || self.is_for_people
    }
}

/// Writes all rows as they arrive.
async fn write_rows(
    result: &mut QueryResult,
    interruptible: &mut Interruptible,
    output: &mut Output,
    format: Format,
) -> Result<ResultSummary, StatementError> {
    let mut encoder = Encoder::new(format, &result.schema())?;
    let mut sink = output.begin()?;
    let mut rows = 0;
    while let Some(batch) = interruptible.on(result.next()).await? {
        rows += batch.num_rows() as u64;
        write_bytes(&mut sink, interruptible, &encoder.encode(&batch)?)?;
    }
    write_bytes(&mut sink, interruptible, &encoder.finish()?)?;
    output.end(sink)?;
    Ok(ResultSummary {
        rows,
        is_truncated: result.is_truncated(),
        is_for_people: false,
        limit: None,
        left_out: None,
    })
}

fn write_bytes(sink: &mut Sink, interruptible: &mut Interruptible, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    if matches!(sink, Sink::Stdout) {
        // Stdout and the spinner may be on the same terminal.
        interruptible.spinner.finish();
    }
    sink.write(bytes)
}

/// Lays out the rows, up to a limit.
async fn render_rows(
    result: &mut QueryResult,
    interruptible: &mut Interruptible,
    output: &mut Output,
    format: Format,
    style: OutputStyle,
) -> Result<ResultSummary, StatementError> {
    let style = if output.path().is_some() { OutputStyle::default() } else { style };
    let schema = result.schema();
    let mut summary = RowBuffer::default();
    while let Some(batch) = interruptible.on(result.next()).await? {
        if !summary.take(&batch) {
            break;
        }
    }
    interruptible.spinner.finish();
    let mut layout = table::render(&schema, &summary.batches, style, format == Format::Vertical)?;
    if summary.count > MAX_RECORDS && layout.is_vertical {
        summary.truncate(MAX_RECORDS);
        layout = table::render(&schema, &summary.batches, style, true)?;
    }
    let mut sink = output.begin()?;
    sink.write(layout.text.as_bytes())?;
    output.end(sink)?;
    Ok(ResultSummary {
        rows: summary.count as u64,
        is_truncated: result.is_truncated(),
        is_for_people: true,
        limit: summary.is_more.then_some(summary.count),
        left_out: layout.left_out,
    })
}

/// The rows to lay out.
#[derive(Default)]
struct RowBuffer {
    batches: Vec<RecordBatch>,
    count: usize,
    /// True if there are more rows than these.
    is_more: bool,
}

impl RowBuffer {
    /// Adds a batch, or the part of it within the limit. Returns false when rows were left out.
    fn take(&mut self, batch: &RecordBatch) -> bool {
        let remaining = MAX_TABLE_ROWS - self.count;
        self.is_more = batch.num_rows() > remaining;
        let batch = batch.slice(0, batch.num_rows().min(remaining));
        self.count += batch.num_rows();
        self.batches.push(batch);
        !self.is_more
    }

    /// Keeps only the first rows.
    fn truncate(&mut self, limit: usize) {
        let all = std::mem::take(&mut self.batches);
        self.is_more |= self.count > limit;
        self.count = 0;
        for batch in all {
            let batch = batch.slice(0, batch.num_rows().min(limit - self.count));
            self.count += batch.num_rows();
            self.batches.push(batch);
        }
    }
}

/// Waits for work, with a spinner, until Ctrl-C.
struct Interruptible {
    interrupt: Signal,
    spinner: Spinner,
    spinner_interval: Interval,
}

impl Interruptible {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            spinner: Spinner::new("Ctrl-C stops the query"),
            spinner_interval: tokio::time::interval(SPINNER_INTERVAL),
        })
    }

    async fn on<T>(&mut self, work: impl Future<Output = Result<T, SqlError>>) -> Result<T, StatementError> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => return Err(StatementError::Interrupted),
                done = &mut work => return done.map_err(StatementError::Failed),
                _ = self.spinner_interval.tick() => self.spinner.tick(),
            }
        }
    }
}
