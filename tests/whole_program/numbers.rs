//! Tests of numbers that no float can represent: the data around them is read, in every format and at every endpoint.

use super::server::{Server, ask};
use super::support::{Folder, lines};
use serde_json::Value;

/// Guarantee: a number of 400 digits, one beyond all floats, and ones with absurd exponents cost no record.
#[test]
fn a_number_beyond_floats_costs_no_record() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let long = "9".repeat(400);
    let numbers = [
        &long,
        &format!("-{long}"),
        "1e400",
        "-1.5E+400",
        "-0.0e-999",
        "0e400",
        "1e-400",
        "18446744073709551616",
    ];
    for (at, number) in numbers.into_iter().enumerate() {
        let line = format!(
            r#"{{"service":"s{at}","tool":"get","n":{number},"error":{{"code":-32601,"message":"m","data":{{"n":{number}}}}},"jsonrpc":"2.0","id":{number}}}"#
        );
        let told = server.post_lines(&lines(&[&line])).is(200).json();
        assert_eq!((&told["accepted"], &told["events"]), (&1.into(), &1.into()), "{number}: {told}");
        let array = format!("[{line},{line}]");
        let told = server
            .post("/v1/envelopes", &[("Content-Type", "application/json")], array.as_bytes())
            .is(200)
            .json();
        assert_eq!((&told["accepted"], &told["events"]), (&2.into(), &2.into()), "{number}: {told}");

        let span = format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"{at:032x}","spanId":"{:016x}","name":"call","kind":2,
            "startTimeUnixNano":"1793520000000000000","endTimeUnixNano":"1793520000001000000","unknown":{number},
            "attributes":[{{"key":"error.code","value":{{"stringValue":"-32602"}}}},{{"key":"i","value":{{"intValue":{number}}}}},
            {{"key":"d","value":{{"doubleValue":{number}}}}},
            {{"key":"l","value":{{"arrayValue":{{"values":[{{"intValue":{number}}},{{"doubleValue":{number}}}]}}}}}}]}}]}}]}}]}}"#,
            at + 1
        );
        let span = span.replace(&format!("{at:032x}"), &format!("{:032x}", at + 1));
        let json = [("Content-Type", "application/json")];
        let told = server.post("/v1/traces", &json, span.as_bytes()).is(200);
        assert!(!String::from_utf8_lossy(&told.body).contains("rejected"), "{number}: {told:?}");

        let sql = format!(r#"{{"query":"SELECT $1 AS n","params":[{number}]}}"#);
        ask(server.address("web"), "POST", "/api/v1/sql", &json, sql.as_bytes()).expect("an answer").is(200);
    }
    let events = server.dump("events");
    assert_eq!(events.len(), 4 * numbers.len());
    let kept = |event: &&Value| event.to_string().contains(&long);
    assert!(events.iter().filter(kept).count() >= 4, "the digits are kept");
    assert_eq!(server.status()["sources"]["envelopes"]["rejected_records"], 0);
}
