//! The output of the classifier: events, calls, and reasons for which records could not be used.

use crate::category::{Category, Recovery, Severity};
use crate::denial::DangerLevel;
use crate::dialect::Dialect;
use crate::fault::Fault;
use crate::findings::Findings;
use crate::json::write;
use crate::quota::QuotaLevel;
use crate::reason::UnrecognizedReason;
use crate::redact::{TokenHash, comma};
use crate::string_enum::string_enum;
use crate::telemetry::SpanKind;
use crate::time;
use std::borrow::Cow;
use std::fmt;

string_enum! {
    /// The kind of an event.
    EventKind {
        /// A request failed.
        Error = "error",
        /// A request succeeded, with a warning.
        Warning = "warning",
        /// A step in the life of a confirmation token.
        Audit = "audit",
    }
}

string_enum! {
    /// The outcome of a call, for the denominators of rates.
    Outcome {
        /// The call succeeded.
        Ok = "ok",
        /// The call failed, and its protocol reports that.
        Failed = "failed",
        /// The call failed in a reply that its protocol calls a success.
        Hidden = "hidden",
        /// The call needs more input before it continues.
        InputRequired = "input_required",
        /// The call continues: a task that is not finished has neither succeeded nor failed.
        Pending = "pending",
    }
}

/// One error, warning or audit event. All its texts are redacted.
#[derive(Debug, Clone, PartialEq)]
pub struct Event<'a> {
    /// The id of the event. It is the same when the same record is sent again.
    pub event_id: u128,
    /// The kind: error, warning or audit.
    pub kind: EventKind,
    /// The error model of the record.
    pub dialect: Dialect,
    /// The code as sent.
    pub code: Option<Cow<'a, str>>,
    /// The cross-dialect code.
    pub canonical: Cow<'a, str>,
    /// The category of the canonical code.
    pub category: Category,
    /// The party at fault; `None` for warnings and audit events, and where it is not known.
    pub fault: Option<Fault>,
    /// The severity.
    pub severity: Severity,
    /// True if a retry can help; the payload's own statement takes precedence.
    pub retryable: Option<bool>,
    /// The recommended recovery.
    pub recovery: Recovery,
    /// True if the meaning is a guess, from a status or from the wording.
    pub inferred: bool,
    /// True if the failure arrived in a reply that its protocol calls a success.
    pub hidden: bool,
    /// The HTTP status that the payload or the record states.
    pub http_status: Option<u16>,
    /// The error message.
    pub message: Option<Cow<'a, str>>,
    /// The message without its dynamic values.
    pub template: Option<&'a str>,
    /// The fingerprint of the group that the event belongs to.
    pub fingerprint: u64,
    /// The conformance findings: improvements that the server could make.
    pub findings: Findings,
    /// The context: client, service, operation, time and ids.
    pub context: Context<'a>,
    /// The quota that the event reports.
    pub quota: EventQuota<'a>,
    /// The time to wait before a retry, in seconds.
    pub retry_after_s: Option<f64>,
    /// The trust and danger that the denial of an operation reports.
    pub denial: EventDenial<'a>,
    /// The hash of the confirmation token.
    pub token_hash: Option<TokenHash>,
    /// The index in a batch.
    pub batch_index: Option<i64>,
    /// The details of the payload, as JSON text.
    pub details: Option<&'a str>,
    /// The remaining fields of the record, as JSON text.
    pub attributes: Option<&'a str>,
}

/// The quota fields of an event, which only rate limits have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventQuota<'a> {
    /// The name of the quota.
    pub metric: Option<Cow<'a, str>>,
    /// The used part of the quota.
    pub current: Option<f64>,
    /// The size of the quota.
    pub limit: Option<f64>,
    /// The level that the quota has reached.
    pub level: Option<QuotaLevel>,
    /// The time at which the quota resets, in microseconds since 1970.
    pub resets_at: Option<i64>,
}

/// The trust and danger fields of an event, which only denials have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventDenial<'a> {
    /// The trust level that was required.
    pub required_trust: Option<Cow<'a, str>>,
    /// The trust level that the adapter had.
    pub actual_trust: Option<Cow<'a, str>>,
    /// The danger level of the operation.
    pub danger_level: Option<DangerLevel>,
}

/// The context of an event: client, service, operation, time and ids. Names are redacted and truncated to a limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context<'a> {
    /// The time of the event, in microseconds since 1970.
    pub time: i64,
    /// The origin of that time.
    pub time_source: TimeSource,
    /// The server that replied.
    pub service: Option<Cow<'a, str>>,
    /// The version of the server.
    pub service_version: Option<Cow<'a, str>>,
    /// The environment, such as production or staging.
    pub environment: Option<Cow<'a, str>>,
    /// The client that sent the request.
    pub client: Option<Cow<'a, str>>,
    /// The operation that was requested.
    pub operation: Option<Cow<'a, str>>,
    /// The request id.
    pub request_id: Option<Cow<'a, str>>,
    /// The session id.
    pub session_id: Option<Cow<'a, str>>,
    /// The trace id.
    pub trace_id: Option<Cow<'a, str>>,
    /// The span id.
    pub span_id: Option<Cow<'a, str>>,
    /// The side of the call that reports it; only spans state it.
    pub span_kind: Option<&'a str>,
    /// The duration in microseconds.
    pub duration_us: Option<i64>,
    /// The receiver or file that the record came from.
    pub source: Option<&'a str>,
}

/// The origin of an event's time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimeSource {
    /// The record states the time.
    Record,
    /// The record states no time, so the time of arrival is used.
    #[default]
    Arrival,
    /// The record's time is unreadable or far in the future, so the time of arrival replaces it. Such records are
    /// counted.
    Replaced,
}

/// One call or several equal calls: the denominator of rates. Most records are calls that succeeded, so a call carries
/// only the fields that rates are grouped by. The other fields of a failed call are in its [`Event`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call<'a> {
    /// The error model that the reply shows.
    pub dialect: Dialect,
    /// The outcome.
    pub outcome: Outcome,
    /// True if the call counts as a success although the content of its reply was not captured, so that a hidden
    /// failure would go unnoticed.
    pub is_unverified: bool,
    /// The number of calls that this value represents.
    pub count: u64,
    /// The time of the call, in microseconds since 1970.
    pub time: i64,
    /// The origin of that time.
    pub time_source: TimeSource,
    /// The server that replied.
    pub service: Option<&'a str>,
    /// The environment, such as production or staging.
    pub environment: Option<&'a str>,
    /// The operation that was requested.
    pub operation: Option<&'a str>,
    /// The side of the call that reports it; only spans state it.
    pub span_kind: Option<&'a str>,
    /// The duration in microseconds.
    pub duration_us: Option<i64>,
}

/// Receives the events and calls of a record, in the order in which they are found.
pub trait Sink {
    /// Receives an error, a warning or an audit event.
    fn event(&mut self, event: &Event<'_>);
    /// Receives a call that succeeded or failed; a failed call is reported as an event as well.
    fn call(&mut self, call: &Call<'_>);
    /// Receives the reason for which a record, or a part of one, could not be used.
    fn unrecognized(&mut self, reason: UnrecognizedReason);
    /// Receives a span that is part of a tool call, even if the span yields nothing else: the tool or method that it
    /// names, not redacted, and the side that it reports. It is called before the span's events and calls are passed.
    fn call_part(&mut self, _operation: Option<&str>, _side: SpanKind) {}
}

impl Event<'_> {
    /// Appends the event as one JSON object with every field that is present. `line` is written first.
    pub fn write_json(&self, out: &mut String, line: Option<u64>) {
        let mut object = ObjectWriter { out, first: true };
        object.out.push('{');
        object.number("line", line);
        object.text("event_id", Some(&format!("{:032x}", self.event_id)));
        self.write_classification(&mut object);
        self.context.write(&mut object);
        self.write_quota_and_denial(&mut object);
        object.raw("details", self.details);
        object.raw("attributes", self.attributes);
        object.out.push('}');
    }

    fn write_classification(&self, object: &mut ObjectWriter<'_>) {
        object.text("kind", Some(self.kind.as_str()));
        object.text("dialect", Some(self.dialect.as_str()));
        object.text("code", self.code.as_deref());
        object.text("canonical", Some(&self.canonical));
        object.text("category", Some(self.category.as_str()));
        object.text("fault", self.fault.map(Fault::as_str));
        object.text("severity", Some(self.severity.as_str()));
        object.flag("retryable", self.retryable);
        object.text("recovery", Some(self.recovery.as_str()));
        object.flag("inferred", Some(self.inferred));
        object.flag("hidden", Some(self.hidden));
        object.number("http_status", self.http_status);
        object.text("message", self.message.as_deref());
        object.text("template", self.template);
        object.text("fingerprint", Some(&format!("{:016x}", self.fingerprint)));
        object.names("findings", self.findings.iter().map(crate::Finding::as_str));
    }

    fn write_quota_and_denial(&self, object: &mut ObjectWriter<'_>) {
        let Self { quota, denial, .. } = self;
        object.text("quota_metric", quota.metric.as_deref());
        object.float("quota_current", quota.current);
        object.float("quota_limit", quota.limit);
        object.text("quota_level", quota.level.map(QuotaLevel::as_str));
        object.float("retry_after_s", self.retry_after_s);
        object.text("resets_at", quota.resets_at.map(time::format).as_deref());
        object.text("required_trust", denial.required_trust.as_deref());
        object.text("actual_trust", denial.actual_trust.as_deref());
        object.text("danger_level", denial.danger_level.map(DangerLevel::as_str));
        object.text("token_hash", self.token_hash.map(|hash| hash.to_string()).as_deref());
        object.number("batch_index", self.batch_index);
    }
}

impl Context<'_> {
    fn write(&self, object: &mut ObjectWriter<'_>) {
        let time = (self.time_source == TimeSource::Record).then(|| time::format(self.time));
        object.text("time", time.as_deref());
        object.text("service", self.service.as_deref());
        object.text("service_version", self.service_version.as_deref());
        object.text("environment", self.environment.as_deref());
        object.text("client", self.client.as_deref());
        object.text("operation", self.operation.as_deref());
        object.text("request_id", self.request_id.as_deref());
        object.text("session_id", self.session_id.as_deref());
        object.text("trace_id", self.trace_id.as_deref());
        object.text("span_id", self.span_id.as_deref());
        object.text("span_kind", self.span_kind);
        object.number("duration_us", self.duration_us);
        object.text("source", self.source);
    }
}

/// Writes those fields of a JSON object that are present.
struct ObjectWriter<'o> {
    out: &'o mut String,
    first: bool,
}

impl ObjectWriter<'_> {
    /// Writes a key. All keys are constants of this module, so they need no escaping.
    fn key(&mut self, key: &str) {
        comma(self.out, &mut self.first);
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
    }

    fn text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.key(key);
            write::string(self.out, value);
        }
    }

    fn raw(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.key(key);
            self.out.push_str(value);
        }
    }

    fn flag(&mut self, key: &str, value: Option<bool>) {
        self.raw(key, value.map(|value| if value { "true" } else { "false" }));
    }

    fn number(&mut self, key: &str, value: Option<impl itoa::Integer>) {
        if let Some(value) = value {
            self.key(key);
            self.out.push_str(itoa::Buffer::new().format(value));
        }
    }

    fn float(&mut self, key: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.key(key);
            write::float(self.out, value);
        }
    }

    fn names(&mut self, key: &str, names: impl Iterator<Item = &'static str>) {
        let mut first = true;
        for name in names {
            if first {
                self.key(key);
                self.out.push('[');
            }
            comma(self.out, &mut first);
            write::string(self.out, name);
        }
        if !first {
            self.out.push(']');
        }
    }
}
