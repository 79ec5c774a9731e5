//! What a report of a failure tells, and what two reports of one failure tell together.
//!
//! A span knows the tool but, with today's SDKs, often not the words; a log record knows the words and the
//! stack, but not the tool. Whichever comes second completes the other: it is stored with what both know, in
//! place of the first.

use super::call_tracker::{CallRef, CallTracker, Report, Verdict};
use classifier::{Category, Context, Event, EventKind, Fault, Recovery, Severity, fingerprint};
use std::borrow::Cow;
use store::rows::Relation;

/// The failures of calls that were reported lately.
pub(super) type CallReports = CallTracker<Kept>;

/// Longer messages are not kept for a later report.
const MAX_MESSAGE_BYTES: usize = 1_024;

/// What is kept of a report, as far as there is room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// The tool that it names.
    operation: Option<Box<str>>,
    /// What it says, when it names no tool.
    words: Option<Box<Words>>,
}

/// What a log record says about a failure.
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
}

impl Kept {
    /// What a later report may need. Nothing else is kept: most failures are reported once.
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
        };
        Some(Self { operation: None, words: Some(Box::new(words)) })
    }
}

/// How much a report tells: what went wrong counts most, then the words, the side that answered, the stack
/// and the code.
pub(super) fn score(event: &Event<'_>) -> u8 {
    let has_stack = || event.attributes.is_some_and(|json| json.contains("\"exception.stacktrace\""));
    let is_caller = matches!(event.context.span_kind, Some("client" | "producer" | "internal"));
    let has_code = event.code.as_deref().is_some_and(|code| code != "tool_error");
    u8::from(event.category != Category::Unknown) << 4
        | u8::from(event.message.is_some()) << 3
        | u8::from(!is_caller) << 2
        | u8::from(has_stack()) << 1
        | u8::from(has_code)
}

impl CallReports {
    /// Judges a report, and passes on how it is to be stored, with what an earlier one adds to it.
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

    fn judge(&self, call: CallRef, report: Report<Kept>) -> Relation {
        match self.report(call, report) {
            Verdict::First => Relation::Primary,
            Verdict::Duplicate(event) => Relation::DuplicateOf(event),
            Verdict::DuplicateOfTwo(event, other) => Relation::DuplicateOfBoth(event, other),
            Verdict::Better(event) => Relation::Supersedes(event),
        }
    }
}

/// The failure of a span, in the words of a log record.
fn with_words<'e>(event: &'e Event<'e>, words: &'e Words) -> Event<'e> {
    let template = words.template.as_deref();
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
        fingerprint: group(&words.canonical, &event.context, template),
        ..event.clone()
    }
}

/// The failure of a log record, with the tool that its span names.
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

/// True for what can be one of several reports: warnings and audit events say something of their own.
pub(super) fn is_report(event: &Event<'_>) -> bool {
    event.kind == EventKind::Error
}
