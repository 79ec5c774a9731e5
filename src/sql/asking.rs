//! One question after the other: asked, waited for, and shown, until one fails or somebody has enough.

use super::failure::Failure;
use super::formats::{Encoder, Format};
use super::output::{Output, Sink};
use super::place::{Answer, Place};
use super::statements::{Script, Statement};
use super::table;
use crate::progress::Spinner;
use crate::terminal::{self, Look, counted};
use arrow::array::RecordBatch;
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Interval;

/// As many rows as anybody looks through.
const TABLE_ROWS: usize = 2_000;
/// And as many records, of which each takes a screen.
const RECORDS: usize = 200;
/// How often the spinner turns.
const TURN: Duration = Duration::from_millis(100);

/// How a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Well,
    Failed,
    /// By Ctrl-C.
    Stopped,
}

/// Why a statement was not shown to its end.
enum Stop {
    Failed(Failure),
    Interrupted,
    /// Our output could not be written.
    Output(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Output(error.into())
    }
}

/// Asks, and shows what is answered.
pub(super) struct Asker {
    runtime: Runtime,
    pub(super) place: Place,
    pub(super) format: Format,
    pub(super) output: Output,
    pub(super) look: Look,
    /// Says how many rows there were.
    pub(super) has_notes: bool,
    /// And how long it took.
    pub(super) has_timer: bool,
}

impl Asker {
    pub(super) fn new(place: Place, format: Format, output: Output, look: Look) -> io::Result<Self> {
        // The engine has threads of its own; here is only waited.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, place, format, output, look, has_notes: true, has_timer: true })
    }

    /// Runs statements until one fails.
    pub(super) fn run(&mut self, script: &Script, values: &[Value]) -> anyhow::Result<Ended> {
        for statement in script.statements() {
            let ended = self.statement(&statement, values);
            match ended {
                Ok(is_whole) if is_whole => {}
                Ok(_) => return Ok(Ended::Failed),
                Err(Stop::Failed(failure)) => {
                    terminal::complain(&failure.explain(&statement, script.name.as_deref()));
                    return Ok(Ended::Failed);
                }
                Err(Stop::Interrupted) => {
                    terminal::note("stopped");
                    return Ok(Ended::Stopped);
                }
                Err(Stop::Output(error)) => return Err(error),
            }
        }
        Ok(Ended::Well)
    }

    /// Asks for rows that we need ourselves, and shows nothing. None when there is no answer.
    pub(super) fn fetch(&self, statement: &str, values: &[Value]) -> Result<Vec<RecordBatch>, Failure> {
        self.runtime.block_on(async {
            let mut answer = self.place.ask(statement, values).await?;
            let mut batches = Vec::new();
            while let Some(batch) = answer.next().await? {
                batches.push(batch);
            }
            Ok(batches)
        })
    }

    /// Asks, and shows the answer; false when it is not whole.
    fn statement(&mut self, statement: &Statement<'_>, values: &[Value]) -> Result<bool, Stop> {
        let began = Instant::now();
        let format = self.format.chosen(self.output.path(), self.look);
        if format.is_single() && self.output.answers() > 0 {
            return Err(Stop::Failed(full(&self.output, format)));
        }
        let Self { runtime, place, output, look, .. } = self;
        let shown = runtime.block_on(async {
            let mut waiting = Waiting::new()?;
            let mut answer = waiting.on(place.ask(statement.text, values)).await?;
            if format.is_for_people() {
                show(&mut answer, &mut waiting, output, format, *look).await
            } else {
                write(&mut answer, &mut waiting, output, format).await
            }
        })?;
        self.tell(&shown, began.elapsed());
        Ok(shown.is_whole())
    }

    fn tell(&self, shown: &Told, took: Duration) {
        if shown.is_cut && shown.limit.is_none() {
            let rows = counted(shown.rows, "row");
            let told = format!(
                "the server left rows out after {rows}: the answer is too long for it; narrow it with LIMIT or a \
                 shorter time range, or read the data directory with --data-dir"
            );
            if shown.is_for_people { terminal::note(&told) } else { terminal::complain(&told) }
        }
        if !self.has_notes {
            return;
        }
        let mut note = match shown.limit {
            Some(limit) => format!(
                "the first {}; LIMIT asks for fewer, and csv, ndjson or parquet hold all",
                counted(limit as u64, "row")
            ),
            None => counted(shown.rows, "row"),
        };
        if self.has_timer {
            note.push_str(&format!(" in {}", span(took)));
        }
        if let Some(left_out) = &shown.left_out {
            note.push_str(&format!("; left out: {left_out}"));
        }
        if let Some(path) = self.output.path() {
            note.push_str(&format!("; in {}", path.display()));
        }
        terminal::note(&note);
    }
}

fn full(output: &Output, format: Format) -> Failure {
    let path = output.path().map_or_else(|| "stdout".to_owned(), |path| path.display().to_string());
    Failure {
        hint: Some("choose another file, or csv or ndjson".to_owned()),
        ..Failure::new(format!("{path} holds an answer already, and only one fits as {}", format.name()))
    }
}

/// `12 ms`, `1.25 s`.
fn span(took: Duration) -> String {
    match took.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.2} s", took.as_secs_f64()),
    }
}

/// What is to be said about an answer that was shown.
struct Told {
    rows: u64,
    /// The server left out rows.
    is_cut: bool,
    is_for_people: bool,
    /// We left out rows after so many.
    limit: Option<usize>,
    left_out: Option<String>,
}

impl Told {
    /// A person sees that a table is not all; a program does not.
    fn is_whole(&self) -> bool {
        !self.is_cut || self.is_for_people
    }
}

/// Writes all rows, as they come.
async fn write(
    answer: &mut Answer,
    waiting: &mut Waiting,
    output: &mut Output,
    format: Format,
) -> Result<Told, Stop> {
    let mut encoder = Encoder::new(format, &answer.schema())?;
    let mut sink = output.begin()?;
    let mut rows = 0;
    while let Some(batch) = waiting.on(answer.next()).await? {
        rows += batch.num_rows() as u64;
        put(&mut sink, waiting, &encoder.encode(&batch)?)?;
    }
    put(&mut sink, waiting, &encoder.finish()?)?;
    output.end(sink)?;
    Ok(Told { rows, is_cut: answer.is_cut(), is_for_people: false, limit: None, left_out: None })
}

fn put(sink: &mut Sink, waiting: &mut Waiting, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    if matches!(sink, Sink::Stdout) {
        // Both may be the same terminal.
        waiting.spinner.end();
    }
    sink.write(bytes)
}

/// Lays out as many rows as a person looks through.
async fn show(
    answer: &mut Answer,
    waiting: &mut Waiting,
    output: &mut Output,
    format: Format,
    look: Look,
) -> Result<Told, Stop> {
    let look = if output.path().is_some() { Look::default() } else { look };
    let schema = answer.schema();
    let mut shown = Rows::default();
    while let Some(batch) = waiting.on(answer.next()).await? {
        if !shown.take(&batch) {
            break;
        }
    }
    waiting.spinner.end();
    let mut laid_out = table::lay_out(&schema, &shown.batches, look, format == Format::Vertical)?;
    if shown.count > RECORDS && laid_out.is_vertical {
        shown.keep(RECORDS);
        laid_out = table::lay_out(&schema, &shown.batches, look, true)?;
    }
    let mut sink = output.begin()?;
    sink.write(laid_out.text.as_bytes())?;
    output.end(sink)?;
    Ok(Told {
        rows: shown.count as u64,
        is_cut: answer.is_cut(),
        is_for_people: true,
        limit: shown.is_more.then_some(shown.count),
        left_out: laid_out.left_out,
    })
}

/// Rows to be laid out.
#[derive(Default)]
struct Rows {
    batches: Vec<RecordBatch>,
    count: usize,
    /// There are more.
    is_more: bool,
}

impl Rows {
    /// Takes a batch, or as much of it as there is room for; false when that was not all.
    fn take(&mut self, batch: &RecordBatch) -> bool {
        let room = TABLE_ROWS - self.count;
        self.is_more = batch.num_rows() > room;
        let batch = batch.slice(0, batch.num_rows().min(room));
        self.count += batch.num_rows();
        self.batches.push(batch);
        !self.is_more
    }

    /// Keeps only the first of them.
    fn keep(&mut self, most: usize) {
        let all = std::mem::take(&mut self.batches);
        self.is_more |= self.count > most;
        self.count = 0;
        for batch in all {
            let batch = batch.slice(0, batch.num_rows().min(most - self.count));
            self.count += batch.num_rows();
            self.batches.push(batch);
        }
    }
}

/// Waits, with a spinner for whoever wonders, until Ctrl-C.
struct Waiting {
    interrupt: Signal,
    spinner: Spinner,
    turn: Interval,
}

impl Waiting {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            spinner: Spinner::new("Ctrl-C stops the query"),
            turn: tokio::time::interval(TURN),
        })
    }

    async fn on<T>(&mut self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Stop> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => return Err(Stop::Interrupted),
                done = &mut work => return done.map_err(Stop::Failed),
                _ = self.turn.tick() => self.spinner.tick(),
            }
        }
    }
}
