//! Questions in the words of PostgreSQL, put into those of the engine. Places in the text are kept.

use super::values;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Array, ArrayElemTypeDef, CastKind, DataType, Expr, FunctionArguments, Ident, SelectItem, SetExpr,
    Value, visit_expressions_mut,
};
use datafusion_pg_catalog::sql::rules::{SqlStatementRewriteRule, StripCallableQualifier};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The words for who asks.
const USER: [&str; 3] = ["current_user", "session_user", "user"];

/// Rewrites a question of this user's.
pub(super) fn rewrite(statement: &mut Statement, user: &str) {
    let Statement::Statement(sql) = statement else { return };
    let ended: ControlFlow<()> = visit_expressions_mut(sql.as_mut(), |expr| {
        name_user(expr, user);
        spell_list(expr);
        ControlFlow::Continue(())
    });
    debug_assert!(ended.is_continue());
    tell_apart(sql);
    // `pg_catalog.version()` is `version()`.
    let nothing = ast::Statement::Discard { object_type: ast::DiscardObject::ALL };
    **sql = StripCallableQualifier.rewrite(std::mem::replace(sql.as_mut(), nothing));
}

/// Writes the name of the user for `current_user` and its kin: the engine does not know who asks.
fn name_user(expr: &mut Expr, user: &str) {
    if let Expr::Function(function) = expr
        && matches!(function.args, FunctionArguments::None)
        && USER.contains(&function.name.to_string().to_lowercase().as_str())
    {
        *expr = Expr::Value(Value::SingleQuotedString(user.to_owned()).into());
    }
}

/// Writes `ARRAY['a', 'b']` for `'{a,b}'` where that is cast to a list.
fn spell_list(expr: &mut Expr) {
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

/// Gives an expression that is asked for twice a second name: the engine wants columns to have names of their own. The
/// client sees the names that were read before.
fn tell_apart(sql: &mut ast::Statement) {
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
        let mut statement = guard::statement(sql, &Limits::DEFAULT).expect("a statement");
        rewrite(&mut statement, "ann");
        statement.to_string()
    }

    #[test]
    fn questions_are_put_into_the_engines_words() {
        assert_eq!(rewritten("SELECT current_user, user"), "SELECT 'ann', 'ann' AS \"column 2\"");
        assert_eq!(rewritten("SELECT pg_catalog.version()"), "SELECT version()");
        assert_eq!(
            rewritten(r#"SELECT '{a,"b,c",NULL}'::TEXT[]"#),
            "SELECT ARRAY[CAST('a' AS TEXT), CAST('b,c' AS TEXT), CAST(NULL AS TEXT)]::TEXT[]"
        );
    }
}
