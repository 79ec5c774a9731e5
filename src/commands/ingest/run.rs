//! One run: it receives chunks from the reader, sends several at once, and records the acknowledged ones.
//!
//! Invariants:
//! - Chunks are settled in order, whatever the order of the responses; so the ledger never claims more than the part of
//!   a file that was acknowledged without a gap.
//! - The plan of a chunk is durable before the chunk is sent.
//! - However the run ends, the acknowledged chunks are recorded.

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

/// The maximum number of chunks in flight: enough to keep every worker busy while others wait for the disk.
pub(super) const MAX_IN_FLIGHT: usize = 16;
/// The interval at which the ledger is written while there is progress.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// The interval at which the progress bar is updated.
const TICK_EVERY: Duration = Duration::from_millis(100);

/// A chunk that waits for its response, or the end of an input after such chunks.
enum PendingStep {
    Chunk {
        file: usize,
        number: u64,
        span: ChunkSpan,
        first_line: u64,
        response: Option<Box<IngestResponse>>,
    },
    End {
        file: usize,
        how: InputEnd,
    },
}

/// The outcome of sending a chunk.
enum DeliveryOutcome {
    Accepted {
        number: u64,
        response: IngestResponse,
    },
    /// The chunk is too large, so it must be sent in parts.
    TooLarge {
        file: usize,
        number: u64,
        chunk: Chunk,
    },
    Failed(RunFailure),
}

/// The state of a run.
pub(super) struct IngestRun {
    pub(super) delivery: Arc<Delivery>,
    pub(super) ledger: Ledger,
    pub(super) report: Report,
    pub(super) progress: Progress,
    pub(super) keys: IdempotencyKeys,
    pub(super) clock: fn() -> i64,
    steps: VecDeque<PendingStep>,
    tasks: JoinSet<DeliveryOutcome>,
    /// The entries of the files that are being ingested.
    entries: HashMap<usize, Entry>,
    next_number: u64,
    /// The failure after which nothing more is read.
    failure: Option<RunFailure>,
    ledger_failure: Option<LedgerError>,
    is_stopped: bool,
}

/// The result of a run.
pub(super) struct RunResult {
    pub(super) report: Report,
    pub(super) failure: Option<RunFailure>,
    pub(super) ledger_failure: Option<LedgerError>,
    /// True if a signal ended the run.
    pub(super) is_stopped: bool,
}

/// Creates the idempotency keys, by which the destination recognizes chunks that are sent again.
pub(super) struct IdempotencyKeys {
    /// A hash of the defaults for lines.
    pub(super) defaults: u128,
    /// The name of this run, for chunks that must differ from those of other runs.
    pub(super) run: String,
}

impl IdempotencyKeys {
    /// Returns the key of a chunk, which identifies its content and everything before it. A stream cannot be resumed,
    /// so its chunks have new keys in every run.
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

    /// Processes the messages of the reader until the inputs end, a delivery fails or a signal stops the run.
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
        // Dropping the receiver tells the reader that the run is over.
        drop(messages);
        self.finish()
    }

    fn shutdown(&mut self) {
        self.is_stopped = true;
        self.progress.suspend(|| {
            terminal::print_note("stopping: waiting for what is on its way; once more stops at once");
        });
    }

    /// Receives the available messages, saves the ledger once if that is required, and sends the chunks.
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

    /// Begins a file. Returns true when the ledger must be saved, because a run with `--again` starts to ingest the
    /// file.
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

    /// Records the plan of a chunk. Returns true when the ledger must be saved before the chunk is sent.
    fn record_plan(&mut self, file: usize, chunk: &Chunk) -> bool {
        let (Some(_), Some(entry)) = (chunk.plan, self.entries.get_mut(&file)) else { return false };
        entry.add_plan(chunk);
        entry.time = (self.clock)();
        self.ledger.put(entry);
        true
    }

    /// Appends a chunk to the steps, and returns its number.
    fn queue(&mut self, file: usize, chunk: &Chunk) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let Chunk { span, first_line, .. } = *chunk;
        self.steps.push_back(PendingStep::Chunk { file, number, span, first_line, response: None });
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
                Ok(response) => DeliveryOutcome::Accepted { number, response },
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
                Ok(response) => DeliveryOutcome::Accepted { number, response },
                Err(failure) => DeliveryOutcome::Failed(failure),
            }
        });
    }

    /// Sends a chunk in parts, and records that, so that later runs do the same.
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
            Ok(DeliveryOutcome::Accepted { number, response: received }) => {
                let mut steps = self.steps.iter_mut();
                let waiting = steps.find_map(|step| match step {
                    PendingStep::Chunk { number: at, response, .. } if *at == number => Some(response),
                    _ => None,
                });
                if let Some(response) = waiting {
                    *response = Some(Box::new(received));
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

    /// Settles the steps at the front of the queue that are complete.
    fn settle(&mut self) {
        loop {
            match self.steps.front_mut() {
                Some(PendingStep::Chunk { response: Some(response), file, span, first_line, .. }) => {
                    let (file, span, first_line) = (*file, *span, *first_line);
                    let response = std::mem::take(response);
                    self.steps.pop_front();
                    self.count(file, &span, first_line, &response);
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

    fn count(&mut self, file: usize, span: &ChunkSpan, first_line: u64, response: &IngestResponse) {
        let Self { report, progress, .. } = self;
        let notes = report.add(file, first_line, response);
        if !notes.is_empty() {
            progress.suspend(|| notes.iter().for_each(|note| terminal::print_note(note)));
        }
        if let Some(entry) = self.entries.get_mut(&file) {
            entry.acknowledge(span, response.accepted + response.rejected_count, (self.clock)());
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

    /// Saves the ledger. A failure does not stop the run, because for a day the idempotency keys also prevent
    /// duplicates.
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
