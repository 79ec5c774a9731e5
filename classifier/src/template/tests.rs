//! Messages and their templates.

use super::*;
use proptest::prelude::*;

fn check(message: &str, expected: &str) {
    assert_eq!(from_message(message), expected, "{message}");
}

#[test]
fn quoted_values_are_dynamic() {
    check("Resource 'issue' not found: '17'", "Resource '{value}' not found: '{value}'");
    check("Missing required parameter 'owner'", "Missing required parameter '{value}'");
    check("unknown key \"a b\" in `config`", "unknown key \"{value}\" in `{value}`");
    check("can't open, don't retry", "can't open, don't retry");
    check("the user's file 'x'", "the user's file '{value}'");
    check("unbalanced 'quote", "unbalanced 'quote");
}

#[test]
fn numbers_are_dynamic() {
    check("3 of 5 operations failed", "{number} of {number} operations failed");
    check("took 30001ms, limit 1,048,576 bytes", "took {number}ms, limit {number} bytes");
    check("at 3.5 of 10.", "at {number} of {number}.");
    check("offset -5 is negative", "offset {number} is negative");
    check("from 10.0.0.1:8080", "from {number}:{number}");
    check("task-123 of job_45", "task-{number} of job_{number}");
    check("MCP error -32001: timed out", "MCP error {number}: timed out");
}

#[test]
fn names_with_digits_are_names() {
    for message in ["utf8 or sha256 over ipv6", "v2 of http2", "base64 and oauth2", "s3 bucket"] {
        check(message, message);
    }
}

#[test]
fn ids_are_dynamic() {
    check("request 550e8400-e29b-41d4-a716-446655440000 failed", "request {uuid} failed");
    check("commit 9fceb02d0ae598e9", "commit {number}");
    check("pointer 0x7ffe12ab", "pointer {number}");
    check("object a1b2c3xyz9", "object {id}");
    check("req_7f1d", "req_{number}");
    check(
        "req-550e8400-e29b-41d4-a716-446655440000 and 550e8400-e29b-41d4-a716-446655440000_x",
        "req-{uuid} and {uuid}_x",
    );
    check(
        "from 2001:db8::1 or fe80:0:0:0:1:2:3:4, not std::vec",
        "from {address} or {address}, not std::vec",
    );
    check("1e5 items, 30ab, 12px", "{number} items, {number}, {number}px");
}

#[test]
fn addresses_are_dynamic() {
    check("GET https://api.example.com/v1?x=1 failed", "GET {url} failed");
    check("cannot open /etc/app/config.toml: denied", "cannot open {path}: denied");
    check("open C:\\Users\\bob\\x.txt", "open {path}");
    check("at src/store/log.rs:12", "at {path}:{number}");
    check("in ./build/out", "in {path}");
    check("call tools/call or n/a", "call tools/call or n/a");
    check("mail bob@example.com.", "mail {email}");
    check("until 2026-11-16T10:20:30.5Z, 2026-11-16 or 10:20:30", "until {time}, {time} or {time}");
    check("since 2026-11-16 10:20:30+01:00!", "since {time}!");
}

#[test]
fn redactions_are_dynamic() {
    check(
        "token [token:0123456789abcdef] and [redacted] by [client:00ff00ff00ff00ff]",
        "token {redacted} and {redacted} by {redacted}",
    );
    check("list [1, 2]", "list [{number}, {number}]");
}

#[test]
fn paths_are_noticed() {
    let shows_path = |message: &str| write(&mut String::new(), message).path;
    assert!(shows_path("cannot open /etc/app/config.toml"));
    assert!(shows_path("cannot open '/var/lib/x'"));
    assert!(shows_path("C:\\temp\\x"));
    assert!(!shows_path("GET https://example.com/a/b"));
    assert!(!shows_path("tools/call failed and/or timed out"));
}

#[test]
fn stack_traces_are_noticed() {
    let shows = |message: &str| write(&mut String::new(), message).internals;
    for message in [
        "ValueError: bad",
        "java.lang.NullPointerException",
        "Traceback (most recent call last):",
        "thread panicked",
    ] {
        assert!(shows(message), "{message}");
    }
    for message in ["Internal Error", "Error: it broke", "an exception", "Exception"] {
        assert!(!shows(message), "{message}");
    }
}

#[test]
fn other_scripts_are_words() {
    check("größe 12 überschritten — 日本 5", "größe {number} überschritten — 日本 {number}");
}

proptest! {
    #[test]
    fn the_same_failure_with_other_values_is_the_same_group(
        number in 0_u32..1_000_000, other in 0_u32..1_000_000, name in "[a-z /.-]{0,20}", else_name in "[a-z /.-]{0,20}",
    ) {
        let message = |number: u32, name: &str| {
            format!("{number} of '{name}' at 2026-11-16T10:20:30Z failed after {number}ms on node-{number}")
        };
        prop_assert_eq!(from_message(&message(number, &name)), from_message(&message(other, &else_name)));
    }

    #[test]
    fn any_text_has_a_template(message in "\\PC{0,200}") {
        let template = from_message(&message);
        prop_assert!(template.len() <= message.len() * 8 + 16);
    }
}
