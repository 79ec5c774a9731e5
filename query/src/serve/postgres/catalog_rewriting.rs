//! Rewrites parsed catalog queries into SQL that the engine can plan.
//!
//! PostgreSQL clients query the catalog with constructs that the engine does not have. The rules here work on the syntax
//! tree and on what is known about the catalog; none of them looks at the text of a client's query. The remaining rules,
//! such as those for casts to `regclass`, are those of `datafusion-pg-catalog`.

mod array_loops;
mod empty_relations;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Ident, ObjectName, Query, Select, SetExpr, Statement, Value,
    Visit, VisitMut, Visitor, VisitorMut,
};
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
pub(super) use empty_relations::EMPTY_TABLES;
use empty_relations::EmptyRelations;
use std::ops::ControlFlow;

/// The columns that hold the number of a schema.
const SCHEMA_COLUMNS: [&str; 3] = ["relnamespace", "typnamespace", "pronamespace"];

/// The rules for catalog queries.
#[derive(Debug, Default)]
pub(super) struct CatalogRewriter {
    empty_relations: EmptyRelations,
    /// The rules of `datafusion-pg-catalog`. Its parser is not used.
    rules: PostgresCompatibilityParser,
}

impl CatalogRewriter {
    /// Rewrites a statement if it refers to the catalog. Other statements stay as they are.
    pub(super) fn rewrite(&self, mut statement: Statement) -> Statement {
        if Visit::visit(&statement, &mut CatalogFinder).is_continue() {
            return statement;
        }
        let applies_empty_relations = self.empty_relations.apply_to(&statement);
        let mut visitor =
            RuleVisitor { empty_relations: applies_empty_relations.then_some(&self.empty_relations) };
        let ended = VisitMut::visit(&mut statement, &mut visitor);
        debug_assert!(ended.is_continue());
        self.rules.rewrite(statement)
    }
}

/// A visitor that stops at the first reference to the catalog.
struct CatalogFinder;

impl CatalogFinder {
    fn check_name(name: &ObjectName) -> ControlFlow<()> {
        let is_catalog =
            name.0.iter().filter_map(|part| part.as_ident()).any(|part| is_catalog_name(&part.value));
        if is_catalog { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn is_catalog_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("pg_") || name == "information_schema"
}

impl Visitor for CatalogFinder {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        Self::check_name(relation)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => Self::check_name(&function.name),
            Expr::Cast { data_type, .. } => match data_type {
                DataType::Regclass => ControlFlow::Break(()),
                DataType::Custom(name, _) if name.to_string().to_ascii_lowercase().starts_with("reg") => {
                    ControlFlow::Break(())
                }
                DataType::Custom(name, _) => Self::check_name(name),
                _ => ControlFlow::Continue(()),
            },
            // `a OPERATOR(pg_catalog.~) b`
            Expr::BinaryOp { op: BinaryOperator::PGCustomBinaryOperator(parts), .. }
                if parts.iter().any(|part| is_catalog_name(part)) =>
            {
                ControlFlow::Break(())
            }
            Expr::Collate { collation, .. } => Self::check_name(collation),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// A visitor that applies the rules from the inside out.
struct RuleVisitor<'r> {
    empty_relations: Option<&'r EmptyRelations>,
}

impl VisitorMut for RuleVisitor<'_> {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if let Some(empty_relations) = self.empty_relations {
            empty_relations.rewrite_select(select);
        }
        if let Some(condition) = &mut select.selection {
            scalar_conditions_to_exists(condition);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if empty_relations::is_empty(&query.body) {
            // The expressions may refer to relations that are gone.
            query.order_by = None;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        empty_relations::rewrite_array(expr);
        array_loops::rewrite(expr);
        schema_name_to_number(expr);
        ControlFlow::Continue(())
    }
}

/// Writes `relnamespace = 'public'::regnamespace` for `relnamespace = 'public'`, as PostgreSQL coerces it.
fn schema_name_to_number(expr: &mut Expr) {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right } = expr else { return };
    let (column, name) = (&**left, &mut **right);
    let is_name = matches!(name, Expr::Value(value)
        if matches!(&value.value, Value::SingleQuotedString(name) if name.parse::<u32>().is_err()));
    if is_name && column_name(column).is_some_and(|column| SCHEMA_COLUMNS.contains(&column.as_str())) {
        let inner = Box::new(std::mem::replace(name, Expr::Value(Value::Null.into())));
        let data_type = DataType::Custom(ObjectName::from(vec![Ident::new("regnamespace")]), Vec::new());
        *name =
            Expr::Cast { kind: CastKind::DoubleColon, expr: inner, data_type, array: false, format: None };
    }
}

/// Returns the name of a column without its table, in lower case.
fn column_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(name.value.to_ascii_lowercase()),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// Writes `EXISTS (SELECT e ... WHERE w AND e)` for `(SELECT e ... WHERE w)` where the subquery is a whole condition,
/// or an operand of `AND` or `OR`. The two differ only in whether they are false or NULL, which a condition treats
/// alike.
fn scalar_conditions_to_exists(condition: &mut Expr) {
    match condition {
        Expr::Nested(inner) => scalar_conditions_to_exists(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            scalar_conditions_to_exists(left);
            scalar_conditions_to_exists(right);
        }
        Expr::Subquery(query) => {
            let SetExpr::Select(select) = query.body.as_mut() else { return };
            let [datafusion::sql::sqlparser::ast::SelectItem::UnnamedExpr(value)] =
                select.projection.as_slice()
            else {
                return;
            };
            let value = value.clone();
            select.selection = Some(match select.selection.take() {
                Some(selection) => Expr::BinaryOp {
                    left: Box::new(Expr::Nested(Box::new(selection))),
                    op: BinaryOperator::And,
                    right: Box::new(Expr::Nested(Box::new(value))),
                },
                None => value,
            });
            *condition = Expr::Exists { subquery: query.clone(), negated: false };
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
