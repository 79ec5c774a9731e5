//! The names that PostgreSQL gives to columns without an alias: `count`, not `count(*)`; `?column?`, not `Int64(1)`.
//! Programs look up values by these names.

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, DataType, Expr, Ident, Query, SelectItem, SetExpr};

const NAMELESS: &str = "?column?";

/// Returns the names of the columns, if the statement determines all of them.
pub(super) fn of_statement(statement: &Statement) -> Option<Vec<String>> {
    let Statement::Statement(sql) = statement else { return None };
    let ast::Statement::Query(query) = sql.as_ref() else { return None };
    of_query(query)
}

fn of_query(query: &Query) -> Option<Vec<String>> {
    let mut body = query.body.as_ref();
    loop {
        match body {
            SetExpr::Select(select) => return select.projection.iter().map(of_item).collect(),
            SetExpr::Query(query) => body = &query.body,
            // The first query determines the names.
            SetExpr::SetOperation { left, .. } => body = left,
            _ => return None,
        }
    }
}

fn of_item(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some(of_expr(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(written(alias)),
        _ => None,
    }
}

pub(super) fn of_expr(expr: &Expr) -> String {
    let name = match expr {
        Expr::Identifier(name) => return written(name),
        Expr::CompoundIdentifier(names) => return names.last().map_or_else(nameless, written),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => return of_expr(inner),
        Expr::Function(function) => {
            let name = function.name.0.last().and_then(|part| part.as_ident());
            return name.map_or_else(nameless, written);
        }
        Expr::Cast { expr, data_type, .. } => {
            return Some(of_expr(expr)).filter(|name| name != NAMELESS).unwrap_or_else(|| of_type(data_type));
        }
        Expr::TypedString(typed) => return of_type(&typed.data_type),
        Expr::Subquery(query) => {
            return of_query(query).and_then(|names| names.into_iter().next()).unwrap_or_else(nameless);
        }
        Expr::Case { .. } => "case",
        Expr::Exists { .. } => "exists",
        Expr::Extract { .. } => "extract",
        Expr::Array(_) => "array",
        Expr::Interval(_) => "interval",
        Expr::Substring { .. } => "substring",
        Expr::Trim { .. } => "btrim",
        Expr::Position { .. } => "position",
        Expr::Ceil { .. } => "ceil",
        Expr::Floor { .. } => "floor",
        _ => NAMELESS,
    };
    name.to_owned()
}

/// Names are in lower case unless they are quoted.
fn written(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

fn of_type(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 => "float8",
        DataType::Real | DataType::Float4 => "float4",
        DataType::Boolean | DataType::Bool => "bool",
        DataType::Text => "text",
        DataType::Date => "date",
        DataType::Timestamp(_, ast::TimezoneInfo::None) => "timestamp",
        DataType::Timestamp(..) => "timestamptz",
        other => return other.to_string().to_lowercase(),
    };
    name.to_owned()
}

fn nameless() -> String {
    NAMELESS.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard;
    use crate::limits::Limits;

    fn names(sql: &str) -> Option<Vec<String>> {
        of_statement(guard::parse_statement(sql, &Limits::DEFAULT).expect("a statement").as_ref())
    }

    #[test]
    fn columns_are_called_what_postgresql_calls_them() {
        let called = names(
            "SELECT 1, count(*), e.Service, time::date, '1'::int, 1 + 1 AS \"Two\", (SELECT max(x) FROM y) FROM e",
        );
        let expected = ["?column?", "count", "service", "time", "int4", "Two", "max"];
        assert_eq!(called.expect("names"), expected);
        assert_eq!(names("SELECT a AS b UNION ALL SELECT c"), Some(vec!["b".to_owned()]));
        assert_eq!(names("SELECT * FROM e"), None);
        assert_eq!(names("VALUES (1)"), None);
    }
}
