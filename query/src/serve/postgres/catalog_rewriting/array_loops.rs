//! Rewrites `IN` with a loop over the elements of a constant array, with which Grafana splits the search path:
//!
//! ```sql
//! x IN (SELECT f(s[i]) FROM generate_series(array_lower(a, 1), array_upper(a, 1)) AS i, a AS s)
//! ```
//!
//! It becomes `x IN (f('first'), f('second'))`, because the engine has no subqueries among the columns of a query.

use super::super::settings;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, SelectItem, SetExpr, Subscript,
    TableFactor, TableWithJoins, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Rewrites an expression of this form. Other expressions stay as they are.
pub(super) fn rewrite(expr: &mut Expr) {
    let Expr::InSubquery { expr: tested, subquery, negated } = expr else { return };
    if subquery.with.is_some() || subquery.limit_clause.is_some() || subquery.fetch.is_some() {
        return;
    }
    let SetExpr::Select(select) = subquery.body.as_ref() else { return };
    let ([SelectItem::UnnamedExpr(value)], [counter, array], None) =
        (select.projection.as_slice(), select.from.as_slice(), &select.selection)
    else {
        return;
    };
    let Some((index, elements, name)) = array_loop(counter, array) else { return };
    let instances = elements.iter().map(|element| instance(value, &name, &index, element));
    let Some(list) = instances.collect::<Option<Vec<_>>>().filter(|list| !list.is_empty()) else { return };
    *expr = Expr::InList { expr: tested.clone(), list, negated: *negated };
}

/// Returns the name of the index, the elements, and the name of the array, if two tables form such a loop.
fn array_loop(counter: &TableWithJoins, array: &TableWithJoins) -> Option<(String, Vec<String>, String)> {
    let (function, bounds, index) = table_function(counter)?;
    let (array_function, arguments, name) = table_function(array)?;
    let [lower, upper] = bounds.as_slice() else { return None };
    let loops = function == "generate_series"
        && is_bound(lower, "array_lower", &array_function, &arguments)
        && is_bound(upper, "array_upper", &array_function, &arguments);
    let elements = constant_array(&array_function, &arguments).filter(|_| loops)?;
    Some((index, elements, name))
}

/// Returns the name, the arguments and the alias of a table function, in lower case.
fn table_function(table: &TableWithJoins) -> Option<(String, Vec<Expr>, String)> {
    let TableFactor::Table { name, alias: Some(alias), args: Some(arguments), .. } = &table.relation else {
        return None;
    };
    let arguments = arguments.args.iter().map(expression).collect::<Option<_>>()?;
    let name = name.0.last()?.as_ident()?.value.to_ascii_lowercase();
    let is_plain = table.joins.is_empty() && alias.columns.is_empty();
    is_plain.then(|| (name, arguments, alias.name.value.to_ascii_lowercase()))
}

fn expression(argument: &FunctionArg) -> Option<Expr> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else { return None };
    Some(expr.clone())
}

/// Returns the name and the arguments of a function call.
fn call(expr: &Expr) -> Option<(String, Vec<Expr>)> {
    let Expr::Function(function) = expr else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let name = function.name.0.last()?.as_ident()?.value.to_ascii_lowercase();
    Some((name, list.args.iter().map(expression).collect::<Option<_>>()?))
}

/// Returns true if an expression is `bound(array, 1)`.
fn is_bound(expr: &Expr, bound: &str, array_function: &str, array_arguments: &[Expr]) -> bool {
    let Some((name, arguments)) = call(expr) else { return false };
    let [array, dimension] = arguments.as_slice() else { return false };
    let Some((function, arguments)) = call(array) else { return false };
    let same_arguments = arguments.len() == array_arguments.len()
        && arguments.iter().zip(array_arguments).all(|(one, other)| one.to_string() == other.to_string());
    name == bound && dimension.to_string() == "1" && function == array_function && same_arguments
}

/// Returns the elements of `string_to_array(text, separator)` if both arguments are constant.
fn constant_array(function: &str, arguments: &[Expr]) -> Option<Vec<String>> {
    let [text, separator] = arguments else { return None };
    let (text, separator) = (constant_text(text)?, constant_text(separator)?);
    let is_array = function == "string_to_array" && !separator.is_empty() && !text.is_empty();
    is_array.then(|| text.split(&separator).map(str::to_owned).collect())
}

/// Returns the text of a literal, or the value of a setting.
fn constant_text(expr: &Expr) -> Option<String> {
    if let Expr::Value(value) = expr {
        let Value::SingleQuotedString(text) = &value.value else { return None };
        return Some(text.clone());
    }
    let (name, arguments) = call(expr)?;
    let [setting] = arguments.as_slice() else { return None };
    let setting = constant_text(setting).filter(|_| name == "current_setting")?;
    settings::default(&setting).map(str::to_owned)
}

/// Returns the value for one element, or `None` if it refers to the loop in another way than by `array[index]`.
fn instance(value: &Expr, array: &str, index: &str, element: &str) -> Option<Expr> {
    let mut value = value.clone();
    let ended = VisitMut::visit(&mut value, &mut ElementWriter { array, index, element });
    debug_assert!(ended.is_continue());
    let refers = Visit::visit(&value, &mut ReferenceFinder { array, index }).is_break();
    (!refers).then_some(value)
}

fn is_name(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Identifier(identifier) if identifier.value.eq_ignore_ascii_case(name))
}

/// A visitor that replaces `array[index]` with the element.
struct ElementWriter<'l> {
    array: &'l str,
    index: &'l str,
    element: &'l str,
}

impl VisitorMut for ElementWriter<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundFieldAccess { root, access_chain } = expr
            && is_name(root, self.array)
            && let [AccessExpr::Subscript(Subscript::Index { index })] = access_chain.as_slice()
            && is_name(index, self.index)
        {
            *expr = Expr::Value(Value::SingleQuotedString(self.element.to_owned()).into());
        }
        ControlFlow::Continue(())
    }
}

/// A visitor that stops at the name of the array or of the index.
struct ReferenceFinder<'l> {
    array: &'l str,
    index: &'l str,
}

impl Visitor for ReferenceFinder<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let refers = |name: &str| {
            is_name(expr, name)
                || matches!(expr, Expr::CompoundIdentifier(names)
                    if names.first().is_some_and(|first| first.value.eq_ignore_ascii_case(name)))
        };
        if refers(self.array) || refers(self.index) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
