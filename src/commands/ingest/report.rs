//! What became of each file, and what was found in all of them: the summary at the end.

mod summary;

use super::ledger::Entry;
use super::reader::InputEnd;
use crate::cli::input::Input;
use crate::cli::terminal::{format_count, sanitize};
use collector::counters::CategoryCounts;
use collector::pipeline::IngestResponse;

/// Rejected lines that are reported in full; the rest are counted. A wrong file would flood the terminal.
const MAX_REPORTED: u64 = 100;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileState {
    /// Its turn has not come.
    NotBegun,
    /// It is being read.
    Begun,
    /// All of it is stored.
    Ingested,
    /// What an earlier run had left of it is stored, too.
    Continued,
    /// There is nothing in it.
    Empty,
    /// An earlier run stored it, or this one under another name.
    Already,
    /// It could not be read to its end, or not delivered.
    Failed,
    /// A signal came first.
    Stopped,
}

impl FileState {
    /// As it is printed.
    fn as_str(self) -> &'static str {
        match self {
            Self::NotBegun => "not begun",
            Self::Begun => "begun",
            Self::Ingested => "ingested",
            Self::Continued => "continued",
            Self::Empty => "empty",
            Self::Already => "already ingested",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) accepted: u64,
    pub(super) events: u64,
    pub(super) unrecognized: u64,
    pub(super) rejected: u64,
}

impl Counts {
    /// Lines, without blank ones.
    pub(super) fn lines(&self) -> u64 {
        self.accepted + self.rejected
    }

    fn add(&mut self, answer: &IngestResponse) {
        self.accepted += answer.accepted;
        self.events += answer.events;
        self.unrecognized += answer.unrecognized;
        self.rejected += answer.rejected_count;
    }
}

#[derive(Debug)]
struct FileReport {
    name: String,
    state: FileState,
    is_continued: bool,
    counts: Counts,
}

/// The report on a run.
#[derive(Debug)]
pub(super) struct Report {
    files: Vec<FileReport>,
    total: Counts,
    categories: CategoryCounts,
    /// Rejected lines that were reported in full.
    reported: u64,
}

impl Report {
    pub(super) fn new(inputs: &[Input]) -> Self {
        let file = |input: &Input| FileReport {
            name: input.name.clone(),
            state: FileState::NotBegun,
            is_continued: false,
            counts: Counts::default(),
        };
        Self {
            files: inputs.iter().map(file).collect(),
            total: Counts::default(),
            categories: CategoryCounts::default(),
            reported: 0,
        }
    }

    pub(super) fn total(&self) -> &Counts {
        &self.total
    }

    pub(super) fn begin(&mut self, file: usize, is_continued: bool) {
        let file = &mut self.files[file];
        (file.state, file.is_continued) = (FileState::Begun, is_continued);
    }

    /// Counts what a piece brought; gives back the lines that are to be reported.
    pub(super) fn add(&mut self, file: usize, first_line: u64, answer: &IngestResponse) -> Vec<String> {
        let file = &mut self.files[file];
        file.counts.add(answer);
        self.total.add(answer);
        self.categories.add_all(&answer.categories);
        let left = usize::try_from(MAX_REPORTED - self.reported).unwrap_or_default();
        let notes: Vec<String> = answer
            .rejected
            .iter()
            .take(left)
            .map(|rejected_line| {
                format!(
                    "{}:{}: {}",
                    sanitize(&file.name),
                    first_line + rejected_line.line - 1,
                    rejected_line.reason
                )
            })
            .collect();
        self.reported += notes.len() as u64;
        notes
    }

    /// A file is over; gives back what is to be complained about.
    pub(super) fn end(&mut self, file: usize, end: InputEnd) -> Option<String> {
        let file = &mut self.files[file];
        let (state, error) = match end {
            InputEnd::Complete if file.counts == Counts::default() && !file.is_continued => {
                (FileState::Empty, None)
            }
            InputEnd::Complete if file.is_continued => (FileState::Continued, None),
            InputEnd::Complete => (FileState::Ingested, None),
            InputEnd::AlreadyIngested(entry) => {
                (FileState::Already, Some(already_ingested(&file.name, &entry)))
            }
            InputEnd::DuplicateOf(other) => (
                FileState::Already,
                Some(format!("'{}' is the same as '{other}', which is ingested", file.name)),
            ),
            InputEnd::Failed(reason) => (FileState::Failed, Some(reason)),
        };
        file.state = state;
        error
    }

    /// The run is over: what of the files was not finished is left in this state.
    pub(super) fn mark_unfinished(&mut self, state: FileState) {
        for file in self.files.iter_mut().filter(|file| file.state == FileState::Begun) {
            file.state = state;
        }
    }

    /// True when a file was left out, or could not be read to its end.
    pub(super) fn is_incomplete(&self) -> bool {
        self.files
            .iter()
            .any(|file| !matches!(file.state, FileState::Ingested | FileState::Continued | FileState::Empty))
    }

    /// True when there was input, but nothing in it that could be read.
    pub(super) fn nothing_was_readable(&self) -> bool {
        self.total.rejected > 0 && self.total.accepted == 0
    }

    /// The line that stands for the reports that were left out.
    pub(super) fn unreported(&self) -> Option<String> {
        let rest = self.total.rejected.checked_sub(self.reported).filter(|&rest| rest > 0)?;
        Some(format!("... and {} that could not be read", format_count(rest, "more line")))
    }
}

/// What is said about a file that is known.
fn already_ingested(name: &str, entry: &Entry) -> String {
    let when = jiff::Timestamp::from_microsecond(entry.time).unwrap_or_default();
    let as_other = if entry.name == name { String::new() } else { format!(" as '{}'", entry.name) };
    format!(
        "'{name}' is already ingested{as_other}, on {} ({}); use --again to ingest it once more",
        when.strftime("%Y-%m-%d %H:%M UTC"),
        format_count(entry.lines, "line")
    )
}
