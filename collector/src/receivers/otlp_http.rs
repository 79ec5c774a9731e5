//! OTLP over HTTP: `POST /v1/traces`, `/v1/logs` and `/v1/metrics`, in protobuf and in JSON.
//!
//! The specification requires that the response has the content type of the request; that success is an export response
//! and everything else a `google.rpc.Status`; that 429 and 503 tell the client when to retry; and that a malformed
//! request gets a 400, which clients do not retry.

use super::body::Bounds;
use super::content_headers::{content_encoding, media_type, quoted};
use super::envelopes;
use super::http_response::{rejected, reply};
use super::otlp::{self, Signal};
use super::{IngestPipeline, IngestService, RequestHead, rejection_of};
use crate::pipeline::{Defaults, IngestResponse};
use crate::{Limits, Rejection, RejectionReason, Source};
use auth::Denial;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use http::request::Parts;
use http::{HeaderMap, StatusCode};

/// The two encodings of OTLP over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Protobuf,
    Json,
}

impl Format {
    const ALL: [Self; 2] = [Self::Protobuf, Self::Json];

    const fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }

    fn of(headers: &HeaderMap) -> Option<Self> {
        let given = media_type(headers);
        Self::ALL.into_iter().find(|format| format.content_type() == given)
    }

    fn taken(self, signal: Signal, response: &IngestResponse) -> Response {
        let body = match self {
            Self::Protobuf => otlp::success_protobuf(response),
            Self::Json => otlp::success_json(signal, response).into_bytes(),
        };
        reply(StatusCode::OK, self.content_type(), body)
    }

    fn rejected(self, rejection: &Rejection) -> Response {
        let body = match self {
            Self::Protobuf => otlp::status_protobuf(rejection),
            Self::Json => otlp::status_json(rejection).into_bytes(),
        };
        rejected(rejection, self.content_type(), body)
    }
}

pub(super) fn routes<I: IngestPipeline>() -> Router<IngestService<I>> {
    Router::new()
        .route("/v1/traces", post(traces::<I>).fallback(wrong_method::<I>))
        .route("/v1/logs", post(logs::<I>).fallback(wrong_method::<I>))
        .route("/v1/metrics", post(metrics::<I>).fallback(wrong_method::<I>))
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

/// Returns the signal that a path accepts.
fn signal_of(path: &str) -> Option<Signal> {
    match path {
        "/v1/traces" => Some(Signal::Traces),
        "/v1/logs" => Some(Signal::Logs),
        "/v1/metrics" => Some(Signal::Metrics),
        _ => None,
    }
}

async fn take<I: IngestPipeline>(service: &IngestService<I>, signal: Signal, request: Request) -> Response {
    let (head, body) = request.into_parts();
    // A request of an unsupported content type gets a JSON response, which a person can read.
    let format = Format::of(&head.headers);
    let result = match read_head(&head, format, signal, service.limits()) {
        Ok(request_head) => service.pass(request_head, body).await,
        Err(rejection) => Err(service.reject(signal.source(), rejection)),
    };
    let format = format.unwrap_or(Format::Json);
    match result {
        Ok(response) => format.taken(signal, &response),
        Err(rejection) => format.rejected(&rejection),
    }
}

fn read_head(
    head: &Parts,
    format: Option<Format>,
    signal: Signal,
    limits: &Limits,
) -> Result<RequestHead, Rejection> {
    let read = match format {
        Some(Format::Protobuf) => signal.read_protobuf(),
        Some(Format::Json) => signal.read_json(),
        None => return Err(wrong_type(&head.headers)),
    };
    let encoding = content_encoding(&head.headers)?;
    Ok(RequestHead {
        source: signal.source(),
        encoding,
        read,
        defaults: Defaults::default(),
        idempotency_key: None,
        bounds: Bounds::of_http(&head.headers, encoding, limits),
    })
}

fn wrong_type(headers: &HeaderMap) -> Rejection {
    let given = quoted(&media_type(headers));
    let known = Format::ALL.map(Format::content_type).join(" and ");
    Rejection::new(
        RejectionReason::WrongType,
        format!("the content type {given} is not read here: OTLP is {known}"),
    )
}

async fn wrong_method<I: IngestPipeline>(
    State(service): State<IngestService<I>>,
    request: Request,
) -> Response {
    let signal = signal_of(request.uri().path()).unwrap_or(Signal::Traces);
    let detail = format!("{} is not answered here", request.method());
    let rejection = service.reject(signal.source(), Rejection::new(RejectionReason::WrongMethod, detail));
    Format::of(request.headers()).unwrap_or(Format::Json).rejected(&rejection)
}

/// Builds the response to a request that was denied access, in the format of its path.
pub(super) fn denied<I: IngestPipeline>(
    service: &IngestService<I>,
    denial: &Denial,
    request: &Request,
) -> Response {
    let signal = signal_of(request.uri().path());
    let rejection = service.reject(signal.map_or(Source::Envelopes, Signal::source), rejection_of(denial));
    match signal {
        Some(_) => Format::of(request.headers()).unwrap_or(Format::Json).rejected(&rejection),
        None => envelopes::rejected(&rejection),
    }
}

/// Handles all other paths: unsupported signals, and paths that do not exist.
pub(super) async fn unknown<I: IngestPipeline>(
    State(service): State<IngestService<I>>,
    request: Request,
) -> Response {
    let path = request.uri().path();
    let is_signal = path.starts_with("/v1development/");
    let format = Format::of(request.headers());
    if !is_signal {
        let detail = format!("there is nothing at {}", quoted(path));
        let rejection = service.reject(Source::Envelopes, Rejection::new(RejectionReason::NotFound, detail));
        return envelopes::rejected(&rejection);
    }
    let rejection = Rejection::new(RejectionReason::WrongSignal, format!("{} is not taken", quoted(path)));
    let rejection = service.reject(Source::OtlpTraces, rejection);
    format.unwrap_or(Format::Json).rejected(&rejection)
}

#[cfg(test)]
mod tests;
