//! Tests of the shipped rules: they are valid, tested by promtool, use metrics that exist, and have a heading in the
//! runbook.

use super::super::support::{Folder, faultline, root};
use super::list::all_metrics;
use super::monitoring::Monitor;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Runs a tool in the root of the repository.
#[track_caller]
fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{program} is missing ({error}): install prometheus and prometheus-alertmanager, as tests/run does")
    });
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}:\n{said}");
    said.into_owned()
}

/// Returns the YAML files of a folder.
fn files(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(folder)).expect("the folder").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut files: Vec<_> =
        names.filter(|name| name.ends_with(".yml")).map(|name| format!("{folder}/{name}")).collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} is empty");
    files
}

fn text(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).expect("the file")
}

#[test]
fn promtool_and_amtool_find_nothing_wrong() {
    let rules = files("dashboards/prometheus");
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    tool("promtool", &[&["check", "rules", "--lint-fatal"], &*rules].concat());
    let config = tool("promtool", &["check", "config", "deploy/prometheus/prometheus.yml"]);
    assert!(config.contains("2 rule files found"), "{config}");
    tool("amtool", &["check-config", "deploy/alertmanager/alertmanager.yml"]);
    let tests = files("dashboards/prometheus/tests");
    let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
    tool("promtool", &[&["test", "rules"], &*tests].concat());
}

/// Guarantee: each alert has a severity that means something, all annotations, a heading in the runbook with its four
/// parts, and cases in which it fires and in which it does not.
#[test]
fn every_alert_is_complete() {
    let folder = Folder::new();
    let config = root().join("deploy/prometheus/prometheus.yml");
    let prometheus = Monitor::prometheus(&folder, &config);
    let answer = prometheus.get("/api/v1/rules?type=alert");
    let groups = answer["data"]["groups"].as_array().expect("groups");
    let alerts: Vec<&Value> =
        groups.iter().flat_map(|group| group["rules"].as_array().expect("rules")).collect();
    let runbook = text("dashboards/RUNBOOK.md");
    let tests: Vec<String> = files("dashboards/prometheus/tests").iter().map(|file| text(file)).collect();
    assert!(alerts.len() >= 20, "{} alerts", alerts.len());
    let mut headings = 0;
    for alert in &alerts {
        let name = alert["name"].as_str().expect("a name");
        let severity = alert["labels"]["severity"].as_str().unwrap_or_default();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}: {severity}");
        let annotations = &alert["annotations"];
        for annotation in ["summary", "description"] {
            assert!(
                annotations[annotation].as_str().is_some_and(|text| text.len() > 10),
                "{name}: {annotation}"
            );
        }
        let url = annotations["runbook_url"].as_str().unwrap_or_default();
        assert!(url.ends_with(&format!("/runbook#{}", name.to_lowercase())), "{name}: {url}");
        let section = runbook.split("\n## ").find(|section| section.lines().next() == Some(name));
        let section = section.unwrap_or_else(|| panic!("the runbook has no heading for {name}"));
        headings += 1;
        for part in ["**Meaning", "**Impact", "**Diagnosis", "**Mitigation", "```sql"] {
            assert!(section.contains(part), "{name}: {part} is missing");
        }
        let fires =
            |case: &&str| case.contains(&format!("alertname: {name}\n")) && case.contains("exp_annotations:");
        let file = tests.iter().find(|file| cases(file).any(|case| fires(&case)));
        let file = file.unwrap_or_else(|| panic!("{name} fires in no case"));
        let is_silent = |case: &&str| {
            let is_about = !case.contains("alertname=") || case.contains(&format!("alertname=\"{name}\""));
            is_about && case.contains("ALERTS") && !case.contains("exp_samples:")
        };
        assert!(cases(file).any(|case| is_silent(&case)), "{name} is silent in no case");
    }
    let all = runbook.lines().filter(|line| line.starts_with("## Faultline")).count();
    assert_eq!(all, headings, "the runbook has headings of alerts that do not exist");
}

/// Returns the cases of a file of tests.
fn cases(file: &str) -> impl Iterator<Item = &str> {
    file.split("\n      - ")
}

/// Guarantee: rules and their tests, dashboards, runbook and documents name no metric that does not exist.
#[test]
fn every_metric_that_is_named_exists() {
    let rules: String = files("dashboards/prometheus").iter().map(|file| text(file)).collect();
    let name = |line: &str| line.trim().strip_prefix("- name: ").map(str::to_owned);
    let groups: Vec<String> = rules.lines().filter_map(name).collect();
    let mut named = 0;
    for file in documents() {
        let text = std::fs::read_to_string(&file).expect("the file");
        for (place, _) in text.match_indices("faultline_") {
            let before = text[..place].chars().next_back();
            let word: String =
                text[place..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let after = text[place + word.len()..].chars().next();
            // This includes recorded series, whose names have colons around the metric, and groups of rules.
            let is_group = groups.contains(&word);
            if before == Some(':') || after == Some(':') || is_group || word.ends_with('_') {
                continue;
            }
            named += 1;
            let base =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(&word);
            let is_known = all_metrics().any(|metric| metric.name == word || metric.name == base);
            assert!(is_known, "{}: {word} is in no list", file.display());
        }
    }
    assert!(named > 100, "only {named} were looked at");
}

/// Returns the README and every text file that is shipped beside the code. Pictures are left out.
fn documents() -> Vec<PathBuf> {
    let mut files = vec![root().join("README.md")];
    let mut folders = vec![root().join("dashboards"), root().join("deploy"), root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ if entry.path().extension().is_some_and(|extension| extension == "png") => {}
                _ => files.push(entry.path()),
            }
        }
    }
    files
}

/// Guarantee: every statement of the runbook runs as it stands.
#[test]
fn the_sql_of_the_runbook_runs() {
    let folder = Folder::new();
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().expect("a path");
    let log = root().join("examples/fortnight.ndjson");
    faultline(&["ingest", "--quiet", "--data-dir", data_dir, log.to_str().expect("a path")]).ends_with(0);
    let runbook = text("dashboards/RUNBOOK.md");
    let statements: Vec<&str> =
        runbook.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(statements.len() >= 20);
    let script = folder.file("runbook.sql", statements.join(";\n"));
    faultline(&["sql", "--data-dir", data_dir, "--file", &script]).ends_with(0);
}
