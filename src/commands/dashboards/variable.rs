//! The variables at the top of a dashboard, as Grafana stores them.

use super::document::DashboardSet;
use super::query::{POSTGRESQL, PROMETHEUS};
use super::source::{Variable, VariableKind};
use super::words;
use anyhow::{Context, bail};
use serde_json::{Value, json};

/// Grafana's value for a hidden variable.
const HIDDEN: u64 = 2;
/// Grafana's value for a query that runs again whenever the time range changes.
const WITH_THE_TIME: u64 = 2;
/// Grafana's value for alphabetical order without regard to case.
const ALPHABETICAL: u64 = 5;
/// Grafana's type of a query of the form `label_values(...)`.
const LABEL_VALUES: u64 = 1;

pub(super) fn json(set: &DashboardSet, name: &str, variable: &Variable) -> anyhow::Result<Value> {
    let mut json = match variable.kind {
        VariableKind::DataSource => data_source(variable)?,
        VariableKind::Query => query(set, variable)?,
        VariableKind::Palette => palette(set, variable)?,
        VariableKind::Text => json!({
            "type": "textbox", "query": "", "current": {"text": "", "value": "", "selected": true},
            "options": [{"text": "", "value": "", "selected": true}],
        }),
        VariableKind::Collector => {
            let address = &set.collector;
            json!({
                "type": "constant", "query": address, "hide": HIDDEN, "skipUrlSync": true,
                "current": {"text": address, "value": address, "selected": true},
                "options": [{"text": address, "value": address, "selected": true}],
            })
        }
    };
    json["name"] = name.into();
    json["label"] = variable.label.as_str().into();
    Ok(json)
}

fn data_source(variable: &Variable) -> anyhow::Result<Value> {
    let plugin = variable.plugin.as_deref().context("a data source needs its 'plugin'")?;
    let uid = variable.uid.as_deref().context("a data source needs the 'uid' of the usual one")?;
    let title = variable.title.as_deref().context("a data source needs the 'title' of the usual one")?;
    Ok(json!({
        "type": "datasource", "query": plugin, "refresh": 1, "regex": "", "multi": false, "includeAll": false,
        "options": [], "current": {"text": title, "value": uid, "selected": true},
    }))
}

fn query(set: &DashboardSet, variable: &Variable) -> anyhow::Result<Value> {
    let expand = |text: &str| words::expand(text, &set.style.fragments);
    let (source, query) = match (&variable.promql, &variable.sql) {
        (Some(promql), None) => {
            let query = expand(promql)?;
            (PROMETHEUS, json!({"query": query, "qryType": LABEL_VALUES, "refId": "A"}))
        }
        (None, Some(sql)) => (POSTGRESQL, json!(expand(sql)?)),
        _ => bail!("it needs a query in either PromQL or SQL"),
    };
    let mut json = json!({
        "type": "query", "datasource": source.reference(), "query": query, "refresh": WITH_THE_TIME,
        "sort": ALPHABETICAL, "regex": variable.only.as_deref().unwrap_or_default(), "options": [],
        "multi": false, "includeAll": false, "allowCustomValue": false, "current": {"text": "", "value": ""},
    });
    if let Some(all) = &variable.all {
        json["multi"] = json!(true);
        json["includeAll"] = json!(true);
        json["allValue"] = json!(all);
        json["current"] = json!({"text": ["All"], "value": ["$__all"], "selected": true});
    }
    Ok(json)
}

/// Returns a variable for which the user selects several names of a palette, or all.
fn palette(set: &DashboardSet, variable: &Variable) -> anyhow::Result<Value> {
    let palette = variable.palette.as_deref().and_then(|name| set.style.palettes.get(name));
    let names: Vec<&str> =
        palette.context("it needs a 'palette' of the style")?.keys().map(String::as_str).collect();
    let option = |name: &&str| json!({"text": name, "value": name, "selected": false});
    let all = json!({"text": "All", "value": "$__all", "selected": true});
    let options: Vec<Value> = [all].into_iter().chain(names.iter().map(option)).collect();
    Ok(json!({
        "type": "custom", "query": names.join(","), "multi": true, "includeAll": true, "allowCustomValue": false,
        "options": options, "current": {"text": ["All"], "value": ["$__all"], "selected": true},
    }))
}
