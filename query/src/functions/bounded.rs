//! Functions of the engine that build something as large as they are told to, with a bound.
//!
//! What they build is counted by no memory limit, and constants are folded while a statement is planned, so that
//! `repeat('x', 1000000000)` would take a gigabyte before anyone could stop it.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Int64Type, IntervalUnit, TimeUnit};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;

/// What one row may grow to: characters of a text, elements of a list. Enough for a bar of a chart, or for the minutes
/// of a week.
const ROW: i64 = 10_080;
/// What the rows of one batch may grow to together, in bytes.
const BATCH: i64 = 16 << 20;

/// By how much a call grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Growth {
    /// As often as the second argument says, the text that is the first.
    Texts,
    /// As many characters as the second argument says.
    Characters,
    /// As many elements as the second argument says, each as large as the argument at this place.
    Elements(usize),
    /// From the first argument to the second, in steps of the third.
    Series,
}

const BOUNDED: [(&str, Growth); 7] = [
    ("repeat", Growth::Texts),
    ("lpad", Growth::Characters),
    ("rpad", Growth::Characters),
    ("array_repeat", Growth::Elements(0)),
    ("array_resize", Growth::Elements(2)),
    ("range", Growth::Series),
    ("generate_series", Growth::Series),
];

/// The bounded forms of what a session has.
pub(super) fn all(context: &SessionContext) -> Vec<ScalarUDF> {
    let state = context.state();
    let bounded = |(name, growth): &(&str, Growth)| {
        let inner = state.scalar_functions().get(*name)?;
        Some(ScalarUDF::from(Bounded { inner: inner.as_ref().clone(), growth: *growth }))
    };
    BOUNDED.iter().filter_map(bounded).collect()
}

/// A function that refuses to build what is too large.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: ScalarUDF,
    growth: Growth,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(given)
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.inner.return_type(given)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.check(&args)?;
        self.inner.invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

impl Bounded {
    fn check(&self, args: &ScalarFunctionArgs) -> Result<()> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let columns = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let mut together = 0_i64;
        for (units, size) in self.sizes(&columns, rows)? {
            if units > ROW {
                return exec_err!(
                    "{}() would build {units} at once; at most {ROW} characters or elements are built for a row",
                    self.name()
                );
            }
            together = together.saturating_add(units.saturating_mul(size));
        }
        if together > BATCH {
            return exec_err!(
                "{}() would build {together} bytes for {rows} rows; at most {BATCH} are built at once",
                self.name()
            );
        }
        Ok(())
    }

    /// For each row, how many are built, and how large one is.
    fn sizes(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<(i64, i64)>> {
        let Some(first) = columns.first() else { return Ok(Vec::new()) };
        let counts = match (self.growth, columns.get(1)) {
            (Growth::Series, _) => return series(columns, rows),
            (_, None) => return Ok(Vec::new()),
            (_, Some(counts)) => cast(counts, &DataType::Int64)?,
        };
        let counts = counts.as_primitive::<Int64Type>();
        let count = |row: usize| if counts.is_valid(row) { counts.value(row).max(0) } else { 0 };
        Ok(match self.growth {
            Growth::Texts => {
                let lengths = arrow::compute::kernels::length::length(&cast(first, &DataType::LargeUtf8)?)?;
                let lengths = lengths.as_primitive::<Int64Type>();
                let length = |row: usize| if lengths.is_valid(row) { lengths.value(row) } else { 0 };
                (0..rows).map(|row| (count(row).saturating_mul(length(row)), 1)).collect()
            }
            Growth::Elements(place) => {
                let element = columns.get(place);
                (0..rows).map(|row| (count(row), element.map_or(8, |element| bytes(element, row)))).collect()
            }
            // Most characters have a byte, and none more than four.
            Growth::Characters | Growth::Series => (0..rows).map(|row| (count(row), 4)).collect(),
        })
    }
}

/// What a cell takes; a guess for what cannot be asked.
fn bytes(column: &ArrayRef, row: usize) -> i64 {
    let size = column.slice(row, 1).to_data().get_slice_memory_size().unwrap_or(1 << 10);
    i64::try_from(size).unwrap_or(i64::MAX).max(8)
}

/// How many elements a series has: the distance, by the length of a step.
fn series(columns: &[ArrayRef], rows: usize) -> Result<Vec<(i64, i64)>> {
    let ends: Vec<Int64Array> = columns.iter().take(2).map(points).collect::<Result<_>>()?;
    let steps = columns.get(2).map(lengths).transpose()?;
    let value = |column: &Int64Array, row: usize| if column.is_valid(row) { column.value(row) } else { 0 };
    let count = |row: usize| {
        let (start, stop) = match ends.as_slice() {
            [stop] => (0, value(stop, row)),
            [start, stop, ..] => (value(start, row), value(stop, row)),
            [] => (0, 0),
        };
        // Of dates and times without a step the shortest is a day.
        let step = steps.as_ref().map_or(1, |steps| value(steps, row)).unsigned_abs().max(1);
        let count = start.abs_diff(stop) / step;
        (i64::try_from(count).unwrap_or(i64::MAX), 8)
    };
    Ok((0..rows).map(count).collect())
}

/// Numbers as they are; dates and times in microseconds.
fn points(column: &ArrayRef) -> Result<Int64Array> {
    let numbers = match column.data_type() {
        DataType::Date32 | DataType::Date64 => {
            let times = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
            cast(&times, &DataType::Int64)?
        }
        DataType::Timestamp(_, zone) => {
            let times = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
            cast(&times, &DataType::Int64)?
        }
        _ => cast(column, &DataType::Int64)?,
    };
    Ok(numbers.as_primitive::<Int64Type>().clone())
}

/// Steps as numbers, or in microseconds; a month counts as its shortest.
fn lengths(column: &ArrayRef) -> Result<Int64Array> {
    const DAY: i64 = 86_400_000_000;
    if !matches!(column.data_type(), DataType::Interval(_)) {
        return points(column);
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
