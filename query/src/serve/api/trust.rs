//! `GET /api/v1/trust`: denials due to missing trust or danger, and the outcomes of confirmations.

use super::confirmations;
use super::request::{ApiRequest, Problem, Row, list, series, text, whole};
use super::shape::{COUNTS, NULLABLE_TEXT, NULLABLE_WHOLE, RANGE, Shape, TIME};
use super::statement::Statement;
use serde_json::{Map, Value, json};

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    RANGE,
    ("series", Shape::Object(&[&[TIME, ("by_code", Shape::Map(&COUNTS))]])),
    ("total_denials", Shape::Whole),
    (
        "denials",
        Shape::List(&Shape::Object(&[&[
            ("service", NULLABLE_TEXT),
            ("operation", NULLABLE_TEXT),
            ("canonical", Shape::Text),
            ("required_trust", NULLABLE_TEXT),
            ("actual_trust", NULLABLE_TEXT),
            ("trust_gap", NULLABLE_WHOLE),
            ("danger_level", NULLABLE_TEXT),
            ("denials", Shape::Whole),
            ("clients", Shape::Whole),
            ("last_seen", Shape::Time),
            ("newest_event_id", Shape::Text),
        ]])),
    ),
    ("confirmations", confirmations::SHAPE),
]]);

const FILTERS: [&str; 4] = ["service", "environment", "client", "operation"];

pub(super) async fn respond(request: ApiRequest) -> Result<Value, Problem> {
    let statements = [
        counts(&request),
        denials(&request),
        confirmations::counts(&request),
        confirmations::tokens(&request),
    ];
    let [counts, denials, confirmation_counts, tokens] = request.rows(statements).await?;
    Ok(json!({
        "range": request.range.json(),
        "series": {"time": request.range.times(), "by_code": by_code(&request, &counts)},
        "total_denials": counts.iter().map(|row| whole(row, "denials")).sum::<i64>(),
        "denials": list(denials),
        "confirmations": confirmations::respond(&confirmation_counts, tokens),
    }))
}

fn by_code(request: &ApiRequest, rows: &[Row]) -> Value {
    let codes: std::collections::BTreeSet<&str> =
        rows.iter().filter_map(|row| text(row, "canonical")).collect();
    let of = |code: &str| {
        let of_code = rows.iter().filter(|row| text(row, "canonical") == Some(code));
        (code.to_owned(), series(&request.range, of_code, "denials").into())
    };
    codes.into_iter().map(of).collect::<Map<_, _>>().into()
}

fn counts(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let slot = request.range.slot("time");
        let within = binder.within("time", &request.range);
        let filters = binder.filters(&request.values, &FILTERS);
        format!(
            "SELECT canonical, slot, sum(represents) AS denials
             FROM (SELECT canonical, {slot} AS slot, represents FROM trust_denials WHERE {within}{filters}) AS slotted
             GROUP BY canonical, slot"
        )
    })
}

fn denials(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let within = binder.within("time", &request.range);
        let filters = binder.filters(&request.values, &FILTERS);
        format!(
            "SELECT service, operation, canonical, required_trust, actual_trust, trust_gap, danger_level,
               sum(represents) AS denials, count(DISTINCT client) AS clients, max(time) AS last_seen,
               last_value(event_id ORDER BY time, event_id) AS newest_event_id
             FROM trust_denials WHERE {within}{filters}
             GROUP BY service, operation, canonical, required_trust, actual_trust, trust_gap, danger_level
             ORDER BY denials DESC, last_seen DESC, newest_event_id LIMIT 100"
        )
    })
}
