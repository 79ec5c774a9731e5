//! Why a query has no answer: what, where, and what to do.

use datafusion::common::{DataFusionError, Diagnostic, SchemaError, Span};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a query has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryError {
    /// What kind of failure it is.
    pub kind: Kind,
    /// What went wrong.
    pub message: String,
    /// Where in the statement.
    pub position: Option<Position>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// It is no SQL.
    Syntax,
    /// It names something that is not there.
    Unknown,
    /// It makes no sense as it stands: types, arguments, grouping.
    Invalid,
    /// It would do more than read.
    Refused,
    /// It takes more than it may.
    Limit(Limit),
    /// Too many others are running; the same query may work in a moment.
    Busy,
    /// The client does not want it any more.
    Cancelled,
    /// It failed while it ran, by what is in the rows.
    Failed,
    /// Our own fault, or the disk's.
    Internal,
}

/// What a query took too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// Time.
    Time,
    /// Memory.
    Memory,
    /// Rows of the answer.
    Rows,
    /// Columns of the answer.
    Columns,
    /// The length of the statement.
    Statement,
}

/// A place in a statement, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The character in the line.
    pub column: u64,
}

impl QueryError {
    /// An error without a place.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), position: None, hint: None }
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Refused, because it would do more than read.
    pub(crate) fn refused(what: &str) -> Self {
        Self::new(
            Kind::Refused,
            format!("{what} is not allowed: this is a read-only view of the error history"),
        )
        .hint("SELECT, WITH, VALUES, EXPLAIN, DESCRIBE and SHOW are")
    }

    /// A word for the kind, for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.kind {
            Kind::Syntax => "syntax",
            Kind::Unknown => "unknown_name",
            Kind::Invalid => "invalid",
            Kind::Refused => "refused",
            Kind::Limit(Limit::Time) => "time_limit",
            Kind::Limit(Limit::Memory) => "memory_limit",
            Kind::Limit(Limit::Rows) => "row_limit",
            Kind::Limit(Limit::Columns) => "column_limit",
            Kind::Limit(Limit::Statement) => "statement_limit",
            Kind::Busy => "busy",
            Kind::Cancelled => "cancelled",
            Kind::Failed => "failed",
            Kind::Internal => "internal",
        }
    }

    fn at(mut self, span: Option<Span>) -> Self {
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
    /// How many characters of a statement stand before it.
    #[must_use]
    pub fn offset(self, statement: &str) -> usize {
        let before = statement.split_inclusive('\n').take(self.line.saturating_sub(1) as usize);
        before.map(|line| line.chars().count()).sum::<usize>() + self.column.saturating_sub(1) as usize
    }

    /// Reads the place that the parser puts into its messages: `... at Line: 1, Column: 8`.
    fn split_from(message: &str) -> (String, Option<Self>) {
        let Some((before, place)) = message.rsplit_once(" at Line: ") else {
            return (message.to_owned(), None);
        };
        let position = place.split_once(", Column: ").and_then(|(line, column)| {
            let digits = column.find(|c: char| !c.is_ascii_digit()).unwrap_or(column.len());
            Some(Self { line: line.parse().ok()?, column: column[..digits].parse().ok()? })
        });
        if position.is_some() { (before.to_owned(), position) } else { (message.to_owned(), None) }
    }
}

/// An error of the engine, in our words.
impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        match error {
            DataFusionError::SQL(error, _) => {
                let text = error.to_string();
                let text = text.trim_start_matches("sql parser error: ");
                let (message, position) = Position::split_from(text);
                let is_question_mark = message.ends_with("found: ?");
                let hint = is_question_mark.then(|| "parameters are written $1, $2 and so on".to_owned());
                Self { position, hint, ..Self::new(Kind::Syntax, message) }
            }
            DataFusionError::Diagnostic(diagnostic, inner) => of_diagnostic(*diagnostic, *inner),
            DataFusionError::Collection(errors) => errors
                .into_iter()
                .next()
                .map_or_else(|| Self::new(Kind::Internal, "an error without a reason"), Self::from),
            DataFusionError::Context(_, inner) => Self::from(*inner),
            DataFusionError::Shared(shared) => of_shared(&shared),
            DataFusionError::SchemaError(error, _) => of_schema(&error),
            DataFusionError::Plan(message) => of_plan(message),
            DataFusionError::NotImplemented(message) => {
                Self::new(Kind::Invalid, format!("not supported: {message}"))
            }
            DataFusionError::Configuration(message) => Self::new(Kind::Invalid, message),
            DataFusionError::Execution(message) => Self::new(Kind::Failed, message),
            DataFusionError::ArrowError(error, _) => Self::new(Kind::Failed, error.to_string()),
            DataFusionError::ResourcesExhausted(message) => of_exhaustion(&message),
            DataFusionError::External(error) => match error.downcast::<Self>() {
                Ok(ours) => *ours,
                Err(other) => Self::new(Kind::Internal, other.to_string()),
            },
            other => Self::new(Kind::Internal, other.strip_backtrace()),
        }
    }
}

fn of_diagnostic(diagnostic: Diagnostic, inner: DataFusionError) -> QueryError {
    let mut error = QueryError::from(inner).at(diagnostic.span);
    if error.hint.is_none() {
        error.hint = diagnostic.helps.into_iter().chain(None).map(|help| help.message).next();
    }
    error
}

/// Several readers share one failure, so it cannot be taken apart.
fn of_shared(error: &DataFusionError) -> QueryError {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(message) => of_exhaustion(message),
        DataFusionError::Execution(message) => QueryError::new(Kind::Failed, message),
        DataFusionError::External(error) => match error.downcast_ref::<QueryError>() {
            Some(ours) => ours.clone(),
            None => QueryError::new(Kind::Internal, error.to_string()),
        },
        other => QueryError::new(Kind::Failed, other.strip_backtrace()),
    }
}

fn of_exhaustion(message: &str) -> QueryError {
    let asked = message.lines().next().unwrap_or_default();
    QueryError::new(
        Kind::Limit(Limit::Memory),
        format!("the query needs more memory than it may take: {asked}"),
    )
    .hint("narrow the time range, group by fewer columns, or sort fewer rows with LIMIT")
}

fn of_schema(error: &SchemaError) -> QueryError {
    let SchemaError::FieldNotFound { field, valid_fields } = error else {
        return QueryError::new(Kind::Invalid, error.to_string());
    };
    let names: Vec<&str> = valid_fields.iter().map(|column| column.name.as_str()).collect();
    let unknown = QueryError::new(Kind::Unknown, format!("there is no column '{}'", field.name));
    match nearest(&field.name, names.iter().copied()) {
        Some(near) => unknown.hint(format!("did you mean '{near}'?")),
        None if names.is_empty() => unknown,
        None => {
            unknown.hint("DESCRIBE shows the columns of a table, and SELECT * FROM columns explains them")
        }
    }
}

fn of_plan(message: String) -> QueryError {
    let table = message.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found"));
    let Some(table) = table else {
        let is_unknown = message.starts_with("Invalid function") || message.contains("not found");
        return QueryError::new(if is_unknown { Kind::Unknown } else { Kind::Invalid }, message);
    };
    let name = table.rsplit('.').next().unwrap_or(table);
    let unknown = QueryError::new(Kind::Unknown, format!("there is no table '{name}'"));
    match nearest(name, crate::tables::names()) {
        Some(near) => unknown.hint(format!("did you mean '{near}'?")),
        None => unknown.hint("SHOW TABLES lists what there is"),
    }
}

/// The name that someone who wrote another one most likely meant.
pub(crate) fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_lowercase();
    let distance = |other: &&str| strsim::damerau_levenshtein(&name, &other.to_lowercase());
    let near = names.into_iter().min_by_key(distance)?;
    let is_near = distance(&near) <= (name.chars().count() / 3).max(1) || near.starts_with(&name);
    is_near.then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parsers_place_is_read_from_its_message() {
        let (message, position) =
            Position::split_from("Expected: an SQL statement, found: SELEC at Line: 2, Column: 13");
        assert_eq!(message, "Expected: an SQL statement, found: SELEC");
        assert_eq!(position, Some(Position { line: 2, column: 13 }));
        assert_eq!(Position::split_from("no place").1, None);
    }

    #[test]
    fn a_place_is_a_number_of_characters() {
        let place = |line, column| Position { line, column }.offset("SELECT 'ü'\nFROM x");
        assert_eq!(place(1, 1), 0);
        assert_eq!(place(1, 10), 9);
        assert_eq!(place(2, 6), 16);
    }

    #[test]
    fn near_misses_are_found_and_far_ones_are_not() {
        let names = ["category", "canonical", "service", "operation"];
        assert_eq!(nearest("categroy", names), Some("category"));
        assert_eq!(nearest("Servic", names), Some("service"));
        assert_eq!(nearest("cat", names), Some("category"));
        assert_eq!(nearest("weather", names), None);
    }
}
