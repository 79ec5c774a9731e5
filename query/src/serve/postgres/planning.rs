//! Plans the statements of clients, and infers the types of their parameters.

use super::command::QueryStatement;
use super::parser::StatementParser;
use super::values::{self, Parameter};
use crate::engine::{DescribedStatement, EngineSession, PreparedStatement};
use crate::error::QueryError;
use crate::guard::ReadOnlyStatement;
use crate::statement::Description;
use arrow::datatypes::DataType;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType as SqlType, ExactNumberInfo, Expr, TimezoneInfo, Value,
    visit_expressions_mut,
};
use pgwire::api::Type;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The maximum number of parameters: the protocol has two bytes for it.
const MAX_PARAMETERS: usize = u16::MAX as usize;

/// Plans one statement of a client's text. It needs a deep stack.
pub(crate) async fn resolve(
    session: &EngineSession,
    parser: &StatementParser,
    sql: &str,
    user: &str,
    index: usize,
    types: &[u32],
) -> Result<DescribedStatement, QueryError> {
    let QueryStatement { mut statement, names } = parser.parse(sql, user, index, session.limits())?;
    let mut declared: Vec<_> = types.iter().map(|oid| Type::from_oid(*oid).filter(is_known)).collect();
    declare_array_parameters(&mut statement, &mut declared);
    let (prepared, parameters) = inferred(session, &statement, &declared).await?;
    let schema = Arc::clone(prepared.schema());
    let is_explain = matches!(statement.as_ref().as_ref(), Statement::Explain(_));
    let parameters = parameters.into_iter().map(Parameter::described).collect();
    Ok(DescribedStatement { prepared, description: Description { schema, names, parameters, is_explain } })
}

/// Declares the parameter of `= ANY($1)` as an array: of texts, if the client declares nothing.
fn declare_array_parameters(statement: &mut ReadOnlyStatement, declared: &mut Vec<Option<Type>>) {
    each_expression(statement, |expr| {
        let Expr::AnyOp { right, .. } = expr else { return };
        let Some(place) = number_of(right).map(|number| number - 1).filter(|place| *place < MAX_PARAMETERS)
        else {
            return;
        };
        declared.resize(declared.len().max(place + 1), None);
        let declared = declared[place].get_or_insert(Type::TEXT_ARRAY);
        if let Some(data_type) = sql_type(declared) {
            cast(right, data_type);
        }
    });
}

/// Returns true if a declared type is known.
fn is_known(declared: &Type) -> bool {
    *declared != Type::UNKNOWN
}

async fn inferred(
    session: &EngineSession,
    statement: &ReadOnlyStatement,
    declared: &[Option<Type>],
) -> Result<(PreparedStatement, Vec<Parameter>), QueryError> {
    let first = bare(session, statement.clone(), declared).await;
    let sql_type = |place: usize| declared.get(place).cloned().flatten().as_ref().and_then(sql_type);
    let casts: Vec<_> = match &first {
        Ok((_, parameters)) => parameters
            .iter()
            .enumerate()
            .map(|(place, parameter)| {
                let is_open = parameter.inferred.is_none() || loses(parameter);
                is_open.then(|| sql_type(place).unwrap_or(SqlType::Text))
            })
            .collect(),
        Err(_) => (0..declared.len()).map(sql_type).collect(),
    };
    if casts.iter().all(Option::is_none) {
        return first;
    }
    let mut cast = statement.clone();
    cast_parameters(&mut cast, &casts);
    let second = bare(session, cast, declared).await;
    // The first error is about the statement as it was written.
    if second.is_err() && first.is_err() { first } else { second }
}

/// Returns true if the inferred type of a parameter cannot hold all values of its declared type.
fn loses(parameter: &Parameter) -> bool {
    let declared = parameter.declared.as_ref().and_then(values::natural);
    let (Some(declared), Some(inferred)) = (declared, &parameter.inferred) else { return false };
    let is_text =
        |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8);
    let has_room = if declared.is_integer() && inferred.is_integer() {
        declared.primitive_width() <= inferred.primitive_width()
    } else if declared.is_numeric() && inferred.is_floating() {
        true
    } else if let (DataType::Date32 | DataType::Timestamp(..), DataType::Timestamp(..)) =
        (&declared, inferred)
    {
        true
    } else {
        is_text(&declared)
            || is_text(inferred)
            || std::mem::discriminant(&declared) == std::mem::discriminant(inferred)
    };
    !has_room
}

async fn bare(
    session: &EngineSession,
    statement: ReadOnlyStatement,
    declared: &[Option<Type>],
) -> Result<(PreparedStatement, Vec<Parameter>), QueryError> {
    let prepared = session.plan(statement).await?;
    let inferred = prepared.parameters()?;
    let parameter = |(place, inferred): (usize, &Option<DataType>)| Parameter {
        declared: declared.get(place).cloned().flatten(),
        inferred: inferred.clone(),
    };
    let parameters = inferred.iter().enumerate().map(parameter).collect();
    Ok((prepared, parameters))
}

/// Writes `CAST($1 AS type)` for `$1`.
fn cast_parameters(statement: &mut ReadOnlyStatement, casts: &[Option<SqlType>]) {
    each_expression(statement, |expr| {
        if let Some(data_type) = number_of(expr).and_then(|number| casts.get(number - 1)?.clone()) {
            cast(expr, data_type);
        }
    });
}

fn cast(expr: &mut Expr, data_type: SqlType) {
    let inner = Box::new(std::mem::replace(expr, Expr::Value(Value::Null.into())));
    *expr = Expr::Cast { kind: CastKind::Cast, expr: inner, data_type, array: false, format: None };
}

fn each_expression(statement: &mut ReadOnlyStatement, mut change: impl FnMut(&mut Expr)) {
    statement.rewrite(|mut sql| {
        let ended: ControlFlow<()> = visit_expressions_mut(&mut sql, |expr| {
            change(expr);
            ControlFlow::Continue(())
        });
        debug_assert!(ended.is_continue());
        sql
    });
}

/// Returns the number of a parameter, from 1.
fn number_of(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Placeholder(name) = &value.value else { return None };
    name.strip_prefix('$')?.parse().ok().filter(|number| *number > 0)
}

/// Returns the SQL type for a type of the protocol.
fn sql_type(wire: &Type) -> Option<SqlType> {
    Some(match *wire {
        Type::BOOL => SqlType::Boolean,
        Type::INT2 => SqlType::SmallInt(None),
        Type::INT4 => SqlType::Integer(None),
        Type::INT8 | Type::OID => SqlType::BigInt(None),
        Type::FLOAT4 => SqlType::Real,
        Type::FLOAT8 | Type::NUMERIC => SqlType::Double(ExactNumberInfo::None),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON | Type::JSONB | Type::UUID => {
            SqlType::Text
        }
        Type::BYTEA => SqlType::Bytea,
        Type::INTERVAL => SqlType::Interval { fields: None, precision: None },
        Type::DATE => SqlType::Date,
        Type::TIMESTAMP => SqlType::Timestamp(Some(6), TimezoneInfo::None),
        Type::TIMESTAMPTZ => SqlType::Timestamp(Some(6), TimezoneInfo::WithTimeZone),
        Type::TEXT_ARRAY | Type::VARCHAR_ARRAY => array_of(SqlType::Text),
        Type::BOOL_ARRAY => array_of(SqlType::Boolean),
        Type::INT2_ARRAY => array_of(SqlType::SmallInt(None)),
        Type::INT4_ARRAY => array_of(SqlType::Integer(None)),
        Type::INT8_ARRAY => array_of(SqlType::BigInt(None)),
        Type::FLOAT8_ARRAY | Type::NUMERIC_ARRAY => array_of(SqlType::Double(ExactNumberInfo::None)),
        _ => return None,
    })
}

fn array_of(item: SqlType) -> SqlType {
    SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(item), None))
}
