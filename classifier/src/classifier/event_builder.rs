//! Builds events from envelopes: looks the code up, redacts the texts, computes the fingerprint and checks
//! conformance.

use super::failure_fields::{cap_severity, fault, find_http_status, find_retry_after, payload_retryable};
use super::telemetry_context::{EventIdentity, ReplyLocation, TelemetryContext};
use super::{RecordOrigin, Rules};
use crate::category::{Category, Recovery, Severity};
use crate::code::Code;
use crate::context::ContextField;
use crate::denial::Denial;
use crate::details::{DetailKey, Details};
use crate::dialect::Dialect;
use crate::envelope::{Failure, Scope};
use crate::event::{Context, Event, EventDenial, EventKind, EventQuota};
use crate::evidence;
use crate::findings::{Finding, Findings};
use crate::json::{Json, Parser};
use crate::limits::truncate_str;
use crate::lookup::{self, Classification, LookupInput};
use crate::quota::Quota;
use crate::redact::{CleanNames, REDACTED, TokenHash};
use crate::registry::AuditEvent;
use crate::{fingerprint, template};
use std::borrow::Cow;

/// Buffers for the texts of an event, which are reused from event to event, and a cache of names known to be
/// clean.
pub(super) struct Scratch {
    template: String,
    details: String,
    pub(super) attributes: String,
    hash_buffer: Vec<u8>,
    pub(super) clean_names: CleanNames,
    /// The attributes of the enclosing telemetry as JSON without braces, once they are written for this
    /// record.
    pub(super) telemetry_attributes: String,
    pub(super) has_telemetry_attributes: bool,
    /// A parser for JSON that is written out again.
    pub(super) spare_parser: Parser,
}

impl Scratch {
    pub(super) fn new(json_depth: usize) -> Self {
        Self {
            template: String::new(),
            details: String::new(),
            attributes: String::new(),
            hash_buffer: Vec::new(),
            clean_names: CleanNames::default(),
            telemetry_attributes: String::new(),
            has_telemetry_attributes: false,
            spare_parser: Parser::new(json_depth),
        }
    }
}

/// Builds events, which borrow from the record, the rules and the scratch buffers.
pub(super) struct EventBuilder<'e> {
    pub(super) rules: &'e Rules,
    pub(super) origin: &'e RecordOrigin<'e>,
    /// The enclosing span or log record, if there is one.
    pub(super) telemetry: Option<&'e TelemetryContext<'e>>,
    /// The location in that telemetry that is being read.
    pub(super) location: ReplyLocation<'e>,
    /// False once the events of a record have used up its budget for attributes.
    pub(super) writes_attributes: bool,
}

impl<'e> EventBuilder<'e> {
    pub(super) fn new(
        rules: &'e Rules,
        origin: &'e RecordOrigin<'e>,
        telemetry: Option<&'e TelemetryContext<'e>>,
    ) -> Self {
        Self { rules, origin, telemetry, location: ReplyLocation::NONE, writes_attributes: true }
    }

    /// Builds the event of a failure or a warning.
    pub(super) fn build_failure<'a>(
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
        let error_fields = &failure.error_fields;
        let context = self.context(scope, &details, &mut scratch.clean_names);
        let http_status = find_http_status(&details, error_fields, scope);
        let classification = self.look_up(
            failure,
            scope,
            &FailureFields { details: &details, error_fields, http_status },
            &context,
        );
        let context = self.with_named_operation(context, failure.message, &classification);
        let meaning = classification.meaning;
        let payload_retryable = payload_retryable(&details, error_fields);
        let message = self.read_message(failure.message, scratch);
        let hidden = self.is_hidden(scope) && failure.kind == EventKind::Error;
        let mut findings = super::conformance::check(failure, &classification, &message);
        findings.insert_if(Finding::HiddenFailure, hidden);
        findings.insert_if(
            Finding::RetryableContradiction,
            // Only a specification can be contradicted, not the default of a category.
            classification.entry.and(payload_retryable.zip(meaning.retryable)).is_some_and(|(a, b)| a != b),
        );
        let has_details = self.write_details(failure, scope, &mut scratch.details);
        let has_attributes = self.write_attributes(scope, scratch);
        let (code, canonical) = self.render_code(failure.code, &classification);
        let fingerprint = compute_fingerprint(&canonical, &context, scratch);
        let event_id = self.event_id(&canonical, index, &mut scratch.hash_buffer);
        let scratch: &'a Scratch = scratch;
        let quota = Quota::read(meaning.category, &canonical, &details);
        let is_denial = meaning.category == Category::Permission;
        let denial = if is_denial { Denial::read(&details) } else { Denial::default() };
        Event {
            event_id,
            kind: failure.kind,
            dialect: classification.dialect,
            code,
            fingerprint,
            canonical,
            category: meaning.category,
            fault: fault(failure.kind, &classification, context.operation.as_deref()),
            severity: cap_severity(failure.kind, meaning.severity),
            retryable: payload_retryable.or(meaning.retryable),
            recovery: meaning.recovery,
            inferred: classification.inferred,
            hidden,
            http_status,
            template: message.text.is_some().then_some(&scratch.template),
            message: message.text,
            findings,
            context,
            quota: self.redact_quota(quota),
            retry_after_s: find_retry_after(&details, error_fields, failure.message, &classification),
            denial: self.redact_denial(denial),
            token_hash: self.token_hash(&details, failure.confirmation),
            batch_index: scope.batch_index,
            details: has_details.then_some(&scratch.details),
            attributes: has_attributes.then_some(&scratch.attributes),
        }
    }

    /// Adds the operation that the message names, if the record names none and no specific entry was found.
    fn with_named_operation<'a>(
        &self,
        context: Context<'a>,
        message: Option<&'a str>,
        classification: &Classification<'e>,
    ) -> Context<'a>
    where
        'e: 'a,
    {
        let is_specific = classification.entry.is_some_and(|entry| !entry.generic);
        if context.operation.is_some() || is_specific {
            return context;
        }
        let named = message.and_then(|text| evidence::named_operation(text, &classification.canonical));
        Context { operation: named.map(|name| self.redact_name(name)), ..context }
    }

    /// Builds the event of a step in the life of a confirmation token.
    pub(super) fn build_audit<'a>(
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
        let failure = Failure { details: record.present("details"), ..Failure::new(Dialect::McpAql) };
        let (details, error_fields) = (Details::read(failure.details), Details::read(Some(record)));
        let context = self.context(scope, &details, &mut scratch.clean_names);
        let has_details = self.write_details(&failure, scope, &mut scratch.details);
        let has_attributes = self.write_attributes(scope, scratch);
        scratch.template.clear();
        let fingerprint = compute_fingerprint(&audit.canonical, &context, scratch);
        let event_id = self.event_id(&audit.canonical, index, &mut scratch.hash_buffer);
        let scratch: &'a Scratch = scratch;
        let category = self.rules.registry.category(&audit.canonical);
        let danger_level = Denial::read(&details).danger_level.or(Denial::read(&error_fields).danger_level);
        Event {
            event_id,
            kind: EventKind::Audit,
            dialect: self.declared_dialect(scope, context.service.as_deref()).unwrap_or(Dialect::McpAql),
            code: Some(Cow::Borrowed(&audit.event)),
            canonical: Cow::Borrowed(&audit.canonical),
            category,
            fault: None,
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
            quota: EventQuota::default(),
            retry_after_s: None,
            denial: EventDenial { danger_level, ..EventDenial::default() },
            token_hash: self.token_hash(&details, None).or_else(|| self.token_hash(&error_fields, None)),
            batch_index: scope.batch_index,
            details: has_details.then_some(&scratch.details),
            attributes: has_attributes.then_some(&scratch.attributes),
        }
    }

    fn event_id(&self, canonical: &str, index: usize, buffer: &mut Vec<u8>) -> u128 {
        let record_identity = EventIdentity::Record(self.origin.identity);
        self.telemetry
            .map_or(record_identity, |telemetry| telemetry.identity)
            .event_id(canonical, index, buffer)
    }

    /// Returns whether a failure is hidden. The status of a span, if there is one, overrules the envelope.
    fn is_hidden(&self, scope: &Scope<'_>) -> bool {
        self.telemetry.and_then(|telemetry| telemetry.hidden).unwrap_or(scope.hidden)
    }

    fn redact_quota<'t>(&self, quota: Quota<'t>) -> EventQuota<'t> {
        let is_harmless = |number: &f64| !self.rules.redactor.is_secret_number(*number);
        EventQuota {
            metric: quota.metric.map(|metric| self.redact_name(metric)),
            current: quota.current.filter(is_harmless),
            limit: quota.limit.filter(is_harmless),
            level: quota.level,
            resets_at: quota.resets_at,
        }
    }

    fn redact_denial<'t>(&self, denial: Denial<'t>) -> EventDenial<'t> {
        EventDenial {
            required_trust: denial.required_trust.map(|trust| self.redact_name(trust)),
            actual_trust: denial.actual_trust.map(|trust| self.redact_name(trust)),
            danger_level: denial.danger_level,
        }
    }

    /// Redacts a name and truncates it to the limit for names.
    pub(super) fn redact_name<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_and_truncate(text, self.rules.limits.name_bytes)
    }

    /// Returns the dialect that the record, its source or an operator's profile declares.
    pub(super) fn declared_dialect(&self, scope: &Scope<'_>, service: Option<&str>) -> Option<Dialect> {
        let registry = &self.rules.registry;
        scope.fields[ContextField::Dialect as usize]
            .and_then(Json::as_str)
            .and_then(Dialect::from_name)
            .filter(|dialect| Dialect::REGISTERED.contains(dialect))
            .or(self.origin.dialect)
            .or_else(|| registry.operator().profile(service, self.origin.source))
    }

    fn look_up(
        &self,
        failure: &Failure<'_>,
        scope: &Scope<'_>,
        fields: &FailureFields<'_, '_>,
        context: &Context<'_>,
    ) -> Classification<'e> {
        let roots = [failure.error, scope.envelope, scope.record].map(|root| root.unwrap_or(Json::NULL));
        let input = LookupInput {
            declared_dialect: self.declared_dialect(scope, context.service.as_deref()),
            shape_dialect: failure.shape_dialect,
            code: failure.code,
            message: failure.message,
            canonical: failure.canonical,
            category: fields
                .error_fields
                .text(DetailKey::Category)
                .or_else(|| fields.details.text(DetailKey::Category)),
            details: failure.details,
            type_name: failure.type_name,
            http_status: fields.http_status,
            service: context.service.as_deref(),
            roots: &roots,
        };
        lookup::resolve(&self.rules.registry, &input)
    }

    /// Redacts a text and truncates it. Redaction comes first and sees a margin beyond the limit, because
    /// half a secret would not be recognized.
    pub(super) fn redact_and_truncate<'t>(&self, text: &'t str, limit: usize) -> Cow<'t, str> {
        const MARGIN: usize = 1024;
        if text.len() <= limit {
            return self.rules.redactor.text(text);
        }
        match self.rules.redactor.text(truncate_str(text, limit + MARGIN)) {
            Cow::Borrowed(text) => Cow::Borrowed(truncate_str(text, limit)),
            Cow::Owned(text) => Cow::Owned(truncate_str(&text, limit).to_owned()),
        }
    }

    /// Redacts the message and writes its template into the scratch buffers.
    fn read_message<'a>(&self, raw: Option<&'a str>, scratch: &mut Scratch) -> Message<'a> {
        scratch.template.clear();
        let text = raw
            .filter(|text| !text.trim().is_empty())
            .map(|text| self.redact_and_truncate(text, self.rules.limits.message_bytes));
        // The template is made of the whole message and then truncated, so that no value is cut in two.
        let leaks = text.as_deref().map(|text| template::write(&mut scratch.template, text));
        let length = truncate_str(&scratch.template, self.rules.limits.template_bytes).len();
        scratch.template.truncate(length);
        Message { text, leaks: leaks.unwrap_or_default() }
    }

    /// Returns the code as sent and the canonical code. A code that contains a secret does not become part of
    /// the canonical code.
    fn render_code<'a>(
        &self,
        code: Code<'a>,
        classification: &Classification<'e>,
    ) -> (Option<Cow<'a, str>>, Cow<'a, str>)
    where
        'e: 'a,
    {
        let canonical = classification.canonical.clone();
        match code {
            Code::Missing | Code::Unusable => (None, canonical),
            Code::ToolError => (Some(Cow::Borrowed("tool_error")), canonical),
            Code::Number { value, .. } if self.rules.redactor.is_secret_number(value as f64) => {
                (Some(Cow::Borrowed(REDACTED)), canonical)
            }
            Code::Number { value, .. } => match classification.entry {
                Some(entry) if entry.code.parse() == Ok(value) => {
                    (Some(Cow::Borrowed(entry.code.as_str())), canonical)
                }
                _ => (Some(Cow::Owned(value.to_string())), canonical),
            },
            Code::Text(text) if classification.entry.is_some_and(|entry| entry.code == text) => {
                (Some(Cow::Borrowed(text)), canonical)
            }
            Code::Text(text) => match self.redact_name(text) {
                Cow::Owned(redacted) if !classification.registered => {
                    let category = classification.meaning.category;
                    (Some(Cow::Owned(redacted)), Cow::Owned(format!("{category}_UNREGISTERED")))
                }
                name => (Some(name), canonical),
            },
        }
    }

    fn token_hash(&self, details: &Details<'_>, confirmation: Option<Json<'_>>) -> Option<TokenHash> {
        let offered_token = || confirmation.or(details.get(DetailKey::Confirmation))?.get("token")?.as_str();
        let token = details
            .text(DetailKey::ConfirmationToken)
            .or_else(|| details.text(DetailKey::Token))
            .or_else(offered_token);
        token.filter(|token| !token.is_empty()).map(|token| self.rules.redactor.token_hash(token))
    }

    /// Writes the details and the other fields of the error object. Returns false when there are none.
    fn write_details(&self, failure: &Failure<'_>, scope: &Scope<'_>, out: &mut String) -> bool {
        out.clear();
        let end = self.rules.limits.details_bytes;
        // When the error object is the whole record, its other fields are context and attributes.
        let is_record =
            failure.error.zip(scope.record).is_some_and(|(error, record)| error.is_same_node(record));
        let in_batch = scope.batch_index.is_some();
        let mut extra_fields = failure
            .error_fields
            .extra_fields(failure.error.filter(|_| !is_record))
            .filter(|(key, _)| !(in_batch && matches!(*key, "index" | "operation")))
            .peekable();
        let details = failure.details;
        let details_only = extra_fields.peek().is_none() && failure.confirmation.is_none();
        match details {
            None if details_only => return false,
            Some(details) if details_only => {
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
        for field in extra_fields {
            self.rules.redactor.field_of(out, &mut first, field, end, error);
        }
        if let Some(confirmation) = failure.confirmation {
            self.rules.redactor.field(out, &mut first, "confirmation", confirmation, end);
        }
        out.push('}');
        true
    }
}

/// A redacted message, and the leaks that were noticed while its template was made.
pub(super) struct Message<'a> {
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) leaks: template::Leaks,
}

/// The fields of a failure that its code lookup depends on.
struct FailureFields<'k, 'a> {
    details: &'k Details<'a>,
    /// The fields of the error object outside its details.
    error_fields: &'k Details<'a>,
    http_status: Option<u16>,
}

fn compute_fingerprint(canonical: &str, context: &Context<'_>, scratch: &mut Scratch) -> u64 {
    let service = context.service.as_deref().unwrap_or_default();
    let operation = context.operation.as_deref().unwrap_or_default();
    fingerprint::compute_with_buffer(
        &mut scratch.hash_buffer,
        canonical,
        service,
        operation,
        &scratch.template,
    )
}
