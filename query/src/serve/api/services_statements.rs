//! The statements of `GET /api/v1/services`.

use super::request::ApiRequest;
use super::statement::{Binder, COUNT, EVENTS_ONCE, HIDDEN, Statement, has_column};
use store::Table;

const FILTERS: [&str; 2] = ["service", "environment"];
/// The maximum number of services in a response, and of their operations.
const MOST: usize = 200;

/// The histogram columns of `traffic`.
const HISTOGRAM: [&str; 14] = [
    "took_at_most_1ms",
    "took_at_most_2_5ms",
    "took_at_most_5ms",
    "took_at_most_10ms",
    "took_at_most_25ms",
    "took_at_most_50ms",
    "took_at_most_100ms",
    "took_at_most_250ms",
    "took_at_most_500ms",
    "took_at_most_1s",
    "took_at_most_2_5s",
    "took_at_most_5s",
    "took_at_most_10s",
    "took_at_most_30s",
];

/// Builds the statement for calls and percentiles by service or by operation. Calls are counted once, as in the view
/// `error_rates`: the report of a caller counts only where no server reports calls of that operation in that minute.
pub(super) fn calls(request: &ApiRequest, key: &str) -> Statement {
    Statement::build(|binder| {
        let minutes = [(); 3].map(|()| binder.minutes(&request.range));
        let filters = binder.filters(&request.values, &FILTERS);
        let sums: Vec<String> = HISTOGRAM.iter().map(|column| format!("sum({column})")).collect();
        let quantile =
            |share: &str| format!("histogram_quantile({share}, sum(timed_calls), {})", sums.join(", "));
        let unverified = if has_column(Table::Traffic, "unverified_calls") {
            "unverified_calls"
        } else {
            "CAST(NULL AS bigint)"
        };
        format!(
            "WITH answered AS (
               SELECT DISTINCT minute, coalesce(operation, '') AS operation FROM traffic
               WHERE {} AND (span_kind IS NULL OR span_kind NOT IN ('client', 'producer'))
             ),
             once AS (
               SELECT * FROM traffic WHERE {} AND NOT coalesce(span_kind IN ('client', 'producer'), false)
               UNION ALL
               SELECT reported.* FROM (SELECT * FROM traffic WHERE {} AND span_kind IN ('client', 'producer')) AS reported
               LEFT ANTI JOIN answered
                 ON reported.minute = answered.minute AND coalesce(reported.operation, '') = answered.operation
             )
             SELECT {key}, sum(calls) AS calls, sum(failures) AS failed_calls, sum(hidden_failures) AS hidden_calls,
               sum({unverified}) AS unverified_calls, max(minute) AS last_call,
               {} AS p50_ms, {} AS p95_ms, {} AS p99_ms
             FROM once WHERE true{filters} GROUP BY {key} ORDER BY calls DESC, {key} LIMIT {MOST}",
            minutes[0],
            minutes[1],
            minutes[2],
            quantile("0.5"),
            quantile("0.95"),
            quantile("0.99"),
        )
    })
}

pub(super) fn trend(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let slot = request.range.slot("minute");
        let minutes = binder.minutes(&request.range);
        let filters = binder.filters(&request.values, &FILTERS);
        format!(
            "SELECT service, slot, sum(calls) AS calls, sum(failures) AS failed_calls,
               sum(hidden_failures) AS hidden_calls
             FROM (
               SELECT service, greatest({slot}, 0) AS slot, calls, failures, hidden_failures FROM error_rates
               WHERE {minutes}{filters}
             ) AS slotted GROUP BY service, slot"
        )
    })
}

/// Returns a condition for the range with the filters.
fn current(request: &ApiRequest, binder: &mut Binder) -> String {
    let within = binder.within("time", &request.range);
    within + &binder.filters(&request.values, &FILTERS)
}

/// Builds the statement for failures by service. Services that only have other events are included.
pub(super) fn failures(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let condition = current(request, binder);
        format!(
            "SELECT service, max(time) AS last_event,
               {COUNT} FILTER (WHERE kind = 'error') AS errors, {HIDDEN} FILTER (WHERE kind = 'error') AS hidden,
               count(DISTINCT fingerprint) FILTER (WHERE kind = 'error') AS groups
             FROM {EVENTS_ONCE} WHERE {condition} GROUP BY service ORDER BY errors DESC NULLS LAST, service LIMIT {MOST}"
        )
    })
}

/// Builds the statement for the properties of services: one row for each combination.
pub(super) fn traits(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let condition = current(request, binder);
        let minutes = binder.minutes(&request.range);
        let filters = binder.filters(&request.values, &FILTERS);
        format!(
            "SELECT DISTINCT service, dialect, version, environment FROM (
               SELECT service, dialect, service_version AS version, environment FROM events WHERE {condition}
               UNION ALL
               SELECT service, dialect, CAST(NULL AS varchar) AS version, environment FROM traffic
               WHERE {minutes}{filters}
             ) AS known ORDER BY service, dialect, version, environment LIMIT 10000"
        )
    })
}

/// Builds the statement for findings as in the view `conformance`, for a range.
pub(super) fn findings(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let (found, total) = (current(request, binder), current(request, binder));
        format!(
            "WITH found AS (
               SELECT service, dialect, finding, {COUNT} AS errors,
                 last_value(message ORDER BY time, event_id) AS example,
                 last_value(event_id ORDER BY time, event_id) AS example_event_id
               FROM (
                 SELECT service, dialect, time, event_id, message, represents, unnest(findings) AS finding
                 FROM errors WHERE {found}
               ) AS unnested GROUP BY service, dialect, finding
             ),
             totals AS (
               SELECT service, dialect, {COUNT} AS errors FROM errors WHERE {total} GROUP BY service, dialect
             )
             SELECT found.service, found.dialect, finding, found.errors,
               found.errors / CAST(totals.errors AS double precision) AS share, example, example_event_id
             FROM found
             JOIN totals ON found.dialect = totals.dialect AND (found.service IS NOT DISTINCT FROM totals.service)
             ORDER BY share DESC, finding, found.dialect LIMIT 5000"
        )
    })
}
