//! `GET /api/v1/names`: the names that filters can choose from.

use super::request::{ApiRequest, Problem, Row, text};
use super::shape::{Shape, TEXTS};
use super::statement::Statement;
use serde_json::{Value, json};

pub(super) const SHAPE: Shape = Shape::Object(&[&[("services", TEXTS), ("environments", TEXTS)]]);

pub(super) async fn respond(request: ApiRequest) -> Result<Value, Problem> {
    let statements = ["service", "environment"].map(|column| names(&request, column));
    let [services, environments] = request.rows(statements).await?;
    Ok(json!({"services": values(&services), "environments": values(&environments)}))
}

/// Builds the statement for the values of a column of calls and events, those with the most calls and events first.
fn names(request: &ApiRequest, column: &str) -> Statement {
    Statement::build(|binder| {
        let (minutes, within) = (binder.minutes(&request.range), binder.within("time", &request.range));
        format!(
            "SELECT name FROM (
               SELECT {column} AS name, sum(calls) AS n FROM traffic WHERE {minutes} GROUP BY {column}
               UNION ALL
               SELECT {column} AS name, count(*) AS n FROM events WHERE {within} GROUP BY {column}
             ) AS named WHERE name IS NOT NULL GROUP BY name ORDER BY sum(n) DESC, name LIMIT 500"
        )
    })
}

fn values(rows: &[Row]) -> Vec<&str> {
    rows.iter().filter_map(|row| text(row, "name")).collect()
}
