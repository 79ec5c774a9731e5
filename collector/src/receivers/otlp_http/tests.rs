//! Tests of OTLP over HTTP: content types, statuses, partial success.

use crate::pipeline::{Encoding, IngestResponse, RejectedRecord};
use crate::receivers::test_support::{Fake, bytes, call, json};
use crate::{Rejection, RejectionReason, Source};
use axum::body::Body;
use http::{Method, Request, StatusCode};
use prost::Message;
use std::time::Duration;
use tonic_types::pb;

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

fn post(uri: &str, content_type: &str) -> Request<Body> {
    Request::post(uri).header("content-type", content_type).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn success_has_the_type_of_the_request() {
    for (uri, source) in [
        ("/v1/traces", Source::OtlpTraces),
        ("/v1/logs", Source::OtlpLogs),
        ("/v1/metrics", Source::OtlpMetrics),
    ] {
        for (content_type, expected) in [(PROTOBUF, &b""[..]), (JSON, b"{}")] {
            let fake = Fake::default();
            let request = Request::post(uri)
                .header("content-type", format!("{content_type}; charset=utf-8"))
                .header("content-encoding", "zstd")
                .body(Body::from("body"))
                .unwrap();
            let response = call(fake.routers().http, request).await;
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()["content-type"], content_type);
            assert_eq!(bytes(response).await, expected);
            let submitted = fake.submitted().remove(0);
            assert_eq!((submitted.source, submitted.encoding), (source, Encoding::Zstd));
            assert_eq!(submitted.body, b"body");
        }
    }
}

#[tokio::test]
async fn partial_success_is_told() {
    let rejected = vec![RejectedRecord { line: 1, reason: "bad".to_owned() }];
    let fake = Fake::responding_with(Ok(IngestResponse {
        rejected,
        rejected_count: 1,
        ..IngestResponse::default()
    }));
    let response = call(fake.routers().http, post("/v1/logs", JSON)).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(json(response).await["partialSuccess"]["rejectedLogRecords"], "1");
    let fake = Fake::responding_with(Ok(IngestResponse { ignored: 3, ..IngestResponse::default() }));
    let response = call(fake.routers().http, post("/v1/metrics", JSON)).await;
    assert_eq!(response.status(), StatusCode::OK);
    let partial = &json(response).await["partialSuccess"];
    assert_eq!(partial["rejectedDataPoints"], "3");
    assert_eq!(
        partial["errorMessage"],
        "3 data points are of metrics that Faultline does not store; \
         it reads mcp.server.operation.duration and mcp.client.operation.duration"
    );
}

/// Checks status, content type, `Retry-After` and body of the pipeline's rejections, for every reason.
#[tokio::test]
async fn refusals_are_a_status_in_the_type_of_the_request() {
    for reason in RejectionReason::ALL {
        let rejection = Rejection::retryable(reason, "because", Duration::from_millis(1200));
        for content_type in [PROTOBUF, JSON] {
            let fake = Fake::responding_with(Err(rejection.clone()));
            let response = call(fake.routers().http, post("/v1/traces", content_type)).await;
            assert_eq!(response.status().as_u16(), reason.http_status());
            assert_eq!(response.headers()["content-type"], content_type);
            assert_eq!(response.headers()["retry-after"], "2");
            let body = bytes(response).await;
            let (code, message) = if content_type == PROTOBUF {
                let status = pb::Status::decode(&body[..]).unwrap();
                (status.code, status.message)
            } else {
                let status: serde_json::Value = serde_json::from_slice(&body).unwrap();
                let code = status["code"].as_i64().unwrap() as i32;
                (code, status["message"].as_str().unwrap().to_owned())
            };
            assert_eq!((code, message), (reason.grpc_status(), rejection.to_string()));
        }
    }
}

async fn check_refused(
    request: Request<Body>,
    status: u16,
    content_type: &str,
    counted: (Source, RejectionReason),
) {
    let fake = Fake::default();
    let what = format!("{} {}", request.method(), request.uri());
    let response = call(fake.routers().http, request).await;
    assert_eq!(response.status().as_u16(), status, "{what}");
    assert_eq!(response.headers()["content-type"], content_type, "{what}");
    assert!(!response.headers().contains_key("retry-after"), "{what}");
    assert_eq!(fake.rejected(), [counted], "{what}");
    assert!(fake.submitted().is_empty());
}

#[tokio::test]
async fn what_is_refused_before_the_pipeline() {
    for other in ["application/xml", "text/plain", ""] {
        check_refused(post("/v1/traces", other), 415, JSON, (Source::OtlpTraces, RejectionReason::WrongType))
            .await;
    }
    for (uri, content_type) in [("/v1development/profiles", JSON), ("/v1development/profiles", PROTOBUF)] {
        let counted = (Source::OtlpTraces, RejectionReason::WrongSignal);
        check_refused(post(uri, content_type), 404, content_type, counted).await;
    }
    for method in [Method::GET, Method::PUT] {
        let request = Request::builder().method(method).uri("/v1/logs").body(Body::empty()).unwrap();
        check_refused(request, 405, JSON, (Source::OtlpLogs, RejectionReason::WrongMethod)).await;
    }
    let request = Request::post("/v1/logs").header("content-type", PROTOBUF).header("content-encoding", "br");
    let counted = (Source::OtlpLogs, RejectionReason::WrongEncoding);
    check_refused(request.body(Body::empty()).unwrap(), 415, PROTOBUF, counted).await;
    let request = Request::post("/v1/logs").header("content-type", JSON).header("content-length", "99999999");
    let counted = (Source::OtlpLogs, RejectionReason::TooLarge);
    check_refused(request.body(Body::empty()).unwrap(), 413, JSON, counted).await;
}

#[tokio::test]
async fn requests_over_the_bound_are_busy() {
    let mut fake = Fake::default();
    fake.limits.requests = 0;
    fake.limits.admission_wait = Duration::from_millis(1);
    let response = call(fake.routers().http, post("/v1/traces", JSON)).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(fake.rejected(), [(Source::OtlpTraces, RejectionReason::Busy)]);
}
