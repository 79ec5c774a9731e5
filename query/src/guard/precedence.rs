//! Corrects the precedence of `IS DISTINCT FROM`.
//!
//! The parser reads everything that follows as its right operand: `a IS DISTINCT FROM b AND c` becomes
//! `a IS DISTINCT FROM (b AND c)`. PostgreSQL and the standard read `(a IS DISTINCT FROM b) AND c`. The parser marks
//! parentheses that were written as [`Expr::Nested`], so a bare `AND` or `OR` below an operator that binds more tightly
//! is always its mistake.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// Corrects all expressions of a statement, or of an expression.
pub(super) fn correct(parsed: &mut impl VisitMut) {
    let ended = parsed.visit(&mut Corrector);
    debug_assert!(ended.is_continue());
}

/// A visitor that corrects expressions from the inside out.
struct Corrector;

impl VisitorMut for Corrector {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some((operand, tightness)) = last_operand(expr)
            && is_looser(operand, tightness)
        {
            let mut outer = take(operand);
            let mut first = &mut outer;
            while is_looser(first, tightness) {
                let Expr::BinaryOp { left, .. } = first else { break };
                first = left;
            }
            let inner = take(first);
            if let Some((operand, _)) = last_operand(expr) {
                *operand = inner;
            }
            *first = take(expr);
            *expr = outer;
        }
        ControlFlow::Continue(())
    }
}

/// How tightly an operator binds its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tightness {
    Or,
    And,
    Not,
    Is,
}

/// Returns the last operand of an operator that may have taken too much.
fn last_operand(expr: &mut Expr) -> Option<(&mut Expr, Tightness)> {
    match expr {
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => Some((right, Tightness::Is)),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => Some((expr, Tightness::Not)),
        Expr::BinaryOp { op: BinaryOperator::And, right, .. } => Some((right, Tightness::And)),
        _ => None,
    }
}

fn is_looser(expr: &Expr, tightness: Tightness) -> bool {
    let own = match expr {
        Expr::BinaryOp { op: BinaryOperator::And, .. } => Tightness::And,
        Expr::BinaryOp { op: BinaryOperator::Or, .. } => Tightness::Or,
        _ => return false,
    };
    own < tightness
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

#[cfg(test)]
mod tests {
    use super::super::{parse_condition, parse_statement};
    use crate::limits::Limits;

    #[test]
    fn conditions_after_is_distinct_from_are_conditions_of_their_own() {
        for (condition, meant) in [
            ("a IS DISTINCT FROM 'x' AND b", "(a IS DISTINCT FROM 'x') AND b"),
            ("b AND a IS DISTINCT FROM 'x' OR c", "(b AND (a IS DISTINCT FROM 'x')) OR c"),
            ("b AND a IS NOT DISTINCT FROM 1 AND c OR d", "((b AND (a IS NOT DISTINCT FROM 1)) AND c) OR d"),
            ("NOT a IS DISTINCT FROM 'x' AND b", "(NOT (a IS DISTINCT FROM 'x')) AND b"),
            ("b OR a IS DISTINCT FROM c + 1 AND d", "b OR ((a IS DISTINCT FROM (c + 1)) AND d)"),
            (
                "a IS DISTINCT FROM b AND c IS DISTINCT FROM d OR e",
                "((a IS DISTINCT FROM b) AND (c IS DISTINCT FROM d)) OR e",
            ),
        ] {
            assert_eq!(grouping(condition), grouping(meant), "{condition}");
        }
        let whole = "SELECT (a IS DISTINCT FROM (b AND c)) FROM t";
        let parsed = parse_statement(whole, &Limits::DEFAULT).expect("a statement");
        assert_eq!(parsed.as_ref().to_string(), whole);
    }

    /// Returns the tree of a condition as text, in which each operator has parentheses.
    fn grouping(condition: &str) -> String {
        use datafusion::sql::sqlparser::ast::Expr;
        fn tree(expr: &Expr) -> String {
            match expr {
                Expr::Nested(inner) => tree(inner),
                Expr::BinaryOp { left, op, right } => {
                    // The grouping of equal operators does not matter.
                    let (left, right) = (tree(left), tree(right));
                    let open = format!("{op}[");
                    let strip =
                        |side: String| match side.strip_prefix(&open).and_then(|rest| rest.strip_suffix(']'))
                        {
                            Some(rest) => rest.to_owned(),
                            None => side,
                        };
                    format!("{open}{}, {}]", strip(left), strip(right))
                }
                Expr::UnaryOp { op, expr } => format!("{op}[{}]", tree(expr)),
                Expr::IsDistinctFrom(left, right) => format!("differs[{}, {}]", tree(left), tree(right)),
                Expr::IsNotDistinctFrom(left, right) => format!("equals[{}, {}]", tree(left), tree(right)),
                other => other.to_string(),
            }
        }
        tree(&parse_condition(condition).expect("a condition").expr)
    }
}
