//! Errors as gRPC statuses: a code for programs, and for people what was wrong, where, and what to do.

use crate::error::{Kind, Limit, QueryError};
use arrow::error::ArrowError;
use tonic::{Code, Status};

/// Characters of a message. It travels in a header, and clients take 8 KiB of those.
const LONGEST: usize = 1_500;

impl From<QueryError> for Status {
    fn from(error: QueryError) -> Self {
        Self::new(code(error.kind), shortened(error.to_string()))
    }
}

fn code(kind: Kind) -> Code {
    match kind {
        Kind::Syntax | Kind::Invalid | Kind::Failed => Code::InvalidArgument,
        Kind::Unknown => Code::NotFound,
        Kind::Refused => Code::PermissionDenied,
        Kind::Limit(Limit::Time) => Code::DeadlineExceeded,
        Kind::Limit(_) => Code::ResourceExhausted,
        Kind::Busy => Code::Unavailable,
        Kind::Cancelled => Code::Cancelled,
        Kind::Internal => Code::Internal,
    }
}

/// Cuts the middle out: what went wrong stands at the beginning, where and what to do at the end.
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

/// Bytes of ours that Arrow does not take.
pub(super) fn unwritable(error: &ArrowError) -> Status {
    Status::internal(shortened(error.to_string()))
}

/// A call that makes no sense.
pub(super) fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_keeps_its_beginning_and_its_end() {
        let long = QueryError::new(Kind::Invalid, format!("begin {}", "ü".repeat(5_000))).hint("the end");
        let status = Status::from(long);
        assert!(status.message().starts_with("begin ü"), "{}", status.message());
        assert!(status.message().ends_with("; the end"), "{}", status.message());
        assert!(status.message().chars().count() < LONGEST + 10);
    }
}
