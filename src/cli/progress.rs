//! The progress display of a command on stderr.
//!
//! Invariants: nothing is drawn unless stderr is a terminal and the work takes a noticeable time, and nothing that was
//! drawn remains on the screen.

use crate::cli::input::Input;
use crate::cli::terminal::sanitize;
use indicatif::{ProgressBar, ProgressBarIter, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Read};
use std::time::Duration;

const BAR_TEMPLATE: &str = "{bytes:>10} of {total_bytes} [{bar:30}] {bytes_per_sec}, {eta} left  {wide_msg}";
const SPINNER_TEMPLATE: &str = "{spinner} {bytes} {bytes_per_sec}  {wide_msg}";

/// The delay before a bar is drawn. Work that ends sooner needs none, and a flashing bar would garble the output of
/// `head`.
const BAR_DELAY: Duration = Duration::from_millis(300);

/// The delay before a spinner is drawn.
const SPINNER_DELAY: Duration = Duration::from_millis(500);

/// Reports read bytes to the progress bar, from any thread.
#[derive(Clone)]
pub(crate) struct ProgressHandle(ProgressBar);

impl ProgressHandle {
    /// Wraps a reader so that the bytes it reads are counted, before they are decompressed.
    pub(crate) fn wrap_read<R: Read>(&self, reader: R) -> ProgressBarIter<R> {
        self.0.wrap_read(reader)
    }

    /// Shows the name of the input that is being read.
    pub(crate) fn set_input(&self, input: &Input) {
        self.0.set_message(sanitize(&input.name).into_owned());
    }

    /// Returns the number of bytes that have been read.
    pub(crate) fn position(&self) -> u64 {
        self.0.position()
    }

    /// Resets the position to an earlier one, because the input is read again from there.
    pub(crate) fn rewind_to(&self, position: u64) {
        self.0.set_position(position);
    }
}

/// A progress bar, which may be hidden.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// True if the bar has yet to be drawn, after a delay.
    pending: bool,
}

impl Progress {
    /// Returns a bar that is never drawn.
    pub(crate) fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), pending: false }
    }

    /// Returns a bar for these inputs. It is hidden if stderr is not a terminal, or if stdin is among the inputs.
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

    /// Draws the bar once its delay has passed. Callers call this repeatedly.
    pub(crate) fn tick(&mut self) {
        if self.pending && self.bar.elapsed() >= BAR_DELAY {
            self.pending = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Returns the handle with which readers report the bytes that they read.
    pub(crate) fn handle(&self) -> ProgressHandle {
        ProgressHandle(self.bar.clone())
    }

    /// Runs `write`, which writes to the terminal, while the bar is not on the screen.
    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Removes the bar from the screen.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Removes the bar also if the command ends early, because the reader of stdout closed it.
impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A spinner for work of unknown length, drawn if the work takes long and stderr is a terminal.
pub(crate) struct Spinner {
    bar: ProgressBar,
    pending: bool,
}

impl Spinner {
    /// Creates a spinner with a hint about how to end the work. It is drawn only if stderr is a terminal.
    pub(crate) fn new(hint: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
        let bar =
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())).with_message(hint);
        Self { bar, pending: io::stderr().is_terminal() }
    }

    /// Draws the spinner once its delay has passed. Callers call this repeatedly.
    pub(crate) fn tick(&mut self) {
        if self.pending && self.bar.elapsed() >= SPINNER_DELAY {
            self.pending = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.tick();
    }

    /// Removes the spinner from the screen for good.
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
