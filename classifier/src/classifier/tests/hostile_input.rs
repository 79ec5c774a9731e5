//! Malformed and hostile records: the work is bounded, a reason is reported, and the next record is unaffected.

use super::*;
use proptest::prelude::*;

#[test]
fn unreadable_records_say_why() {
    check("not json at all", &["? not_json"]);
    check(r#"{"success":false,"error":{"code":"#, &["? not_json"]);
    check(&"[".repeat(100_000), &["? too_deep"]);
    check(&format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000)), &["? too_deep"]);
    check(&format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20)), &["? too_long"]);
    assert_eq!(summarize_with("", b"{\"success\":false,\"error\":\"\xff\xfe\"}"), ["? invalid_utf8"]);
    assert_eq!(summarize_with("", b"level=\xff\xfe"), ["? invalid_utf8"]);
}

/// Guarantee: the deepest nesting that can be configured fits into the stack of a worker, in details and in
/// attributes.
#[test]
fn the_deepest_that_can_be_set_is_survived() {
    let limits = Limits { json_depth: 256, ..Limits::DEFAULT };
    assert_eq!(limits.check(), Ok(()));
    assert!(Limits { json_depth: 257, ..limits }.check().is_err());
    let deep = format!("{}1{}", "{\"a\":".repeat(240), "}".repeat(240));
    let record = format!(
        r#"{{"x":{deep},"success":false,"error":{{"code":"TOKEN_EXPIRED","message":"m","details":{deep}}}}}"#
    );
    struct StoredBytes(usize);
    impl Sink for StoredBytes {
        fn event(&mut self, event: &Event<'_>) {
            self.0 += event.details.map_or(0, str::len).min(event.attributes.map_or(0, str::len));
        }
        fn call(&mut self, _: &Call<'_>) {}
        fn unrecognized(&mut self, reason: UnrecognizedReason) {
            panic!("{reason}");
        }
    }
    let rules = Rules::new(Registry::builtin().unwrap(), HashKey::FIXED, limits);
    let mut stored = StoredBytes(0);
    Classifier::new(Arc::new(rules)).classify(record.as_bytes(), &RecordOrigin::default(), &mut stored);
    assert!(stored.0 > 1_000, "{}", stored.0);
}

#[test]
fn odd_codes_are_survived() {
    for code in ["null", "{}", "[]", "true", "1.5", "\"\"", "1e300", "99999999999999999999999"] {
        let record = format!(r#"{{"success":false,"error":{{"code":{code},"message":"m"}}}}"#);
        check(&record, &["error mcp-aql - UNKNOWN_ERROR"]);
    }
    check(r#"{"success":false,"success":true}"#, &["ok mcp-aql"]);
    check(
        r#"{"success":false,"error":{"code":"A","code":"TOKEN_EXPIRED"}}"#,
        &["error mcp-aql TOKEN_EXPIRED TOKEN_EXPIRED"],
    );
}

#[test]
fn ten_thousand_warnings_are_ten_thousand_events() {
    let warnings = vec![r#"{"code":"DEPRECATION_WARNING","message":"old"}"#; 10_000].join(",");
    let sink = summarize_with("", format!(r#"{{"success":true,"warnings":[{warnings}]}}"#));
    assert_eq!(sink.len(), 10_001);
    let warnings = vec!["1"; 100_000].join(",");
    let sink = summarize_with("", format!(r#"{{"success":true,"warnings":[{warnings}]}}"#));
    assert_eq!(sink.len(), 1 + Limits::default().events_per_record + 1);
    assert_eq!(sink.last().map(String::as_str), Some("? too_many_events"));
}

/// A large record must not be written in full for each of its many events.
#[test]
fn what_one_record_writes_is_bounded() {
    struct Bytes(usize);
    impl Sink for Bytes {
        fn event(&mut self, event: &Event<'_>) {
            let mut json = String::new();
            event.write_json(&mut json, None);
            self.0 += json.len();
        }
        fn call(&mut self, _: &Call<'_>) {}
        fn unrecognized(&mut self, _: UnrecognizedReason) {}
    }
    let pad: Vec<String> = (0..100).map(|n| format!("\"key{n}\":\"{}\"", "x".repeat(500))).collect();
    let items = vec![r#"{"result":{"success":false,"error":{"code":"INTERNAL_ERROR"}}}"#; 14_000].join(",");
    let record = format!(r#"{{"pad":{{{}}},"success":true,"results":[{items}]}}"#, pad.join(","));
    assert!(record.len() < 1 << 20, "{}", record.len());
    let mut bytes = Bytes(0);
    Classifier::new(rules("")).classify(record.as_bytes(), &origin(), &mut bytes);
    assert!(bytes.0 < 20 << 20, "{} bytes from {}", bytes.0, record.len());
}

#[test]
fn a_bad_record_does_not_harm_the_next() {
    let mut classifier = Classifier::new(rules(""));
    let mut sink = SummarySink::default();
    for record in [r#"{"success":fal"#, r#"{"success":true}"#, "[[[[", r#"{"success":true}"#] {
        classifier.classify(record.as_bytes(), &origin(), &mut sink);
    }
    assert_eq!(sink.0, ["? not_json", "ok mcp-aql", "? not_json", "ok mcp-aql"]);
}

/// Secrets that must never appear in the output; each has a form that a rule recognizes.
pub(super) const CANARY_SECRETS: [&str; 9] = [
    "conf_CANARY0123456789",
    "quota_continue_CANARY99",
    "ghp_CANARY0123456789abcdefABCDEF01234567",
    "sk-CANARY0123456789abcdef",
    "AKIACANARY0123456789",
    "canary.person@example.com",
    "eyJhbGciOiJIUzI1NiJ9.eyJDQU5BUlkiOjF9.CANARYsignature0",
    "Bearer CANARYtoken0123456789",
    "password=CANARY0hunter2",
];

/// Replaces every text of a record with one that contains a canary.
fn plant_secret(value: &mut serde_json::Value, secret: &str) {
    match value {
        serde_json::Value::String(text) => *text = format!("{text} {secret} end"),
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| plant_secret(item, secret)),
        serde_json::Value::Object(fields) => {
            let others = fields.iter_mut().filter(|(key, _)| *key != "jsonrpc");
            others.for_each(|(_, value)| plant_secret(value, secret));
            fields.insert(format!("key {secret}"), 1.into());
        }
        _ => {}
    }
}

#[test]
fn no_canary_comes_out_of_any_field() {
    let records = [
        r#"{"timestamp":"t","service":"s","service_version":"v","environment":"e","user":"u","operation":"o","request_id":"r","session_id":"s","trace_id":"t","span_id":"p","host":"h","nested":{"a":["b"]},"response":{"success":false,"error":{"code":"ODD_CODE","message":"m","type":"T","details":{"metric":"m","required_trust":"r","actual_trust":"a","x":{"y":["z"]}}},"confirmation":{"message":"m"}}}"#,
        r#"{"jsonrpc":"2.0","id":"i","error":{"code":-32010,"message":"m","data":{"metric":"m","retry_after":"r"}}}"#,
        r#"{"id":"i","service":"s","result":{"content":[{"type":"text","text":"t"}],"isError":true}}"#,
        r#"{"success":true,"warnings":["w",{"code":"RATE_LIMIT_X","message":"m","details":{"metric":"m"}}]}"#,
        r#"{"error":{"code":"c","category":"validation","message":"m"},"app":"a"}"#,
        r#"{"message":"m","status":500,"tool":"t"}"#,
    ];
    for secret in CANARY_SECRETS {
        for record in records {
            let mut value: serde_json::Value = serde_json::from_str(record).expect(record);
            plant_secret(&mut value, secret);
            let mut sink = JsonSink::default();
            Classifier::new(rules("")).classify(value.to_string().as_bytes(), &origin(), &mut sink);
            assert!(!sink.0.is_empty(), "{value}");
            for event in sink.0 {
                let text = event.to_string();
                assert!(!text.to_lowercase().contains("canary"), "{secret} in {text}");
            }
        }
    }
}

/// Generates JSON that resembles envelopes, with arbitrary values in any position.
pub(super) fn near_envelope() -> impl Strategy<Value = serde_json::Value> {
    let key = prop::sample::select(vec![
        "success",
        "error",
        "code",
        "message",
        "details",
        "data",
        "result",
        "results",
        "response",
        "jsonrpc",
        "id",
        "content",
        "text",
        "type",
        "isError",
        "structuredContent",
        "warnings",
        "event",
        "log",
        "status",
        "index",
        "operation",
        "retryable",
        "token",
        "confirmation",
        "retry_after",
        "errors",
        "timestamp",
        "service",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-32_100_i64..5_100).prop_map(Into::into),
        any::<f64>().prop_map(|number| serde_json::json!(number)),
        "\\PC{0,30}".prop_map(Into::into),
        prop::sample::select(vec![
            "BATCH_PARTIAL_FAILURE",
            "INTERNAL_ERROR",
            "not_found",
            "2.0",
            "false",
            "TOKEN_ISSUED",
            "{\"success\":false}",
            "[{\"jsonrpc\":\"2.0\",\"error\":{}}]",
            "2026-11-16T10:20:30Z",
            "429",
        ])
        .prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 60, 8, move |inner| {
        let as_text = inner.clone().prop_map(|value| serde_json::Value::String(value.to_string()));
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::Array),
            prop::collection::vec((key.clone(), inner), 0..7)
                .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            as_text,
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = summarize_with("", &bytes);
    }

    #[test]
    fn any_near_envelope_gives_the_same_valid_json_twice(value in near_envelope()) {
        let record = value.to_string();
        let run = || {
            let mut sink = JsonSink::default();
            Classifier::new(rules("")).classify(record.as_bytes(), &origin(), &mut sink);
            sink.0
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn any_near_envelope_cut_short_is_survived(value in near_envelope(), truncate_str in 0.0..1.0_f64) {
        let record = value.to_string();
        let end = record.floor_char_boundary((record.len() as f64 * truncate_str) as usize);
        let _ = summarize_with("", &record[..end]);
    }
}
