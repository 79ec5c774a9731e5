//! Tests that the number of rows is bounded, and that no event is lost by that.

use super::super::stats::RunStats;
use super::*;
use crate::cli::terminal::OutputStyle;
use classifier::{
    Call, Classifier, HashKey, Limits, RecordOrigin, Registry, Rules, Sink, UnrecognizedReason,
};
use std::sync::Arc;

struct CountingSink(Summary, RunStats);

impl Sink for CountingSink {
    fn event(&mut self, event: &Event<'_>) {
        self.0.add(event);
        self.1.events += 1;
    }
    fn call(&mut self, call: &Call<'_>) {
        self.1.count_call(call);
    }
    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        panic!("{reason}");
    }
}

/// Counts lines, one for each service name.
fn count(limit: usize, services: &[&str]) -> CountingSink {
    let rules = Rules::new(Registry::builtin().unwrap(), HashKey::FIXED, Limits::default());
    let mut classifier = Classifier::new(Arc::new(rules));
    let mut count = CountingSink(Summary::with_limit(limit), RunStats::default());
    for service in services {
        let line = format!(
            r#"{{"service":"{service}","success":false,"error":{{"code":"INTERNAL_ERROR","message":"Down"}}}}"#
        );
        classifier.classify(line.as_bytes(), &RecordOrigin::default(), &mut count);
    }
    count
}

#[test]
fn what_no_longer_fits_is_one_row_and_said() {
    let CountingSink(summary, stats) = count(2, &["a", "b", "c", "d", "a", "c"]);
    assert_eq!(summary.codes.rows.len(), 2);
    assert_eq!(summary.groups.rows.len(), 2);
    assert_eq!(summary.codes.other.events, 3);
    assert_eq!(summary.groups.other.events, 3);
    let text = summary.text(&stats, 10, OutputStyle::default());
    assert!(text.contains("(other)"), "{text}");
    assert!(text.contains("only the first 2 distinct groups are told apart"), "{text}");
}

#[test]
fn the_rows_left_out_are_counted_below() {
    let CountingSink(summary, stats) = count(100, &["a", "a", "b", "c"]);
    let text = summary.text(&stats, 1, OutputStyle::default());
    assert!(text.contains("... and 2 more rows with 2 events; --top 0 shows all"), "{text}");
    let text = summary.text(&stats, 0, OutputStyle::default());
    assert!(!text.contains("more"), "{text}");
}

#[test]
fn bars_are_for_terminals() {
    let CountingSink(summary, stats) = count(100, &["a"]);
    assert!(summary.text(&stats, 1, OutputStyle::default()).is_ascii());
    let text = summary.text(&stats, 1, OutputStyle { terminal: true, ..OutputStyle::default() });
    assert!(text.contains(&"█".repeat(36)), "{text}");
}
