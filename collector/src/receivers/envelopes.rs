//! `POST /v1/envelopes`: NDJSON, a JSON array, or one object; or strictly lines.
//!
//! One bad record never fails the good ones: the response lists it, and the rest is stored.
//!
//! The form of a body is detected from its first bytes. That works for a whole document but not for a piece that was
//! cut out of a log: if its first line happens to be `[INFO] starting`, the whole body would be taken for a broken
//! array. So senders of such pieces use the content type [`LINES`], and then every line is a record, whatever it starts
//! with.

pub(super) mod record_splitter;
mod request;
mod response;

pub(super) use response::rejected;

use crate::pipeline::{self, BodyReader, Defaults, Encoding, IdempotencyKey, RecordSink};
use crate::receivers::{IngestPipeline, IngestService, RequestHead};
use crate::{Rejection, RejectionReason, Source};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;

/// The content type of a body in which every line is a record, whatever it starts with.
pub const LINES: &str = "application/vnd.faultline.lines";

/// The form in which a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The form is detected from the first bytes.
    Told,
    /// Every line is a record.
    Lines,
}

impl Form {
    /// Returns a short, stable word, which is part of the identity of an `Idempotency-Key`.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Told => "document",
            Self::Lines => "lines",
        }
    }

    fn reader(self) -> BodyReader {
        match self {
            Self::Told => read_body,
            Self::Lines => read_lines,
        }
    }
}

/// Returns the request for [`Pipeline::submit`](crate::Pipeline::submit) that stores lines from within this process, as
/// if a client had sent them as [`LINES`]. The body holds no memory permits of the receivers, so the caller bounds the
/// bytes it has in flight.
#[must_use]
pub fn lines(body: Bytes, defaults: Defaults, idempotency_key: String) -> pipeline::Request {
    pipeline::Request {
        source: Source::Envelopes,
        body,
        encoding: Encoding::Identity,
        read: read_lines,
        defaults,
        idempotency_key: Some(IdempotencyKey {
            token: None,
            key: idempotency_key,
            form: Form::Lines.as_str(),
        }),
        position: None,
        stream: None,
        permits: Vec::new(),
    }
}

pub(super) fn routes<I: IngestPipeline>() -> Router<IngestService<I>> {
    Router::new().route("/v1/envelopes", post(take::<I>).fallback(wrong_method::<I>))
}

async fn take<I: IngestPipeline>(State(service): State<IngestService<I>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let result = match request::read(&head, service.limits()) {
        Ok(request_head) => service.pass(request_head, body).await,
        Err(rejection) => Err(service.reject(Source::Envelopes, rejection)),
    };
    match result {
        Ok(taken) => response::taken(&taken),
        Err(rejection) => rejected(&rejection),
    }
}

async fn wrong_method<I: IngestPipeline>(
    State(service): State<IngestService<I>>,
    request: Request,
) -> Response {
    let detail = format!("{} is not answered here", request.method());
    rejected(&service.reject(Source::Envelopes, Rejection::new(RejectionReason::WrongMethod, detail)))
}

/// The pure half of the receiver.
fn read_body(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    record_splitter::read(body, sink)
}

/// The pure half for [`LINES`]; a body of only blank lines is not an error.
pub(super) fn read_lines(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    record_splitter::lines(body, 1, sink);
    Ok(())
}

#[cfg(test)]
mod tests;
