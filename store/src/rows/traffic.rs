//! The `traffic` table: the number of calls by outcome, which is the denominator of every rate.
//!
//! Rows are partial sums: each batch of the WAL carries those of the calls that arrived with it, and readers add them
//! up. That also holds for the histogram, which is therefore several columns and not one value: `sum` merges it in
//! every engine.

use super::column::{OneOf, Time, Whole};
use super::name::Name;
use crate::schema::Table;
use classifier::{Dialect, Outcome};

/// The upper bounds of the histogram's buckets, in microseconds.
pub const BUCKET_BOUNDS_US: [i64; 14] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 30_000_000,
];

/// Calls of one minute with the same properties.
#[derive(Debug, Clone, Copy)]
pub struct TrafficRow<'r> {
    /// The start of the minute, in microseconds since 1970.
    pub minute: i64,
    /// The service that handled the calls.
    pub service: Option<&'r str>,
    /// The environment, such as production or staging.
    pub environment: Option<&'r str>,
    /// The operation that was called.
    pub operation: Option<&'r str>,
    /// The error model.
    pub dialect: Dialect,
    /// The outcome of the calls.
    pub outcome: Outcome,
    /// The side of the call that reports them.
    pub span_kind: Option<&'r str>,
    /// The receiver that took the records.
    pub source: &'r str,
    /// The number of calls.
    pub calls: i64,
    /// The number of failures of calls that an earlier row counted as successes.
    pub late_failures: i64,
    /// The number of calls that count as successes although the content of their reply was not captured.
    pub unverified: i64,
    /// The number of calls that report a duration.
    pub timed: i64,
    /// The sum of those durations, in microseconds.
    pub duration_sum_us: i64,
    /// The number of those calls that took at most each duration of [`BUCKET_BOUNDS_US`].
    pub buckets: [i64; BUCKET_BOUNDS_US.len()],
}

impl TrafficRow<'_> {
    /// Returns the number of failures: of calls with an outcome that counts as failed.
    fn failures(&self) -> i64 {
        let has_failed = matches!(self.outcome, Outcome::Failed | Outcome::Hidden);
        if has_failed { self.calls.saturating_add(self.late_failures) } else { 0 }
    }

    fn hidden(&self) -> i64 {
        if self.outcome == Outcome::Hidden { self.failures() } else { 0 }
    }
}

super::table! {
    /// Builds the `traffic` table.
    pub TrafficRows(row: TrafficRow<'_>, Table::Traffic) {
        minute: Time = Some(row.minute), always, "The start of the minute";
        service: Name = row.service, optional, "The server that responded";
        environment: Name = row.environment, optional, "The environment, such as production or staging";
        operation: Name = row.operation, optional, "The operation that was called";
        dialect: OneOf<Dialect> = Some(row.dialect), always, "The error model of the replies";
        outcome: OneOf<Outcome> = Some(row.outcome), always, "The outcome of the calls: ok, failed, hidden, input_required or pending";
        span_kind: Name = row.span_kind, optional, "The side of the call that reports it; only spans have one";
        source: Name = Some(row.source), always, "The receiver that took the records";
        calls: Whole = Some(row.calls), always, "The number of calls; 0 if the row only adds failures of calls that an earlier row counted as ok";
        failures: Whole = Some(row.failures()), always, "The number of failed calls, hidden failures included";
        hidden_failures: Whole = Some(row.hidden()), always, "The number of failures in replies that their protocol calls a success";
        timed_calls: Whole = Some(row.timed), always, "The number of calls that report a duration";
        duration_sum_us: Whole = Some(row.duration_sum_us), always, "The sum of the durations of timed calls, in microseconds";
        took_at_most_1ms: Whole = Some(row.buckets[0]), always, "The number of timed calls that took at most 1 ms";
        took_at_most_2_5ms: Whole = Some(row.buckets[1]), always, "The number of timed calls that took at most 2.5 ms";
        took_at_most_5ms: Whole = Some(row.buckets[2]), always, "The number of timed calls that took at most 5 ms";
        took_at_most_10ms: Whole = Some(row.buckets[3]), always, "The number of timed calls that took at most 10 ms";
        took_at_most_25ms: Whole = Some(row.buckets[4]), always, "The number of timed calls that took at most 25 ms";
        took_at_most_50ms: Whole = Some(row.buckets[5]), always, "The number of timed calls that took at most 50 ms";
        took_at_most_100ms: Whole = Some(row.buckets[6]), always, "The number of timed calls that took at most 100 ms";
        took_at_most_250ms: Whole = Some(row.buckets[7]), always, "The number of timed calls that took at most 250 ms";
        took_at_most_500ms: Whole = Some(row.buckets[8]), always, "The number of timed calls that took at most 500 ms";
        took_at_most_1s: Whole = Some(row.buckets[9]), always, "The number of timed calls that took at most 1 s";
        took_at_most_2_5s: Whole = Some(row.buckets[10]), always, "The number of timed calls that took at most 2.5 s";
        took_at_most_5s: Whole = Some(row.buckets[11]), always, "The number of timed calls that took at most 5 s";
        took_at_most_10s: Whole = Some(row.buckets[12]), always, "The number of timed calls that took at most 10 s";
        took_at_most_30s: Whole = Some(row.buckets[13]), always, "The number of timed calls that took at most 30 s";
        unverified_calls: Whole = Some(row.unverified), optional, "The number of tool calls that count as ok although the content of their reply was not captured, so that a hidden failure would not be seen";
    }
}
