//! Rewrites PostgreSQL expressions into those of the engine. Positions in the text are kept.

use super::values;
use datafusion::sql::sqlparser::ast::{
    self, Array, ArrayElemTypeDef, CastKind, DataType, Expr, FunctionArguments, Ident, SelectItem, SetExpr,
    Value, visit_expressions_mut,
};
use datafusion_pg_catalog::sql::rules::{SqlStatementRewriteRule, StripCallableQualifier};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The keywords that mean the name of the user.
const USER: [&str; 3] = ["current_user", "session_user", "user"];

/// Rewrites a statement of this user.
pub(super) fn rewrite(sql: &mut ast::Statement, user: &str) {
    let ended: ControlFlow<()> = visit_expressions_mut(sql, |expr| {
        rewrite_user_function(expr, user);
        rewrite_array_literal(expr);
        ControlFlow::Continue(())
    });
    debug_assert!(ended.is_continue());
    alias_duplicates(sql);
    // `pg_catalog.version()` is `version()`.
    let nothing = ast::Statement::Discard { object_type: ast::DiscardObject::ALL };
    *sql = StripCallableQualifier.rewrite(std::mem::replace(sql, nothing));
}

/// Writes the name of the user for `current_user` and its synonyms, because the engine does not know the user.
fn rewrite_user_function(expr: &mut Expr, user: &str) {
    if let Expr::Function(function) = expr
        && matches!(function.args, FunctionArguments::None)
        && USER.contains(&function.name.to_string().to_lowercase().as_str())
    {
        *expr = Expr::Value(Value::SingleQuotedString(user.to_owned()).into());
    }
}

/// Writes `ARRAY['a', 'b']` for `'{a,b}'` where that is cast to a list.
fn rewrite_array_literal(expr: &mut Expr) {
    let Expr::Cast { expr, data_type: DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)), .. } = expr
    else {
        return;
    };
    let Expr::Value(value) = expr.as_ref() else { return };
    let Value::SingleQuotedString(text) = &value.value else { return };
    let Some(words) = values::words_of_list(text) else { return };
    let spelled = |word: Option<String>| {
        let word = word.map_or(Value::Null, Value::SingleQuotedString);
        let data_type = item.as_ref().clone();
        Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(Expr::Value(word.into())),
            data_type,
            array: false,
            format: None,
        }
    };
    let elem = words.into_iter().map(spelled).collect();
    **expr = Expr::Array(Array { elem, named: true });
}

/// Gives the second of two equal expressions an alias, because the engine requires distinct column names. The client
/// sees the original names.
fn alias_duplicates(sql: &mut ast::Statement) {
    let ast::Statement::Query(query) = sql else { return };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let mut seen = HashSet::new();
    for (place, item) in select.projection.iter_mut().enumerate() {
        if let SelectItem::UnnamedExpr(expr) = item
            && !seen.insert(expr.to_string())
        {
            let alias = Ident::with_quote('"', format!("column {}", place + 1));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard;
    use crate::limits::Limits;

    fn rewritten(sql: &str) -> String {
        let mut statement = guard::parse_statement(sql, &Limits::DEFAULT).expect("a statement");
        statement.rewrite(|mut sql| {
            rewrite(&mut sql, "ann");
            sql
        });
        statement.as_ref().to_string()
    }

    #[test]
    fn expressions_are_rewritten_for_the_engine() {
        assert_eq!(rewritten("SELECT current_user, user"), "SELECT 'ann', 'ann' AS \"column 2\"");
        assert_eq!(rewritten("SELECT pg_catalog.version()"), "SELECT version()");
        assert_eq!(
            rewritten(r#"SELECT '{a,"b,c",NULL}'::TEXT[]"#),
            "SELECT ARRAY[CAST('a' AS TEXT), CAST('b,c' AS TEXT), CAST(NULL AS TEXT)]::TEXT[]"
        );
    }
}
