//! Encodes rows in the types and formats of the PostgreSQL protocol.
//!
//! Values of other types are sent as text, so that every result can be sent.

use super::error::PgError;
use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_pg::datatypes::into_pg_type;
use arrow_pg::encoder::encode_value;
use pgwire::api::Type;
use pgwire::api::results::{DataRowEncoder, FieldFormat, FieldInfo};
use pgwire::error::PgWireError;
use pgwire::messages::data::{DataRow, RowDescription};
use std::sync::Arc;

/// The columns of a result.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    /// The types and formats in which they are sent.
    fields: Arc<Vec<FieldInfo>>,
    /// The types that they are converted to before they are encoded.
    types: Vec<DataType>,
}

impl Columns {
    /// Returns the columns of a schema with these names, if there are any. The formats are those of the protocol: none for
    /// text, one for all columns, or one for each.
    pub(super) fn new(schema: &Schema, names: Option<&[String]>, formats: &[i16]) -> Result<Self, PgError> {
        if formats.len() > 1 && formats.len() != schema.fields().len() {
            let message =
                format!("{} formats were given for {} columns", formats.len(), schema.fields().len());
            return Err(PgError::error("08P01", message));
        }
        let names = names.filter(|names| names.len() == schema.fields().len());
        let format = |place: usize| {
            let code = formats.get(place).or_else(|| formats.first().filter(|_| formats.len() == 1));
            FieldFormat::from(code.copied().unwrap_or(0))
        };
        let types: Vec<_> = schema.fields().iter().map(|field| wire_type(field.data_type())).collect();
        let field = |(place, (field, data_type)): (usize, (&Arc<Field>, &DataType))| {
            let wire = into_pg_type(data_type).unwrap_or(Type::TEXT);
            let size = size(&wire);
            let name = names.map_or(field.name(), |names| &names[place]);
            FieldInfo::new(name.clone(), None, None, wire, format(place)).with_type_size(size)
        };
        let fields = schema.fields().iter().zip(&types).enumerate().map(field).collect();
        Ok(Self { fields: Arc::new(fields), types })
    }

    /// Returns one column of text.
    pub(super) fn text(name: &str) -> Self {
        let field = FieldInfo::new(name.to_owned(), None, None, Type::TEXT, FieldFormat::Text);
        Self { fields: Arc::new(vec![field.with_type_size(-1)]), types: vec![DataType::Utf8] }
    }

    /// Returns the message that describes the columns.
    pub(super) fn description(&self) -> RowDescription {
        RowDescription::new(self.fields.iter().map(Into::into).collect())
    }

    /// Returns an encoder for the rows of a batch.
    pub(super) fn encode(&self, batch: &RecordBatch) -> Result<BatchEncoder, PgError> {
        let columns = batch.columns().iter().zip(&self.types).map(|(column, wire)| convert(column, wire));
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|error| unwritable(&error))?;
        let field = |(column, info): (&ArrayRef, &FieldInfo)| {
            Field::new(info.name(), column.data_type().clone(), true)
        };
        let types = columns.iter().zip(self.fields.iter()).map(field).collect();
        let encoder = DataRowEncoder::new(Arc::clone(&self.fields));
        Ok(BatchEncoder {
            columns,
            types,
            fields: Arc::clone(&self.fields),
            encoder,
            rows: batch.num_rows(),
            next: 0,
        })
    }
}

/// Encodes a batch row by row.
pub(super) struct BatchEncoder {
    columns: Vec<ArrayRef>,
    types: Vec<Field>,
    fields: Arc<Vec<FieldInfo>>,
    encoder: DataRowEncoder,
    rows: usize,
    next: usize,
}

impl BatchEncoder {
    /// Encodes the remaining rows in the formats of these columns.
    pub(super) fn continued(self, columns: &Columns) -> Self {
        let fields = Arc::clone(&columns.fields);
        Self { encoder: DataRowEncoder::new(Arc::clone(&fields)), fields, ..self }
    }

    /// Encodes the next row.
    pub(super) fn next(&mut self) -> Option<Result<DataRow, PgError>> {
        if self.next == self.rows {
            return None;
        }
        let row = self.next;
        self.next += 1;
        for (place, column) in self.columns.iter().enumerate() {
            let field = &self.fields[place];
            let encoded = if column.is_null(row) {
                self.encoder.encode_field(&None::<&str>)
            } else {
                encode_value(&mut self.encoder, column, row, &self.types[place], field)
            };
            if let Err(error) = encoded {
                return Some(Err(unsendable(field.name(), error)));
            }
        }
        Some(Ok(self.encoder.take_row()))
    }
}

fn unwritable(error: &ArrowError) -> PgError {
    PgError::error("22000", format!("the result cannot be encoded: {error}")).hint("cast the column to text")
}

fn unsendable(column: &str, error: PgWireError) -> PgError {
    let reason = match error {
        PgWireError::UserError(info) => info.message,
        other => other.to_string(),
    };
    PgError::error("22000", format!("column '{column}' cannot be encoded: {reason}"))
        .hint("cast it to text or to double precision")
}

/// Returns the type that values are converted to before they are encoded.
fn wire_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Int8 => DataType::Int16,
        DataType::Float16 => DataType::Float32,
        DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)
            if is_simple(item.data_type()) =>
        {
            DataType::List(Arc::clone(item))
        }
        simple if is_simple(simple) || *simple == DataType::Null => simple.clone(),
        _ => DataType::Utf8,
    }
}

fn is_simple(data_type: &DataType) -> bool {
    !data_type.is_nested()
        && !matches!(
            data_type,
            DataType::Null
                | DataType::Int8
                | DataType::Float16
                | DataType::FixedSizeBinary(_)
                | DataType::Dictionary(..)
                | DataType::Decimal32(..)
                | DataType::Decimal64(..)
                | DataType::Decimal256(..)
        )
}

fn convert(column: &ArrayRef, wire: &DataType) -> Result<ArrayRef, ArrowError> {
    if column.data_type() == wire {
        return Ok(Arc::clone(column));
    }
    if *wire != DataType::Utf8 {
        return cast(column, wire);
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let text =
        |row| if column.is_null(row) { Ok(None) } else { formatter.value(row).try_to_string().map(Some) };
    Ok(Arc::new((0..column.len()).map(text).collect::<Result<StringArray, _>>()?))
}

/// Returns the size of the values of a type, or -1 when it varies.
fn size(wire: &Type) -> i16 {
    match *wire {
        Type::BOOL => 1,
        Type::INT2 => 2,
        Type::INT4 | Type::FLOAT4 | Type::DATE => 4,
        Type::INT8 | Type::FLOAT8 | Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::TIME => 8,
        Type::INTERVAL => 16,
        _ => -1,
    }
}
