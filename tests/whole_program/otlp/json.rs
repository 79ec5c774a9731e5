//! OTLP/JSON: the same story in every spelling that senders use becomes the same rows as in protobuf.

use super::client::story;
use super::expected::check;
use super::{JSON, post_json, post_protobuf, start};
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use serde_json::{Map, Value, json};

/// Returns every row of every table, without the time of arrival.
fn rows(server: &Server) -> Vec<Value> {
    let mut rows: Vec<_> =
        ["events", "traffic", "rejects"].into_iter().flat_map(|table| server.dump(table)).collect();
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        row.remove("ingested_at");
        if row.contains_key("sample") {
            row.remove("time");
        }
    }
    rows
}

/// Sends the story in one spelling.
fn spelled(spell: fn(&str, &mut Map<String, Value>)) -> [Value; 2] {
    let mut both = [story().traces_json.clone(), story().logs_json.clone()];
    both.iter_mut().for_each(|value| walk("", value, spell));
    both
}

/// Calls `spell` for each object, with its key.
fn walk(name: &str, value: &mut Value, spell: fn(&str, &mut Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk(name, item, spell)),
        Value::Object(object) => {
            object.iter_mut().for_each(|(name, value)| walk(name, value, spell));
            spell(name, object);
        }
        _ => {}
    }
}

fn as_it_is(_: &str, _: &mut Map<String, Value>) {}

fn upper_case_ids(_: &str, object: &mut Map<String, Value>) {
    for name in ["traceId", "spanId", "parentSpanId"] {
        if let Some(Value::String(id)) = object.get_mut(name) {
            *id = id.to_ascii_uppercase();
        }
    }
}

/// Fields that `protobuf` writes as a text because JavaScript could not read them.
const WIDE: [&str; 5] =
    ["startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "observedTimeUnixNano", "intValue"];

fn wide_numbers(_: &str, object: &mut Map<String, Value>) {
    for name in WIDE {
        if let Some(value) = object.get_mut(name) {
            let number: i64 = value.as_str().and_then(|text| text.parse().ok()).expect("a number as a text");
            *value = number.into();
        }
    }
}

fn enum_names(name: &str, object: &mut Map<String, Value>) {
    let mut replace = |field: &str, names: &[&str]| {
        if let Some(value) = object.get_mut(field) {
            *value = names[value.as_u64().expect("a number") as usize].into();
        }
    };
    let kinds = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT"].map(|kind| format!("SPAN_KIND_{kind}"));
    replace("kind", &kinds.each_ref().map(String::as_str));
    if name == "status" {
        replace("code", &["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"]);
    }
    let mut severities = vec!["SEVERITY_NUMBER_UNSPECIFIED"; 24];
    severities[9] = "SEVERITY_NUMBER_INFO";
    severities[13] = "SEVERITY_NUMBER_WARN";
    severities[17] = "SEVERITY_NUMBER_ERROR";
    replace("severityNumber", &severities);
}

/// In every object: the request, resources, scopes, spans, events, statuses, attributes and values.
fn unknown_fields(_: &str, object: &mut Map<String, Value>) {
    let unknown = json!({"deep": [{"stringValue": "not this"}], "success": false});
    object.insert("aNewField".to_owned(), unknown.clone());
    object.insert("zz".to_owned(), json!([1, "two", null, {"values": [unknown]}]));
}

/// Absent and `null` are the same, for fields that we read and for others.
fn nulls(name: &str, object: &mut Map<String, Value>) {
    const OF: [(&str, &[&str]); 7] = [
        ("resourceSpans", &["schemaUrl"]),
        ("scope", &["attributes", "version", "name"]),
        ("spans", &["traceState", "links", "events", "status", "attributes", "parentSpanId", "flags"]),
        ("logRecords", &["traceId", "spanId", "attributes", "eventName", "severityText"]),
        ("status", &["message", "code"]),
        ("value", &["intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue"]),
        ("body", &["intValue", "stringValue", "arrayValue"]),
    ];
    let fields = OF.iter().filter(|(owner, _)| *owner == name).flat_map(|(_, fields)| *fields);
    for field in fields {
        object.entry(*field).or_insert(Value::Null);
    }
}

/// Applies all spellings at once.
fn everything(name: &str, object: &mut Map<String, Value>) {
    upper_case_ids(name, object);
    wide_numbers(name, object);
    enum_names(name, object);
    nulls(name, object);
    unknown_fields(name, object);
}

/// Each spelling of the story, against the story in protobuf: every column of every table is the same.
#[test]
fn every_spelling_means_the_same() {
    let folder = Folder::new();
    let server = start(&folder);
    post_protobuf(&server, "/v1/traces", &story().traces).is(200);
    post_protobuf(&server, "/v1/logs", &story().logs).is(200);
    check(&server, &story().told);
    let expected = rows(&server);
    for (name, spell) in [
        ("lower-case ids, wide numbers as texts", as_it_is as fn(&str, &mut Map<String, Value>)),
        ("upper-case ids", upper_case_ids),
        ("wide numbers as numbers", wide_numbers),
        ("names of enum values", enum_names),
        ("unknown fields", unknown_fields),
        ("nulls", nulls),
        ("everything at once", everything),
    ] {
        let [traces, logs] = spelled(spell);
        assert!(name.starts_with("lower") || traces != story().traces_json, "{name} changes something");
        let folder = Folder::new();
        let server = start(&folder);
        assert_eq!(post_json(&server, "/v1/traces", &traces).is(200).json(), json!({}), "{name}");
        assert_eq!(post_json(&server, "/v1/logs", &logs).is(200).json(), json!({}), "{name}");
        let rows = rows(&server);
        for (row, expected) in rows.iter().zip(&expected) {
            assert_eq!(row, expected, "{name}");
        }
        assert_eq!(rows.len(), expected.len(), "{name}");
    }
}

/// Invalid ids are treated as missing, and the span still counts; so does a span without a name, a kind or times.
#[test]
fn what_is_not_said_is_not_made_up() {
    let folder = Folder::new();
    let server = start(&folder);
    let code = json!([{"key": "error.code", "value": {"intValue": "-32602"}}]);
    let spans = json!([
        {"traceId": "", "spanId": "", "attributes": code},
        {"traceId": "00000000000000000000000000000000", "spanId": "0000000000000000", "attributes": code},
        {"traceId": "not hex at all, but thirty-two by", "spanId": "abc", "attributes": code},
        {"attributes": code},
    ]);
    let request = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
    post_json(&server, "/v1/traces", &request).is(200);
    let rows = server.dump("events");
    assert_eq!(rows.len(), 4, "without ids nothing is a repeat: {rows:?}");
    for row in rows {
        assert_eq!(row["canonical"], "VALIDATION_INVALID_PARAMS");
        for column in ["trace_id", "span_id", "span_kind", "duration_us", "operation", "service"] {
            assert_eq!(row.get(column), None, "{column}: {row}");
        }
        assert_eq!(row["time"], row["ingested_at"], "without a time of its own, it is when it came");
    }
}

/// Empty requests, in each way that JSON can express them.
#[test]
fn empty_requests_are_taken() {
    let folder = Folder::new();
    let server = start(&folder);
    for (path, bodies) in [
        (
            "/v1/traces",
            ["{}", r#"{"resourceSpans":[]}"#, r#"{"resourceSpans":null}"#, r#"{"resourceSpans":[{}]}"#],
        ),
        (
            "/v1/logs",
            ["{}", r#"{"resourceLogs":[]}"#, r#"{"resourceLogs":null}"#, r#"{"resourceLogs":[{}]}"#],
        ),
    ] {
        for body in bodies {
            let answer = server.post(path, &[JSON], body.as_bytes()).is(200);
            assert_eq!(answer.json(), json!({}), "{path} {body}");
        }
    }
    assert!(server.dump("events").is_empty() && server.dump("rejects").is_empty());
}
