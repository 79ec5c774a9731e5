//! Takes what the classifier finds: counts it, and turns it into output.
//!
//! What always holds: a record that yields a thousand events with large attributes is written as it goes, so
//! what is held back stays small.

use super::stats::RunStats;
use super::summary::Summary;
use crate::cli::terminal;
use classifier::{Call, Event, Sink, TimeSource, UnrecognizedReason};
use std::io;

/// Output is written once this much has gathered.
const FLUSH_BYTES: usize = 256 << 10;

/// The destination of events.
pub(super) enum Output {
    /// To stdout, one a line.
    Events {
        /// Output that is not written yet.
        pending: String,
        /// One event.
        event: String,
    },
    /// Into tables.
    Summary(Box<Summary>),
}

impl Output {
    pub(super) fn events() -> Self {
        Self::Events { pending: String::new(), event: String::new() }
    }
}

/// Counts what is found, and passes it on.
pub(super) struct EventSink {
    /// The line being classified, counted from 1.
    pub(super) line: u64,
    pub(super) stats: RunStats,
    pub(super) output: Output,
    /// Unreadable lines that are still to be reported; never more than are reported in full.
    unreadable: Vec<(u64, UnrecognizedReason)>,
    /// A sink cannot fail, so a failure to write waits here until it is asked for.
    failure: Option<io::Error>,
}

impl EventSink {
    pub(super) fn new(output: Output) -> Self {
        Self { line: 0, stats: RunStats::default(), output, unreadable: Vec::new(), failure: None }
    }

    /// Writes the events that wait. Also fails when a write before this one did.
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

    /// True when lines are to be reported.
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
