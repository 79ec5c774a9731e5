//! `--service-budget`: one noisy service beside a quiet one. Beyond its budget, similar events share a row that states
//! how many it represents; all counts stay right, and the quiet service is not affected.

use super::server::{Server, ask};
use super::support::{Folder, HIDDEN, OPEN, faultline, lines};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The budget of `noisy` per second, and the burst that it can save up.
const BUDGET: u64 = 10;
const BURST: u64 = 10 * BUDGET;

/// Returns the rows of a query.
#[track_caller]
fn asked(server: &Server, query: &str) -> Vec<Value> {
    let headers = [("Content-Type", "text/plain")];
    let answer = ask(server.address("web"), "POST", "/api/v1/sql", &headers, query.as_bytes());
    answer.expect("an answer").is(200).json()["rows"].as_array().expect("rows").clone()
}

/// Returns the events and rows of a service, for each kind of source, by SQL.
#[track_caller]
fn stored(server: &Server, service: &str) -> (u64, u64) {
    let query = format!(
        "SELECT coalesce(sum(represents), 0) AS events, count(*) AS rows FROM events WHERE service = '{service}'"
    );
    let row = &asked(server, &query)[0];
    (row["events"].as_u64().expect("a sum"), row["rows"].as_u64().expect("a count"))
}

/// Returns the value of a series.
fn metric(server: &Server, series: &str) -> f64 {
    let text = String::from_utf8(server.get("/metrics").is(200).body).expect("UTF-8");
    let of_series = |line: &str| line.strip_prefix(series)?.strip_prefix(' ')?.parse::<f64>().ok();
    text.lines().find_map(of_series).unwrap_or_else(|| panic!("{series} is not exported"))
}

/// Returns the sum of a metric over a service.
fn metric_of(server: &Server, metric: &str, service: &str) -> f64 {
    let text = String::from_utf8(server.get("/metrics").is(200).body).expect("UTF-8");
    let of_service = |line: &&str| line.starts_with(&format!("{metric}{{service=\"{service}\""));
    text.lines().filter(of_service).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Returns failures of a service, of two alternating sorts.
fn failures(service: &str, count: usize) -> String {
    let of_service = |line: &str| line.replace("\"orders\"", &format!("\"{service}\""));
    let sorts = [of_service(HIDDEN), of_service(OPEN)];
    lines(&sorts.iter().map(String::as_str).cycle().take(count).collect::<Vec<_>>())
}

/// Returns failed spans of a service, each with an identity of its own.
fn spans(service: &str, numbers: std::ops::Range<u64>) -> Value {
    let now = jiff::Timestamp::now().as_nanosecond();
    let span = |number: u64| {
        json!({
            "traceId": format!("{:032x}", 1 + number), "spanId": format!("{:016x}", 1 + number),
            "name": "call", "kind": 2,
            "startTimeUnixNano": now.to_string(), "endTimeUnixNano": (now + 1000).to_string(),
            "attributes": [{"key": "error.code", "value": {"stringValue": "RATE_LIMIT_EXCEEDED"}}],
        })
    };
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": service}}]});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": numbers.map(span).collect::<Vec<_>>()}]}]})
}

fn post_spans(server: &Server, body: &Value) {
    let headers = [("Content-Type", "application/json")];
    server.post("/v1/traces", &headers, body.to_string().as_bytes()).is(200);
}

/// Scenario: `noisy` sends far more than ten times its budget, as envelopes and as spans, in between `quiet` sends a
/// little; then the server is killed, and its senders repeat what they do not know to be stored.
/// Guarantee: of `quiet` every event has its row. Of `noisy` there are about as many rows as its budget allows, which
/// represent every event that was sent; answers, views, metrics and calls say the same number; and a repeat is known,
/// also of what has no row of its own, from the log and from the tables.
#[test]
fn a_noisy_service_does_not_starve_a_quiet_one() {
    let folder = Folder::new();
    let budget = format!("{BUDGET}/s");
    let serve = || Server::start_with(&folder, &["--service-budget", &budget]);
    let server = serve();
    let began = Instant::now();
    let (requests, each) = (20, 100);
    for _ in 0..requests {
        let answer = server.post_lines(&failures("noisy", each)).is(200).json();
        assert_eq!((&answer["events"], &answer["accepted"]), (&json!(each), &json!(each)), "{answer}");
        assert_eq!(answer["categories"]["RATE_LIMIT"], each / 2);
        server.post_lines(&failures("quiet", 1)).is(200);
    }
    let (noisy, quiet) = (spans("noisy", 0..500), spans("quiet", 1_000..1_010));
    post_spans(&server, &noisy);
    post_spans(&server, &quiet);
    let seconds = began.elapsed().as_secs() + 1;

    let sent = (requests * each) as u64 + 500;
    let (events, rows) = stored(&server, "noisy");
    assert_eq!(events, sent);
    // Each request has two sorts, spans are a third, and a minute may end in between.
    let most = BURST + BUDGET * seconds + 4 * (requests as u64 + 1);
    assert!((BURST..=most).contains(&rows), "{rows} rows, at most {most}");
    assert_eq!(stored(&server, "quiet"), (requests as u64 + 10, requests as u64 + 10));
    assert!(asked(&server, "SELECT 1 FROM events WHERE service = 'quiet' AND represents <> 1").is_empty());

    for (service, count) in [("noisy", sent), ("quiet", requests as u64 + 10)] {
        let sums = format!("SELECT sum(errors) AS errors FROM error_groups WHERE service = '{service}'");
        assert_eq!(asked(&server, &sums)[0]["errors"], count, "{service}");
        let calls = format!("SELECT sum(calls) AS calls FROM traffic WHERE service = '{service}'");
        assert_eq!(asked(&server, &calls)[0]["calls"], count, "{service}");
        for name in ["faultline_events_total", "faultline_category_events_total", "faultline_requests_total"]
        {
            assert_eq!(metric_of(&server, name, service), count as f64, "{name} of {service}");
        }
    }
    let folded = (sent - rows) as f64;
    assert_eq!(metric(&server, "faultline_over_budget_events_total{service=\"noisy\"}"), folded);
    assert_eq!(metric(&server, "faultline_over_budget_events_total{service=\"quiet\"}"), 0.0);
    let sources = server.status()["sources"].clone();
    let over_budget = |source: &str| sources[source]["coalesced_events"].as_f64().expect("a count");
    assert_eq!(over_budget("envelopes") + over_budget("otlp_traces"), folded);

    // The first repeat is recognised from the WAL, the second from the tables.
    server.kill();
    for _ in 0..2 {
        let server = serve();
        assert_eq!(stored(&server, "noisy"), (sent, rows));
        post_spans(&server, &noisy);
        post_spans(&server, &quiet);
        assert_eq!(stored(&server, "noisy"), (sent, rows), "a repeat is known");
        assert_eq!(server.status()["sources"]["otlp_traces"]["received_events"], json!({}));
        assert!(server.stop().success());
    }
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().expect("UTF-8");
    let query = "SELECT sum(represents) AS events FROM errors WHERE service = 'noisy'";
    let out = faultline(&["sql", "--data-dir", data_dir, "--format", "csv", query]).ends_with(0).out;
    assert_eq!(out.lines().last(), Some(sent.to_string().as_str()), "{out}");
    let checked = faultline(&["check", "--data-dir", data_dir]).ends_with(0).out;
    assert!(!checked.contains("problem"), "{checked}");
}

/// Scenario: a service that makes every one of its thousands of failures different, past its budget.
/// Guarantee: rows stay bounded; what is beyond is counted by its category, and says that it is not one code.
#[test]
fn sorts_without_end_are_told_apart_by_category_only() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--service-budget", "noisy=1/min"]);
    let line = |number: u64| {
        let code = format!("VALIDATION_X{number}");
        json!({"service": "noisy", "success": false, "error": {"code": code, "message": format!("say {code}")}})
    };
    let body: String = (0..3_000).map(|number| format!("{}\n", line(number))).collect();
    assert_eq!(server.post_lines(&body).is(200).json()["events"], 3_000);
    let (events, rows) = stored(&server, "noisy");
    assert!(events == 3_000 && rows < 80, "{rows} rows for {events} events");
    let rest = asked(
        &server,
        "SELECT category, sum(represents) AS n FROM events WHERE canonical = '_other' GROUP BY 1",
    );
    let counted: u64 = rest.iter().map(|row| row["n"].as_u64().expect("a number")).sum();
    assert_eq!(counted, events - rows + rest.len() as u64);
    assert_eq!(metric_of(&server, "faultline_events_total", "noisy"), 3_000.0);
    // Other services have no budget.
    server.post_lines(&failures("quiet", 500)).is(200);
    assert_eq!(stored(&server, "quiet"), (500, 500));
}

/// Scenario: budgets are set, changed and taken away in the settings of a running server; one of them is no budget.
/// Guarantee: SIGHUP uses them at once, and what is no budget changes nothing.
#[test]
fn sighup_changes_budgets() {
    let folder = Folder::new();
    let file = folder.file("some.toml", "");
    let server = Server::start_with(&folder, &["--config", &file]);
    let reload = |text: &str, says: &str| {
        let before = server.said().matches(says).count();
        folder.file("some.toml", text);
        server.signal("HUP");
        let began = Instant::now();
        while server.said().matches(says).count() == before {
            assert!(began.elapsed() < Duration::from_secs(20), "not said: {says}\n{}", server.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let rows_of = |count: usize| {
        let before = stored(&server, "orders").1;
        server.post_lines(&failures("orders", count)).is(200);
        stored(&server, "orders").1 - before
    };
    assert_eq!(rows_of(60), 60);
    reload("service_budget = [\"1000/s\", \"orders=1/min\"]\n", "read again");
    assert_eq!(rows_of(60), 3, "one within the budget, and two sorts past it");
    reload("service_budget = \"plenty\"\n", "give a budget as in 10000/s");
    assert_eq!(rows_of(60), 2);
    reload("", "read again");
    assert_eq!(rows_of(60), 60);
    assert!(!server.said().contains("need a restart"), "{}", server.said());
    assert_eq!(stored(&server, "orders").0, 240);
}
