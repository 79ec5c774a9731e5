//! The state of the server itself, for the overview: its counters, and its newest events.

use super::range;
use super::request::{ApiRequest, Row, take};
use super::shape::{NULLABLE_TEXT, NULLABLE_TIME, NULLABLE_WHOLE, Shape};
use super::statement::Statement;
use serde_json::Value;

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    ("ready", Shape::Flag),
    ("message", NULLABLE_TEXT),
    ("started_at", NULLABLE_TIME),
    ("last_event_at", NULLABLE_TIME),
    ("events", Shape::Whole),
    ("events_last_minute", NULLABLE_WHOLE),
    ("unrecognized", Shape::Whole),
    ("rejected", Shape::Whole),
    ("rejected_requests", Shape::Map(&Shape::Whole)),
    ("wal_bytes", Shape::Whole),
    ("buffered_events", Shape::Whole),
    ("stored_events", NULLABLE_WHOLE),
    ("stored_bytes", NULLABLE_WHOLE),
]]);

const MINUTE: i64 = 60_000_000;
/// The period in which the newest events are searched. For older ones, all files would have to be read.
const LOOK_BACK: i64 = 7 * 24 * 60 * MINUTE;

/// Builds the statement for the values that only the tables contain.
pub(super) fn statement(request: &ApiRequest) -> Statement {
    let now = request.values.now;
    Statement::build(|binder| {
        let minute = binder.bind(range::text(now - MINUTE));
        let since = binder.bind(range::text(now - LOOK_BACK));
        format!(
            "SELECT max(ingested_at) AS last_event_at,
               coalesce(sum(CASE WHEN ingested_at >= {minute} THEN coalesce(represents, 1) ELSE 0 END), 0)
                 AS events_last_minute
             FROM events WHERE ingested_at >= {since}"
        )
    })
}

/// Combines the counters with the newest events.
pub(super) fn respond(request: &ApiRequest, newest: Vec<Row>) -> Value {
    let mut report = (request.api.ingest)();
    let mut newest = newest.into_iter().next().unwrap_or_default();
    for column in ["last_event_at", "events_last_minute"] {
        report[column] = take(&mut newest, column);
    }
    report
}
