//! Counters of every run, whatever the output: lines, events, calls, and unusable lines.

use crate::cli::terminal::format_count;
use classifier::{Call, Outcome, UnrecognizedReason};
use std::collections::BTreeMap;
use std::fmt;

/// The number of unreadable lines that are reported in full; the others are counted. A wrong file would flood the
/// terminal.
const MAX_REPORTED: u64 = 100;

/// The counts of one run.
#[derive(Debug, Default)]
pub(super) struct RunStats {
    pub(super) lines: u64,
    pub(super) events: u64,
    /// The calls by their outcome.
    pub(super) succeeded: u64,
    pub(super) input_required: u64,
    pub(super) pending: u64,
    pub(super) failed: u64,
    pub(super) hidden: u64,
    /// The number of events whose own timestamp is unreadable or far in the future.
    pub(super) bad_timestamps: u64,
    /// The number of records that could not be used, by reason.
    unreadable: BTreeMap<&'static str, u64>,
    unrecognized: BTreeMap<&'static str, u64>,
}

impl RunStats {
    pub(super) fn count_call(&mut self, count_call: &Call<'_>) {
        match count_call.outcome {
            Outcome::Ok => self.succeeded += count_call.count,
            Outcome::InputRequired => self.input_required += count_call.count,
            Outcome::Pending => self.pending += count_call.count,
            Outcome::Failed => self.failed += count_call.count,
            Outcome::Hidden => self.hidden += count_call.count,
        }
    }

    /// Counts a record that could not be used. Returns true when it is to be reported in full.
    pub(super) fn count_unusable(&mut self, reason: UnrecognizedReason) -> bool {
        let list = if reason.is_unreadable() { &mut self.unreadable } else { &mut self.unrecognized };
        *list.entry(reason.as_str()).or_default() += 1;
        reason.is_unreadable() && total(&self.unreadable) <= MAX_REPORTED
    }

    /// Returns the note that replaces the omitted reports.
    pub(super) fn unreported(&self) -> Option<String> {
        let rest = total(&self.unreadable).checked_sub(MAX_REPORTED).filter(|&rest| rest > 0)?;
        Some(format!("... and {} that could not be read", format_count(rest, "more line")))
    }

    /// Returns true when there was input, but none of it could be read.
    pub(super) fn nothing_was_readable(&self) -> bool {
        let calls = self.succeeded + self.input_required + self.pending + self.failed + self.hidden;
        let readable = self.events + calls + total(&self.unrecognized);
        total(&self.unreadable) > 0 && readable == 0
    }
}

fn total(counts: &BTreeMap<&'static str, u64>) -> u64 {
    counts.values().sum()
}

/// Formats the note at the end of a run.
impl fmt::Display for RunStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", format_count(self.lines, "line"))?;
        write!(f, "{}, ", format_count(self.events, "event"))?;
        write!(f, "{} that worked, ", format_count(self.succeeded, "call"))?;
        if self.input_required > 0 {
            write!(f, "{} for more input, ", format_count(self.input_required, "request"))?;
        }
        if self.pending > 0 {
            write!(f, "{} pending, ", format_count(self.pending, "task"))?;
        }
        write!(f, "{}", format_count(self.hidden, "hidden failure"))?;
        write_reasons(f, "unreadable", &self.unreadable)?;
        write_reasons(f, "unrecognized", &self.unrecognized)?;
        if self.bad_timestamps > 0 {
            write!(f, "; {} with an unusable time", format_count(self.bad_timestamps, "event"))?;
        }
        Ok(())
    }
}

fn write_reasons(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    reasons: &BTreeMap<&'static str, u64>,
) -> fmt::Result {
    write!(f, "; {} {what}", indicatif::HumanCount(total(reasons)))?;
    let list: Vec<String> =
        reasons.iter().map(|(reason, &count)| format!("{reason} {}", indicatif::HumanCount(count))).collect();
    if list.is_empty() { Ok(()) } else { write!(f, " ({})", list.join(", ")) }
}
