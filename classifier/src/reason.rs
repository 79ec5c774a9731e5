//! Why a record, or a part of it, could not be used.

use std::fmt;

/// A closed list, so that what is lost can be counted by reason. Each says what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnrecognizedReason {
    /// Neither JSON nor logfmt.
    NotJson {
        /// Where the parser gave up, in bytes from the start of the document.
        at: usize,
    },
    /// Bytes that are not UTF-8.
    InvalidUtf8,
    /// A line over [`Limits::line_bytes`](crate::Limits).
    TooLong,
    /// Nested over [`Limits::json_depth`](crate::Limits).
    TooDeep,
    /// Readable, but no envelope, status or audit event in it.
    NoEnvelope,
    /// A request, a notification or a notice of a host: nothing has failed or worked yet.
    NotAReply,
    /// The state of a task or the result of a call that an earlier record of the stream told already.
    RepeatedState,
    /// An envelope may be there, but under more wrappers than we open.
    TooManyLevels,
    /// More events in one record than [`Limits::events_per_record`](crate::Limits).
    TooManyEvents,
}

impl UnrecognizedReason {
    /// A short, stable word: a metric label and a column value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotJson { .. } => "not_json",
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

    /// True when the bytes could not be read at all, rather than held nothing of ours.
    #[must_use]
    pub const fn is_unreadable(self) -> bool {
        matches!(self, Self::NotJson { .. } | Self::InvalidUtf8 | Self::TooLong | Self::TooDeep)
    }
}

impl fmt::Display for UnrecognizedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The parser does not say where a document was cut short.
            Self::NotJson { at: 0 } => {
                f.write_str("neither JSON nor logfmt, or cut short; write one JSON object a line")
            }
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
