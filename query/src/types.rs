//! PostgreSQL names for the Arrow types of columns.

use arrow::datatypes::DataType;

/// Returns the PostgreSQL name of an Arrow type.
#[must_use]
pub fn postgres_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Boolean => "boolean",
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => "smallint",
        DataType::Int32 | DataType::UInt16 => "integer",
        DataType::Int64 | DataType::UInt32 => "bigint",
        DataType::UInt64 | DataType::Decimal128(..) | DataType::Decimal256(..) => "numeric",
        DataType::Float16 | DataType::Float32 => "real",
        DataType::Float64 => "double precision",
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone",
        DataType::Timestamp(_, None) => "timestamp",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Interval(_) | DataType::Duration(_) => "interval",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytea",
        DataType::Dictionary(_, values) => return postgres_name(values),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            return format!("{}[]", postgres_name(item.data_type()));
        }
        other => return other.to_string().to_lowercase(),
    };
    name.to_owned()
}
