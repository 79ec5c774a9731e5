//! The reasons for which a record, or a part of it, could not be used.

use std::fmt;

/// The reason for which a record was not used. The list is closed, so that losses can be counted by reason. Each
/// message states a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnrecognizedReason {
    /// The record is text that does not start like JSON, is not logfmt, and has no message around a reply.
    PlainText,
    /// The record starts like JSON, but is not valid.
    NotJson {
        /// The position at which the parser stopped, in bytes from the start of the document.
        at: usize,
    },
    /// The record contains bytes that are not UTF-8.
    InvalidUtf8,
    /// The line is longer than [`Limits::line_bytes`](crate::Limits).
    TooLong,
    /// The record is nested deeper than [`Limits::json_depth`](crate::Limits).
    TooDeep,
    /// The record is readable, but contains no envelope, status or audit event.
    NoEnvelope,
    /// The record is a request, a notification or a notice of a host, so nothing has failed or succeeded yet.
    NotAReply,
    /// The record repeats the state of a task or the result of a call that an earlier record of the stream reported.
    RepeatedState,
    /// The record may contain an envelope, but under more wrappers than are opened.
    TooManyLevels,
    /// The record contains more events than [`Limits::events_per_record`](crate::Limits).
    TooManyEvents,
}

impl UnrecognizedReason {
    /// Returns a short, stable word that serves as a metric label and a column value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PlainText | Self::NotJson { .. } => "not_json",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::TooLong => "too_long",
            Self::TooDeep => "too_deep",
            Self::NoEnvelope => "no_envelope",
            Self::NotAReply => "not_a_reply",
            Self::RepeatedState => "repeated_state",
            Self::TooManyLevels => "too_many_levels",
            Self::TooManyEvents => "too_many_events",
        }
    }

    /// Returns true if the bytes could not be read at all. False means that the record was readable, but contained
    /// nothing to classify.
    #[must_use]
    pub const fn is_unreadable(self) -> bool {
        matches!(
            self,
            Self::PlainText | Self::NotJson { .. } | Self::InvalidUtf8 | Self::TooLong | Self::TooDeep
        )
    }
}

impl fmt::Display for UnrecognizedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlainText => f.write_str(
                "Plain log lines are not read; log each reply as one JSON object or logfmt line (docs/instrument.md)",
            ),
            // The parser does not report where a document was cut off.
            Self::NotJson { at: 0 } => f.write_str("JSON that was cut short; write one whole JSON object a line"),
            Self::NotJson { at } => {
                write!(f, "not JSON from byte {at} on; write one JSON object a line")
            }
            Self::InvalidUtf8 => f.write_str("not valid UTF-8; JSON must be sent as UTF-8"),
            Self::TooLong => f.write_str("the line is too long; split the record or raise the line limit"),
            Self::TooDeep => f.write_str("nested too deeply; flatten the record"),
            Self::NoEnvelope => f.write_str("no response envelope, HTTP status or audit event in it"),
            Self::NotAReply => f.write_str("a request, a notification or a notice, not a reply"),
            Self::RepeatedState => {
                f.write_str("the state of a call or a task that an earlier record told already")
            }
            Self::TooManyLevels => {
                f.write_str("wrapped in more levels than are opened; log the envelope itself")
            }
            Self::TooManyEvents => {
                f.write_str("more events in one record than are kept; the rest were not read")
            }
        }
    }
}
