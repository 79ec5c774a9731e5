//! Tests with the spans of calls in every order, which must be grouped into the same calls.

use super::*;
use classifier::Outcome;
use std::num::NonZeroU32;

const TRACE: [u8; 16] = [7; 16];

/// A span: its number, that of its parent, the operation that it names, and its layer.
type Given = (u8, u8, &'static str, u64);

fn facts((span, parent, operation, layer): Given) -> SpanFacts<'static> {
    SpanFacts {
        trace_id: TRACE,
        span_id: [span; 8],
        parent_span_id: (parent > 0).then_some([parent; 8]),
        operation: (!operation.is_empty()).then_some(operation),
        layer,
        side: Side::Calling,
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
        let (call, _) = tracker.place(&facts(*given), 0);
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

fn counted(side: Side, outcome: Outcome) -> CallReport {
    let counted_at = NonZeroU32::new(side as u32 + 1).map(|names| TrafficPosition { minute: 7, names });
    CallReport { side, outcome, service: 1, counted_at }
}

#[test]
fn each_side_counts_a_call_once() {
    let tracker = tracker();
    let count = |given: Given, side| {
        let (call, _) = tracker.place(&facts(given), 0);
        tracker.count(call, given.0.into(), &counted(side, Outcome::Ok)).outcome
    };
    assert_eq!(count(LAYERS[2], Side::Answering), Some(Outcome::Ok));
    assert_eq!(count(LAYERS[1], Side::Calling), Some(Outcome::Ok));
    assert_eq!(count(LAYERS[0], Side::Calling), None, "the same side of the same call");
    assert_eq!(count(LAYERS[1], Side::Calling), Some(Outcome::Ok), "a retry of what could not be stored");
}

/// A call that its client gave up on counts as failed on both sides, whichever report comes first.
#[test]
fn what_a_client_gave_up_on_failed() {
    let outer = (LAYERS[0], Side::Calling, Outcome::Failed);
    let inner = (LAYERS[1], Side::Calling, Outcome::Ok);
    let server = (LAYERS[2], Side::Answering, Outcome::Ok);
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let tracker = tracker();
        let mut calls = [[0; 2]; 2];
        let mut correct = |corrections: Corrections| {
            for (side, correction) in
                corrections.iter().enumerate().filter_map(|(side, c)| Some((side, (*c)?)))
            {
                assert_eq!(correction.outcome, Outcome::Failed);
                assert_eq!(correction.counted_at.names.get() as usize, side + 1);
                calls[side][0] -= 1;
                calls[side][1] += 1;
            }
        };
        let mut counted_now = Vec::new();
        for (given, side, outcome) in order.map(|index| [outer, inner, server][index]) {
            let (call, corrections) = tracker.place(&facts(given), 0);
            correct(corrections);
            let counting = tracker.count(call, given.0.into(), &counted(side, outcome));
            correct(counting.corrections);
            counted_now.extend(counting.outcome.map(|outcome| (side, outcome)));
        }
        for (side, outcome) in counted_now {
            calls[side as usize][usize::from(outcome == Outcome::Failed)] += 1;
        }
        assert_eq!(calls, [[0, 1], [0, 1]], "{order:?}");
    }
}

#[test]
fn a_failure_of_the_server_is_not_one_of_the_client_that_handled_it() {
    let tracker = tracker();
    let count = |given: Given, side, outcome| {
        let (call, _) = tracker.place(&facts(given), 0);
        tracker.count(call, given.0.into(), &counted(side, outcome))
    };
    assert_eq!(count(LAYERS[1], Side::Calling, Outcome::Ok).outcome, Some(Outcome::Ok));
    let server = count(LAYERS[2], Side::Answering, Outcome::Hidden);
    assert_eq!(server, Counting { outcome: Some(Outcome::Hidden), corrections: [None; 2] });
}

/// A failed call whose sides are in traces of their own: the time that it took, and the service that reports it.
fn sighting(tracker: &CallTracker<()>, trace: u8, side: Side, service: u64, times: [u64; 2]) -> Sighting {
    let facts = SpanFacts { trace_id: [trace; 16], side, ..facts(LAYERS[0]) };
    let (call, _) = tracker.place(&facts, 0);
    let [start_ns, end_ns] = times.map(|ms| ms * 1_000_000);
    let report = Report { reporter: trace.into(), event_id: trace.into(), score: 1, kept: Some(()) };
    tracker.report(call, report);
    Sighting { call, side, service, start_ns, end_ns }
}

#[test]
fn sides_without_a_common_trace_are_matched_once() {
    let tracker = tracker();
    let found = |sighting, message| tracker.match_twin(sighting, "merge", message, 0).is_some();
    let server = sighting(&tracker, 1, Side::Answering, 1, [1_000, 2_000]);
    assert!(!found(server, "locked"), "nothing came before");
    let client = |trace, times| sighting(&tracker, trace, Side::Calling, 2, times);
    assert!(!found(client(2, [900, 2_100]), "not found"), "another message");
    assert!(!found(client(3, [1_500, 2_100]), "locked"), "it began to wait when the server was at work");
    assert!(found(client(4, [900, 2_100]), "locked"));
    assert!(!found(client(5, [900, 2_100]), "locked"), "one server, one client");
    let other = sighting(&tracker, 6, Side::Answering, 1, [1_000, 2_000]);
    assert!(found(other, "locked"), "the last client waits for a server");
}

#[test]
fn clients_that_pass_their_traces_on_are_not_matched() {
    let tracker = tracker();
    for (given, side) in [(LAYERS[1], Side::Calling), (LAYERS[2], Side::Answering)] {
        let (call, _) = tracker.place(&facts(given), 0);
        tracker.count(call, given.0.into(), &CallReport { service: 2, ..counted(side, Outcome::Ok) });
    }
    let server = sighting(&tracker, 1, Side::Answering, 1, [1_000, 2_000]);
    assert_eq!(tracker.match_twin(server, "merge", "locked", 0), None);
    let client = sighting(&tracker, 2, Side::Calling, 2, [900, 2_100]);
    assert_eq!(tracker.match_twin(client, "merge", "locked", 0), None);
}

#[test]
fn the_better_report_supersedes_the_first() {
    let tracker = tracker();
    let (call, _) = tracker.place(&facts(LAYERS[2]), 0);
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
    let (call, _) = tracker.place(&facts(LAYERS[2]), 0);
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
        let (call, _) = tracker.place(&facts, 0);
        tracker.count(call, 1, &counted(Side::Calling, Outcome::Ok));
    }
    let nodes: usize = tracker
        .shards
        .iter()
        .map(|shard| shard.lock().unwrap())
        .map(|shard| shard.young.nodes.len() + shard.old.nodes.len())
        .sum();
    assert!(nodes <= SHARDS * (2 * SPANS_PER_SHARD + 4), "{nodes}");
}
