//! What is written in `dashboards/grafana/source/*.toml`, as it is written: one type for each kind of table there.
//!
//! What always holds: a key that means nothing here is a mistake, with its line.

use serde::Deserialize;
use std::collections::BTreeMap;

/// One dashboard.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dashboard {
    /// Never changes: links and bookmarks name it.
    pub(super) uid: String,
    pub(super) title: String,
    pub(super) about: String,
    /// The time range when the dashboard is opened, such as `now-3h`.
    pub(super) from: String,
    /// The refresh interval.
    pub(super) refresh: String,
    /// Which alerts are about it: what `@alerts` stands for in annotations.
    pub(super) alerts: String,
    /// Variables of the style, in the order in which they are shown.
    pub(super) variables: Vec<String>,
    pub(super) panel: Vec<Panel>,
}

/// One panel, or the heading of those that follow it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) kind: Kind,
    /// The description in the panel's corner: what it shows, and what to make of it.
    #[serde(default)]
    pub(super) about: String,
    /// Width and height; a dashboard is 24 wide.
    #[serde(default = "whole_width")]
    pub(super) size: [u64; 2],
    pub(super) unit: Option<String>,
    pub(super) decimals: Option<u64>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    /// Thresholds of the style, which colour values.
    pub(super) thresholds: Option<String>,
    /// Palettes of the style, which colour series by their names.
    #[serde(default)]
    pub(super) palettes: Vec<String>,
    /// One colour of the style for everything.
    pub(super) colour: Option<String>,
    /// Series stand on each other.
    #[serde(default)]
    pub(super) stacked: bool,
    /// Counts of steps, rather than what goes on between them.
    #[serde(default)]
    pub(super) bars: bool,
    /// The text that is shown when there is no data.
    pub(super) empty: Option<String>,
    /// Alerts whose headings in the runbook are about this.
    #[serde(default)]
    pub(super) runbook: Vec<String>,
    /// Links of the style, from every value.
    #[serde(default)]
    pub(super) links: Vec<String>,
    /// The column that a table is sorted by, the largest first.
    pub(super) sort: Option<String>,
    #[serde(default)]
    pub(super) query: Vec<Query>,
    /// The columns of a table, in their order; others are not shown.
    #[serde(default)]
    pub(super) column: Vec<Column>,
}

fn whole_width() -> [u64; 2] {
    [super::layout::COLUMNS, 1]
}

/// The kind of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A heading.
    Row,
    Stat,
    TimeSeries,
    BarGauge,
    Table,
}

/// A question of a panel, in PromQL or in SQL.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Query {
    pub(super) promql: Option<String>,
    pub(super) sql: Option<String>,
    /// The name of each series.
    pub(super) legend: Option<String>,
    /// Only of now, rather than of every step.
    #[serde(default)]
    pub(super) now: bool,
}

/// A column of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    /// The name of the field in the result.
    pub(super) field: String,
    pub(super) title: Option<String>,
    pub(super) unit: Option<String>,
    pub(super) decimals: Option<u64>,
    pub(super) width: Option<u64>,
    pub(super) thresholds: Option<String>,
    pub(super) palette: Option<String>,
    #[serde(default)]
    pub(super) links: Vec<String>,
}

/// The style that all dashboards share.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Style {
    /// Colours by what they mean.
    pub(super) colours: BTreeMap<String, String>,
    /// The colour of each of a few known names.
    pub(super) palettes: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) thresholds: BTreeMap<String, Vec<Step>>,
    /// Pieces of queries.
    pub(super) fragments: BTreeMap<String, String>,
    pub(super) variables: BTreeMap<String, Variable>,
    pub(super) links: BTreeMap<String, Link>,
    /// The annotations in every graph.
    pub(super) annotation: Vec<Annotation>,
}

/// From this value on, this colour; the first step has no value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) from: Option<f64>,
    pub(super) colour: String,
}

/// A variable that can be chosen at the top of a dashboard.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variable {
    pub(super) kind: VariableKind,
    /// Its name, when it is not the one that the style has it under.
    pub(super) name: Option<String>,
    pub(super) label: String,
    /// The plugin of a data source.
    pub(super) plugin: Option<String>,
    /// The data source that is chosen when nobody chooses, by its uid and its name.
    pub(super) uid: Option<String>,
    pub(super) title: Option<String>,
    pub(super) promql: Option<String>,
    pub(super) sql: Option<String>,
    /// Only values that this matches can be chosen.
    pub(super) only: Option<String>,
    /// The value that stands for all values, if all can be chosen.
    pub(super) all: Option<String>,
    /// The palette whose names can be chosen.
    pub(super) palette: Option<String>,
}

/// The origin of the values of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum VariableKind {
    /// The data sources of a plugin.
    DataSource,
    /// The result of a query.
    Query,
    /// The names of a palette.
    Palette,
    /// A text that the user types.
    Text,
    /// The address of the collector, which `--collector` gives.
    Collector,
}

/// A link.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) title: String,
    /// Another dashboard, by the name of its file, with the same time and data sources.
    pub(super) to: Option<String>,
    /// Variables that keep their values there.
    #[serde(default)]
    pub(super) keep: Vec<String>,
    /// Values of its variables.
    #[serde(default)]
    pub(super) with: BTreeMap<String, String>,
    /// Any other address.
    pub(super) url: Option<String>,
}

/// A query whose answers are marks in time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Annotation {
    pub(super) name: String,
    pub(super) promql: String,
    pub(super) colour: String,
    pub(super) title: String,
    pub(super) text: String,
}
