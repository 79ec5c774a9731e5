//! The set of all dashboards, and one of them as a Grafana document.

use super::source::{Annotation, Dashboard, Kind, Panel, Style, Variable, VariableKind};
use super::{layout, link, panel, query, variable, words};
use anyhow::{Context, anyhow, bail};
use serde_json::{Map, Value, json};

/// The version of Grafana's dashboard schema that is written: that of Grafana 12, which 11 and 13 also read.
const SCHEMA_VERSION: u64 = 41;

/// The tag of every dashboard; the links at the top of a dashboard find the others by it.
const TAG: &str = "faultline";

const STYLE: &str = include_str!("../../../dashboards/grafana/source/style.toml");

/// The dashboards, in the order in which they are listed.
const SOURCES: [(&str, &str); 6] = [
    ("overview", include_str!("../../../dashboards/grafana/source/overview.toml")),
    ("service", include_str!("../../../dashboards/grafana/source/service.toml")),
    ("quotas", include_str!("../../../dashboards/grafana/source/quotas.toml")),
    ("trust", include_str!("../../../dashboards/grafana/source/trust.toml")),
    ("explorer", include_str!("../../../dashboards/grafana/source/explorer.toml")),
    ("health", include_str!("../../../dashboards/grafana/source/health.toml")),
];

/// All dashboards, and the style that they share.
pub(super) struct DashboardSet {
    pub(super) style: Style,
    pub(super) collector: String,
    dashboards: Vec<(&'static str, Dashboard)>,
}

impl DashboardSet {
    /// Loads the dashboards of this version, for a collector at this address.
    pub(super) fn open(collector: &str) -> anyhow::Result<Self> {
        let style = toml::from_str(STYLE).with_context(|| file("style"))?;
        let read = |(name, text): (&'static str, &str)| {
            let dashboard = toml::from_str(text).with_context(|| file(name))?;
            Ok((name, dashboard))
        };
        let dashboards = SOURCES.into_iter().map(read).collect::<anyhow::Result<_>>()?;
        Ok(Self { style, collector: collector.to_owned(), dashboards })
    }

    pub(super) fn dashboards(&self) -> &[(&'static str, Dashboard)] {
        &self.dashboards
    }

    /// Returns a dashboard by the name of its file.
    pub(super) fn dashboard(&self, name: &str) -> anyhow::Result<&Dashboard> {
        let found = self.dashboards.iter().find(|(known, _)| *known == name);
        found.map(|(_, dashboard)| dashboard).ok_or_else(|| anyhow!("there is no dashboard '{name}'"))
    }

    /// Returns the variables of a dashboard, with the names that its queries use.
    pub(super) fn variables<'b>(
        &'b self,
        dashboard: &'b Dashboard,
    ) -> impl Iterator<Item = anyhow::Result<(&'b str, &'b Variable)>> {
        dashboard.variables.iter().map(|key| {
            let variable = self.style.variables.get(key);
            let variable = variable.ok_or_else(|| anyhow!("style.toml has no variable '{key}'"))?;
            Ok((variable.name.as_deref().unwrap_or(key), variable))
        })
    }

    /// Returns a dashboard as the text of a file.
    pub(super) fn json(&self, name: &str) -> anyhow::Result<String> {
        let dashboard = self.dashboard(name)?;
        let document = self.document(dashboard).with_context(|| file(name))?;
        Ok(format!("{:#}\n", sorted(document)))
    }

    fn document(&self, dashboard: &Dashboard) -> anyhow::Result<Value> {
        let variables = self.variables(dashboard).map(|found| {
            let (name, variable) = found?;
            variable::json(self, name, variable).with_context(|| format!("variable '{name}'"))
        });
        let variables = variables.collect::<anyhow::Result<Vec<_>>>()?;
        let annotations =
            self.style.annotation.iter().map(|annotation| self.annotation(dashboard, annotation));
        let mut annotations = annotations.collect::<anyhow::Result<Vec<_>>>()?;
        annotations.insert(0, grafanas_own_annotations());
        Ok(json!({
            "id": null,
            "uid": dashboard.uid,
            "title": dashboard.title,
            "description": dashboard.about,
            "tags": [TAG],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            // Manual changes would be lost with the next version.
            "editable": false,
            "graphTooltip": 1,
            "fiscalYearStartMonth": 0,
            "timezone": "browser",
            "time": {"from": dashboard.from, "to": "now"},
            "timepicker": {},
            "refresh": dashboard.refresh,
            "links": links_at_the_top(),
            "templating": {"list": variables},
            "annotations": {"list": annotations},
            "panels": self.panels(dashboard)?,
        }))
    }

    fn panels(&self, dashboard: &Dashboard) -> anyhow::Result<Vec<Value>> {
        let positions = layout::positions(dashboard.panel.iter().map(|panel| panel.size));
        let numbered = dashboard.panel.iter().zip(positions).zip(1..);
        let panels = numbered.map(|((source, place), id)| {
            check(source)
                .and_then(|()| panel::json(self, dashboard, source, place, id))
                .with_context(|| format!("panel '{}'", source.title))
        });
        panels.collect()
    }

    fn annotation(&self, dashboard: &Dashboard, annotation: &Annotation) -> anyhow::Result<Value> {
        let mut fragments = self.style.fragments.clone();
        fragments.insert("alerts".to_owned(), dashboard.alerts.clone());
        let expression = words::expand(&annotation.promql, &fragments)?;
        Ok(json!({
            "name": annotation.name,
            "datasource": query::PROMETHEUS.reference(),
            "enable": true,
            "hide": false,
            "iconColor": self.colour(&annotation.colour)?,
            "expr": expression,
            "titleFormat": annotation.title,
            "textFormat": annotation.text,
            "tagKeys": "severity",
            "useValueForTime": false,
        }))
    }

    /// Returns a colour by its name in the style.
    pub(super) fn colour(&self, name: &str) -> anyhow::Result<&str> {
        let found = self.style.colours.get(name);
        found.map(String::as_str).ok_or_else(|| anyhow!("style.toml has no colour '{name}'"))
    }

    /// Returns the URL of an alert's section in the runbook, relative to the variable that holds the collector's
    /// address.
    pub(super) fn runbook(&self, alert: &str) -> anyhow::Result<String> {
        let is_collector = |(_, variable): &(&String, &Variable)| variable.kind == VariableKind::Collector;
        let found = self.style.variables.iter().find(is_collector);
        let (name, _) = found.context("style.toml has no variable of the kind 'collector'")?;
        Ok(format!("${{{name}}}/runbook#{}", alert.to_lowercase()))
    }
}

/// Checks that a panel has everything it needs.
fn check(panel: &Panel) -> anyhow::Result<()> {
    let [width, height] = panel.size;
    match panel.kind {
        Kind::Row => Ok(()),
        _ if panel.about.is_empty() => bail!("it says nothing 'about' itself"),
        _ if panel.query.is_empty() => bail!("it has no query"),
        _ if !(1..=layout::COLUMNS).contains(&width) || height == 0 => {
            bail!("its size is {width} by {height}, and a dashboard is {} wide", layout::COLUMNS)
        }
        Kind::Table if panel.column.is_empty() => bail!("a table needs its columns"),
        _ => Ok(()),
    }
}

fn file(name: &str) -> String {
    format!("dashboards/grafana/source/{name}.toml")
}

/// Returns links to the other dashboards, which keep the time range and the variables, and to the runbook.
fn links_at_the_top() -> Value {
    let others = json!({
        "title": "Dashboards", "type": "dashboards", "url": "", "icon": "dashboard", "tooltip": "", "tags": [TAG],
        "asDropdown": false, "targetBlank": false, "includeVars": true, "keepTime": true,
    });
    json!([others, link::outside("Runbook", "${collector}/runbook")])
}

/// Returns the annotation query for the notes that users make in Grafana, which every dashboard made in Grafana also
/// has.
fn grafanas_own_annotations() -> Value {
    json!({
        "name": "Annotations & Alerts",
        "type": "dashboard",
        "builtIn": 1,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": true,
        "hide": true,
        "iconColor": "rgba(0, 211, 255, 1)",
    })
}

/// Returns the same value with the keys of its objects sorted, whatever features `serde_json` was built with.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut pairs: Vec<_> = object.into_iter().collect();
            pairs.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(pairs.into_iter().map(|(key, value)| (key, sorted(value))).collect::<Map<_, _>>())
        }
        Value::Array(values) => values.into_iter().map(sorted).collect(),
        other => other,
    }
}
