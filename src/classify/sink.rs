//! Takes what the classifier finds: counts it, and turns it into output.
//!
//! What always holds: a record that yields a thousand events with large attributes is written as it goes, so
//! what is held back stays small.

use super::summary::Summary;
use super::tally::Tally;
use crate::terminal;
use std::io;
use taxonomy::{Call, Event, Reason, Sink, TimeSource};

/// Output is written once this much has gathered.
const FLUSH_BYTES: usize = 256 << 10;

/// Where events go.
pub(super) enum Output {
    /// To stdout, one a line.
    Events {
        /// What is not written yet.
        waiting: String,
        /// One event.
        event: String,
    },
    /// Into tables.
    Summary(Box<Summary>),
}

impl Output {
    pub(super) fn events() -> Self {
        Self::Events { waiting: String::new(), event: String::new() }
    }
}

/// Counts what is found, and passes it on.
pub(super) struct Collector {
    /// The line being classified, counted from 1.
    pub(super) line: u64,
    pub(super) tally: Tally,
    pub(super) output: Output,
    /// Unreadable lines that are still to be reported; never more than are reported in full.
    unreadable: Vec<(u64, Reason)>,
    /// A sink cannot fail, so a failure to write waits here until it is asked for.
    failure: Option<io::Error>,
}

impl Collector {
    pub(super) fn new(output: Output) -> Self {
        Self { line: 0, tally: Tally::default(), output, unreadable: Vec::new(), failure: None }
    }

    /// Writes the events that wait. Also fails when a write before this one did.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)?;
        if let Output::Events { waiting, .. } = &mut self.output
            && !waiting.is_empty()
        {
            terminal::print(waiting.as_bytes())?;
            waiting.clear();
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
            terminal::note(&format!("{}:{line}: {reason}", terminal::safe(input)));
        }
    }
}

impl Sink for Collector {
    fn event(&mut self, event: &Event<'_>) {
        self.tally.events += 1;
        self.tally.bad_times += u64::from(event.context.time_source == TimeSource::Replaced);
        match &mut self.output {
            Output::Summary(summary) => summary.add(event),
            Output::Events { waiting, event: json } => {
                json.clear();
                event.write_json(json, Some(self.line));
                terminal::harmless_json(json);
                waiting.push_str(json);
                waiting.push('\n');
                if waiting.len() >= FLUSH_BYTES {
                    self.failure = self.failure.take().or_else(|| terminal::print(waiting.as_bytes()).err());
                    waiting.clear();
                }
            }
        }
    }

    fn call(&mut self, call: &Call<'_>) {
        self.tally.call(call);
    }

    fn unrecognized(&mut self, reason: Reason) {
        if self.tally.refuse(reason) {
            self.unreadable.push((self.line, reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_failed_is_not_forgotten() {
        let mut collector = Collector::new(Output::events());
        assert!(collector.flush().is_ok());
        collector.failure = Some(io::ErrorKind::StorageFull.into());
        assert!(collector.flush().is_err());
    }
}
