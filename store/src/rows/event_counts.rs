//! The `event_counts` table: the number of events by time and group, so that nobody has to count rows of `events`.
//!
//! It is derived from `events` (`delta/event_counts`), and is not in the WAL. Rows are partial counts, like those of
//! `traffic`: each flush adds some, and readers add them up.

use super::column::{Flag, Hash, Identity, Time, Whole};
use super::name::Name;
use crate::schema::Table;

/// The duration that a bucket covers at first, in microseconds: 15 minutes.
pub const BUCKET_US: i64 = 900_000_000;
/// The duration that a bucket covers when its day is old, in microseconds: an hour.
pub const OLD_BUCKET_US: i64 = 3_600_000_000;
/// The time after the end of a day for which its buckets stay short, in microseconds: two days.
pub const SHORT_BUCKETS_FOR_US: i64 = 2 * 86_400_000_000;

/// The columns of a group that are names, in the order of [`EventCountRow::names`].
pub(crate) const NAMES: [&str; 10] = [
    "service",
    "canonical",
    "operation",
    "category",
    "dialect",
    "template",
    "kind",
    "fault",
    "service_version",
    "environment",
];

/// Events of one bucket and one group.
#[derive(Debug, Clone, Copy)]
pub struct EventCountRow<'r> {
    /// The start of the bucket, in microseconds since 1970.
    pub bucket: i64,
    /// The names of the group: service, canonical code, operation, category, dialect, template, kind, fault, version and
    /// environment.
    pub names: [Option<&'r str>; NAMES.len()],
    /// The fingerprint of the group.
    pub fingerprint: u64,
    /// True for failures in replies that their protocol calls a success.
    pub hidden: bool,
    /// The number of events.
    pub events: i64,
    /// The number of rows of `events`.
    pub reports: i64,
    /// The times of the first and of the last event, and the id of the last one.
    pub seen: Option<(i64, i64, u128)>,
}

super::table! {
    /// Builds the `event_counts` table.
    pub EventCountRows(row: EventCountRow<'_>, Table::EventCounts) {
        bucket: Time = Some(row.bucket), always, "The start of the bucket: a quarter of an hour, or an hour once its day has been over for two days";
        service: Name = row.names[0], optional, "The server that responded";
        canonical: Name = row.names[1], optional, "The code in the cross-dialect taxonomy";
        operation: Name = row.names[2], optional, "The operation that was called";
        fingerprint: Hash = Some(row.fingerprint), always, "The group of the events: a hash of canonical code, service, operation and template";
        category: Name = row.names[3], optional, "The category of the canonical code: one of ten";
        dialect: Name = row.names[4], optional, "The error model in which the code was sent";
        template: Name = row.names[5], optional, "The message without its dynamic values";
        kind: Name = row.names[6], optional, "The kind of event: error, warning or audit";
        hidden: Flag = Some(row.hidden), always, "Whether the failures were in replies that their protocol calls a success";
        fault: Name = row.names[7], optional, "The party at fault: caller, server, upstream, policy, user, quota, transport or probe";
        service_version: Name = row.names[8], optional, "The version of the server";
        environment: Name = row.names[9], optional, "The environment, such as production or staging";
        events: Whole = Some(row.events), always, "The number of events; a failure that several reports tell counts once. It is negative in a row that takes back what another row counts";
        reports: Whole = Some(row.reports), always, "The number of rows of the table events, further reports of the same failure included";
        first_seen: Time = row.seen.map(|(first, _, _)| first), optional, "The time of the first event";
        last_seen: Time = row.seen.map(|(_, last, _)| last), optional, "The time of the newest event";
        newest_event_id: Identity = row.seen.map(|(_, _, id)| id), optional, "The id of the newest event, as an example";
    }
}
