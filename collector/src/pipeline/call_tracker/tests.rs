//! Tests with the spans of calls in every order, which must be grouped into the same calls.

use super::*;

const TRACE: [u8; 16] = [7; 16];

/// A span: its number, that of its parent, the operation that it names, and its layer.
type Given = (u8, u8, &'static str, u64);

fn facts((span, parent, operation, layer): Given) -> SpanFacts {
    SpanFacts {
        trace_id: TRACE,
        span_id: [span; 8],
        parent_span_id: (parent > 0).then_some([parent; 8]),
        operation: operation_key((!operation.is_empty()).then_some(operation)),
        layer,
    }
}

fn tracker() -> CallTracker<()> {
    CallTracker::new(Duration::from_secs(120))
}

/// Returns the number of failures that are found when each of these spans reports one.
fn failures(spans: &[Given]) -> usize {
    let tracker = tracker();
    let mut found = 0;
    for given in spans {
        let call = tracker.place(&facts(*given), 0);
        let report =
            Report { reporter: u64::from(given.0), event_id: given.0.into(), score: 1, kept: Some(()) };
        match tracker.report(call, report) {
            Verdict::First => found += 1,
            Verdict::DuplicateOfTwo(..) => found -= 1,
            Verdict::Duplicate(_) | Verdict::Better(_) => {}
        }
    }
    found
}

/// Returns every order of a list.
fn orders(spans: &[Given]) -> Vec<Vec<Given>> {
    if spans.len() < 2 {
        return vec![spans.to_vec()];
    }
    let mut all = Vec::new();
    for index in 0..spans.len() {
        let mut rest = spans.to_vec();
        let first = rest.remove(index);
        all.extend(orders(&rest).into_iter().map(|order| [vec![first], order].concat()));
    }
    all
}

/// The spans of a client, of the code that sends its request, and of the server.
const LAYERS: [Given; 3] = [(1, 0, "merge", 1), (2, 1, "merge", 2), (3, 2, "merge", 3)];

#[test]
fn spans_that_hang_together_are_one_call() {
    for order in orders(&LAYERS) {
        assert_eq!(failures(&order), 1, "{order:?}");
    }
}

#[test]
fn spans_that_name_nothing_carry_the_call() {
    // The tool of a server and the server around it are both below the stream of the client.
    let spans = [(5, 4, "merge", 1), (4, 2, "", 2), (6, 2, "", 3), (2, 1, "", 3), (1, 9, "merge", 4)];
    assert_eq!(failures(&spans), 1);
    let client_first = [(2, 1, "", 3), (1, 9, "merge", 4), (5, 4, "merge", 1), (4, 2, "", 2), (6, 2, "", 3)];
    assert_eq!(failures(&client_first), 1);
}

#[test]
fn a_caller_that_tries_again_makes_another_call() {
    let agent = (1, 0, "merge", 1);
    let tries = [(2, 1, "merge", 2), (3, 2, "merge", 3), (4, 1, "merge", 2), (5, 4, "merge", 3)];
    assert_eq!(failures(&tries), 2);
    assert_eq!(failures(&[&tries[..], &[agent]].concat()), 2);
    assert_eq!(failures(&[&[agent][..], &tries].concat()), 2);
}

#[test]
fn calls_side_by_side_and_within_each_other_are_their_own() {
    assert_eq!(failures(&[(2, 1, "merge", 1), (3, 1, "merge", 1), (4, 1, "find", 1)]), 3);
    assert_eq!(failures(&[(1, 0, "merge", 1), (2, 1, "find", 2), (3, 2, "find", 3)]), 2);
    let recursive = [(1, 0, "merge", 1), (2, 1, "merge", 2), (3, 2, "merge", 1)];
    assert_eq!(failures(&recursive), 2);
}

#[test]
fn each_side_counts_a_call_once() {
    let tracker = tracker();
    let count =
        |given: Given, is_caller| tracker.counts(tracker.place(&facts(given), 0), given.0.into(), is_caller);
    assert!(count(LAYERS[2], false));
    assert!(count(LAYERS[1], true));
    assert!(!count(LAYERS[0], true), "the same side of the same call");
    assert!(count(LAYERS[1], true), "a retry of what could not be stored");
}

#[test]
fn the_better_report_supersedes_the_first() {
    let tracker = tracker();
    let call = tracker.place(&facts(LAYERS[2]), 0);
    let report = |reporter, score| {
        tracker.report(call, Report { reporter, event_id: reporter.into(), score, kept: Some(()) })
    };
    assert_eq!(report(1, 4), Verdict::First);
    assert_eq!(report(2, 4), Verdict::Duplicate(1));
    assert_eq!(report(3, 9), Verdict::Better(1));
    assert_eq!(report(4, 8), Verdict::Duplicate(3));
    tracker.forget(&[call]);
    assert_eq!(report(4, 8), Verdict::First, "what could not be stored");
}

#[test]
fn the_failures_of_a_batch_are_all_of_one_reporter() {
    let tracker = tracker();
    let call = tracker.place(&facts(LAYERS[2]), 0);
    let report = |reporter, event_id, score| {
        tracker.report(call, Report { reporter, event_id, score, kept: Some(()) })
    };
    assert_eq!([report(1, 1, 4), report(1, 2, 4)], [Verdict::First, Verdict::First]);
    assert_eq!([report(2, 3, 9), report(2, 4, 9)], [Verdict::Duplicate(1), Verdict::Duplicate(1)]);
}

#[test]
fn words_are_repeated_once() {
    let tracker = tracker();
    tracker.remember_words(Some("crm"), "no such customer", 1, 0);
    assert_eq!(tracker.take_words(Some("shop"), "no such customer"), None);
    assert_eq!(tracker.take_words(Some("crm"), "no such customer"), Some(1));
    assert_eq!(tracker.take_words(Some("crm"), "no such customer"), None);
}

#[test]
fn memory_is_bounded() {
    let tracker = tracker();
    for number in 0..400_000_u64 {
        let mut trace_id = TRACE;
        trace_id[..8].copy_from_slice(&number.to_le_bytes());
        let facts = SpanFacts { trace_id, ..facts(LAYERS[0]) };
        tracker.counts(tracker.place(&facts, 0), 1, false);
    }
    let nodes: usize = tracker
        .shards
        .iter()
        .map(|shard| shard.lock().unwrap())
        .map(|shard| shard.young.nodes.len() + shard.old.nodes.len())
        .sum();
    assert!(nodes <= SHARDS * (2 * SPANS_PER_SHARD + 4), "{nodes}");
}

#[test]
fn a_call_of_one_span_needs_no_entry_of_its_own() {
    let tracker = tracker();
    let (call, counts) = tracker.place_and_count(&facts(LAYERS[2]), false, 0);
    assert!(counts && tracker.shard(call.trace).young.calls.is_empty());
    assert_eq!(tracker.place_and_count(&facts(LAYERS[2]), false, 0), (call, true), "sent again");
    assert_eq!(tracker.place_and_count(&facts(LAYERS[1]), false, 0), (call, false), "it was counted");
    assert_eq!(tracker.place_and_count(&facts(LAYERS[0]), true, 0), (call, true), "by the caller");
    assert_eq!(failures(&[LAYERS[2], LAYERS[1], LAYERS[0]]), 1);
}

#[test]
fn what_could_not_be_stored_is_counted_by_another_span() {
    let tracker = tracker();
    let (call, _) = tracker.place_and_count(&facts(LAYERS[2]), false, 0);
    tracker.forget(&[call]);
    assert_eq!(tracker.place_and_count(&facts(LAYERS[1]), false, 0), (call, true));
}
