//! The `events` table: every error, warning and audit event.

use super::column::{
    Count, FindingWords, Flag, Hash, Identity, Json, Number, OneOf, Small, Text, Time, Whole,
};
use super::name::Name;
use crate::schema::Table;
use taxonomy::{Category, DangerLevel, Dialect, Event, QuotaLevel, Recovery, Severity};

/// An event, and when it was taken in.
#[derive(Debug, Clone, Copy)]
pub struct EventRow<'r> {
    /// The event, still in the classifier's hands.
    pub event: &'r Event<'r>,
    /// In microseconds since 1970.
    pub ingested_at: i64,
}

super::table! {
    /// Builds the `events` table.
    pub EventRows(row: EventRow<'_>, Table::Events) {
        event_id: Identity = Some(row.event.event_id), always, "The same when the same thing is sent again";
        time: Time = Some(row.event.context.time), always, "When it happened; when it arrived, if nobody said";
        ingested_at: Time = Some(row.ingested_at), always, "When it was taken in";
        kind: OneOf<taxonomy::Kind> = Some(row.event.kind), always, "error, warning or audit";
        dialect: OneOf<Dialect> = Some(row.event.dialect), always, "The error model it was sent in";
        code: Name = row.event.code.as_deref(), optional, "The code as sent";
        canonical: Name = Some(&*row.event.canonical), always, "The code in the cross-dialect taxonomy";
        category: OneOf<Category> = Some(row.event.category), always, "The category of the canonical code: one of ten";
        severity: OneOf<Severity> = Some(row.event.severity), always, "critical, error, warning or info";
        retryable: Flag = row.event.retryable, optional, "Whether a retry can help: the payload's own word first";
        recovery: OneOf<Recovery> = Some(row.event.recovery), always, "What the caller can do about it";
        inferred: Flag = Some(row.event.inferred), always, "The meaning is a guess, from a status or from words";
        hidden: Flag = Some(row.event.hidden), always, "It travelled in a reply that its protocol calls a success";
        http_status: Small = row.event.http_status.map(i32::from), optional, "The HTTP status that the payload or the record gives";
        message: Text = row.event.message.as_deref(), optional, "What was said, without its secrets";
        template: Name = row.event.template, optional, "The message without its dynamic values";
        fingerprint: Hash = Some(row.event.fingerprint), always, "The group it belongs to: canonical code, service, operation and template";
        findings: FindingWords = Some(row.event.findings), always, "What the server could do better about its errors";
        service: Name = row.event.context.service.as_deref(), optional, "The server that answered";
        service_version: Name = row.event.context.service_version.as_deref(), optional, "Its version";
        environment: Name = row.event.context.environment.as_deref(), optional, "Production, staging, and so on";
        client: Name = row.event.context.client.as_deref(), optional, "Who asked: a user, an agent, a tenant or a key's name";
        operation: Name = row.event.context.operation.as_deref(), optional, "What was asked for";
        request_id: Text = row.event.context.request_id.as_deref(), optional, "The request";
        session_id: Text = row.event.context.session_id.as_deref(), optional, "The session";
        trace_id: Text = row.event.context.trace_id.as_deref(), optional, "The trace, as hex digits";
        span_id: Text = row.event.context.span_id.as_deref(), optional, "The span, as hex digits";
        span_kind: Name = row.event.context.span_kind, optional, "The side of the call that reports it; only spans know";
        duration_us: Whole = row.event.context.duration_us, optional, "How long it took, in microseconds";
        source: Name = row.event.context.source, optional, "The receiver it came in by";
        quota_metric: Name = row.event.quota_metric.as_deref(), optional, "Which quota";
        quota_current: Number = row.event.quota_current, optional, "How much of it is used";
        quota_limit: Number = row.event.quota_limit, optional, "How much there is";
        quota_level: OneOf<QuotaLevel> = row.event.quota_level, optional, "warning, pause, exhausted or exceeded";
        retry_after_s: Number = row.event.retry_after_s, optional, "When to come back, in seconds";
        resets_at: Time = row.event.resets_at, optional, "When the quota starts anew";
        required_trust: Name = row.event.required_trust.as_deref(), optional, "The trust that was asked for";
        actual_trust: Name = row.event.actual_trust.as_deref(), optional, "The trust that was there";
        danger_level: OneOf<DangerLevel> = row.event.danger_level, optional, "How dangerous the operation is";
        token_hash: Hash = row.event.token_hash.map(|hash| hash.0), optional, "The confirmation token, hashed: it can be followed, not used";
        batch_index: Whole = row.event.batch_index, optional, "Its place in a batch";
        details: Json = row.event.details, optional, "The payload's details, as JSON, without secrets";
        attributes: Json = row.event.attributes, optional, "What else the record holds, as JSON, without secrets";
        represents: Count = Some(1), optional, "How many events the row stands for: 1, or more of the same sort past the budget of their service";
    }
}

impl EventRows {
    /// A row that is there already stands for so many more events, or for so many fewer again.
    pub fn represent(&mut self, row: usize, more: i64) {
        self.represents.add(row, more);
    }
}
