//! One panel in Grafana's JSON: its position, its queries, and its appearance.

use super::document::DashboardSet;
use super::layout::GridPosition;
use super::source::{Dashboard, Kind, Panel};
use super::{link, query, table};
use anyhow::anyhow;
use serde_json::{Map, Value, json};

pub(super) fn json(
    set: &DashboardSet,
    dashboard: &Dashboard,
    panel: &Panel,
    position: GridPosition,
    id: u64,
) -> anyhow::Result<Value> {
    let grid = json!({"x": position.x, "y": position.y, "w": position.width, "h": position.height});
    if panel.kind == Kind::Row {
        return Ok(json!({
            "id": id, "type": "row", "title": panel.title, "gridPos": grid, "collapsed": false, "panels": [],
        }));
    }
    let targets = panel.query.iter().enumerate();
    let targets = targets.map(|(position, query)| query::json(set, panel.kind, query, position));
    Ok(json!({
        "id": id,
        "type": plugin(panel.kind),
        "title": panel.title,
        "description": panel.about,
        "gridPos": grid,
        "datasource": query::data_source(&panel.query)?.reference(),
        "targets": targets.collect::<anyhow::Result<Vec<_>>>()?,
        "options": options(panel),
        "fieldConfig": {"defaults": defaults(set, dashboard, panel)?, "overrides": overrides(set, dashboard, panel)?},
        "transformations": table::transformations(panel),
        "links": link::to_runbook(set, &panel.runbook)?,
    }))
}

fn plugin(kind: Kind) -> &'static str {
    match kind {
        Kind::Row => "row",
        Kind::Stat => "stat",
        Kind::TimeSeries => "timeseries",
        Kind::BarGauge => "bargauge",
        Kind::Table => "table",
    }
}

/// Returns the defaults for every value without an override.
fn defaults(set: &DashboardSet, dashboard: &Dashboard, panel: &Panel) -> anyhow::Result<Value> {
    let mut defaults = Map::new();
    let mut insert = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            defaults.insert(key.to_owned(), value);
        }
    };
    insert("unit", panel.unit.as_deref().map(Value::from));
    insert("decimals", panel.decimals.map(Value::from));
    insert("min", panel.min.map(Value::from));
    insert("max", panel.max.map(Value::from));
    insert("noValue", panel.empty.as_deref().map(Value::from));
    insert("thresholds", Some(thresholds(set, panel.thresholds.as_deref())?));
    insert("color", Some(colour(set, panel)?));
    insert("links", Some(link::links(set, dashboard, &panel.links)?.into()));
    insert("custom", custom(panel));
    Ok(Value::Object(defaults))
}

/// Returns thresholds of the style. Without a name it returns a single neutral step, since Grafana would otherwise add
/// its own.
pub(super) fn thresholds(set: &DashboardSet, name: Option<&str>) -> anyhow::Result<Value> {
    let Some(name) = name else {
        let neutral = set.colour("neutral")?;
        return Ok(json!({"mode": "absolute", "steps": [{"color": neutral, "value": null}]}));
    };
    let steps = set.style.thresholds.get(name);
    let steps = steps.ok_or_else(|| anyhow!("style.toml has no thresholds '{name}'"))?.iter();
    let steps = steps.map(|step| Ok(json!({"color": set.colour(&step.colour)?, "value": step.from})));
    Ok(json!({"mode": "absolute", "steps": steps.collect::<anyhow::Result<Vec<_>>>()?}))
}

/// Returns the colour mode: a fixed colour, the thresholds, or a colour derived from the name of each series, which is
/// the same in every panel.
fn colour(set: &DashboardSet, panel: &Panel) -> anyhow::Result<Value> {
    Ok(match (&panel.colour, &panel.thresholds) {
        (Some(colour), _) => json!({"mode": "fixed", "fixedColor": set.colour(colour)?}),
        (None, Some(_)) if panel.kind != Kind::TimeSeries => json!({"mode": "thresholds"}),
        _ => json!({"mode": "palette-classic-by-name"}),
    })
}

fn custom(panel: &Panel) -> Option<Value> {
    match panel.kind {
        Kind::TimeSeries => Some(json!({
            "drawStyle": if panel.bars { "bars" } else { "line" },
            "lineWidth": 1,
            "fillOpacity": match (panel.stacked, panel.bars) { (_, true) => 80, (true, _) => 40, _ => 8 },
            "stacking": {"mode": if panel.stacked { "normal" } else { "none" }, "group": "A"},
            "showPoints": "never",
            "spanNulls": false,
            "axisSoftMin": 0,
            "thresholdsStyle": {"mode": if panel.thresholds.is_some() { "dashed" } else { "off" }},
        })),
        Kind::Table => Some(
            json!({"align": "auto", "cellOptions": {"type": "auto"}, "inspect": false, "filterable": false}),
        ),
        Kind::Row | Kind::Stat | Kind::BarGauge => None,
    }
}

/// Returns the overrides for the series in the palettes, and for the columns of a table.
fn overrides(set: &DashboardSet, dashboard: &Dashboard, panel: &Panel) -> anyhow::Result<Vec<Value>> {
    let mut overrides = Vec::new();
    for name in &panel.palettes {
        for (series, colour) in palette(set, name)? {
            let colour = json!({"mode": "fixed", "fixedColor": set.colour(colour)?});
            overrides.push(json!({
                "matcher": {"id": "byName", "options": series},
                "properties": [{"id": "color", "value": colour}],
            }));
        }
    }
    for column in &panel.column {
        overrides.push(table::column(set, dashboard, column)?);
    }
    Ok(overrides)
}

/// Returns the names in a palette with their colours.
pub(super) fn palette<'b>(
    set: &'b DashboardSet,
    name: &str,
) -> anyhow::Result<impl Iterator<Item = (&'b String, &'b String)>> {
    let palette = set.style.palettes.get(name);
    Ok(palette.ok_or_else(|| anyhow!("style.toml has no palette '{name}'"))?.iter())
}

fn options(panel: &Panel) -> Value {
    let now = panel.query.iter().any(|query| query.now || query.sql.is_some());
    let newest = json!({"calcs": ["lastNotNull"], "fields": "", "values": false});
    match panel.kind {
        Kind::Row => json!({}),
        Kind::Stat => json!({
            "reduceOptions": newest,
            "colorMode": if panel.thresholds.is_some() { "background" } else { "value" },
            "graphMode": if now { "none" } else { "area" },
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": "auto",
            "wideLayout": true,
            "showPercentChange": false,
        }),
        Kind::BarGauge => json!({
            "reduceOptions": newest,
            "displayMode": "basic",
            "orientation": "horizontal",
            "valueMode": "color",
            "namePlacement": "auto",
            "showUnfilled": true,
            "sizing": "auto",
            "minVizWidth": 8,
            "minVizHeight": 16,
            "maxVizHeight": 60,
        }),
        Kind::TimeSeries => json!({
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }),
        Kind::Table => json!({"showHeader": true, "cellHeight": "sm", "sortBy": table::sorted_by(panel)}),
    }
}
