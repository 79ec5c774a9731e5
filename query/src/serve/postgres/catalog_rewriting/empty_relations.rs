//! Replaces a `SELECT` from a catalog table that never has rows, because its result is always empty.
//!
//! Such a `SELECT` often contains expressions that the engine cannot plan, as in psql's `\d` for policies, publications
//! and statistics. It becomes `SELECT NULL AS name, ... WHERE false`.

use super::super::column_names;
use super::column_name;
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, CastKind, Cte, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, Ident, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    TableWithJoins, Value, Visit, Visitor,
};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The tables of `pg_catalog` that are always empty, because the server has no such objects. The catalog serves them by this
/// list.
pub(in super::super) const EMPTY_TABLES: [&str; 10] = [
    "pg_auth_members",
    "pg_constraint",
    "pg_inherits",
    "pg_policy",
    "pg_publication",
    "pg_publication_namespace",
    "pg_publication_rel",
    "pg_statistic_ext",
    "pg_subscription",
    "pg_trigger",
];

/// The array column of `pg_class` that is always NULL, so that `unnest` of it gives no rows.
const NULL_ARRAY: &str = "reloptions";

/// Decides which `SELECT`s are empty.
#[derive(Debug)]
pub(super) struct EmptyRelations {
    /// The names of the aggregate functions, which return a row even without input rows.
    aggregates: HashSet<String>,
}

impl Default for EmptyRelations {
    fn default() -> Self {
        let functions = all_default_aggregate_functions();
        let names = functions.iter().flat_map(|function| {
            function.aliases().iter().cloned().chain(std::iter::once(function.name().to_owned()))
        });
        Self { aggregates: names.collect() }
    }
}

impl EmptyRelations {
    /// Returns true if names of catalog tables refer to the catalog in this statement. A `WITH` query can take such a
    /// name.
    pub(super) fn apply_to(&self, statement: &Statement) -> bool {
        statement.visit(&mut ShadowFinder).is_continue()
    }

    /// Replaces a `SELECT` if it is empty.
    pub(super) fn rewrite_select(&self, select: &mut Select) {
        let is_empty = select.from.iter().any(is_empty_join)
            && select.having.is_none()
            && matches!(&select.group_by, GroupByExpr::Expressions(expressions, modifiers)
                if expressions.is_empty() && modifiers.is_empty())
            && !select.projection.visit(&mut AggregateFinder::new(&self.aggregates)).is_break();
        let Some(projection) = is_empty.then(|| nulls(&select.projection)).flatten() else { return };
        select.projection = projection;
        select.distinct = None;
        select.from = Vec::new();
        select.selection = Some(Expr::Value(Value::Boolean(false).into()));
    }
}

/// Returns `NULL` under the name of each column, or `None` when the columns are not known.
fn nulls(projection: &[SelectItem]) -> Option<Vec<SelectItem>> {
    let mut names = HashSet::new();
    let mut null = |(index, item): (usize, &SelectItem)| {
        let alias = match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.clone(),
            SelectItem::UnnamedExpr(expr) => Ident::with_quote('"', column_names::of_expr(expr)),
            _ => return None,
        };
        let is_new = names.insert(alias.value.clone());
        let alias = if is_new { alias } else { Ident::with_quote('"', format!("column {}", index + 1)) };
        Some(SelectItem::ExprWithAlias { expr: Expr::Value(Value::Null.into()), alias })
    };
    projection.iter().enumerate().map(&mut null).collect()
}

/// Returns true if a query body was replaced because it is empty.
pub(super) fn is_empty(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => {
            let is_false = |condition: &Expr| matches!(condition, Expr::Value(value) if value.value == Value::Boolean(false));
            select.from.is_empty() && select.selection.as_ref().is_some_and(is_false)
        }
        SetExpr::Query(query) => is_empty(&query.body),
        SetExpr::SetOperation { left, right, .. } => is_empty(left) && is_empty(right),
        _ => false,
    }
}

/// Writes an empty array of texts for `ARRAY(SELECT ...)` where the query is empty.
pub(super) fn rewrite_array(expr: &mut Expr) {
    let Expr::Function(function) = expr else { return };
    let FunctionArguments::Subquery(query) = &function.args else { return };
    if !function.name.to_string().eq_ignore_ascii_case("array") || !is_empty(&query.body) {
        return;
    }
    *expr = Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::Array(Array { elem: Vec::new(), named: true })),
        data_type: DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(DataType::Text), None)),
        array: false,
        format: None,
    };
}

/// Returns true if a join has no rows, because its first table or a table that must match is empty.
fn is_empty_join(join: &TableWithJoins) -> bool {
    use JoinOperator::{CrossJoin, Inner, Join, Left, LeftOuter};
    join.joins.iter().fold(is_empty_table(&join.relation), |is_empty, join| match join.join_operator {
        Join(_) | Inner(_) | CrossJoin(_) => is_empty || is_empty_table(&join.relation),
        Left(_) | LeftOuter(_) => is_empty,
        _ => false,
    })
}

fn is_empty_table(table: &TableFactor) -> bool {
    match table {
        TableFactor::Table { name, args: None, .. } => is_empty_name(name),
        TableFactor::Table { name, args: Some(arguments), .. } => {
            let name = name.0.last().and_then(|part| part.as_ident());
            let is_unnest = name.is_some_and(|name| name.value.eq_ignore_ascii_case("unnest"));
            is_unnest
                && matches!(arguments.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))]
                if is_null_array(array))
        }
        TableFactor::UNNEST { array_exprs, .. } => array_exprs.iter().all(is_null_array),
        TableFactor::NestedJoin { table_with_joins, .. } => is_empty_join(table_with_joins),
        _ => false,
    }
}

fn is_empty_name(name: &ObjectName) -> bool {
    let parts: Vec<_> = name
        .0
        .iter()
        .filter_map(|part| part.as_ident())
        .map(|part| part.value.to_ascii_lowercase())
        .collect();
    match parts.as_slice() {
        [name] => EMPTY_TABLES.contains(&name.as_str()),
        [.., schema, name] => schema == "pg_catalog" && EMPTY_TABLES.contains(&name.as_str()),
        [] => false,
    }
}

fn is_null_array(array: &Expr) -> bool {
    column_name(array).is_some_and(|name| name == NULL_ARRAY)
}

/// A visitor that stops at a `WITH` query that has the name of an empty table.
struct ShadowFinder;

impl Visitor for ShadowFinder {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let shadows =
            |table: &Cte| EMPTY_TABLES.contains(&table.alias.name.value.to_ascii_lowercase().as_str());
        match query.with.as_ref().is_some_and(|with| with.cte_tables.iter().any(shadows)) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// A visitor that stops at an aggregate function that is not in a subquery.
struct AggregateFinder<'n> {
    aggregates: &'n HashSet<String>,
    depth: usize,
}

impl<'n> AggregateFinder<'n> {
    fn new(aggregates: &'n HashSet<String>) -> Self {
        Self { aggregates, depth: 0 }
    }
}

impl Visitor for AggregateFinder<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let name = function.name.0.last().and_then(|part| part.as_ident());
        let is_aggregate =
            name.is_some_and(|name| self.aggregates.contains(&name.value.to_ascii_lowercase()));
        if self.depth == 0 && is_aggregate { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
