//! Limits on the shape of a statement, so that parsing, planning, optimising and dropping it fit on a stack.
//!
//! There are two checks. [`check_tokens`] runs before the parser. It holds for every shape that a grammar can have,
//! because a tree cannot be deeper than the number of tokens that are open at one position. [`check`] runs after the
//! parser and is exact; it is the one that users usually run into.

use crate::error::{Limit, QueryError, QueryErrorKind};
use datafusion::sql::sqlparser::ast::{
    self, Expr, GroupByExpr, ObjectName, Query, Select, TableFactor, Visit, Visitor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// The maximum number of `EXPLAIN`s in a statement. The parser recurses for each.
const MAX_EXPLAINS: usize = 8;
/// The maximum number of tokens since the last comma, added up over all open parentheses. Nothing can nest deeper than
/// that.
const MAX_OPEN_TOKENS: usize = 4_096;
/// The maximum nesting depth of expressions. A chain such as `a OR b OR c` nests once for each operator.
const MAX_DEPTH: usize = 400;
/// The maximum number of expressions in a statement, including the values of lists.
const MAX_EXPRESSIONS: usize = 20_000;
/// The maximum number of tables and `SELECT`s. A common table expression counts each time it is named.
const MAX_RELATIONS: usize = 512;
/// The maximum number of column sets by which rows are grouped: `CUBE` of n columns has 2^n.
const MAX_GROUPING_SETS: usize = 256;

/// Rejects a text that could become a tree that is too deep to be dropped.
pub(super) fn check_tokens(sql: &str) -> Result<(), QueryError> {
    // A token has at least one byte.
    if sql.len() <= MAX_OPEN_TOKENS {
        return Ok(());
    }
    // The parser reports text that is not a token.
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize() else { return Ok(()) };
    let mut open = vec![0_usize];
    let (mut sum, mut commas, mut explains) = (0_usize, 0_usize, 0_usize);
    for token in tokens {
        commas += usize::from(token == Token::Comma);
        explains += usize::from(matches!(&token, Token::Word(word) if word.keyword == Keyword::EXPLAIN));
        if commas > MAX_EXPRESSIONS {
            return Err(too_many_expressions());
        }
        if explains > MAX_EXPLAINS {
            return Err(too_complex(format!(
                "EXPLAIN stands more than {MAX_EXPLAINS} times in the statement"
            )));
        }
        match token {
            Token::Whitespace(_) => continue,
            Token::Comma | Token::SemiColon => sum -= open.last_mut().map(std::mem::take).unwrap_or_default(),
            Token::LParen | Token::LBracket | Token::LBrace => open.push(0),
            Token::RParen | Token::RBracket | Token::RBrace if open.len() > 1 => {
                sum -= open.pop().unwrap_or_default();
            }
            _ => {}
        }
        if let Some(last) = open.last_mut() {
            *last += 1;
            sum += 1;
        }
        if sum > MAX_OPEN_TOKENS {
            return Err(too_complex(format!("more than {MAX_OPEN_TOKENS} words and signs stand in a row")));
        }
    }
    Ok(())
}

/// Rejects a statement that is too deep, too wide, or would read too many tables.
pub(super) fn check(statement: &ast::Statement) -> Result<(), QueryError> {
    check_visited(statement)
}

/// Rejects an expression that is too deep or too wide.
pub(super) fn check_expression(expression: &Expr, depth: usize) -> Result<(), QueryError> {
    let mut visitor = ComplexityVisitor { max_depth: depth, ..ComplexityVisitor::default() };
    into_result(expression.visit(&mut visitor))
}

fn check_visited(visited: &impl Visit) -> Result<(), QueryError> {
    into_result(visited.visit(&mut ComplexityVisitor::default()))
}

fn into_result(flow: ControlFlow<QueryError>) -> Result<(), QueryError> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

fn too_complex(message: String) -> QueryError {
    QueryError::new(QueryErrorKind::Limit(Limit::Statement), message)
        .hint("use IN or a join instead of long chains, or ask in several statements")
}

fn too_many_expressions() -> QueryError {
    too_complex(format!("the statement has more than {MAX_EXPRESSIONS} expressions"))
}

/// A visitor that stops at the first exceeded limit.
struct ComplexityVisitor {
    max_depth: usize,
    depth: usize,
    expressions: usize,
    queries: Vec<QueryScope>,
}

/// A query that encloses the node that is being visited.
#[derive(Default)]
struct QueryScope {
    /// The cost of each of its common table expressions, by name.
    cte_costs: HashMap<String, usize>,
    /// The names of the common table expressions that were not visited yet, by the address of their query.
    pending_ctes: HashMap<usize, String>,
    /// The number of tables and `SELECT`s.
    relations: usize,
}

impl Default for ComplexityVisitor {
    fn default() -> Self {
        Self { max_depth: MAX_DEPTH, depth: 0, expressions: 0, queries: vec![QueryScope::default()] }
    }
}

impl ComplexityVisitor {
    fn enter(&mut self) -> ControlFlow<QueryError> {
        self.depth += 1;
        match self.depth > self.max_depth {
            true => {
                let max = self.max_depth;
                ControlFlow::Break(too_complex(format!("the statement nests more than {max} levels deep")))
            }
            false => ControlFlow::Continue(()),
        }
    }

    fn add_relations(&mut self, relations: usize) -> ControlFlow<QueryError> {
        let Some(scope) = self.queries.last_mut() else { return ControlFlow::Continue(()) };
        scope.relations = scope.relations.saturating_add(relations);
        if scope.relations > MAX_RELATIONS {
            let message = format!("the statement reads more than {MAX_RELATIONS} tables and selections");
            return ControlFlow::Break(too_complex(message));
        }
        ControlFlow::Continue(())
    }

    /// Returns the cost of a table: that of the common table expression with that name, or 1.
    fn cost(&self, relation: &ObjectName) -> usize {
        let name = relation.to_string().to_lowercase();
        self.queries.iter().rev().find_map(|scope| scope.cte_costs.get(&name)).copied().unwrap_or(1)
    }
}

impl Visitor for ComplexityVisitor {
    type Break = QueryError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<QueryError> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        let pending_ctes =
            tables.map(|table| (address(&table.query), table.alias.name.to_string().to_lowercase()));
        self.queries.push(QueryScope { pending_ctes: pending_ctes.collect(), ..QueryScope::default() });
        self.enter()
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<QueryError> {
        self.depth -= 1;
        let Some(ended) = self.queries.pop() else { return ControlFlow::Continue(()) };
        let Some(parent) = self.queries.last_mut() else { return ControlFlow::Continue(()) };
        match parent.pending_ctes.remove(&address(query)) {
            Some(name) => {
                parent.cte_costs.insert(name, ended.relations.max(1));
                ControlFlow::Continue(())
            }
            None => self.add_relations(ended.relations),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<QueryError> {
        let sets = grouping_sets(&select.group_by);
        if sets > MAX_GROUPING_SETS {
            let message = format!("rows are grouped in more than {MAX_GROUPING_SETS} ways");
            let error = QueryError::new(QueryErrorKind::Limit(Limit::Statement), message);
            return ControlFlow::Break(error.hint("name the GROUPING SETS you need instead of CUBE"));
        }
        self.add_relations(1)
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<QueryError> {
        self.add_relations(self.cost(relation))
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<QueryError> {
        self.enter()
    }

    fn post_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<QueryError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<QueryError> {
        self.expressions += 1;
        if self.expressions > MAX_EXPRESSIONS {
            return ControlFlow::Break(too_many_expressions());
        }
        self.enter()
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<QueryError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Returns the address of a query, which distinguishes it from the other queries of a statement.
fn address(query: &Query) -> usize {
    std::ptr::from_ref(query).addr()
}

/// Returns the number of grouping sets.
fn grouping_sets(group_by: &GroupByExpr) -> usize {
    let GroupByExpr::Expressions(expressions, modifiers) = group_by else { return 1 };
    let power = |columns: usize| 2_usize.saturating_pow(u32::try_from(columns).unwrap_or(u32::MAX));
    let of = |expression: &Expr| match expression {
        Expr::Cube(columns) => power(columns.len()),
        Expr::Rollup(columns) => columns.len() + 1,
        Expr::GroupingSets(sets) => sets.len(),
        _ => 1,
    };
    let product =
        expressions.iter().fold(1_usize, |product, expression| product.saturating_mul(of(expression)));
    if modifiers.is_empty() { product } else { product.max(power(expressions.len())) }
}

#[cfg(test)]
mod tests;
