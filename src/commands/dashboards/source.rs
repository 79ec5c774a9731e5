//! The format of `dashboards/grafana/source/*.toml`, with one type for each kind of table.
//!
//! Invariant: an unknown key is an error that names its line.

use serde::Deserialize;
use std::collections::BTreeMap;

/// One dashboard.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dashboard {
    /// The identifier of the dashboard. It must never change, since links and bookmarks contain it.
    pub(super) uid: String,
    pub(super) title: String,
    pub(super) about: String,
    /// The time range when the dashboard is opened, such as `now-3h`.
    pub(super) from: String,
    /// The refresh interval.
    pub(super) refresh: String,
    /// The label matcher for the alerts that concern this dashboard, which replaces `@alerts` in annotations.
    pub(super) alerts: String,
    /// The names of variables of the style, in the order in which they are shown.
    pub(super) variables: Vec<String>,
    pub(super) panel: Vec<Panel>,
}

/// One panel, or the heading of the panels that follow it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) kind: Kind,
    /// The description in the panel's corner: what it shows, and how to read it.
    #[serde(default)]
    pub(super) about: String,
    /// Width and height; a dashboard is 24 wide.
    #[serde(default = "whole_width")]
    pub(super) size: [u64; 2],
    pub(super) unit: Option<String>,
    pub(super) decimals: Option<u64>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    /// The name of thresholds of the style, which colour values.
    pub(super) thresholds: Option<String>,
    /// The names of palettes of the style, which colour series by their names.
    #[serde(default)]
    pub(super) palettes: Vec<String>,
    /// The name of a colour of the style, which is used for all series.
    pub(super) colour: Option<String>,
    /// True if the series are stacked.
    #[serde(default)]
    pub(super) stacked: bool,
    /// True if the graph has bars, for counts in each step, rather than lines.
    #[serde(default)]
    pub(super) bars: bool,
    /// The text that is shown when there is no data.
    pub(super) empty: Option<String>,
    /// The alerts whose sections in the runbook concern this panel.
    #[serde(default)]
    pub(super) runbook: Vec<String>,
    /// The names of links of the style, which every value gets.
    #[serde(default)]
    pub(super) links: Vec<String>,
    /// The column that a table is sorted by, the largest first.
    pub(super) sort: Option<String>,
    #[serde(default)]
    pub(super) query: Vec<Query>,
    /// The columns of a table, in order; other columns are not shown.
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

/// A query of a panel, in PromQL or in SQL.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Query {
    pub(super) promql: Option<String>,
    pub(super) sql: Option<String>,
    /// The name of each series.
    pub(super) legend: Option<String>,
    /// True if only the current value is queried, rather than one for every step.
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
    /// The colours by their meaning.
    pub(super) colours: BTreeMap<String, String>,
    /// The palettes: each maps known names to colours.
    pub(super) palettes: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) thresholds: BTreeMap<String, Vec<Step>>,
    /// The fragments of queries.
    pub(super) fragments: BTreeMap<String, String>,
    pub(super) variables: BTreeMap<String, Variable>,
    pub(super) links: BTreeMap<String, Link>,
    /// The annotations of every graph.
    pub(super) annotation: Vec<Annotation>,
}

/// A step of thresholds: values from `from` on have this colour. The first step has no `from`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) from: Option<f64>,
    pub(super) colour: String,
}

/// A variable that the user can set at the top of a dashboard.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variable {
    pub(super) kind: VariableKind,
    /// The name in queries, if it differs from the key in the style.
    pub(super) name: Option<String>,
    pub(super) label: String,
    /// The plugin of a data source.
    pub(super) plugin: Option<String>,
    /// The uid and the title of the data source that is selected by default.
    pub(super) uid: Option<String>,
    pub(super) title: Option<String>,
    pub(super) promql: Option<String>,
    pub(super) sql: Option<String>,
    /// A regular expression that filters the values that can be selected.
    pub(super) only: Option<String>,
    /// The value that represents all values, if all can be selected.
    pub(super) all: Option<String>,
    /// The palette whose names can be selected.
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
    /// The address of the collector, given by `--collector`.
    Collector,
}

/// A link to a dashboard or to another address.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) title: String,
    /// Another dashboard, by the name of its file, with the same time and data sources.
    pub(super) to: Option<String>,
    /// The variables whose values the target keeps.
    #[serde(default)]
    pub(super) keep: Vec<String>,
    /// The values of variables of the target.
    #[serde(default)]
    pub(super) with: BTreeMap<String, String>,
    /// Any other address.
    pub(super) url: Option<String>,
}

/// A query whose results are marked in graphs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Annotation {
    pub(super) name: String,
    pub(super) promql: String,
    pub(super) colour: String,
    pub(super) title: String,
    pub(super) text: String,
}
