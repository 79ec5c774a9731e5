//! The Grafana dashboards: well made, valid, and full of data.
//!
//! | file | proves |
//! |---|---|
//! | `files` | the files have one form; the command writes them |
//! | `lint` | the rules of Grafana's own linter, and additional ones |
//! | `schema` | Grafana's published schema, and the provisioned files |
//! | `live` | every query of every panel, sent to a real Prometheus and to the PostgreSQL endpoint |
//! | `filled` | how Grafana fills in a query before it sends it |

mod files;
mod filled;
mod lint;
mod live;
mod schema;

use super::support::root;
use serde_json::Value;

/// The dashboards by the names of their files.
const NAMES: [&str; 6] = ["overview", "service", "quotas", "trust", "explorer", "health"];

/// A committed dashboard.
struct Dashboard {
    name: &'static str,
    json: Value,
}

fn dashboards() -> Vec<Dashboard> {
    let read = |name: &'static str| {
        let text = std::fs::read_to_string(root().join(file(name))).expect("a dashboard");
        Dashboard { name, json: serde_json::from_str(&text).expect("JSON") }
    };
    NAMES.into_iter().map(read).collect()
}

fn file(name: &str) -> String {
    format!("dashboards/grafana/{name}.json")
}

/// Returns the items of a list.
#[track_caller]
fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// Returns a text.
#[track_caller]
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

impl Dashboard {
    /// Returns the panels of a dashboard, without the headings.
    fn panels(&self) -> impl Iterator<Item = &Value> {
        list(&self.json["panels"]).iter().filter(|panel| panel["type"] != "row")
    }

    fn variables(&self) -> &[Value] {
        list(&self.json["templating"]["list"])
    }

    /// Returns every text of a query, of panels, variables and annotations, with the name of its owner.
    fn queries(&self) -> Vec<(String, &str)> {
        let mut queries = Vec::new();
        for panel in self.panels() {
            for target in list(&panel["targets"]) {
                let query = target["expr"].as_str().or(target["rawSql"].as_str()).expect("a query");
                queries.push((self.place(panel), query));
            }
        }
        for variable in self.variables().iter().filter(|variable| variable["type"] == "query") {
            let query = variable["query"].as_str().or(variable["query"]["query"].as_str()).expect("a query");
            queries.push((format!("{}: variable {}", self.name, variable["name"]), query));
        }
        for annotation in list(&self.json["annotations"]["list"]).iter().filter(|one| one["expr"].is_string())
        {
            queries.push((format!("{}: annotation", self.name), text(&annotation["expr"])));
        }
        queries
    }

    /// Returns the name of a panel for messages.
    fn place(&self, panel: &Value) -> String {
        format!("{}: '{}'", self.name, text(&panel["title"]))
    }
}
