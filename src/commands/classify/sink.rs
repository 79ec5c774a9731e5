//! The sink of the classifier: it counts the results, and turns them into output.
//!
//! Invariant: a record that yields a thousand events with large attributes is written in parts, so the pending output
//! stays small.

use super::stats::RunStats;
use super::summary::Summary;
use crate::cli::terminal;
use classifier::{Call, Event, Sink, TimeSource, UnrecognizedReason};
use std::io;

/// The number of pending bytes at which output is written.
const FLUSH_BYTES: usize = 256 << 10;

/// The destination of events.
pub(super) enum Output {
    /// Events are printed to stdout, one per line.
    Events {
        /// The output that is not written yet.
        pending: String,
        /// The buffer for one event.
        event: String,
    },
    /// Events are counted for the summary.
    Summary(Box<Summary>),
}

impl Output {
    pub(super) fn events() -> Self {
        Self::Events { pending: String::new(), event: String::new() }
    }
}

/// Counts the results of the classifier, and passes events to the output.
pub(super) struct EventSink {
    /// The number of the current line, from 1.
    pub(super) line: u64,
    pub(super) stats: RunStats,
    pub(super) output: Output,
    /// The unreadable lines that are still to be reported; there are never more than are reported in full.
    unreadable: Vec<(u64, UnrecognizedReason)>,
    /// A failed write. The methods of a sink cannot return errors, so it is kept here until the next `flush`.
    failure: Option<io::Error>,
}

impl EventSink {
    pub(super) fn new(output: Output) -> Self {
        Self { line: 0, stats: RunStats::default(), output, unreadable: Vec::new(), failure: None }
    }

    /// Writes the pending events. It also fails if an earlier write failed.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)?;
        if let Output::Events { pending, .. } = &mut self.output
            && !pending.is_empty()
        {
            terminal::write_stdout(pending.as_bytes())?;
            pending.clear();
        }
        Ok(())
    }

    /// Returns true when there are unreadable lines to report.
    pub(super) fn has_reports(&self) -> bool {
        !self.unreadable.is_empty()
    }

    /// Reports the lines of this input that could not be read.
    pub(super) fn report(&mut self, input: &str) {
        for (line, reason) in self.unreadable.drain(..) {
            terminal::print_note(&format!("{}:{line}: {reason}", terminal::sanitize(input)));
        }
    }
}

impl Sink for EventSink {
    fn event(&mut self, event: &Event<'_>) {
        self.stats.events += 1;
        self.stats.bad_timestamps += u64::from(event.context.time_source == TimeSource::Replaced);
        match &mut self.output {
            Output::Summary(summary) => summary.add(event),
            Output::Events { pending, event: json } => {
                json.clear();
                event.write_json(json, Some(self.line));
                terminal::sanitize_json(json);
                pending.push_str(json);
                pending.push('\n');
                if pending.len() >= FLUSH_BYTES {
                    self.failure =
                        self.failure.take().or_else(|| terminal::write_stdout(pending.as_bytes()).err());
                    pending.clear();
                }
            }
        }
    }

    fn call(&mut self, call: &Call<'_>) {
        self.stats.count_call(call);
    }

    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        if self.stats.count_unusable(reason) {
            self.unreadable.push((self.line, reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_failed_is_not_forgotten() {
        let mut sink = EventSink::new(Output::events());
        assert!(sink.flush().is_ok());
        sink.failure = Some(io::ErrorKind::StorageFull.into());
        assert!(sink.flush().is_err());
    }
}
