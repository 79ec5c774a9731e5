//! The reports that current instrumentations send for one tool call, each in a request of its own and in every order:
//! they must yield one failure and one call per side, shown with the best data that is known.

use super::*;
use crate::receivers::otlp::Signal;
use serde_json::json;
use std::collections::HashSet;

/// An OTLP/JSON request.
#[derive(Clone)]
struct Sent {
    signal: Signal,
    body: String,
}

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4701";

fn attributes(given: &Value) -> Value {
    let value = |value: &Value| match value {
        Value::Bool(value) => json!({"boolValue": value}),
        other => json!({"stringValue": other.as_str().unwrap()}),
    };
    let fields = given.as_object().unwrap().iter();
    fields.map(|(key, given)| json!({"key": key, "value": value(given)})).collect()
}

/// Returns a request with a span, filled in with the fields that all spans of these tests have.
fn span(service: &str, ids: [u8; 2], mut span: Value) -> Sent {
    let [id, parent] = ids.map(|id| if id == 0 { String::new() } else { format!("{id:02x}").repeat(8) });
    {
        let key = "attributes";
        span[key] = attributes(&span[key]);
    }
    if let Some(exception) = span.get("exception").cloned() {
        span["events"] = json!([{"name": "exception", "attributes": attributes(&exception)}]);
    }
    if span.get("traceId").is_none() {
        span["traceId"] = TRACE_ID.into();
    }
    (span["spanId"], span["parentSpanId"]) = (id.into(), parent.into());
    span["startTimeUnixNano"] = "1767323040000000000".into();
    span["endTimeUnixNano"] = "1767323041000000000".into();
    let resource = json!({"attributes": attributes(&json!({"service.name": service}))});
    let body = json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]});
    Sent { signal: Signal::Traces, body: body.to_string() }
}

fn log(service: &str, span_id: u8, mut record: Value) -> Sent {
    record["attributes"] = attributes(&record["attributes"]);
    (record["traceId"], record["spanId"]) = (TRACE_ID.into(), format!("{span_id:02x}").repeat(8).into());
    record["timeUnixNano"] = "1767323041000000000".into();
    let resource = json!({"attributes": attributes(&json!({"service.name": service}))});
    let body = json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record]}]}]});
    Sent { signal: Signal::Logs, body: body.to_string() }
}

const STACK: &str = "Traceback: stock 17";

/// `FastMCP` 4 on both sides: three spans, of which two report the failure.
fn fastmcp(base: u8, parent: u8) -> Vec<Sent> {
    let message = "Error calling tool 'merge': stock 17 is locked";
    let error = json!({"code": 2, "message": message});
    let (client, sender, server) = (base, base + 1, base + 2);
    let named =
        json!({"mcp.method.name": "tools/call", "gen_ai.tool.name": "merge", "error.type": "tool_error"});
    vec![
        span(
            "crm",
            [server, sender],
            json!({
                "name": "tools/call merge", "kind": 2, "status": error, "attributes": named,
                "exception": {"exception.type": "app.ToolError", "exception.message": message, "exception.stacktrace": STACK},
            }),
        ),
        span(
            "agent",
            [sender, client],
            json!({
                "name": "MCP send tools/call merge", "kind": 3, "attributes": {"mcp.method.name": "tools/call"},
            }),
        ),
        span(
            "agent",
            [client, parent],
            json!({
                "name": "tools/call merge", "kind": 3, "status": error, "attributes": named,
            }),
        ),
    ]
}

/// `OpenLLMetry` on both sides: the tool and its server, the streams of both, and the tool of the client.
fn openllmetry() -> Vec<Sent> {
    let message = "Error calling tool 'merge': stock 17 is locked";
    let error = json!({"code": 2, "message": message});
    let exception = json!({"exception.type": "app.ToolError", "exception.message": message, "exception.stacktrace": STACK});
    let result = json!({"content": [{"type": "text", "text": message}], "isError": true}).to_string();
    vec![
        span(
            "crm",
            [5, 4],
            json!({
                "name": "merge.tool", "kind": 1, "status": error, "exception": exception, "attributes": {
                    "traceloop.span.kind": "tool", "traceloop.entity.name": "merge", "traceloop.workflow.name": "crm.mcp",
                    "error.type": "ToolError",
                },
            }),
        ),
        span(
            "crm",
            [4, 2],
            json!({
                "name": "mcp.server", "kind": 1, "status": error, "exception": exception, "attributes": {
                    "traceloop.span.kind": "server", "traceloop.entity.name": "mcp.server",
                    "traceloop.workflow.name": "crm.mcp", "error.type": "ToolError",
                },
            }),
        ),
        span(
            "crm",
            [6, 2],
            json!({
                "name": "ResponseStreamWriter", "kind": 1, "status": error,
                "attributes": {"mcp.response.value": result, "mcp.request.id": "1"},
            }),
        ),
        span(
            "agent",
            [2, 1],
            json!({
                "name": "ResponseStreamWriter", "kind": 1, "attributes": {"mcp.request.id": "1"},
            }),
        ),
        span(
            "agent",
            [1, 9],
            json!({
                "name": "merge.tool", "kind": 1, "status": error, "attributes": {
                    "traceloop.span.kind": "tool", "traceloop.entity.name": "merge", "error.type": "tool_error",
                    "traceloop.entity.output": json!({"result": message, "is_error": true}).to_string(),
                },
            }),
        ),
    ]
}

/// The server of the Python SDK: a span without a message, and a log record with it.
fn python_sdk() -> Vec<Sent> {
    vec![
        span(
            "crm",
            [3, 0],
            json!({
                "name": "tools/call merge", "kind": 2, "status": {"code": 2}, "attributes": {
                    "mcp.method.name": "tools/call", "gen_ai.tool.name": "merge", "error.type": "tool_error",
                },
            }),
        ),
        log(
            "crm",
            3,
            json!({
                "severityNumber": 17, "body": {"stringValue": "Tool 'merge' raised an unexpected exception"},
                "attributes": {
                    "exception.type": "TimeoutError", "exception.message": "stock 17 timed out", "exception.stacktrace": STACK,
                },
            }),
        ),
    ]
}

async fn submit(pipeline: &Pipeline, sent: &Sent) {
    let request = Request {
        defaults: Defaults::default(),
        ..request(sent.signal.source(), sent.signal.read_json(), &sent.body)
    };
    let response = pipeline.submit(request).await.unwrap();
    assert_eq!(response.rejected_count, 0, "{response:?}");
}

/// Returns the failures that count: those that are neither duplicates nor superseded.
fn shown(pipeline: &Pipeline) -> Vec<Value> {
    let rows = rows(pipeline, Table::Events);
    let superseded: HashSet<String> =
        rows.iter().filter_map(|row| Some(row.get("supersedes")?.as_str()?.to_owned())).collect();
    let is_shown =
        |row: &Value| row["represents"] == 1 && !superseded.contains(row["event_id"].as_str().unwrap());
    rows.into_iter().filter(is_shown).collect()
}

/// Returns the number of calls that each side counted: the client, then the server.
fn calls_by_side(pipeline: &Pipeline) -> [i64; 2] {
    let rows = rows(pipeline, Table::Traffic);
    let side = |is_caller: bool| {
        let on_side =
            rows.iter().filter(|row| matches!(row["span_kind"].as_str(), Some("client")) == is_caller);
        on_side.map(|row| row["calls"].as_i64().unwrap()).sum()
    };
    [side(true), side(false)]
}

/// Returns every order of a list.
fn orders(sent: &[Sent]) -> Vec<Vec<Sent>> {
    if sent.len() < 2 {
        return vec![sent.to_vec()];
    }
    let each = |index: usize| {
        let mut rest = sent.to_vec();
        let first = rest.remove(index);
        orders(&rest).into_iter().map(move |order| [vec![first.clone()], order].concat()).collect::<Vec<_>>()
    };
    (0..sent.len()).flat_map(each).collect()
}

async fn sent_in_order(order: &[Sent]) -> (TempDir, Pipeline) {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    for sent in order {
        submit(&pipeline, sent).await;
    }
    (folder, pipeline)
}

#[track_caller]
fn check_one(pipeline: &Pipeline, service: &str, message: &str) {
    let shown = shown(pipeline);
    assert_eq!(shown.len(), 1, "{shown:#?}");
    let row = &shown[0];
    let told = [&row["service"], &row["operation"], &row["message"]].map(|cell| cell.as_str().unwrap_or("-"));
    assert_eq!(told, [service, "merge", message], "{row:#}");
    assert!(row["attributes"].to_string().contains(STACK), "{row:#}");
}

#[tokio::test]
async fn fastmcp_reports_one_failure() {
    let reports = fastmcp(1, 0);
    for order in orders(&reports) {
        // The report that links the others comes last; until then their connection cannot be known.
        if order[2].body == reports[1].body {
            continue;
        }
        let (_folder, pipeline) = sent_in_order(&order).await;
        check_one(&pipeline, "crm", "Error calling tool 'merge': stock 17 is locked");
        assert_eq!(calls_by_side(&pipeline), [1, 1]);
    }
}

/// Returns every order in which the requests of two exporters can arrive; each keeps its own order.
fn interleaved(one: &[Sent], other: &[Sent]) -> Vec<Vec<Sent>> {
    let (Some((first, rest)), Some((other_first, other_rest))) = (one.split_first(), other.split_first())
    else {
        return vec![[one, other].concat()];
    };
    let after = |first: &Sent, rest: Vec<Vec<Sent>>| {
        rest.into_iter().map(|order| [vec![first.clone()], order].concat()).collect::<Vec<_>>()
    };
    [after(first, interleaved(rest, other)), after(other_first, interleaved(one, other_rest))].concat()
}

const LOCKED: &str = "Error calling tool 'merge': stock 17 is locked";

#[tokio::test]
async fn openllmetry_reports_one_failure() {
    let reports = openllmetry();
    let orders = interleaved(&reports[..3], &reports[3..]);
    assert_eq!(orders.len(), 10);
    for order in orders {
        let (_folder, pipeline) = sent_in_order(&order).await;
        check_one(&pipeline, "crm", LOCKED);
        assert_eq!(calls_by_side(&pipeline), [1, 1]);
    }
}

/// Changes the only span of a request.
fn changed(sent: &Sent, change: impl FnOnce(&mut Value)) -> Sent {
    let mut body: Value = serde_json::from_str(&sent.body).unwrap();
    change(&mut body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]);
    Sent { body: body.to_string(), ..sent.clone() }
}

/// Returns the spans of `OpenLLMetry` when it is set up after the imports: the tool and its server in one trace, the tool
/// of the client in another, and no streams.
fn unlinked(call: u8) -> [Vec<Sent>; 2] {
    let reports = openllmetry();
    let trace = |side: u8| format!("{side}bf92f3577b34da6a3ce929d0e0e47{call:02x}");
    let server = |index: usize| changed(&reports[index], |span| span["traceId"] = trace(1).into());
    let root = changed(&server(1), |span| span["parentSpanId"] = "".into());
    let client = changed(&reports[4], |span| span["traceId"] = trace(2).into());
    [vec![server(0), root], vec![client]]
}

#[tokio::test]
async fn sides_without_a_common_trace_are_one_failure() {
    let [server, client] = unlinked(1);
    for order in interleaved(&server, &client) {
        let (_folder, pipeline) = sent_in_order(&order).await;
        check_one(&pipeline, "crm", LOCKED);
        assert_eq!(calls_by_side(&pipeline), [1, 1]);
    }
}

/// Three servers and two clients have three failures, whichever client belongs to which server.
#[tokio::test]
async fn each_side_without_a_common_trace_is_matched_once() {
    let calls = [unlinked(1), unlinked(2), unlinked(3)];
    let servers = calls.iter().flat_map(|[server, _]| server.clone());
    let clients = calls[..2].iter().flat_map(|[_, client]| client.clone());
    let order: Vec<Sent> = servers.chain(clients).collect();
    let (_folder, pipeline) = sent_in_order(&order).await;
    assert_eq!(shown(&pipeline).len(), 3);
}

/// The client of `OpenLLMetry` gives up, and the server answers too late.
#[tokio::test]
async fn a_call_that_the_client_gave_up_on_has_failed() {
    let reports = openllmetry();
    let works = |sent: &Sent| {
        changed(sent, |span| {
            span["status"] = json!({"code": 1});
            span["events"] = json!([]);
            span["attributes"].as_array_mut().unwrap().retain(|attribute| {
                !["error.type", "mcp.response.value"].contains(&attribute["key"].as_str().unwrap())
            });
        })
    };
    let client = changed(&reports[4], |span| {
        span["status"] = json!({"code": 2, "message": "Timed out. Waited 0.5 seconds."});
        span["attributes"] = attributes(&json!({
            "traceloop.span.kind": "tool", "traceloop.entity.name": "merge", "error.type": "McpError",
        }));
    });
    let orders = interleaved(&[works(&reports[0]), works(&reports[1])], &[reports[3].clone(), client]);
    assert_eq!(orders.len(), 6);
    for order in orders {
        let (_folder, pipeline) = sent_in_order(&order).await;
        let shown = shown(&pipeline);
        assert_eq!(shown.len(), 1, "{shown:#?}");
        assert_eq!((&shown[0]["service"], &shown[0]["category"]), (&json!("agent"), &json!("INTERNAL")));
        assert_eq!(shown[0]["message"], "Timed out. Waited 0.5 seconds.");
        assert_eq!(calls_by_side(&pipeline), [1, 1]);
        for service in ["agent", "crm"] {
            let of_service = rows(&pipeline, Table::Traffic);
            let failures = of_service.iter().filter(|row| row["service"] == service);
            assert_eq!(failures.map(|row| row["failures"].as_i64().unwrap()).sum::<i64>(), 1, "{service}");
        }
    }
}

/// Without an instrumented client, the stream of the server is in a trace of its own.
#[tokio::test]
async fn the_words_tell_where_a_stray_report_belongs() {
    let mut reports = openllmetry()[..3].to_vec();
    reports[2] = changed(&reports[2], |span| {
        (span["traceId"], span["parentSpanId"]) = ("5bf92f3577b34da6a3ce929d0e0e4702".into(), "".into());
    });
    let (_folder, pipeline) = sent_in_order(&reports).await;
    check_one(&pipeline, "crm", "Error calling tool 'merge': stock 17 is locked");
}

#[tokio::test]
async fn a_span_and_its_log_record_complete_each_other() {
    for order in orders(&python_sdk()) {
        let (_folder, pipeline) = sent_in_order(&order).await;
        let shown = shown(&pipeline);
        assert_eq!(shown.len(), 1, "{shown:#?}");
        let row = &shown[0];
        let told =
            [&row["operation"], &row["message"], &row["category"]].map(|cell| cell.as_str().unwrap_or("-"));
        assert_eq!(told, ["merge", "stock 17 timed out", "INTERNAL"], "{row:#}");
        assert_eq!(rows(&pipeline, Table::Events).len(), 2, "the other report can still be found");
    }
}

#[tokio::test]
async fn two_failed_calls_are_two_failures() {
    let reports = [fastmcp(1, 9), fastmcp(4, 9)].concat();
    let (_folder, pipeline) = sent_in_order(&reports).await;
    assert_eq!(shown(&pipeline).len(), 2);
    assert_eq!(calls_by_side(&pipeline), [2, 2]);
    let other_way: Vec<Sent> = reports.into_iter().rev().collect();
    let (_folder, pipeline) = sent_in_order(&other_way).await;
    assert_eq!(shown(&pipeline).len(), 2);
}

/// A sender that got no response sends everything again.
#[tokio::test]
async fn what_is_sent_again_changes_nothing() {
    for reports in [fastmcp(1, 0), openllmetry(), python_sdk()] {
        let (_folder, pipeline) = sent_in_order(&[reports.clone(), reports].concat()).await;
        assert_eq!(shown(&pipeline).len(), 1);
    }
}
