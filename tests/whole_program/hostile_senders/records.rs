//! Bad records beside good ones: each affects only itself, is reported, and is counted by its reason.

use super::bodies::MIB;
use super::protobuf::{deep_json, deep_value, field, request, span_with};
use super::{NO_LINE_REMEDY, is_unharmed};
use crate::whole_program::server::Server;
use crate::whole_program::support::{Folder, OPEN};
use serde_json::{Value, json};

/// A body of envelopes, the number of readable ones, and the position and reason of the others.
type Case = (Vec<u8>, u64, Vec<(u64, &'static str)>);

fn beside(bad: &[&[u8]]) -> Vec<u8> {
    let lines = bad.iter().flat_map(|bad| [OPEN.as_bytes(), bad]);
    let mut body = Vec::new();
    for line in lines.chain([OPEN.as_bytes()]) {
        body.extend_from_slice(line);
        body.push(b'\n');
    }
    body
}

fn cases() -> Vec<Case> {
    let long = format!(r#"{{"success":false,"error":"{}"}}"#, "y".repeat(2 * MIB));
    let deep_objects = r#"{"a":"#.repeat(100_000);
    let deep_lists = "[".repeat(100_000);
    let broken = format!("[{OPEN},{{broken}},{OPEN},,{OPEN},]");
    vec![
        (beside(&[long.as_bytes()]), 2, vec![(2, "too_long")]),
        (
            beside(&[deep_objects.as_bytes(), deep_lists.as_bytes()]),
            3,
            vec![(2, "too_deep"), (4, "too_deep")],
        ),
        (
            beside(&[b"\xc3\x28", b"{\"success\":false,\"error\":\"\xff\"}"]),
            3,
            vec![(2, "invalid_utf8"), (4, "invalid_utf8")],
        ),
        (
            beside(&[b"\0\0\0", b"{\"success\":\0}", b"{"]),
            4,
            vec![(2, "not_json"), (4, "not_json"), (6, "not_json")],
        ),
        (broken.into_bytes(), 3, vec![(2, "not_json"), (4, "not_json"), (6, "not_json")]),
        (format!("[{OPEN},{OPEN}").into_bytes(), 2, vec![(3, "not_json")]),
    ]
}

/// The good lines of a body are stored, the bad ones are listed by their place, and all are counted.
#[test]
fn a_bad_line_costs_only_itself() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let mut unusable = json!({});
    let mut stored = 0;
    for (body, good, bad) in cases() {
        let headers = [("Content-Type", "application/json")];
        let answer = server.post("/v1/envelopes", &headers, &body).is(200).json();
        assert_eq!((&answer["accepted"], &answer["events"]), (&json!(good), &json!(good)), "{answer}");
        let places: Vec<_> = bad.iter().map(|(place, _)| json!(place)).collect();
        let listed: Vec<_> = answer["rejected"].as_array().unwrap().iter().map(|at| &at["line"]).collect();
        assert_eq!(listed, places.iter().collect::<Vec<_>>(), "{answer}");
        for (_, reason) in bad {
            unusable[reason] = json!(unusable[reason].as_u64().unwrap_or(0) + 1);
        }
        stored += good as usize;
    }
    assert_eq!(server.status()["sources"]["envelopes"]["unrecognized"], unusable);
    assert_eq!(server.dump("events").len(), stored);
    is_unharmed(&server);
}

/// Bodies of nothing but bad lines are refused with a reason and a remedy, and cost little, however many lines.
#[test]
fn a_million_lines_are_a_bounded_answer() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let bad = server.post_lines(&"{\n".repeat(1_000_000)).is(400).json();
    assert_eq!(bad["error"]["remedy"], NO_LINE_REMEDY);
    assert_eq!((bad["rejected"].as_array().unwrap().len(), &bad["rejected_count"]), (100, &json!(1_000_000)));
    let empty = server.post_lines(&"{}\n".repeat(1_000_000)).is(200).json();
    assert_eq!((&empty["accepted"], &empty["unrecognized"]), (&json!(1_000_000), &json!(1_000_000)));
    let spans = [0x12, 0].repeat(1_000_000);
    let spans = field(1, &field(2, &spans));
    assert_eq!(post_traces(&server, "application/x-protobuf", &spans), b"");
    let status = server.status();
    assert_eq!(status["sources"]["otlp_traces"]["accepted_records"], 1_000_000);
    assert_eq!(
        status["sources"]["envelopes"]["unrecognized"],
        json!({"no_envelope": 1_000_000, "not_json": 1_000_000})
    );
    assert!(server.dump("rejects").len() <= 1200, "a sample, not a copy");
    is_unharmed(&server);
}

fn post_traces(server: &Server, content_type: &str, body: &[u8]) -> Vec<u8> {
    server.post("/v1/traces", &[("Content-Type", content_type)], body).is(200).body
}

/// Absurd spans: nested deeper than any stack, texts of 60 MiB, bytes that are not a span. The good span beside each is
/// accepted; a span that has too much of something is truncated, and an unreadable one is rejected and counted.
#[test]
fn an_absurd_span_costs_only_itself() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let good = field(5, b"call");
    let text = vec![b'a'; 60 * MIB];
    for absurd in [
        span_with(&deep_value(20_000)),
        span_with(&field(1, &text)),
        field(5, &text),
        span_with(&field(7, &text)),
    ] {
        let answer = post_traces(&server, "application/x-protobuf", &request(&[absurd, good.clone()]));
        assert_eq!(answer, b"", "both are taken");
    }
    let malformed = [&b"\x0a\xff"[..], b"\x2b", b"\x4a\x04\x12\x02\x0a\x7f", b"\x28\x01"];
    let spans: Vec<_> = malformed.iter().map(|span| span.to_vec()).chain([good]).collect();
    let answer = post_traces(&server, "application/x-protobuf", &request(&spans));
    assert!(String::from_utf8_lossy(&answer).contains("4 rejected in all"), "{answer:?}");
    let spans = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"name":"deep","attributes":[{{"key":"k","value":{}}}]}},{{"name":"good"}}]}}]}}]}}"#,
        deep_json(5_000)
    );
    let answer: Value =
        serde_json::from_slice(&post_traces(&server, "application/json", spans.as_bytes())).unwrap();
    assert_eq!(answer["partialSuccess"]["rejectedSpans"], "1", "{answer}");
    let traces = &server.status()["sources"]["otlp_traces"];
    assert_eq!(
        (&traces["accepted_records"], &traces["unrecognized"]),
        (&json!(10), &json!({"malformed": 5}))
    );
    is_unharmed(&server);
}
