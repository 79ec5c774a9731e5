//! `date_trunc` for UTC times, where hours and days are whole numbers of microseconds.
//!
//! The engine's own function consults a calendar for every row of a time with a time zone, which makes a dashboard's
//! trend four times as slow. Steps other than an hour or a day of UTC are still passed to it.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::datetime::date_trunc as datafusion_date_trunc;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::sync::Arc;

/// The steps that are a whole number of microseconds and that begin at multiples of it in UTC.
const STEPS: [(&str, i64); 2] = [("hour", 3_600_000_000), ("day", 86_400_000_000)];

/// Returns the function that replaces the engine's own.
pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(DateTrunc { inner: datafusion_date_trunc() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateTrunc {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for DateTrunc {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match truncate_utc(&arguments.args) {
            Some(times) => Ok(ColumnarValue::Array(times)),
            None => self.inner.invoke_with_args(arguments),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// Returns the start of the step of each time, or `None` when the engine's own function is needed.
fn truncate_utc(arguments: &[ColumnarValue]) -> Option<ArrayRef> {
    let [ColumnarValue::Scalar(step), ColumnarValue::Array(times)] = arguments else { return None };
    let (ScalarValue::Utf8(Some(name)) | ScalarValue::Utf8View(Some(name))) = step else { return None };
    let (_, step) = STEPS.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    let DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) = times.data_type() else { return None };
    if !matches!(&**zone, "UTC" | "+00:00") {
        return None;
    }
    let times = times.as_primitive::<TimestampMicrosecondType>();
    let starts = times.unary::<_, TimestampMicrosecondType>(|time| time - time.rem_euclid(step));
    Some(Arc::new(starts.with_timezone_opt(Some(Arc::clone(zone)))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::TimestampMicrosecondArray;

    #[test]
    fn hours_and_days_begin_where_the_engines_own_says() {
        let times = vec![Some(0), Some(-1), Some(1_794_614_399_999_999), None, Some(1_794_614_400_000_000)];
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"));
        let field = Arc::new(arrow::datatypes::Field::new("t", times.data_type().clone(), true));
        for step in ["hour", "DAY"] {
            let arguments = ScalarFunctionArgs {
                args: vec![
                    ColumnarValue::Scalar(ScalarValue::from(step)),
                    ColumnarValue::Array(Arc::clone(&times)),
                ],
                arg_fields: vec![Arc::clone(&field), Arc::clone(&field)],
                number_rows: times.len(),
                return_field: Arc::clone(&field),
                config_options: Arc::default(),
            };
            let ours = truncate_utc(&arguments.args).unwrap();
            let theirs =
                datafusion_date_trunc().invoke_with_args(arguments).unwrap().into_array(times.len()).unwrap();
            assert_eq!(&ours, &theirs, "{step}");
        }
    }
}
