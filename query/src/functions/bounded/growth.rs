//! Estimates the size of the result of a call before the call builds it.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, IntervalUnit, TimeUnit};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ColumnarValue;

/// The largest size that the arguments may request for the result of one row: characters of a text, or elements of a
/// list. It is enough for a bar of a text chart, or for the minutes of a week.
const MAX_PER_ROW: i64 = 10_080;
/// The largest total size of the results for one batch, in bytes; a constant row counts as a batch.
const MAX_BATCH_BYTES: i64 = 64 << 20;

/// The way in which the result of a call grows with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Growth {
    /// The first argument is repeated as often as the second argument says.
    RepeatedText,
    /// The result has as many characters as the second argument says.
    Characters,
    /// The result has as many elements as the second argument says, each as large as the argument with this index.
    Elements(usize),
    /// The result is a series from the first argument to the second, in steps of the third.
    Series,
    /// The result is as large as all arguments together.
    Concatenation,
    /// The second argument is replaced with the third in the first, in the worst case everywhere.
    Replacement,
    /// Like `Replacement`, but the second argument is a pattern, which may match anywhere.
    PatternReplacement,
    /// The result joins the elements of the first argument, with the other arguments between them.
    JoinedList,
}

/// The size of the result of one row: the number of elements, and the size of each.
type Size = (i64, i64);

impl Growth {
    /// Fails if the call would build too much.
    pub(super) fn check(self, name: &str, args: &[ColumnarValue], rows: usize) -> Result<()> {
        let is_constant = args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { rows };
        let mut total = 0_i64;
        for (count, size) in self.sizes(args, rows)? {
            if count > MAX_PER_ROW && self.has_explicit_size() {
                return exec_err!(
                    "{name} would build {count} at once; at most {MAX_PER_ROW} characters or elements are built for a row"
                );
            }
            total = total.saturating_add(count.saturating_mul(size));
        }
        if total > MAX_BATCH_BYTES {
            return exec_err!(
                "{name} would build up to {total} bytes for {rows} rows; at most {MAX_BATCH_BYTES} are built at once"
            );
        }
        Ok(())
    }

    /// Returns true if an argument states the size of the result, regardless of its content.
    fn has_explicit_size(self) -> bool {
        !matches!(self, Self::Concatenation | Self::Replacement | Self::PatternReplacement | Self::JoinedList)
    }

    fn sizes(self, args: &[ColumnarValue], rows: usize) -> Result<Vec<Size>> {
        if self == Self::Concatenation {
            return Ok(vec![(1, sum(args.iter().map(|arg| argument_bytes(arg, rows))))]);
        }
        let columns = args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        match self {
            Self::Series => series_sizes(&columns, rows),
            Self::Replacement => Ok(replacement_sizes(&columns, rows, |length, old| length / old.max(1))),
            Self::PatternReplacement => Ok(replacement_sizes(&columns, rows, |length, _| length)),
            Self::JoinedList => Ok(joined_list_sizes(&columns, rows)),
            _ => self.explicit_sizes(&columns, rows),
        }
    }

    /// Returns the sizes of results whose number of elements is the second argument.
    fn explicit_sizes(self, columns: &[ArrayRef], rows: usize) -> Result<Vec<Size>> {
        let [first, counts, ..] = columns else { return Ok(Vec::new()) };
        let counts = cast(counts, &DataType::Int64)?;
        let counts = counts.as_primitive::<Int64Type>();
        let count = |row: usize| if counts.is_valid(row) { counts.value(row).max(0) } else { 0 };
        let size = |row: usize| match self {
            Self::RepeatedText => (count(row).saturating_mul(column_bytes(first, row, 1)), 1),
            Self::Elements(index) => {
                (count(row), columns.get(index).map_or(8, |one| column_bytes(one, row, 1).max(8)))
            }
            // Most characters take one byte, and none takes more than four.
            _ => (count(row), 4),
        };
        Ok((0..rows).map(size).collect())
    }
}

fn sum(sizes: impl Iterator<Item = i64>) -> i64 {
    sizes.fold(0, i64::saturating_add)
}

/// Returns the size of an argument; a constant is the same in every row.
fn argument_bytes(arg: &ColumnarValue, rows: usize) -> i64 {
    match arg {
        ColumnarValue::Array(column) => column_bytes(column, 0, column.len()),
        ColumnarValue::Scalar(scalar) => {
            let one = scalar.to_array_of_size(1).map_or(0, |one| column_bytes(&one, 0, 1));
            one.saturating_mul(i64::try_from(rows).unwrap_or(i64::MAX))
        }
    }
}

/// Returns the size of some rows of a column, whatever its layout in memory.
fn column_bytes(column: &ArrayRef, from: usize, rows: usize) -> i64 {
    let rows_of = from..from + rows;
    let long = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
    match column.data_type() {
        DataType::Utf8 => {
            let ends = column.as_string::<i32>().value_offsets();
            i64::from(ends[from + rows]) - i64::from(ends[from])
        }
        DataType::LargeUtf8 => {
            let ends = column.as_string::<i64>().value_offsets();
            ends[from + rows] - ends[from]
        }
        DataType::Utf8View => {
            // The length is the lower half of a view's first word.
            let views = &column.as_string_view().views()[rows_of];
            sum(views.iter().map(|view| i64::from(*view as u32)))
        }
        DataType::List(_) => {
            let list = column.as_list::<i32>();
            let (Ok(begin), Ok(end)) = (
                usize::try_from(list.value_offsets()[from]),
                usize::try_from(list.value_offsets()[from + rows]),
            ) else {
                return i64::MAX;
            };
            column_bytes(list.values(), begin, end - begin).saturating_add(long(4 * rows))
        }
        DataType::Struct(_) => {
            sum(column.as_struct().columns().iter().map(|field| column_bytes(field, from, rows)))
        }
        _ => long(column.slice(from, rows).to_data().get_slice_memory_size().unwrap_or(rows << 10)),
    }
}

/// Returns the sizes of texts after a replacement. `places` returns the maximum number of replacements, from the length
/// of the text and of the replaced part.
fn replacement_sizes(columns: &[ArrayRef], rows: usize, places: fn(i64, i64) -> i64) -> Vec<Size> {
    let [text, old, new, ..] = columns else { return Vec::new() };
    let worst = |row: usize| {
        let (length, old, new) =
            (column_bytes(text, row, 1), column_bytes(old, row, 1), column_bytes(new, row, 1));
        // An empty match can occur before and after every character, hence one more.
        (1, length.saturating_add((places(length, old) + 1).saturating_mul(new)))
    };
    (0..rows).map(worst).collect()
}

/// Returns the sizes of lists that are joined into texts.
fn joined_list_sizes(columns: &[ArrayRef], rows: usize) -> Vec<Size> {
    let [list, between @ ..] = columns else { return Vec::new() };
    let size = |row: usize| {
        let inside = column_bytes(list, row, 1);
        let between = sum(between.iter().map(|text| column_bytes(text, row, 1)));
        // A text element takes at least four bytes in a list; any other element is written in at most twenty
        // characters.
        (1, inside.saturating_mul(5).saturating_add((inside / 4).saturating_mul(between)))
    };
    (0..rows).map(size).collect()
}

/// Returns the number of elements of each series: the distance, divided by the length of a step.
fn series_sizes(columns: &[ArrayRef], rows: usize) -> Result<Vec<Size>> {
    let ends: Vec<Int64Array> = columns.iter().take(2).map(series_bounds).collect::<Result<_>>()?;
    let steps = columns.get(2).map(step_lengths).transpose()?;
    let value = |column: &Int64Array, row: usize| if column.is_valid(row) { column.value(row) } else { 0 };
    let count = |row: usize| {
        let (start, stop) = match ends.as_slice() {
            [stop] => (0, value(stop, row)),
            [start, stop, ..] => (value(start, row), value(stop, row)),
            [] => (0, 0),
        };
        let step = steps.as_ref().map_or(1, |steps| value(steps, row)).unsigned_abs().max(1);
        let count = start.abs_diff(stop) / step;
        (i64::try_from(count).unwrap_or(i64::MAX), 8)
    };
    Ok((0..rows).map(count).collect())
}

/// Converts the bounds of a series to integers; dates and times become microseconds.
fn series_bounds(column: &ArrayRef) -> Result<Int64Array> {
    let in_micros = |zone| cast(column, &DataType::Timestamp(TimeUnit::Microsecond, zone));
    let numbers = match column.data_type() {
        DataType::Date32 | DataType::Date64 => cast(&in_micros(None)?, &DataType::Int64)?,
        DataType::Timestamp(_, zone) => cast(&in_micros(zone.clone())?, &DataType::Int64)?,
        _ => cast(column, &DataType::Int64)?,
    };
    Ok(numbers.as_primitive::<Int64Type>().clone())
}

/// Converts the steps of a series to integers or microseconds; a month counts as 28 days.
fn step_lengths(column: &ArrayRef) -> Result<Int64Array> {
    const DAY: i64 = 86_400_000_000;
    if !matches!(column.data_type(), DataType::Interval(_)) {
        return series_bounds(column);
    }
    let steps = cast(column, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let Some(steps) = steps.as_any().downcast_ref::<IntervalMonthDayNanoArray>() else {
        return exec_err!("the step of a series must be an interval");
    };
    let micros = |step: arrow::datatypes::IntervalMonthDayNano| {
        (i64::from(step.months) * 28 + i64::from(step.days)) * DAY + step.nanoseconds / 1_000
    };
    Ok(steps.iter().map(|step| step.map(micros)).collect())
}
