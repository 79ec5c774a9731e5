//! `time_bucket(step, time[, origin])`: the start of the step that a time falls into.
//!
//! Buckets of a fixed length are counted from Monday, 2000-01-03, so that weeks begin on Mondays; buckets of months are
//! counted from 2000-01-01. Both are in UTC, and an argument can set another origin. A filter on a bucket is turned
//! into a filter on the time itself, so that it selects files and pages.

use super::documentation;
use arrow::array::{ArrayRef, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit, TimestampMicrosecondType};
use chrono::{DateTime, Datelike, Months, Utc};
use datafusion::common::cast::as_timestamp_microsecond_array;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// Monday, 2000-01-03T00:00:00Z, in microseconds.
const DEFAULT_ORIGIN: i64 = 946_857_600_000_000;
/// 2000-01-01T00:00:00Z, in microseconds.
const DEFAULT_MONTH_ORIGIN: i64 = 946_684_800_000_000;
const DAY: i64 = 86_400_000_000;

/// The function that returns the start of the step that a time falls into.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TimeBucket {
    signature: Signature,
}

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    documentation(
        "The start of the interval that contains a time, where intervals have equal lengths",
        "time_bucket('5 minutes', time)",
        &[
            (
                "step",
                "The length of an interval: an interval, or a text such as '5 minutes', '1 day' or '1 month'",
            ),
            ("time", "The time to assign to an interval"),
            ("origin", "The start of one interval; by default a Monday, or the first of January for months"),
        ],
    )
});

impl TimeBucket {
    pub(super) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, argument_types: &[DataType]) -> Result<Vec<DataType>> {
        let (step, times) = match argument_types {
            [step, times @ ..] if (1..=2).contains(&times.len()) => (step, times),
            _ => return plan_err!("time_bucket takes a step, a time, and maybe an origin"),
        };
        let mut types = vec![step_type(step)?];
        let zone = match &times[0] {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => Some("UTC".into()),
        };
        for time in times {
            types.push(time_type(time, zone.as_ref())?);
        }
        Ok(types)
    }

    fn return_type(&self, argument_types: &[DataType]) -> Result<DataType> {
        match argument_types.get(1) {
            Some(time) => Ok(time.clone()),
            None => plan_err!("time_bucket takes a step, a time, and maybe an origin"),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (Some(ColumnarValue::Scalar(step)), Some(times)) = (args.args.first(), args.args.get(1)) else {
            return exec_err!("the step of time_bucket must be a constant, such as '5 minutes'");
        };
        let origin = match args.args.get(2) {
            None => None,
            Some(ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(Some(origin), _))) => Some(*origin),
            Some(ColumnarValue::Scalar(origin)) if origin.is_null() => return null(args.return_type()),
            Some(_) => return exec_err!("the origin of time_bucket must be a constant"),
        };
        match Buckets::new(step, origin)? {
            None => null(args.return_type()),
            Some(buckets) => buckets.apply(times, args.return_type()),
        }
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        let is_constant = |input: &ExprProperties| input.sort_properties == SortProperties::Singleton;
        match input {
            [step, time, origin @ ..] if is_constant(step) && origin.iter().all(is_constant) => {
                Ok(time.sort_properties)
            }
            _ => Ok(SortProperties::Unordered),
        }
    }

    /// Turns `time_bucket('1 hour', time) = x` into the range of `time` from `x` to the next hour, if an hour starts at
    /// `x`.
    fn preimage(&self, args: &[Expr], start: &Expr, _: &SimplifyContext) -> Result<PreimageResult> {
        let [Expr::Literal(step, _), time, origin @ ..] = args else { return Ok(PreimageResult::None) };
        let Expr::Literal(ScalarValue::TimestampMicrosecond(Some(start), zone), _) = start else {
            return Ok(PreimageResult::None);
        };
        let origin = match origin {
            [] => None,
            [Expr::Literal(ScalarValue::TimestampMicrosecond(Some(origin), _), _)] => Some(*origin),
            _ => return Ok(PreimageResult::None),
        };
        // An invalid step is reported when the statement runs.
        let Ok(Some(buckets)) = Buckets::new(step, origin) else { return Ok(PreimageResult::None) };
        let (Some(begins), Some(end)) = (buckets.bucket_start(*start), buckets.next_bucket(*start)) else {
            return Ok(PreimageResult::None);
        };
        if begins != *start {
            return Ok(PreimageResult::None);
        }
        let at = |micros| ScalarValue::TimestampMicrosecond(Some(micros), zone.clone());
        let interval = Box::new(Interval::try_new(at(*start), at(end))?);
        Ok(PreimageResult::Range { expr: time.clone(), interval })
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION)
    }
}

fn step_type(argument_types: &DataType) -> Result<DataType> {
    match argument_types {
        DataType::Interval(_)
        | DataType::Utf8
        | DataType::Utf8View
        | DataType::LargeUtf8
        | DataType::Null => Ok(DataType::Interval(IntervalUnit::MonthDayNano)),
        other => {
            plan_err!("the step of time_bucket is an interval or a text such as '5 minutes', not {other}")
        }
    }
}

fn time_type(argument_types: &DataType, zone: Option<&Arc<str>>) -> Result<DataType> {
    match argument_types {
        DataType::Timestamp(..)
        | DataType::Date32
        | DataType::Date64
        | DataType::Utf8
        | DataType::Utf8View
        | DataType::LargeUtf8
        | DataType::Null => Ok(DataType::Timestamp(TimeUnit::Microsecond, zone.cloned())),
        other => plan_err!("time_bucket takes a time, not {other}"),
    }
}

fn null(data_type: &DataType) -> Result<ColumnarValue> {
    Ok(ColumnarValue::Scalar(ScalarValue::try_from(data_type)?))
}

/// Buckets of equal steps, counted from an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buckets {
    /// Each step has this many microseconds.
    Micros { length: i64, origin: i64 },
    /// Each step has this many months.
    Months { length: i64, origin: DateTime<Utc> },
}

impl Buckets {
    /// Returns the buckets for a step interval, or `None` if it is NULL.
    fn new(step: &ScalarValue, origin: Option<i64>) -> Result<Option<Self>> {
        let ScalarValue::IntervalMonthDayNano(step) = step else {
            return exec_err!("the step of time_bucket must be an interval");
        };
        let Some(step) = step else { return Ok(None) };
        let micros = i64::from(step.days).checked_mul(DAY).zip(Some(step.nanoseconds / 1_000));
        let micros = micros.and_then(|(days, rest)| days.checked_add(rest));
        match (step.months, micros) {
            (0, Some(length)) if length > 0 => {
                Ok(Some(Self::Micros { length, origin: origin.unwrap_or(DEFAULT_ORIGIN) }))
            }
            (months, Some(0)) if months > 0 => {
                let Some(origin) = DateTime::from_timestamp_micros(origin.unwrap_or(DEFAULT_MONTH_ORIGIN))
                else {
                    return exec_err!("the origin of time_bucket is no date");
                };
                Ok(Some(Self::Months { length: i64::from(months), origin }))
            }
            (months, Some(rest)) if months != 0 && rest != 0 => {
                exec_err!("a step of time_bucket is either months or days, hours and so on, not both")
            }
            _ => exec_err!("a step of time_bucket must be at least a microsecond long"),
        }
    }

    /// Returns the start of the bucket that a time falls into, or `None` if it cannot be represented.
    fn bucket_start(self, time: i64) -> Option<i64> {
        match self {
            Self::Micros { length, origin } => {
                let since = time.checked_sub(origin)?;
                since.checked_sub(since.rem_euclid(length))?.checked_add(origin)
            }
            Self::Months { length, origin } => {
                let time = DateTime::from_timestamp_micros(time)?;
                let steps = months_between(origin, time).div_euclid(length);
                let start = add_months(origin, steps.checked_mul(length)?)?;
                // Whole months are counted from the origin's day: with an origin on the 15th, the 14th belongs to the
                // step before.
                let start =
                    if start > time { add_months(origin, (steps - 1).checked_mul(length)?)? } else { start };
                Some(start.timestamp_micros())
            }
        }
    }

    /// Returns the start of the bucket after the one that starts at `start`.
    fn next_bucket(self, start: i64) -> Option<i64> {
        match self {
            Self::Micros { length, .. } => start.checked_add(length),
            Self::Months { length, origin } => {
                let months = months_between(origin, DateTime::from_timestamp_micros(start)?);
                Some(add_months(origin, months.checked_add(length)?)?.timestamp_micros())
            }
        }
    }

    fn apply(self, times: &ColumnarValue, data_type: &DataType) -> Result<ColumnarValue> {
        match times {
            ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(Some(time), zone)) => {
                Ok(ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(
                    self.bucket_start(*time),
                    zone.clone(),
                )))
            }
            ColumnarValue::Scalar(_) => null(data_type),
            ColumnarValue::Array(times) => {
                let times = as_timestamp_microsecond_array(times)?;
                let starts: TimestampMicrosecondArray = match self {
                    // If no overflow is possible, no row needs a check.
                    Self::Micros { length, origin } if fits(times, origin) => times.unary(|time| {
                        let since = time - origin;
                        since - since.rem_euclid(length) + origin
                    }),
                    _ => times.unary_opt::<_, TimestampMicrosecondType>(|time| self.bucket_start(time)),
                };
                let starts = starts.with_timezone_opt(times.timezone().map(Arc::<str>::from));
                Ok(ColumnarValue::Array(Arc::new(starts) as ArrayRef))
            }
        }
    }
}

/// Returns true if all times are far enough from the ends of the range that no step overflows.
fn fits(times: &TimestampMicrosecondArray, origin: i64) -> bool {
    const FAR: i64 = i64::MAX / 4;
    origin.abs() < FAR && times.values().iter().all(|time| (-FAR..FAR).contains(time))
}

fn months_between(from: DateTime<Utc>, to: DateTime<Utc>) -> i64 {
    let months = |time: DateTime<Utc>| i64::from(time.year()) * 12 + i64::from(time.month0());
    months(to) - months(from)
}

fn add_months(time: DateTime<Utc>, months: i64) -> Option<DateTime<Utc>> {
    let by = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    if months < 0 { time.checked_sub_months(by) } else { time.checked_add_months(by) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::IntervalMonthDayNano;

    fn buckets(months: i32, days: i32, nanoseconds: i64, origin: Option<&str>) -> Buckets {
        let step = IntervalMonthDayNano { months, days, nanoseconds };
        let origin = origin.map(|text| classifier::time::parse(text).expect(text));
        let buckets = Buckets::new(&ScalarValue::IntervalMonthDayNano(Some(step)), origin);
        buckets.expect("steps").expect("not null")
    }

    #[track_caller]
    fn check(buckets: Buckets, time: &str, expected: &str) {
        let micros = |text: &str| classifier::time::parse(text).expect(text);
        let start = buckets.bucket_start(micros(time)).expect("a start");
        assert_eq!(start, micros(expected), "{time}");
        let after = buckets.next_bucket(start).expect("an end");
        assert!(after > micros(time), "{time} is in the step");
        assert_eq!(buckets.bucket_start(after - 1), Some(start), "the last moment of the step");
        assert_eq!(buckets.bucket_start(after), Some(after), "the first of the next");
    }

    #[test]
    fn steps_begin_where_calendars_do() {
        let minutes = |count: i64| buckets(0, 0, count * 60_000_000_000, None);
        check(minutes(5), "2026-11-01T10:07:31.5Z", "2026-11-01T10:05:00Z");
        check(minutes(90), "1999-12-31T23:59:59.999999Z", "1999-12-31T22:30:00Z");
        check(buckets(0, 1, 0, None), "2026-11-01T23:59:59.999999Z", "2026-11-01T00:00:00Z");
        // 2026-11-01 is a Sunday.
        check(buckets(0, 7, 0, None), "2026-11-01T12:00:00Z", "2026-10-26T00:00:00Z");
        check(buckets(1, 0, 0, None), "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z");
        check(buckets(3, 0, 0, None), "2026-12-31T23:59:59Z", "2026-10-01T00:00:00Z");
        check(buckets(12, 0, 0, None), "1969-07-20T20:17:00Z", "1969-01-01T00:00:00Z");
    }

    #[test]
    fn steps_can_begin_elsewhere() {
        let at_six = Some("2026-01-01T06:00:00Z");
        check(buckets(0, 1, 0, at_six), "2026-03-01T05:59:59Z", "2026-02-28T06:00:00Z");
        let mid_month = Some("2026-01-15T00:00:00Z");
        check(buckets(1, 0, 0, mid_month), "2026-03-14T00:00:00Z", "2026-02-15T00:00:00Z");
        check(buckets(1, 0, 0, mid_month), "2025-12-20T00:00:00Z", "2025-12-15T00:00:00Z");
    }

    #[test]
    fn what_is_no_step_is_refused() {
        for (months, days, nanoseconds) in [(0, 0, 0), (0, 0, 999), (0, -1, 0), (-1, 0, 0), (1, 1, 0)] {
            let step = IntervalMonthDayNano { months, days, nanoseconds };
            let buckets = Buckets::new(&ScalarValue::IntervalMonthDayNano(Some(step)), None);
            assert!(buckets.is_err(), "{step:?}");
        }
    }

    #[test]
    fn the_ends_of_time_have_no_step() {
        assert_eq!(buckets(0, 1, 0, None).bucket_start(i64::MIN), None);
        assert_eq!(buckets(1, 0, 0, None).bucket_start(i64::MAX), None);
    }
}
