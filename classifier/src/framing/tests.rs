//! Tests of prefixes, events and host messages in isolation.

use super::*;

/// Checks the parts of a prefix: time, service, level, and the rest of the line.
#[track_caller]
fn check_prefix(line: &str, expected: (Option<&str>, Option<&str>, Option<&str>, &str)) {
    let (prefix, rest) = Prefix::read(line);
    let time = prefix.time.map(crate::time::format);
    assert_eq!((time.as_deref(), prefix.service, prefix.level, rest), expected, "{line}");
}

#[test]
fn a_prefix_says_when_who_and_how_bad() {
    check_prefix(
        "2026-03-17T21:02:23.5Z [maps] [info] Message",
        (Some("2026-03-17T21:02:23.5Z"), Some("maps"), Some("info"), "Message"),
    );
    check_prefix(
        "[E 2026-03-17 21:02:23,000.000 proxy.server] Error",
        (Some("2026-03-17T21:02:23Z"), Some("proxy.server"), Some("E"), "Error"),
    );
    check_prefix("Mar 17 21:02:23 box maps[812]: text", (None, Some("maps"), None, "text"));
    check_prefix("maps-1  | text", (None, Some("maps-1"), None, "text"));
    check_prefix("2026-03-17T21:02:23Z stdout F text", (Some("2026-03-17T21:02:23Z"), None, None, "text"));
    check_prefix(
        "2026-03-17T21:02:23+01:00 DEBUG MCP server \"maps\": text",
        (Some("2026-03-17T20:02:23Z"), Some("maps"), Some("DEBUG"), "text"),
    );
    check_prefix(
        "2026-03-17 21:02:23 - mcp.client - ERROR - text",
        (Some("2026-03-17T21:02:23Z"), None, Some("ERROR"), "text"),
    );
}

#[test]
fn a_message_is_no_prefix() {
    for line in [
        "Error: it broke",
        "error: it broke",
        "panic: it broke",
        "fatal: it broke",
        "Failed to open x",
        "[see the note] and go",
        "2026 was a year",
        "",
    ] {
        check_prefix(line, (None, None, None, line));
    }
}

#[test]
fn json_starts_where_it_looks_like_json() {
    assert_eq!(split_json(r#"a {b} [c] {"d":1} e"#), Some(("a {b} [c] ", r#"{"d":1}"#)));
    assert_eq!(split_json(r#"got [{"d":1}]"#), Some(("got ", r#"[{"d":1}]"#)));
    assert_eq!(split_json(r#"got {"d":"}"} { meta: none }"#), Some(("got ", r#"{"d":"}"}"#)));
    assert_eq!(split_json(r#"{"d":1}"#), None);
    assert_eq!(split_json("nothing {0} here"), None);
    assert_eq!(json_candidates(&"{\"} ".repeat(100)).count(), MAX_JSON_STARTS);
}

#[test]
fn escapes_are_undone_once() {
    assert_eq!(unescape_json(r#"{\"a\":\"b\\\"c\"}"#).as_deref(), Some(r#"{"a":"b\"c"}"#));
    assert_eq!(unescape_json(r#"{"a":1}"#), None);
}

#[test]
fn events_are_read_one_by_one() {
    let read = |text: &str| {
        let mut events = Vec::new();
        for_each_event(text, |data| events.push(data.to_owned()));
        events
    };
    assert_eq!(read("event: a\ndata: 1\n\ndata: 2\n"), ["1", "2"]);
    assert_eq!(read("data: {\ndata: }\n"), ["{\n}"]);
    assert_eq!(read("data: {\n  \"a\": 1\n}\n\n"), ["{\n  \"a\": 1\n}"]);
    assert_eq!(read("event: a\ndata: 1\nevent: b\ndata: 2"), ["1", "2"]);
    assert!(read("event: a\n: note\nid: 3\n").is_empty());
}

#[test]
fn a_host_says_how_a_call_went() {
    let read = |text| {
        HostMessage::read(&Prefix::default(), text)
            .map(|host| (host.outcome, host.operation, host.duration_ms))
    };
    assert_eq!(read("Tool 'x' failed after 2s: boom"), Some((HostOutcome::Failed, Some("x"), Some(2_000.0))));
    assert_eq!(
        read("Tool \"x\" completed successfully in 16ms"),
        Some((HostOutcome::Worked, Some("x"), Some(16.0)))
    );
    assert_eq!(read("Tool 'x' still running (30s elapsed)"), Some((HostOutcome::Notice, Some("x"), None)));
    assert_eq!(read("Calling MCP tool: x"), Some((HostOutcome::Notice, None, None)));
    assert_eq!(read("Connection closed"), None, "it could be about anything");
    assert_eq!(read("Tool 'x' is nice"), None);
}
