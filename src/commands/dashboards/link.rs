//! Links to another dashboard with the same time and data sources, to the runbook, or to any other address.

use super::document::DashboardSet;
use super::source::{Dashboard, Link, VariableKind};
use anyhow::{anyhow, bail};
use serde_json::{Value, json};

/// Returns the links with these names in the style, as seen from a dashboard.
pub(super) fn links(set: &DashboardSet, from: &Dashboard, names: &[String]) -> anyhow::Result<Vec<Value>> {
    let link = |name: &String| {
        let link = set.style.links.get(name);
        let link = link.ok_or_else(|| anyhow!("style.toml has no link '{name}'"))?;
        Ok(json!({"title": link.title, "url": url(set, from, link)?, "targetBlank": link.url.is_some()}))
    };
    names.iter().map(link).collect()
}

fn url(set: &DashboardSet, from: &Dashboard, link: &Link) -> anyhow::Result<String> {
    match (&link.to, &link.url) {
        (Some(to), None) => {
            let to = set.dashboard(to)?;
            let mut parameters = shared_data_sources(set, from, to)?;
            parameters.push("${__url_time_range}".to_owned());
            parameters.extend(link.keep.iter().map(|name| format!("${{{name}:queryparam}}")));
            parameters.extend(link.with.iter().map(|(name, value)| format!("var-{name}={value}")));
            Ok(format!("/d/{}?{}", to.uid, parameters.join("&")))
        }
        (None, Some(url)) => Ok(url.clone()),
        _ => bail!("the link '{}' needs either 'to' or 'url'", link.title),
    }
}

/// Returns the URL parameters of the data source variables that both dashboards have.
fn shared_data_sources(set: &DashboardSet, from: &Dashboard, to: &Dashboard) -> anyhow::Result<Vec<String>> {
    let mut shared = Vec::new();
    for variable in set.variables(from) {
        let (name, variable) = variable?;
        if variable.kind == VariableKind::DataSource && to.variables.iter().any(|key| key == name) {
            shared.push(format!("${{{name}:queryparam}}"));
        }
    }
    Ok(shared)
}

/// Returns the links from a panel's corner to the runbook.
pub(super) fn to_runbook(set: &DashboardSet, alerts: &[String]) -> anyhow::Result<Vec<Value>> {
    let link = |alert: &String| {
        let (title, url) = (format!("Runbook: {alert}"), set.runbook(alert)?);
        Ok(outside(&title, &url))
    };
    alerts.iter().map(link).collect()
}

/// Returns a link to something other than a dashboard, with all the fields that Grafana stores.
pub(super) fn outside(title: &str, url: &str) -> Value {
    json!({
        "title": title, "type": "link", "url": url, "icon": "doc", "tooltip": "", "tags": [], "asDropdown": false,
        "targetBlank": true, "includeVars": false, "keepTime": false,
    })
}
