//! What may be asked: one statement that reads.
//!
//! Every door asks here first, whatever it speaks. Two locks on the same door: a list of the statements that are
//! allowed, and the engine's own refusal to plan anything that changes something.

mod complexity;

use crate::error::{Kind, Limit, QueryError};
use crate::limits::Limits;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{self, Query, SetExpr, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use std::ops::ControlFlow;

/// How deep a statement may nest: parsing and planning recurse.
const DEPTH: usize = 64;
/// The length of a condition on single events.
const CONDITION_BYTES: usize = 4 << 10;
/// How deep a condition on single events may nest: it is worked out on the server's own threads.
const CONDITION_DEPTH: usize = 100;

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
    allow(&statement, limits)?;
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
    complexity::check_tokens(sql)?;
    let dialect = PostgreSqlDialect {};
    let mut parser = DFParserBuilder::new(sql)
        .with_dialect(&dialect)
        .with_recursion_limit(DEPTH)
        .build()
        .map_err(QueryError::from)?;
    let statements: Vec<Statement> = parser.parse_statements()?.into();
    statements.iter().try_for_each(check_complexity)?;
    Ok(statements)
}

fn check_complexity(statement: &Statement) -> Result<(), QueryError> {
    match statement {
        Statement::Statement(statement) => complexity::check(statement),
        Statement::Explain(explain) => check_complexity(&explain.statement),
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => Ok(()),
    }
}

/// Refuses a statement that does more than read, or is too wide.
///
/// # Errors
/// When it is not one of those that are allowed.
pub fn allow(statement: &Statement, limits: &Limits) -> Result<(), QueryError> {
    match statement {
        Statement::Statement(statement) => allow_sql(statement, limits),
        Statement::Explain(explain) => allow(&explain.statement, limits),
        Statement::CreateExternalTable(_) => Err(QueryError::refused("CREATE EXTERNAL TABLE")),
        Statement::CopyTo(_) => Err(QueryError::refused("COPY")),
        Statement::Reset(_) => Err(QueryError::refused("RESET")),
    }
}

fn allow_sql(statement: &ast::Statement, limits: &Limits) -> Result<(), QueryError> {
    use ast::Statement as Sql;
    match statement {
        Sql::Query(query) => match query.visit(&mut Inside { limits }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        },
        Sql::Explain { statement, .. } => allow_sql(statement, limits),
        Sql::ExplainTable { .. }
        | Sql::ShowTables { .. }
        | Sql::ShowColumns { .. }
        | Sql::ShowVariable { .. }
        | Sql::ShowVariables { .. }
        | Sql::ShowFunctions { .. } => Ok(()),
        other => Err(QueryError::refused(&first_words(&other.to_string()))),
    }
}

/// Reads a condition on single rows: one expression, without a query in it.
///
/// # Errors
/// When it is too long, no SQL, or asks for other rows.
pub fn condition(sql: &str) -> Result<ast::ExprWithAlias, QueryError> {
    if sql.len() > CONDITION_BYTES {
        let message = format!("the condition has {} bytes; at most {CONDITION_BYTES} are read", sql.len());
        return Err(QueryError::new(Kind::Limit(Limit::Statement), message).hint("compare with fewer values"));
    }
    let dialect = PostgreSqlDialect {};
    let parser = DFParserBuilder::new(sql).with_dialect(&dialect).with_recursion_limit(DEPTH).build();
    let expression = parser?.parse_into_expr()?;
    if let Some(alias) = &expression.alias {
        let error = QueryError::new(Kind::Syntax, format!("'{alias}' is more than the condition"));
        return Err(error.hint("join conditions with AND or OR"));
    }
    complexity::check_expression(&expression.expr, CONDITION_DEPTH)?;
    if expression.expr.visit(&mut NoQuery).is_break() {
        let error =
            QueryError::new(Kind::Refused, "a condition looks at single events: no queries inside it");
        return Err(error.hint("ask such a question with faultline sql"));
    }
    Ok(expression)
}

/// Finds queries.
struct NoQuery;

impl Visitor for NoQuery {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// Looks at a query and at all that stand in it: one may hide a statement that writes, as in
/// `WITH gone AS (DELETE ...) SELECT ...` and `SELECT ... INTO`.
struct Inside<'l> {
    limits: &'l Limits,
}

impl Visitor for Inside<'_> {
    type Break = QueryError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<QueryError> {
        let judged = match query.locks.is_empty() {
            true => self.body(&query.body),
            false => Err(QueryError::refused("locking rows")),
        };
        judged.map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }
}

impl Inside<'_> {
    fn body(&self, body: &SetExpr) -> Result<(), QueryError> {
        match body {
            SetExpr::Select(select) if select.into.is_some() => Err(QueryError::refused("SELECT INTO")),
            // Planning so many would take minutes that cannot be interrupted.
            SetExpr::Select(select) => self.columns(select.projection.len()),
            SetExpr::Values(_) | SetExpr::Table(_) => Ok(()),
            // It is a query of its own, and comes by itself.
            SetExpr::Query(_) => Ok(()),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left)?;
                self.body(right)
            }
            other => Err(QueryError::refused(&first_words(&other.to_string()))),
        }
    }

    fn columns(&self, count: usize) -> Result<(), QueryError> {
        if count <= self.limits.columns { Ok(()) } else { Err(too_wide(count, self.limits)) }
    }
}

/// Enough of a statement to recognise it.
fn first_words(text: &str) -> String {
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

fn too_wide(columns: usize, limits: &Limits) -> QueryError {
    let message = format!("the answer would have {columns} columns; at most {} are given", limits.columns);
    QueryError::new(Kind::Limit(Limit::Columns), message).hint("name the columns you need")
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
    if columns > limits.columns { Err(too_wide(columns, limits)) } else { Ok(()) }
}
