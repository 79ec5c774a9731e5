//! The guard: every statement passes it in the worker that runs it, whichever endpoint it comes from, and only
//! statements that read pass.
//!
//! The worker is the security boundary, so it relies on nothing that the server has checked. Of a text of a PostgreSQL
//! client, the server passes all statements through the guard beforehand: if one of them is not allowed, none runs.
//!
//! There are two checks. [`ReadOnlyStatement`] is the first: the statement is one of a list of allowed statements. Only
//! such a statement can be planned. [`check_plan`] is the second: the engine verifies that the plan changes nothing.

mod complexity;
mod precedence;

use crate::error::{Limit, QueryError, QueryErrorKind};
use crate::limits::Limits;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{self, Query, SetExpr, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use std::ops::ControlFlow;

/// The maximum nesting depth of a statement, because parsing and planning recurse.
const MAX_DEPTH: usize = 64;
/// The maximum length of a condition on single events.
const MAX_CONDITION_BYTES: usize = 4 << 10;
/// The maximum nesting depth of a condition on single events, which the server evaluates on its own threads.
const MAX_CONDITION_DEPTH: usize = 100;

/// A statement that the guard has accepted.
#[derive(Debug, Clone)]
pub struct ReadOnlyStatement(Statement);

impl ReadOnlyStatement {
    /// Accepts a statement that only reads.
    ///
    /// # Errors
    /// Fails when the statement does more than read, or has too many columns.
    pub fn check(statement: Statement, limits: &Limits) -> Result<Self, QueryError> {
        check_statement(&statement, limits)?;
        Ok(Self(statement))
    }

    /// Rewrites the SQL statement, which may be inside an `EXPLAIN`. The rewrite must not make it write; the check of the
    /// plan would find out.
    pub(crate) fn rewrite(&mut self, rewrite: impl FnOnce(ast::Statement) -> ast::Statement) {
        let mut statement = &mut self.0;
        while let Statement::Explain(explain) = statement {
            statement = &mut explain.statement;
        }
        if let Statement::Statement(sql) = statement {
            let nothing = ast::Statement::Discard { object_type: ast::DiscardObject::ALL };
            **sql = rewrite(std::mem::replace(sql.as_mut(), nothing));
        }
    }

    /// Returns the statement, to be planned.
    pub(crate) fn into_inner(self) -> Statement {
        self.0
    }
}

impl AsRef<Statement> for ReadOnlyStatement {
    fn as_ref(&self) -> &Statement {
        &self.0
    }
}

/// Parses exactly one statement, and rejects a statement that does more than read.
///
/// # Errors
/// Fails when the text is too long or not SQL, or has several statements or one that is not allowed.
pub fn parse_statement(sql: &str, limits: &Limits) -> Result<ReadOnlyStatement, QueryError> {
    let mut statements = parse_statements(sql, limits)?;
    let Some(statement) = statements.pop() else {
        return Err(QueryError::new(QueryErrorKind::Syntax, "there is no statement"));
    };
    if !statements.is_empty() {
        return Err(QueryError::new(QueryErrorKind::Refused, "several statements at once are not allowed")
            .hint("send them one by one"));
    }
    ReadOnlyStatement::check(statement, limits)
}

/// Parses statements without checking whether they are allowed.
///
/// # Errors
/// Fails when the text is too long, too complex or not SQL.
pub fn parse_statements(sql: &str, limits: &Limits) -> Result<Vec<Statement>, QueryError> {
    if sql.len() > limits.statement_bytes {
        let message =
            format!("the statement has {} bytes; at most {} are read", sql.len(), limits.statement_bytes);
        return Err(QueryError::new(QueryErrorKind::Limit(Limit::Statement), message)
            .hint("use parameters or a join instead of long lists"));
    }
    complexity::check_tokens(sql)?;
    let dialect = PostgreSqlDialect {};
    let mut parser = DFParserBuilder::new(sql)
        .with_dialect(&dialect)
        .with_recursion_limit(MAX_DEPTH)
        .build()
        .map_err(QueryError::from)?;
    let mut statements: Vec<Statement> = parser.parse_statements()?.into();
    statements.iter().try_for_each(check_complexity)?;
    statements.iter_mut().for_each(correct_precedence);
    Ok(statements)
}

fn correct_precedence(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => precedence::correct(statement.as_mut()),
        Statement::Explain(explain) => correct_precedence(&mut explain.statement),
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => {}
    }
}

fn check_complexity(statement: &Statement) -> Result<(), QueryError> {
    match statement {
        Statement::Statement(statement) => complexity::check(statement),
        Statement::Explain(explain) => check_complexity(&explain.statement),
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => Ok(()),
    }
}

/// Rejects a statement that does more than read, or has too many columns.
fn check_statement(statement: &Statement, limits: &Limits) -> Result<(), QueryError> {
    match statement {
        Statement::Statement(statement) => check_sql_statement(statement, limits),
        Statement::Explain(explain) => check_statement(&explain.statement, limits),
        Statement::CreateExternalTable(_) => Err(QueryError::read_only("CREATE EXTERNAL TABLE")),
        Statement::CopyTo(_) => Err(QueryError::read_only("COPY")),
        Statement::Reset(_) => Err(QueryError::read_only("RESET")),
    }
}

fn check_sql_statement(statement: &ast::Statement, limits: &Limits) -> Result<(), QueryError> {
    use ast::Statement as Sql;
    match statement {
        Sql::Query(query) => match query.visit(&mut QueryVisitor { limits }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        },
        Sql::Explain { statement, .. } => check_sql_statement(statement, limits),
        Sql::ExplainTable { .. }
        | Sql::ShowTables { .. }
        | Sql::ShowColumns { .. }
        | Sql::ShowVariable { .. }
        | Sql::ShowVariables { .. }
        | Sql::ShowFunctions { .. } => Ok(()),
        other => Err(QueryError::read_only(&first_words(&other.to_string()))),
    }
}

/// Parses a condition on single rows: one expression without a subquery.
///
/// # Errors
/// Fails when the condition is too long, is not SQL, or contains a subquery.
pub fn parse_condition(sql: &str) -> Result<ast::ExprWithAlias, QueryError> {
    if sql.len() > MAX_CONDITION_BYTES {
        let message =
            format!("the condition has {} bytes; at most {MAX_CONDITION_BYTES} are read", sql.len());
        return Err(QueryError::new(QueryErrorKind::Limit(Limit::Statement), message)
            .hint("compare with fewer values"));
    }
    let dialect = PostgreSqlDialect {};
    let parser = DFParserBuilder::new(sql).with_dialect(&dialect).with_recursion_limit(MAX_DEPTH).build();
    let mut expression = parser?.parse_into_expr()?;
    if let Some(alias) = &expression.alias {
        let error = QueryError::new(QueryErrorKind::Syntax, format!("'{alias}' is more than the condition"));
        return Err(error.hint("join conditions with AND or OR"));
    }
    complexity::check_expression(&expression.expr, MAX_CONDITION_DEPTH)?;
    precedence::correct(&mut expression.expr);
    if expression.expr.visit(&mut SubqueryFinder).is_break() {
        let error = QueryError::new(
            QueryErrorKind::Refused,
            "a condition applies to single events and cannot contain a query",
        );
        return Err(error.hint("run such a query with faultline sql"));
    }
    Ok(expression)
}

/// A visitor that stops at the first subquery.
struct SubqueryFinder;

impl Visitor for SubqueryFinder {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// A visitor that checks a query and its subqueries, because each of them can contain a statement that writes, as in
/// `WITH gone AS (DELETE ...) SELECT ...` and `SELECT ... INTO`.
struct QueryVisitor<'l> {
    limits: &'l Limits,
}

impl Visitor for QueryVisitor<'_> {
    type Break = QueryError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<QueryError> {
        let checked = match query.locks.is_empty() {
            true => self.check_body(&query.body),
            false => Err(QueryError::read_only("locking rows")),
        };
        checked.map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }
}

impl QueryVisitor<'_> {
    fn check_body(&self, body: &SetExpr) -> Result<(), QueryError> {
        match body {
            SetExpr::Select(select) if select.into.is_some() => Err(QueryError::read_only("SELECT INTO")),
            // Planning very many columns takes minutes and cannot be interrupted.
            SetExpr::Select(select) => self.check_columns(select.projection.len()),
            SetExpr::Values(_) | SetExpr::Table(_) => Ok(()),
            // The visitor checks it as a query of its own.
            SetExpr::Query(_) => Ok(()),
            SetExpr::SetOperation { left, right, .. } => {
                self.check_body(left)?;
                self.check_body(right)
            }
            other => Err(QueryError::read_only(&first_words(&other.to_string()))),
        }
    }

    fn check_columns(&self, count: usize) -> Result<(), QueryError> {
        if count <= self.limits.columns { Ok(()) } else { Err(column_limit_error(count, self.limits)) }
    }
}

/// Returns the first words of a statement, which are enough to recognise it.
fn first_words(text: &str) -> String {
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

fn column_limit_error(columns: usize, limits: &Limits) -> QueryError {
    let message = format!("the result would have {columns} columns; at most {} are allowed", limits.columns);
    QueryError::new(QueryErrorKind::Limit(Limit::Columns), message).hint("name the columns you need")
}

/// Rejects a plan that changes anything.
///
/// # Errors
/// Fails when the plan does more than read, or its result has too many columns.
pub fn check_plan(plan: &LogicalPlan, limits: &Limits) -> Result<(), QueryError> {
    let only_reading =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    only_reading.verify_plan(plan).map_err(|error| {
        let error = QueryError::from(error);
        QueryError { kind: QueryErrorKind::Refused, ..error }
    })?;
    let columns = plan.schema().fields().len();
    if columns > limits.columns { Err(column_limit_error(columns, limits)) } else { Ok(()) }
}
