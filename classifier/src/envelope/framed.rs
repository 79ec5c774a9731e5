//! Search for replies in texts that are not JSON as a whole, after framing has located them.

use super::extra_fields::ExtraFields;
use super::{
    EnvelopeFinder, EnvelopeVisitor, Failure, Level, Scope, SearchResult, Success, looks_like_json,
    more_specific, prose,
};
use crate::dialect::Dialect;
use crate::framing::{self, HostMessage, HostOutcome, Prefix};
use crate::json::{Json, Parser};
use crate::logfmt;
use crate::reason::UnrecognizedReason;

impl<R: EnvelopeVisitor> EnvelopeFinder<'_, R> {
    /// Searches a record that is a line of text.
    pub(crate) fn search_line(
        &mut self,
        text: &str,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        self.search_framed(text, scope, parsers).or_else(|reason| match reason {
            UnrecognizedReason::NoEnvelope => self.search_prefixed_fields(text, scope, parsers),
            reason => Err(reason),
        })
    }

    /// Searches a text that a logger wrapped: JSON, or a line with JSON in it.
    pub(super) fn search_wrapped_text(
        &mut self,
        text: &str,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        if looks_like_json(text) {
            let searched = self
                .search_json_text(text, parsers, |finder, json, deeper| finder.search(json, scope, deeper));
            if !text.trim_start().starts_with('[') || searched != Err(UnrecognizedReason::NoEnvelope) {
                return searched;
            }
        }
        self.search_framed(text, scope, parsers)
    }

    /// Searches server-sent events, JSON after a prefix, or the message of a host.
    fn search_framed(&mut self, text: &str, scope: &Scope<'_>, parsers: &mut [Parser]) -> SearchResult {
        let text = text.trim();
        if framing::is_server_sent_events(text) {
            return self.search_events(text, scope, parsers);
        }
        let (prefix, rest) = Prefix::read(text);
        let extra = ExtraFields::default().with_time(prefix.time).with_service(prefix.service);
        let searched = extra.fill(scope, |scope| self.search_after_prefix(rest, scope, parsers));
        if searched.is_ok() || searched == Err(UnrecognizedReason::NotAReply) {
            return searched;
        }
        let host = HostMessage::read(&prefix, rest).or_else(|| {
            let states_failure =
                HostMessage::may_report(&prefix, text) && prose::is_failure(self.registry, rest);
            states_failure.then(|| HostMessage::failed(rest))
        });
        match host {
            Some(host) => extra.fill(scope, |scope| self.report_host_message(&host, scope)),
            None => searched,
        }
    }

    /// Searches the events of a stream, each as its own record. Events without JSON are not replies.
    fn search_events(&mut self, text: &str, scope: &Scope<'_>, parsers: &mut [Parser]) -> SearchResult {
        let mut found = Err(UnrecognizedReason::NotAReply);
        framing::for_each_event(text, |data| {
            let searched = self
                .search_json_text(data, parsers, |finder, json, deeper| finder.search(json, scope, deeper));
            match searched {
                Ok(()) => found = Ok(()),
                Err(reason) => found = found.map_err(|before| more_specific(before, reason)),
            }
        });
        found
    }

    /// Searches for JSON after a prefix. The text between them names the server or states that a tool failed.
    fn search_after_prefix(&mut self, text: &str, scope: &Scope<'_>, parsers: &mut [Parser]) -> SearchResult {
        let mut reason = UnrecognizedReason::NoEnvelope;
        for (before, json) in framing::json_candidates(text) {
            let (inner, _) = Prefix::read(before);
            let extra = ExtraFields::default().with_service(inner.service);
            let searched = extra.fill(scope, |scope| {
                let level = if before.trim().is_empty() { scope.level } else { Level::Wrapped };
                self.search_json_or_escaped(json, &Scope { level, ..*scope }, parsers)
            });
            match searched {
                Ok(()) => return Ok(()),
                Err(other) => reason = more_specific(reason, other),
            }
        }
        Err(reason)
    }

    fn search_json_or_escaped(
        &mut self,
        json: &str,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let unescaped = framing::unescape_json(json);
        let text = unescaped.as_deref().unwrap_or(json);
        self.search_json_text(text, parsers, |finder, json, deeper| {
            finder.search(json, scope, deeper).or_else(|reason| match reason {
                UnrecognizedReason::NoEnvelope if json.is_object() => {
                    finder.search_http_status(json, scope, deeper)
                }
                reason => Err(reason),
            })
        })
    }

    fn report_host_message(&mut self, host: &HostMessage<'_>, scope: &Scope<'_>) -> SearchResult {
        let extra = ExtraFields::default()
            .with_operation(host.operation)
            .with_service(host.service)
            .with_duration_ms(host.duration_ms);
        extra.replace(scope, |scope| match host.outcome {
            HostOutcome::Failed => {
                let failure = Failure { message: Some(host.message), ..Failure::new(Dialect::Jsonrpc) };
                self.report_failure(&failure, scope);
                Ok(())
            }
            HostOutcome::Worked => {
                self.visitor.on_success(Success::new(Dialect::Jsonrpc), scope);
                Ok(())
            }
            HostOutcome::Notice => Err(UnrecognizedReason::NotAReply),
        })
    }

    /// Searches logfmt fields after a prefix and a few words:
    /// `2026-03-17T21:02:23Z info request gateway=a status=403`.
    fn search_prefixed_fields(
        &mut self,
        text: &str,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let (prefix, rest) = Prefix::read(text);
        let (Some(fields), Some((parser, deeper))) =
            (logfmt::skip_words(rest).filter(|_| prefix.parts > 0), parsers.split_first_mut())
        else {
            return Err(UnrecognizedReason::NoEnvelope);
        };
        let extra = ExtraFields::default().with_time(prefix.time).with_service(prefix.service);
        let mut buffer = vec![0; fields.len()];
        let read = parser.build_object(
            |object| logfmt::parse(fields, &mut buffer, object),
            |json: Json<'_>| {
                extra.fill(scope, |scope| {
                    self.search(json, scope, deeper).or_else(|_| self.search_http_status(json, scope, deeper))
                })
            },
        );
        read.unwrap_or(Err(UnrecognizedReason::NoEnvelope))
    }
}
