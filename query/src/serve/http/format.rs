//! Rows as JSON, CSV, a Parquet file or an Arrow stream.

use crate::error::{QueryError, QueryErrorKind};
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::{csv, json};
use axum::http::{HeaderMap, header};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

/// The format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Csv,
    Parquet,
    Arrow,
}

const MEDIA: [(&str, Format); 6] = [
    ("application/json", Format::Json),
    ("text/csv", Format::Csv),
    ("application/vnd.apache.parquet", Format::Parquet),
    ("application/vnd.apache.arrow.stream", Format::Arrow),
    ("application/*", Format::Json),
    ("*/*", Format::Json),
];

impl Format {
    pub(super) const ALL: [Self; 4] = [Self::Json, Self::Csv, Self::Parquet, Self::Arrow];

    /// Returns the first supported format that `Accept` names.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, QueryError> {
        let Some(accept) = headers.get(header::ACCEPT) else { return Ok(Self::Json) };
        let accept = accept.to_str().unwrap_or_default();
        let media = |wanted: &str| {
            let name = wanted.split(';').next().unwrap_or_default().trim();
            MEDIA.iter().find(|(media, _)| media.eq_ignore_ascii_case(name)).map(|(_, format)| *format)
        };
        accept.split(',').find_map(media).ok_or_else(|| {
            QueryError::new(QueryErrorKind::Invalid, format!("'{accept}' is nothing that answers come in"))
                .hint("accept application/json, text/csv, application/vnd.apache.parquet or application/vnd.apache.arrow.stream")
        })
    }

    pub(super) fn media(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }
}

/// A writer that appends batches to a buffer in memory.
pub(super) enum Writer {
    Json(json::Writer<Vec<u8>, json::writer::JsonArray>),
    Csv(Box<csv::Writer<Vec<u8>>>),
    Parquet(Box<ArrowWriter<Vec<u8>>>),
    Arrow(StreamWriter<Vec<u8>>),
}

impl Writer {
    pub(super) fn new(format: Format, schema: &Schema) -> Result<Self, ArrowError> {
        Ok(match format {
            Format::Json => {
                let builder = json::WriterBuilder::new().with_explicit_nulls(true);
                Self::Json(builder.build::<_, json::writer::JsonArray>(Vec::new()))
            }
            Format::Csv => {
                let mut writer = csv::WriterBuilder::new().with_header(true).build(Vec::new());
                // An empty result has a header too.
                writer.write(&without_lists(&RecordBatch::new_empty(schema.clone().into()))?)?;
                Self::Csv(Box::new(writer))
            }
            Format::Parquet => {
                let compression = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(compression).build();
                let schema = schema.clone().into();
                Self::Parquet(Box::new(ArrowWriter::try_new(Vec::new(), schema, Some(properties))?))
            }
            Format::Arrow => Self::Arrow(StreamWriter::try_new(Vec::new(), schema)?),
        })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Self::Json(writer) => writer.write(batch),
            Self::Csv(writer) => writer.write(&without_lists(batch)?),
            Self::Parquet(writer) => Ok(writer.write(batch)?),
            Self::Arrow(writer) => writer.write(batch),
        }
    }

    pub(super) fn finish(self) -> Result<Vec<u8>, ArrowError> {
        match self {
            Self::Json(mut writer) => {
                writer.finish()?;
                let rows = writer.into_inner();
                // The writer writes nothing when there are no rows.
                Ok(if rows.is_empty() { b"[]".to_vec() } else { rows })
            }
            Self::Csv(writer) => Ok((*writer).into_inner()),
            Self::Parquet(writer) => Ok((*writer).into_inner()?),
            Self::Arrow(writer) => writer.into_inner(),
        }
    }
}

/// Replaces lists with their text form, because CSV has no lists.
fn without_lists(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    use arrow::datatypes::{DataType, Field};
    use std::sync::Arc;
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let is_nested = field.data_type().is_nested();
        let data_type = if is_nested { DataType::Utf8 } else { field.data_type().clone() };
        columns.push(if is_nested { arrow::compute::cast(column, &data_type)? } else { Arc::clone(column) });
        fields.push(Field::new(field.name(), data_type, true));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
