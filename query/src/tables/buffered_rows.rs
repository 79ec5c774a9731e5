//! The buffered rows of a table, which are in no Parquet file yet: those in memory, and those that are only in the WAL.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{BatchCoalescer, cast};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures_util::{TryStreamExt, stream};
use std::ops::ControlFlow;
use std::sync::Arc;
use store::Table;
use store::delta::layout::{self, PARTITION};
use store::snapshot::Snapshot;

/// The number of batches that are read at once.
const BATCHES_PER_READ: usize = 2;

/// The rows of one snapshot that are in no file yet.
#[derive(Debug)]
pub(super) struct BufferedRows {
    snapshot: Arc<Snapshot>,
    columns: ColumnProjection,
}

/// Selects columns of a table, as the engine names them, from stored batches.
#[derive(Debug, Clone)]
pub(crate) struct ColumnProjection {
    schema: SchemaRef,
    /// The source in a stored batch of each selected column.
    sources: Arc<[ColumnSource]>,
}

#[derive(Debug, Clone, Copy)]
enum ColumnSource {
    Column(usize),
    /// The day of the row's time. Only files store it as a column.
    DayOf(usize),
}

impl BufferedRows {
    pub(super) fn new(
        table: Table,
        schema: &SchemaRef,
        projection: Option<&Vec<usize>>,
        snapshot: Arc<Snapshot>,
    ) -> Result<Self> {
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        Ok(Self { snapshot, columns: ColumnProjection::new(table, schema, projection.unwrap_or(&all))? })
    }

    /// Returns the schema of the selected columns.
    pub(super) fn projected(&self) -> &SchemaRef {
        &self.columns.schema
    }
}

impl ColumnProjection {
    /// Creates a projection onto some columns of the table.
    pub(crate) fn new(table: Table, schema: &SchemaRef, columns: &[usize]) -> Result<Self> {
        let stored = table.schema();
        let source = |column: &usize| match schema.field(*column).name().as_str() {
            PARTITION => stored.index_of(layout::of(table).time).map(ColumnSource::DayOf),
            name => stored.index_of(name).map(ColumnSource::Column),
        };
        let sources = columns.iter().map(source).collect::<Result<Vec<_>, ArrowError>>()?;
        Ok(Self { schema: Arc::new(schema.project(columns)?), sources: sources.into() })
    }

    /// Returns the selected columns of a stored batch.
    pub(crate) fn of(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns = self.sources.iter().zip(self.schema.fields());
        let columns = columns.map(|(source, field)| source.of(batch, field.data_type()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

impl PartitionStream for BufferedRows {
    fn schema(&self) -> &SchemaRef {
        self.projected()
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let reader = BatchReader {
            snapshot: Arc::clone(&self.snapshot),
            columns: self.columns.clone(),
            rows: context.session_config().batch_size(),
            after: Some(0),
        };
        let chunks = stream::try_unfold(reader, |mut reader| async move {
            if reader.after.is_none() {
                return Ok::<_, DataFusionError>(None);
            }
            // Only the read takes a blocking thread. The rows are handed over outside of it, because a thread that
            // waits for the consumer could not serve other reads.
            let read = tokio::task::spawn_blocking(move || {
                let batches = reader.read()?;
                Ok(Some((stream::iter(batches.into_iter().map(Ok)), reader)))
            });
            read.await.map_err(|error| DataFusionError::External(error.into()))?
        });
        let batches = chunks.try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(self.projected()), batches))
    }
}

/// Combines the many small batches of senders into few large ones.
struct BatchReader {
    snapshot: Arc<Snapshot>,
    columns: ColumnProjection,
    /// The number of rows of a combined batch.
    rows: usize,
    /// The record that was read last; `None` when there are no more.
    after: Option<u64>,
}

impl BatchReader {
    /// Returns the rows of the next records, up to a few batches.
    fn read(&mut self) -> Result<Vec<RecordBatch>> {
        let mut coalescer = BatchCoalescer::new(Arc::clone(&self.columns.schema), self.rows);
        let mut batches = Vec::new();
        let mut failure = None;
        let mut resume_after = None;
        let scanned =
            self.snapshot.read_unflushed_after(self.after.unwrap_or_default(), &mut |sequence, batch| {
                let pushed = self.columns.of(&batch).and_then(|batch| coalescer.push_batch(batch));
                if let Err(error) = pushed {
                    failure = Some(error);
                    return ControlFlow::Break(());
                }
                batches.extend(std::iter::from_fn(|| coalescer.next_completed_batch()));
                if batches.len() < BATCHES_PER_READ {
                    return ControlFlow::Continue(());
                }
                resume_after = Some(sequence);
                ControlFlow::Break(())
            });
        if scanned.unreadable > 0 {
            tracing::warn!(
                records = scanned.unreadable,
                "records of the log cannot be read; a query leaves them out"
            );
        }
        if let Some(error) = failure {
            return Err(error.into());
        }
        self.after = resume_after;
        coalescer.finish_buffered_batch()?;
        batches.extend(std::iter::from_fn(|| coalescer.next_completed_batch()));
        Ok(batches)
    }
}

impl ColumnSource {
    fn of(self, batch: &RecordBatch, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let (Self::Column(column) | Self::DayOf(column)) = self;
        cast(batch.column(column), data_type)
    }
}
