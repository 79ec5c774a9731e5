//! Replies captured in telemetry: a whole reply, a tool's result, only its content, or its text, each in the
//! wrapper of an instrumentation.
//!
//! Invariant: a span that reports a failed tool yields one failure, with the message of the reply if the
//! reply has one.

use super::tool_result::{is_content, texts};
use super::{EnvelopeFinder, EnvelopeVisitor, Failure, Level, Scope, SearchResult, looks_like_json};
use crate::code::Code;
use crate::dialect::Dialect;
use crate::json::{Json, Parser};
use crate::reason::UnrecognizedReason;

/// The keys under which instrumentations put the output of a tool.
const OUTPUT_KEYS: [&str; 2] = ["result", "output"];
/// The keys of replies: an object with one of these is not a wrapper.
const REPLY_KEYS: [&str; 5] = ["jsonrpc", "id", "content", "error", "success"];
/// The spellings of the error flag beside the output.
const FLAGS: [&str; 2] = ["is_error", "isError"];

/// Returns the output without its wrapper, and true if the wrapper marks the tool as failed.
fn unwrap_output(value: Json<'_>) -> Option<(Json<'_>, bool)> {
    if !value.is_object() || REPLY_KEYS.iter().any(|key| value.get(key).is_some()) {
        return None;
    }
    let output = OUTPUT_KEYS.iter().find_map(|key| value.get(key))?;
    let flagged = FLAGS.iter().any(|key| value.get(key).and_then(Json::as_bool) == Some(true));
    Some((output, flagged))
}

impl<R: EnvelopeVisitor> EnvelopeFinder<'_, R> {
    /// Searches the reply that telemetry captured of a call. `has_failed` is true if the call is known to
    /// have failed.
    pub(crate) fn search_captured(
        &mut self,
        value: Json<'_>,
        has_failed: bool,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let (value, flagged) = unwrap_output(value).unwrap_or((value, false));
        let scope = Scope { level: Level::ToolData, ..*scope };
        if flagged || has_failed && is_content(value) {
            return self.search_failed_output(value, &scope, parsers);
        }
        let searched = if is_content(value) {
            self.search_content(value, &scope, parsers)
        } else {
            self.search(value, &scope, parsers)
        };
        match searched {
            Err(UnrecognizedReason::NoEnvelope) if has_failed => {
                self.search_failed_output(value, &scope, parsers)
            }
            searched => searched,
        }
    }

    /// Searches a text that telemetry captured of a call: it states a failure, or is data.
    pub(crate) fn search_captured_text(
        &mut self,
        text: &str,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        self.search_tool_text(text, &Scope { level: Level::ToolData, ..*scope }, parsers)
    }

    /// Searches the output of a tool that is known to have failed. Its first prose text is the message,
    /// unless an error in the output is more specific.
    fn search_failed_output(
        &mut self,
        output: Json<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let parts = || texts(output).filter(|_| is_content(output) || output.as_str().is_some());
        let is_explained = if is_content(output) {
            parts().any(|text| self.report_flagged(text, scope, parsers))
        } else {
            self.report_flagged(output, scope, parsers)
        };
        if is_explained {
            return Ok(());
        }
        let is_prose = |text: &&str| !text.trim_ascii().is_empty() && !looks_like_json(text);
        let message = parts().filter_map(Json::as_str).find(is_prose);
        let message = message.ok_or(UnrecognizedReason::NoEnvelope)?;
        let failure =
            Failure { code: Code::ToolError, message: Some(message), ..Failure::new(Dialect::Jsonrpc) };
        self.visitor.on_failure(&failure, scope);
        Ok(())
    }
}
