//! From what an envelope says to an event: looked up, redacted, grouped, judged.

use super::frame::{Frame, Identity, Reading};
use super::{Origin, Rules};
use crate::category::{Category, Recovery, Severity};
use crate::classify::{Subject, Verdict, classify};
use crate::code::Code;
use crate::context::{Field, http_status};
use crate::denial::Denial;
use crate::details::{Details, Key};
use crate::dialect::Dialect;
use crate::envelope::{Failure, Scope};
use crate::event::{Context, Event, Kind};
use crate::findings::{Finding, Findings};
use crate::json::{Json, Parser, write};
use crate::limits::cut;
use crate::quota::Quota;
use crate::redact::{CleanNames, REDACTED, TokenHash, comma};
use crate::registry::AuditEvent;
use crate::{fingerprint, retry_after, template};
use std::borrow::Cow;

/// Texts that are built anew for each event, in buffers that stay; and what was learned from the last ones.
pub(super) struct Scratch {
    template: String,
    details: String,
    attributes: String,
    group: Vec<u8>,
    pub(super) clean: CleanNames,
    /// What the telemetry of one record carries, once it is written.
    pub(super) carried: String,
    pub(super) is_carried: bool,
    /// For JSON that is written out again.
    pub(super) spare: Parser,
}

impl Scratch {
    pub(super) fn new(json_depth: usize) -> Self {
        Self {
            template: String::new(),
            details: String::new(),
            attributes: String::new(),
            group: Vec::new(),
            clean: CleanNames::default(),
            carried: String::new(),
            is_carried: false,
            spare: Parser::new(json_depth),
        }
    }
}

/// Builds events; everything it makes borrows from the record, the rules or the scratch.
pub(super) struct Builder<'e> {
    pub(super) rules: &'e Rules,
    pub(super) origin: &'e Origin<'e>,
    /// The telemetry around what is found, when it is telemetry.
    pub(super) frame: Option<&'e Frame<'e>>,
    /// Where in it we are.
    pub(super) reading: Reading<'e>,
    /// False once a record has had its share.
    pub(super) writes_attributes: bool,
}

impl<'e> Builder<'e> {
    pub(super) fn new(rules: &'e Rules, origin: &'e Origin<'e>, frame: Option<&'e Frame<'e>>) -> Self {
        Self { rules, origin, frame, reading: Reading::NOWHERE, writes_attributes: true }
    }

    /// A failure or a warning.
    pub(super) fn failure<'a>(
        &self,
        failure: &Failure<'a>,
        scope: &Scope<'a>,
        index: usize,
        scratch: &'a mut Scratch,
    ) -> Event<'a>
    where
        'e: 'a,
    {
        let details = Details::read(failure.details);
        let beside = &failure.beside;
        let context = self.context(scope, &details, &mut scratch.clean);
        let http_status = status_of(&details, beside, scope);
        let verdict =
            self.look_up(failure, scope, &Known { details: &details, beside, http_status }, &context);
        let meaning = verdict.meaning;
        let stated = stated_retryable(&details, beside);
        let message = self.message(failure.message, scratch);
        let hidden = self.is_hidden(scope) && failure.kind == Kind::Error;
        let mut findings = super::judge::findings(failure, &verdict, &message);
        findings.note(Finding::HiddenFailure, hidden);
        findings.note(
            Finding::RetryableContradiction,
            // Only a specification can be contradicted, not the default of a category.
            verdict.entry.and(stated.zip(meaning.retryable)).is_some_and(|(a, b)| a != b),
        );
        let has_details = self.write_details(failure, scope, &mut scratch.details);
        let has_attributes = self.write_attributes(scope, scratch);
        let (code, canonical) = self.code(failure.code, &verdict);
        let fingerprint = group(&canonical, &context, scratch);
        let event_id = self.event_id(&canonical, index, &mut scratch.group);
        let scratch: &'a Scratch = scratch;
        let quota = Quota::read(meaning.category, &canonical, &details);
        let is_denial = meaning.category == Category::Permission;
        let denial = if is_denial { Denial::read(&details) } else { Denial::default() };
        Event {
            event_id,
            kind: failure.kind,
            dialect: verdict.dialect,
            code,
            fingerprint,
            canonical,
            category: meaning.category,
            severity: severity_of(failure.kind, meaning.severity),
            retryable: stated.or(meaning.retryable),
            recovery: meaning.recovery,
            inferred: verdict.inferred,
            hidden,
            http_status,
            template: message.text.is_some().then_some(&scratch.template),
            message: message.text,
            findings,
            context,
            quota_metric: quota.metric.map(|metric| self.name(metric)),
            quota_current: quota.current.filter(|number| !self.rules.redactor.is_secret_number(*number)),
            quota_limit: quota.limit.filter(|number| !self.rules.redactor.is_secret_number(*number)),
            quota_level: quota.level,
            retry_after_s: retry_after_of(&details, beside, failure.message, &verdict),
            resets_at: quota.resets_at,
            required_trust: denial.required_trust.map(|trust| self.name(trust)),
            actual_trust: denial.actual_trust.map(|trust| self.name(trust)),
            danger_level: denial.danger_level,
            token_hash: self.token_of(&details, failure.confirmation),
            batch_index: scope.batch_index,
            details: has_details.then_some(&scratch.details),
            attributes: has_attributes.then_some(&scratch.attributes),
        }
    }

    /// A step in the life of a confirmation token.
    pub(super) fn audit<'a>(
        &self,
        audit: &'a AuditEvent,
        record: Json<'a>,
        scope: &Scope<'a>,
        index: usize,
        scratch: &'a mut Scratch,
    ) -> Event<'a>
    where
        'e: 'a,
    {
        let failure = Failure { details: record.present("details"), ..Failure::of_shape(Dialect::McpAql) };
        let (details, beside) = (Details::read(failure.details), Details::read(Some(record)));
        let context = self.context(scope, &details, &mut scratch.clean);
        let has_details = self.write_details(&failure, scope, &mut scratch.details);
        let has_attributes = self.write_attributes(scope, scratch);
        scratch.template.clear();
        let fingerprint = group(&audit.canonical, &context, scratch);
        let event_id = self.event_id(&audit.canonical, index, &mut scratch.group);
        let scratch: &'a Scratch = scratch;
        let category = self.rules.registry.category(&audit.canonical);
        Event {
            event_id,
            kind: Kind::Audit,
            dialect: self.named(scope, context.service.as_deref()).unwrap_or(Dialect::McpAql),
            code: Some(Cow::Borrowed(&audit.event)),
            canonical: Cow::Borrowed(&audit.canonical),
            category,
            severity: Severity::Info,
            retryable: None,
            recovery: Recovery::None,
            inferred: false,
            hidden: false,
            http_status: None,
            message: None,
            template: None,
            fingerprint,
            findings: Findings::default(),
            context,
            quota_metric: None,
            quota_current: None,
            quota_limit: None,
            quota_level: None,
            retry_after_s: None,
            resets_at: None,
            required_trust: None,
            actual_trust: None,
            danger_level: Denial::read(&details).danger_level.or(Denial::read(&beside).danger_level),
            token_hash: self.token_of(&details, None).or_else(|| self.token_of(&beside, None)),
            batch_index: scope.batch_index,
            details: has_details.then_some(&scratch.details),
            attributes: has_attributes.then_some(&scratch.attributes),
        }
    }

    fn event_id(&self, canonical: &str, index: usize, buffer: &mut Vec<u8>) -> u128 {
        let of_origin = Identity::Origin(self.origin.identity);
        self.frame.map_or(of_origin, |frame| frame.identity).event_id(canonical, index, buffer)
    }

    /// Spans know themselves whether their failures are hidden.
    fn is_hidden(&self, scope: &Scope<'_>) -> bool {
        self.frame.and_then(|frame| frame.hidden).unwrap_or(scope.hidden)
    }

    /// A name: redacted, and cut to a bounded length.
    pub(super) fn name<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.shortened(text, self.rules.limits.name_bytes)
    }

    /// The dialect that the record, its source or a profile names.
    pub(super) fn named(&self, scope: &Scope<'_>, service: Option<&str>) -> Option<Dialect> {
        let registry = &self.rules.registry;
        scope.fields[Field::Dialect as usize]
            .and_then(Json::as_str)
            .and_then(Dialect::from_word)
            .filter(|dialect| Dialect::REGISTERED.contains(dialect))
            .or(self.origin.dialect)
            .or_else(|| registry.operator().profile(service, self.origin.source))
    }

    fn look_up(
        &self,
        failure: &Failure<'_>,
        scope: &Scope<'_>,
        known: &Known<'_, '_>,
        context: &Context<'_>,
    ) -> Verdict<'e> {
        let roots = [failure.error, scope.envelope, scope.record].map(|root| root.unwrap_or(Json::NULL));
        let subject = Subject {
            named: self.named(scope, context.service.as_deref()),
            shape: failure.shape,
            code: failure.code,
            message: failure.message,
            canonical: failure.canonical,
            category: known.beside.text(Key::Category).or_else(|| known.details.text(Key::Category)),
            details: failure.details,
            type_name: failure.type_name,
            http_status: known.http_status,
            service: context.service.as_deref(),
            roots: &roots,
        };
        classify(&self.rules.registry, &subject)
    }

    /// A text without its secrets, cut to a length. Redacted first, and with a margin: half a secret would not
    /// be known for one.
    pub(super) fn shortened<'t>(&self, text: &'t str, limit: usize) -> Cow<'t, str> {
        const MARGIN: usize = 1024;
        if text.len() <= limit {
            return self.rules.redactor.text(text);
        }
        match self.rules.redactor.text(cut(text, limit + MARGIN)) {
            Cow::Borrowed(text) => Cow::Borrowed(cut(text, limit)),
            Cow::Owned(text) => Cow::Owned(cut(&text, limit).to_owned()),
        }
    }

    /// The message without its secrets, with its template in the scratch.
    fn message<'a>(&self, raw: Option<&'a str>, scratch: &mut Scratch) -> Message<'a> {
        scratch.template.clear();
        let text = raw
            .filter(|text| !text.trim().is_empty())
            .map(|text| self.shortened(text, self.rules.limits.message_bytes));
        // Made of the whole message and then cut: a value must not be cut in two.
        let noticed = text.as_deref().map(|text| template::write(&mut scratch.template, text));
        let length = cut(&scratch.template, self.rules.limits.template_bytes).len();
        scratch.template.truncate(length);
        Message { text, noticed: noticed.unwrap_or_default() }
    }

    /// The code as sent, and the canonical code. A code that holds a secret names nothing.
    fn code<'a>(&self, code: Code<'a>, verdict: &Verdict<'e>) -> (Option<Cow<'a, str>>, Cow<'a, str>)
    where
        'e: 'a,
    {
        let canonical = verdict.canonical.clone();
        match code {
            Code::Missing | Code::Unusable => (None, canonical),
            Code::ToolError => (Some(Cow::Borrowed("tool_error")), canonical),
            Code::Number { value, .. } if self.rules.redactor.is_secret_number(value as f64) => {
                (Some(Cow::Borrowed(REDACTED)), canonical)
            }
            Code::Number { value, .. } => match verdict.entry {
                Some(entry) if entry.code.parse() == Ok(value) => {
                    (Some(Cow::Borrowed(entry.code.as_str())), canonical)
                }
                _ => (Some(Cow::Owned(value.to_string())), canonical),
            },
            Code::Text(text) if verdict.entry.is_some_and(|entry| entry.code == text) => {
                (Some(Cow::Borrowed(text)), canonical)
            }
            Code::Text(text) => match self.name(text) {
                Cow::Owned(redacted) if !verdict.registered => {
                    let category = verdict.meaning.category;
                    (Some(Cow::Owned(redacted)), Cow::Owned(format!("{category}_UNREGISTERED")))
                }
                name => (Some(name), canonical),
            },
        }
    }

    fn token_of(&self, details: &Details<'_>, confirmation: Option<Json<'_>>) -> Option<TokenHash> {
        let offered = || confirmation.or(details.get(Key::Confirmation))?.get("token")?.as_str();
        let token =
            details.text(Key::ConfirmationToken).or_else(|| details.text(Key::Token)).or_else(offered);
        token.filter(|token| !token.is_empty()).map(|token| self.rules.redactor.token_hash(token))
    }

    /// Writes the details, with what else stands in the error object; false when there is nothing.
    fn write_details(&self, failure: &Failure<'_>, scope: &Scope<'_>, out: &mut String) -> bool {
        out.clear();
        let end = self.rules.limits.details_bytes;
        // Of an error that is the whole record, the other fields are context and attributes.
        let is_record = failure.error.zip(scope.record).is_some_and(|(error, record)| error.is(record));
        let in_batch = scope.batch_index.is_some();
        let mut others = failure
            .beside
            .others(failure.error.filter(|_| !is_record))
            .filter(|(key, _)| !(in_batch && matches!(*key, "index" | "operation")))
            .peekable();
        let details = failure.details;
        let alone = others.peek().is_none() && failure.confirmation.is_none();
        match details {
            None if alone => return false,
            Some(details) if alone => {
                self.rules.redactor.json(out, details, end);
                return true;
            }
            _ => {}
        }
        out.push('{');
        let mut first = true;
        match details {
            Some(details) if details.is_object() => {
                self.rules.redactor.fields(out, details, end);
                first = details.fields().next().is_none();
            }
            Some(details) => self.rules.redactor.field(out, &mut first, "details", details, end),
            None => {}
        }
        let error = failure.error.unwrap_or(Json::NULL);
        for field in others {
            self.rules.redactor.field_of(out, &mut first, field, end, error);
        }
        if let Some(confirmation) = failure.confirmation {
            self.rules.redactor.field(out, &mut first, "confirmation", confirmation, end);
        }
        out.push('}');
        true
    }

    /// Writes what the record holds and nothing else reads; false when there is nothing.
    fn write_attributes(&self, scope: &Scope<'_>, scratch: &mut Scratch) -> bool {
        scratch.attributes.clear();
        if !self.writes_attributes {
            return false;
        }
        let Some(frame) = self.frame else {
            return self.write_unread(scope, &mut scratch.attributes);
        };
        self.carry(frame, scratch);
        let Scratch { attributes: out, carried, .. } = scratch;
        out.push('{');
        out.push_str(carried);
        let length = out.len();
        // What is left of the envelope goes where the envelope stood.
        let mut first = carried.is_empty();
        comma(out, &mut first);
        write::string(out, &self.rules.redactor.text(self.reading.place));
        out.push(':');
        if !self.write_unread(scope, out) {
            out.truncate(length);
        }
        out.push('}');
        out.len() > "{}".len()
    }

    /// Appends the fields of the record that nothing reads, as an object; nothing when there are none.
    fn write_unread(&self, scope: &Scope<'_>, out: &mut String) -> bool {
        let Some(record) = scope.record.filter(|_| scope.has_attributes) else { return false };
        let end = out.len() + self.rules.limits.details_bytes;
        let mut first = true;
        for (key, value) in record.fields().filter(|(key, value)| self.rules.names.is_attribute(key, *value))
        {
            if first {
                out.push('{');
            }
            if out.len() > end {
                comma(out, &mut first);
                out.push_str("\"_truncated\":true");
                break;
            }
            self.rules.redactor.field_of(out, &mut first, (key, value), end, record);
        }
        if !first {
            out.push('}');
        }
        !first
    }
}

/// A message, and what was noticed while reading it.
pub(super) struct Message<'a> {
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) noticed: template::Noticed,
}

/// What was read of a failure before it is looked up.
struct Known<'k, 'a> {
    details: &'k Details<'a>,
    /// What stands beside the details, in the error object.
    beside: &'k Details<'a>,
    http_status: Option<u16>,
}

fn group(canonical: &str, context: &Context<'_>, scratch: &mut Scratch) -> u64 {
    let service = context.service.as_deref().unwrap_or_default();
    let operation = context.operation.as_deref().unwrap_or_default();
    fingerprint::with_buffer(&mut scratch.group, canonical, service, operation, &scratch.template)
}

/// The payload's own status first, then the record's.
fn status_of(details: &Details<'_>, beside: &Details<'_>, scope: &Scope<'_>) -> Option<u16> {
    [details.get(Key::HttpStatus), beside.get(Key::Status), beside.get(Key::HttpStatus)]
        .into_iter()
        .chain([scope.fields[Field::HttpStatus as usize]])
        .flatten()
        .find_map(http_status)
}

/// What the payload itself says about a retry.
fn stated_retryable(details: &Details<'_>, beside: &Details<'_>) -> Option<bool> {
    beside.get(Key::Retryable).or(details.get(Key::Retryable))?.as_bool()
}

/// A warning is never worse than a warning, whatever its code means as an error.
fn severity_of(kind: Kind, severity: Severity) -> Severity {
    if kind == Kind::Warning { severity.max(Severity::Warning) } else { severity }
}

/// Fields say it for any failure; words are only searched where waiting can help.
fn retry_after_of(
    details: &Details<'_>,
    beside: &Details<'_>,
    message: Option<&str>,
    verdict: &Verdict<'_>,
) -> Option<f64> {
    let waits =
        matches!(verdict.meaning.category, Category::RateLimit | Category::Internal | Category::Unknown);
    retry_after::read([details, beside], message.filter(|_| waits), verdict.dialect)
}
