//! Converts the values of a statement's parameters from JSON.

use crate::error::{QueryError, QueryErrorKind};
use datafusion::common::{ParamValues, ScalarValue};
use serde_json::Value;

/// Converts JSON values to SQL values, `$1` first. Times are strings, which the engine parses where a time is expected.
///
/// # Errors
/// Fails when a value is a list or an object.
pub fn parameters(values: &[Value]) -> Result<ParamValues, QueryError> {
    values.iter().map(parameter).collect::<Result<Vec<_>, _>>().map(ParamValues::from)
}

fn parameter(value: &Value) -> Result<ScalarValue, QueryError> {
    Ok(match value {
        Value::Null => ScalarValue::Null,
        Value::Bool(value) => ScalarValue::Boolean(Some(*value)),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => ScalarValue::Int64(Some(whole)),
            None => ScalarValue::Float64(number.as_f64()),
        },
        Value::String(text) => ScalarValue::Utf8(Some(text.clone())),
        Value::Array(_) | Value::Object(_) => {
            return Err(QueryError::new(
                QueryErrorKind::Invalid,
                "a parameter must be a string, a number, true, false or null, not a list or an object",
            ));
        }
    })
}
