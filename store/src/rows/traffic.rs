//! The `traffic` table: how many calls there were, and how they went. The denominators of every rate.
//!
//! Rows are partial sums: each batch of the log carries those of the calls that came with it, and readers add
//! them up. That holds for the histogram too, which is why it is columns and not one value: `sum` merges it
//! in every engine.

use super::column::{OneOf, Time, Whole};
use super::name::Name;
use crate::schema::Table;
use taxonomy::{Dialect, Outcome};

/// The upper bounds of the histogram's buckets, in microseconds.
pub const BUCKET_BOUNDS_US: [i64; 14] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 30_000_000,
];

/// Calls of one minute that are alike.
#[derive(Debug, Clone, Copy)]
pub struct TrafficRow<'r> {
    /// The start of the minute, in microseconds since 1970.
    pub minute: i64,
    /// The server that answered.
    pub service: Option<&'r str>,
    /// Production, staging, and so on.
    pub environment: Option<&'r str>,
    /// What was asked for.
    pub operation: Option<&'r str>,
    /// The error model.
    pub dialect: Dialect,
    /// How they went.
    pub outcome: Outcome,
    /// The side of the call that reports them.
    pub span_kind: Option<&'r str>,
    /// Where they came in.
    pub source: &'r str,
    /// How many.
    pub calls: i64,
    /// How many of them say how long they took.
    pub timed: i64,
    /// How long those took together, in microseconds.
    pub duration_sum_us: i64,
    /// How many of those took at most each of [`BUCKET_BOUNDS_US`].
    pub buckets: [i64; BUCKET_BOUNDS_US.len()],
}

impl TrafficRow<'_> {
    /// Calls with an outcome that counts as failed.
    fn failures(&self) -> i64 {
        if matches!(self.outcome, Outcome::Failed | Outcome::Hidden) { self.calls } else { 0 }
    }

    fn hidden(&self) -> i64 {
        if self.outcome == Outcome::Hidden { self.calls } else { 0 }
    }
}

super::table! {
    /// Builds the `traffic` table.
    pub TrafficRows(row: TrafficRow<'_>, Table::Traffic) {
        minute: Time = Some(row.minute), always, "The start of the minute";
        service: Name = row.service, optional, "The server that answered";
        environment: Name = row.environment, optional, "Production, staging, and so on";
        operation: Name = row.operation, optional, "What was asked for";
        dialect: OneOf<Dialect> = Some(row.dialect), always, "The error model of the replies";
        outcome: OneOf<Outcome> = Some(row.outcome), always, "ok, failed, hidden or input_required";
        span_kind: Name = row.span_kind, optional, "The side of the call that reports them; only spans know";
        source: Name = Some(row.source), always, "The receiver they came in by";
        calls: Whole = Some(row.calls), always, "How many calls";
        failures: Whole = Some(row.failures()), always, "How many of them failed, hidden or not";
        hidden_failures: Whole = Some(row.hidden()), always, "How many failed in a reply that its protocol calls a success";
        timed_calls: Whole = Some(row.timed), always, "How many say how long they took";
        duration_sum_us: Whole = Some(row.duration_sum_us), always, "How long those took together, in microseconds";
        took_at_most_1ms: Whole = Some(row.buckets[0]), always, "Timed calls of at most 1 ms";
        took_at_most_2_5ms: Whole = Some(row.buckets[1]), always, "Timed calls of at most 2.5 ms";
        took_at_most_5ms: Whole = Some(row.buckets[2]), always, "Timed calls of at most 5 ms";
        took_at_most_10ms: Whole = Some(row.buckets[3]), always, "Timed calls of at most 10 ms";
        took_at_most_25ms: Whole = Some(row.buckets[4]), always, "Timed calls of at most 25 ms";
        took_at_most_50ms: Whole = Some(row.buckets[5]), always, "Timed calls of at most 50 ms";
        took_at_most_100ms: Whole = Some(row.buckets[6]), always, "Timed calls of at most 100 ms";
        took_at_most_250ms: Whole = Some(row.buckets[7]), always, "Timed calls of at most 250 ms";
        took_at_most_500ms: Whole = Some(row.buckets[8]), always, "Timed calls of at most 500 ms";
        took_at_most_1s: Whole = Some(row.buckets[9]), always, "Timed calls of at most 1 s";
        took_at_most_2_5s: Whole = Some(row.buckets[10]), always, "Timed calls of at most 2.5 s";
        took_at_most_5s: Whole = Some(row.buckets[11]), always, "Timed calls of at most 5 s";
        took_at_most_10s: Whole = Some(row.buckets[12]), always, "Timed calls of at most 10 s";
        took_at_most_30s: Whole = Some(row.buckets[13]), always, "Timed calls of at most 30 s";
    }
}
