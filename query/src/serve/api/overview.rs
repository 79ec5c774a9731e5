//! `GET /api/v1/overview`: failures and calls of a range, and the top entries of each kind.

use super::failures::{Precision, failures};
use super::groups::{self, Listing};
use super::ingest;
use super::quotas;
use super::range::TimeRange;
use super::request::{ApiRequest, Problem, Row, list, series, text, whole};
use super::shape::{
    CATEGORY, COUNTS, Member, NULLABLE_FLAG, NULLABLE_NUMBER, NULLABLE_TEXT, RANGE, Shape, TIME,
};
use super::statement::{Binder, ERRORS, HIDDEN_ERRORS, Statement, has_column};
use super::{events, range, services as service_rows};
use serde_json::{Value, json};
use store::Table;

const TOTALS: Shape = Shape::Object(&[&[
    ("errors", Shape::Whole),
    ("hidden", Shape::Whole),
    ("calls", Shape::Whole),
    ("failed_calls", Shape::Whole),
    ("hidden_calls", Shape::Whole),
    ("groups", Shape::Whole),
]]);

const LOOP: &[Member] = &[
    ("time", Shape::Time),
    ("service", NULLABLE_TEXT),
    ("client", Shape::Text),
    ("operation", NULLABLE_TEXT),
    ("canonical", Shape::Text),
    ("category", CATEGORY),
    ("fingerprint", Shape::Text),
    ("attempts", Shape::Whole),
    ("attempts_per_minute", NULLABLE_NUMBER),
    ("retryable", NULLABLE_FLAG),
    ("recovery", NULLABLE_TEXT),
    ("last_seen", Shape::Time),
];

/// The shape of a row of the view `retry_loops`.
pub(super) const RETRY_LOOP: Shape = Shape::Object(&[LOOP]);

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    RANGE,
    ("totals", TOTALS),
    ("previous", TOTALS),
    (
        "series",
        Shape::Object(&[&[
            TIME,
            ("by_category", events::BY_CATEGORY),
            ("calls", COUNTS),
            ("failed_calls", COUNTS),
            ("hidden_calls", COUNTS),
            ("errors", COUNTS),
            ("hidden", COUNTS),
        ]]),
    ),
    (
        "faults",
        Shape::Nullable(&Shape::List(&Shape::Object(&[&[
            ("fault", NULLABLE_TEXT),
            ("errors", Shape::Whole),
        ]]))),
    ),
    (
        "codes",
        Shape::List(&Shape::Object(&[&[
            ("canonical", Shape::Text),
            ("category", CATEGORY),
            ("errors", Shape::Whole),
            ("hidden", Shape::Whole),
            ("previous", Shape::Whole),
        ]])),
    ),
    (
        "services",
        Shape::List(&Shape::Object(&[&[
            ("service", NULLABLE_TEXT),
            ("errors", Shape::Whole),
            ("hidden", Shape::Whole),
            ("calls", Shape::Whole),
            ("failed_calls", Shape::Whole),
            ("hidden_calls", Shape::Whole),
        ]])),
    ),
    ("retry_loops", Shape::List(&RETRY_LOOP)),
    ("quotas", Shape::List(&Shape::Object(&[quotas::QUOTA]))),
    (
        "new_groups",
        Shape::List(&Shape::Object(&[&[
            ("fingerprint", Shape::Text),
            ("canonical", Shape::Text),
            ("category", CATEGORY),
            ("service", NULLABLE_TEXT),
            ("operation", NULLABLE_TEXT),
            ("template", NULLABLE_TEXT),
            ("errors", Shape::Whole),
            ("first_seen", Shape::Time),
        ]])),
    ),
    (
        "not_captured",
        Shape::List(&Shape::Object(&[&[
            ("service", Shape::Text),
            ("calls", Shape::Whole),
            ("capture", Shape::Words(&["partial", "not_captured"])),
        ]])),
    ),
    ("ingest", ingest::SHAPE),
]]);

const NEW_GROUP: [&str; 8] =
    ["fingerprint", "canonical", "category", "service", "operation", "template", "errors", "first_seen"];

pub(super) async fn respond(request: ApiRequest) -> Result<Value, Problem> {
    let range = &request.range;
    let new_groups = Listing { states: vec!["new"], sort: "errors", limit: 5, offset: 0 };
    let statements = [
        errors(&request),
        group_counts(&request),
        calls(&request),
        faults(&request),
        codes(&request),
        services(&request),
        retry_loops(&request),
        quotas::fullest(&request.values),
        groups::statement(&request, &new_groups),
        not_captured(&request),
        ingest::statement(&request),
    ];
    let [errors, group_counts, calls, faults, codes, services, loops, quotas, groups, missing, newest] =
        request.rows(statements).await?;
    let (current_calls, previous_calls) = by_period(&calls);
    let (current_errors, previous_errors) = by_period(&errors);
    let (current_groups, previous_groups) = by_period(&group_counts);
    let faults = has_column(Table::Events, "fault").then(|| list(faults));
    Ok(json!({
        "range": range.json(),
        "totals": totals(&current_errors, &current_calls, &current_groups),
        "previous": totals(&previous_errors, &previous_calls, &previous_groups),
        "series": {
            "time": range.times(),
            "by_category": events::by_category(&request, &current_errors),
            "calls": series(range, current_calls.iter().copied(), "calls"),
            "failed_calls": series(range, current_calls.iter().copied(), "failed_calls"),
            "hidden_calls": series(range, current_calls.iter().copied(), "hidden_calls"),
            "errors": series(range, current_errors.iter().copied(), "errors"),
            "hidden": series(range, current_errors.iter().copied(), "hidden"),
        },
        "faults": faults,
        "codes": list(codes),
        "services": list(services),
        "retry_loops": list(loops),
        "quotas": list(quotas),
        "new_groups": groups::listed(groups).iter().map(new_group).collect::<Vec<_>>(),
        "not_captured": blind_services(&missing),
        "ingest": ingest::respond(&request, newest),
    }))
}

/// Splits the rows into those of the range, and those of the period before it.
fn by_period(rows: &[Row]) -> (Vec<&Row>, Vec<&Row>) {
    rows.iter().partition(|row| row.get("is_current").and_then(Value::as_bool) == Some(true))
}

fn totals(errors: &[&Row], calls: &[&Row], groups: &[&Row]) -> Value {
    let sum = |rows: &[&Row], column: &str| rows.iter().map(|row| whole(row, column)).sum::<i64>();
    json!({
        "errors": sum(errors, "errors"),
        "hidden": sum(errors, "hidden"),
        "calls": sum(calls, "calls"),
        "failed_calls": sum(calls, "failed_calls"),
        "hidden_calls": sum(calls, "hidden_calls"),
        "groups": sum(groups, "groups"),
    })
}

fn new_group(group: &Row) -> Value {
    NEW_GROUP.iter().map(|name| ((*name).to_owned(), group.get(*name).cloned().unwrap_or_default())).collect()
}

/// Returns the failures of the range and of the equally long period before it, with the filters, and SQL that tells the
/// two apart.
fn both_periods(request: &ApiRequest, binder: &mut Binder, precision: Precision) -> (String, String) {
    let range = &request.range;
    let periods = [(range.previous_from(), range.from), (range.from, range.to)];
    let filters = binder.filters(&request.values, &["service", "environment"]);
    let failures = failures(binder, range, &periods, &filters, precision);
    let is_current = format!("time >= {}", binder.bind(range::text(range.from)));
    (failures, is_current)
}

/// Builds the statement for failures by bucket and category. Buckets before the range have negative numbers, or none.
fn errors(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let (failures, is_current) = both_periods(request, binder, Precision::Slots);
        let slot = request.range.slot("time");
        format!(
            "SELECT is_current, slot, category, {ERRORS} AS errors, {HIDDEN_ERRORS} AS hidden
             FROM (
               SELECT {is_current} AS is_current, CASE WHEN {is_current} THEN {slot} ELSE -1 END AS slot, category,
                 errors, hidden
               FROM {failures}
             ) AS slotted GROUP BY is_current, slot, category HAVING {ERRORS} > 0"
        )
    })
}

fn group_counts(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let (failures, is_current) = both_periods(request, binder, Precision::Periods);
        format!(
            "SELECT is_current, count(*) AS groups
             FROM (
               SELECT {is_current} AS is_current, fingerprint FROM {failures}
               GROUP BY {is_current}, fingerprint HAVING sum(errors) > 0
             ) AS named GROUP BY is_current"
        )
    })
}

fn calls(request: &ApiRequest) -> Statement {
    let range = &request.range;
    Statement::build(|binder| {
        let within = binder.between("minute", TimeRange::minute(range.previous_from()), range.to);
        let filters = binder.filters(&request.values, &["service", "environment"]);
        let is_current = format!("minute >= {}", binder.bind(range::text(TimeRange::minute(range.from))));
        // The minute in which the range begins counts for its first bucket.
        let slot = format!("greatest({}, 0)", range.slot("minute"));
        format!(
            "SELECT is_current, slot, sum(calls) AS calls, sum(failures) AS failed_calls,
               sum(hidden_failures) AS hidden_calls
             FROM (
               SELECT {is_current} AS is_current, CASE WHEN {is_current} THEN {slot} ELSE -1 END AS slot, calls,
                 failures, hidden_failures
               FROM calls WHERE {within}{filters}
             ) AS slotted GROUP BY is_current, slot"
        )
    })
}

/// Returns the failures of the range, with the filters.
fn current(request: &ApiRequest, binder: &mut Binder) -> String {
    let filters = binder.filters(&request.values, &["service", "environment"]);
    let period = (request.range.from, request.range.to);
    failures(binder, &request.range, &[period], &filters, Precision::Periods)
}

fn faults(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let failures = current(request, binder);
        format!(
            "SELECT fault, {ERRORS} AS errors FROM {failures}
             GROUP BY fault HAVING {ERRORS} > 0 ORDER BY errors DESC, fault LIMIT 20"
        )
    })
}

fn codes(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let (failures, is_current) = both_periods(request, binder, Precision::Periods);
        format!(
            "SELECT canonical, category, errors, hidden, previous FROM (
               SELECT canonical, category,
                 sum(CASE WHEN is_current THEN errors ELSE 0 END) AS errors,
                 sum(CASE WHEN is_current AND hidden THEN errors ELSE 0 END) AS hidden,
                 sum(CASE WHEN is_current THEN 0 ELSE errors END) AS previous
               FROM (
                 SELECT {is_current} AS is_current, canonical, category, errors, hidden FROM {failures}
               ) AS named GROUP BY canonical, category
             ) AS counted WHERE errors > 0 ORDER BY errors DESC, canonical, category LIMIT 10"
        )
    })
}

fn services(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let failures = current(request, binder);
        let minutes = binder.minutes(&request.range);
        let filters = binder.filters(&request.values, &["service", "environment"]);
        format!(
            "SELECT service, sum(errors) AS errors, sum(hidden) AS hidden, sum(calls) AS calls,
               sum(failed_calls) AS failed_calls, sum(hidden_calls) AS hidden_calls
             FROM (
               SELECT service, {ERRORS} AS errors, {HIDDEN_ERRORS} AS hidden, 0 AS calls, 0 AS failed_calls,
                 0 AS hidden_calls
               FROM {failures} GROUP BY service HAVING {ERRORS} > 0
               UNION ALL
               SELECT service, 0 AS errors, 0 AS hidden, sum(calls) AS calls, sum(failures) AS failed_calls,
                 sum(hidden_failures) AS hidden_calls
               FROM calls WHERE {minutes}{filters} GROUP BY service
             ) AS counted GROUP BY service ORDER BY errors DESC, calls DESC, service LIMIT 10"
        )
    })
}

/// Returns the columns of a retry loop.
pub(super) fn retry_loop_columns() -> String {
    LOOP.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn retry_loops(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let within = binder.within("time", &request.range);
        let filters = binder.filters(&request.values, &["service"]);
        format!(
            "SELECT {} FROM retry_loops WHERE {within}{filters} ORDER BY attempts DESC, time DESC, client LIMIT 5",
            retry_loop_columns()
        )
    })
}

/// Builds the statement for services of which at least a quarter of the calls have no captured reply, as the finding
/// `reply_not_captured` of the view `conformance`.
fn not_captured(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let minutes = binder.minutes(&request.range);
        let filters = binder.filters(&request.values, &["service", "environment"]);
        format!(
            "SELECT service, calls, failed_calls, unverified_calls FROM (
               SELECT service, sum(calls) AS calls, sum(failures) AS failed_calls,
                 sum(unverified_calls) AS unverified_calls
               FROM calls WHERE {minutes}{filters} AND service IS NOT NULL GROUP BY service
             ) AS counted WHERE unverified_calls > 0 AND unverified_calls * 4 >= calls
             ORDER BY unverified_calls DESC, service LIMIT 100"
        )
    })
}

/// Returns these services, those without any captured reply first.
fn blind_services(rows: &[Row]) -> Vec<Value> {
    let (none, some): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| service_rows::capture(row) == "not_captured");
    let blind_service = |row: &Row| {
        json!({
            "service": text(row, "service"),
            "calls": whole(row, "unverified_calls"),
            "capture": service_rows::capture(row),
        })
    };
    none.into_iter().chain(some).map(blind_service).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_apart_by_period() {
        let row = |is_current: bool| Row::from_iter([("is_current".to_owned(), json!(is_current))]);
        let rows = [row(true), row(false), row(true)];
        let (current, previous) = by_period(&rows);
        assert_eq!((current.len(), previous.len()), (2, 1));
    }
}
