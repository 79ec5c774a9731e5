//! Checks the rules of Grafana's dashboard linter, and additional ones: that everything that a dashboard names exists,
//! and that the same thing looks the same everywhere.

use super::super::metrics::list::all_metrics;
use super::super::support::root;
use super::{Dashboard, dashboards, list, text};
use classifier::{Category, DangerLevel, QuotaLevel, Severity};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Units that dashboards may use, by Grafana's names for them.
const UNITS: [&str; 13] = [
    "none",
    "locale",
    "percentunit",
    "s",
    "ms",
    "bytes",
    "Bps",
    "reqps",
    "cps",
    "ops",
    "dateTimeFromNow",
    "dateTimeAsIso",
    "bool_yes_no",
];

/// Ranges that are not the panel's own, each with the reason.
const OTHER_RANGES: [(&str, &str); 2] = [
    ("deriv(faultline_quota_usage_ratio", "the pace of half an hour, as FaultlineQuotaRunningOut has it"),
    (
        "max_over_time(faultline_build_info",
        "a collector is known for six hours, as FaultlineCollectorDown has it",
    ),
];

/// Labels that Prometheus adds, and those of its own alert series.
const GIVEN: [&str; 6] = ["job", "instance", "le", "alertname", "alertstate", "severity"];

/// Metrics of every process, and those that Prometheus makes itself.
const OF_OTHERS: [&str; 6] = [
    "ALERTS",
    "ALERTS_FOR_STATE",
    "up",
    "process_start_time_seconds",
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
];

#[test]
fn every_dashboard_is_found_the_same_way() {
    let mut uids = BTreeSet::new();
    for dashboard in dashboards() {
        let json = &dashboard.json;
        let name = dashboard.name;
        assert_eq!(json["uid"], format!("faultline-{name}"), "links and bookmarks name it");
        assert!(uids.insert(text(&json["uid"]).to_owned()));
        assert!(
            json["id"].is_null() && [41, 42].contains(&json["schemaVersion"].as_i64().expect("a version"))
        );
        assert_eq!((&json["tags"][0], &json["editable"]), (&"faultline".into(), &false.into()), "{name}");
        assert!(text(&json["title"]).starts_with("Faultline ") && text(&json["description"]).ends_with('.'));
        assert!(list(&json["links"]).iter().any(|link| link["type"] == "dashboards"
            && link["keepTime"] == true
            && link["asDropdown"] == true));
        // Each critical alert is one mark where it began: a region for each that fires would cover the graphs.
        let alerts = list(&json["annotations"]["list"]).iter().any(|one| {
            let is_right = |query: &str| {
                query.starts_with("min by (alertname, service)") && query.contains("severity=\"critical\"")
            };
            one["expr"].as_str().is_some_and(is_right) && one["useValueForTime"] == true
        });
        assert!(alerts, "{name} does not show alerts");
    }
}

/// Guarantee: each panel says what it is and what it shows, asks a data source that can be chosen, has a unit,
/// thresholds and a text for nothing where it needs them, and has its place to itself.
#[test]
fn every_panel_is_complete() {
    for dashboard in dashboards() {
        let mut ids = BTreeSet::new();
        let mut taken = BTreeMap::new();
        for panel in list(&dashboard.json["panels"]) {
            let place = dashboard.place(panel);
            assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{place}: its id is there twice");
            let [x, y, w, h] =
                ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().expect("a place"));
            assert!(x + w <= 24 && h > 0, "{place}");
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                let other = taken.insert(cell, place.clone());
                assert!(other.is_none(), "{place} lies on {other:?}");
            }
        }
        for panel in dashboard.panels() {
            check_panel(panel, &dashboard.place(panel));
        }
    }
}

#[track_caller]
fn check_panel(panel: &Value, place: &str) {
    assert!(text(&panel["title"]).len() > 2, "{place}");
    assert!(text(&panel["description"]).ends_with('.'), "{place} says nothing about itself");
    let defaults = &panel["fieldConfig"]["defaults"];
    let unit = defaults["unit"].as_str().unwrap_or_default();
    assert!(UNITS.contains(&unit), "{place}: the unit '{unit}'");
    let overrides = list(&panel["fieldConfig"]["overrides"]);
    check_nothing(panel, place);
    let units = overrides.iter().flat_map(|one| list(&one["properties"])).filter(|one| one["id"] == "unit");
    for unit in units {
        assert!(UNITS.contains(&text(&unit["value"])), "{place}: {unit}");
    }
    // An empty panel may be good news, and must be distinguishable from a query that fails.
    let never_empty = ["or vector(0)", "SELECT count("];
    let queries: Vec<&str> = list(&panel["targets"]).iter().map(query_of).collect();
    let may_be_empty = !queries.iter().all(|query| never_empty.iter().any(|part| query.contains(part)));
    assert!(!may_be_empty || defaults["noValue"].is_string(), "{place} says nothing when there is nothing");
    let source = text(&panel["datasource"]["uid"]);
    assert!(["${prometheus_datasource}", "${postgresql_datasource}"].contains(&source), "{place}: {source}");
    assert!(
        list(&panel["targets"]).iter().all(|target| target["datasource"] == panel["datasource"]),
        "{place}"
    );
}

/// Checks what stands where there is no value: a dash in a cell, and grey instead of a threshold's colour.
#[track_caller]
fn check_nothing(panel: &Value, place: &str) {
    let is_grey = |mappings: &Value| {
        let special = mappings.as_array().into_iter().flatten().find(|one| one["type"] == "special");
        special.is_some_and(|one| {
            one["options"]["match"] == "null+nan" && one["options"]["result"]["color"] == "#8E8E8E"
        })
    };
    let defaults = &panel["fieldConfig"]["defaults"];
    if ["stat", "bargauge"].contains(&text(&panel["type"])) {
        assert!(is_grey(&defaults["mappings"]), "{place}: nothing has the colour of a threshold");
    }
    for column in list(&panel["fieldConfig"]["overrides"]).iter().filter(|_| panel["type"] == "table") {
        let property = |id: &str| list(&column["properties"]).iter().find(|one| one["id"] == id);
        let dash = property("noValue").is_some_and(|one| one["value"] == "–");
        assert!(dash, "{place}: an empty cell is no dash: {column}");
        let mappings = property("mappings").map_or(&Value::Null, |one| &one["value"]);
        assert!(property("thresholds").is_none() || is_grey(mappings), "{place}: an empty cell has a colour");
    }
}

fn query_of(target: &Value) -> &str {
    target["expr"].as_str().or(target["rawSql"].as_str()).expect("a query")
}

/// Guarantee: rates are over the interval that fits the graph, counters are never shown raw, and no job or instance is
/// named.
#[test]
fn ranges_and_counters_are_used_as_they_should_be() {
    let mut ranges = 0;
    for dashboard in dashboards() {
        for panel in dashboard.panels() {
            for target in list(&panel["targets"]).iter().filter(|target| target["expr"].is_string()) {
                let (place, query) = (dashboard.place(panel), text(&target["expr"]));
                for label in ["job", "instance"] {
                    let named = [format!("{label}=\""), format!("{label}!=")];
                    assert!(
                        !named.iter().any(|named| query.contains(named)),
                        "{place} names a {label}: {query}"
                    );
                }
                ranges += check_ranges(query, target["instant"] == true, &place);
            }
        }
    }
    assert!(ranges > 50, "only {ranges} ranges were looked at");
}

/// Checks every range of a query, and that every counter has one; returns how many there are.
fn check_ranges(query: &str, is_now: bool, place: &str) -> usize {
    let mut ranges = 0;
    for (start, _) in query.match_indices('[') {
        let range = &query[start + 1..start + query[start..].find(']').expect("a closing bracket")];
        let function = query[..start].rfind('(').expect("a function");
        let call: String =
            query[..function].chars().rev().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let call: String = call.chars().rev().collect();
        let selected = &query[function - call.len()..start];
        let is_known = OTHER_RANGES.iter().any(|(known, _)| selected.starts_with(known));
        // What ranks series is the same at every step of a graph.
        let ranks = range == "$__range" && query[start + range.len() + 2..].starts_with(" @ end()");
        let is_right = match call.as_str() {
            "rate" | "irate" => range == "$__rate_interval",
            "increase" => range == "$__rate_interval" || (is_now && range == "$__range") || ranks,
            _ => is_known || ranks,
        };
        assert!(is_right, "{place}: {call} over [{range}]: {query}");
        // Of a graph, topk alone would take other series at every step, and show them all.
        assert!(is_now || !query.starts_with("topk"), "{place}: {query}");
        ranges += 1;
    }
    for (name, after) in metrics_of(query).filter(|(name, _)| name.ends_with("_total")) {
        let after =
            after.strip_prefix('{').map_or(after, |rest| rest.split_once('}').map_or("", |(_, rest)| rest));
        assert!(after.starts_with('['), "{place}: {name} is a counter, and shown raw: {query}");
    }
    ranges
}

/// Returns the names of metrics in a query, each with what follows it.
fn metrics_of(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut rest = query;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(is_word)?;
            // Texts in quotes are label values.
            if let Some(quote) = rest.find('"').filter(|quote| *quote < start) {
                let end = rest[quote + 1..].find('"').expect("a closing quote");
                rest = &rest[quote + end + 2..];
                continue;
            }
            let word = &rest[start..];
            let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
            let (word, after) = word.split_at(end);
            rest = after;
            if word.contains("faultline_") || OF_OTHERS.contains(&word) {
                return Some((word, after));
            }
        }
    })
}

/// Guarantee: every metric and recorded series exists, and has the labels that are asked for.
#[test]
fn every_metric_and_label_exists() {
    let rules =
        std::fs::read_to_string(root().join("dashboards/prometheus/recording.yml")).expect("the rules");
    let recorded: BTreeSet<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).collect();
    let mut seen = BTreeSet::new();
    for dashboard in dashboards() {
        for (place, query) in dashboard.queries().iter().filter(|(_, query)| !query.contains("SELECT")) {
            let mut labels: BTreeSet<String> = GIVEN.iter().map(|&label| label.to_owned()).collect();
            for (name, after) in metrics_of(query) {
                seen.insert(name.to_owned());
                let own = labels_of(name, &recorded).unwrap_or_else(|| panic!("{place}: there is no {name}"));
                for label in matchers(after) {
                    let is_known = own.contains(label) || GIVEN.contains(&label);
                    assert!(is_known, "{place}: {name} has no label {label}");
                }
                labels.extend(own);
            }
            for label in grouped_by(query) {
                assert!(labels.contains(label), "{place}: nothing in it has a label {label}: {query}");
            }
        }
    }
    assert!(seen.len() > 50, "{} metrics are shown", seen.len());
}

/// Returns the labels of a metric, or of a recorded series, whose name begins with them.
fn labels_of(name: &str, recorded: &BTreeSet<&str>) -> Option<BTreeSet<String>> {
    let owned = |labels: &[&str]| labels.iter().map(|&label| label.to_owned()).collect();
    if OF_OTHERS.contains(&name) {
        return Some(owned(&["service"]));
    }
    if let Some((level, _)) = name.split_once(':') {
        return recorded.contains(name).then(|| owned(&level.split('_').collect::<Vec<_>>()));
    }
    let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let metric = all_metrics().find(|metric| metric.name == name || metric.name == base)?;
    Some(owned(metric.labels))
}

/// Returns the labels between the braces that follow a metric.
fn matchers(after: &str) -> Vec<&str> {
    let Some(inside) = after.strip_prefix('{') else { return Vec::new() };
    let inside = inside.split_once('}').map_or(inside, |(inside, _)| inside);
    let labels = inside.split(',').filter_map(|matcher| matcher.split(['=', '!']).next());
    labels.map(str::trim).filter(|label| !label.is_empty()).collect()
}

/// Labels in `by (...)`, `on (...)` and `ignoring (...)`.
fn grouped_by(query: &str) -> Vec<&str> {
    let groups = ["by (", "on (", "ignoring ("].into_iter().flat_map(|word| query.split(word).skip(1));
    groups
        .filter_map(|rest| rest.split(')').next())
        .flat_map(|labels| labels.split(','))
        .map(str::trim)
        .collect()
}

/// Guarantee: variables that are used are defined, those that are defined are used, and links lead somewhere.
#[test]
fn variables_and_links_lead_somewhere() {
    let all = dashboards();
    let runbook = std::fs::read_to_string(root().join("dashboards/RUNBOOK.md")).expect("the runbook");
    let headings: BTreeSet<String> =
        runbook.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_lowercase).collect();
    let mut links = 0;
    for dashboard in &all {
        let name = dashboard.name;
        let defined = variable_names(dashboard);
        let mut used = BTreeSet::new();
        texts(&dashboard.json, &mut |text| used.extend(variables_in(text)));
        assert_eq!(used, defined, "{name}: what is used, and what is defined");
        let mut urls = Vec::new();
        texts(&dashboard.json["panels"], &mut |text| {
            urls.extend((text.starts_with("/d/") || text.contains("/runbook")).then(|| text.to_owned()));
        });
        for url in urls {
            links += 1;
            match url.strip_prefix("/d/").and_then(|rest| rest.split_once('?')) {
                Some((uid, parameters)) => {
                    let target = all.iter().find(|other| other.json["uid"] == uid);
                    let target = target.unwrap_or_else(|| panic!("{name}: {url}"));
                    let variables = variable_names(target);
                    let given = parameters.split('&').filter_map(|one| one.strip_prefix("var-"));
                    let given = given.filter_map(|one| one.split('=').next());
                    let kept = parameters.split("${").filter_map(|one| one.split_once(":queryparam"));
                    for variable in given.chain(kept.map(|(variable, _)| variable)) {
                        assert!(variables.contains(variable), "{name}: {url}: no {variable} there");
                    }
                    assert!(parameters.contains("${__url_time_range}"), "{name}: {url}: another time");
                }
                None => {
                    let (_, anchor) = url.split_once('#').unwrap_or_else(|| panic!("{name}: {url}"));
                    // Links use an alert's name, for which the page has an anchor too.
                    assert!(
                        anchor == "Faultline${__value.raw}" || headings.contains(anchor),
                        "{name}: {url}"
                    );
                }
            }
        }
    }
    assert!(links > 50, "only {links} links were looked at");
}

fn variable_names(dashboard: &Dashboard) -> BTreeSet<String> {
    dashboard.variables().iter().map(|variable| text(&variable["name"]).to_owned()).collect()
}

/// Returns the variables in a text, but for Grafana's own and for groups of regular expressions.
fn variables_in(text: &str) -> Vec<String> {
    let word = |rest: &str| -> String {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
    };
    let words = text.split('$').skip(1).map(word);
    words.filter(|word| word.starts_with(char::is_alphabetic)).collect()
}

/// Calls with every text in a document.
fn texts(value: &Value, with: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => with(text),
        Value::Array(values) => values.iter().for_each(|value| texts(value, with)),
        Value::Object(object) => object.values().for_each(|value| texts(value, with)),
        _ => {}
    }
}

/// The colours by their meaning.
const COLOURS: [(&str, &str); 19] = [
    ("good", "#73BF69"),
    ("info", "#5794F2"),
    ("notice", "#FADE2A"),
    ("warning", "#FF9830"),
    ("bad", "#F2495C"),
    ("critical", "#C4162A"),
    ("neutral, or nothing", "#8E8E8E"),
    ("hidden", "#B877D9"),
    ("INTERNAL", "#E02F44"),
    ("RATE_LIMIT", "#FF780A"),
    ("PERMISSION", "#F2CC0C"),
    ("TOKEN", "#FF85AD"),
    ("VALIDATION", "#3274D9"),
    ("NOT_FOUND", "#8AB8FF"),
    ("CONFLICT", "#1FB6A6"),
    ("SCHEMA", "#A16A3A"),
    ("PROTOCOL", "#6ED0E0"),
    ("UNKNOWN", "#B7BBC2"),
    ("notes of users in Grafana", "rgba(0, 211, 255, 1)"),
];

/// Guarantee: every colour is one of the list; the words of each closed list have the same colours wherever they are
/// coloured, and no two categories have the same.
#[test]
fn colours_mean_the_same_everywhere() {
    let dashboards = dashboards();
    for dashboard in &dashboards {
        colours_in(&dashboard.json, &mut |colour| {
            assert!(COLOURS.iter().any(|(_, known)| *known == colour), "{}: {colour}", dashboard.name);
        });
    }
    let panels = dashboards.iter().flat_map(Dashboard::panels);
    let coloured: Vec<_> = panels.flat_map(coloured_names).collect();
    let colours_of = |words: Vec<&str>| {
        let of_list = coloured.iter().filter_map(|names| {
            words.iter().map(|word| names.get(*word).map(String::as_str)).collect::<Option<Vec<_>>>()
        });
        let distinct: BTreeSet<_> = of_list.collect();
        assert_eq!(distinct.len(), 1, "{words:?} are coloured in different ways: {distinct:?}");
        distinct.into_iter().next().unwrap_or_default()
    };
    let categories = colours_of(Category::ALL.iter().map(|word| word.as_str()).collect());
    assert_eq!(categories.iter().collect::<BTreeSet<_>>().len(), Category::ALL.len(), "{categories:?}");
    colours_of(DangerLevel::ALL.iter().map(|word| word.as_str()).collect());
    colours_of(Severity::ALL.iter().map(|word| word.as_str()).collect());
    colours_of(QuotaLevel::ALL.iter().map(|word| word.as_str()).collect());
}

/// Returns the names that a panel colours: its series, and the values of each column of a table.
fn coloured_names(panel: &Value) -> Vec<BTreeMap<String, String>> {
    let mut series = BTreeMap::new();
    let mut names = Vec::new();
    for one in list(&panel["fieldConfig"]["overrides"]) {
        for property in list(&one["properties"]) {
            let value = &property["value"];
            if property["id"] == "color" && value["mode"] == "fixed" {
                series.insert(
                    text(&one["matcher"]["options"]).to_owned(),
                    text(&value["fixedColor"]).to_owned(),
                );
            }
            let mappings = value.as_array().filter(|_| property["id"] == "mappings");
            let words = mappings.into_iter().flatten().filter(|mapping| mapping["type"] == "value");
            names.extend(words.filter_map(|mapping| mapping["options"].as_object()).map(|options| {
                let colour = |(name, to): (&String, &Value)| (name.clone(), text(&to["color"]).to_owned());
                options.iter().map(colour).collect()
            }));
        }
    }
    names.push(series);
    names
}

fn colours_in(value: &Value, with: &mut impl FnMut(&str)) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| colours_in(value, with)),
        Value::Object(object) => {
            for (key, value) in object {
                match value.as_str().filter(|_| ["color", "fixedColor", "iconColor"].contains(&key.as_str()))
                {
                    Some(colour) => with(colour),
                    None => colours_in(value, with),
                }
            }
        }
        _ => {}
    }
}
