//! `GET /api/v1/groups`: groups of failures in a range, with their state over all of history.
//!
//! A group is the set of failures with one fingerprint. Code, service, operation and template are the same in all of
//! its events, so the value of any event will do.

use super::failures::{Precision, failures};
use super::request::{ApiRequest, Problem, Row, list, series, take, text, whole};
use super::shape::{CATEGORY, COUNTS, Member, NULLABLE_TEXT, NULLABLE_TIME, RANGE, Shape, TIME};
use super::statement::{COUNT, HIDDEN, Statement, fault_column};
use super::{
    parameters::GROUP_STATES,
    range::{self, TimeRange},
};
use serde_json::{Value, json};

/// The members of a group.
pub(super) const GROUP: &[Member] = &[
    ("fingerprint", Shape::Text),
    ("canonical", Shape::Text),
    ("category", CATEGORY),
    ("fault", Shape::Optional(&Shape::Text)),
    ("service", NULLABLE_TEXT),
    ("operation", NULLABLE_TEXT),
    ("template", NULLABLE_TEXT),
    ("errors", Shape::Whole),
    ("hidden", Shape::Whole),
    ("clients", Shape::Whole),
    ("first_seen", Shape::Time),
    ("last_seen", Shape::Time),
    ("previous_seen", NULLABLE_TIME),
    ("state", Shape::Words(GROUP_STATES)),
    ("newest_message", NULLABLE_TEXT),
    ("newest_event_id", Shape::Text),
    ("trend", COUNTS),
];

const STATES: Shape =
    Shape::Object(&[&[("new", Shape::Whole), ("regressed", Shape::Whole), ("ongoing", Shape::Whole)]]);

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    RANGE,
    ("total_groups", Shape::Whole),
    ("total_errors", Shape::Whole),
    ("states", STATES),
    TIME,
    ("groups", Shape::List(&Shape::Object(&[GROUP]))),
]]);

/// SQL for the columns that are the same in all events of a group. Only the fault may differ; it is that of the newest
/// event.
pub(super) fn key_columns() -> String {
    format!(
        "max(canonical) AS canonical, max(category) AS category, \
         last_value({} ORDER BY time, event_id) AS fault, max(service) AS service, \
         max(operation) AS operation, max(template) AS template",
        fault_column()
    )
}

/// SQL for the state of a group. It uses the columns `first_seen`, `previous_seen` and `first_in_range`.
pub(super) fn state(from: &str) -> String {
    format!(
        "CASE WHEN first_seen >= {from} THEN 'new'
              WHEN previous_seen <= first_in_range - INTERVAL '3 days' THEN 'regressed'
              ELSE 'ongoing' END"
    )
}

/// The selection and order of the groups to list.
pub(super) struct Listing<'l> {
    /// The states to include; empty for all.
    pub(super) states: Vec<&'l str>,
    /// The column to sort by.
    pub(super) sort: &'l str,
    pub(super) limit: i64,
    pub(super) offset: i64,
}

pub(super) async fn respond(request: ApiRequest) -> Result<Value, Problem> {
    let values = &request.values;
    let listing = Listing {
        states: values.texts("state"),
        sort: values.text("sort").unwrap_or("errors"),
        limit: values.count("limit"),
        offset: values.count("offset"),
    };
    let [rows] = request.rows([statement(&request, &listing)]).await?;
    let state_count = |state: &str| rows.first().map_or(0, |row| whole(row, &format!("all_{state}")));
    let states: serde_json::Map<String, Value> =
        GROUP_STATES.iter().map(|state| ((*state).to_owned(), state_count(state).into())).collect();
    let total = |column: &str| rows.first().map_or(0, |row| whole(row, column));
    let (total_groups, total_errors) = (total("total_groups"), total("total_errors"));
    let mut groups = listed(rows);
    let trends = trends(&request, &groups).await?;
    for group in &mut groups {
        let of_group = trends.iter().filter(|row| text(row, "fingerprint") == text(group, "fingerprint"));
        let trend = series(&request.range, of_group, "errors");
        group.insert("trend".to_owned(), trend.into());
    }
    Ok(json!({
        "range": request.range.json(),
        "total_groups": total_groups,
        "total_errors": total_errors,
        "states": states,
        "time": request.range.times(),
        "groups": list(groups),
    }))
}

/// Returns the groups of a listing. The first row carries the totals, and may not be a group of the listing.
pub(super) fn listed(rows: Vec<Row>) -> Vec<Row> {
    let is_listed = |row: &Row| row.get("is_listed").and_then(Value::as_bool) == Some(true);
    let mut groups: Vec<Row> = rows.into_iter().filter(is_listed).collect();
    for group in &mut groups {
        for column in ["place", "is_listed", "is_wanted", "first_in_range", "total_groups", "total_errors"] {
            take(group, column);
        }
        GROUP_STATES.iter().for_each(|state| drop(take(group, &format!("all_{state}"))));
    }
    groups
}

/// Builds one statement for the groups and the totals. The totals are the same in every row.
pub(super) fn statement(request: &ApiRequest, listing: &Listing<'_>) -> Statement {
    Statement::build(|binder| {
        let within = binder.within("time", &request.range);
        let filters = binder.event_filters(&request.values, &["message", "template"]);
        let TimeRange { from: start, to: end, .. } = request.range;
        let periods = [(0, start), (start, end), (end, range::LAST_TIME)];
        let all = failures(binder, &request.range, &periods, "", Precision::Periods);
        let (before, since, from, to) = (
            binder.bind(range::text(start)),
            binder.bind(range::text(start)),
            binder.bind(range::text(start)),
            binder.bind(range::text(end)),
        );
        let key_columns = key_columns();
        let state = state(&from);
        let wanted = binder.any_of("state", &listing.states);
        let Listing { sort, limit, offset, .. } = listing;
        let last = offset + limit;
        format!(
            "WITH matched AS (
               SELECT fingerprint, {key_columns}, {COUNT} AS errors, {HIDDEN} AS hidden,
                 count(DISTINCT client) AS clients,
                 last_value(message ORDER BY time, event_id) AS newest_message,
                 last_value(event_id ORDER BY time, event_id) AS newest_event_id
               FROM errors WHERE {within}{filters} GROUP BY fingerprint
             ),
             history AS (
               SELECT fingerprint, min(first_seen) AS first_seen, max(last_seen) AS last_seen,
                 max(last_seen) FILTER (WHERE time < {before}) AS previous_seen,
                 min(first_seen) FILTER (WHERE time >= {since} AND time < {to}) AS first_in_range
               FROM {all} GROUP BY fingerprint
             ),
             stated AS (
               SELECT matched.*, first_seen, last_seen, previous_seen, first_in_range, {state} AS state
               FROM matched JOIN history ON matched.fingerprint = history.fingerprint
             ),
             wanted AS (SELECT *, (true{wanted}) AS is_wanted FROM stated),
             counted AS (
               SELECT *,
                 row_number() OVER (ORDER BY is_wanted DESC, {sort} DESC, errors DESC, fingerprint) AS place,
                 sum(CASE WHEN is_wanted THEN 1 ELSE 0 END) OVER () AS total_groups,
                 sum(CASE WHEN is_wanted THEN errors ELSE 0 END) OVER () AS total_errors,
                 sum(CASE WHEN state = 'new' THEN 1 ELSE 0 END) OVER () AS all_new,
                 sum(CASE WHEN state = 'regressed' THEN 1 ELSE 0 END) OVER () AS all_regressed,
                 sum(CASE WHEN state = 'ongoing' THEN 1 ELSE 0 END) OVER () AS all_ongoing
               FROM wanted
             )
             SELECT *, (is_wanted AND place > {offset} AND place <= {last}) AS is_listed FROM counted
             WHERE place = 1 OR (is_wanted AND place > {offset} AND place <= {last})
             ORDER BY place"
        )
    })
}

/// Queries the failures of groups by bucket.
async fn trends(request: &ApiRequest, groups: &[Row]) -> Result<Vec<Row>, Problem> {
    let fingerprints: Vec<&str> = groups.iter().filter_map(|group| text(group, "fingerprint")).collect();
    if fingerprints.is_empty() {
        return Ok(Vec::new());
    }
    let statement = Statement::build(|binder| {
        let slot = request.range.slot("time");
        let within = binder.within("time", &request.range);
        let filters = binder.event_filters(&request.values, &["message", "template"]);
        let these = binder.any_of("fingerprint", &fingerprints);
        format!(
            "SELECT fingerprint, slot, {COUNT} AS errors
             FROM (SELECT fingerprint, {slot} AS slot, represents FROM errors WHERE {within}{filters}{these}) AS slotted
             GROUP BY fingerprint, slot"
        )
    });
    let [rows] = request.rows([statement]).await?;
    Ok(rows)
}
