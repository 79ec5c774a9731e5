//! OTLP over HTTP: `POST /v1/traces` and `/v1/logs`, in protobuf and in JSON.
//!
//! What the specification asks for: the answer has the content type of the request; success is an export
//! response, everything else a `google.rpc.Status`; 429 and 503 say when to come back, and what is malformed
//! is a 400 that nobody retries.

use super::body::Bounds;
use super::encoding::{content_encoding, media_type, quoted};
use super::envelopes;
use super::otlp::{self, Signal};
use super::reply::{refused, reply};
use super::{Asked, Door, Intake, refusal_of};
use crate::pipeline::{Answer, Defaults};
use crate::{Cause, Limits, Refusal, Source};
use access::Denied;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use http::request::Parts;
use http::{HeaderMap, StatusCode};

/// The two ways that OTLP is written over HTTP.
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

    fn taken(self, signal: Signal, answer: &Answer) -> Response {
        let body = match self {
            Self::Protobuf => otlp::success_protobuf(answer),
            Self::Json => otlp::success_json(signal, answer).into_bytes(),
        };
        reply(StatusCode::OK, self.content_type(), body)
    }

    fn refused(self, refusal: &Refusal) -> Response {
        let body = match self {
            Self::Protobuf => otlp::status_protobuf(refusal),
            Self::Json => otlp::status_json(refusal).into_bytes(),
        };
        refused(refusal, self.content_type(), body)
    }
}

pub(super) fn routes<I: Intake>() -> Router<Door<I>> {
    Router::new()
        .route("/v1/traces", post(traces::<I>).fallback(wrong_method::<I>))
        .route("/v1/logs", post(logs::<I>).fallback(wrong_method::<I>))
}

async fn traces<I: Intake>(State(door): State<Door<I>>, request: Request) -> Response {
    take(&door, Signal::Traces, request).await
}

async fn logs<I: Intake>(State(door): State<Door<I>>, request: Request) -> Response {
    take(&door, Signal::Logs, request).await
}

async fn take<I: Intake>(door: &Door<I>, signal: Signal, request: Request) -> Response {
    let (head, body) = request.into_parts();
    // Whom we cannot answer in its own type we answer in JSON, which a person can read.
    let format = Format::of(&head.headers);
    let answered = match asked(&head, format, signal, door.limits()) {
        Ok(asked) => door.pass(asked, body).await,
        Err(refusal) => Err(door.refuse(signal.source(), refusal)),
    };
    let format = format.unwrap_or(Format::Json);
    match answered {
        Ok(answer) => format.taken(signal, &answer),
        Err(refusal) => format.refused(&refusal),
    }
}

fn asked(head: &Parts, format: Option<Format>, signal: Signal, limits: &Limits) -> Result<Asked, Refusal> {
    let read = match format {
        Some(Format::Protobuf) => signal.read_protobuf(),
        Some(Format::Json) => signal.read_json(),
        None => return Err(wrong_type(&head.headers)),
    };
    let encoding = content_encoding(&head.headers)?;
    Ok(Asked {
        source: signal.source(),
        encoding,
        read,
        defaults: Defaults::default(),
        idempotency_key: None,
        bounds: Bounds::of_http(&head.headers, encoding, limits),
    })
}

fn wrong_type(headers: &HeaderMap) -> Refusal {
    let given = quoted(&media_type(headers));
    let known = Format::ALL.map(Format::content_type).join(" and ");
    Refusal::new(Cause::WrongType, format!("the content type {given} is not read here: OTLP is {known}"))
}

async fn wrong_method<I: Intake>(State(door): State<Door<I>>, request: Request) -> Response {
    let signal = if request.uri().path() == "/v1/logs" { Signal::Logs } else { Signal::Traces };
    let detail = format!("{} is not answered here", request.method());
    let refusal = door.refuse(signal.source(), Refusal::new(Cause::WrongMethod, detail));
    Format::of(request.headers()).unwrap_or(Format::Json).refused(&refusal)
}

/// Answers somebody whom the gate does not let in, in the way of the path.
pub(super) fn denied<I: Intake>(door: &Door<I>, denied: &Denied, request: &Request) -> Response {
    let signal = match request.uri().path() {
        "/v1/traces" => Some(Signal::Traces),
        "/v1/logs" => Some(Signal::Logs),
        _ => None,
    };
    let refusal = door.refuse(signal.map_or(Source::Envelopes, Signal::source), refusal_of(denied));
    match signal {
        Some(_) => Format::of(request.headers()).unwrap_or(Format::Json).refused(&refusal),
        None => envelopes::refused(&refusal),
    }
}

/// Every other path: signals that we do not take, and mistakes.
pub(super) async fn unknown<I: Intake>(State(door): State<Door<I>>, request: Request) -> Response {
    let path = request.uri().path();
    let is_signal = path.starts_with("/v1/metrics") || path.starts_with("/v1development/");
    let format = Format::of(request.headers());
    if !is_signal {
        let detail = format!("there is nothing at {}", quoted(path));
        let refusal = door.refuse(Source::Envelopes, Refusal::new(Cause::NotFound, detail));
        return envelopes::refused(&refusal);
    }
    let refusal = Refusal::new(Cause::WrongSignal, format!("{} is not taken", quoted(path)));
    let refusal = door.refuse(Source::OtlpTraces, refusal);
    format.unwrap_or(Format::Json).refused(&refusal)
}

#[cfg(test)]
mod tests;
