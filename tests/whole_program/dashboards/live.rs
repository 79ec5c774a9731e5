//! Runs every query of every dashboard, as Grafana sends it: PromQL on a real Prometheus with the shipped rules, SQL on
//! the PostgreSQL endpoint through psycopg, with a server that gets traffic of every dialect.

use super::super::http_sql::rows;
use super::super::metrics::monitoring::Monitor;
use super::super::otlp::client::python;
use super::super::server::Server;
use super::super::support::{Folder, NOTHING, UNREADABLE, root};
use super::filled::{Chosen, Filling};
use super::{Dashboard, dashboards, list, text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Panels that are empty when all is well, each with the reason.
const EMPTY: [(&str, &str, &str); 5] = [
    ("health", "Events over budget", "the server has no budgets"),
    ("health", "Certificate expires", "it has no certificate"),
    ("health", "Denied connections and requests", "it has no tokens"),
    ("health", "Alerts about collectors", "none fires about a collector that is well"),
    ("explorer", "Selected group", "no group is selected at first; the second round selects one"),
];

/// The time for which traffic is sent before the first query.
const TRAFFIC: Duration = Duration::from_secs(8);
const PATIENCE: Duration = Duration::from_secs(60);
/// The service that the dashboard of one service shows.
const SHOWN: &str = "tracker-adapter";

/// Scenario: traffic of every dialect, quotas that fill up, new errors, requests that are refused, more names than
/// metrics tell apart; then every dashboard as it opens, and again with something chosen for every variable.
/// Guarantee: no query fails. As it opens, every panel has data, without NaN, with the columns that it shows; and every
/// variable has values.
#[test]
fn every_panel_has_data() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--flush-after", "2s"]);
    let prometheus = Monitor::prometheus(&folder, &config(&folder, &server));
    let mut world = World { server, prometheus, traffic: demo::Traffic::new(8), rounds: 0, began: now() };
    world.live_until("it is scraped", |world| !world.ask("faultline_build_info").is_empty());
    let began = Instant::now();
    world.live_until("there is traffic", |_| began.elapsed() > TRAFFIC);
    world.live_until("an alert fires", |world| !world.ask("ALERTS{alertstate=\"firing\"}").is_empty());

    let dashboards = dashboards();
    let as_opened: Vec<_> = dashboards.iter().map(|dashboard| world.as_opened(dashboard)).collect();
    world.check_sql(&dashboards, &as_opened, true);
    let group = &rows(&world.server, "SELECT fingerprint FROM errors LIMIT 1")[0]["fingerprint"];
    let with_choices = |dashboard| world.with_choices(dashboard, text(group));
    let chosen: Vec<_> = dashboards.iter().map(with_choices).collect();
    world.check_sql(&dashboards, &chosen, false);
    // The queries that were just run must be visible in the metrics of statements.
    let until = Instant::now() + Duration::from_secs(3);
    world.live_until("statements are scraped", |_| Instant::now() > until);
    let filled = world.check_promql(&dashboards, &as_opened, true);
    world.check_promql(&dashboards, &chosen, false);
    assert!(filled > 80, "only {filled} queries in PromQL were asked");
    assert!(world.server.stop().success());
}

/// Starts a Prometheus that scrapes every second, with the rules as they ship.
fn config(folder: &Folder, server: &Server) -> std::path::PathBuf {
    let rules = root().join("dashboards/prometheus");
    let config = json!({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [rules.join("recording.yml"), rules.join("alerts.yml")],
        "scrape_configs": [{
            "job_name": "any name", "static_configs": [{"targets": [server.address("web").to_string()]}],
        }],
    });
    // JSON is YAML.
    folder.file("prometheus.yml", config.to_string()).into()
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

struct World {
    server: Server,
    prometheus: Monitor,
    traffic: demo::Traffic,
    rounds: u32,
    /// The start of the test, in seconds since 1970.
    began: i64,
}

impl World {
    /// Keeps sending traffic until a condition holds.
    #[track_caller]
    fn live_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < PATIENCE, "{what}: not within a minute\n{}", self.prometheus.said());
            self.live();
        }
    }

    /// Sends the traffic of half a second of a bad day.
    fn live(&mut self) {
        let mut lines = Vec::new();
        self.traffic = self.traffic.clone().at(jiff::Timestamp::now().as_microsecond() - 1_000_000);
        for _ in 0..200 {
            self.traffic.next_line(&mut lines);
        }
        let mut lines = String::from_utf8_lossy(&lines).into_owned();
        for line in own_lines(self.rounds) {
            lines.push_str(&line);
            lines.push('\n');
        }
        self.server.post_lines(&lines).is(200);
        self.server.post("/v1/envelopes", &[("Content-Type", "image/png")], b"{}").is(415);
        self.rounds += 1;
        std::thread::sleep(Duration::from_millis(400));
    }

    /// Returns the result of a query at the present time.
    fn ask(&self, query: &str) -> Vec<Value> {
        let answer = self.prometheus.get(&format!("/api/v1/query?query={}", encoded(query)));
        list(&answer["data"]["result"]).to_vec()
    }

    /// Returns a dashboard as it opens: each variable has all values, or the first.
    fn as_opened(&self, dashboard: &Dashboard) -> Filling {
        let chosen = |variable: &Value| match text(&variable["type"]) {
            "custom" => Chosen::Several(text(&variable["query"]).split(',').map(str::to_owned).collect()),
            "query" if variable["includeAll"] == true => {
                assert_eq!(variable["allValue"], ".*", "{}: {variable}", dashboard.name);
                Chosen::All(".*")
            }
            "query" => Chosen::One(SHOWN.to_owned()),
            _ => Chosen::One(text(&variable["current"]["value"]).to_owned()),
        };
        self.filling(dashboard, chosen)
    }

    /// Returns the same with a few names selected; text boxes get an apostrophe.
    fn with_choices(&self, dashboard: &Dashboard, fingerprint: &str) -> Filling {
        let several = |values: [&str; 2]| Chosen::Several(values.map(str::to_owned).to_vec());
        let chosen = |variable: &Value| match text(&variable["name"]) {
            "service" if variable["includeAll"] == true => several([SHOWN, "_unknown"]),
            "category" => several(["RATE_LIMIT", "INTERNAL"]),
            "code" => several(["RATE_LIMIT_EXCEEDED", "INTERNAL_ERROR"]),
            "metric" => several(["requests_per_minute", "a.b (c)"]),
            "operation" => several(["search_tickets", "list/tickets"]),
            "fingerprint" => Chosen::One(fingerprint.to_owned()),
            "words" => Chosen::One("it's".to_owned()),
            "service" => Chosen::One(SHOWN.to_owned()),
            "job" | "instance" => several(["any name", "another"]),
            _ => Chosen::One(text(&variable["current"]["value"]).to_owned()),
        };
        self.filling(dashboard, chosen)
    }

    fn filling(&self, dashboard: &Dashboard, chosen: impl Fn(&Value) -> Chosen) -> Filling {
        let variables = dashboard.variables().iter();
        let chosen = variables.map(|one| (text(&one["name"]).to_owned(), chosen(one))).collect();
        Filling { chosen, from: self.began - 60, to: now() + 1, interval: "5s", rate_interval: "5s" }
    }

    /// Runs all SQL queries.
    #[track_caller]
    fn check_sql(&self, dashboards: &[Dashboard], fillings: &[Filling], has_data: bool) {
        let (mut asked, mut statements) = (Vec::new(), Vec::new());
        for (dashboard, filling) in dashboards.iter().zip(fillings) {
            for panel in dashboard.panels().filter(|panel| panel["targets"][0]["rawSql"].is_string()) {
                asked.push((dashboard, Some(panel)));
                statements.push(filling.sql(text(&panel["targets"][0]["rawSql"])));
            }
            for variable in
                dashboard.variables().iter().filter(|one| one["query"].is_string() && one["type"] == "query")
            {
                asked.push((dashboard, None));
                statements.push(filling.sql(text(&variable["query"])));
            }
        }
        let port = self.server.address("postgres").port().to_string();
        let answers = python("panels.py", &[&port], json!(statements).to_string().as_bytes());
        assert!(statements.len() > 30, "{}", statements.len());
        for (((dashboard, panel), statement), answer) in asked.iter().zip(&statements).zip(list(&answers)) {
            let place = panel
                .map_or_else(|| format!("{}: a variable", dashboard.name), |panel| dashboard.place(panel));
            assert!(answer["error"].is_null(), "{place}: {}\n{statement}", answer["error"]);
            if let Some(panel) = panel {
                check_columns(panel, answer, &place);
            }
            let is_empty = panel.is_some_and(|panel| is_empty_when_well(dashboard, panel));
            // A first row without values is the result of a sum over nothing.
            let has_value =
                list(&answer["rows"]).first().is_some_and(|row| list(row).iter().any(|cell| !cell.is_null()));
            assert!(has_value || !has_data || is_empty, "{place} has no data\n{statement}\n{answer}");
            assert!(
                has_value || !is_empty || has_data,
                "{place} has no data either when something is chosen"
            );
        }
    }

    /// Runs all PromQL queries, and returns their number.
    #[track_caller]
    fn check_promql(&self, dashboards: &[Dashboard], fillings: &[Filling], has_data: bool) -> usize {
        let mut asked = 0;
        for (dashboard, filling) in dashboards.iter().zip(fillings) {
            let filling = Filling { to: now(), from: self.began, ..filling.clone() };
            for panel in dashboard.panels().filter(|panel| panel["targets"][0]["expr"].is_string()) {
                let place = dashboard.place(panel);
                let fields: BTreeSet<&str> = columns(panel).into_iter().collect();
                for target in list(&panel["targets"]) {
                    let query = filling.promql(text(&target["expr"]));
                    let series = self.series(&query, &filling, target["instant"] == true);
                    let is_empty = is_empty_when_well(dashboard, panel);
                    assert!(!series.is_empty() || !has_data || is_empty, "{place} has no data\n{query}");
                    check_series(&series, &fields, panel["type"] == "table", &format!("{place}\n{query}"));
                    asked += 1;
                }
            }
            self.check_variables(dashboard, &filling, has_data);
            for annotation in
                list(&dashboard.json["annotations"]["list"]).iter().filter(|one| one["expr"].is_string())
            {
                let series = self.series(&filling.promql(text(&annotation["expr"])), &filling, false);
                // A healthy collector has no such series.
                assert!(
                    !series.is_empty() || dashboard.name == "health",
                    "{}: no alert is shown",
                    dashboard.name
                );
            }
        }
        asked
    }

    /// Returns the result of a panel's query.
    #[track_caller]
    fn series(&self, query: &str, filling: &Filling, is_now: bool) -> Vec<Value> {
        let (query, Filling { from, to, .. }) = (encoded(query), filling);
        let path = match is_now {
            true => format!("/api/v1/query?time={to}&query={query}"),
            false => format!("/api/v1/query_range?start={from}&end={to}&step=1&query={query}"),
        };
        list(&self.prometheus.get(&path)["data"]["result"]).to_vec()
    }

    /// Runs `label_values(selector, label)` and `query_result(query)`, as Grafana does.
    #[track_caller]
    fn check_variables(&self, dashboard: &Dashboard, filling: &Filling, has_data: bool) {
        for variable in dashboard.variables().iter().filter(|variable| variable["query"]["query"].is_string())
        {
            let query = filling.promql(text(&variable["query"]["query"]));
            if let Some(inside) = query.strip_prefix("query_result(").and_then(|rest| rest.strip_suffix(')'))
            {
                check_busiest_first(&self.series(inside, filling, true));
                continue;
            }
            let inside = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
            let (selector, label) =
                inside.and_then(|inside| inside.rsplit_once(", ")).expect("label_values(...)");
            let path = format!("/api/v1/label/{label}/values?match[]={}", encoded(selector));
            let values = self.prometheus.get(&path)["data"].clone();
            assert!(!list(&values).is_empty() || !has_data, "{}: {query} has no values", dashboard.name);
        }
    }
}

/// Checks that the dashboard of one service opens on the one with the most calls, and offers `_unknown` last.
#[track_caller]
fn check_busiest_first(services: &[Value]) {
    let counts: Vec<f64> =
        services.iter().map(|one| text(&one["value"][1]).parse().expect("a number")).collect();
    assert!(counts.len() > 3 && counts.is_sorted_by(|left, right| left >= right), "{services:?}");
    let unknown = services.iter().position(|one| one["metric"]["service"] == "_unknown");
    assert!(unknown.is_none_or(|place| place + 1 == services.len()), "{services:?}");
}

fn is_empty_when_well(dashboard: &Dashboard, panel: &Value) -> bool {
    EMPTY.iter().any(|(name, title, _)| *name == dashboard.name && panel["title"] == *title)
}

/// Returns the columns that a table shows, by their names in the result.
fn columns(panel: &Value) -> Vec<&str> {
    list(&panel["fieldConfig"]["overrides"]).iter().map(|one| text(&one["matcher"]["options"])).collect()
}

/// Returns the columns of a result: those that a table shows, or those that Grafana makes series of.
#[track_caller]
fn check_columns(panel: &Value, answer: &Value, place: &str) {
    let answered: Vec<&str> = list(&answer["columns"]).iter().map(|column| text(&column[0])).collect();
    match text(&panel["type"]) {
        "table" => assert_eq!(answered, columns(panel), "{place}"),
        "timeseries" => assert_eq!(answered, ["time", "metric", "value"], "{place}"),
        "stat" => assert_eq!(answered.len(), 1, "{place}"),
        _ => {}
    }
}

/// Checks that numbers can be drawn, and that a table has columns for its labels.
#[track_caller]
fn check_series(series: &[Value], fields: &BTreeSet<&str>, is_table: bool, place: &str) {
    for one in series {
        let labels: BTreeMap<String, Value> = serde_json::from_value(one["metric"].clone()).expect("labels");
        for label in labels.keys().filter(|_| is_table) {
            assert!(fields.contains(label.as_str()), "{place}: no column for {label}");
        }
        let values = one["values"].as_array().map_or(std::slice::from_ref(&one["value"]), Vec::as_slice);
        for value in values {
            let number: f64 = text(&value[1]).parse().expect("a number");
            assert!(number.is_finite(), "{place}: {one}");
        }
    }
}

fn encoded(query: &str) -> String {
    query.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Sends events that the generated traffic does not have, or not soon: a quota that fills up and is reset later, a new
/// group of errors, more quotas than metrics distinguish, a token that is used twice, and lines without content.
fn own_lines(round: u32) -> Vec<String> {
    let resets_at = (jiff::Timestamp::now() + Duration::from_secs(3_600)).to_string();
    let quota = |service: &str, metric: String, current: u32| {
        json!({"service": service, "client": "ann", "tool": "count", "success": true, "result": {}, "warnings": [{
            "code": "RATE_LIMIT_QUOTA_WARNING", "message": "Quota warning threshold reached",
            "details": {"metric": metric, "current": current, "hard_stop_threshold": 1000, "resets_at": resets_at},
        }]})
    };
    let failed = |code: &str, tool: &str, details: Value| {
        let error = json!({"code": code, "message": "It did not work", "details": details});
        json!({"service": SHOWN, "client": "ann", "tool": tool, "success": false, "duration_ms": 12, "error": error})
    };
    let token = format!("conf_{round:032x}");
    let audit = |event: &str| json!({"service": SHOWN, "client": "ann", "tool": "release", "event": event, "token": token});
    let letters: String =
        round.to_string().chars().map(|digit| char::from(b'a' + digit as u8 - b'0')).collect();
    let mut lines = vec![
        quota("stock", "calls_per_day".to_owned(), 100 + round),
        failed("INTERNAL_ERROR", &format!("new_{letters}"), json!({})),
        failed("TOKEN_ALREADY_USED", "release", json!({"token": token})),
        failed("PERMISSION_DANGER_LEVEL_DENIED", "release", json!({"danger_level": 3})),
        failed("RATE_LIMIT_EXCEEDED", "count", json!({"retry_after": 30})),
        audit("TOKEN_ISSUED"),
    ];
    lines.extend((0..70).map(|number| quota("crowded", format!("quota_{round}_{number}"), 1)));
    lines.iter().map(Value::to_string).chain([NOTHING.to_owned(), UNREADABLE.to_owned()]).collect()
}
