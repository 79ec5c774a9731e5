//! Tests of the API behind the web page, and of the page itself, as a browser and programs use them. Most share one
//! server.

mod schema;
mod session;
mod world;

use super::http_sql::rows;
use super::server::{Answer, Server, ask};
use super::support::{Folder, root};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read;
use world::{HOSTILE, RANGE};

/// Sends a request to the web listener.
#[track_caller]
fn send(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    ask(server.address("web"), method, path, headers, body.as_bytes()).expect("an answer")
}

/// Gets a JSON response.
#[track_caller]
fn get(server: &Server, path: &str) -> Value {
    let answer = server.get(&format!("/api/v1/{path}")).is(200);
    assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    answer.json()
}

/// Returns the sum of a list of numbers.
fn sum(list: &Value) -> i64 {
    list.as_array().expect("a list").iter().map(|number| number.as_i64().expect("a number")).sum()
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Scenario: the small world, and every endpoint, filter, mistake and method; then the page.
/// Guarantee: the tests below, which share the server because starting one and filling it takes most of the time.
#[test]
fn the_api_and_the_page_answer() {
    let folder = Folder::new();
    let server = world::start(&folder, &[]);
    answers_fit_the_document(&server);
    numbers_equal_those_of_sql(&server);
    filters_narrow(&server);
    groups_have_states(&server);
    events_come_in_pages(&server);
    quotas_and_trust_are_told(&server);
    mistakes_are_explained(&server);
    hostile_text_is_text(&server);
    methods_are_told(&server);
    statements_of_curl_are_read(&server);
    the_page_is_served(&server);
    unknown_paths_answer_browsers_and_programs(&server);
    assert!(server.stop().success());
}

/// Scenario: records and spans that arrive now, all of which one server has counted.
/// Guarantee: over the life of the server, failures and calls of the API equal those of `/metrics`, in all and by
/// service.
#[test]
fn the_numbers_equal_those_of_the_metrics() {
    let folder = Folder::new();
    let server = world::start(&folder, &[]);
    let page = get(&server, "overview?from=2026-11-01T00:00:00Z&to=2026-11-20T00:00:00Z");
    let totals = &page["totals"];
    let metrics = String::from_utf8(server.get("/metrics").is(200).body).expect("UTF-8");
    let sum = |name: &str, labels: &[&str]| -> f64 {
        let lines = metrics.lines().filter(|line| line.starts_with(&format!("{name}{{")));
        let lines = lines.filter(|line| labels.iter().all(|label| line.contains(label)));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    };
    let counted = |number: &Value| number.as_f64().unwrap();
    let errors = "faultline_category_events_total";
    assert!(counted(&totals["errors"]) > 5.0, "{totals}");
    assert_eq!(counted(&totals["errors"]), sum(errors, &["kind=\"error\""]));
    let requests = "faultline_requests_total";
    assert_eq!(counted(&totals["hidden_calls"]), sum(requests, &["outcome=\"hidden\""]));
    let all = sum(requests, &[]) - sum(requests, &["outcome=\"pending\""]);
    assert_eq!(counted(&totals["calls"]), all);
    let failed = sum(requests, &["outcome=\"hidden\""]) + sum(requests, &["outcome=\"failed\""]);
    assert_eq!(counted(&totals["failed_calls"]), failed, "{metrics}");
    let services = get(&server, "services?from=2026-11-01T00:00:00Z&to=2026-11-20T00:00:00Z");
    for service in ["walls", "floors"] {
        let rows = services["services"].as_array().unwrap();
        let row = rows.iter().find(|row| row["service"] == service).unwrap();
        let label = format!("service=\"{service}\"");
        assert_eq!(counted(&row["errors"]), sum(errors, &["kind=\"error\"", &label]), "{service}");
        assert_eq!(counted(&row["calls"]), sum(requests, &[&label]), "{service}");
    }
}

/// Scenario: one call that its caller, its server and a library within the caller report; another that only the caller
/// reports; and a task of which only the beginning was seen.
/// Guarantee: the services of the API count each call once, as the views `calls` and `error_rates` do, and no task
/// before it ends.
#[test]
fn a_call_that_several_spans_report_counts_once() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let span = |service: &str, kind: i64, operation: &str, id: i64| {
        json!({
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
            "scopeSpans": [{"spans": [{
                "traceId": format!("{id:032x}"), "spanId": format!("{:016x}", id * 16 + kind), "name": "tools/call", "kind": kind,
                "startTimeUnixNano": "1794301200000000000", "endTimeUnixNano": "1794301200040000000",
                "attributes": [
                    {"key": "mcp.method.name", "value": {"stringValue": "tools/call"}},
                    {"key": "gen_ai.tool.name", "value": {"stringValue": operation}},
                ],
            }]}],
        })
    };
    let [internal, of_server, client] = [1, 2, 3];
    let spans = json!({"resourceSpans": [
        span("host", client, "paint", 1), span("host", internal, "paint", 1), span("walls", of_server, "paint", 1),
        span("host", client, "sing", 2), span("host", internal, "hum", 3),
    ]});
    let json_type = [("Content-Type", "application/json")];
    server.post("/v1/traces", &json_type, spans.to_string().as_bytes()).is(200);
    let task = json!({
        "ts": "2026-11-10T09:00:30Z", "service": "walls", "operation": "paint", "jsonrpc": "2.0", "id": 1,
        "result": {"task": {"taskId": "t-1", "status": "working", "createdAt": "2026-11-10T09:00:30Z", "ttl": 60000}},
    });
    server.post_lines(&format!("{task}\n")).is(200);
    assert!(
        rows(&server, "SELECT 1 AS one FROM traffic WHERE outcome = 'pending'").len() == 1,
        "the task is pending: {:?}",
        server.dump("traffic")
    );
    let services = get(&server, &format!("services?{RANGE}"));
    let calls = |service: &str| {
        let rows = services["services"].as_array().unwrap();
        rows.iter().find(|row| row["service"] == service).map_or(0, |row| row["calls"].as_i64().unwrap())
    };
    assert_eq!((calls("walls"), calls("host")), (1, 2), "{services:#}");
    for view in ["calls", "error_rates"] {
        let counted = rows(&server, &format!("SELECT service, sum(calls) AS n FROM {view} GROUP BY service"));
        for row in &counted {
            assert_eq!(row["n"], calls(row["service"].as_str().unwrap()), "{view}: {row}");
        }
    }
    let one = get(&server, &format!("services?{RANGE}&service=host"));
    let names: Vec<&Value> =
        one["operations"].as_array().unwrap().iter().map(|row| &row["operation"]).collect();
    assert_eq!(names, ["hum", "sing"]);
    assert_eq!(get(&server, &format!("overview?{RANGE}"))["totals"]["calls"], 3);
}

/// Guarantee: every path of the document answers with JSON of its schema, with every parameter; and the document has
/// every path that answers.
fn answers_fit_the_document(server: &Server) {
    let document = get(server, "openapi.json");
    let fingerprint = get(server, &format!("groups?{RANGE}"))["groups"][0]["fingerprint"].clone();
    let event = get(server, &format!("events?{RANGE}&trace_id=4bf92f3577b34da6a3ce929d0e0e4736"))["events"]
        [0]
    .clone();
    let paths = document["paths"].as_object().expect("paths");
    let mut asked = 0;
    for (path, item) in paths {
        let schema = &item["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        let named = path
            .replace("{fingerprint}", fingerprint.as_str().expect("a group"))
            .replace("{event_id}", event["event_id"].as_str().expect("an event"));
        if path.ends_with("/tail") {
            continue;
        }
        let parameters = item["get"]["parameters"].as_array().expect("parameters");
        let has = |name: &str| parameters.iter().any(|parameter| parameter["name"] == name);
        let range = if has("from") { RANGE } else { "" };
        let answer = server.get(&format!("{named}?{range}")).is(200).json();
        schema::check(&answer, schema, path).unwrap_or_else(|error| panic!("{error}"));
        asked += 1;
        // The request has all filters at once, each with a value that occurs.
        let query: Vec<String> = parameters.iter().filter_map(example).collect();
        if query.len() > 3 {
            let answer = server.get(&format!("{named}?{}", query.join("&"))).is(200).json();
            schema::check(&answer, schema, path).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    assert_eq!(asked, 14, "every endpoint was asked");
    others_fit_the_document(server, paths);
    for path in [
        "overview", "groups", "services", "quotas", "trust", "codes", "events", "names", "schema", "session",
        "sql", "tail", "status",
    ] {
        assert!(paths.contains_key(&format!("/api/v1/{path}")), "{path} is not in the document");
    }
    // The checker itself must be able to fail.
    let overview =
        &paths["/api/v1/overview"]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    let mut wrong = get(server, "overview");
    wrong["totals"]["errors"] = json!("many");
    assert!(schema::check(&wrong, overview, "").is_err_and(|error| error.contains(".totals.errors")));
}

/// Guarantee: every operation has a summary and a complete response; those with a body say which; and what the
/// document says of SQL, the tail and sessions is what they take and give.
fn others_fit_the_document(server: &Server, paths: &serde_json::Map<String, Value>) {
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["summary"].as_str().is_some_and(|text| text.ends_with('.')), "{method} {path}");
            assert!(operation["parameters"].is_array(), "{method} {path}");
            assert_eq!(method == "post", operation["requestBody"].is_object(), "{method} {path}");
            let (status, success) = operation["responses"].as_object().unwrap().iter().next().unwrap();
            let schemas = success["content"].as_object().into_iter().flatten();
            assert_eq!(status == "204", schemas.clone().count() == 0, "{method} {path}");
            assert!(schemas.clone().all(|(_, media)| media["schema"].is_object()), "{method} {path}");
        }
    }
    let media = "application/json";
    for (path, body) in [
        ("/api/v1/sql", json!({"query": "SELECT $1 AS one", "params": [1], "max_rows": 5})),
        ("/api/v1/session", json!({"token": "flt_not_needed_here"})),
    ] {
        let operation = &paths[path]["post"];
        schema::check(&body, &operation["requestBody"]["content"][media]["schema"], path).unwrap();
        let answer = send(server, "POST", path, &[("Content-Type", media)], &body.to_string()).is(200).json();
        let schema = &operation["responses"]["200"]["content"][media]["schema"];
        schema::check(&answer, schema, path).unwrap_or_else(|error| panic!("{error}"));
    }
    let sql = &paths["/api/v1/sql"]["post"];
    for wrong in [json!({"query": "SELECT 1", "other": 1}), json!({"params": []})] {
        let schema = &sql["requestBody"]["content"][media]["schema"];
        assert!(schema::check(&wrong, schema, "").is_err());
        send(server, "POST", "/api/v1/sql", &[("Content-Type", media)], &wrong.to_string()).is(400);
    }
    for accepted in sql["responses"]["200"]["content"].as_object().unwrap().keys() {
        let headers = [("Content-Type", "text/plain"), ("Accept", accepted)];
        let answer = send(server, "POST", "/api/v1/sql", &headers, "SELECT 1 AS one").is(200);
        assert!(answer.header("content-type").unwrap().starts_with(accepted.as_str()), "{accepted}");
    }
    // An unknown parameter of the tail is answered with the known ones, which are those of the document.
    let remedy = server.get("/api/v1/tail?zzzzzzzzzzzz=1").is(400).json()["error"]["remedy"].clone();
    let remedy = remedy.as_str().unwrap();
    let mut listed: Vec<&str> =
        remedy.trim_start_matches("there are ").trim_end_matches('.').split(", ").collect();
    let parameters = paths["/api/v1/tail"]["get"]["parameters"].as_array().unwrap();
    let in_query = parameters.iter().filter(|parameter| parameter["in"] == "query");
    let mut documented: Vec<&str> = in_query.map(|parameter| parameter["name"].as_str().unwrap()).collect();
    listed.sort_unstable();
    documented.sort_unstable();
    assert_eq!(listed, documented, "{remedy}");
}

/// Returns a parameter with a value that occurs.
fn example(parameter: &Value) -> Option<String> {
    let (name, schema) = (parameter["name"].as_str()?, &parameter["schema"]);
    if parameter["in"] == "path" || name == "cursor" {
        return None;
    }
    let words = schema["enum"].as_array().or_else(|| schema["items"]["enum"].as_array());
    let value = match (name, words, schema["type"].as_str()?) {
        ("from", ..) => "2026-11-10T00:00:00Z".to_owned(),
        ("to", ..) => "2026-11-11T00:00:00Z".to_owned(),
        ("time", ..) => "2026-11-10T09:00:00Z".to_owned(),
        (_, Some(words), _) => words[0].as_str()?.to_owned(),
        (_, _, "integer") => schema["maximum"].to_string(),
        (_, _, "boolean") => "true".to_owned(),
        _ => "x'y".to_owned(),
    };
    Some(format!("{name}={}", encoded(&value)))
}

/// Guarantee: what an endpoint counts is what SQL counts for the same range and filters.
fn numbers_equal_those_of_sql(server: &Server) {
    let within = "time >= '2026-11-10' AND time < '2026-11-11'";
    let minutes = "minute >= '2026-11-10' AND minute < '2026-11-11'";
    for (query, condition) in [("", ""), ("&environment=staging", " AND environment = 'staging'")] {
        let overview = get(server, &format!("overview?{RANGE}{query}"));
        let counted = &rows(
            server,
            &format!(
            "SELECT sum(coalesce(represents, 1)) AS errors, sum(CASE WHEN hidden THEN 1 ELSE 0 END) AS hidden,
               count(DISTINCT fingerprint) AS groups FROM errors WHERE {within}{condition}"
        ),
        )[0];
        let called = &rows(
            server,
            &format!(
            "SELECT sum(calls) AS calls, sum(failures) AS failed_calls, sum(hidden_failures) AS hidden_calls
             FROM error_rates WHERE {minutes}{condition}"
        ),
        )[0];
        for (name, expected) in counted.as_object().unwrap().iter().chain(called.as_object().unwrap()) {
            assert_eq!(&overview["totals"][name], expected, "{name} of {query}");
        }
        let series = &overview["series"];
        let by_category: i64 = series["by_category"].as_object().unwrap().values().map(sum).sum();
        assert_eq!(by_category, overview["totals"]["errors"].as_i64().unwrap());
        for name in ["calls", "failed_calls", "hidden_calls"] {
            assert_eq!(sum(&series[name]), overview["totals"][name].as_i64().unwrap(), "{name} of {query}");
            assert_eq!(series[name].as_array().unwrap().len(), series["time"].as_array().unwrap().len());
        }
        let codes: i64 =
            overview["codes"].as_array().unwrap().iter().map(|row| row["errors"].as_i64().unwrap()).sum();
        assert_eq!(codes, by_category, "all codes fit into the list");
        let groups = get(server, &format!("groups?{RANGE}{query}"));
        assert_eq!(groups["total_errors"], overview["totals"]["errors"]);
        assert_eq!(groups["total_groups"], overview["totals"]["groups"]);
    }
    // The time before is compared with: four days before there was one failure.
    let wide = get(server, "overview?from=2026-11-10T00:00:00Z&to=2026-11-15T00:00:00Z");
    assert_eq!(wide["previous"]["errors"], 1);
    let services = get(server, &format!("services?{RANGE}"));
    let walls = &services["services"][0];
    assert_eq!((&walls["service"], &walls["capture"]), (&json!("walls"), &json!("captured")));
    let expected = &rows(
        server,
        &format!(
            "SELECT sum(calls) AS calls, sum(failures) AS failed_calls FROM error_rates WHERE {minutes} AND service = 'walls'"
        ),
    )[0];
    assert_eq!((&walls["calls"], &walls["failed_calls"]), (&expected["calls"], &expected["failed_calls"]));
    assert_eq!(sum(&walls["trend"]["calls"]), walls["calls"].as_i64().unwrap());
    let slowest = walls["p99_ms"].as_f64().unwrap();
    assert!((10.0..=25.0).contains(&slowest), "{slowest}");
    assert!(services["operations"].is_null());
    let one = get(server, &format!("services?{RANGE}&service=walls"));
    assert_eq!(one["operations"][0]["operation"], "paint");
    let hidden =
        services["services"].as_array().unwrap().iter().find(|row| row["service"] == "floors").unwrap();
    assert_eq!(
        (&hidden["errors"], &hidden["hidden"], &hidden["hidden_calls"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert!(
        hidden["findings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|found| found["finding"] == "hidden_failure" && found["share"] == 1.0)
    );
    assert_eq!(
        get(server, &format!("names?{RANGE}")),
        json!({"services": ["walls", "floors"], "environments": ["production", "staging"]})
    );
}

/// Guarantee: a filter leaves what it names; repeated values widen, different filters narrow; an empty value means
/// none.
fn filters_narrow(server: &Server) {
    let total = |query: &str| {
        get(server, &format!("events?{RANGE}&limit=1&buckets=1{query}"))["total"].as_i64().unwrap()
    };
    let cases = [
        ("", "true"),
        ("&kind=error", "kind = 'error'"),
        ("&service=floors", "service = 'floors'"),
        ("&service=floors&service=walls", "service IN ('floors', 'walls')"),
        ("&service=floors&environment=production", "false"),
        ("&category=NOT_FOUND", "category = 'NOT_FOUND'"),
        ("&native_code=NOT_FOUND_RESOURCE", "code = 'NOT_FOUND_RESOURCE'"),
        ("&client=", "client IS NULL"),
        ("&client=&client=ada", "client IS NULL OR client = 'ada'"),
        ("&hidden=true", "hidden"),
        ("&hidden=false", "NOT hidden"),
        ("&denied=true", "denied"),
        ("&denied=false", "NOT denied"),
        ("&finding=hidden_failure", "array_has(findings, 'hidden_failure')"),
        ("&q=QUOTA%20pause", "strpos(lower(message), 'quota pause') > 0"),
        ("&q=%25", "strpos(message, '%') > 0"),
        ("&required_trust=certified", "required_trust = 'certified'"),
    ];
    let columns: Vec<String> = (0..)
        .zip(cases)
        .map(|(index, (_, condition))| format!("sum(CASE WHEN {condition} THEN 1 ELSE 0 END) AS n{index}"))
        .collect();
    let expected = &rows(server, &format!(
        "SELECT {} FROM (
           SELECT events.*, denials.event_id IS NOT NULL AS denied
           FROM events LEFT JOIN (SELECT event_id FROM trust_denials) AS denials ON denials.event_id = events.event_id
         ) AS events WHERE time >= '2026-11-10' AND time < '2026-11-11'",
        columns.join(", ")
    ))[0];
    for (index, (query, condition)) in cases.into_iter().enumerate() {
        let expected = expected[&format!("n{index}")].as_i64().unwrap();
        assert_eq!(total(query), expected, "{query}");
        assert_eq!(
            expected > 0,
            !["false", "strpos(message, '%') > 0"].contains(&condition),
            "{query} tells something"
        );
    }
    let facets = get(server, &format!("events?{RANGE}&kind=error"))["facets"].clone();
    assert_eq!((&facets["client"][0]["value"], &facets["client"][0]["errors"]), (&json!("ada"), &json!(5)));
}

/// Guarantee: a group that was silent for days has regressed, one that was never seen is new; totals hold for all
/// pages.
fn groups_have_states(server: &Server) {
    let all = get(server, &format!("groups?{RANGE}"));
    assert_eq!(all["states"], json!({"new": 3, "regressed": 1, "ongoing": 0}));
    let first = &all["groups"][0];
    assert_eq!(
        (&first["state"], &first["errors"], &first["clients"]),
        (&json!("regressed"), &json!(5), &json!(1))
    );
    assert_eq!(first["previous_seen"], "2026-11-06T09:00:00Z");
    assert_eq!(sum(&first["trend"]), 5);
    let new = get(server, &format!("groups?{RANGE}&state=new&limit=1&offset=1&sort=last_seen"));
    assert_eq!((&new["total_groups"], new["groups"].as_array().unwrap().len()), (&json!(3), 1));
    assert_eq!(new["states"], all["states"]);
    assert_eq!(new["groups"][0]["state"], "new");
    let beyond = get(server, &format!("groups?{RANGE}&offset=100"));
    assert_eq!((&beyond["total_groups"], &beyond["groups"]), (&json!(4), &json!([])));
    assert_eq!(get(server, &format!("groups?{RANGE}&state=ongoing"))["groups"], json!([]));
    let within = get(server, "groups?from=2026-11-10T09:00:03Z&to=2026-11-10T09:30:00Z");
    assert_eq!(within["groups"][0]["state"], "ongoing");

    let fingerprint = first["fingerprint"].as_str().unwrap();
    let page = get(server, &format!("groups/{fingerprint}?{RANGE}"));
    assert_eq!((&page["group"]["errors"], &page["total_errors"]), (&json!(5), &json!(6)));
    assert_eq!(page["group"]["state"], "regressed");
    assert_eq!(page["facets"]["client"][0]["value"], "ada");
    assert_eq!(page["retry_loops"][0]["attempts"], 5);
    assert!(page["meaning"]["description"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(rows(server, page["sql"].as_str().unwrap()).len(), 5, "the statement gives the events");
    let empty =
        get(server, &format!("groups/{fingerprint}?from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z"));
    assert_eq!((&empty["group"]["errors"], &empty["total_errors"]), (&json!(0), &json!(6)));
}

/// Guarantee: pages follow each other without a gap or a repeat, and an event is found with and without a hint.
fn events_come_in_pages(server: &Server) {
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(server, &format!("events?{RANGE}&limit=3{cursor}"));
        assert_eq!(page.get("facets").is_some(), cursor.is_empty());
        seen.extend(page["events"].as_array().unwrap().iter().map(|event| event["event_id"].clone()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let expected = rows(
        server,
        "SELECT event_id FROM events WHERE time >= '2026-11-10' AND time < '2026-11-11' ORDER BY time DESC, event_id DESC",
    );
    assert_eq!(seen, expected.iter().map(|row| row["event_id"].clone()).collect::<Vec<_>>());
    let id = seen[0].as_str().unwrap();
    let found = get(server, &format!("events/{id}"));
    assert!(found["event"].as_object().unwrap().contains_key("details"));
    assert_eq!(get(server, &format!("events/{id}?time=2020-01-01T00:00:00Z"))["event"], found["event"]);
    let traced = get(server, &format!("events?{RANGE}&client=ada&limit=1"))["events"][0]["event_id"].clone();
    let related = get(server, &format!("events/{}", traced.as_str().unwrap()))["related"].clone();
    assert_eq!(related.as_array().unwrap().len(), 6, "the others of the trace: {related}");
}

/// Guarantee: quotas with their trend, denials and confirmations are those of the views.
fn quotas_and_trust_are_told(server: &Server) {
    let quotas = get(server, &format!("quotas?{RANGE}"));
    let quota = &quotas["quotas"][0];
    assert_eq!(
        (&quota["service"], &quota["quota_metric"], &quota["quota_current"]),
        (&json!("floors"), &json!("litres_per_day"), &json!(97.0))
    );
    let trend: Vec<&Value> =
        quota["trend"].as_array().unwrap().iter().filter(|value| !value.is_null()).collect();
    assert_eq!(trend, [&json!(97.0)]);
    assert_eq!(get(server, &format!("quotas?{RANGE}&service=walls"))["quotas"], json!([]));
    let trust = get(server, &format!("trust?{RANGE}"));
    assert_eq!(trust["total_denials"], 1);
    let denial = &trust["denials"][0];
    assert_eq!((&denial["required_trust"], &denial["trust_gap"]), (&json!("certified"), &json!(3)));
    let by_code: i64 = trust["series"]["by_code"].as_object().unwrap().values().map(sum).sum();
    assert_eq!(by_code, 1);
    let confirmations = &trust["confirmations"];
    let expected = rows(
        server,
        "SELECT state, count(*) AS n FROM confirmations WHERE last_seen >= '2026-11-10' AND last_seen < '2026-11-11' GROUP BY state",
    );
    for row in &expected {
        assert_eq!(confirmations["states"][row["state"].as_str().unwrap()], row["n"]);
    }
    assert_eq!((&confirmations["required"], &confirmations["used"]), (&json!(2), &json!(1)));
    assert_eq!(confirmations["median_seconds_to_use"], 60.0);
    let codes = get(server, &format!("codes?{RANGE}"));
    assert_eq!(codes["codes"].as_array().unwrap().len(), rows(server, "SELECT * FROM codes").len());
    assert_eq!(codes["categories"].as_array().unwrap().len(), 10);
    let seen =
        |code: &str| codes["seen"].as_array().unwrap().iter().find(|row| row["canonical"] == code).cloned();
    assert_eq!(seen("NOT_FOUND_RESOURCE").unwrap()["errors"], 5);
    let ingest = get(server, "overview")["ingest"].clone();
    assert_eq!((&ingest["ready"], &ingest["message"]), (&json!(true), &Value::Null));
    assert_eq!(ingest["events"], rows(server, "SELECT count(*) AS n FROM events")[0]["n"]);
    assert!(ingest["events_last_minute"].as_i64().is_some());
}

/// Guarantee: what cannot be is 400 or 404, with a message and a remedy that are sentences.
fn mistakes_are_explained(server: &Server) {
    for (path, status) in [
        ("overview?from=yesterday", 400),
        ("overview?from=now&to=-1h", 400),
        ("overview?buckets=0", 400),
        ("overview?buckets=1001", 400),
        ("overview?category=NOT_FOUND", 400),
        ("groups?state=old", 400),
        ("groups?sort=name", 400),
        ("groups?limit=501", 400),
        ("groups?limit=-1", 400),
        ("groups?from=-1h&from=-2h", 400),
        ("events?hidden=maybe", 400),
        ("events?cursor=x", 400),
        ("events?cursor=1.%27", 400),
        ("events?category=nothing", 400),
        ("events?sevrice=walls", 400),
        ("schema?x=1", 400),
        ("groups/0000000000000000", 404),
        ("groups/%27%20OR%201=1", 404),
        ("events/0000000000000000", 404),
    ] {
        let error = server.get(&format!("/api/v1/{path}")).is(status).json()["error"].clone();
        for name in ["message", "remedy"] {
            let text = error[name].as_str().unwrap_or_else(|| panic!("{path} has no {name}: {error}"));
            assert!(text.ends_with('.') && text.len() > 10, "{path}: {text}");
        }
    }
    let error = server.get("/api/v1/events?sevrice=walls").json()["error"].clone();
    assert!(error["remedy"].as_str().unwrap().starts_with("Did you mean service?"), "{error}");
}

/// Guarantee: whatever a sender chose comes back as the same text in JSON, and works as the value of a filter.
fn hostile_text_is_text(server: &Server) {
    let range = "from=2026-11-12T00:00:00Z&to=2026-11-13T00:00:00Z";
    let filter = format!("{range}&service={0}&client={0}&operation={0}&environment={0}", encoded(HOSTILE));
    let raw = server.get(&format!("/api/v1/events?{filter}")).is(200);
    assert!(!raw.body.contains(&0x1b) && !raw.body.contains(&0x07), "control characters are escaped");
    let events = raw.json();
    assert_eq!(events["total"], 1);
    let event = &events["events"][0];
    for name in ["service", "environment", "client", "operation"] {
        assert_eq!(event[name], HOSTILE, "{name}");
    }
    assert_eq!(
        event["message"],
        rows(server, "SELECT message FROM events WHERE time >= '2026-11-12'")[0]["message"]
    );
    assert!(event["message"].as_str().unwrap().contains("<script>alert(1)</script>"));
    let id = event["event_id"].as_str().unwrap();
    let fingerprint = event["fingerprint"].as_str().unwrap();
    for path in ["overview", "groups", "services", "codes", "names", &format!("groups/{fingerprint}")] {
        let query = if ["codes", "names"].contains(&path) || path.contains('/') {
            range
        } else {
            &filter[..filter.find("&client").unwrap()]
        };
        let answer = server.get(&format!("/api/v1/{path}?{query}")).is(200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(path == "codes" || answer.json().to_string().contains("<script>alert(1)</script>"), "{path}");
    }
    let found = get(server, &format!("events/{id}"));
    assert!(found["event"]["details"].as_str().unwrap().contains("onerror"));
    let page = get(server, &format!("groups/{fingerprint}?{range}&environment={}", encoded(HOSTILE)));
    assert_eq!(
        rows(server, page["sql"].as_str().unwrap()).len(),
        1,
        "the statement of a hostile group works"
    );
}

/// Guarantee: HEAD and OPTIONS are answered; another method is 405 with what is allowed and a sentence.
fn methods_are_told(server: &Server) {
    for path in ["/api/v1/overview", "/api/v1/openapi.json", "/", "/assets/app.js"] {
        let head = send(server, "HEAD", path, &[], "").is(200);
        assert!(head.body.is_empty() && head.header("content-type").is_some(), "{path}");
    }
    for (path, allowed, wrong) in [
        ("/api/v1/overview", "GET", "POST"),
        ("/api/v1/groups/x", "GET", "DELETE"),
        ("/api/v1/sql", "POST", "GET"),
        ("/api/v1/tail", "GET", "POST"),
        ("/api/v1/session", "DELETE", "PUT"),
        ("/", "GET", "POST"),
    ] {
        let options = send(server, "OPTIONS", path, &[], "").is(204);
        assert!(options.header("allow").is_some_and(|allow| allow.contains(allowed)), "{path} {options:?}");
        let answer = send(server, wrong, path, &[], "").is(405);
        assert!(answer.header("allow").is_some_and(|allow| allow.contains(allowed)), "{path} {answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], "wrong_method");
        assert!(error["message"].as_str().unwrap().ends_with('.') && error["remedy"].as_str().is_some());
    }
}

/// Guarantee: `curl -d "SELECT ..."`, which sends the content type of a form, is understood; so is JSON under it.
fn statements_of_curl_are_read(server: &Server) {
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    for headers in [&[form][..], &[]] {
        for body in ["SELECT 1 AS one", "  (SELECT 1 AS one)", r#"{"query": "SELECT 1 AS one"}"#] {
            let answer = send(server, "POST", "/api/v1/sql", headers, body).is(200).json();
            assert_eq!(answer["rows"], json!([{"one": 1}]), "{body}");
        }
    }
    let error =
        send(server, "POST", "/api/v1/sql", &[form], "query=SELECT+1").is(400).json()["error"].clone();
    assert!(error["remedy"].as_str().unwrap().contains("text/plain"), "{error}");
    send(server, "POST", "/api/v1/sql", &[], "").is(400);
}

/// Guarantee: the page and its files come with their type, a policy that lets nothing foreign in, a tag, and
/// compressed.
fn the_page_is_served(server: &Server) {
    let files = [
        ("/", "index.html", "text/html; charset=utf-8"),
        ("/assets/app.js", "app.js", "text/javascript; charset=utf-8"),
        ("/assets/app.css", "app.css", "text/css; charset=utf-8"),
        ("/assets/icon.svg", "icon.svg", "image/svg+xml"),
    ];
    for (path, file, media) in files {
        let expected = std::fs::read(root().join("web/dist").join(file)).expect("a file of the page");
        let plain = server.get(path).is(200);
        assert_eq!(plain.body, expected, "{path}");
        assert_eq!(plain.header("content-type"), Some(media));
        let policy = plain.header("content-security-policy").expect("a policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{part}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(plain.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(plain.header("referrer-policy"), Some("no-referrer"));
        let packed = send(server, "GET", path, &[("Accept-Encoding", "gzip, br")], "").is(200);
        assert_eq!(packed.header("content-encoding"), Some("gzip"));
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed.body[..]).read_to_end(&mut unpacked).expect("gzip");
        assert_eq!(unpacked, expected, "{path}");
        for (answer, coding) in [(&plain, "identity"), (&packed, "gzip")] {
            let tag = answer.header("etag").expect("a tag");
            let again =
                send(server, "GET", path, &[("If-None-Match", tag), ("Accept-Encoding", coding)], "").is(304);
            assert!(again.body.is_empty());
        }
        send(server, "GET", path, &[("If-None-Match", "\"other\"")], "").is(200);
    }
}

/// Guarantee: a view's path leads to the view; an unknown path is a page for a browser and JSON for a program.
fn unknown_paths_answer_browsers_and_programs(server: &Server) {
    let browser = [("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    let deep = send(server, "GET", "/groups/abc?from=-7d", &browser, "").is(302);
    assert_eq!(deep.header("location"), Some("../#/groups/abc?from=-7d"));
    let flat = send(server, "GET", "/quotas", &browser, "").is(302);
    assert_eq!(flat.header("location"), Some("./#/quotas"));
    // Views that the page does not have are no pages either.
    for path in ["/nothing", "/alerts", "/recovery", "/api/v1/nothing", "/assets/nothing.js"] {
        let page = send(server, "GET", path, &browser, "").is(404);
        let text = String::from_utf8(page.body.clone()).expect("UTF-8");
        assert!(text.contains("/app.css") && !text.contains("\"/") && !text.contains("ROOT"), "{text}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert!(page.header("content-security-policy").is_some());
        let program = send(server, "GET", path, &[("Accept", "*/*")], "").is(404);
        assert_eq!(program.json()["error"]["code"], "not_found");
        send(server, "POST", path, &browser, "").is(404).json();
    }
    // A page that has rebound its name to this machine gets no data.
    let rebound = send(server, "GET", "/api/v1/overview", &[("Host", "evil.example")], "").is(403);
    assert!(rebound.json()["error"]["message"].as_str().unwrap().contains("Host"));
}
