//! Errors of queries. An error says what was wrong, where in the statement, and what to do about it.

use datafusion::common::{DataFusionError, Diagnostic, SchemaError, Span};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The error of a query that was rejected or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryError {
    /// The kind of failure.
    pub kind: QueryErrorKind,
    /// A sentence that says what was wrong.
    pub message: String,
    /// The position in the statement, if it is known.
    pub position: Option<Position>,
    /// A sentence that says what to do about it.
    pub hint: Option<String>,
}

/// The kind of a query failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueryErrorKind {
    /// The text is not valid SQL.
    Syntax,
    /// The statement names a table, column or function that does not exist.
    Unknown,
    /// The statement is not meaningful: types, arguments or grouping do not match.
    Invalid,
    /// The statement does more than read, which is not allowed.
    Refused,
    /// The query exceeds a limit.
    Limit(Limit),
    /// Too many other queries are running; the same query may work in a moment.
    Busy,
    /// The client cancelled the query, or the server is shutting down.
    Cancelled,
    /// The query failed while it ran, because of values in the rows.
    Failed,
    /// A bug in Faultline or a failure of the machine.
    Internal,
}

/// The limit that a query exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// The run time.
    Time,
    /// The memory.
    Memory,
    /// The number of rows in the result.
    Rows,
    /// The number of columns in the result.
    Columns,
    /// The length or the complexity of the statement.
    Statement,
}

/// A position in a statement. Lines and columns are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The line number.
    pub line: u64,
    /// The number of the character in its line.
    pub column: u64,
}

impl QueryError {
    /// Creates an error without a position and without a hint.
    pub fn new(kind: QueryErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), position: None, hint: None }
    }

    /// Adds a sentence that says what to do about the error.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Creates the error for a statement that does more than read.
    pub(crate) fn read_only(operation: &str) -> Self {
        Self::new(
            QueryErrorKind::Refused,
            format!("{operation} is not allowed: this is a read-only view of the error history"),
        )
        .hint("use SELECT, WITH, VALUES, EXPLAIN, DESCRIBE or SHOW")
    }

    /// Returns a stable error code for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            QueryErrorKind::Syntax => "syntax",
            QueryErrorKind::Unknown => "unknown_name",
            QueryErrorKind::Invalid => "invalid",
            QueryErrorKind::Refused => "refused",
            QueryErrorKind::Limit(Limit::Time) => "time_limit",
            QueryErrorKind::Limit(Limit::Memory) => "memory_limit",
            QueryErrorKind::Limit(Limit::Rows) => "row_limit",
            QueryErrorKind::Limit(Limit::Columns) => "column_limit",
            QueryErrorKind::Limit(Limit::Statement) => "statement_limit",
            QueryErrorKind::Busy => "busy",
            QueryErrorKind::Cancelled => "cancelled",
            QueryErrorKind::Failed => "failed",
            QueryErrorKind::Internal => "internal",
        }
    }

    fn with_span(mut self, span: Option<Span>) -> Self {
        if let Some(span) = span.filter(|span| span.start.line > 0) {
            self.position = Some(Position { line: span.start.line, column: span.start.column });
        }
        self
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if let Some(Position { line, column }) = self.position {
            write!(f, " (line {line}, column {column})")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for QueryError {}

impl Position {
    /// Returns the number of characters of the statement before this position.
    #[must_use]
    pub fn offset(self, statement: &str) -> usize {
        let before = statement.split_inclusive('\n').take(self.line.saturating_sub(1) as usize);
        before.map(|line| line.chars().count()).sum::<usize>() + self.column.saturating_sub(1) as usize
    }

    /// Splits the position off a message of the SQL parser, which ends with `at Line: 1, Column: 8`.
    fn split_from(message: &str) -> (String, Option<Self>) {
        let Some((before, location)) = message.rsplit_once(" at Line: ") else {
            return (message.to_owned(), None);
        };
        let position = location.split_once(", Column: ").and_then(|(line, column)| {
            let digits = column.find(|c: char| !c.is_ascii_digit()).unwrap_or(column.len());
            Some(Self { line: line.parse().ok()?, column: column[..digits].parse().ok()? })
        });
        if position.is_some() { (before.to_owned(), position) } else { (message.to_owned(), None) }
    }
}

/// Translates errors of DataFusion into errors for users.
impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        match error {
            DataFusionError::SQL(error, _) => {
                let text = error.to_string();
                let text = text.trim_start_matches("sql parser error: ");
                let (message, position) = Position::split_from(text);
                let is_question_mark = message.ends_with("found: ?");
                let hint = is_question_mark.then(|| "write parameters as $1, $2 and so on".to_owned());
                Self { position, hint, ..Self::new(QueryErrorKind::Syntax, message) }
            }
            DataFusionError::Diagnostic(diagnostic, inner) => from_diagnostic(*diagnostic, *inner),
            DataFusionError::Collection(errors) => errors.into_iter().next().map_or_else(
                || {
                    Self::new(
                        QueryErrorKind::Internal,
                        "the query engine reported an error without a message",
                    )
                },
                Self::from,
            ),
            DataFusionError::Context(_, inner) => Self::from(*inner),
            DataFusionError::Shared(shared) => from_shared(&shared),
            DataFusionError::SchemaError(error, _) => from_schema_error(&error),
            DataFusionError::Plan(message) => from_plan_error(message),
            DataFusionError::NotImplemented(message) => {
                Self::new(QueryErrorKind::Invalid, format!("not supported: {message}"))
            }
            DataFusionError::Configuration(message) => Self::new(QueryErrorKind::Invalid, message),
            DataFusionError::Execution(message) => Self::new(QueryErrorKind::Failed, message),
            DataFusionError::ArrowError(error, _) => Self::new(QueryErrorKind::Failed, error.to_string()),
            DataFusionError::ResourcesExhausted(message) => memory_limit_error(&message),
            DataFusionError::External(error) => match error.downcast::<Self>() {
                Ok(ours) => *ours,
                Err(other) => Self::new(QueryErrorKind::Internal, other.to_string()),
            },
            other => Self::new(QueryErrorKind::Internal, other.strip_backtrace()),
        }
    }
}

fn from_diagnostic(diagnostic: Diagnostic, inner: DataFusionError) -> QueryError {
    let mut error = QueryError::from(inner).with_span(diagnostic.span);
    if error.hint.is_none() {
        error.hint = diagnostic.helps.into_iter().chain(None).map(|help| help.message).next();
    }
    error
}

/// Translates an error that is shared by several readers and can therefore only be borrowed.
fn from_shared(error: &DataFusionError) -> QueryError {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(message) => memory_limit_error(message),
        DataFusionError::Execution(message) => QueryError::new(QueryErrorKind::Failed, message),
        DataFusionError::External(error) => match error.downcast_ref::<QueryError>() {
            Some(ours) => ours.clone(),
            None => QueryError::new(QueryErrorKind::Internal, error.to_string()),
        },
        other => QueryError::new(QueryErrorKind::Failed, other.strip_backtrace()),
    }
}

fn memory_limit_error(message: &str) -> QueryError {
    let reason = message.lines().next().unwrap_or_default();
    QueryError::new(
        QueryErrorKind::Limit(Limit::Memory),
        format!("the query exceeds its memory limit: {reason}"),
    )
    .hint("use a shorter time range, group by fewer columns, or sort fewer rows with LIMIT")
}

fn from_schema_error(error: &SchemaError) -> QueryError {
    let SchemaError::FieldNotFound { field, valid_fields } = error else {
        return QueryError::new(QueryErrorKind::Invalid, error.to_string());
    };
    let names: Vec<&str> = valid_fields.iter().map(|column| column.name.as_str()).collect();
    let unknown = QueryError::new(QueryErrorKind::Unknown, format!("there is no column '{}'", field.name));
    match closest_name(&field.name, names.iter().copied()) {
        Some(closest) => unknown.hint(format!("did you mean '{closest}'?")),
        None if names.is_empty() => unknown,
        None => unknown.hint("run DESCRIBE with the table's name, or read SELECT * FROM columns"),
    }
}

fn from_plan_error(message: String) -> QueryError {
    let table = message.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found"));
    let Some(table) = table else {
        let is_unknown = message.starts_with("Invalid function") || message.contains("not found");
        let of_function = function_hint(&message);
        // The most similar name has nothing to do with JSON.
        let message = match (of_function, message.split_once("\nDid you mean")) {
            (Some(_), Some((message, _))) => message.to_owned(),
            _ => message,
        };
        let hint = of_function.or_else(|| boolean_hint(&message));
        let error = QueryError::new(
            if is_unknown { QueryErrorKind::Unknown } else { QueryErrorKind::Invalid },
            message,
        );
        return QueryError { hint: hint.map(str::to_owned), ..error };
    };
    let name = table.rsplit('.').next().unwrap_or(table);
    let unknown = QueryError::new(QueryErrorKind::Unknown, format!("there is no table '{name}'"));
    match closest_name(name, crate::tables::names()) {
        Some(closest) => unknown.hint(format!("did you mean '{closest}'?")),
        None => unknown.hint("run SHOW TABLES to list the tables and views"),
    }
}

/// Functions of other databases that read JSON.
const JSON_FUNCTIONS: [&str; 10] = [
    "json_extract",
    "json_extract_string",
    "json_extract_scalar",
    "json_extract_path",
    "json_extract_path_text",
    "json_value",
    "json_query",
    "jsonb_extract_path_text",
    "jsonextractstring",
    "get_json_object",
];

/// Returns the hint for a function of another database that reads JSON.
fn function_hint(message: &str) -> Option<&'static str> {
    let name = message.strip_prefix("Invalid function '")?.split('\'').next()?;
    JSON_FUNCTIONS.contains(&name).then_some(
        "use attributes->>'key' for a text and attributes->'key' for JSON; keys are plain names, as in \
         attributes->'a'->>'b', not paths such as '$.a'",
    )
}

/// Returns the hint for a comparison of a boolean with a value of another type.
fn boolean_hint(message: &str) -> Option<&'static str> {
    let is_comparison = [
        "Cannot infer common argument type for comparison",
        "Can not find compatible types to compare",
        "There isn't a common type to coerce",
    ]
    .iter()
    .any(|start| message.starts_with(start));
    (is_comparison && message.contains("Boolean")).then_some(
        "a boolean is compared with true or false, without quotes, or stands alone, as in WHERE hidden; a text such as \
         attributes->>'key' is compared with 'true'",
    )
}

/// Returns the known name that a misspelled name most likely stands for, if one is similar enough.
pub(crate) fn closest_name<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_lowercase();
    let distance = |other: &&str| strsim::damerau_levenshtein(&name, &other.to_lowercase());
    let closest = names.into_iter().min_by_key(distance)?;
    let is_close = distance(&closest) <= (name.chars().count() / 3).max(1) || closest.starts_with(&name);
    is_close.then_some(closest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_databases_call_differently_is_explained() {
        let hint = |message: &str| from_plan_error(message.to_owned()).hint.unwrap_or_default();
        assert!(hint("Invalid function 'json_extract'.").contains("attributes->>'key'"));
        let similar = "Invalid function 'json_extract'.\nDid you mean 'union_extract'?";
        assert_eq!(from_plan_error(similar.to_owned()).message, "Invalid function 'json_extract'.");
        assert_eq!(hint("Invalid function 'coutn'."), "");
        let comparison = "Cannot infer common argument type for comparison operation";
        for text in [
            format!("{comparison} Boolean = Utf8"),
            format!("{comparison} Utf8View = Boolean"),
            "Can not find compatible types to compare Boolean with [Utf8]".to_owned(),
            "There isn't a common type to coerce Boolean and Utf8 in LIKE expression".to_owned(),
        ] {
            assert!(hint(&text).contains("WHERE hidden"), "{text}");
        }
        assert_eq!(hint(&format!("{comparison} Int64 = Utf8")), "");
    }

    #[test]
    fn the_position_is_parsed_from_the_parser_message() {
        let (message, position) =
            Position::split_from("Expected: an SQL statement, found: SELEC at Line: 2, Column: 13");
        assert_eq!(message, "Expected: an SQL statement, found: SELEC");
        assert_eq!(position, Some(Position { line: 2, column: 13 }));
        assert_eq!(Position::split_from("no position").1, None);
    }

    #[test]
    fn the_offset_of_a_position_counts_characters() {
        let offset = |line, column| Position { line, column }.offset("SELECT 'ü'\nFROM x");
        assert_eq!(offset(1, 1), 0);
        assert_eq!(offset(1, 10), 9);
        assert_eq!(offset(2, 6), 16);
    }

    #[test]
    fn similar_names_are_suggested_and_others_are_not() {
        let names = ["category", "canonical", "service", "operation"];
        assert_eq!(closest_name("categroy", names), Some("category"));
        assert_eq!(closest_name("Servic", names), Some("service"));
        assert_eq!(closest_name("cat", names), Some("category"));
        assert_eq!(closest_name("weather", names), None);
    }
}
