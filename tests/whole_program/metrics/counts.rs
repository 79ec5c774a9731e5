//! Tests that counters agree with the stored rows, and begin at 0.

use super::super::server::Server;
use super::super::support::{Folder, HIDDEN, OPEN, WORKED, lines, root};
use super::list::all_metrics;
use super::scraped::Scraped;
use auth::metrics::TLS_EXPIRY;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn example(server: &Server, name: &str) {
    let lines = std::fs::read_to_string(root().join("examples").join(name)).expect("the example");
    server.post_lines(&lines).is(200);
}

/// Returns counts by texts, as SQL returns them.
fn asked(server: &Server, query: &str) -> BTreeMap<Vec<String>, f64> {
    let body = json!({"query": query}).to_string();
    let headers = [("Content-Type", "application/json")];
    let answer =
        super::super::server::ask(server.address("web"), "POST", "/api/v1/sql", &headers, body.as_bytes())
            .expect("an answer")
            .is(200)
            .json();
    let columns: Vec<&str> = answer["columns"]
        .as_array()
        .expect("columns")
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect();
    let (count, labels) = columns.split_last().expect("a count");
    let text = |value: &Value| value.as_str().unwrap_or("_unknown").to_owned();
    let row = |row: &Value| {
        let labels = labels.iter().map(|label| text(&row[*label])).collect();
        (labels, row[*count].as_f64().expect("a number"))
    };
    answer["rows"].as_array().expect("rows").iter().map(row).collect()
}

/// Scenario: the example logs, and queries through an endpoint.
/// Guarantee: every metric of the closed list is exported and no other; promtool finds nothing; the counts are those
/// that SQL gives over the stored rows.
#[test]
fn the_counts_are_those_of_the_stored_rows() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    example(&server, "app.ndjson");
    example(&server, "fortnight.ndjson");
    let by_code = asked(
        &server,
        "SELECT service, category, canonical, kind, dialect, count(*) FROM events GROUP BY ALL",
    );
    let by_outcome = asked(
        &server,
        "SELECT service, CASE outcome WHEN 'input_required' THEN 'ok' ELSE outcome END AS outcome, sum(calls)
         FROM traffic GROUP BY 1, 2",
    );
    let findings = asked(
        &server,
        "SELECT service, f.finding, count(*) FROM (SELECT service, unnest(findings) AS finding FROM events) f GROUP BY ALL",
    );
    let levels = asked(
        &server,
        "SELECT service, quota_metric, quota_level, count(*) FROM events
         WHERE quota_metric IS NOT NULL OR quota_level <> 'exceeded' GROUP BY ALL",
    );
    let denials = asked(&server, "SELECT service, count(*) FROM trust_denials GROUP BY ALL");
    let groups = asked(
        &server,
        "SELECT service, count(DISTINCT fingerprint) FROM events WHERE kind <> 'audit' GROUP BY ALL",
    );
    let timed = asked(
        &server,
        "SELECT service, operation, sum(timed_calls) FROM traffic GROUP BY ALL HAVING sum(timed_calls) > 0",
    );

    let scraped = Scraped::of(&server);
    let exported = scraped.names();
    for metric in all_metrics() {
        // Without a certificate there is no expiry metric; `tls` has one.
        let is_due = metric.name != TLS_EXPIRY.name;
        assert_eq!(exported.contains_key(metric.name), is_due, "{}", metric.name);
    }
    for name in exported.keys().filter(|name| !name.starts_with("process_")) {
        assert!(all_metrics().any(|metric| metric.name == *name), "{name} is not in the list");
    }
    assert_eq!(
        scraped.sums("faultline_events_total", &["service", "category", "code", "kind", "dialect"]),
        by_code
    );
    assert_eq!(scraped.sums("faultline_requests_total", &["service", "outcome"]), by_outcome);
    assert_eq!(scraped.sums("faultline_findings_total", &["service", "finding"]), findings);
    assert_eq!(scraped.sums("faultline_quota_events_total", &["service", "metric", "level"]), levels);
    assert_eq!(scraped.sums("faultline_operation_duration_seconds_count", &["service", "operation"]), timed);
    let mut denied = scraped.sums("faultline_trust_denials_total", &["service"]);
    for (service, count) in scraped.sums("faultline_danger_denials_total", &["service"]) {
        *denied.entry(service).or_default() += count;
    }
    for (service, count) in &denials {
        assert!(denied[service] >= *count, "{service:?}: {denied:?}, stored {denials:?}");
    }
    assert_eq!(scraped.sums("faultline_new_groups_total", &["service"]), groups);
    let by_category = scraped.sums("faultline_events_total", &["service", "category", "kind"]);
    assert_eq!(
        scraped.sums("faultline_category_events_total", &["service", "category", "kind"]),
        by_category
    );
    assert_eq!(scraped.value("faultline_build_info{version=\"0.1.0\"}"), Some(1.0));
    assert!(scraped.value("process_resident_memory_bytes").is_some_and(|bytes| bytes > 1e6));
    assert_eq!(scraped.value("faultline_queries_total{protocol=\"http\",outcome=\"ok\"}"), Some(7.0));
    let unrecognized: f64 =
        scraped.sums("faultline_unrecognized_total", &["source"])[&vec!["envelopes".to_owned()]];
    assert!(unrecognized >= 3.0, "{unrecognized}");
}

/// Scenario: services that are named on the command line or in the operator's file, and one that speaks for the first
/// time.
/// Guarantee: their series are there at 0 before anything happens to them, with the codes of the dialect that they
/// speak.
#[test]
fn series_begin_at_zero() {
    let folder = Folder::new();
    let registry = folder
        .file("registry.toml", "[profiles.services]\n\"billing\" = \"mcp-aql\"\n\"team-*\" = \"erlmcp\"\n");
    let server = Server::start_with(&folder, &["--expect-service", "stock,team-a", "--registry", &registry]);
    let scraped = Scraped::of(&server);
    let code = |service: &str, category: &str, code: &str, dialect: &str| {
        format!(
            "faultline_events_total{{service=\"{service}\",category=\"{category}\",code=\"{code}\",kind=\"error\",dialect=\"{dialect}\"}}"
        )
    };
    let exhausted = |service: &str| code(service, "RATE_LIMIT", "RATE_LIMIT_QUOTA_EXHAUSTED", "mcp-aql");
    for service in ["stock", "billing", "team-a"] {
        let categories = scraped.series("faultline_category_events_total");
        let own = categories
            .iter()
            .filter(|(series, value)| series.contains(&format!("\"{service}\"")) && *value == 0.0);
        let label = |series: &str| Some(series.split_once("category=\"")?.1.split_once('"')?.0.to_owned());
        let own: std::collections::BTreeSet<String> = own.filter_map(|(series, _)| label(series)).collect();
        assert_eq!(own.len(), 10, "{service}: {categories:?}");
        for outcome in ["ok", "failed", "hidden"] {
            let series = format!("faultline_requests_total{{service=\"{service}\",outcome=\"{outcome}\"}}");
            assert_eq!(scraped.value(&series), Some(0.0), "{series}");
        }
        let replayed = format!("faultline_token_events_total{{service=\"{service}\",state=\"replayed\"}}");
        assert_eq!(scraped.value(&replayed), Some(0.0));
    }
    assert_eq!(scraped.value(&exhausted("billing")), Some(0.0));
    assert_eq!(scraped.value(&exhausted("stock")), None, "nobody knows what it speaks");
    assert!(scraped.sums("faultline_events_total", &["service"]).is_empty());
    let of_team = |(series, _): &&(&str, f64)| series.contains("\"team-a\"") && series.contains("erlmcp");
    let codes = scraped.series("faultline_events_total").iter().filter(of_team).count();
    assert!(codes >= 10, "{codes} codes");

    server.post_lines(&lines(&[WORKED, OPEN, HIDDEN])).is(200);
    let scraped = Scraped::of(&server);
    assert_eq!(scraped.value(&exhausted("orders")), Some(0.0), "it has spoken the dialect");
    let pause = code("orders", "RATE_LIMIT", "RATE_LIMIT_QUOTA_PAUSE", "mcp-aql");
    assert_eq!(scraped.value(&pause), Some(1.0));
    assert_eq!(scraped.value("faultline_requests_total{service=\"orders\",outcome=\"hidden\"}"), Some(1.0));
}

/// Scenario: a server with history is stopped and started again.
/// Guarantee: it knows its services at once, what it has seen before is not new, and what it has not is.
#[test]
fn a_restart_forgets_neither_services_nor_groups() {
    let folder = Folder::new();
    let new_groups =
        |server: &Server| Scraped::of(server).value("faultline_new_groups_total{service=\"orders\"}");
    let server = Server::start(&folder);
    server.post_lines(&lines(&[HIDDEN, OPEN, WORKED])).is(200);
    until("the groups are counted", || new_groups(&server) == Some(2.0));
    assert_eq!(server.stop().code(), Some(0));

    let server = Server::start(&folder);
    until("services come back", || new_groups(&server) == Some(0.0));
    server.post_lines(&lines(&[HIDDEN, OPEN])).is(200);
    assert_eq!(new_groups(&server), Some(0.0));
    server.post_lines(&lines(&[&OPEN.replace("Method not found", "Nobody is home")])).is(200);
    until("a new group is counted", || new_groups(&server) == Some(1.0));
    // After a crash, rows that are only in the WAL are known as well.
    server.kill();
    let server = Server::start(&folder);
    until("services come back", || new_groups(&server) == Some(0.0));
    server.post_lines(&lines(&[&OPEN.replace("Method not found", "Nobody is home")])).is(200);
    assert_eq!(new_groups(&server), Some(0.0));
}

/// Scenario: quotas of several clients, one of which resets in a moment.
/// Guarantee: the gauge is the share of the client that has used most, and goes when its quota has started anew.
#[test]
fn a_quota_that_starts_anew_is_not_shown_any_more() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let used = |client: &str, current: u32, resets_at: jiff::Timestamp| {
        let details = json!({"metric": "calls_per_hour", "current": current, "warn_threshold": 50,
            "hard_stop_threshold": 200, "resets_at": resets_at.to_string()});
        let line = json!({"service": "orders", "agent": client, "success": true, "result": {},
            "warnings": [{"code": "RATE_LIMIT_QUOTA_WARNING", "message": "Close to the limit", "details": details}]});
        server.post_lines(&format!("{line}\n")).is(200);
    };
    let series = "{service=\"orders\",metric=\"calls_per_hour\"}";
    let usage = || Scraped::of(&server).value(&format!("faultline_quota_usage_ratio{series}"));
    let now = jiff::Timestamp::now();
    let (soon, later) = (now + Duration::from_secs(10), now + Duration::from_secs(3600));
    used("a", 100, later);
    assert_eq!(usage(), Some(0.5));
    used("b", 180, soon);
    assert_eq!(usage(), Some(0.9));
    let reset = Scraped::of(&server).value(&format!("faultline_quota_reset_timestamp_seconds{series}"));
    assert_eq!(reset.map(f64::round), Some((soon.as_millisecond() as f64 / 1e3).round()));
    until("the quota of b has started anew", || usage() == Some(0.5));
    used("a", 10, jiff::Timestamp::now() + Duration::from_secs(5));
    assert_eq!(usage(), Some(0.05));
    until("no quota is known", || usage().is_none());
    let warned = format!("faultline_quota_events_total{},level=\"warning\"}}", series.trim_end_matches('}'));
    assert_eq!(Scraped::of(&server).value(&warned), Some(3.0), "what was counted stays");
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "not yet: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
