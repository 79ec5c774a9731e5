//! One run: takes pieces from the reader, has several on their way at once, and writes down what was acknowledged.
//!
//! What always holds:
//! - Pieces are settled in their order, whatever order they are answered in; so the ledger never claims more than the
//!   part of a file that was acknowledged without a gap.
//! - What has to be written down before a piece is sent is durable by then.
//! - However the run ends, what was acknowledged is written down.

use super::destination::{Delivery, No, Undelivered};
use super::ledger::{Entry, Ledger, LedgerError};
use super::pieces::{Piece, Span};
use super::reader::{Ended, Told};
use super::report::{Report, State};
use super::text::Mark;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::terminal;
use collector::pipeline::Answer;
use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Pieces on their way at once: enough to keep every worker busy while others wait for the disk.
pub(super) const ON_THEIR_WAY: usize = 16;
/// How often the ledger is written while there is progress.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// How often somebody looks at the progress bar.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A piece or an end that waits for its turn.
enum Step {
    Piece { file: usize, number: u64, span: Span, first_line: u64, answer: Option<Answer> },
    End { file: usize, how: Ended },
}

/// What became of a piece on its way.
enum Delivered {
    Taken {
        number: u64,
        answer: Answer,
    },
    /// To be sent in parts.
    TooLarge {
        file: usize,
        number: u64,
        piece: Piece,
    },
    Failed(Undelivered),
}

/// Everything a run works with.
pub(super) struct Run {
    pub(super) delivery: Arc<Delivery>,
    pub(super) ledger: Ledger,
    pub(super) report: Report,
    pub(super) progress: Progress,
    pub(super) keys: Keys,
    pub(super) clock: fn() -> i64,
    steps: VecDeque<Step>,
    tasks: JoinSet<Delivered>,
    /// The entries of the files that were begun.
    entries: HashMap<usize, Entry>,
    next_number: u64,
    /// Why nothing more is taken.
    failure: Option<Undelivered>,
    ledger_failure: Option<LedgerError>,
    is_stopped: bool,
}

/// How a run ended.
pub(super) struct Ending {
    pub(super) report: Report,
    pub(super) failure: Option<Undelivered>,
    pub(super) ledger_failure: Option<LedgerError>,
    /// A signal ended it.
    pub(super) is_stopped: bool,
}

/// Makes the keys under which pieces are known when they come again.
pub(super) struct Keys {
    /// What holds for lines that do not say, as a number.
    pub(super) defaults: u128,
    /// The name of this run: for what must not be taken for what another run has sent.
    pub(super) run: String,
}

impl Keys {
    /// A key says what a piece holds and everything before it. A stream has no place where it could go on, so what it
    /// gives is new in every run.
    fn key(&self, end: Mark, entry: Option<&Entry>) -> String {
        let run = entry.map_or(Some(self.run.as_str()), |entry| entry.again.as_deref());
        let run = run.map(|run| format!("-{run}")).unwrap_or_default();
        format!("ingest-{:032x}-{:032x}{run}-", end.hash.0, self.defaults)
    }
}

impl Run {
    pub(super) fn new(
        delivery: Delivery,
        ledger: Ledger,
        report: Report,
        progress: Progress,
        keys: Keys,
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
    pub(super) async fn drive(mut self, mut told: Receiver<Told>, stop: &Stop) -> Ending {
        let (mut asked, mut insisted) = (pin!(stop.asked()), pin!(stop.insisted()));
        let (mut save, mut look) = (interval(SAVE_EVERY), interval(LOOK_EVERY));
        save.set_missed_tick_behavior(MissedTickBehavior::Delay);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_read = false;
        loop {
            let takes = !is_read && !self.is_stopped && self.failure.is_none();
            if !takes && self.tasks.is_empty() {
                break;
            }
            let has_room = self.tasks.len() < ON_THEIR_WAY;
            tokio::select! {
                () = &mut insisted => break,
                () = &mut asked, if !self.is_stopped => self.stop(),
                Some(done) = self.tasks.join_next() => self.answered(done),
                first = told.recv(), if takes && has_room => match first {
                    Some(first) => self.take(first, &mut told),
                    None => is_read = true,
                },
                _ = save.tick() => self.save(),
                _ = look.tick() => self.progress.tick(),
            }
        }
        // The reader learns by this that nobody listens.
        drop(told);
        self.finish()
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.progress
            .aside(|| terminal::note("stopping: waiting for what is on its way; once more stops at once"));
    }

    /// Takes what the reader has told by now, writes down once what must be, and sends the pieces off.
    fn take(&mut self, first: Told, told: &mut Receiver<Told>) {
        let mut next = Some(first);
        let mut pieces: Vec<(usize, u64, Piece)> = Vec::new();
        let mut must_save = false;
        while let Some(message) = next.take() {
            match message {
                Told::Begin { file, entry, is_continued } => {
                    must_save |= self.begin(file, entry, is_continued);
                }
                Told::Piece { file, piece } => {
                    must_save |= self.announce(file, &piece);
                    let number = self.queue(file, &piece);
                    pieces.push((file, number, piece));
                }
                Told::End { file, how } => self.steps.push_back(Step::End { file, how }),
            }
            if self.tasks.len() + pieces.len() < ON_THEIR_WAY {
                next = told.try_recv().ok();
            }
        }
        if must_save {
            self.save();
        }
        for (file, number, piece) in pieces {
            self.send(file, number, piece);
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
    fn announce(&mut self, file: usize, piece: &Piece) -> bool {
        let (Some(_), Some(entry)) = (piece.plan, self.entries.get_mut(&file)) else { return false };
        entry.announce(piece);
        entry.time = (self.clock)();
        self.ledger.put(entry);
        true
    }

    /// Gives a piece its turn and its number.
    fn queue(&mut self, file: usize, piece: &Piece) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let Piece { span, first_line, .. } = *piece;
        self.steps.push_back(Step::Piece { file, number, span, first_line, answer: None });
        number
    }

    fn send(&mut self, file: usize, number: u64, piece: Piece) {
        let entry = self.entries.get(&file);
        if entry.is_some_and(|entry| entry.in_parts.contains(&piece.span.end.position)) {
            return self.send_in_parts(file, number, piece);
        }
        let (key, delivery) = (self.keys.key(piece.span.end, entry), Arc::clone(&self.delivery));
        self.tasks.spawn(async move {
            match delivery.deliver(piece.body.clone(), key).await {
                Ok(answer) => Delivered::Taken { number, answer },
                Err(No::TooLarge { .. }) => Delivered::TooLarge { file, number, piece },
                Err(no) => Delivered::Failed(delivery.undelivered(no)),
            }
        });
    }

    fn send_in_parts(&mut self, file: usize, number: u64, piece: Piece) {
        let key = self.keys.key(piece.span.end, self.entries.get(&file));
        let delivery = Arc::clone(&self.delivery);
        self.tasks.spawn(async move {
            match delivery.deliver_in_parts(piece.body, key).await {
                Ok(answer) => Delivered::Taken { number, answer },
                Err(failure) => Delivered::Failed(failure),
            }
        });
    }

    /// From now on this piece is sent in parts, by the next run too.
    fn cut_up(&mut self, file: usize, number: u64, piece: Piece) {
        if let Some(entry) = self.entries.get_mut(&file) {
            entry.in_parts.push(piece.span.end.position);
            entry.time = (self.clock)();
            self.ledger.put(entry);
            self.save();
        }
        self.send_in_parts(file, number, piece);
    }

    fn answered(&mut self, done: Result<Delivered, tokio::task::JoinError>) {
        match done {
            Ok(Delivered::Taken { number, answer: given }) => {
                let mut steps = self.steps.iter_mut();
                let waiting = steps.find_map(|step| match step {
                    Step::Piece { number: at, answer, .. } if *at == number => Some(answer),
                    _ => None,
                });
                if let Some(answer) = waiting {
                    *answer = Some(given);
                }
                self.settle();
            }
            Ok(Delivered::TooLarge { file, number, piece }) => self.cut_up(file, number, piece),
            Ok(Delivered::Failed(failure)) => drop(self.failure.get_or_insert(failure)),
            Err(error) => {
                let reason = format!("a piece could not be worked on: {error}; please report this");
                self.failure.get_or_insert(Undelivered { reason, is_directory: false });
            }
        }
    }

    /// Settles what is at its turn.
    fn settle(&mut self) {
        loop {
            match self.steps.front_mut() {
                Some(Step::Piece { answer: Some(answer), file, span, first_line, .. }) => {
                    let (file, span, first_line) = (*file, *span, *first_line);
                    let answer = std::mem::take(answer);
                    self.steps.pop_front();
                    self.count(file, &span, first_line, &answer);
                }
                Some(Step::End { .. }) => {
                    if let Some(Step::End { file, how }) = self.steps.pop_front() {
                        self.end(file, how);
                    }
                }
                _ => return,
            }
        }
    }

    fn count(&mut self, file: usize, span: &Span, first_line: u64, answer: &Answer) {
        let Self { report, progress, .. } = self;
        let notes = report.add(file, first_line, answer);
        if !notes.is_empty() {
            progress.aside(|| notes.iter().for_each(|note| terminal::note(note)));
        }
        if let Some(entry) = self.entries.get_mut(&file) {
            entry.add(span, answer.accepted + answer.rejected_count, (self.clock)());
            self.ledger.put(entry);
        }
    }

    fn end(&mut self, file: usize, how: Ended) {
        if let Some(mut entry) = self.entries.remove(&file)
            && entry.again.take().is_some()
            && matches!(how, Ended::Whole)
        {
            self.ledger.put(&entry);
        }
        if let Some(complaint) = self.report.end(file, how) {
            self.progress.aside(|| terminal::complain(&complaint));
        }
    }

    /// A ledger that cannot be written is no reason to stop: within a day, keys do the same.
    fn save(&mut self) {
        if let Err(error) = self.ledger.save()
            && self.ledger_failure.is_none()
        {
            self.progress.aside(|| terminal::complain(&error.to_string()));
            self.ledger_failure = Some(error);
        }
    }

    fn finish(mut self) -> Ending {
        self.settle();
        self.ledger_failure = None;
        self.save();
        self.progress.end();
        self.report.leave(if self.is_stopped { State::Stopped } else { State::Failed });
        let Self { report, failure, ledger_failure, is_stopped, .. } = self;
        Ending { report, failure, ledger_failure, is_stopped }
    }
}
