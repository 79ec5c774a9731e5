//! A `sum` that fails when the sum of integers does not fit. It adds decimals, which have room for more rows than there
//! can be, and casts the result back to an integer at the end.

use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::cast::as_decimal128_array;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature,
};
use std::collections::HashMap;
use std::sync::Arc;

/// A type with room for the sum of 10^19 of the largest integers.
const WIDE: DataType = DataType::Decimal128(38, 0);

/// Returns the function.
pub(crate) fn function() -> AggregateUDF {
    AggregateUDF::from(CheckedSum { inner: sum_udaf() })
}

/// The engine's `sum`, which accumulates integers in a wider type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum {
    inner: Arc<AggregateUDF>,
}

/// Returns the type that the result is cast back to, or `None` if the sum needs no wider type.
fn narrow_type(data_type: &DataType) -> Option<DataType> {
    data_type.is_integer().then(|| data_type.clone())
}

fn wide_field(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), WIDE, true))
}

/// Casts sums to the type of the result, or returns an error that says that a sum does not fit.
fn narrow_sums(sum: &ArrayRef, narrow: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(sum, narrow, &options).map_err(|error| {
        datafusion::common::exec_datafusion_err!("Arithmetic overflow: the sum does not fit: {error}")
    })
}

fn widen(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    Ok(values.iter().map(|value| cast(value, &WIDE)).collect::<Result<_, _>>()?)
}

impl CheckedSum {
    fn with_wide_result<T>(
        mut args: AccumulatorArgs<'_>,
        make: impl FnOnce(AccumulatorArgs<'_>) -> Result<T>,
    ) -> Result<(T, Option<DataType>)> {
        let narrow = narrow_type(args.return_field.data_type());
        if narrow.is_some() {
            args.return_field = wide_field(&args.return_field);
        }
        Ok((make(args)?, narrow))
    }
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, argument_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(argument_types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let (inner, narrow) = Self::with_wide_result(args, |args| self.inner.accumulator(args))?;
        Ok(with_narrowing(inner, narrow))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let is_narrow = narrow_type(args.return_field.data_type()).is_some();
        let return_field =
            if is_narrow { wide_field(&args.return_field) } else { Arc::clone(&args.return_field) };
        self.inner.state_fields(StateFieldsArgs { return_field, ..args })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let (inner, narrow) =
            Self::with_wide_result(args, |args| self.inner.create_groups_accumulator(args))?;
        Ok(match narrow {
            Some(narrow) => Box::new(CheckedGroupsAccumulator { inner, narrow }),
            None => inner,
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        // The engine has no distinct sum of decimals.
        if let Some(narrow) = narrow_type(args.return_field.data_type()).filter(|_| args.is_distinct) {
            return Ok(with_narrowing(Box::new(DistinctWindow::default()), Some(narrow)));
        }
        let (inner, narrow) =
            Self::with_wide_result(args, |args| self.inner.create_sliding_accumulator(args))?;
        Ok(with_narrowing(inner, narrow))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

fn with_narrowing(inner: Box<dyn Accumulator>, narrow: Option<DataType>) -> Box<dyn Accumulator> {
    match narrow {
        Some(narrow) => Box::new(CheckedAccumulator { inner, narrow }),
        None => inner,
    }
}

/// Accumulates the sum of one group.
#[derive(Debug)]
struct CheckedAccumulator {
    inner: Box<dyn Accumulator>,
    narrow: DataType,
}

impl Accumulator for CheckedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&widen(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.inner.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&narrow_sums(&sum, &self.narrow)?, 0)
    }

    fn size(&self) -> usize {
        self.inner.size() + size_of::<Self>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&widen(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

/// Accumulates the sum of the distinct values in a window that slides over the rows.
#[derive(Debug, Default)]
struct DistinctWindow {
    /// The number of occurrences of each value in the window.
    counts: HashMap<i128, usize>,
    sum: i128,
}

impl DistinctWindow {
    fn decimals(values: &[ArrayRef]) -> Result<impl Iterator<Item = i128>> {
        let Some(values) = values.first() else { return internal_err!("sum has an argument") };
        Ok(as_decimal128_array(values)?.iter().flatten())
    }
}

impl Accumulator for DistinctWindow {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in Self::decimals(values)? {
            let count = self.counts.entry(value).or_default();
            *count += 1;
            if *count == 1 {
                self.sum += value;
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in Self::decimals(values)? {
            if let Some(count) = self.counts.get_mut(&value) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&value);
                    self.sum -= value;
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = (!self.counts.is_empty()).then_some(self.sum);
        Ok(ScalarValue::Decimal128(sum, 38, 0))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.counts.capacity() * size_of::<(i128, usize)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a window is not summed up in parts")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("a window is not summed up in parts")
    }
}

/// Accumulates the sums of many groups.
struct CheckedGroupsAccumulator {
    inner: Box<dyn GroupsAccumulator>,
    narrow: DataType,
}

impl GroupsAccumulator for CheckedGroupsAccumulator {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.inner.update_batch(&widen(values)?, groups, filter, count)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        narrow_sums(&self.inner.evaluate(emit_to)?, &self.narrow)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.inner.merge_batch(states, groups, count)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(&widen(values)?, filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}
