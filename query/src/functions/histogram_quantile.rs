//! `histogram_quantile(share, timed_calls, took_at_most_1ms, ...)`: the duration that a share of the calls did not
//! exceed.

use super::documentation;
use super::udf::Udf;
use arrow::array::{Array, ArrayRef, AsArray, Float64Builder, Int64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, Documentation, ScalarUDF, Signature, Volatility};
use std::sync::{Arc, LazyLock};
use store::rows::BUCKET_BOUNDS_US;

/// The number of arguments: the share, the number of calls, and one count for each bound.
const ARGUMENT_COUNT: usize = 2 + BUCKET_BOUNDS_US.len();

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    documentation(
        "A quantile of the durations of timed calls, in milliseconds: estimated from sums of the histogram of traffic, as if \
         calls were spread evenly between two bounds; at most the last bound, 30 s",
        "histogram_quantile(0.99, sum(timed_calls), sum(took_at_most_1ms), ..., sum(took_at_most_30s))",
        &[
            ("share", "The quantile, from 0 to 1, such as 0.99"),
            ("timed_calls", "The number of timed calls"),
            (
                "took_at_most",
                "The number of calls that took at most 1 ms, and so on for each bound up to 30 s",
            ),
        ],
    )
});

/// Returns the function: a quantile of the durations of calls.
pub(super) fn function() -> ScalarUDF {
    let mut types = vec![DataType::Int64; ARGUMENT_COUNT];
    types[0] = DataType::Float64;
    let signature = Signature::exact(types, Volatility::Immutable);
    Udf::new("histogram_quantile", signature, DataType::Float64, (), |(), args| quantiles(&args.args))
        .strict()
        .documented(&DOCUMENTATION)
        .build()
}

fn quantiles(args: &[ColumnarValue]) -> Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(args)?;
    let [shares, counts @ ..] = columns.as_slice() else {
        return exec_err!("histogram_quantile takes a share and the numbers of traffic");
    };
    let shares = shares.as_primitive::<Float64Type>();
    let counts: Vec<&Int64Array> = counts.iter().map(AsArray::as_primitive::<Int64Type>).collect();
    let mut results = Float64Builder::with_capacity(shares.len());
    for row in 0..shares.len() {
        let is_complete = shares.is_valid(row) && counts.iter().all(|column| column.is_valid(row));
        let counts = counts.iter().map(|column| column.value(row));
        results.append_option(if is_complete { quantile_ms(shares.value(row), counts)? } else { None });
    }
    Ok(ColumnarValue::Array(Arc::new(results.finish()) as ArrayRef))
}

/// Returns the quantile in milliseconds. `counts` yields the number of calls, then the number of calls that took at
/// most each bound. Returns `None` if there were no calls.
#[allow(clippy::cast_precision_loss)] // counts of calls are far below 2^53
fn quantile_ms(share: f64, mut counts: impl Iterator<Item = i64>) -> Result<Option<f64>> {
    if !(0.0..=1.0).contains(&share) {
        return exec_err!("the share of histogram_quantile is from 0 to 1, not {share}");
    }
    let calls = counts.next().unwrap_or(0);
    if calls <= 0 {
        return Ok(None);
    }
    let rank = share * calls as f64;
    let (mut from, mut before) = (0.0, 0.0);
    for (bound, at_most) in BUCKET_BOUNDS_US.iter().zip(counts) {
        let (to, at_most) = (*bound as f64, at_most as f64);
        if at_most >= rank && at_most > before {
            let within = ((rank - before) / (at_most - before)).clamp(0.0, 1.0);
            // The result is rounded to microseconds, because an estimate is no more precise.
            return Ok(Some((from + (to - from) * within).round() / 1_000.0));
        }
        (from, before) = (to, at_most);
    }
    Ok(Some(from / 1_000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(share: f64, counts: [i64; 15], expected: Option<f64>) {
        assert_eq!(quantile_ms(share, counts.into_iter()).expect("a share"), expected, "{share}");
    }

    #[test]
    fn calls_are_spread_evenly_between_two_bounds() {
        // There are 100 calls: 50 take up to 1 ms, and 50 take 5 to 10 ms.
        let counts = [100, 50, 50, 50, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100];
        check(0.25, counts, Some(0.5));
        check(0.5, counts, Some(1.0));
        check(0.75, counts, Some(7.5));
        check(1.0, counts, Some(10.0));
        check(0.0, counts, Some(0.0));
    }

    #[test]
    fn beyond_the_last_bound_is_the_last_bound() {
        let mut counts = [0; 15];
        counts[0] = 4;
        check(0.5, counts, Some(30_000.0));
        check(0.5, [0; 15], None);
        assert!(quantile_ms(1.1, [1].into_iter()).is_err());
    }
}
