//! `GET /api/v1/services`: services with their rates, latency, hidden failures, findings and capture status.

use super::request::{ApiRequest, Problem, Row, list, series, take, text, whole};
use super::services_statements as statements;
use super::shape::{
    COUNTS, Member, NULLABLE_NUMBER, NULLABLE_TEXT, NULLABLE_TIME, RANGE, Shape, TEXTS, TIME,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

const CALLS: &[Member] = &[
    ("calls", Shape::Whole),
    ("failed_calls", Shape::Whole),
    ("hidden_calls", Shape::Whole),
    ("errors", Shape::Whole),
    ("hidden", Shape::Whole),
    ("p50_ms", NULLABLE_NUMBER),
    ("p95_ms", NULLABLE_NUMBER),
    ("p99_ms", NULLABLE_NUMBER),
];

const FINDING: Shape = Shape::Object(&[&[
    ("finding", Shape::Text),
    ("dialect", Shape::Text),
    ("errors", Shape::Whole),
    ("share", Shape::Number),
    ("example", NULLABLE_TEXT),
    ("example_event_id", NULLABLE_TEXT),
]]);

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    RANGE,
    TIME,
    (
        "services",
        Shape::List(&Shape::Object(&[
            CALLS,
            &[
                ("service", NULLABLE_TEXT),
                ("groups", Shape::Whole),
                ("dialects", TEXTS),
                ("versions", TEXTS),
                ("environments", TEXTS),
                ("last_seen", NULLABLE_TIME),
                ("capture", Shape::Words(&["captured", "partial", "not_captured", "unknown"])),
                ("findings", Shape::List(&FINDING)),
                (
                    "trend",
                    Shape::Object(&[&[
                        ("calls", COUNTS),
                        ("failed_calls", COUNTS),
                        ("hidden_calls", COUNTS),
                        ("errors", COUNTS),
                        ("hidden", COUNTS),
                    ]]),
                ),
            ],
        ])),
    ),
    ("operations", Shape::Nullable(&Shape::List(&Shape::Object(&[CALLS, &[("operation", NULLABLE_TEXT)]])))),
]]);

/// The columns of `calls` and `failures` that are part of the response.
const CALL_COLUMNS: [&str; 8] =
    ["calls", "failed_calls", "hidden_calls", "errors", "hidden", "p50_ms", "p95_ms", "p99_ms"];

/// The rows of the statements that cover all services.
struct ServiceRows {
    traits: Vec<Row>,
    findings: Vec<Row>,
    trend: Vec<Row>,
}

pub(super) async fn respond(request: ApiRequest) -> Result<Value, Problem> {
    let statements = [
        statements::calls(&request, "service"),
        statements::failures(&request, "service"),
        statements::traits(&request),
        statements::findings(&request),
        statements::trend(&request),
    ];
    let [calls, failures, traits, findings, trend] = request.rows(statements).await?;
    let rows_of_all = ServiceRows { traits, findings, trend };
    let merged = merge("service", calls, failures);
    let services: Vec<Value> = merged.into_iter().map(|row| service(&request, &rows_of_all, row)).collect();
    let operations = if request.values.texts("service").len() == 1 {
        let statements =
            [statements::calls(&request, "operation"), statements::failures(&request, "operation")];
        let [calls, failures] = request.rows(statements).await?;
        let rows = merge("operation", calls, failures).into_iter();
        Some(list(rows.map(|row| call_stats(row, "operation")).collect()))
    } else {
        None
    };
    Ok(json!({
        "range": request.range.json(),
        "time": request.range.times(),
        "services": services,
        "operations": operations,
    }))
}

/// Merges the calls and the failures of each name, the busiest first.
fn merge(name: &str, calls: Vec<Row>, failures: Vec<Row>) -> Vec<Row> {
    let mut merged: BTreeMap<Option<String>, Row> = BTreeMap::new();
    for row in calls.into_iter().chain(failures) {
        merged.entry(text(&row, name).map(str::to_owned)).or_default().extend(row);
    }
    let mut merged: Vec<Row> = merged.into_values().collect();
    merged.sort_by_key(|row| std::cmp::Reverse((whole(row, "calls"), whole(row, "errors"))));
    merged
}

/// Returns the calls of a row with the column that names the row. If there were no calls, counts are 0.
fn call_stats(mut row: Row, name: &str) -> Row {
    let mut stats: Row = Map::new();
    stats.insert(name.to_owned(), take(&mut row, name));
    for column in CALL_COLUMNS {
        let value = take(&mut row, column);
        let is_missing_count = value.is_null() && !column.ends_with("_ms");
        stats.insert(column.to_owned(), if is_missing_count { 0.into() } else { value });
    }
    stats
}

fn service(request: &ApiRequest, rows_of_all: &ServiceRows, mut row: Row) -> Value {
    let name = text(&row, "service").map(str::to_owned);
    let is_ours = |other: &&Row| text(other, "service") == name.as_deref();
    let traits: Vec<&Row> = rows_of_all.traits.iter().filter(is_ours).collect();
    let texts = |column: &str| {
        let texts: BTreeSet<&str> = traits.iter().filter_map(|row| text(row, column)).collect();
        texts.into_iter().collect::<Vec<_>>()
    };
    let findings = rows_of_all.findings.iter().filter(is_ours).map(|finding| {
        let mut finding = finding.clone();
        take(&mut finding, "service");
        Value::Object(finding)
    });
    let trend = |column: &str| series(&request.range, rows_of_all.trend.iter().filter(is_ours), column);
    let capture = capture(&row);
    // RFC 3339 times of one format sort like their texts up to the second, which is precise enough here.
    let last_seen = ["last_call", "last_event"].map(|column| take(&mut row, column));
    let last_seen = last_seen.into_iter().max_by(|a, b| a.as_str().cmp(&b.as_str()));
    let groups = whole(&row, "groups");
    let mut response = call_stats(row, "service");
    let rest = json!({
        "groups": groups,
        "dialects": texts("dialect"),
        "versions": texts("version"),
        "environments": texts("environment"),
        "last_seen": last_seen,
        "capture": capture,
        "findings": findings.collect::<Vec<_>>(),
        "trend": {
            "calls": trend("calls"),
            "failed_calls": trend("failed_calls"),
            "hidden_calls": trend("hidden_calls"),
            "errors": trend("errors"),
            "hidden": trend("hidden"),
        },
    });
    if let Value::Object(rest) = rest {
        response.extend(rest);
    }
    response.into()
}

/// Returns whether replies are captured, judged by the share of successful calls whose reply was not inspected.
pub(super) fn capture(row: &Row) -> &'static str {
    let Some(unverified) = row.get("unverified_calls").and_then(Value::as_i64) else { return "unknown" };
    let succeeded = whole(row, "calls") - whole(row, "failed_calls");
    match unverified {
        0 if whole(row, "calls") == 0 => "unknown",
        0 => "captured",
        some if some < succeeded => "partial",
        _ => "not_captured",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_follows_from_what_was_not_looked_into() {
        let row = |calls: i64, failed: i64, unverified: Value| {
            let row = json!({"calls": calls, "failed_calls": failed, "unverified_calls": unverified});
            row.as_object().unwrap().clone()
        };
        assert_eq!(capture(&row(9, 0, Value::Null)), "unknown");
        assert_eq!(capture(&row(0, 0, json!(0))), "unknown");
        assert_eq!(capture(&row(9, 1, json!(0))), "captured");
        assert_eq!(capture(&row(9, 1, json!(3))), "partial");
        assert_eq!(capture(&row(9, 1, json!(8))), "not_captured");
    }
}
