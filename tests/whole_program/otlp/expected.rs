//! The expected row of each span and log record of `tests/clients/story.py`, column by column.

use crate::whole_program::server::Server;
use serde_json::{Map, Value, json};

/// The name of a span or record in the story, and its row, without the values that are the same for all and those that
/// the story itself reports: ids and times. Other columns must be null.
pub(crate) fn events() -> Vec<(&'static str, Value)> {
    vec![
        (
            "hidden",
            json!({
                "kind": "error", "dialect": "mcp-aql", "severity": "error", "source": "otlp_traces",
                "code": "RATE_LIMIT_QUOTA_PAUSE", "canonical": "RATE_LIMIT_QUOTA_PAUSE",
                "category": "RATE_LIMIT", "fault": "quota", "retryable": false, "recovery": "confirm",
                "inferred": false, "hidden": true, "span_kind": "server", "operation": "pay",
                "message": "Quota pause threshold reached", "template": "Quota pause threshold reached",
                "findings": ["missing_details", "hidden_failure"],
                "request_id": "req-7", "session_id": "session-3",
                "quota_metric": "requests_per_hour", "quota_current": 4850, "quota_limit": 4800,
                "quota_level": "pause",
                "details": {"metric": "requests_per_hour", "current": 4850, "pause_threshold": 4800},
                "attributes": {
                    "mcp.method.name": "tools/call", "app.region": "eu-west", "app.attempts": 3,
                    "app.ratio": 0.25, "app.cached": false, "app.tags": ["a", "b"],
                    "span.name": "tools/call pay",
                },
            }),
        ),
        (
            "unset",
            json!({
                "kind": "error", "dialect": "jsonrpc", "severity": "error", "source": "otlp_traces",
                "code": "-32602", "canonical": "VALIDATION_INVALID_PARAMS", "category": "VALIDATION",
                "fault": "caller",
                "retryable": false, "recovery": "repair_request", "inferred": false, "hidden": true,
                "span_kind": "server", "operation": "get-weather", "findings": ["hidden_failure"],
                "attributes": {
                    "mcp.method.name": "tools/call", "rpc.system": "jsonrpc",
                    "span.name": "tools/call get-weather",
                },
            }),
        ),
        (
            "exception",
            json!({
                "kind": "error", "dialect": "jsonrpc", "severity": "error", "source": "otlp_traces",
                "canonical": "INTERNAL_TIMEOUT", "category": "INTERNAL", "fault": "upstream", "recovery": "report_fault",
                "inferred": true, "hidden": false, "span_kind": "server", "operation": "forecast",
                "message": "upstream timed out after 30 s",
                "template": "upstream timed out after {number} s",
                "attributes": {
                    "mcp.method.name": "tools/call", "span.name": "tools/call forecast",
                    "exception.type": "TimeoutError",
                    "exception.stacktrace": "TimeoutError: upstream timed out after 30 s\n",
                    "status.message": "the forecast failed",
                },
            }),
        ),
        ("client", not_found("client")),
        ("server", not_found("server")),
        (
            "limited",
            json!({
                "kind": "error", "dialect": "http", "severity": "error", "source": "otlp_traces",
                "canonical": "RATE_LIMIT_EXCEEDED", "category": "RATE_LIMIT", "fault": "quota", "retryable": true,
                "recovery": "back_off", "inferred": true, "hidden": false, "http_status": 429,
                "span_kind": "client", "operation": "GET /forecast", "quota_level": "exceeded",
                "attributes": {"http.request.method": "GET", "error.type": "429"},
            }),
        ),
        (
            "tool error",
            json!({
                "kind": "error", "dialect": "jsonrpc", "severity": "error", "source": "otlp_traces",
                "code": "tool_error", "canonical": "NOT_FOUND_RESOURCE", "category": "NOT_FOUND",
                "fault": "caller", "retryable": false, "recovery": "choose_another_target",
                "inferred": true, "hidden": false, "span_kind": "internal",
                "operation": "convert", "message": "unit 'furlong' is not known",
                "template": "unit '{value}' is not known",
                "attributes": {"span.name": "execute_tool convert"},
            }),
        ),
        (
            "text",
            json!({
                "kind": "error", "dialect": "mcp-aql", "severity": "error", "source": "otlp_logs",
                "code": "NOT_FOUND_RESOURCE", "canonical": "NOT_FOUND_RESOURCE", "category": "NOT_FOUND",
                "fault": "caller",
                "retryable": false, "recovery": "choose_another_target", "inferred": false,
                "hidden": false, "operation": "find-station",
                "message": "Resource 'station' not found: '17'",
                "template": "Resource '{value}' not found: '{value}'",
            }),
        ),
        (
            "dict",
            json!({
                "kind": "error", "dialect": "mcp-aql", "severity": "error", "source": "otlp_logs",
                "code": "PERMISSION_DENIED", "canonical": "PERMISSION_DENIED", "category": "PERMISSION",
                "fault": "caller",
                "retryable": false, "recovery": "request_access", "inferred": false, "hidden": false,
                "operation": "delete_station", "client": "u-17", "message": "Not yours",
                "template": "Not yours", "findings": ["template_mismatch"],
            }),
        ),
        (
            "raised",
            json!({
                "kind": "error", "dialect": "unknown", "severity": "error", "source": "otlp_logs",
                "canonical": "VALIDATION_ERROR", "category": "VALIDATION", "fault": "caller", "retryable": false,
                "recovery": "repair_request", "inferred": true, "hidden": false,
                "message": "Invalid unit: 'zz'", "template": "Invalid unit: '{value}'",
                "attributes": {
                    "exception.type": "ValueError", "code.line": 12, "body": "cannot convert",
                    "exception.stacktrace": "ValueError: Invalid unit: 'zz'\n",
                },
            }),
        ),
    ]
}

/// The two sides of one call.
fn not_found(span_kind: &str) -> Value {
    json!({
        "kind": "error", "dialect": "jsonrpc", "severity": "error", "source": "otlp_traces",
        "code": "-32601", "canonical": "NOT_FOUND_OPERATION", "category": "NOT_FOUND", "fault": "caller",
        "retryable": false, "recovery": "discover_operations", "inferred": false, "hidden": false,
        "span_kind": span_kind, "operation": "resources/read", "message": "Method not found",
        "template": "Method not found",
        "attributes": {"error.type": "-32601", "span.name": "resources/read"},
    })
}

/// Operation, dialect, outcome, reporting side, number of calls, and microseconds.
type Traffic<'a> = (&'a str, &'a str, &'a str, Option<&'a str>, i64, i64);

/// Each call once, with the side that reports it.
const TRAFFIC: [Traffic<'_>; 8] = [
    ("convert", "jsonrpc", "failed", Some("internal"), 1, 15_000),
    ("find-station", "mcp-aql", "failed", None, 1, 0),
    ("forecast", "jsonrpc", "failed", Some("server"), 1, 4_500),
    ("get-weather", "jsonrpc", "hidden", Some("server"), 1, 3_000),
    ("get-weather", "jsonrpc", "ok", Some("server"), 2, 13_500),
    ("pay", "mcp-aql", "hidden", Some("server"), 1, 1_500),
    ("resources/read", "jsonrpc", "failed", Some("client"), 1, 10_500),
    ("resources/read", "jsonrpc", "failed", Some("server"), 1, 12_000),
];

/// The service whose rows only fill the WAL.
pub(crate) const FILLER: &str = "filler";

/// Returns the rows of a table that the story should have left.
fn rows_of(server: &Server, table: &str) -> Vec<Value> {
    server.dump(table).into_iter().filter(|row| row["service"] != FILLER).collect()
}

/// Checks everything that is stored against the report of the sender.
#[track_caller]
pub(crate) fn check(server: &Server, told: &Value) {
    let (mut rows, further): (Vec<_>, Vec<_>) =
        rows_of(server, "events").into_iter().partition(|row| row["represents"] != 0);
    let expected = events();
    let names: Vec<_> = expected.iter().map(|(name, _)| *name).collect();
    assert_eq!(rows.len(), expected.len(), "{names:?}\n{rows:#?}");
    check_reports(&names, &mut rows, &further);
    for ((name, expected), row) in expected.into_iter().zip(&rows) {
        check_event(name, expected, row, &told[name]);
    }
    check_traffic(server);
    let rejects = server.dump("rejects");
    assert_eq!(rejects.len(), 1, "{rejects:?}");
    let chat = ["source", "reason", "line", "bytes", "sample"].map(|column| &rejects[0][column]);
    assert_eq!(json!(chat), json!(["otlp_logs", "no_envelope", 5, 13, "cache is warm"]));
}

/// Checks which row represents a failure that is reported twice: the server's for a call, and the span's for its log
/// record.
#[track_caller]
fn check_reports(names: &[&str], rows: &mut [Value], further: &[Value]) {
    let id = |rows: &[Value], name: &str| {
        let index = names.iter().position(|known| *known == name).expect(name);
        (index, rows[index]["event_id"].clone())
    };
    let ((_, client), (server, _)) = (id(rows, "client"), id(rows, "server"));
    let replaced = rows[server].as_object_mut().expect("a row").remove("supersedes");
    assert_eq!(replaced, Some(client), "the server's report stands for both");
    let repeats: Vec<_> = further.iter().map(|row| (&row["source"], &row["duplicate_of"])).collect();
    assert_eq!(repeats, [(&json!("otlp_logs"), &id(rows, "exception").1)], "{further:#?}");
}

/// Compares one row with the expected one, column by column, and with the reported ids and times.
#[track_caller]
fn check_event(name: &str, mut expected: Value, row: &Value, told: &Value) {
    let mut row = row.as_object().expect("a row").clone();
    assert_eq!(micros(&row["time"]), told["end_ns"].as_i64().expect("a time") / 1_000, "{name}: time");
    let age = jiff::Timestamp::now().as_microsecond() - micros(&row["ingested_at"]);
    assert!((0..600_000_000).contains(&age), "{name}: ingested_at");
    for (column, digits) in [("event_id", 32), ("fingerprint", 16)] {
        let id = row[column].as_str().expect(column);
        assert!(id.len() == digits && id.bytes().all(|digit| digit.is_ascii_hexdigit()), "{name}: {id}");
    }
    for column in ["time", "ingested_at", "event_id", "fingerprint"] {
        row.remove(column);
    }
    let expected = expected.as_object_mut().expect("a row");
    for (column, value) in [("service", "weather"), ("service_version", "1.4.2"), ("environment", "staging")]
    {
        expected.insert(column.to_owned(), value.into());
    }
    expected.insert("represents".to_owned(), 1.into());
    for column in ["trace_id", "span_id"] {
        expected.insert(column.to_owned(), told[column].clone());
    }
    if expected.get("source") == Some(&"otlp_traces".into()) {
        let nanos = told["end_ns"].as_i64().expect("a time") - told["start_ns"].as_i64().expect("a time");
        expected.insert("duration_us".to_owned(), (nanos / 1_000).into());
    }
    expected.retain(|_, value| !value.is_null());
    compare(name, &row, expected);
}

#[track_caller]
fn compare(name: &str, row: &Map<String, Value>, expected: &Map<String, Value>) {
    for (column, value) in expected {
        assert_eq!(row.get(column), Some(value), "{name}: {column}\n{row:#?}");
    }
    let surplus: Vec<_> = row.keys().filter(|column| !expected.contains_key(*column)).collect();
    assert!(surplus.is_empty(), "{name} has more than it should: {surplus:?}\n{row:#?}");
}

#[track_caller]
fn check_traffic(server: &Server) {
    let mut rows = rows_of(server, "traffic");
    let text = |row: &Value, column: &str| row[column].as_str().unwrap_or_default().to_owned();
    rows.sort_by_key(|row| ["operation", "outcome", "span_kind"].map(|column| text(row, column)));
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            let number = |column: &str| row[column].as_i64().expect(column);
            assert_eq!(
                json!([row["minute"], row["service"], row["environment"]]),
                json!([MINUTE, "weather", "staging"])
            );
            let failed = if row["outcome"] == "ok" { 0 } else { number("calls") };
            let hidden = if row["outcome"] == "hidden" { number("calls") } else { 0 };
            assert_eq!((number("failures"), number("hidden_failures")), (failed, hidden), "{row}");
            (
                row["operation"].as_str().expect("an operation"),
                row["dialect"].as_str().expect("a dialect"),
                row["outcome"].as_str().expect("an outcome"),
                row["span_kind"].as_str(),
                number("calls"),
                number("duration_sum_us"),
            )
        })
        .collect();
    assert_eq!(found, TRAFFIC);
}

const MINUTE: &str = "2026-11-01T08:00:00Z";

fn micros(time: &Value) -> i64 {
    let time: jiff::Timestamp = time.as_str().and_then(|time| time.parse().ok()).expect("a time");
    time.as_microsecond()
}
