//! Merges sorted files into one, a few thousand rows at a time.
//!
//! Invariants: memory is bounded by the number of merged files and a fixed number of rows of each, regardless of their
//! length. The rows come out in the sort order of the table, each once (or added up, if the table is summed).

use super::aggregate::{added_up, order_of};
use super::layout::{self, Layout};
use super::parquet_file::OpenFile;
use super::{DeltaError, event_counts, schema_evolution};
use crate::schema::Table;
use arrow::array::RecordBatch;
use arrow::compute::{concat_batches, interleave_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::row::Rows;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use std::sync::Arc;

/// The number of rows that are passed on at once.
const BATCH_ROWS: usize = 4096;

/// Passes on the rows of sorted files, in order; those of `event_counts` with long buckets if `has_long_buckets`.
pub(super) fn merged(
    table: Table,
    files: Vec<OpenFile>,
    has_long_buckets: bool,
    write: &mut dyn FnMut(&RecordBatch) -> Result<(), DeltaError>,
) -> Result<(), DeltaError> {
    let layout = layout::of(table);
    let mut merge = Merge {
        layout,
        has_long_buckets,
        inputs: Vec::new(),
        held: Vec::new(),
        places: Vec::new(),
        kept_back: None,
    };
    for file in files {
        let rows = file.rows(None)?;
        let mut input = Input { schema: schema(table), rows, order: None, held: 0, at: 0 };
        if merge.advance(&mut input)? {
            merge.inputs.push(input);
        }
    }
    merge.run(write)
}

/// Returns the schema of merged files: names and words stay dictionaries, with room for any number of values.
pub(super) fn schema(table: Table) -> SchemaRef {
    let large = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, values) => DataType::Dictionary(Box::new(DataType::Int32), values.clone()),
        other => other.clone(),
    };
    let plain = layout::file_schema(table);
    let field = |(of_log, plain): (&Arc<Field>, &Arc<Field>)| match of_log.data_type() {
        DataType::Dictionary(..) => {
            Arc::new(plain.as_ref().clone().with_data_type(large(of_log.data_type())))
        }
        _ => Arc::clone(plain),
    };
    let fields = table.schema().fields().iter().zip(plain.fields()).map(field).collect::<Vec<_>>();
    Arc::new(Schema::new(fields))
}

/// A file being merged.
struct Input {
    schema: SchemaRef,
    rows: ParquetRecordBatchReader,
    /// The sort keys of the rows of the current batch.
    order: Option<Rows>,
    /// The index of the current batch.
    held: usize,
    /// The index of the next row in that batch.
    at: usize,
}

impl Input {
    fn head(&self) -> Option<arrow::row::Row<'_>> {
        self.order.as_ref().map(|order| order.row(self.at))
    }
}

struct Merge {
    layout: &'static Layout,
    /// True if buckets of counts become long ones.
    has_long_buckets: bool,
    inputs: Vec<Input>,
    /// The batches that rows are taken from.
    held: Vec<RecordBatch>,
    /// The rows to be passed on next, as positions in `held`.
    places: Vec<(usize, usize)>,
    /// The last row of the previous output, if rows are added up: the next row may have to be added to it.
    kept_back: Option<RecordBatch>,
}

impl Merge {
    fn run(
        &mut self,
        write: &mut dyn FnMut(&RecordBatch) -> Result<(), DeltaError>,
    ) -> Result<(), DeltaError> {
        while let Some(least) = self.least() {
            let mut input = self.inputs.swap_remove(least);
            let has_more = self.take_from(&mut input);
            if has_more || self.advance(&mut input)? {
                self.inputs.push(input);
            }
            if self.places.len() >= BATCH_ROWS || self.held.len() > 2 * (self.inputs.len() + 1) {
                self.hand_out(write)?;
            }
        }
        self.hand_out(write)?;
        self.kept_back.take().map_or(Ok(()), |last| write(&last))
    }

    /// Returns the file whose next row comes first.
    fn least(&self) -> Option<usize> {
        let heads = self.inputs.iter().enumerate().filter_map(|(place, input)| Some((input.head()?, place)));
        heads.min().map(|(_, place)| place)
    }

    /// Takes rows of the file with the least row, as long as they come before those of all other files. Returns false
    /// when its batch has ended.
    fn take_from(&mut self, input: &mut Input) -> bool {
        let Some(order) = &input.order else { return false };
        let next_of_others = self.inputs.iter().filter_map(Input::head).min();
        let room = BATCH_ROWS.saturating_sub(self.places.len()).max(1);
        let end = order.num_rows().min(input.at + room);
        // The first row is the least of all; the others are compared.
        let mut to = input.at + 1;
        while to < end && next_of_others.is_none_or(|next| order.row(to) <= next) {
            to += 1;
        }
        self.places.extend((input.at..to).map(|row| (input.held, row)));
        input.at = to;
        to < order.num_rows()
    }

    /// Continues with the next batch of a file. Returns false when there is none.
    fn advance(&mut self, input: &mut Input) -> Result<bool, DeltaError> {
        input.order = None;
        for batch in input.rows.by_ref() {
            let mut batch = schema_evolution::adapted(batch?, &input.schema)?;
            if self.has_long_buckets {
                batch = event_counts::with_long_buckets(&batch)?;
            }
            if batch.num_rows() > 0 {
                input.order = Some(order_of(self.layout, &batch)?);
                (input.held, input.at) = (self.held.len(), 0);
                self.held.push(batch);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the rows that were taken, and drops the batches that are finished.
    fn hand_out(
        &mut self,
        write: &mut dyn FnMut(&RecordBatch) -> Result<(), DeltaError>,
    ) -> Result<(), DeltaError> {
        if !self.places.is_empty() {
            let batches: Vec<&RecordBatch> = self.held.iter().collect();
            let rows = interleave_record_batch(&batches, &self.places)?;
            self.places.clear();
            if self.layout.sums { self.hand_out_sums(rows, write)? } else { write(&rows)? }
        }
        let mut held = Vec::with_capacity(self.inputs.len());
        for input in &mut self.inputs {
            held.push(self.held[input.held].clone());
            input.held = held.len() - 1;
        }
        self.held = held;
        Ok(())
    }

    fn hand_out_sums(
        &mut self,
        rows: RecordBatch,
        write: &mut dyn FnMut(&RecordBatch) -> Result<(), DeltaError>,
    ) -> Result<(), DeltaError> {
        let rows = match self.kept_back.take() {
            Some(last) => concat_batches(&rows.schema(), [&last, &rows])?,
            None => rows,
        };
        let sums = added_up(self.layout, &rows)?;
        let last = sums.num_rows() - 1;
        self.kept_back = Some(sums.slice(last, 1));
        if last > 0 { write(&sums.slice(0, last)) } else { Ok(()) }
    }
}
