//! Tests that metrics stay valid and within their limits, whatever the amount and the names of the data.

use super::super::server::{Server, ask};
use super::super::support::Folder;
use super::scraped::{Scraped, check};
use serde_json::json;
use std::io::Read;

/// Scenario: 100,000 distinct services, codes, operations, quotas and trust levels, in large requests.
/// Guarantee: at most 50,000 series, valid for promtool; nothing is lost in the sums; who did it is told; a
/// well-behaved service that was there before keeps its own series.
#[test]
fn a_hundred_thousand_names_stay_within_the_bounds() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let good = json!({"service": "good", "tool": "get", "success": false, "error": {"code": "INTERNAL_ERROR", "message": "x"}});
    server.post_lines(&format!("{good}\n")).is(200);
    for part in 0..10 {
        let mut body = String::new();
        for number in part * 10_000..(part + 1) * 10_000 {
            let service = if number % 2 == 0 { format!("service-{number}") } else { "noisy".to_owned() };
            let line = json!({"service": service, "tool": format!("tool-{number}"), "duration_ms": 5, "success": false,
                "error": {"code": format!("PERMISSION_X{number}"), "message": "no",
                    "details": {"required_trust": format!("r{number}"), "actual_trust": format!("a{number}"),
                        "metric": format!("m{number}"), "current": 1, "limit": 2}}});
            body.push_str(&line.to_string());
            body.push('\n');
        }
        server.post_lines(&body).is(200);
    }
    server.post_lines(&format!("{good}\n")).is(200);
    let scraped = Scraped::of(&server);
    assert!(scraped.len() <= 50_000, "{} series", scraped.len());
    let sum = |metric: &str| scraped.series(metric).iter().map(|(_, value)| value).sum::<f64>();
    assert_eq!(sum("faultline_events_total"), 100_002.0);
    assert_eq!(sum("faultline_category_events_total"), 100_002.0);
    assert_eq!(sum("faultline_requests_total"), 100_002.0);
    assert_eq!(sum("faultline_trust_denials_total"), 100_000.0);
    assert_eq!(sum("faultline_operation_duration_seconds_count"), 100_000.0);
    let good = "faultline_events_total{service=\"good\",category=\"INTERNAL\",code=\"INTERNAL_ERROR\",kind=\"error\",dialect=\"mcp-aql\"}";
    assert_eq!(scraped.value(good), Some(2.0));
    assert!(scraped.text.contains("service=\"_other\""));
    assert!(scraped.text.contains("service=\"noisy\",category=\"PERMISSION\",code=\"_other\""));
    let capped = scraped.value("faultline_capped_labels_total{metric=\"faultline_events_total\"}");
    assert!(capped.is_some_and(|capped| capped > 1_000.0), "{capped:?}");
    let (series, limit) = (scraped.value("faultline_series"), scraped.value("faultline_series_limit"));
    assert!(series.is_some() && series <= limit && limit <= Some(50_000.0), "{series:?} of {limit:?}");
}

/// Scenario: names with quotes, backslashes, newlines, control characters, other scripts, and of absurd length.
/// Guarantee: the text is valid and each is found as it was sent, cut where it is long; also when it comes compressed.
#[test]
fn hostile_names_are_escaped() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let names = [
        "quote\"inside",
        "back\\slash",
        "new\nline",
        "brace}{",
        "tab\tand\u{1b}[31mred",
        "\u{202e}evil\u{1f}sep",
        "日本語 ünïcode 🦀",
        "\\n\\\"",
        "# HELP x y",
    ];
    let mut body = String::new();
    for name in names.iter().map(|name| (*name).to_owned()).chain([format!("{}long", "é".repeat(5000))]) {
        let line = json!({"service": name, "tool": name, "duration_ms": 1, "success": false,
            "error": {"code": "PERMISSION_DENIED", "message": "no",
                "details": {"required_trust": name, "actual_trust": name}}});
        body.push_str(&format!("{line}\n"));
    }
    server.post_lines(&body).is(200);
    let scraped = Scraped::of(&server);
    let denials = scraped.series("faultline_trust_denials_total");
    assert_eq!(denials.len(), names.len() + 1, "{denials:?}");
    for escaped in
        ["quote\\\"inside", "back\\\\slash", "new\\nline", "brace}{", "日本語 ünïcode 🦀", "\\\\n\\\\\\\""]
    {
        assert!(
            denials.iter().any(|(series, _)| series.contains(&format!("service=\"{escaped}\""))),
            "{escaped}"
        );
    }
    assert!(denials.iter().all(|(series, _)| series.len() < 1200));

    let answer = ask(server.address("web"), "GET", "/metrics", &[("Accept-Encoding", "br, gzip;q=0.8")], b"");
    let answer = answer.expect("an answer").is(200);
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*answer.body).read_to_string(&mut text).expect("gzip");
    check(&text);
    assert!(text.contains("new\\nline"));
}
