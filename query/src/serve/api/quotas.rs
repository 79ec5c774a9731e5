//! `GET /api/v1/quotas`: quotas as in the view `quota_state`, and how they developed in a range.

use super::parameters::Values;
use super::request::{ApiRequest, Problem, Row, list, take, whole};
use super::shape::{Member, NULLABLE_NUMBER, NULLABLE_TEXT, NULLABLE_TIME, RANGE, Shape, TIME};
use super::statement::{Binder, Statement};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The columns of a quota.
pub(super) const QUOTA: &[Member] = &[
    ("service", NULLABLE_TEXT),
    ("client", NULLABLE_TEXT),
    ("quota_metric", NULLABLE_TEXT),
    ("state", Shape::Text),
    ("quota_level", NULLABLE_TEXT),
    ("quota_current", NULLABLE_NUMBER),
    ("quota_limit", NULLABLE_NUMBER),
    ("usage", NULLABLE_NUMBER),
    ("growth_per_hour", NULLABLE_NUMBER),
    ("projected_exhaustion", NULLABLE_TIME),
    ("resets_at", NULLABLE_TIME),
    ("retry_after_s", NULLABLE_NUMBER),
    ("observed_at", Shape::Time),
    ("samples", Shape::Whole),
];

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    RANGE,
    TIME,
    ("quotas", Shape::List(&Shape::Object(&[QUOTA, &[("trend", Shape::List(&NULLABLE_NUMBER))]]))),
]]);

/// The columns that name a quota.
const KEY: [&str; 3] = ["service", "client", "quota_metric"];

fn columns() -> String {
    QUOTA.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

pub(super) async fn respond(request: ApiRequest) -> Result<Value, Problem> {
    let [mut quotas] = request.rows([listed(&request.values)]).await?;
    let mut trends: HashMap<String, Vec<Value>> = HashMap::new();
    if !quotas.is_empty() {
        let [rows] = request.rows([trend(&request, &quotas)]).await?;
        for mut row in rows {
            let numbers =
                trends.entry(key(&row)).or_insert_with(|| vec![Value::Null; request.range.buckets()]);
            let slot = usize::try_from(whole(&row, "slot")).ok();
            if let Some(number) = slot.and_then(|slot| numbers.get_mut(slot)) {
                *number = take(&mut row, "quota_current");
            }
        }
    }
    for quota in &mut quotas {
        let trend = trends.remove(&key(quota)).unwrap_or_else(|| vec![Value::Null; request.range.buckets()]);
        quota.insert("trend".to_owned(), trend.into());
    }
    Ok(json!({"range": request.range.json(), "time": request.range.times(), "quotas": list(quotas)}))
}

/// Returns the identity of a quota as one text.
fn key(row: &Row) -> String {
    json!(KEY.map(|column| row.get(column))).to_string()
}

/// Builds the statement for the quotas that need attention first. A limit of which neither name nor size is known is not
/// one of them.
pub(super) fn fullest(values: &Values) -> Statement {
    Statement::build(|binder| {
        let filters = binder.filters(values, &["service"]);
        format!(
            "SELECT {} FROM quota_state WHERE state NOT IN ('reset', 'stale')
               AND coalesce(quota_metric, CAST(quota_limit AS varchar)) IS NOT NULL{filters}
             ORDER BY usage DESC NULLS LAST, projected_exhaustion NULLS LAST, service, client, quota_metric LIMIT 5",
            columns()
        )
    })
}

/// Builds the statement for all quotas: exhausted ones first, then those closest to exhaustion, then the fullest;
/// quotas that are reset or stale come last.
fn listed(values: &Values) -> Statement {
    Statement::build(|binder| {
        let filters = binder.filters(values, &["service", "client", "state"]);
        format!(
            "SELECT {} FROM quota_state WHERE true{filters}
             ORDER BY state IN ('reset', 'stale'), coalesce(usage >= 1, false) DESC,
               projected_exhaustion NULLS LAST, usage DESC NULLS LAST, service, client, quota_metric LIMIT 500",
            columns()
        )
    })
}

/// Builds the statement for the largest value in each bucket, for the listed quotas.
fn trend(request: &ApiRequest, quotas: &[Row]) -> Statement {
    Statement::build(|binder| {
        let slot = request.range.slot("time");
        let within = binder.within("time", &request.range);
        let named: String = KEY.iter().map(|column| among(binder, quotas, column)).collect();
        format!(
            "SELECT service, client, quota_metric, slot, max(quota_current) AS quota_current
             FROM (
               SELECT service, client, quota_metric, {slot} AS slot, quota_current FROM events
               WHERE {within} AND quota_level IS NOT NULL AND quota_current IS NOT NULL{named}
             ) AS slotted GROUP BY service, client, quota_metric, slot"
        )
    })
}

/// Returns a condition: a column has one of the values that it has in these rows.
fn among(binder: &mut Binder, rows: &[Row], column: &str) -> String {
    let mut values: Vec<&str> =
        rows.iter().map(|row| row.get(column).and_then(Value::as_str).unwrap_or_default()).collect();
    values.sort_unstable();
    values.dedup();
    binder.any_of(column, &values)
}
