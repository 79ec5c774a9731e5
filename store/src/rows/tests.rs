//! Tests that events are unchanged after they pass through the columns, the bytes of a record, and JSON.

use super::{
    Entry, EventRow, EventRows, KeyedResponse, ReadPosition, Reject, RejectRows, Relation, RequestColumns,
    RequestRow, RequestRows, TrafficRow, TrafficRows, without_call_identities,
};
use crate::codec::{Decoder, Encoder};
use crate::hot::{BufferedRecord, Hot};
use crate::json;
use crate::schema::Table;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use classifier::{
    Call, Classifier, Dialect, Event, HashKey, Limits, Outcome, RecordOrigin, Registry, UnrecognizedReason,
};
use classifier::{Rules, Sink};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Default)]
struct Both {
    rows: EventRows,
    printed: Vec<Value>,
}

impl Sink for Both {
    fn event(&mut self, event: &Event<'_>) {
        self.rows.push(EventRow { event, ingested_at: 1_700_000_000_000_000, relation: Relation::Primary });
        let mut line = String::new();
        event.write_json(&mut line, None);
        self.printed.push(serde_json::from_str(&line).unwrap());
    }
    fn call(&mut self, _: &Call<'_>) {}
    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        panic!("{reason}");
    }
}

/// Returns an entry of each kind of the requests table.
fn entries() -> [Entry<'static>; 4] {
    [
        Entry::Response(KeyedResponse { key: 255, content: u128::MAX, response: r#"{"accepted":1}"# }),
        Entry::Position(ReadPosition { text: u64::MAX, offset: 7, note: "{}" }),
        Entry::EventIdentities(Cow::Borrowed(&[1, u128::MAX, 0])),
        Entry::CallIdentities(Cow::Borrowed(&[1, u64::MAX])),
    ]
}

fn classified(lines: &[&str]) -> Both {
    let rules = Rules::new(Registry::builtin().unwrap(), HashKey::FIXED, Limits::default());
    let mut classifier = Classifier::new(Arc::new(rules));
    let mut both = Both::default();
    for (place, line) in lines.iter().enumerate() {
        let origin = RecordOrigin {
            source: Some("envelopes"),
            identity: place as u128,
            arrival: i64::MAX,
            ..RecordOrigin::default()
        };
        classifier.classify(line.as_bytes(), &origin, &mut both);
    }
    both
}

const LINES: [&str; 5] = [
    r#"{"time":"2026-01-02T03:04:05.000006Z","service":"tickets","op":"create","success":false,"error":{"code":"RATE_LIMIT_QUOTA_PAUSE","message":"Paused at '90'","details":{"quota_metric":"tokens_per_day","current":90.5,"pause_threshold":90,"retry_after_seconds":30}},"host":"a\u0000\"b"}"#,
    r#"{"time":"2026-01-02T03:04:06Z","service":"files","success":false,"error":{"code":"PERMISSION_INSUFFICIENT_TRUST","message":"No","details":{"required_trust":"certified","actual_trust":"untested","confirmation_token":"conf_abcdef123456"}}}"#,
    r#"{"time":"2026-01-02T03:04:07Z","success":false,"error":"something broke: 永"}"#,
    r#"{"time":"2026-01-02T03:04:08Z","jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"},"duration_ms":12.5}"#,
    r#"{"time":"2026-01-02T03:04:09Z","status":503,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7"}"#,
];

fn through_a_record(table: Table, batch: &RecordBatch) -> RecordBatch {
    let mut record = Vec::new();
    Encoder::default().append(&mut record, table, batch.clone()).unwrap();
    let decoder = Decoder::current().unwrap();
    decoder.batch(&Buffer::from_vec(record), table).unwrap().unwrap()
}

fn printed(table: Table, batch: &RecordBatch) -> Vec<Value> {
    let mut out = String::new();
    json::lines(table, batch, &mut out);
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_event_comes_out_as_it_went_in() {
    let mut both = classified(&LINES);
    let batch = through_a_record(Table::Events, &both.rows.finish().unwrap());
    assert!(both.rows.is_empty());
    let stored = printed(Table::Events, &batch);
    assert_eq!(stored.len(), LINES.len());
    for (mut stored, expected) in stored.into_iter().zip(both.printed) {
        assert_eq!(stored["ingested_at"], "2023-11-14T22:13:20Z");
        assert_eq!(stored["represents"], 1);
        for column in ["ingested_at", "represents"] {
            stored.as_object_mut().unwrap().remove(column);
        }
        assert_eq!(stored, expected);
    }
}

#[test]
fn a_row_can_stand_for_more() {
    let mut both = classified(&LINES);
    both.rows.represent(1, 4);
    both.rows.represent(1, -1);
    both.rows.represent(99, 1);
    let stored = printed(Table::Events, &both.rows.finish().unwrap());
    let represented: Vec<_> = stored.iter().map(|row| row["represents"].as_i64().unwrap()).collect();
    assert_eq!(represented, [1, 4, 1, 1, 1]);
}

#[test]
fn every_table_survives_the_record() {
    let mut record = Vec::new();
    let mut encoder = Encoder::default();
    let mut events = classified(&LINES).rows;
    encoder.append(&mut record, Table::Events, events.finish().unwrap()).unwrap();
    let mut traffic = TrafficRows::default();
    traffic.push(TrafficRow {
        minute: 60_000_000,
        service: Some("tickets"),
        environment: None,
        operation: Some("create"),
        dialect: Dialect::McpAql,
        outcome: Outcome::Hidden,
        span_kind: None,
        source: "envelopes",
        calls: 3,
        late_failures: 0,
        unverified: 0,
        timed: 2,
        duration_sum_us: 1500,
        buckets: [2; 14],
    });
    encoder.append(&mut record, Table::Traffic, traffic.finish().unwrap()).unwrap();
    let mut rejects = RejectRows::default();
    rejects.push(Reject {
        time: 1,
        source: "envelopes",
        service: None,
        reason: "not_json",
        detail: "not JSON",
        line: 7,
        bytes: 3,
        sample: "abc",
    });
    encoder.append(&mut record, Table::Rejects, rejects.finish().unwrap()).unwrap();
    let mut requests = RequestRows::default();
    let stored = entries().map(|entry| RequestRow { time: 1, entry });
    stored.iter().for_each(|row| requests.push(row.clone()));
    encoder.append(&mut record, Table::Requests, requests.finish().unwrap()).unwrap();

    let decoder = Arc::new(Decoder::current().unwrap());
    let hot = Hot::new(record.len());
    let bytes = Buffer::from_vec(record);
    for sequence in 1..=2 {
        hot.publish(BufferedRecord::new(sequence, bytes.clone(), Arc::clone(&decoder)).unwrap());
    }
    let snapshot = hot.snapshot().records;
    assert_eq!(snapshot.len(), 1, "the oldest makes room");
    assert_eq!((hot.size().events, hot.size().evicted), (5, 1));
    let record = &snapshot[0];
    assert_eq!((record.sequence, record.rows), (2, [5, 1, 1, 4, 0]));
    let rows = |table| printed(table, &record.batch(table).unwrap().unwrap());
    assert_eq!(rows(Table::Traffic)[0]["hidden_failures"], 3);
    assert_eq!(rows(Table::Traffic)[0]["took_at_most_30s"], 2);
    assert_eq!(rows(Table::Rejects)[0]["line"], 7);
    assert_eq!(rows(Table::Requests)[0]["key"], "000000000000000000000000000000ff");
    assert_eq!(rows(Table::Requests)[0]["response"]["accepted"], 1);
    let requests = record.batch(Table::Requests).unwrap().unwrap();
    assert_eq!(RequestColumns::of(&requests).unwrap().rows().collect::<Vec<_>>(), stored);
    let flushed = without_call_identities(&requests).unwrap();
    assert_eq!(RequestColumns::of(&flushed).unwrap().rows().collect::<Vec<_>>(), stored[..3]);

    let followed = || {
        let following = hot.after(0, 9);
        (following.records.iter().map(|record| record.sequence).collect::<Vec<_>>(), following.gone)
    };
    hot.release(2);
    assert!(hot.snapshot().records.is_empty(), "what is flushed is read from the tables");
    assert_eq!((followed(), hot.ends()), ((vec![2], 1), (2, Some(2))), "but can be followed for a while");
    hot.publish(BufferedRecord::new(3, bytes, decoder).unwrap());
    assert_eq!((followed(), hot.ends()), ((vec![3], 2), (3, Some(3))), "as long as there is room");
    assert_eq!(hot.size().evicted, 1);
}

#[test]
fn cut_and_changed_records_are_refused_without_a_panic() {
    let mut events = classified(&LINES[..1]).rows;
    let mut record = Vec::new();
    Encoder::default().append(&mut record, Table::Events, events.finish().unwrap()).unwrap();
    let decoder = Decoder::current().unwrap();
    for length in (1..record.len()).step_by(7) {
        let cut = Buffer::from(&record[..length]);
        assert!(decoder.batch(&cut, Table::Events).is_err(), "{length}");
    }
    assert!(decoder.batch(&Buffer::from_vec(Vec::<u8>::new()), Table::Events).unwrap().is_none());
}

#[test]
fn every_column_says_what_it_holds() {
    for table in Table::ALL {
        for column in table.columns() {
            assert!(column.about.len() > 8 && !column.about.ends_with('.'), "{}", column.name);
        }
        let schema = table.schema();
        assert_eq!(schema.fields().len(), table.columns().len());
    }
}
