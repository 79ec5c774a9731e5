//! Tests of the dashboards against Grafana's published schema, and of the provisioned files.

use super::super::otlp::client::python;
use super::super::support::root;
use super::{NAMES, dashboards, file, list, text};
use serde_json::Value;

/// Guarantee: every key and value of every dashboard is one that Grafana's schema has, down to options of panels,
/// overrides and queries.
#[test]
fn dashboards_follow_grafanas_schema() {
    let files: Vec<String> = NAMES.iter().map(|name| root().join(file(name)).display().to_string()).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let answer = python("schema.py", &files, b"");
    for (file, wrong) in answer["wrong"].as_object().expect("files") {
        assert!(list(wrong).is_empty(), "{file}: {wrong:#}");
    }
    assert!(answer["values"].as_u64() > Some(10_000), "{}", answer["values"]);
}

/// Guarantee: the data sources that dashboards choose by themselves are provisioned under these uids, names and
/// plugins, with nothing that would have to be edited, and the folder is the one that the documents name.
#[test]
fn what_is_provisioned_is_what_dashboards_expect() {
    let folder = root().join("deploy/grafana/provisioning");
    let read = |name: &str| python("yaml_as_json.py", &[folder.join(name).to_str().expect("a path")], b"");
    let sources = read("datasources/faultline.yml");
    let sources = list(&sources["datasources"]);
    for dashboard in dashboards() {
        let variables = dashboard.variables().iter().filter(|variable| variable["type"] == "datasource");
        for variable in variables {
            let source = sources.iter().find(|source| source["uid"] == variable["current"]["value"]);
            let source = source.unwrap_or_else(|| panic!("{}: {variable:#}", dashboard.name));
            assert_eq!(
                (&source["type"], &source["name"]),
                (&variable["query"], &variable["current"]["text"])
            );
        }
    }
    let postgres = &sources[1];
    assert_eq!(postgres["jsonData"]["database"], "faultline");
    assert_eq!(postgres["jsonData"]["sslmode"], "disable");
    assert_eq!(postgres["jsonData"]["postgresVersion"], 1500);
    let addresses =
        [&sources[0]["url"], &postgres["url"], &postgres["user"], &postgres["secureJsonData"]["password"]];
    let documented = std::fs::read_to_string(root().join("dashboards/README.md")).expect("the page");
    for address in addresses.map(text) {
        let variable = address.strip_prefix('$').expect("an environment variable");
        assert!(documented.contains(variable), "dashboards/README.md does not tell of {variable}");
    }
    let provider: Value = read("dashboards/faultline.yml")["providers"][0].clone();
    assert_eq!((&provider["folder"], &provider["allowUiUpdates"]), (&"Faultline".into(), &false.into()));
    assert!(documented.contains(text(&provider["options"]["path"])));
}
