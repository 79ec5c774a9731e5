//! Tests of OTLP over gRPC: statuses, trailers, and rejections before a message is read.

use super::*;
use crate::pipeline::{Encoding, RejectedRecord};
use crate::receivers::test_support::{Fake, Script, Step, call};
use http::{Request, StatusCode};
use std::time::Duration;
use tonic_types::StatusExt;

fn request(path: &str, headers: &[(&str, &str)], body: Body) -> Request<Body> {
    let mut request = Request::post(path).version(Version::HTTP_2).header("content-type", "application/grpc");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

fn status(headers: &HeaderMap) -> tonic::Status {
    tonic::Status::from_header_map(headers).unwrap()
}

#[tokio::test]
async fn success_is_a_message_and_a_trailer() {
    for (path, source) in
        [(TRACES, Source::OtlpTraces), (LOGS, Source::OtlpLogs), (METRICS, Source::OtlpMetrics)]
    {
        let rejected = vec![RejectedRecord { line: 1, reason: "bad".to_owned() }];
        let ingested = IngestResponse { rejected, rejected_count: 1, ..IngestResponse::default() };
        let fake = Fake::responding_with(Ok(ingested.clone()));
        let response = call(fake.routers().grpc, request(path, &[], Body::from(framed(b"body")))).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "application/grpc");
        assert_eq!(response.headers()["grpc-accept-encoding"], "identity,gzip,zstd");
        assert!(!response.headers().contains_key("grpc-status"));
        let collected = response.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(collected.to_bytes(), framed(&otlp::success_protobuf(&ingested)));
        let submitted = fake.submitted().remove(0);
        assert_eq!((submitted.source, submitted.encoding), (source, Encoding::Identity));
        assert_eq!(submitted.body, b"body");
    }
}

#[tokio::test]
async fn the_flag_decides_whether_a_message_is_compressed() {
    for (flag, expected) in [(b"\0", Encoding::Identity), (b"\x01", Encoding::Zstd)] {
        let fake = Fake::default();
        let body = [&flag[..], b"\0\0\0\x01z"].concat();
        let response =
            call(fake.routers().grpc, request(LOGS, &[("grpc-encoding", "zstd")], Body::from(body))).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(fake.submitted()[0].encoding, expected);
    }
}

/// Checks a rejection in headers only: its code, its message, and `RetryInfo` only if a retry can help.
async fn check_refused(fake: &Fake, request: Request<Body>, code: i32, retry: Option<Duration>) {
    let what = request.uri().to_string();
    let response = call(fake.routers().grpc, request).await;
    assert_eq!(response.status(), StatusCode::OK, "{what}");
    assert_eq!(response.headers()["content-type"], "application/grpc");
    assert_eq!(response.headers()["grpc-accept-encoding"], "identity,gzip,zstd");
    let status = status(response.headers());
    assert_eq!(i32::from(status.code()), code, "{status:?}");
    assert!(!status.message().is_empty());
    assert_eq!(status.get_details_retry_info().and_then(|info| info.retry_delay), retry, "{status:?}");
    assert!(http_body::Body::is_end_stream(response.body()), "nothing may follow");
}

#[tokio::test]
async fn refusals_of_the_pipeline() {
    for reason in RejectionReason::ALL {
        for retry in [None, Some(Duration::from_millis(1500))] {
            let detail = "zu groß: 50 % über\nder Grenze".to_owned();
            let fake =
                Fake::responding_with(Err(Rejection { reason, detail, retry_after: retry, remedy: None }));
            let request = request(TRACES, &[], Body::from(framed(b"")));
            check_refused(&fake, request, reason.grpc_status(), retry).await;
            assert!(fake.rejected().is_empty(), "submit counts its own");
        }
    }
}

#[tokio::test]
async fn what_is_refused_before_the_pipeline() {
    let profiles = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
    let message = || Body::from(framed(b"x"));
    for (path, headers, body, code, reason) in [
        (profiles, &[][..], message(), 12, RejectionReason::WrongSignal),
        ("/", &[], message(), 12, RejectionReason::WrongSignal),
        (TRACES, &[("grpc-encoding", "snappy")], message(), 12, RejectionReason::WrongEncoding),
        (TRACES, &[], Body::empty(), 3, RejectionReason::Unreadable),
        (TRACES, &[], Body::from("\0\0\0\0\x09half"), 3, RejectionReason::Unreadable),
        (TRACES, &[], Body::from("\x01\0\0\0\x01x"), 3, RejectionReason::Unreadable),
        (TRACES, &[], Body::from("\0\0\0\0\x01ab"), 3, RejectionReason::Unreadable),
        (TRACES, &[], announced(b"\0\x04\0\0\x01"), 8, RejectionReason::TooLarge),
        (TRACES, &[("grpc-encoding", "gzip")], announced(b"\x01\x01\0\0\x01"), 8, RejectionReason::TooLarge),
    ] {
        let fake = Fake::default();
        check_refused(&fake, request(path, headers, body), code, None).await;
        assert_eq!(fake.rejected(), [(Source::OtlpTraces, reason)]);
        assert!(fake.submitted().is_empty());
    }
}

/// Returns a body that consists of a prefix; reading further fails the test.
fn announced(prefix: &'static [u8]) -> Body {
    Body::new(Script::of([Step::Data(prefix), Step::Panic]))
}

#[tokio::test]
async fn without_room_a_call_is_unavailable_and_told_when() {
    let mut fake = Fake::default();
    fake.limits.admission_wait = Duration::from_millis(1);
    let taken =
        fake.room.clone().acquire_many_owned(u32::try_from(fake.room.available_permits()).unwrap()).await;
    let retry = Some(fake.limits.retry_after);
    check_refused(&fake, request(LOGS, &[], Body::from(framed(b"x"))), 14, retry).await;
    assert_eq!(fake.rejected(), [(Source::OtlpLogs, RejectionReason::Busy)]);
    drop(taken);
}

#[tokio::test]
async fn whoever_does_not_speak_grpc_is_told_over_http() {
    for (path, version, content_type) in [
        (TRACES, Version::HTTP_11, "application/grpc"),
        (TRACES, Version::HTTP_2, "application/x-protobuf"),
        (TRACES, Version::HTTP_2, "application/grpc-web"),
        (TRACES, Version::HTTP_2, "application/grpc+json"),
        ("/v1/traces", Version::HTTP_11, "application/x-protobuf"),
    ] {
        let fake = Fake::default();
        let request = Request::post(path).version(version).header("content-type", content_type);
        let response = call(fake.routers().grpc, request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{content_type}");
        assert!(!response.headers().contains_key("grpc-status"));
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let told = "This is the gRPC port. Use port 4318 for OTLP over HTTP.";
        assert!(std::str::from_utf8(&text).unwrap().contains(told), "{text:?}");
        assert_eq!(fake.rejected(), [(Source::OtlpTraces, RejectionReason::WrongType)]);
    }
}
