//! The queries of a panel, and their data sources.

use super::document::DashboardSet;
use super::source::{Kind, Query};
use super::words;
use anyhow::bail;
use serde_json::{Value, json};

/// A kind of data source, and the variable that selects one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DataSource {
    /// The plugin. `postgres` is an older alias of PostgreSQL's, which has this name since Grafana 10.2.
    plugin: &'static str,
    variable: &'static str,
}

pub(super) const PROMETHEUS: DataSource =
    DataSource { plugin: "prometheus", variable: "prometheus_datasource" };
pub(super) const POSTGRESQL: DataSource =
    DataSource { plugin: "grafana-postgresql-datasource", variable: "postgresql_datasource" };

impl DataSource {
    pub(super) fn reference(self) -> Value {
        json!({"type": self.plugin, "uid": format!("${{{}}}", self.variable)})
    }
}

/// Returns the data source of a panel's queries, which must all have the same one.
pub(super) fn data_source(queries: &[Query]) -> anyhow::Result<DataSource> {
    let is_sql = |query: &Query| query.sql.is_some();
    match queries {
        queries if queries.iter().all(is_sql) => Ok(POSTGRESQL),
        queries if !queries.iter().any(is_sql) => Ok(PROMETHEUS),
        _ => bail!("it asks in both PromQL and SQL"),
    }
}

/// Returns Grafana's letter for the query at an index.
pub(super) fn letter(index: usize) -> String {
    char::from(b'A' + u8::try_from(index % 26).unwrap_or(0)).to_string()
}

/// Returns a query in Grafana's JSON.
pub(super) fn json(set: &DashboardSet, kind: Kind, query: &Query, index: usize) -> anyhow::Result<Value> {
    let expand = |text: &str| words::expand(text, &set.style.fragments);
    match (&query.promql, &query.sql) {
        (Some(promql), None) => Ok(promql_target(&expand(promql)?, kind, query, index)),
        (None, Some(sql)) => Ok(sql_target(&expand(sql)?, kind, index)),
        _ => bail!("query {} is neither in PromQL nor in SQL, or in both", letter(index)),
    }
}

fn promql_target(expression: &str, kind: Kind, query: &Query, index: usize) -> Value {
    let now = query.now || kind == Kind::Table;
    json!({
        "refId": letter(index),
        "datasource": PROMETHEUS.reference(),
        "editorMode": "code",
        "expr": expression,
        "legendFormat": query.legend.as_deref().unwrap_or("__auto"),
        "instant": now,
        "range": !now,
        "exemplar": false,
        "format": if kind == Kind::Table { "table" } else { "time_series" },
    })
}

fn sql_target(sql: &str, kind: Kind, index: usize) -> Value {
    json!({
        "refId": letter(index),
        "datasource": POSTGRESQL.reference(),
        "editorMode": "code",
        "rawQuery": true,
        "rawSql": sql,
        "format": if kind == Kind::TimeSeries { "time_series" } else { "table" },
    })
}
