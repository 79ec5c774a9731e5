//! Reads and writes one Parquet file of a table, which is written once and never changed.
//!
//! Invariants: when `FileWriter::finish` returns, the file and its name are durable. Names are never used twice, and a
//! file that no commit names is ignored by everyone.

use super::DeltaError;
use super::files::{DataFile, date_of};
use super::layout::{self, PARTITION};
use super::row_group::RowGroup;
use super::statistics::Statistics;
use crate::disk::{Disk, DiskFile, DiskRead};
use crate::schema::Table;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, ArrowWriterOptions};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, SortingColumn};
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of rows in a row group, which is the unit in which readers skip and share work.
pub const ROW_GROUP_ROWS: usize = 128 << 10;
/// The number of rows in a page, which is the unit in which readers skip inside a column.
const PAGE_ROWS: usize = 8 << 10;
/// The size limit of a row group, which is held in memory until it is complete. Large rows fill it earlier.
const ROW_GROUP_BYTES: usize = 64 << 20;
/// The false positive rate of bloom filters: one of a hundred lookups reads a row group unnecessarily.
const BLOOM_FALSE_POSITIVES: f64 = 0.01;
/// The compression level. Higher levels cost more than they save: see `benches/RESULTS.md`.
const ZSTD_LEVEL: i32 = 1;

/// The maximum number of rows that are read at once.
const MOST_ROWS: usize = 4096;

/// The destination and the purpose of a new file.
pub(super) struct FileTarget<'p> {
    pub(super) disk: &'p dyn Disk,
    /// The folder of the table.
    pub(super) root: &'p Path,
    pub(super) table: Table,
    /// The partition: days since 1970.
    pub(super) day: i32,
    /// The first part of its name, which tells whether it was flushed or merged.
    pub(super) origin: &'static str,
}

/// A file that is being written. It is removed if it is never finished.
pub(super) struct FileWriter<'p> {
    target: FileTarget<'p>,
    path: String,
    schema: SchemaRef,
    writer: SerializedFileWriter<DiskWriter>,
    factory: ArrowRowGroupWriterFactory,
    /// The row group that is not complete yet.
    group: Option<RowGroup>,
    is_finished: bool,
}

impl Drop for FileWriter<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            drop(self.target.disk.remove(&self.target.root.join(&self.path)));
        }
    }
}

impl<'p> FileWriter<'p> {
    /// Creates a file for batches of this schema. Names and words may be dictionaries.
    pub(super) fn create(target: FileTarget<'p>, schema: &SchemaRef) -> Result<Self, DeltaError> {
        let folder = format!("{PARTITION}={}", date_of(target.day));
        let name = format!("{}-{:016x}.parquet", target.origin, getrandom::u64().map_err(io::Error::from)?);
        let path = format!("{folder}/{name}");
        target.disk.create_dir_all(&target.root.join(&folder))?;
        let whole = target.root.join(&path);
        // Otherwise a file that got a name but no space would stay, and each further attempt on a full disk would add
        // one.
        let file = target.disk.create(&whole, 0).inspect_err(|_| drop(target.disk.remove(&whole)))?;
        let options = ArrowWriterOptions::new()
            .with_properties(properties(target.table))
            // Readers must see plain texts, regardless of the types that the file is built from.
            .with_skip_arrow_metadata(true);
        let into = DiskWriter { file, bytes: 0 };
        let writer = ArrowWriter::try_new_with_options(into, Arc::clone(schema), options)?;
        let (writer, factory) = writer.into_serialized_writer()?;
        Ok(Self {
            target,
            path,
            schema: Arc::clone(schema),
            writer,
            factory,
            group: None,
            is_finished: false,
        })
    }

    /// Appends the rows of a batch, which continue the order.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), DeltaError> {
        let places: Vec<_> = (0..batch.num_rows()).map(|row| (0, row)).collect();
        self.write_rows(std::slice::from_ref(batch), &places)
    }

    /// Appends rows of batches, which continue the order. Each is given as its batch and its row in it.
    pub(super) fn write_rows(
        &mut self,
        batches: &[RecordBatch],
        mut places: &[(usize, usize)],
    ) -> Result<(), DeltaError> {
        while !places.is_empty() {
            let mut group = match self.group.take() {
                Some(group) => group,
                None => RowGroup::new(&self.writer, &self.factory, &self.schema)?,
            };
            let (fit, rest) = places.split_at(places.len().min(room(&group)));
            group.write(batches, fit)?;
            places = rest;
            if room(&group) == 0 {
                group.finish(&mut self.writer)?;
            } else {
                self.group = Some(group);
            }
        }
        Ok(())
    }

    /// Finishes the file, and makes it durable.
    pub(super) fn finish(mut self, now_ms: i64) -> Result<DataFile, DeltaError> {
        if let Some(group) = self.group.take() {
            group.finish(&mut self.writer)?;
        }
        let footer = self.writer.finish()?;
        let into = self.writer.inner_mut();
        into.file.sync()?;
        let bytes = into.bytes;
        let whole = self.target.root.join(&self.path);
        self.target.disk.sync_dir(whole.parent().unwrap_or(self.target.root))?;
        self.is_finished = true;
        Ok(DataFile {
            path: std::mem::take(&mut self.path),
            bytes,
            day: self.target.day,
            written_at: now_ms,
            statistics: Statistics::of_file(self.target.table, &footer),
        })
    }
}

/// Returns the number of rows that a row group still takes. Rows are assumed to be as large as those before them.
fn room(group: &RowGroup) -> usize {
    let rows = ROW_GROUP_ROWS.saturating_sub(group.rows());
    let left = ROW_GROUP_BYTES.saturating_sub(group.bytes());
    if group.rows() == 0 { rows } else { rows.min(left / (group.bytes() / group.rows()).max(1)) }
}

/// Adapts a file of the disk to `Write`.
struct DiskWriter {
    file: Box<dyn DiskFile>,
    bytes: u64,
}

impl Write for DiskWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.append(&mut [IoSlice::new(bytes)])?;
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn properties(table: Table) -> WriterProperties {
    let (layout, schema) = (layout::of(table), layout::file_schema(table));
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("faultline ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).unwrap_or_default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_sorting_columns(sorting(table));
    for name in layout.unique {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(*name), false);
    }
    let is_judged = |name: &str| layout.statistics.contains(&name) || layout.order.contains(&name);
    let is_text = |field: &&Arc<Field>| matches!(field.data_type(), DataType::Utf8 | DataType::Binary);
    for field in schema.fields().iter().filter(is_text) {
        // Comparing every text with the minimum and the maximum so far costs a tenth of the time of a flush.
        if !is_judged(field.name()) {
            let column = ColumnPath::from(field.name().as_str());
            properties = properties.set_column_statistics_enabled(column, EnabledStatistics::None);
        }
    }
    for name in layout.blooms {
        properties = properties
            .set_column_bloom_filter_enabled(ColumnPath::from(*name), true)
            .set_column_bloom_filter_fpp(ColumnPath::from(*name), BLOOM_FALSE_POSITIVES)
            .set_column_bloom_filter_max_ndv(ColumnPath::from(*name), ROW_GROUP_ROWS as u64);
    }
    let is_time = |field: &&Arc<Field>| matches!(field.data_type(), DataType::Timestamp(..));
    for field in schema.fields().iter().filter(is_time) {
        let column = ColumnPath::from(field.name().as_str());
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

/// Returns the sort order for the footer. Its columns come before any list, so leaf and field numbers are the same.
fn sorting(table: Table) -> Option<Vec<SortingColumn>> {
    let schema = layout::file_schema(table);
    let column = |name: &&str| {
        let target = schema.index_of(name).ok()?;
        Some(SortingColumn { column_idx: i32::try_from(target).ok()?, descending: false, nulls_first: true })
    };
    layout::of(table).order.iter().map(column).collect()
}

/// An open file, in the form that the Parquet reader needs.
struct Source(Arc<dyn DiskRead>);

impl Length for Source {
    fn len(&self) -> u64 {
        self.0.bytes()
    }
}

impl ChunkReader for Source {
    type T = BufReader<From>;

    fn get_read(&self, at: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(From { file: Arc::clone(&self.0), at }))
    }

    fn get_bytes(&self, at: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let mut bytes = vec![0; length];
        self.0.read_at(at, &mut bytes)?;
        Ok(bytes.into())
    }
}

/// Reads an open file sequentially from an offset.
pub(super) struct From {
    file: Arc<dyn DiskRead>,
    at: u64,
}

impl Read for From {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.file.bytes().saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = into.len().min(left);
        self.file.read_at(self.at, &mut into[..length])?;
        self.at += length as u64;
        Ok(length)
    }
}

/// The form in which the texts of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    /// As plain texts.
    Plain,
    /// Names and words as dictionaries.
    Dictionaries,
}

/// An open file: its footer, and access to its rows.
pub struct OpenFile {
    table: Table,
    builder: ParquetRecordBatchReaderBuilder<Source>,
}

impl OpenFile {
    /// Opens a file for plain texts, and reads its footer.
    ///
    /// # Errors
    /// Fails when it cannot be read, or is not a Parquet file.
    pub fn open(disk: &dyn Disk, path: &Path, table: Table) -> Result<Self, ParquetError> {
        Self::new(disk, path, table, Texts::Plain)
    }

    /// Opens a file and reads its footer.
    pub(super) fn new(
        disk: &dyn Disk,
        path: &Path,
        table: Table,
        texts: Texts,
    ) -> Result<Self, ParquetError> {
        let file = disk.open(path)?;
        let plain = ArrowReaderOptions::new()
            .with_skip_arrow_metadata(true)
            .with_offset_index_policy(PageIndexPolicy::Optional);
        let mut builder =
            ParquetRecordBatchReaderBuilder::try_new_with_options(Source(Arc::clone(&file)), plain.clone())?;
        if texts == Texts::Dictionaries {
            let wanted = plain.with_schema(with_dictionaries(table, builder.schema()));
            builder = ParquetRecordBatchReaderBuilder::try_new_with_options(Source(file), wanted)?;
        }
        Ok(Self { table, builder })
    }

    /// Returns the footer.
    #[must_use]
    pub fn footer(&self) -> &ParquetMetaData {
        self.builder.metadata()
    }

    /// Returns the number of rows that can be read at once without taking much memory. A page of a column holds about a
    /// megabyte, or a fixed number of rows if those are small; so pages with few rows mean that rows are large.
    fn rows_at_once(&self) -> usize {
        let Some(index) = self.footer().offset_index() else { return MOST_ROWS };
        let pages = index.iter().flatten().map(OffsetIndexMetaData::page_locations);
        // The last page of a column may be short by chance.
        let rows = pages
            .flat_map(|pages| pages.windows(2).map(|two| two[1].first_row_index - two[0].first_row_index));
        rows.min()
            .map_or(MOST_ROWS, |rows| usize::try_from(2 * rows).unwrap_or(MOST_ROWS).clamp(1, MOST_ROWS))
    }

    /// Returns the rows in batches of at most a few megabytes, with all columns, or with those of the named columns
    /// that the file has.
    ///
    /// # Errors
    /// Fails when the file cannot be read.
    pub fn rows(self, columns: Option<&[&str]>) -> Result<ParquetRecordBatchReader, ParquetError> {
        let at_once = self.rows_at_once();
        let builder = self.builder.with_batch_size(at_once);
        let builder = match columns {
            Some(columns) => {
                let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
                builder.with_projection(mask)
            }
            None => builder,
        };
        builder.build()
    }

    /// Returns the table that the file belongs to.
    #[must_use]
    pub fn table(&self) -> Table {
        self.table
    }
}

/// Returns the schema of a file, with dictionaries where the WAL has them.
fn with_dictionaries(table: Table, of_file: &SchemaRef) -> SchemaRef {
    let ours = table.schema();
    let is_dictionary = |field: &Arc<Field>| {
        ours.field_with_name(field.name())
            .is_ok_and(|field| matches!(field.data_type(), DataType::Dictionary(..)))
    };
    let field = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8 if is_dictionary(field) => {
            let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            Arc::new(field.as_ref().clone().with_data_type(dictionary))
        }
        _ => Arc::clone(field),
    };
    Arc::new(Schema::new(of_file.fields().iter().map(field).collect::<Vec<_>>()))
}

/// Returns the path of a file of a table.
pub(super) fn path_of(root: &Path, file: &DataFile) -> PathBuf {
    root.join(&file.path)
}
