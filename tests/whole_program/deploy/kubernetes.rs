//! The manifests.

use super::super::otlp::client::python;
use super::super::support::root;
use super::{PORTS, files, read, strings, yaml};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const FOLDER: &str = "deploy/kubernetes";
const RULES: &str = "deploy/kubernetes/prometheus-rule.yaml";

/// Returns all manifests by their kinds and names, each validated with the schema of its kind.
fn manifests() -> BTreeMap<(String, String), Value> {
    let paths: Vec<String> = files(FOLDER).iter().map(|path| path.display().to_string()).collect();
    let mut arguments: Vec<&str> = paths.iter().map(String::as_str).collect();
    arguments.retain(|path| path.ends_with(".yaml") && !path.ends_with("kustomization.yaml"));
    arguments.push("--kubernetes");
    let read = python("deploy.py", &arguments, b"");
    let documents =
        read.as_object().expect("files").values().flat_map(|file| file.as_array().expect("documents"));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    documents
        .map(|document| ((text(&document["kind"]), text(&document["metadata"]["name"])), document.clone()))
        .collect()
}

/// Guarantee: manifests fit their schemas; ports are those of the program, and the same everywhere; what is mounted is
/// there; nothing has more rights than it needs; a stop has the time that it takes.
#[test]
fn the_manifests_fit() {
    let manifests = manifests();
    let get = |kind: &str, name: &str| &manifests[&(kind.to_owned(), name.to_owned())];
    let set = &get("StatefulSet", "faultline")["spec"];
    let pod = &set["template"]["spec"];
    let container = &pod["containers"][0];
    let known: BTreeMap<&str, u64> =
        container["ports"].as_array().expect("ports").iter().map(port_of).collect();
    assert_eq!(
        known.values().copied().collect::<BTreeSet<_>>(),
        PORTS.iter().map(|(_, port)| *port).collect()
    );
    for service in ["faultline", "faultline-query"] {
        let service = &get("Service", service)["spec"];
        for port in service["ports"].as_array().expect("ports") {
            assert_eq!(
                Some(&port["port"].as_u64().expect("a port")),
                known.get(port["targetPort"].as_str().expect("a name"))
            );
        }
        assert_eq!(service["selector"], set["selector"]["matchLabels"]);
    }
    assert!(
        manifests
            .contains_key(&("Service".to_owned(), set["serviceName"].as_str().expect("a name").to_owned()))
    );
    for (probe, path) in
        [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")]
    {
        assert_eq!(container[probe]["httpGet"], serde_json::json!({"path": path, "port": "web"}), "{probe}");
    }
    let guarded = &container["securityContext"];
    assert_eq!(
        (&guarded["readOnlyRootFilesystem"], &guarded["capabilities"]["drop"][0]),
        (&true.into(), &"ALL".into())
    );
    assert_eq!(
        (&pod["securityContext"]["runAsNonRoot"], &pod["enableServiceLinks"]),
        (&true.into(), &false.into())
    );
    let user = format!("USER {0}:{0}", pod["securityContext"]["runAsUser"]);
    assert!(read("deploy/Dockerfile").contains(&user), "{user}");
    // A stop takes 30 seconds for running requests, and 10 for the last flushes.
    assert!(pod["terminationGracePeriodSeconds"].as_u64().is_some_and(|seconds| seconds > 40));
    assert_eq!(set["replicas"], 1);
    for port in get("NetworkPolicy", "faultline")["spec"]["ingress"]
        .as_array()
        .expect("rules")
        .iter()
        .flat_map(|rule| rule["ports"].as_array().expect("ports"))
    {
        assert!(known.values().any(|known| port["port"] == *known), "{port}");
    }
}

fn port_of(port: &Value) -> (&str, u64) {
    (port["name"].as_str().expect("a name"), port["containerPort"].as_u64().expect("a port"))
}

/// Guarantee: kustomize applies every manifest but the example of secrets, and generates the settings that are mounted.
#[test]
fn kustomize_names_every_file() {
    let kustomization = &yaml("deploy/kubernetes/kustomization.yaml")[0];
    let mut named: BTreeSet<&str> = strings(&kustomization["resources"]).into_iter().collect();
    named.extend(["kustomization.yaml", "secrets.example.yaml"]);
    named.extend(strings(&kustomization["configMapGenerator"][0]["files"]));
    let names: Vec<String> = files(FOLDER)
        .iter()
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(named, names.iter().map(String::as_str).collect());
    let generated = kustomization["configMapGenerator"][0]["name"].as_str().expect("a name");
    assert!(read("deploy/kubernetes/stateful-set.yaml").contains(&format!("name: {generated}\n")));
}

/// Returns the rules of `dashboards/` as one resource of the Prometheus operator.
fn rules() -> String {
    let mut text = "\
# dashboards/prometheus for the Prometheus operator. Written by a test from recording.yml and alerts.yml there: change those, and
# run tests/update-expected.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: faultline
spec:
  groups:
"
    .to_owned();
    for file in ["recording", "alerts"] {
        let rules = read(&format!("dashboards/prometheus/{file}.yml"));
        let (_, groups) = rules.split_once("\ngroups:\n").expect("groups");
        for line in groups.lines() {
            text.push_str(format!("  {line}").trim_end());
            text.push('\n');
        }
    }
    text
}

/// Guarantee: the operator loads the rules that promtool tests.
#[test]
fn the_rules_of_the_operator_are_those_of_the_dashboards() {
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(root().join(RULES), rules()).expect("the file can be written");
    }
    assert!(read(RULES) == rules(), "{RULES} is old: run tests/update-expected");
    let groups = |file: &str, path: &[&str]| {
        let document = yaml(file).swap_remove(0);
        path.iter().fold(document, |value, key| value[*key].clone())["groups"]
            .as_array()
            .expect("groups")
            .clone()
    };
    let both =
        [groups("dashboards/prometheus/recording.yml", &[]), groups("dashboards/prometheus/alerts.yml", &[])]
            .concat();
    assert_eq!(groups(RULES, &["spec"]), both);
}
