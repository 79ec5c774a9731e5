//! Merges sorted files into one, a few thousand rows at a time.
//!
//! Invariants: memory is bounded by the number of merged files and a fixed number of rows of each, regardless of their
//! length. The rows come out in the sort order of the table, each once (or added up, if the table is summed).

use super::aggregate::added_up;
use super::layout::{self, Layout};
use super::names::NamesOf;
use super::parquet_file::OpenFile;
use super::{DeltaError, event_counts, schema_evolution};
use crate::schema::Table;
use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{cast, concat_batches, interleave_record_batch, partition, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use std::cmp::Ordering;
use std::sync::Arc;

/// The number of rows that are passed on at once.
const BATCH_ROWS: usize = 4096;

/// Takes rows of batches, each given as its batch and its row in it.
pub(super) type WriteRows<'w> = dyn FnMut(&[RecordBatch], &[(usize, usize)]) -> Result<(), DeltaError> + 'w;

/// Passes on the rows of sorted files, in order; those of `event_counts` with long buckets if `has_long_buckets`.
pub(super) fn merged(
    table: Table,
    files: Vec<OpenFile>,
    has_long_buckets: bool,
    write: &mut WriteRows<'_>,
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
        let mut input = Input { schema: schema(table), rows, order: None, held: 0, at: 0, run: 0 };
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
    /// The order of the rows of the current batch.
    order: Option<Order>,
    /// The index of the current batch.
    held: usize,
    /// The index of the next row in that batch, and of its run.
    at: usize,
    run: usize,
}

impl Input {
    fn head(&self) -> Option<Head<'_>> {
        let order = self.order.as_ref()?;
        Some((order.groups.row(self.run), order.time(self.at)))
    }
}

/// The group and the time of a row.
type Head<'o> = (arrow::row::Row<'o>, i64);

/// The order of the rows of a batch. Rows of one group are adjacent, so groups are compared once for each run of them.
struct Order {
    /// The first row of each run, and the number of rows.
    starts: Vec<usize>,
    /// The sort key of each run, without the time.
    groups: Rows,
    /// The times, unless they are part of the group.
    times: Option<ScalarBuffer<i64>>,
}

impl Order {
    fn of(layout: &Layout, batch: &RecordBatch) -> Result<Self, ArrowError> {
        let missing = || ArrowError::SchemaError("a column of the order is missing".to_owned());
        let columns: Option<Vec<&ArrayRef>> =
            layout.group().iter().map(|name| batch.column_by_name(name)).collect();
        let columns = columns.ok_or_else(missing)?;
        let mut starts = starts_of_runs(&columns, batch.num_rows())?;
        let firsts = UInt64Array::from_iter_values(starts.iter().map(|row| *row as u64));
        let groups = columns.iter().map(|column| plain(&take(column, &firsts, None)?));
        let groups = groups.collect::<Result<Vec<_>, _>>()?;
        let fields = groups.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let groups = RowConverter::new(fields)?.convert_columns(&groups)?;
        let times = if layout.is_time_first() {
            None
        } else {
            let times = batch.column_by_name(layout.time).ok_or_else(missing)?;
            let times = times.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(missing)?;
            Some(times.values().clone())
        };
        starts.push(batch.num_rows());
        Ok(Self { starts, groups, times })
    }

    fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or_default()
    }

    fn time(&self, row: usize) -> i64 {
        self.times.as_ref().map_or(0, |times| times[row])
    }

    /// Returns the end of the rows of a run, from `at`, that do not come after a row of another file.
    fn end_before(&self, run: usize, at: usize, next: Option<Head<'_>>) -> usize {
        let end = self.starts[run + 1];
        let Some((group, time)) = next else { return end };
        match self.groups.row(run).cmp(&group) {
            Ordering::Less => end,
            Ordering::Greater => at,
            Ordering::Equal => match &self.times {
                Some(times) => at + times[at..end].partition_point(|own| *own <= time),
                None => end,
            },
        }
    }
}

/// Returns the first row of each run of rows that agree in some columns.
fn starts_of_runs(columns: &[&ArrayRef], rows: usize) -> Result<Vec<usize>, ArrowError> {
    let mut is_start = vec![false; rows];
    if let Some(first) = is_start.first_mut() {
        *first = true;
    }
    for column in columns {
        if let Some(names) = NamesOf::new(column) {
            // Two numbers may mean the same name; then a run is shorter than it could be.
            let mut last = None;
            for (row, is_start) in is_start.iter_mut().enumerate() {
                let key = names.key(row);
                *is_start |= key != last;
                last = key;
            }
        } else {
            let runs = partition(&[Arc::clone(column)])?;
            runs.ranges().into_iter().for_each(|range| is_start[range.start] = true);
        }
    }
    Ok((0..rows).filter(|row| is_start[*row]).collect())
}

/// Returns a column without its dictionary.
fn plain(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match column.data_type() {
        DataType::Dictionary(_, values) => cast(column, values),
        _ => Ok(Arc::clone(column)),
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
    fn run(&mut self, write: &mut WriteRows<'_>) -> Result<(), DeltaError> {
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
        self.kept_back.take().map_or(Ok(()), |last| write_all(&last, write))
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
        let next = self.inputs.iter().filter_map(Input::head).min();
        let rows = order.rows();
        let most = rows.min(input.at + BATCH_ROWS.saturating_sub(self.places.len()).max(1));
        // The first row is the least of all; the others are compared.
        let mut to = input.at + 1;
        loop {
            to = order.end_before(input.run, to, next).clamp(to, most.max(to));
            if to < order.starts[input.run + 1] {
                break;
            }
            input.run += 1;
            let is_after = |next: Head<'_>| (order.groups.row(input.run), order.time(to)) > next;
            if to >= most || next.is_some_and(is_after) {
                break;
            }
        }
        self.places.extend((input.at..to).map(|row| (input.held, row)));
        input.at = to;
        to < rows
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
                input.order = Some(Order::of(self.layout, &batch)?);
                (input.held, input.at, input.run) = (self.held.len(), 0, 0);
                self.held.push(batch);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the rows that were taken, and drops the batches that are finished.
    fn hand_out(&mut self, write: &mut WriteRows<'_>) -> Result<(), DeltaError> {
        if !self.places.is_empty() {
            if self.layout.sums {
                let batches: Vec<&RecordBatch> = self.held.iter().collect();
                self.hand_out_sums(interleave_record_batch(&batches, &self.places)?, write)?;
            } else {
                write(&self.held, &self.places)?;
            }
            self.places.clear();
        }
        let mut held = Vec::with_capacity(self.inputs.len());
        for input in &mut self.inputs {
            held.push(self.held[input.held].clone());
            input.held = held.len() - 1;
        }
        self.held = held;
        Ok(())
    }

    fn hand_out_sums(&mut self, rows: RecordBatch, write: &mut WriteRows<'_>) -> Result<(), DeltaError> {
        let rows = match self.kept_back.take() {
            Some(last) => concat_batches(&rows.schema(), [&last, &rows])?,
            None => rows,
        };
        let sums = added_up(self.layout, &rows)?;
        let last = sums.num_rows() - 1;
        self.kept_back = Some(sums.slice(last, 1));
        write_all(&sums.slice(0, last), write)
    }
}

/// Passes on all rows of a batch.
fn write_all(batch: &RecordBatch, write: &mut WriteRows<'_>) -> Result<(), DeltaError> {
    let places: Vec<_> = (0..batch.num_rows()).map(|row| (0, row)).collect();
    write(std::slice::from_ref(batch), &places)
}
