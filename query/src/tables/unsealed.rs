//! The rows of a table that are in no file yet: hot ones, and those that only the log has.

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
use store::lake::layout::{self, PARTITION};
use store::snapshot::Snapshot;

/// Batches that are read at once.
const BATCHES: usize = 2;

/// The rows of one snapshot that are in no file yet.
#[derive(Debug)]
pub(super) struct Unsealed {
    snapshot: Arc<Snapshot>,
    columns: Columns,
}

/// Columns of a table as the engine knows them, out of batches as they are stored.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    schema: SchemaRef,
    /// For each column asked for, its place in a stored batch.
    places: Arc<[Place]>,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Column(usize),
    /// The day of the row's time, which only files have as a value of their own.
    DayOf(usize),
}

impl Unsealed {
    pub(super) fn new(
        table: Table,
        schema: &SchemaRef,
        projection: Option<&Vec<usize>>,
        snapshot: Arc<Snapshot>,
    ) -> Result<Self> {
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        Ok(Self { snapshot, columns: Columns::new(table, schema, projection.unwrap_or(&all))? })
    }

    /// The columns asked for.
    pub(super) fn projected(&self) -> &SchemaRef {
        &self.columns.schema
    }
}

impl Columns {
    /// Some columns of the table.
    pub(crate) fn new(table: Table, schema: &SchemaRef, columns: &[usize]) -> Result<Self> {
        let stored = table.schema();
        let place = |column: &usize| match schema.field(*column).name().as_str() {
            PARTITION => stored.index_of(layout::of(table).time).map(Place::DayOf),
            name => stored.index_of(name).map(Place::Column),
        };
        let places = columns.iter().map(place).collect::<Result<Vec<_>, ArrowError>>()?;
        Ok(Self { schema: Arc::new(schema.project(columns)?), places: places.into() })
    }

    /// The columns of a stored batch.
    pub(crate) fn of(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns = self.places.iter().zip(self.schema.fields());
        let columns = columns.map(|(place, field)| place.of(batch, field.data_type()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

impl PartitionStream for Unsealed {
    fn schema(&self) -> &SchemaRef {
        self.projected()
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let reader = Reader {
            snapshot: Arc::clone(&self.snapshot),
            columns: self.columns.clone(),
            rows: context.session_config().batch_size(),
            after: Some(0),
        };
        let stretches = stream::try_unfold(reader, |mut reader| async move {
            if reader.after.is_none() {
                return Ok::<_, DataFusionError>(None);
            }
            // Step by step: a thread that waited for whoever takes the rows would be missing elsewhere.
            let read = tokio::task::spawn_blocking(move || {
                let batches = reader.read()?;
                Ok(Some((stream::iter(batches.into_iter().map(Ok)), reader)))
            });
            read.await.map_err(|error| DataFusionError::External(error.into()))?
        });
        let batches = stretches.try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(self.projected()), batches))
    }
}

/// Makes few large batches of the many small ones that senders make.
struct Reader {
    snapshot: Arc<Snapshot>,
    columns: Columns,
    /// Rows of a batch.
    rows: usize,
    /// The record that was read last; none when that was all.
    after: Option<u64>,
}

impl Reader {
    /// The rows of the next records, up to a few batches.
    fn read(&mut self) -> Result<Vec<RecordBatch>> {
        let mut gathered = BatchCoalescer::new(Arc::clone(&self.columns.schema), self.rows);
        let mut batches = Vec::new();
        let mut failed = None;
        let mut stopped = None;
        let found =
            self.snapshot.read_unsealed_after(self.after.unwrap_or_default(), &mut |sequence, batch| {
                let pushed = self.columns.of(&batch).and_then(|batch| gathered.push_batch(batch));
                if let Err(error) = pushed {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
                batches.extend(std::iter::from_fn(|| gathered.next_completed_batch()));
                if batches.len() < BATCHES {
                    return ControlFlow::Continue(());
                }
                stopped = Some(sequence);
                ControlFlow::Break(())
            });
        if found.unreadable > 0 {
            tracing::warn!(
                records = found.unreadable,
                "records of the log cannot be read; a query leaves them out"
            );
        }
        if let Some(error) = failed {
            return Err(error.into());
        }
        self.after = stopped;
        gathered.finish_buffered_batch()?;
        batches.extend(std::iter::from_fn(|| gathered.next_completed_batch()));
        Ok(batches)
    }
}

impl Place {
    fn of(self, batch: &RecordBatch, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let (Self::Column(column) | Self::DayOf(column)) = self;
        cast(batch.column(column), data_type)
    }
}
