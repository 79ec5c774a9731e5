//! The progress of a command on stderr, for a person who waits.
//!
//! What always holds: nothing is drawn unless files are read and stderr is a terminal, nor for work that is done
//! in a moment, and nothing of it is left behind.

use crate::cli::input::Input;
use crate::cli::terminal::sanitize;
use indicatif::{ProgressBar, ProgressBarIter, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Read};
use std::time::Duration;

const BAR_TEMPLATE: &str = "{bytes:>10} of {total_bytes} [{bar:30}] {bytes_per_sec}, {eta} left  {wide_msg}";
const SPINNER_TEMPLATE: &str = "{spinner} {bytes} {bytes_per_sec}  {wide_msg}";

/// Nobody waits for less than this, and a bar that flashes by would only spoil what `head` prints.
const BAR_DELAY: Duration = Duration::from_millis(300);

/// Somebody who waits for an answer wonders after this.
const SPINNER_DELAY: Duration = Duration::from_millis(500);

/// Reports read bytes to the progress bar, from any thread.
#[derive(Clone)]
pub(crate) struct ProgressHandle(ProgressBar);

impl ProgressHandle {
    /// Counts what is read, before it is unpacked.
    pub(crate) fn wrap_read<R: Read>(&self, reader: R) -> ProgressBarIter<R> {
        self.0.wrap_read(reader)
    }

    /// Says which input is read.
    pub(crate) fn set_input(&self, input: &Input) {
        self.0.set_message(sanitize(&input.name).into_owned());
    }

    /// Returns the number of bytes that have been read.
    pub(crate) fn position(&self) -> u64 {
        self.0.position()
    }

    /// Goes back to an earlier position, to read from there once more.
    pub(crate) fn rewind_to(&self, position: u64) {
        self.0.set_position(position);
    }
}

/// A progress bar, or none.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// To be drawn once it has been worth it.
    pending: bool,
}

impl Progress {
    /// No bar.
    pub(crate) fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), pending: false }
    }

    /// A bar for these inputs, if anybody can see it.
    pub(crate) fn for_inputs(inputs: &[Input]) -> Self {
        if inputs.iter().any(Input::is_stdin) || !io::stderr().is_terminal() {
            return Self::hidden();
        }
        // A pipe has no length.
        let total: Option<u64> = inputs.iter().map(Input::bytes).sum();
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        let style =
            ProgressStyle::with_template(if total.is_some() { BAR_TEMPLATE } else { SPINNER_TEMPLATE });
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
        Self { bar: bar.with_style(style), pending: true }
    }

    /// Called now and then: draws the bar when its time has come.
    pub(crate) fn tick(&mut self) {
        if self.pending && self.bar.elapsed() >= BAR_DELAY {
            self.pending = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Returns the handle with which readers report what they read.
    pub(crate) fn handle(&self) -> ProgressHandle {
        ProgressHandle(self.bar.clone())
    }

    /// Writes something else to the terminal, without the bar in between.
    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Also when we stop early, because nobody reads our output any more.
impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A spinner for work of unknown length, drawn when it takes long and stderr is a terminal.
pub(crate) struct Spinner {
    bar: ProgressBar,
    pending: bool,
}

impl Spinner {
    /// A spinner, if anybody can see it, with how to end the work.
    pub(crate) fn new(hint: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
        let bar =
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())).with_message(hint);
        Self { bar, pending: io::stderr().is_terminal() }
    }

    /// Called now and then: draws it when its time has come.
    pub(crate) fn tick(&mut self) {
        if self.pending && self.bar.elapsed() >= SPINNER_DELAY {
            self.pending = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.tick();
    }

    /// Takes it away, for good.
    pub(crate) fn finish(&mut self) {
        self.pending = false;
        self.bar.finish_and_clear();
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.finish();
    }
}
