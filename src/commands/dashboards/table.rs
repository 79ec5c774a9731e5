//! The columns of a table: their order, names, units, colours and links.
//!
//! A column keeps the field name of the query result, so that links can refer to it; only the displayed title differs.

use super::document::DashboardSet;
use super::source::{Column, Dashboard, Kind, Panel};
use super::{link, panel};
use serde_json::{Map, Value, json};

/// Returns transformations that yield one row for each set of labels, with the columns in order. SQL results need none.
pub(super) fn transformations(panel: &Panel) -> Vec<Value> {
    if panel.kind != Kind::Table || panel.query.iter().any(|query| query.sql.is_some()) {
        return Vec::new();
    }
    let order: Map<_, _> =
        panel.column.iter().enumerate().map(|(index, column)| (column.field.clone(), json!(index))).collect();
    let ordered = json!({
        "id": "organize",
        "options": {"excludeByName": {"Time": true}, "indexByName": order, "renameByName": {}},
    });
    match panel.query.len() {
        1 => vec![ordered],
        _ => vec![json!({"id": "merge", "options": {}}), ordered],
    }
}

/// Returns the overrides for a column.
pub(super) fn column(set: &DashboardSet, dashboard: &Dashboard, column: &Column) -> anyhow::Result<Value> {
    let mut properties = Vec::new();
    let mut insert = |id: &str, value: Value| properties.push(json!({"id": id, "value": value}));
    if let Some(title) = &column.title {
        insert("displayName", json!(title));
    }
    if let Some(unit) = &column.unit {
        insert("unit", json!(unit));
    }
    if let Some(decimals) = column.decimals {
        insert("decimals", json!(decimals));
    }
    if let Some(width) = column.width {
        insert("custom.width", json!(width));
    }
    if let Some(thresholds) = &column.thresholds {
        insert("thresholds", panel::thresholds(set, Some(thresholds))?);
        insert("color", json!({"mode": "thresholds"}));
        insert("custom.cellOptions", json!({"type": "color-text"}));
    }
    if let Some(palette) = &column.palette {
        insert("mappings", json!([mapping(set, palette)?]));
        insert("custom.cellOptions", json!({"type": "color-text"}));
    }
    if !column.links.is_empty() {
        insert("links", link::links(set, dashboard, &column.links)?.into());
    }
    Ok(json!({"matcher": {"id": "byName", "options": column.field}, "properties": properties}))
}

/// Returns a value mapping that colours cells which contain a name of a palette.
fn mapping(set: &DashboardSet, palette: &str) -> anyhow::Result<Value> {
    let mut options = Map::new();
    for (index, (name, colour)) in panel::palette(set, palette)?.enumerate() {
        options.insert(name.clone(), json!({"index": index, "color": set.colour(colour)?}));
    }
    Ok(json!({"type": "value", "options": options}))
}

/// Returns the sort order of the table. Grafana identifies the column by its displayed name.
pub(super) fn sorted_by(panel: &Panel) -> Vec<Value> {
    let column = panel.column.iter().find(|column| Some(&column.field) == panel.sort.as_ref());
    let name = |column: &Column| column.title.clone().unwrap_or_else(|| column.field.clone());
    column.map(|column| json!({"displayName": name(column), "desc": true})).into_iter().collect()
}
