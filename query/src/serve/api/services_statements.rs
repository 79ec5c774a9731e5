//! The statements of `GET /api/v1/services`.

use super::failures::{Precision, events, failures as failures_of};
use super::request::ApiRequest;
use super::statement::{Binder, COUNT, ERRORS, HIDDEN_ERRORS, Statement};

const FILTERS: [&str; 2] = ["service", "environment"];
/// The maximum number of services in a response, and of their operations.
const MOST: usize = 200;

/// The histogram columns of the view `calls`.
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

/// Builds the statement for calls and percentiles by service or by operation, over the view that counts each call once.
pub(super) fn calls(request: &ApiRequest, key: &str) -> Statement {
    Statement::build(|binder| {
        let minutes = binder.minutes(&request.range);
        let filters = binder.filters(&request.values, &FILTERS);
        let sums: Vec<String> = HISTOGRAM.iter().map(|column| format!("sum({column})")).collect();
        let quantile =
            |share: &str| format!("histogram_quantile({share}, sum(timed_calls), {})", sums.join(", "));
        format!(
            "SELECT {key}, sum(calls) AS calls, sum(failures) AS failed_calls, sum(hidden_failures) AS hidden_calls,
               sum(unverified_calls) AS unverified_calls, max(minute) AS last_call,
               {} AS p50_ms, {} AS p95_ms, {} AS p99_ms
             FROM calls WHERE {minutes}{filters} GROUP BY {key} ORDER BY calls DESC, {key} LIMIT {MOST}",
            quantile("0.5"),
            quantile("0.95"),
            quantile("0.99"),
        )
    })
}

/// Builds the statement for the series of each service: calls, and failures as the view `errors` counts them.
pub(super) fn trend(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let (call_slot, error_slot) = (request.range.slot("minute"), request.range.slot("time"));
        let minutes = binder.minutes(&request.range);
        let call_filters = binder.filters(&request.values, &FILTERS);
        let range = &request.range;
        let failures = failures_of(binder, range, &[(range.from, range.to)], &call_filters, Precision::Slots);
        format!(
            "SELECT service, slot, sum(calls) AS calls, sum(failed_calls) AS failed_calls,
               sum(hidden_calls) AS hidden_calls, sum(errors) AS errors, sum(hidden) AS hidden
             FROM (
               SELECT service, greatest({call_slot}, 0) AS slot, calls, failures AS failed_calls,
                 hidden_failures AS hidden_calls, 0 AS errors, 0 AS hidden
               FROM calls WHERE {minutes}{call_filters}
               UNION ALL
               SELECT service, {error_slot} AS slot, 0 AS calls, 0 AS failed_calls, 0 AS hidden_calls,
                 errors, CASE WHEN hidden THEN errors ELSE 0 END AS hidden
               FROM {failures}
             ) AS slotted GROUP BY service, slot"
        )
    })
}

/// Returns the events of the range with the filters.
fn events_of(request: &ApiRequest, binder: &mut Binder) -> String {
    let filters = binder.filters(&request.values, &FILTERS);
    let period = (request.range.from, request.range.to);
    events(binder, &request.range, &[period], &filters, Precision::Periods)
}

/// Returns a condition for the range with the filters.
fn current(request: &ApiRequest, binder: &mut Binder) -> String {
    let within = binder.within("time", &request.range);
    within + &binder.filters(&request.values, &FILTERS)
}

/// Builds the statement for failures by service or by operation. Names that only have other events are included.
pub(super) fn failures(request: &ApiRequest, key: &str) -> Statement {
    Statement::build(|binder| {
        let events = events_of(request, binder);
        format!(
            "SELECT {key}, max(last_seen) AS last_event,
               sum(errors) FILTER (WHERE kind = 'error') AS errors,
               sum(hidden) FILTER (WHERE kind = 'error') AS hidden,
               count(*) FILTER (WHERE kind = 'error') AS groups
             FROM (
               SELECT {key}, kind, fingerprint, max(last_seen) AS last_seen, {ERRORS} AS errors,
                 {HIDDEN_ERRORS} AS hidden
               FROM {events} GROUP BY {key}, kind, fingerprint HAVING {ERRORS} > 0
             ) AS grouped GROUP BY {key} ORDER BY errors DESC NULLS LAST, {key} LIMIT {MOST}"
        )
    })
}

/// Builds the statement for the properties of services: one row for each combination.
pub(super) fn traits(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let events = events_of(request, binder);
        let minutes = binder.minutes(&request.range);
        let filters = binder.filters(&request.values, &FILTERS);
        format!(
            "SELECT DISTINCT service, dialect, version, environment FROM (
               SELECT service, dialect, service_version AS version, environment FROM {events}
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
