//! The report on a run: the state of each file, and the counts of all of them.

mod summary;

use super::ledger::Entry;
use super::reader::InputEnd;
use crate::cli::input::Input;
use crate::cli::terminal::{format_count, sanitize};
use collector::counters::CategoryCounts;
use collector::pipeline::IngestResponse;

/// The number of rejected lines that are reported in full; the others are counted. A wrong file would flood the
/// terminal.
const MAX_REPORTED: u64 = 100;

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileState {
    /// The file has not been read yet.
    NotBegun,
    /// The file is being read.
    Begun,
    /// The whole file is stored.
    Ingested,
    /// The rest of the file, which an earlier run had not stored, is stored.
    Continued,
    /// The file is empty.
    Empty,
    /// The file was stored by an earlier run, or by this one under another name.
    Already,
    /// The file could not be read to its end, or not delivered.
    Failed,
    /// A signal stopped the run before the file was finished.
    Stopped,
}

impl FileState {
    /// Returns the text that is printed.
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

/// The counts of lines and events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) accepted: u64,
    pub(super) events: u64,
    pub(super) unrecognized: u64,
    pub(super) rejected: u64,
}

impl Counts {
    /// Returns the number of lines, without blank ones.
    pub(super) fn lines(&self) -> u64 {
        self.accepted + self.rejected
    }

    fn add(&mut self, response: &IngestResponse) {
        self.accepted += response.accepted;
        self.events += response.events;
        self.unrecognized += response.unrecognized;
        self.rejected += response.rejected_count;
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
    /// The number of rejected lines that were reported in full.
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

    /// Adds the counts of a chunk, and returns the reports on its rejected lines.
    pub(super) fn add(&mut self, file: usize, first_line: u64, response: &IngestResponse) -> Vec<String> {
        let file = &mut self.files[file];
        file.counts.add(response);
        self.total.add(response);
        self.categories.add_all(&response.categories);
        let left = usize::try_from(MAX_REPORTED - self.reported).unwrap_or_default();
        let notes: Vec<String> = response
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

    /// Records the end of a file, and returns an error message if there is one.
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

    /// Sets the state of the files that were begun and not finished when the run ended.
    pub(super) fn mark_unfinished(&mut self, state: FileState) {
        for file in self.files.iter_mut().filter(|file| file.state == FileState::Begun) {
            file.state = state;
        }
    }

    /// Returns true when a file was left out, or could not be read to its end.
    pub(super) fn is_incomplete(&self) -> bool {
        self.files
            .iter()
            .any(|file| !matches!(file.state, FileState::Ingested | FileState::Continued | FileState::Empty))
    }

    /// Returns true when there was input, but none of it could be read.
    pub(super) fn nothing_was_readable(&self) -> bool {
        self.total.rejected > 0 && self.total.accepted == 0
    }

    /// Returns the note that replaces the omitted reports.
    pub(super) fn unreported(&self) -> Option<String> {
        let rest = self.total.rejected.checked_sub(self.reported).filter(|&rest| rest > 0)?;
        Some(format!("... and {} that could not be read", format_count(rest, "more line")))
    }
}

/// Returns the message about a file that was already ingested.
fn already_ingested(name: &str, entry: &Entry) -> String {
    let when = jiff::Timestamp::from_microsecond(entry.time).unwrap_or_default();
    let as_other = if entry.name == name { String::new() } else { format!(" as '{}'", entry.name) };
    format!(
        "'{name}' is already ingested{as_other}, on {} ({}); use --again to ingest it once more",
        when.strftime("%Y-%m-%d %H:%M UTC"),
        format_count(entry.lines, "line")
    )
}
