//! Tests of the responses of `/v1/envelopes`, and of the request heads that it accepts.

use crate::counters::CategoryCounts;
use crate::pipeline::{Encoding, IngestResponse, RejectedRecord};
use crate::receivers::test_support::{Fake, Script, Step, call, json};
use crate::{Rejection, RejectionReason, Source};
use axum::body::Body;
use classifier::{Category, Dialect};
use http::{Method, Request, StatusCode};
use serde_json::json;
use std::time::Duration;

fn post(uri: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::post(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from("{}")).unwrap()
}

/// Checks that a request is rejected before the pipeline, with this reason and message, and counted once.
async fn check_refused(request: Request<Body>, reason: RejectionReason, part: &str) {
    let fake = Fake::default();
    let response = call(fake.routers().http, request).await;
    assert_eq!(response.status().as_u16(), reason.http_status(), "{part}");
    let body = json(response).await;
    assert_eq!(body["error"]["code"], reason.as_str());
    assert_eq!(body["error"]["remedy"], reason.remedy());
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains(part), "{message}");
    assert_eq!(fake.rejected(), [(Source::Envelopes, reason)]);
    assert!(fake.submitted().is_empty());
}

#[tokio::test]
async fn content_types() {
    for good in [
        None,
        Some("application/json"),
        Some("application/x-ndjson; charset=utf-8"),
        Some("application/ndjson"),
        Some("application/jsonl"),
        Some("application/x-jsonlines"),
        Some("text/plain"),
        Some(crate::receivers::envelopes::LINES),
    ] {
        let fake = Fake::default();
        let headers: Vec<_> = good.map(|value| ("content-type", value)).into_iter().collect();
        let response = call(fake.routers().http, post("/v1/envelopes", &headers)).await;
        assert_eq!(response.status(), StatusCode::OK, "{good:?}");
        assert_eq!(fake.submitted().len(), 1);
    }
    for bad in ["application/x-www-form-urlencoded", "text/html", "application/x-protobuf"] {
        let request = post("/v1/envelopes", &[("content-type", bad)]);
        check_refused(request, RejectionReason::WrongType, "Content-Type: application/x-ndjson").await;
    }
}

#[tokio::test]
async fn a_request_arrives_as_it_was_sent() {
    let fake = Fake::default();
    let uri = "/v1/envelopes?service=a%20b&environment=prod&dialect=mcp-aql";
    let headers = [("content-encoding", "gzip"), ("idempotency-key", "k-1")];
    let response = call(fake.routers().http, post(uri, &headers)).await;
    assert_eq!(response.status(), StatusCode::OK);
    let submitted = fake.submitted().remove(0);
    assert_eq!(submitted.source, Source::Envelopes);
    assert_eq!((submitted.body, submitted.encoding, submitted.room), (b"{}".to_vec(), Encoding::Gzip, 1));
    assert_eq!(submitted.defaults.service.as_deref(), Some("a b"));
    assert_eq!(submitted.defaults.environment.as_deref(), Some("prod"));
    assert_eq!(submitted.defaults.dialect, Some(Dialect::McpAql));
    assert_eq!(submitted.key.as_deref(), Some("k-1"));
    assert_eq!(fake.room.available_permits(), fake.limits.inflight_bytes >> 10);
}

#[tokio::test]
async fn bad_parameters() {
    let long = "x".repeat(257);
    for (uri, part) in [
        ("/v1/envelopes?servce=a", "service, environment, dialect"),
        ("/v1/envelopes?dialect=cobol", "mcp-aql, mcp-reference"),
        ("/v1/envelopes?dialect=unknown", "mcp-aql, mcp-reference"),
        ("/v1/envelopes?service=", "service has 0 bytes"),
        ("/v1/envelopes?service=a&service=b", "twice"),
        ("/v1/envelopes?service=a%1bb", "control"),
        (&format!("/v1/envelopes?environment={long}"), "257 bytes"),
    ] {
        check_refused(post(uri, &[]), RejectionReason::BadParameter, part).await;
    }
    let long_key = "k".repeat(256);
    for key in ["", "a b", "\u{e9}", &long_key] {
        let request = post("/v1/envelopes", &[("idempotency-key", key)]);
        check_refused(request, RejectionReason::BadParameter, "Idempotency-Key").await;
    }
}

#[tokio::test]
async fn encodings_and_methods() {
    for bad in ["br", "deflate", "gzip, zstd"] {
        let request = post("/v1/envelopes", &[("content-encoding", bad)]);
        check_refused(request, RejectionReason::WrongEncoding, "content-encoding").await;
    }
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let request = Request::builder().method(method).uri("/v1/envelopes").body(Body::empty()).unwrap();
        check_refused(request, RejectionReason::WrongMethod, "not answered").await;
    }
    let fake = Fake::default();
    let request = Request::get("/v1/envelopes").body(Body::empty()).unwrap();
    assert_eq!(call(fake.routers().http, request).await.headers()["allow"], "POST");
    check_refused(post("/v2/envelopes", &[]), RejectionReason::NotFound, "/v2/envelopes").await;
    check_refused(post("/", &[]), RejectionReason::NotFound, "\"/\"").await;
}

#[tokio::test]
async fn what_announces_too_much_is_not_read() {
    for (encoding, length) in [("identity", (64 << 20) + 1), ("gzip", (16 << 20) + 1)] {
        let request = Request::post("/v1/envelopes")
            .header("content-encoding", encoding)
            .header("content-length", length.to_string())
            .body(Body::new(Script::of([Step::Panic])))
            .unwrap();
        check_refused(request, RejectionReason::TooLarge, "over the limit").await;
    }
}

#[tokio::test]
async fn responses() {
    let rejected = vec![RejectedRecord { line: 7, reason: "not \"JSON\"".to_owned() }];
    let categories = CategoryCounts::default();
    let ingested = IngestResponse {
        accepted: 9,
        events: 4,
        unrecognized: 2,
        rejected,
        rejected_count: 1,
        ignored: 0,
        categories,
    };
    let response =
        call(Fake::responding_with(Ok(ingested.clone())).routers().http, post("/v1/envelopes", &[])).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "application/json");
    let listed = json!([{"line": 7, "reason": "not \"JSON\""}]);
    let expected = json!({"accepted": 9, "events": 4, "unrecognized": 2, "rejected": listed});
    assert_eq!(json(response).await, expected);

    let mut told = ingested.clone();
    told.categories.add(Category::RateLimit, 3);
    let response = call(Fake::responding_with(Ok(told)).routers().http, post("/v1/envelopes", &[])).await;
    assert_eq!(json(response).await["categories"], json!({"RATE_LIMIT": 3}));

    let cut = IngestResponse { rejected_count: 200, ..ingested.clone() };
    let response = call(Fake::responding_with(Ok(cut)).routers().http, post("/v1/envelopes", &[])).await;
    assert_eq!(json(response).await["rejected_count"], 200);

    let nothing = IngestResponse { accepted: 0, events: 0, unrecognized: 0, ..ingested };
    let fake = Fake::responding_with(Ok(nothing));
    let response = call(fake.routers().http, post("/v1/envelopes", &[])).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let body = json(response).await;
    assert_eq!((&body["rejected"], &body["error"]["code"]), (&listed, &json!("unreadable")));
    assert!(fake.rejected().is_empty(), "the pipeline counted the lines");
}

#[tokio::test]
async fn retries_are_told_when() {
    for (after, expected) in [(0, "1"), (500, "1"), (1000, "1"), (1001, "2"), (30_000, "30")] {
        let rejection = Rejection::retryable(RejectionReason::Busy, "full", Duration::from_millis(after));
        let fake = Fake::responding_with(Err(rejection));
        let response = call(fake.routers().http, post("/v1/envelopes", &[])).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()["retry-after"], expected);
        assert!(fake.rejected().is_empty(), "submit counts its own");
    }
}
