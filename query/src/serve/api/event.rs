//! `GET /api/v1/events/{event_id}`: one event with all its columns, and those around it.

use super::events;
use super::meaning;
use super::range;
use super::request::{ApiRequest, Problem, Row, list, text};
use super::shape::Shape;
use super::statement::Statement;
use serde_json::{Value, json};

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    ("event", Shape::Open(&[events::EVENT])),
    ("meaning", meaning::NULLABLE),
    ("related", Shape::List(&Shape::Object(&[events::EVENT]))),
]]);

const HOUR: i64 = 3_600_000_000;

pub(super) async fn respond(request: ApiRequest) -> Result<Value, Problem> {
    let event = find(&request).await?.ok_or_else(|| Problem::NotFound {
        message: format!("There is no event '{}'.", range::shortened(&request.id)),
        remedy: "It may be older than what is kept; GET /api/v1/events lists those that are there.",
    })?;
    let related = match related(&event) {
        Some(statement) => {
            let [rows] = request.rows([statement]).await?;
            rows
        }
        None => Vec::new(),
    };
    let meaning = meaning::of_event(request.api.rules.registry(), &event);
    Ok(json!({"event": event, "meaning": meaning, "related": list(related)}))
}

/// Searches around the time of the hint first, and then everywhere.
async fn find(request: &ApiRequest) -> Result<Option<Row>, Problem> {
    let now = request.values.now;
    let hint = request.values.text("time").map(|time| range::parse("time", time, now)).transpose()?;
    for hint in hint.map(Some).into_iter().chain([None]) {
        let [rows] = request.rows([by_id(&request.id, hint)]).await?;
        if let Some(event) = rows.into_iter().next() {
            return Ok(Some(event));
        }
    }
    Ok(None)
}

fn by_id(event_id: &str, hint: Option<i64>) -> Statement {
    Statement::build(|binder| {
        let id = binder.bind(event_id);
        let near = hint.map(|time| format!(" AND {}", binder.between("time", time - HOUR, time + HOUR)));
        format!("SELECT * FROM events WHERE event_id = {id}{} LIMIT 1", near.unwrap_or_default())
    })
}

/// Returns the statement for other events of the same trace within a day, or else of the same session within an hour.
fn related(event: &Row) -> Option<Statement> {
    let time = range::parse("time", text(event, "time")?, 0).ok()?;
    let event_id = text(event, "event_id")?;
    let (column, value, span) = match (text(event, "trace_id"), text(event, "session_id")) {
        (Some(trace), _) => ("trace_id", trace, 24 * HOUR),
        (None, Some(session)) => ("session_id", session, HOUR),
        (None, None) => return None,
    };
    Some(Statement::build(|binder| {
        let (value, id) = (binder.bind(value), binder.bind(event_id));
        let near = binder.between("time", (time - span).max(0), time + span);
        format!(
            "SELECT {} FROM events WHERE {column} = {value} AND event_id <> {id} AND {near}
             ORDER BY time, event_id LIMIT 50",
            events::columns()
        )
    }))
}
