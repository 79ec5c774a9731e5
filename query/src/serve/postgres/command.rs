//! Parses the commands of a text: queries, which the engine runs, and commands of the session itself, such as `SET`.

use super::column_names;
use crate::error::{QueryError, QueryErrorKind};
use crate::guard::ReadOnlyStatement;
use crate::limits::Limits;
use datafusion::sql::parser::{ResetStatement, Statement};
use datafusion::sql::sqlparser::ast::{
    self, CloseCursor, ContextModifier, DiscardObject, Expr, FetchDirection, ObjectName, Query, Set, Value,
};

/// A command of a client.
#[derive(Debug, Clone)]
pub(super) enum Command {
    /// A statement that returns rows.
    Query(QueryStatement),
    Begin,
    Commit,
    Rollback,
    /// Returns to a savepoint: there is nothing to undo, but a failed transaction continues.
    RollbackTo,
    /// Has no effect; the client gets this command tag.
    NoOp(&'static str),
    /// Sets a setting to a value, or to its default.
    Set {
        name: String,
        value: Option<String>,
        local: bool,
    },
    /// Resets one setting, or all.
    Reset(Option<String>),
    Show(String),
    /// Discards the whole state of the session (`ALL`), or nothing.
    Discard(bool),
    /// Removes one prepared statement, or all.
    Deallocate(Option<String>),
    /// Closes one cursor, or all.
    Close(Option<String>),
    Declare {
        name: String,
        hold: bool,
        query: QueryStatement,
    },
    /// Returns the next rows of a cursor; without a number, all remaining rows.
    Fetch {
        name: String,
        count: Option<usize>,
    },
}

/// A statement that returns rows.
#[derive(Debug, Clone)]
pub(super) struct QueryStatement {
    pub(super) statement: Box<ReadOnlyStatement>,
    /// The names of the columns, if the statement determines them.
    pub(super) names: Option<Vec<String>>,
}

impl QueryStatement {
    /// Accepts a statement that passes the guard.
    fn of(statement: Statement, limits: &Limits) -> Result<Self, QueryError> {
        let names = column_names::of_statement(&statement);
        Ok(Self { names, statement: Box::new(ReadOnlyStatement::check(statement, limits)?) })
    }
}

impl Command {
    /// Returns the command of a statement, if it is allowed.
    pub(super) fn of(statement: Statement, limits: &Limits) -> Result<Self, QueryError> {
        let own = match &statement {
            Statement::Statement(sql) => Self::of_sql(sql, limits)?,
            Statement::Reset(ResetStatement::Variable(name)) => Some(Self::Reset(not_all(&name.to_string()))),
            _ => None,
        };
        match own {
            Some(command) => Ok(command),
            None => QueryStatement::of(statement, limits).map(Self::Query),
        }
    }

    fn of_sql(statement: &ast::Statement, limits: &Limits) -> Result<Option<Self>, QueryError> {
        use ast::Statement as Sql;
        Ok(Some(match statement {
            Sql::StartTransaction { statements, exception: None, .. } if statements.is_empty() => Self::Begin,
            Sql::Commit { .. } => Self::Commit,
            Sql::Rollback { savepoint: None, .. } => Self::Rollback,
            Sql::Rollback { .. } => Self::RollbackTo,
            Sql::Savepoint { .. } => Self::NoOp("SAVEPOINT"),
            Sql::ReleaseSavepoint { .. } => Self::NoOp("RELEASE"),
            Sql::Set(set) => Self::of_set(set)?,
            Sql::ShowVariable { variable } => {
                let words: Vec<_> = variable.iter().map(|word| word.value.to_lowercase()).collect();
                match words.join(" ").as_str() {
                    "transaction isolation level" => Self::Show("transaction_isolation".to_owned()),
                    "time zone" => Self::Show("TimeZone".to_owned()),
                    // The engine has this statement itself.
                    "all" => return Ok(None),
                    _ => Self::Show(words.join(".")),
                }
            }
            Sql::Discard { object_type } => Self::Discard(*object_type == DiscardObject::ALL),
            Sql::Deallocate { name, .. } => Self::Deallocate(not_all(&name.value)),
            Sql::Close { cursor: CloseCursor::All } => Self::Close(None),
            Sql::Close { cursor: CloseCursor::Specific { name } } => Self::Close(Some(name.value.clone())),
            Sql::Declare { stmts } => Self::of_declare(stmts, limits)?,
            Sql::Fetch { name, direction, into: None, .. } => {
                Self::Fetch { name: name.value.clone(), count: count(direction)? }
            }
            _ => return Ok(None),
        }))
    }

    fn of_set(set: &Set) -> Result<Self, QueryError> {
        match set {
            Set::SingleAssignment { scope, hivevar: false, variable, values } => {
                let local = *scope == Some(ContextModifier::Local);
                Ok(Self::Set { name: name_of(variable), value: value_of(values), local })
            }
            Set::SetTimeZone { local, value } => {
                let value = value_of(std::slice::from_ref(value));
                Ok(Self::Set { name: "TimeZone".to_owned(), value, local: *local })
            }
            Set::SetNames { charset_name, .. } => Ok(Self::Set {
                name: "client_encoding".to_owned(),
                value: Some(charset_name.value.clone()),
                local: false,
            }),
            // Every mode is accepted, because transactions only read.
            Set::SetTransaction { snapshot: None, .. } => Ok(Self::NoOp("SET")),
            other => {
                let words = other.to_string();
                let words: Vec<_> = words.split_whitespace().take(2).collect();
                Err(QueryError::read_only(&words.join(" ")))
            }
        }
    }

    fn of_declare(cursors: &[ast::Declare], limits: &Limits) -> Result<Self, QueryError> {
        let [cursor] = cursors else { return Err(QueryError::read_only("DECLARE")) };
        let ([name], Some(query)) = (cursor.names.as_slice(), &cursor.for_query) else {
            return Err(QueryError::read_only("DECLARE without a cursor"));
        };
        if cursor.scroll == Some(true) {
            return Err(backwards());
        }
        let query = QueryStatement::of(query_statement(query), limits)?;
        Ok(Self::Declare { name: name.value.clone(), hold: cursor.hold == Some(true), query })
    }
}

fn query_statement(query: &Query) -> Statement {
    Statement::Statement(Box::new(ast::Statement::Query(Box::new(query.clone()))))
}

fn backwards() -> QueryError {
    QueryError::new(QueryErrorKind::Invalid, "cursors only go forward").hint("FETCH FORWARD, NEXT or ALL")
}

/// Returns the number of rows that a `FETCH` returns, or `None` for all.
fn count(direction: &FetchDirection) -> Result<Option<usize>, QueryError> {
    match direction {
        FetchDirection::Next | FetchDirection::Forward { limit: None } => Ok(Some(1)),
        FetchDirection::All | FetchDirection::ForwardAll => Ok(None),
        FetchDirection::Count { limit } | FetchDirection::Forward { limit: Some(limit) } => {
            limit.to_string().parse().map(Some).map_err(|_| backwards())
        }
        _ => Err(backwards()),
    }
}

fn not_all(name: &str) -> Option<String> {
    (!name.eq_ignore_ascii_case("all")).then(|| name.to_owned())
}

fn name_of(name: &ObjectName) -> String {
    let parts =
        name.0.iter().map(|part| part.as_ident().map_or_else(|| part.to_string(), |part| part.value.clone()));
    parts.collect::<Vec<_>>().join(".")
}

/// Returns the new value of a setting, or `None` for the default.
fn value_of(values: &[Expr]) -> Option<String> {
    let text = |value: &Expr| match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        Expr::Identifier(name) => name.value.clone(),
        other => other.to_string(),
    };
    let value = values.iter().map(text).collect::<Vec<_>>().join(", ");
    (!value.eq_ignore_ascii_case("default")).then_some(value)
}
