//! A stored table: its Parquet files, scanned by the engine's own source, and the rows that are in no file yet.
//!
//! Files are skipped without being opened when their day or their statistics show that no row can match. Inside a file,
//! the Parquet source skips row groups and pages by statistics, and row groups by bloom filters.

use super::buffered_rows::BufferedRows;
use super::file_pruning::prune_files;
use super::url;
use crate::engine::StatementSnapshot;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, DFSchema, Result, ScalarValue, Statistics, internal_err};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::streaming::StreamingTableExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use object_store::ObjectMeta;
use object_store::path::Path;
use std::sync::Arc;
use store::Table;
use store::delta::files::DataFile;
use store::delta::layout::{self, PARTITION};
use store::snapshot::Snapshot;

/// A stored table.
#[derive(Debug)]
pub(super) struct StoredTable {
    table: Table,
    /// The columns of a file, and the day of its folder.
    schema: TableSchema,
}

impl StoredTable {
    pub(super) fn new(table: Table) -> Self {
        let schema = TableSchema::builder(file_schema(table))
            .with_table_partition_cols(vec![Arc::new(Field::new(PARTITION, DataType::Date32, false))])
            .build();
        Self { table, schema }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        self.schema.table_schema()
    }

    /// Returns the filters as one expression over the columns of the table.
    fn predicate(&self, state: &dyn Session, filters: &[Expr]) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let Some(filter) = conjunction(filters.to_vec()) else { return Ok(None) };
        let schema = DFSchema::try_from(Arc::clone(self.schema()))?;
        state.create_physical_expr(filter, &schema).map(Some)
    }

    /// Returns the scan of the files, or `None` when there are none.
    fn scan_files(
        &self,
        state: &dyn Session,
        snapshot: &Snapshot,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let files = prune_files(self.schema(), predicate, &snapshot.files.files)?;
        if files.is_empty() {
            return Ok(None);
        }
        // The engine passes the filters itself, once it has found out that the source can use them.
        let source = ParquetSource::new(self.schema.clone())
            .with_table_parquet_options(TableParquetOptions {
                global: state.config_options().execution.parquet.clone(),
                ..TableParquetOptions::default()
            })
            .with_parquet_file_reader_factory(Arc::new(CachedParquetFileReaderFactory::new(
                state.runtime_env().object_store(url()?)?,
                state.runtime_env().cache_manager.get_file_metadata_cache(),
            )));
        let groups = self.file_groups(files, state.config().target_partitions());
        let order = if groups.iter().all(|group| group.len() == 1) { self.file_order()? } else { Vec::new() };
        let scan = FileScanConfigBuilder::new(url()?, Arc::new(source))
            .with_file_groups(groups)
            .with_output_ordering(order)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(Some(DataSourceExec::from_data_source(scan)))
    }

    /// Distributes the files to threads, the newest first, so that queries for the latest rows find them early.
    fn file_groups(&self, mut files: Vec<Arc<DataFile>>, threads: usize) -> Vec<FileGroup> {
        let time = layout::of(self.table).time;
        files.sort_by_cached_key(|file| {
            std::cmp::Reverse(file.statistics.times(time).map(|(_, newest)| newest))
        });
        let mut groups = vec![Vec::new(); threads.clamp(1, files.len())];
        let count = groups.len();
        for (index, file) in files.iter().enumerate() {
            groups[index % count].push(self.partitioned_file(file));
        }
        groups.into_iter().map(FileGroup::new).collect()
    }

    fn partitioned_file(&self, file: &DataFile) -> PartitionedFile {
        let meta = ObjectMeta {
            location: Path::from(self.table.name())
                .parts()
                .chain(Path::from(file.path.as_str()).parts())
                .collect(),
            last_modified: chrono::DateTime::from_timestamp_millis(file.written_at).unwrap_or_default(),
            size: file.bytes,
            e_tag: None,
            version: None,
        };
        PartitionedFile::new_from_meta(meta)
            .with_partition_values(vec![ScalarValue::Date32(Some(file.day))])
            .with_statistics(Arc::new(self.statistics(file)))
    }

    /// Returns the exact number of rows, and inexact bounds of their times, because the bounds in the table's log are
    /// rounded.
    fn statistics(&self, file: &DataFile) -> Statistics {
        let schema = self.schema.file_schema();
        let mut statistics = Statistics::new_unknown(schema);
        statistics.num_rows =
            Precision::Exact(usize::try_from(file.statistics.num_records).unwrap_or(usize::MAX));
        let time = layout::of(self.table).time;
        if let (Ok(column), Some((oldest, newest))) = (schema.index_of(time), file.statistics.times(time)) {
            let value = |time| {
                let value = ScalarValue::TimestampMicrosecond(Some(time), None);
                value.cast_to(schema.field(column).data_type()).map_or(Precision::Absent, Precision::Inexact)
            };
            statistics.column_statistics[column] =
                ColumnStatistics { min_value: value(oldest), max_value: value(newest), ..Default::default() };
        }
        statistics
    }

    /// Returns the sort order of the rows in a file.
    fn file_order(&self) -> Result<Vec<LexOrdering>> {
        let schema = self.schema();
        let columns = layout::of(self.table).order.iter();
        let order =
            columns.map(|name| Ok(PhysicalSortExpr::new_default(col(name, schema)?).asc().nulls_first()));
        Ok(LexOrdering::new(order.collect::<Result<Vec<_>>>()?).into_iter().collect())
    }

    fn scan_buffered(
        &self,
        snapshot: Arc<Snapshot>,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if !snapshot.has_unflushed() {
            return Ok(None);
        }
        let rows = Arc::new(BufferedRows::new(self.table, self.schema(), projection, snapshot)?);
        let schema = Arc::clone(rows.projected());
        Ok(Some(Arc::new(StreamingTableExec::try_new(schema, vec![rows], None, [], false, limit)?)))
    }
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Reports filters as inexact: they select files, row groups and pages, and the engine still filters the rows.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(snapshots) = state.config().get_extension::<StatementSnapshot>() else {
            return internal_err!("a table is read outside of a statement");
        };
        let snapshot = snapshots.snapshot(self.table).await?;
        let predicate = self.predicate(state, filters)?;
        let files = self.scan_files(state, &snapshot, predicate.as_ref(), projection, limit)?;
        let buffered = self.scan_buffered(snapshot, projection, limit)?;
        match (files, buffered) {
            (Some(files), Some(buffered)) => UnionExec::try_new(vec![files, buffered]),
            (Some(one), None) | (None, Some(one)) => Ok(one),
            (None, None) => {
                let schema = match projection {
                    Some(columns) => Arc::new(self.schema().project(columns)?),
                    None => Arc::clone(self.schema()),
                };
                Ok(Arc::new(EmptyExec::new(schema)))
            }
        }
    }
}

/// Returns the columns of a file as the engine reads them: texts as views, which are cheap to filter, group and pass
/// on.
fn file_schema(table: Table) -> SchemaRef {
    let view = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        _ => Arc::clone(field),
    };
    Arc::new(Schema::new(layout::file_schema(table).fields().iter().map(view).collect::<Vec<_>>()))
}
