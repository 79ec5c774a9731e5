//! Collects the rows of a row group, column by column, until it is complete.

use super::parquet_names::{NameChunk, NameOptions};
use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::Result;
use parquet::file::properties::{BloomFilterProperties, EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;
use std::io::Write;

/// A row group in memory.
pub(super) struct RowGroup {
    schema: SchemaRef,
    columns: Vec<ColumnChunk>,
    rows: usize,
}

enum ColumnChunk {
    /// A column of names.
    Names(Box<NameChunk>),
    /// Any other column.
    Values(Box<ArrowColumnWriter>),
}

impl RowGroup {
    /// Creates the next row group of a file. Every column of the schema has one leaf.
    pub(super) fn new<W: Write + Send>(
        file: &SerializedFileWriter<W>,
        factory: &ArrowRowGroupWriterFactory,
        schema: &SchemaRef,
    ) -> Result<Self> {
        let writers = factory.create_column_writers(file.flushed_row_groups().len())?;
        let column = |(writer, (field, column)): (ArrowColumnWriter, (_, &ColumnDescPtr))| {
            if is_name(field) {
                let options = name_options(file.properties(), column.clone());
                ColumnChunk::Names(Box::new(NameChunk::new(options)))
            } else {
                ColumnChunk::Values(Box::new(writer))
            }
        };
        let columns = schema.fields().iter().map(AsRef::as_ref).zip(file.schema_descr().columns());
        let columns = writers.into_iter().zip(columns).map(column).collect();
        Ok(Self { schema: schema.clone(), columns, rows: 0 })
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns an estimate of the length that the row group will have before compression.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |column: &ColumnChunk| match column {
            ColumnChunk::Names(names) => names.bytes(),
            ColumnChunk::Values(values) => values.get_estimated_total_bytes(),
        };
        self.columns.iter().map(bytes).sum()
    }

    /// Appends rows of batches, each given as its batch and its row in it.
    pub(super) fn write(&mut self, batches: &[RecordBatch], places: &[(usize, usize)]) -> Result<()> {
        let fields = self.schema.fields();
        for (index, (column, field)) in self.columns.iter_mut().zip(fields).enumerate() {
            match column {
                ColumnChunk::Names(names) => names.extend(batches, index, places)?,
                ColumnChunk::Values(writer) => {
                    let values = gathered(batches, index, places)?;
                    for leaf in compute_leaves(field, &values)? {
                        writer.write(&leaf)?;
                    }
                }
            }
        }
        self.rows += places.len();
        Ok(())
    }

    /// Completes the row group, and writes it to its file.
    pub(super) fn finish<W: Write + Send>(self, file: &mut SerializedFileWriter<W>) -> Result<()> {
        let mut group = file.next_row_group()?;
        for column in self.columns {
            match column {
                ColumnChunk::Names(names) => {
                    let (bytes, close) = names.finish()?;
                    group.append_column(&bytes, close)?;
                }
                ColumnChunk::Values(writer) => writer.close()?.append_to_row_group(&mut group)?,
            }
        }
        group.close().map(drop)
    }
}

fn is_name(field: &Field) -> bool {
    matches!(field.data_type(), DataType::Dictionary(..))
}

fn name_options(properties: &WriterProperties, column: ColumnDescPtr) -> NameOptions {
    let path = column.path();
    let level = match properties.compression(path) {
        Compression::ZSTD(level) => level.compression_level(),
        _ => 1,
    };
    NameOptions {
        page_rows: properties.data_page_row_count_limit(),
        has_bounds: properties.statistics_enabled(path) != EnabledStatistics::None,
        bloom: properties.bloom_filter_properties(path).map(BloomFilterProperties::fpp),
        level,
        column,
    }
}

/// Returns the values of a column in the order of the rows.
fn gathered(
    batches: &[RecordBatch],
    column: usize,
    places: &[(usize, usize)],
) -> Result<ArrayRef, ArrowError> {
    let arrays: Vec<&dyn Array> = batches.iter().map(|batch| &**batch.column(column)).collect();
    // Many columns are about one kind of event, so they are often null in all rows.
    match arrays.first() {
        Some(first) if arrays.iter().all(|array| array.null_count() == array.len()) => {
            Ok(new_null_array(first.data_type(), places.len()))
        }
        _ => interleave(&arrays, places),
    }
}
