//! The values of metrics as JSON, for `/api/v1/status`.
//!
//! A group of metrics becomes a member. In it, each metric is a number, or an object of numbers by its labels:
//! `{"wal": {"bytes": 4096}, "tables": {"events": {"rows": 12}}}`. Counts by reason, outcome and the like leave out what
//! never happened.

use metrics::{Metric, Sample, SampleValue, Samples};
use serde_json::{Value, json};

/// The largest whole number up to which floats are exact.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns all values, by group.
pub(super) fn to_json(samples: &Samples) -> Value {
    let mut groups = json!({});
    for collected in samples.metrics() {
        for sample in &collected.samples {
            insert(&mut groups, &collected.metric, sample);
        }
    }
    groups
}

fn insert(groups: &mut Value, metric: &Metric, sample: &Sample) {
    let (divisions, labels) = sample.labels.split_at(metric.split_labels().0.len());
    let mut place = &mut groups[metric.group.name];
    for division in divisions {
        place = &mut place[division.as_ref()];
    }
    place = &mut place[metric.status_key()];
    if !labels.is_empty() && matches!(sample.value, SampleValue::Number(0.0)) {
        if place.is_null() {
            *place = json!({});
        }
        return;
    }
    for label in labels {
        place = &mut place[label.as_ref()];
    }
    *place = value_json(&sample.value);
}

fn value_json(value: &SampleValue) -> Value {
    match value {
        SampleValue::Number(number) => number_json(*number),
        SampleValue::Histogram(histogram) => {
            json!({"count": histogram.count, "sum": number_json(histogram.sum)})
        }
    }
}

/// Returns a number, without a fraction if it has none.
fn number_json(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() <= MAX_EXACT { json!(number as i64) } else { json!(number) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics::Histogram;

    metrics::metrics! {
        WAL = "wal" {
            BYTES = Gauge "faultline_wal_bytes" [] "Size.";
            FSYNC = Histogram "faultline_wal_fsync_seconds" [] "Time.";
            REJECTED = Counter "faultline_wal_rejected_records_total" ["reason"] "Rejected.";
        }
        TABLES = "tables" by "table" {
            ROWS = Gauge "faultline_table_rows" ["table"] "Rows.";
            EXPIRED = Counter "faultline_expired_total" ["table", "reason"] "Expired.";
        }
    }

    #[test]
    fn groups_divisions_and_labels_become_members() {
        let mut samples = Samples::default();
        samples.number(BYTES, 4096.0);
        samples.histograms(FSYNC, [([], Histogram { buckets: vec![(0.1, 1)], count: 2, sum: 0.5 })]);
        samples.counts(REJECTED, [("full", 0), ("io", 3)]);
        samples.counts(ROWS, [("events", 0), ("traffic", 7)]);
        samples.counts_by(EXPIRED, [(["events", "age"], 0), (["traffic", "size"], 2)]);
        let expected = json!({
            "wal": {
                "bytes": 4096,
                "fsync_seconds": {"count": 2, "sum": 0.5},
                "rejected_records": {"io": 3},
            },
            "tables": {
                "events": {"rows": 0, "expired": {}},
                "traffic": {"rows": 7, "expired": {"size": 2}},
            },
        });
        assert_eq!(to_json(&samples), expected);
        assert_eq!(ALL.len(), 5);
    }
}
