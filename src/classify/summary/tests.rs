//! Counting is bounded, and nothing is lost by it.

use super::super::tally::Tally;
use super::*;
use crate::terminal::Look;
use std::sync::Arc;
use taxonomy::{Call, Classifier, HashKey, Limits, Origin, Reason, Registry, Rules, Sink};

struct Count(Summary, Tally);

impl Sink for Count {
    fn event(&mut self, event: &Event<'_>) {
        self.0.add(event);
        self.1.events += 1;
    }
    fn call(&mut self, call: &Call<'_>) {
        self.1.call(call);
    }
    fn unrecognized(&mut self, reason: Reason) {
        panic!("{reason}");
    }
}

/// Counts lines, one for each service name.
fn count(limit: usize, services: &[&str]) -> Count {
    let rules = Rules::new(Registry::builtin().unwrap(), HashKey::FIXED, Limits::default());
    let mut classifier = Classifier::new(Arc::new(rules));
    let mut count = Count(Summary::bounded(limit), Tally::default());
    for service in services {
        let line = format!(
            r#"{{"service":"{service}","success":false,"error":{{"code":"INTERNAL_ERROR","message":"Down"}}}}"#
        );
        classifier.classify(line.as_bytes(), &Origin::default(), &mut count);
    }
    count
}

#[test]
fn what_no_longer_fits_is_one_row_and_said() {
    let Count(summary, tally) = count(2, &["a", "b", "c", "d", "a", "c"]);
    assert_eq!(summary.codes.rows.len(), 2);
    assert_eq!(summary.groups.rows.len(), 2);
    assert_eq!(summary.codes.other.events, 3);
    assert_eq!(summary.groups.other.events, 3);
    let text = summary.text(&tally, 10, Look::default());
    assert!(text.contains("(other)"), "{text}");
    assert!(text.contains("only the first 2 distinct groups are told apart"), "{text}");
}

#[test]
fn the_rows_left_out_are_counted_below() {
    let Count(summary, tally) = count(100, &["a", "a", "b", "c"]);
    let text = summary.text(&tally, 1, Look::default());
    assert!(text.contains("... and 2 more rows with 2 events; --top 0 shows all"), "{text}");
    let text = summary.text(&tally, 0, Look::default());
    assert!(!text.contains("more"), "{text}");
}

#[test]
fn bars_are_for_terminals() {
    let Count(summary, tally) = count(100, &["a"]);
    assert!(summary.text(&tally, 1, Look::default()).is_ascii());
    let text = summary.text(&tally, 1, Look { terminal: true, ..Look::default() });
    assert!(text.contains(&"█".repeat(36)), "{text}");
}
