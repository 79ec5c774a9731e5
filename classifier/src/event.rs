//! What comes out: events, calls, and records that held nothing of ours.

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
    /// What kind of event it is.
    EventKind {
        /// A request failed.
        Error = "error",
        /// A request worked, with a warning.
        Warning = "warning",
        /// A step in the life of a confirmation token.
        Audit = "audit",
    }
}

string_enum! {
    /// How a call went, for the denominators of every rate.
    Outcome {
        /// It worked.
        Ok = "ok",
        /// It failed, and its protocol says so.
        Failed = "failed",
        /// It failed in a reply that its protocol calls a success.
        Hidden = "hidden",
        /// It asks for more input before it goes on.
        InputRequired = "input_required",
        /// It goes on: a task that is not finished has neither worked nor failed.
        Pending = "pending",
    }
}

/// One error, warning or audit event. Everything in it is redacted.
#[derive(Debug, Clone, PartialEq)]
pub struct Event<'a> {
    /// The same when the same thing is sent again.
    pub event_id: u128,
    /// Error, warning or audit.
    pub kind: EventKind,
    /// The error model.
    pub dialect: Dialect,
    /// The code as sent.
    pub code: Option<Cow<'a, str>>,
    /// The cross-dialect code.
    pub canonical: Cow<'a, str>,
    /// The category of the canonical code.
    pub category: Category,
    /// Whose fault it is; none for warnings and audit events, and where nothing tells.
    pub fault: Option<Fault>,
    /// How bad it is.
    pub severity: Severity,
    /// Whether a retry can help: the payload's own word first.
    pub retryable: Option<bool>,
    /// What to do.
    pub recovery: Recovery,
    /// The meaning is a guess, from a status or from words.
    pub inferred: bool,
    /// The failure travelled in a reply that its protocol calls a success.
    pub hidden: bool,
    /// The HTTP status that the payload or the record gives.
    pub http_status: Option<u16>,
    /// What was said.
    pub message: Option<Cow<'a, str>>,
    /// The message without its dynamic values.
    pub template: Option<&'a str>,
    /// The group it belongs to.
    pub fingerprint: u64,
    /// What the server could do better.
    pub findings: Findings,
    /// Who, where and when.
    pub context: Context<'a>,
    /// Which quota.
    pub quota_metric: Option<Cow<'a, str>>,
    /// How much of it is used.
    pub quota_current: Option<f64>,
    /// How much there is.
    pub quota_limit: Option<f64>,
    /// How far it has got.
    pub quota_level: Option<QuotaLevel>,
    /// When to come back, in seconds.
    pub retry_after_s: Option<f64>,
    /// When the quota starts anew, in microseconds since 1970.
    pub resets_at: Option<i64>,
    /// The trust that was asked for.
    pub required_trust: Option<Cow<'a, str>>,
    /// The trust that was there.
    pub actual_trust: Option<Cow<'a, str>>,
    /// How dangerous the operation is.
    pub danger_level: Option<DangerLevel>,
    /// The confirmation token, hashed.
    pub token_hash: Option<TokenHash>,
    /// Its place in a batch.
    pub batch_index: Option<i64>,
    /// The payload's details, as JSON text.
    pub details: Option<&'a str>,
    /// What else the record holds, as JSON text.
    pub attributes: Option<&'a str>,
}

/// Who, where and when. Names are redacted and cut to a bounded length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context<'a> {
    /// When it happened, in microseconds since 1970.
    pub time: i64,
    /// Where that time comes from.
    pub time_source: TimeSource,
    /// The server that answered.
    pub service: Option<Cow<'a, str>>,
    /// Its version.
    pub service_version: Option<Cow<'a, str>>,
    /// Production, staging, and so on.
    pub environment: Option<Cow<'a, str>>,
    /// Who asked.
    pub client: Option<Cow<'a, str>>,
    /// What was asked for.
    pub operation: Option<Cow<'a, str>>,
    /// The request.
    pub request_id: Option<Cow<'a, str>>,
    /// The session.
    pub session_id: Option<Cow<'a, str>>,
    /// The trace.
    pub trace_id: Option<Cow<'a, str>>,
    /// The span.
    pub span_id: Option<Cow<'a, str>>,
    /// The side of the call that reports it; only spans know.
    pub span_kind: Option<&'a str>,
    /// How long it took.
    pub duration_us: Option<i64>,
    /// Where the record came in.
    pub source: Option<&'a str>,
}

/// Where an event's time comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimeSource {
    /// The record says it.
    Record,
    /// The record says nothing: the time of arrival.
    #[default]
    Arrival,
    /// The record's time is unreadable or far ahead: the time of arrival, and that is worth counting.
    Replaced,
}

/// One call, or several alike: what rates are counted against. Most records are calls that worked, so a
/// call carries only what rates are counted by; a failed one has the rest in its [`Event`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call<'a> {
    /// The error model that the reply shows.
    pub dialect: Dialect,
    /// How it went.
    pub outcome: Outcome,
    /// It is taken for a success although the content of its reply was not captured, so that a hidden
    /// failure would not be seen.
    pub is_unverified: bool,
    /// How many calls this stands for.
    pub count: u64,
    /// When it happened, in microseconds since 1970.
    pub time: i64,
    /// Where that time comes from.
    pub time_source: TimeSource,
    /// The server that answered.
    pub service: Option<&'a str>,
    /// Production, staging, and so on.
    pub environment: Option<&'a str>,
    /// What was asked for.
    pub operation: Option<&'a str>,
    /// The side of the call that reports it; only spans know.
    pub span_kind: Option<&'a str>,
    /// How long it took.
    pub duration_us: Option<i64>,
}

/// Takes what a record yields, in the order found.
pub trait Sink {
    /// An error, a warning or an audit event.
    fn event(&mut self, event: &Event<'_>);
    /// A call that worked or failed; a failed one is an event as well.
    fn call(&mut self, call: &Call<'_>);
    /// A record, or a part of one, that could not be used.
    fn unrecognized(&mut self, reason: UnrecognizedReason);
    /// A span that is a part of a tool call, whether it yields anything or not: the tool or method that it
    /// names, not redacted, and the side that it reports. It comes before what the span yields.
    fn call_part(&mut self, _operation: Option<&str>, _side: SpanKind) {}
}

impl Event<'_> {
    /// Appends the event as one JSON object, with every field that is present. `line` goes first.
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
        object.text("quota_metric", self.quota_metric.as_deref());
        object.float("quota_current", self.quota_current);
        object.float("quota_limit", self.quota_limit);
        object.text("quota_level", self.quota_level.map(QuotaLevel::as_str));
        object.float("retry_after_s", self.retry_after_s);
        object.text("resets_at", self.resets_at.map(time::format).as_deref());
        object.text("required_trust", self.required_trust.as_deref());
        object.text("actual_trust", self.actual_trust.as_deref());
        object.text("danger_level", self.danger_level.map(DangerLevel::as_str));
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

/// Writes the fields of a JSON object that are there.
struct ObjectWriter<'o> {
    out: &'o mut String,
    first: bool,
}

impl ObjectWriter<'_> {
    /// Keys are ours, so they need no escaping.
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
