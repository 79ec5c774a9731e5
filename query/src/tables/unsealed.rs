//! The rows of a table that are in no file yet: hot ones, and those that only the log has.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{BatchCoalescer, cast};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use std::ops::ControlFlow;
use std::sync::Arc;
use store::Table;
use store::lake::layout::{self, PARTITION};
use store::snapshot::Snapshot;
use tokio::sync::mpsc::Sender;

/// Batches that wait to be looked at.
const WAITING: usize = 2;

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
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(self.projected()), WAITING);
        let (snapshot, columns) = (Arc::clone(&self.snapshot), self.columns.clone());
        let sender = stream.tx();
        let rows = context.session_config().batch_size();
        let gathered = BatchCoalescer::new(Arc::clone(self.projected()), rows);
        let mut reader = Reader { columns, gathered, sender };
        stream.spawn_blocking(move || reader.read(&snapshot));
        stream.build()
    }
}

/// Makes few large batches of the many small ones that senders make.
struct Reader {
    columns: Columns,
    gathered: BatchCoalescer,
    sender: Sender<Result<RecordBatch>>,
}

impl Reader {
    fn read(&mut self, snapshot: &Snapshot) -> Result<()> {
        let mut failed = None;
        let found = snapshot.read_unsealed(&mut |batch| match self.take(&batch) {
            Ok(goes_on) => goes_on,
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        });
        if found.unreadable > 0 {
            tracing::warn!(
                records = found.unreadable,
                "records of the log cannot be read; a query leaves them out"
            );
        }
        if let Some(error) = failed {
            return Err(error);
        }
        self.gathered.finish_buffered_batch()?;
        // Whoever has gone needs no more.
        let _ = self.send();
        Ok(())
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>> {
        self.gathered.push_batch(self.columns.of(batch)?)?;
        Ok(self.send())
    }

    /// Hands out what is complete; breaks when nobody wants more.
    fn send(&mut self) -> ControlFlow<()> {
        while let Some(batch) = self.gathered.next_completed_batch() {
            if self.sender.blocking_send(Ok(batch)).is_err() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

impl Place {
    fn of(self, batch: &RecordBatch, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let (Self::Column(column) | Self::DayOf(column)) = self;
        cast(batch.column(column), data_type)
    }
}
