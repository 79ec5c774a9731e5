//! Reports of failures, and how two reports of the same failure complete each other.
//!
//! With today's SDKs, a span names the tool but often carries no message; a log record carries the message and the
//! stack, but does not name the tool. Whichever comes second completes the other: it is stored with the data of both,
//! and supersedes the first. The service of a failure is that of the server if it reports it.

use super::call_tracker::{CallRef, CallTracker, Report, Side, Sighting, Verdict};
use classifier::{Category, Context, Event, EventKind, Fault, Recovery, Severity, fingerprint};
use std::borrow::Cow;
use store::rows::Relation;

/// The recently reported failures of calls.
pub(super) type CallReports = CallTracker<Kept>;

/// The longest message, in bytes, that is kept for a later report.
const MAX_MESSAGE_BYTES: usize = 1_024;

/// The part of a report that is kept for later reports, as far as there is room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// The tool that the report names.
    operation: Option<Box<str>>,
    /// The words of the report; kept only if it names no tool.
    words: Option<Box<Words>>,
}

/// The description of a failure in a log record.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Words {
    code: Option<String>,
    canonical: String,
    category: Category,
    severity: Severity,
    retryable: Option<bool>,
    recovery: Recovery,
    fault: Option<Fault>,
    inferred: bool,
    message: Option<String>,
    template: Option<String>,
    /// The server that reported the failure, if one did.
    server: Option<Server>,
}

/// The server that reported a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Server {
    service: Option<String>,
    version: Option<String>,
    environment: Option<String>,
}

impl Server {
    fn of(context: &Context<'_>) -> Option<Self> {
        let text = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
        (Side::of(context.span_kind) == Side::Answering).then(|| Self {
            service: text(&context.service),
            version: text(&context.service_version),
            environment: text(&context.environment),
        })
    }
}

impl Kept {
    /// Returns the part of an event that a later report may need. Nothing else is kept, because most failures are
    /// reported once.
    pub(super) fn of(event: &Event<'_>) -> Option<Self> {
        if let Some(operation) = &event.context.operation {
            return Some(Self { operation: Some(operation.as_ref().into()), words: None });
        }
        let text = |text: &Cow<'_, str>| text.clone().into_owned();
        if event.message.as_ref().is_some_and(|message| message.len() > MAX_MESSAGE_BYTES) {
            return None;
        }
        let words = Words {
            code: event.code.as_ref().map(text),
            canonical: text(&event.canonical),
            category: event.category,
            severity: event.severity,
            retryable: event.retryable,
            recovery: event.recovery,
            fault: event.fault,
            inferred: event.inferred,
            message: event.message.as_ref().map(text),
            template: event.template.map(str::to_owned),
            server: Server::of(&event.context),
        };
        Some(Self { operation: None, words: Some(Box::new(words)) })
    }
}

/// Returns how informative a report is. A known category counts most, then a message, the answering side, a stack
/// trace and a code. The bare name of an exception is no message.
pub(super) fn score(event: &Event<'_>) -> u8 {
    let has_stack = || event.attributes.is_some_and(|json| json.contains("\"exception.stacktrace\""));
    let is_caller = Side::of(event.context.span_kind) == Side::Calling;
    let has_code = event.code.as_deref().is_some_and(|code| code != "tool_error");
    u8::from(event.category != Category::Unknown) << 4
        | u8::from(event.message.as_deref().is_some_and(|message| !is_name(message))) << 3
        | u8::from(!is_caller) << 2
        | u8::from(has_stack()) << 1
        | u8::from(has_code)
}

/// Reports whether a text is the name of a class, such as `TimeoutError` or `builtins.KeyError`. A word such as `late`
/// is a message.
fn is_name(message: &str) -> bool {
    message.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':'))
        && message.contains(|c: char| c.is_ascii_uppercase() || matches!(c, '.' | ':'))
}

impl CallReports {
    /// Judges a report, and passes its relation to earlier ones to `store`, with the event completed from the earlier
    /// report.
    pub(super) fn relate<R>(
        &self,
        call: CallRef,
        reporter: u64,
        event: &Event<'_>,
        store: impl FnOnce(&Event<'_>, Relation) -> R,
    ) -> R {
        let mut report =
            Report { reporter, event_id: event.event_id, score: score(event), kept: Kept::of(event) };
        let earlier = self.best_report(call).filter(|earlier| earlier.reporter != reporter);
        let Some(earlier) = earlier else { return store(event, self.judge(call, report)) };
        let kept = earlier.kept.unwrap_or_default();
        let words = kept.words.filter(|_| event.context.operation.is_some() && earlier.score >= report.score);
        if let Some(words) = &words {
            report.score = earlier.score.saturating_add(1);
            return store(&with_words(event, words), self.judge(call, report));
        }
        match kept.operation.filter(|_| event.context.operation.is_none() && report.score > earlier.score) {
            Some(operation) => {
                let event = with_operation(event, &operation);
                report.kept = Kept::of(&event);
                store(&event, self.judge(call, report))
            }
            None => store(event, self.judge(call, report)),
        }
    }

    /// Looks for the report of the other side of a call whose traces are not linked. Returns the call that keeps both.
    pub(super) fn find_other_side(&self, sighting: Sighting, event: &Event<'_>, now: i64) -> Option<CallRef> {
        let message = event.message.as_deref()?;
        let earlier = || self.best_report(sighting.call)?.kept?.operation;
        match &event.context.operation {
            Some(operation) => self.match_twin(sighting, operation, message, now),
            None => self.match_twin(sighting, &earlier()?, message, now),
        }
    }

    fn judge(&self, call: CallRef, report: Report<Kept>) -> Relation {
        match self.report(call, report) {
            Verdict::First => Relation::Primary,
            Verdict::Duplicate(event) => Relation::DuplicateOf(event),
            Verdict::DuplicateOfTwo(event, other) => Relation::DuplicateOfBoth(event, other),
            Verdict::Better(event) => Relation::Supersedes(event),
        }
    }
}

/// Returns the failure of a span with the words of a log record.
fn with_words<'e>(event: &'e Event<'e>, words: &'e Words) -> Event<'e> {
    let template = words.template.as_deref();
    let is_caller = Side::of(event.context.span_kind) == Side::Calling;
    let context = match words.server.as_ref().filter(|_| is_caller) {
        Some(server) => Context {
            service: server.service.as_deref().map(Cow::Borrowed),
            service_version: server.version.as_deref().map(Cow::Borrowed),
            environment: server.environment.as_deref().map(Cow::Borrowed),
            ..event.context.clone()
        },
        None => event.context.clone(),
    };
    Event {
        code: words.code.as_deref().map(Cow::Borrowed).or_else(|| event.code.clone()),
        canonical: Cow::Borrowed(&words.canonical),
        category: words.category,
        severity: words.severity,
        retryable: words.retryable,
        recovery: words.recovery,
        fault: words.fault,
        inferred: words.inferred,
        message: words.message.as_deref().map(Cow::Borrowed),
        template,
        fingerprint: group(&words.canonical, &context, template),
        context,
        ..event.clone()
    }
}

/// Returns the failure of a log record with the tool that its span names.
fn with_operation<'e>(event: &'e Event<'e>, operation: &'e str) -> Event<'e> {
    let context = Context { operation: Some(Cow::Borrowed(operation)), ..event.context.clone() };
    let fingerprint = group(&event.canonical, &context, event.template);
    Event { fingerprint, context, ..event.clone() }
}

fn group(canonical: &str, context: &Context<'_>, template: Option<&str>) -> u64 {
    let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
    let (service, operation) = (text(&context.service), text(&context.operation));
    fingerprint::compute(canonical, &service, &operation, template.unwrap_or_default())
}

/// Reports whether an event can be one of several reports of a failure. Warnings and audit events stand alone.
pub(super) fn is_report(event: &Event<'_>) -> bool {
    event.kind == EventKind::Error
}
