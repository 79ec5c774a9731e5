//! The outcomes of confirmations: the funnel of the trust view, and its tokens.

use super::request::{ApiRequest, Row, list, text, whole};
use super::shape::{Member, NULLABLE_NUMBER, NULLABLE_TEXT, NULLABLE_TIME, Shape};
use super::statement::Statement;
use serde_json::{Map, Value, json};

const TOKEN: &[Member] = &[
    ("token_hash", Shape::Text),
    ("service", NULLABLE_TEXT),
    ("operation", NULLABLE_TEXT),
    ("client", NULLABLE_TEXT),
    ("danger_level", NULLABLE_TEXT),
    ("state", Shape::Text),
    ("required_at", NULLABLE_TIME),
    ("granted_at", NULLABLE_TIME),
    ("used_at", NULLABLE_TIME),
    ("replayed_at", NULLABLE_TIME),
    ("attempts", Shape::Whole),
    ("refusals", Shape::Whole),
    ("seconds_to_use", NULLABLE_NUMBER),
    ("last_seen", Shape::Time),
];

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    ("required", Shape::Whole),
    ("granted", Shape::Whole),
    ("used", Shape::Whole),
    ("states", Shape::Map(&Shape::Whole)),
    ("median_seconds_to_use", NULLABLE_NUMBER),
    ("tokens", Shape::List(&Shape::Object(&[TOKEN]))),
]]);

const FILTERS: [&str; 3] = ["service", "client", "operation"];

/// Returns the statement for the counts by state. The row without a state is the total.
pub(super) fn counts(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let within = binder.within("last_seen", &request.range);
        let filters = binder.filters(&request.values, &FILTERS);
        format!(
            "SELECT state, count(*) AS tokens, count(required_at) AS required, count(granted_at) AS granted,
               count(used_at) AS used, median(seconds_to_use) AS median_seconds_to_use
             FROM confirmations WHERE {within}{filters} GROUP BY GROUPING SETS ((state), ())"
        )
    })
}

pub(super) fn tokens(request: &ApiRequest) -> Statement {
    let columns = TOKEN.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    Statement::build(|binder| {
        let within = binder.within("last_seen", &request.range);
        let filters = binder.filters(&request.values, &FILTERS);
        format!(
            "SELECT {columns} FROM confirmations WHERE {within}{filters}
             ORDER BY state IN ('replayed', 'invalid') DESC, last_seen DESC, token_hash LIMIT 100"
        )
    })
}

pub(super) fn respond(counts: &[Row], tokens: Vec<Row>) -> Value {
    let all = counts.iter().find(|row| text(row, "state").is_none());
    let of_all = |column: &str| all.map_or(0, |row| whole(row, column));
    let states: Map<String, Value> = counts
        .iter()
        .filter_map(|row| Some((text(row, "state")?.to_owned(), whole(row, "tokens").into())))
        .collect();
    json!({
        "required": of_all("required"),
        "granted": of_all("granted"),
        "used": of_all("used"),
        "states": states,
        "median_seconds_to_use": all.and_then(|row| row.get("median_seconds_to_use")),
        "tokens": list(tokens),
    })
}
