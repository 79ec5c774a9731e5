//! What may be asked: one statement that reads.
//!
//! Every door asks here first, whatever it speaks. Two locks on the same door: a list of the statements that are
//! allowed, and the engine's own refusal to plan anything that changes something.

use crate::error::{Kind, Limit, QueryError};
use crate::limits::Limits;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{self, Query, SetExpr};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;

/// How deep a statement may nest: parsing and planning recurse.
const DEPTH: usize = 64;

/// Reads exactly one statement, and refuses what does more than read.
///
/// # Errors
/// When it is too long, no SQL, several statements, or not one of those that are allowed.
pub fn statement(sql: &str, limits: &Limits) -> Result<Statement, QueryError> {
    let mut statements = parse(sql, limits)?;
    let Some(statement) = statements.pop() else {
        return Err(QueryError::new(Kind::Syntax, "there is no statement"));
    };
    if !statements.is_empty() {
        return Err(QueryError::new(Kind::Refused, "several statements at once are not allowed")
            .hint("send them one by one"));
    }
    allow(&statement)?;
    Ok(statement)
}

/// Reads statements without judging them.
///
/// # Errors
/// When the text is too long or no SQL.
pub fn parse(sql: &str, limits: &Limits) -> Result<Vec<Statement>, QueryError> {
    if sql.len() > limits.statement_bytes {
        let message =
            format!("the statement has {} bytes; at most {} are read", sql.len(), limits.statement_bytes);
        return Err(QueryError::new(Kind::Limit(Limit::Statement), message)
            .hint("use parameters or a join instead of long lists"));
    }
    let dialect = PostgreSqlDialect {};
    let mut parser = DFParserBuilder::new(sql)
        .with_dialect(&dialect)
        .with_recursion_limit(DEPTH)
        .build()
        .map_err(QueryError::from)?;
    Ok(parser.parse_statements()?.into())
}

/// Refuses a statement that does more than read.
///
/// # Errors
/// When it is not one of those that are allowed.
pub fn allow(statement: &Statement) -> Result<(), QueryError> {
    match statement {
        Statement::Statement(statement) => allow_sql(statement),
        Statement::Explain(explain) => allow(&explain.statement),
        Statement::CreateExternalTable(_) => Err(QueryError::refused("CREATE EXTERNAL TABLE")),
        Statement::CopyTo(_) => Err(QueryError::refused("COPY")),
        Statement::Reset(_) => Err(QueryError::refused("RESET")),
    }
}

fn allow_sql(statement: &ast::Statement) -> Result<(), QueryError> {
    use ast::Statement as Sql;
    match statement {
        Sql::Query(query) => allow_query(query),
        Sql::Explain { statement, .. } => allow_sql(statement),
        Sql::ExplainTable { .. }
        | Sql::ShowTables { .. }
        | Sql::ShowColumns { .. }
        | Sql::ShowVariable { .. }
        | Sql::ShowVariables { .. }
        | Sql::ShowFunctions { .. } => Ok(()),
        other => Err(QueryError::refused(&words(other))),
    }
}

/// A query may hide a statement that writes: `WITH gone AS (DELETE ...) SELECT ...`, `SELECT ... INTO`.
fn allow_query(query: &Query) -> Result<(), QueryError> {
    for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
        allow_query(&cte.query)?;
    }
    if !query.locks.is_empty() {
        return Err(QueryError::refused("locking rows"));
    }
    allow_body(&query.body)
}

fn allow_body(body: &SetExpr) -> Result<(), QueryError> {
    match body {
        SetExpr::Select(select) if select.into.is_some() => Err(QueryError::refused("SELECT INTO")),
        SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Table(_) => Ok(()),
        SetExpr::Query(query) => allow_query(query),
        SetExpr::SetOperation { left, right, .. } => {
            allow_body(left)?;
            allow_body(right)
        }
        other => Err(QueryError::refused(&first_words(&other.to_string()))),
    }
}

fn words(statement: &ast::Statement) -> String {
    first_words(&statement.to_string())
}

/// Enough of a statement to recognise it.
fn first_words(text: &str) -> String {
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// Refuses a plan that changes anything: the second lock.
///
/// # Errors
/// When the plan does more than read, or its answer is too wide.
pub fn plan(plan: &LogicalPlan, limits: &Limits) -> Result<(), QueryError> {
    let only_reading =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    only_reading.verify_plan(plan).map_err(|error| {
        let error = QueryError::from(error);
        QueryError { kind: Kind::Refused, ..error }
    })?;
    let columns = plan.schema().fields().len();
    if columns > limits.columns {
        let message =
            format!("the answer would have {columns} columns; at most {} are given", limits.columns);
        return Err(QueryError::new(Kind::Limit(Limit::Columns), message).hint("name the columns you need"));
    }
    Ok(())
}
