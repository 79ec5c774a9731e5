//! Rejections of requests: one closed table that gives every reason its name, its status codes and its usual remedy.
//!
//! Receivers turn a [`Rejection`] into a response of their protocol; no other code writes a status. Each rejection is
//! counted by the name of its reason.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A rejected request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The reason, from the closed list.
    pub reason: RejectionReason,
    /// A description of what was wrong with this request, and where.
    pub detail: String,
    /// The time after which to retry, if a retry can help.
    pub retry_after: Option<Duration>,
    /// A more precise remedy than the usual one of the reason.
    pub remedy: Option<Cow<'static, str>>,
}

impl Rejection {
    /// Creates a rejection that a retry cannot change.
    #[must_use]
    pub fn new(reason: RejectionReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), retry_after: None, remedy: None }
    }

    /// Creates a rejection that a retry may change.
    #[must_use]
    pub fn retryable(reason: RejectionReason, detail: impl Into<String>, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(reason, detail) }
    }

    /// Replaces the usual remedy of the reason.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<Cow<'static, str>>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Returns what the sender or operator can do about it.
    #[must_use]
    pub fn remedy(&self) -> &str {
        self.remedy.as_deref().unwrap_or(self.reason.remedy())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.detail, self.remedy())
    }
}

/// The closed list of reasons for rejections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectionReason {
    /// Nothing in the body could be read.
    Unreadable,
    /// The body is not what its `Content-Encoding` says.
    BadCompression,
    /// A query parameter or header has an unsupported value.
    BadParameter,
    /// The path does not exist.
    NotFound,
    /// The path does not support the HTTP method.
    WrongMethod,
    /// The token is missing or unknown.
    Unauthenticated,
    /// The token lacks the scope, or the host name is not one of this server.
    Forbidden,
    /// The request was sent by a web page of another origin.
    CrossSite,
    /// The `Idempotency-Key` was used for another request.
    KeyReused,
    /// The body came too slowly.
    TooSlow,
    /// The request exceeds a limit on size.
    TooLarge,
    /// The content type is not supported.
    WrongType,
    /// The content encoding is not supported.
    WrongEncoding,
    /// The OTLP signal is not supported.
    WrongSignal,
    /// The limits on memory or on concurrent requests are reached.
    Busy,
    /// The WAL has reached its largest size on disk.
    WalFull,
    /// The WAL could not be written.
    DiskFailed,
    /// The data directory was removed, renamed or replaced while it is in use.
    DirectoryLost,
    /// The sender went away before its request was complete.
    Gone,
    /// The server is shutting down.
    ShuttingDown,
    /// An internal error, which is a bug.
    Internal,
}

/// A row of the table: name, HTTP status, gRPC status, remedy.
type Row = (&'static str, u16, i32, &'static str);

impl RejectionReason {
    /// All reasons, in the order in which counters index them.
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

    /// Returns the row of the reason. The gRPC codes are 3 invalid argument, 7 permission denied, 8 resource
    /// exhausted, 12 unimplemented, 13 internal, 14 unavailable and 16 unauthenticated. OTLP senders retry 14, and 8
    /// only if they are told when: a request that is too large stays too large.
    const fn row(self) -> Row {
        match self {
            Self::Unreadable => ("unreadable", 400, 3, "send what the content type says"),
            Self::BadCompression => {
                ("bad_compression", 400, 3, "send whole gzip or zstd data, or none and no Content-Encoding")
            }
            Self::BadParameter => ("bad_parameter", 400, 3, "correct or leave out the parameter"),
            Self::NotFound => {
                ("not_found", 404, 12, "use /v1/envelopes, /v1/traces, /v1/logs or /v1/metrics")
            }
            Self::WrongMethod => ("wrong_method", 405, 12, "use POST"),
            Self::Unauthenticated => (
                "unauthenticated",
                401,
                16,
                "send Authorization: Bearer TOKEN, with a token that has the scope ingest",
            ),
            Self::Forbidden => ("forbidden", 403, 7, "use a token that has the scope ingest"),
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
            // The sender cannot read this response; 499 and 1 (cancelled) are the codes that other servers write into
            // their logs.
            Self::Gone => ("gone", 499, 1, "keep the connection open until the answer"),
            Self::ShuttingDown => ("shutting_down", 503, 14, "retry after the given time"),
            Self::Internal => ("internal", 500, 13, "this is a defect of Faultline: please report it"),
        }
    }

    /// Returns a short, stable name, which is a metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Returns the HTTP status.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        self.row().1
    }

    /// Returns the gRPC status.
    #[must_use]
    pub const fn grpc_status(self) -> i32 {
        self.row().2
    }

    /// Returns what the sender or operator usually can do about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        self.row().3
    }
}
