//! The most frequent values of columns, which help to narrow a query further.

use super::request::{Row, take, text};
use super::shape::{NULLABLE_TEXT, Shape};
use super::statement::{Binder, COUNT, EVENTS_ONCE, Statement};
use serde_json::{Map, Value};

/// The shape of the values of one facet.
pub(super) const SHAPE: Shape = Shape::List(&Shape::Object(&[&[
    ("value", NULLABLE_TEXT),
    ("errors", Shape::Whole),
    ("last_seen", Shape::Time),
]]));

/// Builds a statement for the most frequent values of each facet, which has a name and SQL for its value. `condition`
/// writes the condition that selects rows of `events`.
pub(super) fn statement(
    facets: &[(&str, &str)],
    most: usize,
    mut condition: impl FnMut(&mut Binder) -> String,
) -> Statement {
    Statement::build(|binder| {
        let parts: Vec<String> = facets
            .iter()
            .map(|(name, value)| {
                let condition = condition(binder);
                format!(
                    "(SELECT '{name}' AS facet, value, {COUNT} AS errors, max(time) AS last_seen
                      FROM (SELECT {value} AS value, represents, time FROM {EVENTS_ONCE} WHERE {condition}) AS valued
                      GROUP BY value ORDER BY errors DESC, value LIMIT {most})"
                )
            })
            .collect();
        format!("SELECT * FROM ({}) AS facets ORDER BY facet, errors DESC, value", parts.join(" UNION ALL "))
    })
}

/// Returns the values by facet. Every facet is included, even without values.
pub(super) fn by_name(facets: &[(&str, &str)], rows: Vec<Row>) -> Value {
    let mut object: Map<String, Value> =
        facets.iter().map(|(name, _)| ((*name).to_owned(), Value::Array(Vec::new()))).collect();
    for mut row in rows {
        let name = text(&row, "facet").unwrap_or_default().to_owned();
        take(&mut row, "facet");
        if let Some(values) = object.get_mut(&name).and_then(Value::as_array_mut) {
            values.push(row.into());
        }
    }
    object.into()
}
