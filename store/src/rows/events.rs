//! The `events` table: every error, warning and audit event.

use super::column::{
    Count, FindingWords, Flag, Hash, Identity, Json, Number, OneOf, Small, Text, Time, Whole,
};
use super::name::Name;
use crate::schema::Table;
use classifier::{Category, DangerLevel, Dialect, Event, Fault, QuotaLevel, Recovery, Severity};

/// An event, and the time when it was ingested.
#[derive(Debug, Clone, Copy)]
pub struct EventRow<'r> {
    /// The event, which the classifier still holds.
    pub event: &'r Event<'r>,
    /// The time of ingestion, in microseconds since 1970.
    pub ingested_at: i64,
    /// The relation to another report of the same failure.
    pub relation: Relation,
}

/// The relation of a report of a failure to one that was stored before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Relation {
    /// It is the first report, or the only one.
    #[default]
    Primary,
    /// Another event reports the same failure, with evidence that is as good or better.
    DuplicateOf(u128),
    /// Two events turn out to report the same failure as this one: the first event represents it, and the second is
    /// retracted.
    DuplicateOfBoth(u128, u128),
    /// It has better evidence than an earlier event, and replaces it.
    Supersedes(u128),
}

impl Relation {
    fn duplicate_of(self) -> Option<u128> {
        match self {
            Self::DuplicateOf(event) | Self::DuplicateOfBoth(event, _) => Some(event),
            Self::Primary | Self::Supersedes(_) => None,
        }
    }

    fn supersedes(self) -> Option<u128> {
        match self {
            Self::Supersedes(event) | Self::DuplicateOfBoth(_, event) => Some(event),
            Self::Primary | Self::DuplicateOf(_) => None,
        }
    }

    /// Returns the number of events that a row stands for; a duplicate stands for none.
    fn represents(self) -> i64 {
        i64::from(self.duplicate_of().is_none())
    }
}

super::table! {
    /// Builds the `events` table.
    pub EventRows(row: EventRow<'_>, Table::Events) {
        event_id: Identity = Some(row.event.event_id), always, "The identity of the event; the same when the same record is sent again";
        time: Time = Some(row.event.context.time), always, "The time of the event; the time of arrival if the record has none";
        ingested_at: Time = Some(row.ingested_at), always, "The time at which the event was received";
        kind: OneOf<classifier::EventKind> = Some(row.event.kind), always, "The kind of event: error, warning or audit";
        dialect: OneOf<Dialect> = Some(row.event.dialect), always, "The error model in which the code was sent";
        code: Name = row.event.code.as_deref(), optional, "The code as sent";
        canonical: Name = Some(&*row.event.canonical), always, "The code in the cross-dialect taxonomy";
        category: OneOf<Category> = Some(row.event.category), always, "The category of the canonical code: one of ten";
        severity: OneOf<Severity> = Some(row.event.severity), always, "The severity: critical, error, warning or info";
        retryable: Flag = row.event.retryable, optional, "Whether a retry can help; what the payload says comes first";
        recovery: OneOf<Recovery> = Some(row.event.recovery), always, "What the caller can do about it";
        inferred: Flag = Some(row.event.inferred), always, "Whether the code is a guess, from a status or from words";
        hidden: Flag = Some(row.event.hidden), always, "Whether the failure was in a reply that its protocol calls a success";
        http_status: Small = row.event.http_status.map(i32::from), optional, "The HTTP status in the payload or the record";
        message: Text = row.event.message.as_deref(), optional, "The message, with secrets redacted";
        template: Name = row.event.template, optional, "The message without its dynamic values";
        fingerprint: Hash = Some(row.event.fingerprint), always, "The group of the event: a hash of canonical code, service, operation and template";
        findings: FindingWords = Some(row.event.findings), always, "What the server could do better about its errors, as words of a closed list";
        service: Name = row.event.context.service.as_deref(), optional, "The server that responded";
        service_version: Name = row.event.context.service_version.as_deref(), optional, "The version of the server";
        environment: Name = row.event.context.environment.as_deref(), optional, "The environment, such as production or staging";
        client: Name = row.event.context.client.as_deref(), optional, "The caller: a user, an agent, a tenant or the name of a key";
        operation: Name = row.event.context.operation.as_deref(), optional, "The operation that was called";
        request_id: Text = row.event.context.request_id.as_deref(), optional, "The id of the request";
        session_id: Text = row.event.context.session_id.as_deref(), optional, "The id of the session";
        trace_id: Text = row.event.context.trace_id.as_deref(), optional, "The id of the trace, as hex digits";
        span_id: Text = row.event.context.span_id.as_deref(), optional, "The id of the span, as hex digits";
        span_kind: Name = row.event.context.span_kind, optional, "The side of the call that reports it; only spans have one";
        duration_us: Whole = row.event.context.duration_us, optional, "The duration of the call, in microseconds";
        source: Name = row.event.context.source, optional, "The receiver that took the record";
        quota_metric: Name = row.event.quota.metric.as_deref(), optional, "The name of the quota";
        quota_current: Number = row.event.quota.current, optional, "The used amount of the quota";
        quota_limit: Number = row.event.quota.limit, optional, "The limit of the quota";
        quota_level: OneOf<QuotaLevel> = row.event.quota.level, optional, "The level of the quota: warning, pause, exhausted or exceeded";
        retry_after_s: Number = row.event.retry_after_s, optional, "The time after which a retry is allowed, in seconds";
        resets_at: Time = row.event.quota.resets_at, optional, "The time at which the quota resets";
        required_trust: Name = row.event.denial.required_trust.as_deref(), optional, "The trust level that the operation requires";
        actual_trust: Name = row.event.denial.actual_trust.as_deref(), optional, "The trust level that the caller has";
        danger_level: OneOf<DangerLevel> = row.event.denial.danger_level, optional, "The danger level of the operation";
        token_hash: Hash = row.event.token_hash.map(|hash| hash.0), optional, "The hash of the confirmation token, by which it can be followed but not used";
        batch_index: Whole = row.event.batch_index, optional, "The position in a batch of calls";
        details: Json = row.event.details, optional, "The details of the payload, as JSON, with secrets redacted";
        attributes: Json = row.event.attributes, optional, "The other fields of the record, as JSON, with secrets redacted";
        represents: Count = Some(row.relation.represents()), optional, "The number of events that the row stands for: 1; more if events beyond the budget of their service were coalesced; 0 for a further report of a failure that another row stands for";
        fault: OneOf<Fault> = row.event.fault, optional, "The party at fault: caller, server, upstream, policy, user, quota, transport or probe";
        duplicate_of: Identity = row.relation.duplicate_of(), optional, "The event_id of the row that stands for the same failure, for a further report of it";
        supersedes: Identity = row.relation.supersedes(), optional, "The event_id of an earlier report of the same failure, which no longer stands for it";
    }
}

impl EventRows {
    /// Adds to the number of events that an existing row stands for. `more` may be negative.
    pub fn represent(&mut self, row: usize, more: i64) {
        self.represents.add(row, more);
    }
}
