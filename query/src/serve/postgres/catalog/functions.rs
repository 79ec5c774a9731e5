//! PostgreSQL functions that clients call to learn about the server. Those about features that the server does not have return
//! a constant.

use super::super::settings::{self, SERVER_VERSION};
use crate::engine::CATALOG;
use crate::functions::udf::Udf;
use arrow::array::{Array, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::cast::as_string_array;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, Signature, TypeSignature, Volatility,
};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// Functions about privileges and visibility, which are true for everyone.
const ALWAYS_TRUE: [&str; 9] = [
    "pg_function_is_visible",
    "pg_type_is_visible",
    "pg_operator_is_visible",
    "pg_collation_is_visible",
    "pg_has_role",
    "has_function_privilege",
    "has_sequence_privilege",
    "has_type_privilege",
    "has_column_privilege",
];

/// Functions about objects that do not exist, which are NULL.
const ALWAYS_NULL: [&str; 16] = [
    "inet_server_addr",
    "inet_client_addr",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_function_sqlbody",
    "pg_get_functiondef",
    "pg_get_indexdef",
    "pg_get_ruledef",
    "pg_get_serial_sequence",
    "pg_get_triggerdef",
    "pg_get_viewdef",
    "pg_size_pretty",
    "pg_tablespace_location",
    "shobj_description",
    "pg_get_partition_constraintdef",
];

/// Functions about sizes, which are not known and therefore NULL.
const NULL_SIZES: [&str; 4] = ["pg_database_size", "pg_table_size", "pg_indexes_size", "pg_tablespace_size"];

/// Adds the functions to a session.
pub(super) fn register(context: &SessionContext) {
    let version = format!("PostgreSQL {SERVER_VERSION} (Faultline {})", env!("CARGO_PKG_VERSION"));
    let mut constants = vec![
        ("version", ScalarValue::from(version.as_str())),
        ("session_user", ScalarValue::from(CATALOG)),
        ("pg_get_userbyid", ScalarValue::from(CATALOG)),
        ("pg_is_in_recovery", ScalarValue::from(false)),
    ];
    constants.extend(ALWAYS_TRUE.map(|name| (name, ScalarValue::from(true))));
    constants.extend(ALWAYS_NULL.map(|name| (name, ScalarValue::Utf8(None))));
    constants.extend(NULL_SIZES.map(|name| (name, ScalarValue::Int64(None))));
    for (name, value) in constants {
        context.register_udf(constant(name, value));
    }
    let current_setting =
        Udf::new("current_setting", texts(), DataType::Utf8, (), |(), args| current_setting(&args));
    context.register_udf(current_setting.build());
}

fn anything() -> Signature {
    Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::VariadicAny], Volatility::Stable)
}

fn texts() -> Signature {
    let named = TypeSignature::Exact(vec![DataType::Utf8]);
    let or_nothing = TypeSignature::Exact(vec![DataType::Utf8, DataType::Boolean]);
    Signature::one_of(vec![named, or_nothing], Volatility::Stable)
}

/// Returns a function that returns a constant, whatever its arguments are.
fn constant(name: &'static str, value: ScalarValue) -> ScalarUDF {
    let compute = |value: &ScalarValue, _: ScalarFunctionArgs| Ok(ColumnarValue::Scalar(value.clone()));
    Udf::new(name, anything(), value.data_type(), value, compute).build()
}

/// Computes `current_setting(name)`, which returns the default of a setting.
fn current_setting(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(&args.args)?;
    let names = as_string_array(&arrays[0])?;
    let or_nothing = arrays.len() > 1;
    let value = |name: Option<&str>| match name {
        None => Ok(None),
        Some(name) => match settings::default(name) {
            None if !or_nothing => plan_err!("there is no setting '{name}'"),
            value => Ok(value),
        },
    };
    let values = names.iter().map(value).collect::<Result<StringArray>>()?;
    if values.len() == 1 {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?));
    }
    Ok(ColumnarValue::Array(Arc::new(values)))
}
