//! The functions `obj_description` and `col_description`, which give clients the descriptions of tables and columns.

use crate::engine::SCHEMA;
use crate::functions::udf::Udf;
use crate::tables;
use arrow::array::{Array, ArrayRef, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::cast::{as_int64_array, as_string_array};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, Signature, TypeSignature, Volatility};
use datafusion::prelude::SessionContext;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Descriptions by table number and column number; column 0 is the table itself.
type Descriptions = BTreeMap<(i64, i64), String>;

/// Adds the functions to a session whose catalog is complete.
pub(super) async fn register(context: &SessionContext) -> Result<()> {
    let descriptions = Arc::new(read(context).await?);
    let of_table = vec![TypeSignature::Any(1), TypeSignature::Any(2)];
    let functions = [
        ("obj_description", DescribedItem::Table, Signature::one_of(of_table, Volatility::Stable)),
        ("col_description", DescribedItem::Column, Signature::any(2, Volatility::Stable)),
    ];
    for (name, item, signature) in functions {
        let state = ItemDescriptions { item, descriptions: Arc::clone(&descriptions) };
        let function = Udf::new(name, signature, DataType::Utf8, state, |described, args| {
            describe(described, &args.args)
        });
        context.register_udf(function.build());
    }
    Ok(())
}

/// Reads the numbers of tables and columns from the catalog that assigns them.
async fn read(context: &SessionContext) -> Result<Descriptions> {
    let sql = format!(
        "SELECT CAST(c.oid AS BIGINT), c.relname, CAST(a.attnum AS BIGINT), a.attname \
         FROM pg_catalog.pg_attribute a \
         JOIN pg_catalog.pg_class c ON a.attrelid = c.oid \
         JOIN pg_catalog.pg_namespace n ON c.relnamespace = n.oid WHERE n.nspname = '{SCHEMA}'"
    );
    let mut descriptions = Descriptions::new();
    for batch in context.sql(&sql).await?.collect().await? {
        let (tables, numbers) = (as_int64_array(batch.column(0))?, as_int64_array(batch.column(2))?);
        let (names, columns) = (as_string_array(batch.column(1))?, as_string_array(batch.column(3))?);
        for row in 0..batch.num_rows() {
            let (table, name) = (tables.value(row), names.value(row));
            if let Some((_, about)) =
                tables::descriptions().find(|(tables_by_name, _)| *tables_by_name == name)
            {
                descriptions.insert((table, 0), about.to_owned());
            }
            if let Some(about) = tables::columns::about(name, columns.value(row)) {
                descriptions.insert((table, numbers.value(row)), about.to_owned());
            }
        }
    }
    Ok(descriptions)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum DescribedItem {
    Table,
    Column,
}

/// The descriptions that one of the functions returns.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ItemDescriptions {
    item: DescribedItem,
    descriptions: Arc<Descriptions>,
}

fn describe(described: &ItemDescriptions, args: &[ColumnarValue]) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(args)?;
    let tables = numbers(&arrays[0])?;
    let columns = if described.item == DescribedItem::Column { Some(numbers(&arrays[1])?) } else { None };
    let descriptions = |row: usize| {
        let column = columns.as_ref().map_or(0, |columns| columns.value(row));
        let is_null = tables.is_null(row) || columns.as_ref().is_some_and(|columns| columns.is_null(row));
        described.descriptions.get(&(tables.value(row), column)).filter(|_| !is_null)
    };
    let descriptions: StringArray = (0..tables.len()).map(descriptions).collect();
    if args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&descriptions, 0)?));
    }
    Ok(ColumnarValue::Array(Arc::new(descriptions)))
}

fn numbers(array: &ArrayRef) -> Result<Int64Array> {
    Ok(as_int64_array(&cast(array, &DataType::Int64)?)?.clone())
}
