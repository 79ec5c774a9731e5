//! Tests of spans in protobuf: field by field, and truncated at every byte.

use super::super::test_data;
use super::*;
use crate::receivers::record_consumer::test_consumer::TestConsumer;
use crate::{Limits, RejectionReason};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span as Sent};
use proptest::prelude::*;
use prost::Message as _;

fn recorded(body: &[u8]) -> TestConsumer {
    let mut records = TestConsumer::default();
    read(body, &mut records).unwrap();
    records
}

#[test]
fn every_field_of_a_span() {
    let records = recorded(&test_data::traces(vec![test_data::span(), test_data::span()]).encode_to_vec());
    assert_eq!(records.signals, [test_data::span_view(), test_data::span_view()]);
    assert!(records.rejected.is_empty());
}

#[test]
fn an_empty_request_holds_nothing() {
    assert_eq!(recorded(b""), TestConsumer::default());
    assert_eq!(recorded(&test_data::traces(vec![]).encode_to_vec()), TestConsumer::default());
}

#[test]
fn lists_of_one_span_do_not_reach_the_next() {
    let bare = recorded(&test_data::traces(vec![Sent::default()]).encode_to_vec());
    let after = recorded(&test_data::traces(vec![test_data::span(), Sent::default()]).encode_to_vec());
    assert_eq!(after.signals[1], bare.signals[0]);
}

#[test]
fn a_resource_may_come_last() {
    let one = test_data::traces(vec![test_data::span()]).resource_spans.remove(0);
    let scopes = ResourceSpans { resource: None, ..one.clone() }.encode_to_vec();
    let resource = ResourceSpans { resource: one.resource, ..ResourceSpans::default() }.encode_to_vec();
    let body = [scopes, resource].concat();
    let body = [&[0x0a][..], &varint(body.len()), &body].concat();
    assert_eq!(recorded(&body).signals, [test_data::span_view()]);
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[test]
fn ids_of_another_length_are_none() {
    for (trace_id, span_id) in [(vec![0; 16], vec![0; 8]), (vec![1; 15], vec![1; 9]), (vec![], vec![])] {
        let span = Sent { trace_id, span_id, ..test_data::span() };
        let text = recorded(&test_data::traces(vec![span]).encode_to_vec()).signals.remove(0);
        assert!(text.contains("trace_id: None") && text.contains("span_id: None"), "{text}");
    }
}

#[test]
fn events_past_the_limit_are_not_read() {
    let mut records = TestConsumer::with(Limits { attributes: 3, ..Limits::default() });
    let event = test_data::span().events.remove(0);
    let span = Sent { events: vec![event; 50], attributes: vec![], ..test_data::span() };
    read(&test_data::traces(vec![span]).encode_to_vec(), &mut records).unwrap();
    assert_eq!(records.signals[0].matches("SpanEvent").count(), 3);
}

/// Returns a request of three spans, the second of which is replaced by `bad`.
fn with_bad_span(bad: &[u8]) -> Vec<u8> {
    let good = test_data::span().encode_to_vec();
    let spans: Vec<u8> = [&good[..], bad, &good[..]]
        .iter()
        .flat_map(|span| [&[0x12][..], &varint(span.len()), span].concat())
        .collect();
    let scope = [&[0x12][..], &varint(spans.len()), &spans].concat();
    [&[0x0a][..], &varint(scope.len()), &scope].concat()
}

#[test]
fn a_malformed_span_costs_only_itself() {
    for bad in [&b"\x0a\x10ab"[..], b"\x28\x01", b"\x4a\x03\x0a\x09a", b"\x5a\x02\x0a\x00", b"\x7a\x02\x18"] {
        let records = recorded(&with_bad_span(bad));
        assert_eq!(records.signals.len(), 2, "{bad:?}");
        let (number, reason, detail) = &records.rejected[0];
        assert_eq!((*number, *reason), (2, "malformed"));
        assert!(detail.contains("at byte"), "{detail}");
    }
}

#[test]
fn malformed_lists_are_refused_with_their_place() {
    for body in [&b"\x0a\x05"[..], b"\x08\x01", b"\x0a\x02\x10\x01", b"\x0a\x03\x12\x01\x10", b"{}", b"[]"] {
        let rejection = read(body, &mut TestConsumer::default()).unwrap_err();
        assert_eq!(rejection.reason, RejectionReason::Unreadable);
        assert!(rejection.detail.contains("at byte"), "{}", rejection.detail);
    }
}

#[test]
fn a_request_cut_anywhere_neither_panics_nor_hangs() {
    let body = test_data::traces(vec![test_data::span(), test_data::span()]).encode_to_vec();
    for cut in 1..body.len() {
        assert!(read(&body[..cut], &mut TestConsumer::default()).is_err(), "{cut}");
    }
    for at in 0..body.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut body = body.clone();
            body[at] ^= flip;
            let _ = read(&body, &mut TestConsumer::default());
        }
    }
}

#[test]
fn logs_are_not_taken_for_spans() {
    let records = recorded(&test_data::logs(vec![test_data::log()]).encode_to_vec());
    assert_eq!((records.signals.len(), records.rejected.len()), (0, 1));
}

proptest! {
    #[test]
    fn any_bytes_are_read(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&body, &mut TestConsumer::default());
    }

    #[test]
    fn any_bytes_inside_a_span(bad in proptest::collection::vec(any::<u8>(), 0..100)) {
        let records = recorded(&with_bad_span(&bad));
        prop_assert_eq!(records.signals.len() + records.rejected.len(), 3);
    }
}
