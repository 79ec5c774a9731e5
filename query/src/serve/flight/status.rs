//! Converts errors to gRPC statuses: a code for programs, and a message for people that says what was wrong, where, and
//! what to do.

use crate::error::{Limit, QueryError, QueryErrorKind};
use arrow::error::ArrowError;
use tonic::{Code, Status};

/// The maximum number of characters of a message. It is sent in a header, and clients accept 8 KiB of headers.
const LONGEST: usize = 1_500;

impl From<QueryError> for Status {
    fn from(error: QueryError) -> Self {
        Self::new(code(error.kind), shortened(error.to_string()))
    }
}

fn code(kind: QueryErrorKind) -> Code {
    match kind {
        QueryErrorKind::Syntax | QueryErrorKind::Invalid | QueryErrorKind::Failed => Code::InvalidArgument,
        QueryErrorKind::Unknown => Code::NotFound,
        QueryErrorKind::Refused => Code::PermissionDenied,
        QueryErrorKind::Limit(Limit::Time) => Code::DeadlineExceeded,
        QueryErrorKind::Limit(_) => Code::ResourceExhausted,
        QueryErrorKind::Busy => Code::Unavailable,
        QueryErrorKind::Cancelled => Code::Cancelled,
        QueryErrorKind::Internal => Code::Internal,
    }
}

/// Cuts out the middle of a message: the error is at its beginning, and the position and the remedy are at its end.
fn shortened(text: String) -> String {
    let count = text.chars().count();
    if count <= LONGEST {
        return text;
    }
    let half = LONGEST / 2;
    let first: String = text.chars().take(half).collect();
    let last: String = text.chars().skip(count - half).collect();
    format!("{first} ... {last}")
}

/// Returns the status for data that Arrow cannot encode.
pub(super) fn unwritable(error: &ArrowError) -> Status {
    Status::internal(shortened(error.to_string()))
}

/// Returns the status for an invalid call.
pub(super) fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_keeps_its_beginning_and_its_end() {
        let long =
            QueryError::new(QueryErrorKind::Invalid, format!("begin {}", "ü".repeat(5_000))).hint("the end");
        let status = Status::from(long);
        assert!(status.message().starts_with("begin ü"), "{}", status.message());
        assert!(status.message().ends_with("; the end"), "{}", status.message());
        assert!(status.message().chars().count() < LONGEST + 10);
    }
}
