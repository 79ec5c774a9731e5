//! `GET /api/v1/groups/{fingerprint}`: one group of failures.
//!
//! It counts the events of the group regardless of their kind, since warnings may share the fingerprint too.

use super::facets;
use super::groups::{self, GROUP};
use super::meaning;
use super::overview;
use super::range;
use super::request::{ApiRequest, Problem, list, series, take, whole};
use super::shape::{COUNTS, NULLABLE_TEXT, RANGE, Shape, TIME};
use super::statement::{COUNT, EVENTS_ONCE, HIDDEN, Statement};
use serde_json::{Value, json};

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    RANGE,
    ("group", Shape::Object(&[GROUP])),
    ("total_errors", Shape::Whole),
    TIME,
    ("hidden_trend", COUNTS),
    ("meaning", meaning::NULLABLE),
    (
        "messages",
        Shape::List(&Shape::Object(&[&[
            ("message", NULLABLE_TEXT),
            ("errors", Shape::Whole),
            ("last_seen", Shape::Time),
            ("event_id", Shape::Text),
            ("hidden", Shape::Flag),
        ]])),
    ),
    ("facets", Shape::Map(&facets::SHAPE)),
    ("retry_loops", Shape::List(&overview::RETRY_LOOP)),
    ("sql", Shape::Text),
]]);

const FACETS: [(&str, &str); 9] = [
    ("operation", "operation"),
    ("client", "client"),
    ("service_version", "service_version"),
    ("environment", "environment"),
    ("native_code", "code"),
    ("session_id", "session_id"),
    ("trace_id", "trace_id"),
    ("finding", "unnest(findings)"),
    ("source", "source"),
];

pub(super) async fn respond(request: ApiRequest) -> Result<Value, Problem> {
    let facets = facets::statement(&FACETS, 10, |binder| {
        let fingerprint = binder.bind(request.id.clone());
        let within = binder.within("time", &request.range);
        let environment = binder.filters(&request.values, &["environment"]);
        format!("fingerprint = {fingerprint} AND {within}{environment}")
    });
    let statements =
        [history(&request), counts(&request), trend(&request), messages(&request), facets, loops(&request)];
    let [history, counts, trend, messages, facets, loops] = request.rows(statements).await?;
    let mut group =
        history.into_iter().next().filter(|row| whole(row, "total_errors") > 0).ok_or_else(|| {
            Problem::NotFound {
                message: format!("There is no group '{}'.", range::shortened(&request.id)),
                remedy: "It may be older than what is kept; GET /api/v1/groups lists those that are there.",
            }
        })?;
    let total_errors = take(&mut group, "total_errors");
    let meaning = meaning::of_event(request.api.rules.registry(), &group);
    for column in ["first_in_range", "dialect", "code"] {
        take(&mut group, column);
    }
    group.extend(counts.into_iter().next().unwrap_or_default());
    group.insert("trend".to_owned(), series(&request.range, &trend, "errors").into());
    Ok(json!({
        "range": request.range.json(),
        "group": group,
        "total_errors": total_errors,
        "time": request.range.times(),
        "hidden_trend": series(&request.range, &trend, "hidden"),
        "meaning": meaning,
        "messages": list(messages),
        "facets": facets::by_name(&FACETS, facets),
        "retry_loops": list(loops),
        "sql": sql(&request),
    }))
}

fn history(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let from = range::text(request.range.from);
        let (before, since, from, to) = (
            binder.bind(from.clone()),
            binder.bind(from.clone()),
            binder.bind(from),
            binder.bind(range::text(request.range.to)),
        );
        let fingerprint = binder.bind(request.id.clone());
        let (key_columns, state) = (groups::key_columns(), groups::state(&from));
        format!(
            "SELECT *, {state} AS state FROM (
               SELECT fingerprint, {key_columns}, {COUNT} AS total_errors,
                 min(time) AS first_seen, max(time) AS last_seen,
                 max(time) FILTER (WHERE time < {before}) AS previous_seen,
                 min(time) FILTER (WHERE time >= {since} AND time < {to}) AS first_in_range,
                 last_value(dialect ORDER BY time, event_id) AS dialect,
                 last_value(code ORDER BY time, event_id) AS code,
                 last_value(message ORDER BY time, event_id) AS newest_message,
                 last_value(event_id ORDER BY time, event_id) AS newest_event_id
               FROM {EVENTS_ONCE} WHERE fingerprint = {fingerprint} GROUP BY fingerprint
             ) AS history"
        )
    })
}

fn counts(request: &ApiRequest) -> Statement {
    in_range(request, |condition| {
        format!(
            "SELECT coalesce({COUNT}, 0) AS errors, coalesce({HIDDEN}, 0) AS hidden, count(DISTINCT client) AS clients
             FROM {EVENTS_ONCE} WHERE {condition}"
        )
    })
}

fn trend(request: &ApiRequest) -> Statement {
    let slot = request.range.slot("time");
    in_range(request, |condition| {
        format!(
            "SELECT slot, {COUNT} AS errors, {HIDDEN} AS hidden
             FROM (SELECT {slot} AS slot, represents, hidden FROM {EVENTS_ONCE} WHERE {condition}) AS slotted GROUP BY slot"
        )
    })
}

fn messages(request: &ApiRequest) -> Statement {
    in_range(request, |condition| {
        format!(
            "SELECT message, {COUNT} AS errors, max(time) AS last_seen,
               last_value(event_id ORDER BY time, event_id) AS event_id, bool_or(hidden) AS hidden
             FROM {EVENTS_ONCE} WHERE {condition} GROUP BY message ORDER BY last_seen DESC, event_id LIMIT 10"
        )
    })
}

fn in_range(request: &ApiRequest, write: impl FnOnce(String) -> String) -> Statement {
    Statement::build(|binder| {
        let fingerprint = binder.bind(request.id.clone());
        let within = binder.within("time", &request.range);
        let environment = binder.filters(&request.values, &["environment"]);
        write(format!("fingerprint = {fingerprint} AND {within}{environment}"))
    })
}

fn loops(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let fingerprint = binder.bind(request.id.clone());
        let within = binder.within("time", &request.range);
        let columns = overview::retry_loop_columns();
        format!(
            "SELECT {columns} FROM retry_loops WHERE fingerprint = {fingerprint} AND {within}
             ORDER BY time DESC, attempts DESC LIMIT 5"
        )
    })
}

/// Returns the statement for a person to continue with: as text, with its values written out.
fn sql(request: &ApiRequest) -> String {
    let quoted = |value: &str| format!("'{}'", value.replace('\'', "''"));
    let environments = request.values.texts("environment");
    let environment = match environments.as_slice() {
        [] => String::new(),
        [""] => "\n  AND environment IS NULL".to_owned(),
        named => {
            let named: Vec<String> = named.iter().map(|name| quoted(name)).collect();
            format!("\n  AND coalesce(environment, '') IN ({})", named.join(", "))
        }
    };
    format!(
        "SELECT time, message, client, operation, trace_id, event_id, details\nFROM events\nWHERE fingerprint = {}\n  \
         AND time >= {} AND time < {}{environment}\nORDER BY time DESC\nLIMIT 100",
        quoted(&request.id),
        quoted(&range::text(request.range.from)),
        quoted(&range::text(request.range.to)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_facet_is_a_column_of_events() {
        for (_, value) in FACETS {
            let column = value.trim_start_matches("unnest(").trim_end_matches(')');
            assert!(super::super::statement::has_column(store::Table::Events, column), "{column}");
        }
    }
}
