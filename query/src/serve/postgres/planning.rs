//! Statements with parameters: what they are of, and what they become.

use super::columns::Columns;
use super::command::Question;
use super::failure::Failure;
use super::values::Parameter;
use crate::engine::{Prepared, Session};
use crate::error::QueryError;
use arrow::datatypes::DataType;
use bytes::Bytes;
use datafusion::common::ParamValues;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType as SqlType, ExactNumberInfo, Expr, TimezoneInfo, Value,
    visit_expressions_mut,
};
use pgwire::api::Type;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A question, planned.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// The text that errors point into.
    pub(super) sql: Arc<str>,
    pub(super) prepared: Prepared,
    /// What the columns are called, if not as the engine calls them.
    names: Option<Vec<String>>,
    pub(super) parameters: Vec<Parameter>,
    /// What the answer is called.
    pub(super) tag: &'static str,
}

/// Plans a question. `declared` are the types of its parameters, as far as the client says.
pub(super) async fn plan(
    session: &Session,
    question: Question,
    sql: &Arc<str>,
    declared: &[u32],
) -> Result<Asked, Failure> {
    let declared: Vec<_> = declared.iter().map(|oid| Type::from_oid(*oid).filter(is_said)).collect();
    let Question { statement, names } = question;
    let planned = inferred(session, &statement, &declared).await;
    let (prepared, parameters) = planned.map_err(|error| Failure::of(error, sql))?;
    let tag = if matches!(*statement, Statement::Explain(_)) { "EXPLAIN" } else { "SELECT" };
    Ok(Asked { sql: Arc::clone(sql), prepared, names, parameters, tag })
}

/// A type that says something.
fn is_said(declared: &Type) -> bool {
    *declared != Type::UNKNOWN
}

async fn inferred(
    session: &Session,
    statement: &Statement,
    declared: &[Option<Type>],
) -> Result<(Prepared, Vec<Parameter>), QueryError> {
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
    // The first error is about what was written.
    if second.is_err() && first.is_err() { first } else { second }
}

/// A number that the statement would cut to a whole one.
fn loses(parameter: &Parameter) -> bool {
    let is_fraction = matches!(parameter.declared, Some(Type::FLOAT4 | Type::FLOAT8 | Type::NUMERIC));
    is_fraction && parameter.inferred.as_ref().is_some_and(DataType::is_integer)
}

async fn bare(
    session: &Session,
    statement: Statement,
    declared: &[Option<Type>],
) -> Result<(Prepared, Vec<Parameter>), QueryError> {
    let prepared = session.prepare_statement(statement).await?;
    let inferred = prepared.parameters()?;
    let parameter = |(place, inferred): (usize, &Option<DataType>)| Parameter {
        declared: declared.get(place).cloned().flatten(),
        inferred: inferred.clone(),
    };
    let parameters = inferred.iter().enumerate().map(parameter).collect();
    Ok((prepared, parameters))
}

/// Writes `CAST($1 AS type)` for `$1`.
fn cast_parameters(statement: &mut Statement, casts: &[Option<SqlType>]) {
    let sql = match statement {
        Statement::Statement(sql) => sql,
        Statement::Explain(explain) => return cast_parameters(&mut explain.statement, casts),
        _ => return,
    };
    let ended: ControlFlow<()> = visit_expressions_mut(sql.as_mut(), |expr| {
        if let Some(data_type) = number_of(expr).and_then(|number| casts.get(number - 1)?.clone()) {
            let parameter = Box::new(std::mem::replace(expr, Expr::Value(Value::Null.into())));
            *expr =
                Expr::Cast { kind: CastKind::Cast, expr: parameter, data_type, array: false, format: None };
        }
        ControlFlow::Continue(())
    });
    debug_assert!(ended.is_continue());
}

/// The number of a parameter, from 1.
fn number_of(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Placeholder(name) = &value.value else { return None };
    name.strip_prefix('$')?.parse().ok().filter(|number| *number > 0)
}

/// The type as SQL writes it.
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

impl Asked {
    /// The columns of the answer, in these formats.
    pub(super) fn columns(&self, formats: &[i16]) -> Result<Columns, Failure> {
        Columns::new(self.prepared.schema(), self.names.as_deref(), formats)
    }

    /// The values of the parameters, from what a client sent in these formats: none for text, one for all, or one each.
    pub(super) fn values(&self, sent: &[Option<Bytes>], formats: &[i16]) -> Result<ParamValues, Failure> {
        if sent.len() != self.parameters.len() {
            let message =
                format!("{} values were given for {} parameters", sent.len(), self.parameters.len());
            return Err(Failure::error("08P01", message));
        }
        if formats.len() > 1 && formats.len() != sent.len() {
            let message = format!("{} formats were given for {} values", formats.len(), sent.len());
            return Err(Failure::error("08P01", message));
        }
        let format = |place: usize| formats.get(place).or(formats.first()).copied().unwrap_or(0);
        let values = self.parameters.iter().zip(sent).enumerate();
        let values =
            values.map(|(place, (parameter, sent))| parameter.value(place + 1, sent.as_ref(), format(place)));
        Ok(ParamValues::from(values.collect::<Result<Vec<_>, _>>()?))
    }
}
