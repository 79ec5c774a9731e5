//! OTLP over gRPC: one unary call for each signal.
//!
//! Frames are parsed without tonic's server. tonic buffers a whole message before our code runs, and rejects one that
//! is too large with `OUT_OF_RANGE`, which OTLP senders retry forever. Here a message is rejected as soon as its
//! five-byte prefix is read, and it shares the limits, memory accounting and counters of all other bodies.

use super::body::Bounds;
use super::content_headers::{grpc_encoding, media_type, quoted};
use super::grpc_frame::{Frame, framed};
use super::otlp::{self, Signal};
use super::{IngestPipeline, IngestService, RequestHead, http_response, rejection_of};
use crate::pipeline::{Defaults, IngestResponse};
use crate::{Limits, Rejection, RejectionReason, Source};
use auth::Denial;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Version};
use http_body_util::{BodyExt, Full};

/// The paths of the calls.
const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

const TYPES: [&str; 2] = ["application/grpc", "application/grpc+proto"];
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const ENCODINGS: HeaderValue = HeaderValue::from_static("identity,gzip,zstd");
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");

pub(super) fn routes<I: IngestPipeline>() -> Router<IngestService<I>> {
    Router::new()
        .route(TRACES, post(traces::<I>).fallback(unknown::<I>))
        .route(LOGS, post(logs::<I>).fallback(unknown::<I>))
        .route(METRICS, post(metrics::<I>).fallback(unknown::<I>))
        .fallback(unknown::<I>)
}

async fn traces<I: IngestPipeline>(State(service): State<IngestService<I>>, request: Request) -> Response {
    take(&service, Signal::Traces, request).await
}

async fn logs<I: IngestPipeline>(State(service): State<IngestService<I>>, request: Request) -> Response {
    take(&service, Signal::Logs, request).await
}

async fn metrics<I: IngestPipeline>(State(service): State<IngestService<I>>, request: Request) -> Response {
    take(&service, Signal::Metrics, request).await
}

async fn take<I: IngestPipeline>(service: &IngestService<I>, signal: Signal, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if let Err(rejection) = check_protocol(&head) {
        return not_grpc(&service.reject(signal.source(), rejection));
    }
    let result = match read_head(&head.headers, signal, service.limits()) {
        Ok(request_head) => service.pass(request_head, body).await,
        Err(rejection) => Err(service.reject(signal.source(), rejection)),
    };
    match result {
        Ok(response) => taken(&response),
        Err(rejection) => rejected(&rejection),
    }
}

async fn unknown<I: IngestPipeline>(State(service): State<IngestService<I>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    if let Err(rejection) = check_protocol(&head) {
        return not_grpc(&service.reject(Source::OtlpTraces, rejection));
    }
    let detail = format!("there is no call {} {}", head.method, quoted(head.uri.path()));
    rejected(&service.reject(Source::OtlpTraces, Rejection::new(RejectionReason::WrongSignal, detail)))
}

/// Builds the response to a call that was denied access.
pub(super) fn denied<I: IngestPipeline>(
    service: &IngestService<I>,
    denial: &Denial,
    request: &Request,
) -> Response {
    let source = match request.uri().path() {
        LOGS => Source::OtlpLogs,
        METRICS => Source::OtlpMetrics,
        _ => Source::OtlpTraces,
    };
    let rejection = service.reject(source, rejection_of(denial));
    let is_grpc = TYPES.contains(&media_type(request.headers()).as_str());
    if is_grpc { rejected(&rejection) } else { not_grpc(&rejection) }
}

/// Rejects a request that is not gRPC; its sender gets a plain HTTP response.
fn check_protocol(head: &Parts) -> Result<(), Rejection> {
    let given = media_type(&head.headers);
    if TYPES.contains(&given.as_str()) && head.version >= Version::HTTP_2 {
        return Ok(());
    }
    let detail = format!(
        "This is the gRPC port. Use port 4318 for OTLP over HTTP. (The content type {} over {:?} is not gRPC, \
         which is application/grpc over HTTP/2.)",
        quoted(&given),
        head.version
    );
    Err(Rejection::new(RejectionReason::WrongType, detail))
}

fn read_head(headers: &HeaderMap, signal: Signal, limits: &Limits) -> Result<RequestHead, Rejection> {
    let encoding = grpc_encoding(headers)?;
    let frame = Frame::new(encoding, limits);
    Ok(RequestHead {
        source: signal.source(),
        encoding,
        read: signal.read_protobuf(),
        defaults: Defaults::default(),
        idempotency_key: None,
        bounds: Bounds { limit: frame.limit(), announced: None, frame: Some(frame) },
    })
}

fn taken(ingested: &IngestResponse) -> Response {
    let message = framed(&otlp::success_protobuf(ingested));
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS, HeaderValue::from_static("0"));
    let body = Full::new(message).with_trailers(async { Some(Ok(trailers)) });
    // Mapping the frames hides the length of the body: a Content-Length would tell some clients that the call is over
    // before its trailers, which contain the status.
    response(Body::new(body.map_frame(std::convert::identity)))
}

/// Builds a response of headers only, which contain the status of the rejection.
fn rejected(rejection: &Rejection) -> Response {
    let status = otlp::grpc_status(rejection);
    let mut response = response(Body::empty());
    if status.add_header(response.headers_mut()).is_err() {
        response.headers_mut().insert(STATUS, HeaderValue::from(rejection.reason.grpc_status()));
    }
    response
}

fn response(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response.headers_mut().insert(ACCEPT_ENCODING, ENCODINGS);
    response
}

fn not_grpc(rejection: &Rejection) -> Response {
    http_response::rejected(rejection, "text/plain; charset=utf-8", format!("{rejection}\n"))
}

#[cfg(test)]
mod tests;
