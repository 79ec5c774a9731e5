//! Why a request was refused: one closed table that gives every rejection its word, its status and its remedy.
//!
//! Receivers turn a [`Rejection`] into their protocol's answer; nobody else writes a status. Each is counted by
//! its word.

use std::fmt;
use std::time::Duration;

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Which of the closed list.
    pub reason: RejectionReason,
    /// What was wrong with this request, and where.
    pub detail: String,
    /// When to come back, if that can help.
    pub retry_after: Option<Duration>,
}

impl Rejection {
    /// A rejection that a retry cannot change.
    #[must_use]
    pub fn new(reason: RejectionReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), retry_after: None }
    }

    /// A rejection that a retry may change.
    #[must_use]
    pub fn retryable(reason: RejectionReason, detail: impl Into<String>, retry_after: Duration) -> Self {
        Self { reason, detail: detail.into(), retry_after: Some(retry_after) }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.detail, self.reason.remedy())
    }
}

/// The closed list of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectionReason {
    /// Nothing in the body could be read.
    Unreadable,
    /// The body is not what its `Content-Encoding` says.
    BadCompression,
    /// A query parameter or header has a value we do not know.
    BadParameter,
    /// No such path.
    NotFound,
    /// Another method.
    WrongMethod,
    /// No token, or none that is known.
    Unauthenticated,
    /// A token for something else, or a name that is not ours.
    Forbidden,
    /// A page of another origin sent it through a browser.
    CrossSite,
    /// An `Idempotency-Key` that stands for another request.
    KeyReused,
    /// The body came too slowly.
    TooSlow,
    /// Over a limit on size.
    TooLarge,
    /// A content type we do not read.
    WrongType,
    /// A content encoding we do not read.
    WrongEncoding,
    /// A signal we do not take.
    WrongSignal,
    /// No room now.
    Busy,
    /// The log has reached its limit on disk.
    WalFull,
    /// The log could not be written.
    DiskFailed,
    /// The data directory was removed, renamed or replaced while we use it.
    DirectoryLost,
    /// The sender went away before its request was whole.
    Gone,
    /// On the way out.
    ShuttingDown,
    /// A defect of ours.
    Internal,
}

/// A row of the table: word, HTTP status, gRPC status, remedy.
type Row = (&'static str, u16, i32, &'static str);

impl RejectionReason {
    /// All of them, for counters.
    pub const ALL: [Self; 21] = [
        Self::Unreadable,
        Self::BadCompression,
        Self::BadParameter,
        Self::NotFound,
        Self::WrongMethod,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::CrossSite,
        Self::KeyReused,
        Self::TooSlow,
        Self::TooLarge,
        Self::WrongType,
        Self::WrongEncoding,
        Self::WrongSignal,
        Self::Busy,
        Self::WalFull,
        Self::DiskFailed,
        Self::DirectoryLost,
        Self::Gone,
        Self::ShuttingDown,
        Self::Internal,
    ];

    /// gRPC: 3 invalid argument, 7 permission denied, 8 resource exhausted, 12 unimplemented, 13 internal, 14 unavailable, 16 unauthenticated. OTLP
    /// senders retry 14, and 8 only when told when: what is too large stays too large.
    const fn row(self) -> Row {
        match self {
            Self::Unreadable => ("unreadable", 400, 3, "send what the content type says"),
            Self::BadCompression => {
                ("bad_compression", 400, 3, "send whole gzip or zstd data, or none and no Content-Encoding")
            }
            Self::BadParameter => ("bad_parameter", 400, 3, "correct or leave out the parameter"),
            Self::NotFound => ("not_found", 404, 12, "use /v1/envelopes, /v1/traces or /v1/logs"),
            Self::WrongMethod => ("wrong_method", 405, 12, "use POST"),
            Self::Unauthenticated => {
                ("unauthenticated", 401, 16, "send Authorization: Bearer with a token of the scope ingest")
            }
            Self::Forbidden => (
                "forbidden",
                403,
                7,
                "use a token of the scope ingest, and name this server by its address or as localhost",
            ),
            Self::CrossSite => ("cross_site", 403, 7, auth::CROSS_SITE_REMEDY),
            Self::KeyReused => (
                "key_reused",
                422,
                3,
                "send another request under another Idempotency-Key, or the same one unchanged",
            ),
            Self::TooSlow => ("too_slow", 408, 14, "send the body without long pauses"),
            Self::TooLarge => ("too_large", 413, 8, "send smaller batches"),
            Self::WrongType => ("wrong_type", 415, 3, "set Content-Type to a type that this path reads"),
            Self::WrongEncoding => ("wrong_encoding", 415, 12, "use gzip, zstd or no compression"),
            Self::WrongSignal => ("wrong_signal", 404, 12, "send traces, logs and metrics only"),
            Self::Busy => ("busy", 429, 14, "retry after the given time"),
            Self::WalFull => ("wal_full", 503, 14, "raise --wal-bytes or make room, then retry"),
            Self::DiskFailed => {
                ("disk_failed", 503, 14, "make room on the disk or mend it; retry after the given time")
            }
            Self::DirectoryLost => (
                "directory_lost",
                503,
                14,
                "put the data directory back where it was, or restart the server; retry after the given time",
            ),
            // Nobody reads this one; 499 and 1 (cancelled) are what others write into their logs.
            Self::Gone => ("gone", 499, 1, "keep the connection open until the answer"),
            Self::ShuttingDown => ("shutting_down", 503, 14, "retry after the given time"),
            Self::Internal => ("internal", 500, 13, "this is a defect of Faultline: please report it"),
        }
    }

    /// A short, stable word: a metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The HTTP status.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        self.row().1
    }

    /// The gRPC status.
    #[must_use]
    pub const fn grpc_status(self) -> i32 {
        self.row().2
    }

    /// What to do about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        self.row().3
    }
}
