//! The texts that are redacted, the marks that replace them, and the texts that must be kept.

use super::*;
use crate::json::Parser;

fn redactor() -> Redactor {
    Redactor::new(HashKey::FIXED, &RedactionSettings::default())
}

fn json(text: &str) -> String {
    let mut out = String::new();
    Parser::new(64).parse(text.as_bytes(), |json| redactor().json(&mut out, json, 4096)).expect(text);
    out
}

#[test]
fn secrets_inside_texts_are_taken_out() {
    for (text, expected) in [
        ("mail bob.smith+x@example.co.uk now", "mail [redacted] now"),
        ("Authorization: Bearer abc.DEF-123_xyz", "Authorization: [redacted]"),
        ("header Bearer abcdef123456 refused", "header Bearer [redacted] refused"),
        ("got bearer AbCdEfGhIjKl", "got bearer [redacted]"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln ok", "jwt [redacted] ok"),
        ("key ghp_0123456789abcdefABCDEF0123456789abcd!", "key [redacted]!"),
        ("use sk-proj-A1b2C3d4E5f6G7h8", "use [redacted]"),
        ("AKIAIOSFODNN7EXAMPLE is leaked", "[redacted] is leaked"),
        ("card 4111 1111 1111 1111 declined", "card [redacted] declined"),
        ("card 4111111111111111.", "card [redacted]."),
        ("connect to postgres://app:hunter2@db/prod", "connect to postgres://[redacted]@db/prod"),
        ("login?user=x&password=hunter2&z=1", "login?user=x&password=[redacted]&z=1"),
        ("api_key: 9f8e7d6c", "api_key: [redacted]"),
        ("body {\"password\":\"correct horse\"} refused", "body {\"password\":\"[redacted]\"} refused"),
        ("body {\\\"secret\\\": \\\"open sesame\\\"}", "body {\\\"secret\\\": \\\"[redacted]\\\"}"),
        ("Cookie: session=abc; theme=dark\nnext", "Cookie: [redacted]\nnext"),
        ("x\\nghp_0123456789abcdefABCDEF0123456789abcd", "x\\n[redacted]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY----- tail", "[redacted] tail"),
        ("-----BEGIN PRIVATE KEY-----\nMIIB", "[redacted]"),
        ("Card 4111 1111 1111 1111 12/27 declined", "Card [redacted] 12/27 declined"),
        ("got Bearer abc.def.ghi", "got Bearer [redacted]"),
        ("used Bearer mysecrettoken", "used Bearer [redacted]"),
        ("token: Bearer canaryAAAA1111bbbb", "token: Bearer [redacted]"),
        ("password=Bearer canaryAAAA1111bbbb gone", "password=Bearer [redacted] gone"),
        (
            "http://x/?token=-----BEGIN PRIVATE KEY-----\nMIIC\n-----END PRIVATE KEY----- z",
            "http://x/?token=[redacted] z",
        ),
        ("postgres://u:p@ss@host/db", "postgres://[redacted]@host/db"),
        ("mail jörg@exämple.de now", "mail [redacted] now"),
        ("password=[hunter2", "password=[redacted]"),
        ("body {\"password\":[\"hunter2\"],\"a\":1}", "body {\"password\":[redacted],\"a\":1}"),
        ("body {\"secret\":{\"v\":\"hunter2\"}}", "body {\"secret\":[redacted]}"),
        ("body {\"password\":\"se\\\"cret-tail\"}", "body {\"password\":\"[redacted]\"}"),
        ("a=1\\u0026password=opaque99", "a=1\\u0026password=[redacted]"),
        ("X-Authorization: abc123def", "X-Authorization: [redacted]"),
    ] {
        assert_eq!(redactor().text(text), expected, "{text}");
    }
}

#[test]
fn ordinary_text_stays_as_it_is() {
    for text in [
        "TOKEN_EXPIRED",
        "Confirmation token has expired",
        "Invalid token: expired",
        "Invalid password: must be at least eight characters",
        "tokens_per_minute",
        "tokens=500",
        "Missing required parameter 'password'",
        "Bearer authentication required",
        "basic validation failed",
        "Resource 'issue' not found: '17'",
        "confirmation required",
        "conf is missing",
        "request 1794824430250 took 4111 ms",
        "retry at 2026-11-16T10:20:30Z",
        "550e8400-e29b-41d4-a716-446655440000",
        "user@localhost",
        "@mention and a@b",
        "https://example.com/a?b=c",
        "Skill 'text.nonexistent' not found.",
        "rate: 5:1",
        "Invalid cookie: must not be empty",
        "Missing authorization: header required for this call",
        "Unexpected token: '}' in JSON",
        "Unexpected token: 42",
        "the pass: 3 of 4",
        "body {\"api_key\":null,\"password\":\"\"}",
        "Basic operations failed",
    ] {
        assert_eq!(redactor().text(text), text);
    }
}

#[test]
fn a_confirmation_token_can_be_followed_but_not_read() {
    let hash = redactor().token_hash("conf_abc123");
    assert_eq!(redactor().text("use conf_abc123, now"), format!("use [token:{hash}], now"));
    assert_eq!(
        json(
            r#"{"confirmation_token":"conf_abc123","confirmation":{"token":"conf_abc123"},"note":"conf_abc123"}"#
        ),
        format!(
            r#"{{"confirmation_token":"[token:{hash}]","confirmation":{{"token":"[token:{hash}]"}},"note":"[token:{hash}]"}}"#
        )
    );
    assert_eq!(redactor().text("token=conf_abc123"), format!("token=[token:{hash}]"));
    let other = Redactor::new(HashKey::new([7; 16]), &RedactionSettings::default());
    assert_ne!(other.token_hash("conf_abc123"), hash, "the hash depends on the key");
}

#[test]
fn values_of_secret_keys_are_taken_out_whatever_they_are() {
    assert_eq!(
        json(r#"{"password":"x","api_key":12345,"cookie":{"a":1},"secret":["b"],"pwd":null,"auth":true}"#),
        r#"{"password":"[redacted]","api_key":"[redacted]","cookie":"[redacted]","secret":"[redacted]","pwd":null,"auth":true}"#
    );
    assert_eq!(json(r#"{"card":4111111111111111,"n":17}"#), r#"{"card":"[redacted]","n":17}"#);
    assert_eq!(json(r#"{"bob@example.com":1}"#), r#"{"[redacted]":1}"#);
}

#[test]
fn every_text_under_the_key_of_a_token_is_one() {
    let text = r#"{"token":["opaque1",{"value":"opaque2"}],"confirmation_token":{"v":"opaque3","n":7}}"#;
    let out = json(text);
    assert!(!out.contains("opaque"), "{out}");
    assert_eq!(out.matches("[token:").count(), 3, "{out}");
}

#[test]
fn names_of_secrets_stay() {
    let text =
        r#"{"valid_params":["user_name","password","email"],"param_name":"api_key","max_tokens":4096}"#;
    assert_eq!(json(text), text);
}

#[test]
fn an_operator_adds_and_removes_rules() {
    let settings = RedactionSettings {
        keys: vec!["national_id".to_owned()],
        patterns: vec![regex::Regex::new("ACME-[0-9]{6}").expect("a pattern")],
        off: vec![Rule::Email],
    };
    let redactor = Redactor::new(HashKey::FIXED, &settings);
    assert_eq!(redactor.text("bob@example.com has ACME-123456"), "bob@example.com has [redacted]");
    let mut out = String::new();
    Parser::new(64)
        .parse(br#"{"nationalId":"AB12"}"#, |json| redactor.json(&mut out, json, 4096))
        .expect("valid JSON");
    assert_eq!(out, r#"{"nationalId":"[redacted]"}"#);
}

#[test]
fn clients_are_told_apart_without_being_told() {
    assert_eq!(redactor().client("u-17"), "u-17");
    let (bob, eve) = (redactor().client("bob@example.com"), redactor().client("eve@example.com"));
    assert!(bob.starts_with("[client:") && bob != eve, "{bob} {eve}");
}

#[test]
fn what_is_too_large_is_cut_and_says_so() {
    let many: Vec<String> = (0..1000).map(|n| format!("\"key{n}\":\"value\"")).collect();
    let text = format!("{{{}}}", many.join(","));
    let mut out = String::new();
    Parser::new(64).parse(text.as_bytes(), |json| redactor().json(&mut out, json, 200)).expect("valid JSON");
    assert!(out.len() < 300 && out.ends_with("\"_truncated\":true}"), "{out}");
    assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok());
}

#[test]
fn redacting_twice_changes_nothing_more() {
    for text in ["bob@example.com", "password=hunter2", "use conf_abc", "Authorization: Bearer x1y2z3a4"] {
        let once = redactor().text(text).into_owned();
        assert_eq!(redactor().text(&once), once.as_str(), "{text}");
    }
}
