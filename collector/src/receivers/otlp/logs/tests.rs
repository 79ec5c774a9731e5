//! Tests of log records in protobuf: field by field, and truncated at every byte.

use super::super::test_data;
use super::*;
use crate::receivers::record_consumer::test_consumer::TestConsumer;
use opentelemetry_proto::tonic::logs::v1::LogRecord as Sent;
use proptest::prelude::*;
use prost::Message as _;

fn recorded(body: &[u8]) -> TestConsumer {
    let mut records = TestConsumer::default();
    read(body, &mut records).unwrap();
    records
}

#[test]
fn every_field_of_a_record() {
    let records = recorded(&test_data::logs(vec![test_data::log()]).encode_to_vec());
    assert_eq!(records.signals, [test_data::log_view()]);
}

#[test]
fn a_body_may_be_absent_or_empty() {
    let sent =
        [Sent { body: None, ..Sent::default() }, Sent { body: Some(Default::default()), ..Sent::default() }];
    let records = recorded(&test_data::logs(sent.to_vec()).encode_to_vec());
    assert!(records.signals[0].contains("body: None"));
    assert!(records.signals[1].contains("Empty"));
}

#[test]
fn severities_out_of_range_are_none() {
    for (sent, read) in [(0, 0), (1, 1), (24, 24), (25, 0), (-1, 0), (i32::MAX, 0)] {
        let record = Sent { severity_number: sent, ..Sent::default() };
        let records = recorded(&test_data::logs(vec![record]).encode_to_vec());
        assert!(records.signals[0].contains(&format!("severity: {read},")), "{sent}");
    }
}

#[test]
fn a_request_cut_anywhere_neither_panics_nor_hangs() {
    let body = test_data::logs(vec![test_data::log(), test_data::log()]).encode_to_vec();
    for cut in 1..body.len() {
        assert!(read(&body[..cut], &mut TestConsumer::default()).is_err(), "{cut}");
    }
}

#[test]
fn spans_are_not_taken_for_logs() {
    let records = recorded(&test_data::traces(vec![test_data::span()]).encode_to_vec());
    assert_eq!((records.signals.len(), records.rejected.len()), (0, 1));
}

proptest! {
    #[test]
    fn any_bytes_are_read(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&body, &mut TestConsumer::default());
    }
}
