//! Errors as the PostgreSQL protocol has them: an SQLSTATE, a message, a hint, and a position in the statement.

use crate::error::{Limit, QueryError, QueryErrorKind};
use pgwire::messages::response::{ErrorResponse, NoticeResponse};

/// An error as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PgError {
    /// True if the error ends the connection.
    pub(super) fatal: bool,
    /// The SQLSTATE.
    pub(super) code: &'static str,
    message: String,
    hint: Option<String>,
    /// The character position in the statement, from 1.
    position: Option<usize>,
}

impl PgError {
    /// Creates an error that leaves the connection open.
    pub(super) fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self { fatal: false, code, message: message.into(), hint: None, position: None }
    }

    /// Creates an error that ends the connection.
    pub(super) fn fatal(code: &'static str, message: impl Into<String>) -> Self {
        Self { fatal: true, ..Self::error(code, message) }
    }

    /// Turns the error into one that ends the connection.
    pub(super) fn into_fatal(self) -> Self {
        Self { fatal: true, ..self }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Converts the error of a query, with its position in the statement.
    pub(super) fn of(error: QueryError, statement: &str) -> Self {
        let position = error.position.map(|place| place.offset(statement) + 1);
        Self { hint: error.hint, position, ..Self::error(code(error.kind, &error.message), error.message) }
    }

    /// Returns the error of a query that was stopped by a cancel request.
    pub(super) fn cancelled() -> Self {
        Self::error("57014", "the query was cancelled by its client")
    }

    /// Returns the error message of the protocol.
    pub(super) fn response(&self) -> ErrorResponse {
        let severity = if self.fatal { "FATAL" } else { "ERROR" };
        ErrorResponse::new(self.fields(severity))
    }

    /// Returns the same message as a warning.
    pub(super) fn notice(&self) -> NoticeResponse {
        NoticeResponse::new(self.fields("WARNING"))
    }

    /// Returns the fields of the message, with their type codes.
    fn fields(&self, severity: &str) -> Vec<(u8, String)> {
        let mut fields = vec![
            (b'S', severity.to_owned()),
            (b'V', severity.to_owned()),
            (b'C', self.code.to_owned()),
            (b'M', without_zeros(&self.message)),
        ];
        fields.extend(self.hint.as_deref().map(|hint| (b'H', without_zeros(hint))));
        fields.extend(self.position.map(|position| (b'P', position.to_string())));
        fields
    }
}

/// Replaces zero bytes, which would end the text for the client.
fn without_zeros(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Returns the SQLSTATE of a query's error.
fn code(kind: QueryErrorKind, message: &str) -> &'static str {
    match kind {
        QueryErrorKind::Syntax => "42601",
        QueryErrorKind::Unknown => unknown(message),
        QueryErrorKind::Invalid => "42000",
        QueryErrorKind::Refused => "25006",
        QueryErrorKind::Limit(Limit::Time) | QueryErrorKind::Cancelled => "57014",
        QueryErrorKind::Limit(Limit::Memory) => "53200",
        QueryErrorKind::Limit(Limit::Rows | Limit::Columns | Limit::Statement) => "54000",
        QueryErrorKind::Busy => "53300",
        QueryErrorKind::Failed => failed(message),
        QueryErrorKind::Internal => "XX000",
    }
}

fn unknown(message: &str) -> &'static str {
    if message.starts_with("there is no table") {
        "42P01"
    } else if message.starts_with("there is no column") {
        "42703"
    } else if message.starts_with("Invalid function") {
        "42883"
    } else {
        "42704"
    }
}

/// Returns the SQLSTATE of an error about a value in a row or a literal.
fn failed(message: &str) -> &'static str {
    if message.contains("Divide by zero") {
        "22012"
    } else if message.contains("Overflow") || message.contains("overflow") {
        "22003"
    } else if message.contains("Cast error") || message.contains("Parser error") {
        "22P02"
    } else {
        "22000"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Position;

    #[test]
    fn a_query_error_keeps_its_place_and_its_remedy() {
        let error = QueryError {
            position: Some(Position { line: 2, column: 3 }),
            ..QueryError::new(QueryErrorKind::Unknown, "there is no column 'x'").hint("did you mean 'y'?")
        };
        let fields = PgError::of(error, "SELECT 'ü',\n  x").response().fields;
        let field = |letter| fields.iter().find(|field| field.0 == letter).map(|field| field.1.as_str());
        assert_eq!(field(b'C'), Some("42703"));
        assert_eq!(field(b'P'), Some("15"));
        assert_eq!(field(b'H'), Some("did you mean 'y'?"));
        assert_eq!(field(b'S'), Some("ERROR"));
    }
}
