//! One run: takes pieces from the reader, has several on their way at once, and writes down what was acknowledged.
//!
//! What always holds:
//! - Pieces are settled in their order, whatever order they are answered in; so the ledger never claims more than the
//!   part of a file that was acknowledged without a gap.
//! - What has to be written down before a piece is sent is durable by then.
//! - However the run ends, what was acknowledged is written down.

use super::chunks::{Chunk, ChunkSpan};
use super::destination::{Delivery, DeliveryError, RunFailure};
use super::hashing_reader::HashedOffset;
use super::ledger::{Entry, Ledger, LedgerError};
use super::reader::{InputEnd, ReaderMessage};
use super::report::{FileState, Report};
use crate::cli::progress::Progress;
use crate::cli::signals::ShutdownSignal;
use crate::cli::terminal;
use collector::pipeline::IngestResponse;
use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Pieces on their way at once: enough to keep every worker busy while others wait for the disk.
pub(super) const MAX_IN_FLIGHT: usize = 16;
/// How often the ledger is written while there is progress.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// How often somebody looks at the progress bar.
const TICK_EVERY: Duration = Duration::from_millis(100);

/// A piece or an end that waits for its turn.
enum PendingStep {
    Chunk { file: usize, number: u64, span: ChunkSpan, first_line: u64, answer: Option<Box<IngestResponse>> },
    End { file: usize, how: InputEnd },
}

/// What became of a piece on its way.
enum DeliveryOutcome {
    Accepted {
        number: u64,
        answer: IngestResponse,
    },
    /// To be sent in parts.
    TooLarge {
        file: usize,
        number: u64,
        chunk: Chunk,
    },
    Failed(RunFailure),
}

/// Everything a run works with.
pub(super) struct IngestRun {
    pub(super) delivery: Arc<Delivery>,
    pub(super) ledger: Ledger,
    pub(super) report: Report,
    pub(super) progress: Progress,
    pub(super) keys: IdempotencyKeys,
    pub(super) clock: fn() -> i64,
    steps: VecDeque<PendingStep>,
    tasks: JoinSet<DeliveryOutcome>,
    /// The entries of the files that were begun.
    entries: HashMap<usize, Entry>,
    next_number: u64,
    /// Why nothing more is taken.
    failure: Option<RunFailure>,
    ledger_failure: Option<LedgerError>,
    is_stopped: bool,
}

/// How a run ended.
pub(super) struct RunResult {
    pub(super) report: Report,
    pub(super) failure: Option<RunFailure>,
    pub(super) ledger_failure: Option<LedgerError>,
    /// A signal ended it.
    pub(super) is_stopped: bool,
}

/// Makes the keys under which pieces are known when they come again.
pub(super) struct IdempotencyKeys {
    /// What holds for lines that do not say, as a number.
    pub(super) defaults: u128,
    /// The name of this run: for what must not be taken for what another run has sent.
    pub(super) run: String,
}

impl IdempotencyKeys {
    /// A key says what a piece holds and everything before it. A stream has no place where it could go on, so what it
    /// gives is new in every run.
    fn key(&self, end: HashedOffset, entry: Option<&Entry>) -> String {
        let run = entry.map_or(Some(self.run.as_str()), |entry| entry.again.as_deref());
        let run = run.map(|run| format!("-{run}")).unwrap_or_default();
        format!("ingest-{:032x}-{:032x}{run}-", end.hash.0, self.defaults)
    }
}

impl IngestRun {
    pub(super) fn new(
        delivery: Delivery,
        ledger: Ledger,
        report: Report,
        progress: Progress,
        keys: IdempotencyKeys,
        clock: fn() -> i64,
    ) -> Self {
        Self {
            delivery: Arc::new(delivery),
            ledger,
            report,
            progress,
            keys,
            clock,
            steps: VecDeque::new(),
            tasks: JoinSet::new(),
            entries: HashMap::new(),
            next_number: 0,
            failure: None,
            ledger_failure: None,
            is_stopped: false,
        }
    }

    /// Ingests what the reader tells, until it is over or a signal comes.
    pub(super) async fn drive(
        mut self,
        mut messages: Receiver<ReaderMessage>,
        shutdown: &ShutdownSignal,
    ) -> RunResult {
        let (mut requested, mut forced) = (pin!(shutdown.requested()), pin!(shutdown.forced()));
        let (mut save, mut tick) = (interval(SAVE_EVERY), interval(TICK_EVERY));
        save.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_read = false;
        loop {
            let accepts = !is_read && !self.is_stopped && self.failure.is_none();
            if !accepts && self.tasks.is_empty() {
                break;
            }
            let has_room = self.tasks.len() < MAX_IN_FLIGHT;
            tokio::select! {
                () = &mut forced => break,
                () = &mut requested, if !self.is_stopped => self.shutdown(),
                Some(done) = self.tasks.join_next() => self.handle_delivery(done),
                first = messages.recv(), if accepts && has_room => match first {
                    Some(first) => self.receive(first, &mut messages),
                    None => is_read = true,
                },
                _ = save.tick() => self.save(),
                _ = tick.tick() => self.progress.tick(),
            }
        }
        // The reader learns by this that nobody listens.
        drop(messages);
        self.finish()
    }

    fn shutdown(&mut self) {
        self.is_stopped = true;
        self.progress.suspend(|| {
            terminal::print_note("stopping: waiting for what is on its way; once more stops at once");
        });
    }

    /// Takes what the reader has told by now, writes down once what must be, and sends the pieces off.
    fn receive(&mut self, first: ReaderMessage, messages: &mut Receiver<ReaderMessage>) {
        let mut next = Some(first);
        let mut chunks: Vec<(usize, u64, Chunk)> = Vec::new();
        let mut must_save = false;
        while let Some(message) = next.take() {
            match message {
                ReaderMessage::Begin { file, entry, is_continued } => {
                    must_save |= self.begin(file, entry, is_continued);
                }
                ReaderMessage::Chunk { file, chunk } => {
                    must_save |= self.record_plan(file, &chunk);
                    let number = self.queue(file, &chunk);
                    chunks.push((file, number, chunk));
                }
                ReaderMessage::End { file, how } => self.steps.push_back(PendingStep::End { file, how }),
            }
            if self.tasks.len() + chunks.len() < MAX_IN_FLIGHT {
                next = messages.try_recv().ok();
            }
        }
        if must_save {
            self.save();
        }
        for (file, number, chunk) in chunks {
            self.send(file, number, chunk);
        }
        self.settle();
    }

    /// True when that has to be written down: which run ingests a file once more.
    fn begin(&mut self, file: usize, entry: Option<Entry>, is_continued: bool) -> bool {
        self.report.begin(file, is_continued);
        let Some(entry) = entry else { return false };
        let is_again = entry.again.is_some();
        if is_again {
            self.ledger.put(&Entry { time: (self.clock)(), ..entry.clone() });
        }
        self.entries.insert(file, entry);
        is_again
    }

    /// True when the end of this piece has to be written down before it is sent.
    fn record_plan(&mut self, file: usize, chunk: &Chunk) -> bool {
        let (Some(_), Some(entry)) = (chunk.plan, self.entries.get_mut(&file)) else { return false };
        entry.add_plan(chunk);
        entry.time = (self.clock)();
        self.ledger.put(entry);
        true
    }

    /// Gives a piece its turn and its number.
    fn queue(&mut self, file: usize, chunk: &Chunk) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let Chunk { span, first_line, .. } = *chunk;
        self.steps.push_back(PendingStep::Chunk { file, number, span, first_line, answer: None });
        number
    }

    fn send(&mut self, file: usize, number: u64, chunk: Chunk) {
        let entry = self.entries.get(&file);
        if entry.is_some_and(|entry| entry.in_parts.contains(&chunk.span.end.position)) {
            return self.send_in_parts(file, number, chunk);
        }
        let (key, delivery) = (self.keys.key(chunk.span.end, entry), Arc::clone(&self.delivery));
        self.tasks.spawn(async move {
            match delivery.deliver(chunk.body.clone(), key).await {
                Ok(answer) => DeliveryOutcome::Accepted { number, answer },
                Err(DeliveryError::TooLarge { .. }) => DeliveryOutcome::TooLarge { file, number, chunk },
                Err(error) => DeliveryOutcome::Failed(delivery.run_failure(error)),
            }
        });
    }

    fn send_in_parts(&mut self, file: usize, number: u64, chunk: Chunk) {
        let key = self.keys.key(chunk.span.end, self.entries.get(&file));
        let delivery = Arc::clone(&self.delivery);
        self.tasks.spawn(async move {
            match delivery.deliver_in_parts(chunk.body, key).await {
                Ok(answer) => DeliveryOutcome::Accepted { number, answer },
                Err(failure) => DeliveryOutcome::Failed(failure),
            }
        });
    }

    /// From now on this piece is sent in parts, by the next run too.
    fn split_chunk(&mut self, file: usize, number: u64, chunk: Chunk) {
        if let Some(entry) = self.entries.get_mut(&file) {
            entry.in_parts.push(chunk.span.end.position);
            entry.time = (self.clock)();
            self.ledger.put(entry);
            self.save();
        }
        self.send_in_parts(file, number, chunk);
    }

    fn handle_delivery(&mut self, done: Result<DeliveryOutcome, tokio::task::JoinError>) {
        match done {
            Ok(DeliveryOutcome::Accepted { number, answer: received }) => {
                let mut steps = self.steps.iter_mut();
                let waiting = steps.find_map(|step| match step {
                    PendingStep::Chunk { number: at, answer, .. } if *at == number => Some(answer),
                    _ => None,
                });
                if let Some(answer) = waiting {
                    *answer = Some(Box::new(received));
                }
                self.settle();
            }
            Ok(DeliveryOutcome::TooLarge { file, number, chunk }) => self.split_chunk(file, number, chunk),
            Ok(DeliveryOutcome::Failed(failure)) => drop(self.failure.get_or_insert(failure)),
            Err(error) => {
                let reason = format!("a piece could not be worked on: {error}; please report this");
                self.failure.get_or_insert(RunFailure { reason, is_directory: false });
            }
        }
    }

    /// Settles what is at its turn.
    fn settle(&mut self) {
        loop {
            match self.steps.front_mut() {
                Some(PendingStep::Chunk { answer: Some(answer), file, span, first_line, .. }) => {
                    let (file, span, first_line) = (*file, *span, *first_line);
                    let answer = std::mem::take(answer);
                    self.steps.pop_front();
                    self.count(file, &span, first_line, &answer);
                }
                Some(PendingStep::End { .. }) => {
                    if let Some(PendingStep::End { file, how }) = self.steps.pop_front() {
                        self.end(file, how);
                    }
                }
                _ => return,
            }
        }
    }

    fn count(&mut self, file: usize, span: &ChunkSpan, first_line: u64, answer: &IngestResponse) {
        let Self { report, progress, .. } = self;
        let notes = report.add(file, first_line, answer);
        if !notes.is_empty() {
            progress.suspend(|| notes.iter().for_each(|note| terminal::print_note(note)));
        }
        if let Some(entry) = self.entries.get_mut(&file) {
            entry.acknowledge(span, answer.accepted + answer.rejected_count, (self.clock)());
            self.ledger.put(entry);
        }
    }

    fn end(&mut self, file: usize, how: InputEnd) {
        if let Some(mut entry) = self.entries.remove(&file)
            && entry.again.take().is_some()
            && matches!(how, InputEnd::Complete)
        {
            self.ledger.put(&entry);
        }
        if let Some(complaint) = self.report.end(file, how) {
            self.progress.suspend(|| terminal::print_error(&complaint));
        }
    }

    /// A ledger that cannot be written is no reason to stop: within a day, keys do the same.
    fn save(&mut self) {
        if let Err(error) = self.ledger.save()
            && self.ledger_failure.is_none()
        {
            self.progress.suspend(|| terminal::print_error(&error.to_string()));
            self.ledger_failure = Some(error);
        }
    }

    fn finish(mut self) -> RunResult {
        self.settle();
        self.ledger_failure = None;
        self.save();
        self.progress.finish();
        self.report.mark_unfinished(if self.is_stopped { FileState::Stopped } else { FileState::Failed });
        let Self { report, failure, ledger_failure, is_stopped, .. } = self;
        RunResult { report, failure, ledger_failure, is_stopped }
    }
}
