//! How far we are, on stderr, for a person who waits.
//!
//! What always holds: nothing is drawn unless files are read and stderr is a terminal, and nothing of it is
//! left behind.

use super::input::Input;
use crate::terminal::safe;
use indicatif::{ProgressBar, ProgressBarIter, ProgressStyle};
use std::io::{self, IsTerminal, Read};

const KNOWN: &str = "{bytes:>10} of {total_bytes} [{bar:30}] {bytes_per_sec}, {eta} left  {wide_msg}";
const ENDLESS: &str = "{spinner} {bytes} {bytes_per_sec}  {wide_msg}";

/// A progress bar, or none.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// No bar.
    pub(super) fn none() -> Self {
        Self(ProgressBar::hidden())
    }

    /// A bar for these inputs, if anybody can see it.
    pub(super) fn over(inputs: &[Input]) -> Self {
        if inputs.iter().any(Input::is_stdin) || !io::stderr().is_terminal() {
            return Self::none();
        }
        // A pipe has no length.
        let total: Option<u64> = inputs.iter().map(Input::bytes).sum();
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        let style = ProgressStyle::with_template(if total.is_some() { KNOWN } else { ENDLESS });
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")))
    }

    /// Counts what is read, before it is unpacked.
    pub(super) fn watch<R: Read>(&self, reader: R) -> ProgressBarIter<R> {
        self.0.wrap_read(reader)
    }

    /// Says which input is read.
    pub(super) fn at(&self, input: &Input) {
        self.0.set_message(safe(&input.name).into_owned());
    }

    /// Writes something else to the terminal, without the bar in between.
    pub(super) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
