//! What is counted on every run, whatever is printed: lines, events, calls, and what could not be used.

use crate::terminal::counted;
use std::collections::BTreeMap;
use std::fmt;
use taxonomy::{Call, Outcome, Reason};

/// Unreadable lines that are reported in full; the rest are counted. A wrong file would flood the terminal.
const REPORTED: u64 = 100;

/// The counts of one run.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) lines: u64,
    pub(super) events: u64,
    /// Calls by how they went.
    pub(super) worked: u64,
    pub(super) waiting_for_input: u64,
    pub(super) failed: u64,
    pub(super) hidden: u64,
    /// Events whose own time is unreadable or far ahead.
    pub(super) bad_times: u64,
    /// Records that could not be used, by reason.
    unreadable: BTreeMap<&'static str, u64>,
    unrecognized: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub(super) fn call(&mut self, call: &Call<'_>) {
        match call.outcome {
            Outcome::Ok => self.worked += call.count,
            Outcome::InputRequired => self.waiting_for_input += call.count,
            Outcome::Failed => self.failed += call.count,
            Outcome::Hidden => self.hidden += call.count,
        }
    }

    /// Counts a record that could not be used; true when it is to be reported in full.
    pub(super) fn refuse(&mut self, reason: Reason) -> bool {
        let list = if reason.is_unreadable() { &mut self.unreadable } else { &mut self.unrecognized };
        *list.entry(reason.as_str()).or_default() += 1;
        reason.is_unreadable() && total(&self.unreadable) <= REPORTED
    }

    /// The line that stands for the reports that were left out.
    pub(super) fn unreported(&self) -> Option<String> {
        let rest = total(&self.unreadable).checked_sub(REPORTED).filter(|&rest| rest > 0)?;
        Some(format!("... and {} that could not be read", counted(rest, "more line")))
    }

    /// True when there was input, but nothing in it that could be read.
    pub(super) fn nothing_was_readable(&self) -> bool {
        let calls = self.worked + self.waiting_for_input + self.failed + self.hidden;
        let readable = self.events + calls + total(&self.unrecognized);
        total(&self.unreadable) > 0 && readable == 0
    }
}

fn total(counts: &BTreeMap<&'static str, u64>) -> u64 {
    counts.values().sum()
}

/// The note at the end of a run.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", counted(self.lines, "line"))?;
        write!(f, "{}, ", counted(self.events, "event"))?;
        write!(f, "{} that worked, ", counted(self.worked, "call"))?;
        if self.waiting_for_input > 0 {
            write!(f, "{} for more input, ", counted(self.waiting_for_input, "request"))?;
        }
        write!(f, "{}", counted(self.hidden, "hidden failure"))?;
        write_reasons(f, "unreadable", &self.unreadable)?;
        write_reasons(f, "unrecognized", &self.unrecognized)?;
        if self.bad_times > 0 {
            write!(f, "; {} with an unusable time", counted(self.bad_times, "event"))?;
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
