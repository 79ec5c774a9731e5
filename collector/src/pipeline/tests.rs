//! Tests that send requests through a pipeline with a real WAL on a real disk.

mod call_reports;
mod idempotency;
mod large_requests;

use super::*;
use crate::counters::reason_index;
use arrow::array::RecordBatch;
use classifier::telemetry::{Attribute, LogRecord, Resource, Span, SpanKind, Value as OtlpValue};
use classifier::{Category, HashKey, Registry};
use serde_json::Value;
use std::path::Path;
use store::Table;
use store::codec;
use store::disk::RealDisk;
use store::wal::WalOptions;
use tempfile::TempDir;

/// Returns a fixed time, 2026-01-02T03:04:05Z, instead of that of a clock.
fn fixed_time() -> i64 {
    1_767_323_045_000_000
}

fn limits() -> Limits {
    Limits { rejected_listed: 2, rejects_per_minute: 3, ..Limits::default() }
}

fn open_with(folder: &Path, limits: Limits, options: WalOptions) -> Pipeline {
    open_at(folder, limits, options, fixed_time)
}

fn open_at(folder: &Path, limits: Limits, mut options: WalOptions, clock: Clock) -> Pipeline {
    let hot = Arc::new(Hot::new(64 << 20));
    let mut restored = RestoredState::new(Arc::clone(&hot), None, &limits);
    options.preamble = codec::preamble().unwrap();
    let (wal, _) =
        Wal::open(Arc::new(RealDisk), folder, options, &mut |record| restored.load_record(record)).unwrap();
    let rules = Rules::new(Registry::builtin().unwrap(), HashKey::FIXED, classifier::Limits::default());
    let rules = Arc::new(rules);
    let pipeline = Pipeline::start(Parts { limits, rules, wal, hot, clock, workers: 2 }).unwrap();
    pipeline.restore(restored);
    pipeline
}

fn open(folder: &TempDir) -> Pipeline {
    open_with(folder.path(), limits(), WalOptions::default())
}

/// Reads a body of lines; the line `reject` rejects the request, and the line `panic` panics.
fn read_lines(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    for (index, line) in body.split(|byte| *byte == b'\n').enumerate() {
        match line {
            b"reject" => return Err(Rejection::new(RejectionReason::Unreadable, "as asked")),
            b"panic" => panic!("as asked"),
            line => sink.push_line(index as u64 + 1, line),
        }
    }
    Ok(())
}

const TRACE: [u8; 16] = [7; 16];
const SPAN: [u8; 8] = [9; 8];

fn code(code: &'static str) -> [Attribute<'static>; 1] {
    [Attribute { key: "error.code".into(), value: OtlpValue::Text(code.into()) }]
}

/// Pushes one failed server span; the body is ignored.
fn read_spans(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    let _ = body;
    let attributes = code("RATE_LIMIT_EXCEEDED");
    let span = Span {
        trace_id: Some(TRACE),
        span_id: Some(SPAN),
        kind: SpanKind::Server,
        name: "call",
        start_ns: 1_767_323_040_000_000_000,
        end_ns: 1_767_323_041_000_000_000,
        attributes: &attributes,
        ..Span::default()
    };
    sink.push_span(&span, &Resource::default());
    Ok(())
}

/// Pushes a log record of the same span that reports the same failure, with the body as its text.
fn read_logs(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    let attributes = code("RATE_LIMIT_EXCEEDED");
    let text = OtlpValue::Text(String::from_utf8_lossy(body));
    let record = LogRecord {
        time_ns: 1_767_323_041_000_000_000,
        severity: 17,
        body: Some(&text),
        attributes: &attributes,
        trace_id: Some(TRACE),
        span_id: Some(SPAN),
        ..LogRecord::default()
    };
    sink.push_log(&record, &Resource::default());
    Ok(())
}

fn request(source: Source, read: BodyReader, body: &str) -> Request {
    Request {
        source,
        body: body.to_owned().into(),
        encoding: Encoding::Identity,
        read,
        defaults: Defaults { service: Some("tickets".to_owned()), ..Defaults::default() },
        idempotency_key: None,
        position: None,
        stream: None,
        permits: Vec::new(),
    }
}

fn lines(body: &str) -> Request {
    request(Source::Envelopes, read_lines, body)
}

fn with_key(body: &str, key: &str) -> Request {
    let key = IdempotencyKey { token: None, key: key.to_owned(), form: "lines" };
    Request { idempotency_key: Some(key), ..lines(body) }
}

/// Returns the buffered rows of a table as JSON.
fn rows(pipeline: &Pipeline, table: Table) -> Vec<Value> {
    let mut out = String::new();
    for record in pipeline.hot().snapshot().records {
        if let Some(batch) = record.batch(table).unwrap() {
            let batch: RecordBatch = batch;
            store::json::lines(table, &batch, &mut out);
        }
    }
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const FAILED: &str = r#"{"success":false,"error":{"code":"RATE_LIMIT_EXCEEDED","message":"slow down"}}"#;
const WORKED: &str = r#"{"success":true,"data":1}"#;

#[tokio::test]
async fn what_was_answered_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    let body = format!("{FAILED}\n{WORKED}\n\n{WORKED}\n{{}}\nnot json at all {{\n");
    let response = pipeline.submit(lines(&body)).await.unwrap();
    assert_eq!((response.accepted, response.events, response.unrecognized), (4, 1, 1));
    assert_eq!(response.rejected.iter().map(|rejected| rejected.line).collect::<Vec<_>>(), [6]);
    assert_eq!(response.categories.iter().collect::<Vec<_>>(), [(Category::RateLimit, 1)]);
    let counted = &pipeline.counters().of(Source::Envelopes).categories;
    assert_eq!(counted[Category::RateLimit as usize].get(), 1);
    let before = Table::ALL.map(|table| rows(&pipeline, table));
    assert_eq!(before[0].len(), 1);
    assert_eq!(before[0][0]["canonical"], "RATE_LIMIT_EXCEEDED");
    assert_eq!((&before[0][0]["service"], &before[0][0]["source"]), (&"tickets".into(), &"envelopes".into()));
    assert_eq!((sum(&before[1], "calls"), sum(&before[1], "failures")), (3, 1));
    assert_eq!(
        before[2].iter().map(|row| row["reason"].as_str().unwrap()).collect::<Vec<_>>(),
        ["no_envelope", "not_json"]
    );
    pipeline.close();
    let pipeline = open(&folder);
    assert_eq!(Table::ALL.map(|table| rows(&pipeline, table)), before);
    pipeline.close();
}

fn sum(rows: &[Value], column: &str) -> i64 {
    rows.iter().map(|row| row[column].as_i64().unwrap()).sum()
}

#[tokio::test]
async fn a_key_is_idempotent_replays_and_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    let first = pipeline.submit(with_key(FAILED, "abc")).await.unwrap();
    assert_eq!(pipeline.submit(with_key(FAILED, "abc")).await.unwrap(), first);
    let (a, b) = tokio::join!(pipeline.submit(with_key(FAILED, "x")), pipeline.submit(with_key(FAILED, "x")));
    assert_eq!(a, b);
    assert_eq!(rows(&pipeline, Table::Events).len(), 2);
    pipeline.close();
    let pipeline = open(&folder);
    assert_eq!(pipeline.submit(with_key(FAILED, "abc")).await.unwrap(), first);
    let events = rows(&pipeline, Table::Events);
    assert_eq!(events.len(), 2);
    assert_ne!(events[0]["event_id"], events[1]["event_id"]);
    pipeline.close();
}

#[tokio::test]
async fn a_refused_request_leaves_nothing_and_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    let refused = format!("{FAILED}\nnot json {{\n{WORKED}\nreject");
    let defect = format!("{FAILED}\npanic");
    let mut tasks = tokio::task::JoinSet::new();
    for round in 0..30 {
        let pipeline = pipeline.clone();
        let body = [FAILED, &refused, &defect][round % 3].to_owned();
        tasks.spawn(async move { (round % 3, pipeline.submit(lines(&body)).await) });
    }
    let mut stored = 0;
    for (kind, outcome) in tasks.join_all().await {
        match (kind, outcome) {
            (0, Ok(response)) => stored += response.events,
            // The request shared a worker with one that panicked, and may be retried.
            (0, Err(rejection)) => assert!(rejection.retry_after.is_some()),
            (1, outcome) => assert_eq!(outcome.unwrap_err().reason, RejectionReason::Unreadable),
            (_, outcome) => assert_eq!(outcome.unwrap_err().reason, RejectionReason::Internal),
        }
    }
    let counters = pipeline.counters().of(Source::Envelopes);
    assert_eq!(counters.rejected_requests[RejectionReason::Unreadable as usize].get(), 10);
    assert_eq!(counters.rejected_requests[RejectionReason::Internal as usize].get(), 10);
    assert_eq!(pipeline.counters().panics.get(), 10);
    assert_eq!(rows(&pipeline, Table::Events).len() as u64, stored);
    assert_eq!(sum(&rows(&pipeline, Table::Traffic), "calls") as u64, stored);
    assert_eq!(rows(&pipeline, Table::Rejects).len(), 0);
    assert_eq!(pipeline.submit(lines(FAILED)).await.unwrap().events, 1);
    pipeline.close();
}

#[tokio::test]
async fn a_span_and_its_log_record_are_one_event_whichever_comes_first() {
    for span_first in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let pipeline = open(&folder);
        let span = || request(Source::OtlpTraces, read_spans, "");
        let log = || request(Source::OtlpLogs, read_logs, "it failed");
        let (first, second) = if span_first { (span(), log()) } else { (log(), span()) };
        assert_eq!(pipeline.submit(first).await.unwrap().events, 1);
        assert_eq!(pipeline.submit(second).await.unwrap().events, 0);
        // Both are sent again, and are acknowledged.
        assert_eq!(pipeline.submit(span()).await.unwrap().events, 0);
        assert_eq!(pipeline.submit(log()).await.unwrap().events, 0);
        assert_eq!(rows(&pipeline, Table::Events).len(), 1);
        assert_eq!(sum(&rows(&pipeline, Table::Traffic), "calls"), 1, "the span counts, once");
        pipeline.close();
        let pipeline = open(&folder);
        let before = sum(&rows(&pipeline, Table::Traffic), "calls");
        assert_eq!(pipeline.submit(span()).await.unwrap().events, 0, "known across a restart");
        let after = sum(&rows(&pipeline, Table::Traffic), "calls");
        assert!(after == before || !span_first, "and counted once, if it is the span that left a row");
        pipeline.close();
    }
}

/// A key belongs to contents that were stored under it, not to a request of which nothing could be read.
#[tokio::test]
async fn a_key_may_be_used_again_when_nothing_could_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    let response = pipeline.submit(with_key("{broken", "k")).await.unwrap();
    assert_eq!((response.accepted, response.rejected_count), (0, 1));
    assert_eq!(
        pipeline.counters().of(Source::Envelopes).rejected_requests[RejectionReason::Unreadable as usize]
            .get(),
        1
    );
    assert_eq!(pipeline.submit(with_key(FAILED, "k")).await.unwrap().events, 1);
    pipeline.close();
}

/// Identities of a rejected request must not make its retry a duplicate.
#[tokio::test]
async fn a_refused_span_may_be_sent_again() {
    fn read_and_refuse(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
        read_spans(body, sink)?;
        Err(Rejection::new(RejectionReason::Unreadable, "as asked"))
    }
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    assert!(pipeline.submit(request(Source::OtlpTraces, read_and_refuse, "")).await.is_err());
    assert_eq!(pipeline.submit(request(Source::OtlpTraces, read_spans, "")).await.unwrap().events, 1);
    assert_eq!(sum(&rows(&pipeline, Table::Traffic), "calls"), 1);
    pipeline.close();
}

#[tokio::test]
async fn two_log_records_are_the_same_only_with_the_same_body() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    for body in ["one", "two", "one"] {
        pipeline.submit(request(Source::OtlpLogs, read_logs, body)).await.unwrap();
    }
    assert_eq!(rows(&pipeline, Table::Events).len(), 2);
    assert_eq!(pipeline.counters().of(Source::OtlpLogs).duplicates.get(), 1);
    pipeline.close();
}

/// Pushes log records without a span, each with two replies in it: only their own calls can count.
fn read_lone_logs(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    let text = OtlpValue::Text(String::from_utf8_lossy(body));
    let services = ["shop", "bank"]
        .map(|name| [Attribute { key: "service.name".into(), value: OtlpValue::Text(name.into()) }]);
    for service in &services {
        for time_ns in [1_767_323_041_000_000_000, 1_767_323_042_000_000_000] {
            let record = LogRecord { time_ns, body: Some(&text), ..LogRecord::default() };
            sink.push_log(&record, &Resource { attributes: service });
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_calls_of_a_log_record_are_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    let body = format!("[{FAILED},{WORKED}]");
    for _ in 0..2 {
        pipeline.submit(request(Source::OtlpLogs, read_lone_logs, &body)).await.unwrap();
    }
    assert_eq!(rows(&pipeline, Table::Events).len(), 4);
    assert_eq!(sum(&rows(&pipeline, Table::Traffic), "calls"), 8, "two for each time and service");
    pipeline.close();
}

#[tokio::test]
async fn what_stands_beside_records_is_redacted_too() {
    fn read(_: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
        sink.reject(1, "malformed", "bob@example.com is no number", b"password\x12\x07hunter2");
        Ok(())
    }
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    let name = || Some("of eve@example.com".to_owned());
    let defaults = || Defaults { service: name(), environment: name(), dialect: None };
    pipeline.submit(Request { defaults: defaults(), ..lines(FAILED) }).await.unwrap();
    let event = &rows(&pipeline, Table::Events)[0];
    assert_eq!(
        (&event["service"], &event["environment"]),
        (&"of [redacted]".into(), &"of [redacted]".into())
    );
    let malformed = Request { defaults: defaults(), ..request(Source::OtlpTraces, read, "") };
    let response = pipeline.submit(malformed).await.unwrap();
    assert_eq!(response.rejected[0].reason, "[redacted] is no number");
    let reject = &rows(&pipeline, Table::Rejects)[0];
    let found = ["service", "detail", "sample"].map(|column| reject[column].as_str().unwrap());
    assert_eq!(found, ["of [redacted]", "[redacted] is no number", ""]);
    assert_eq!(reject["bytes"], 17);
    pipeline.close();
}

#[tokio::test]
async fn rejects_are_a_bounded_sample_and_counted_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    let response = pipeline.submit(lines(&"{\"password\":\"hunter2\" \n".repeat(10))).await.unwrap();
    assert_eq!((response.rejected.len(), response.rejected_count), (2, 10));
    let rejects = rows(&pipeline, Table::Rejects);
    assert_eq!(rejects.len(), 3);
    assert!(rejects.iter().all(|row| !row["sample"].as_str().unwrap().contains("hunter2")));
    assert_eq!(pipeline.counters().samples_dropped.get(), 7);
    let counters = pipeline.counters().of(Source::Envelopes);
    assert_eq!(counters.reasons[reason_index("not_json")].get(), 10);
    pipeline.close();
}

#[tokio::test]
async fn rows_that_outgrow_the_limit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { batch_bytes: 2000, ..limits() };
    let pipeline = open_with(folder.path(), limits, WalOptions::default());
    let body = format!("{FAILED}\n").repeat(20);
    assert_eq!(pipeline.submit(lines(&body)).await.unwrap_err().reason, RejectionReason::TooLarge);
    assert_eq!(pipeline.wal_stats().records, 0, "not even an empty record");
    assert_eq!(pipeline.submit(lines(FAILED)).await.unwrap().events, 1);
    assert_eq!(rows(&pipeline, Table::Events).len(), 1);
    pipeline.close();
}

#[tokio::test]
async fn a_closed_pipeline_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    assert!(pipeline.readiness_error().is_none());
    pipeline.close();
    assert_eq!(pipeline.readiness_error().unwrap().reason, RejectionReason::ShuttingDown);
    let rejection = pipeline.submit(with_key(FAILED, "k")).await.unwrap_err();
    assert_eq!(rejection.reason, RejectionReason::ShuttingDown);
    assert!(rejection.retry_after.is_some());
}

#[tokio::test]
async fn a_full_log_refuses_and_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let options = WalOptions { segment_bytes: 1 << 16, max_bytes: 1 << 18, ..WalOptions::default() };
    let pipeline = open_with(folder.path(), limits(), options);
    let rejection = loop {
        if let Err(rejection) = pipeline.submit(lines(FAILED)).await {
            break rejection;
        }
    };
    assert_eq!(rejection.reason, RejectionReason::WalFull);
    assert!(rejection.retry_after.is_some());
    assert_eq!(pipeline.readiness_error().unwrap().reason, RejectionReason::WalFull);
    assert!(!rows(&pipeline, Table::Events).is_empty(), "readers go on");
    pipeline.close();
}

/// A position is durable with the rows that were read up to it, even if there are none; the furthest one is restored.
#[tokio::test]
async fn positions_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    let at = |text, offset| Position { text, offset, note: serde_json::json!({"path": "/l/a.log"}) };
    let reads = |source, body: &str, position| Request {
        position: Some(position),
        stream: None,
        ..request(source, read_lines, body)
    };
    pipeline.submit(reads(Source::Files, FAILED, at(1, 80))).await.unwrap();
    pipeline.submit(reads(Source::Files, "nothing { of ours\n", at(1, 160))).await.unwrap();
    pipeline.submit(reads(Source::Files, "", at(2, 7))).await.unwrap();
    pipeline.submit(with_key(FAILED, "a key of somebody")).await.unwrap();
    pipeline.close();
    let pipeline = open(&folder);
    let mut positions = pipeline.take_positions();
    positions.sort_by_key(|position| position.text);
    assert_eq!(positions, [at(1, 160), at(2, 7)]);
    assert_eq!(pipeline.submit(with_key(FAILED, "a key of somebody")).await.unwrap().events, 1);
    assert_eq!(pipeline.counters().idempotent_replays.get(), 1, "answers beside positions are still answers");
    assert_eq!(rows(&pipeline, Table::Events).len(), 2);
    pipeline.close();
}

/// In a teed wire log, the request names the tool and the reply gives the outcome.
#[tokio::test]
async fn replies_are_paired_with_the_requests_of_their_body() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    let wire = [
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"merge","arguments":{"a":1}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"Permission denied"}],"isError":true}}"#,
    ];
    pipeline.submit(lines(&wire.join("\n"))).await.unwrap();
    let events = rows(&pipeline, Table::Events);
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["operation"], &events[0]["request_id"]), (&"merge".into(), &"4".into()));
    assert_eq!(events[0]["fault"], "caller");
}
