//! `POST /v1/envelopes`: NDJSON, a JSON array, or one object; or strictly lines.
//!
//! One bad line never fails the good ones: it is listed in the answer, and the rest is stored.
//!
//! What a body is, is told by how it starts. That is right for a whole document and wrong for a piece that was cut out
//! of a log: when its first line happens to be `[INFO] starting`, all the rest would be taken for a broken array. So
//! whoever sends pieces says that they are [`LINES`], and then every line is a record, whatever it starts with.

pub(super) mod record_splitter;
mod request;
mod response;

pub(super) use response::refused;

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

/// How a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// By how it starts.
    Told,
    /// Every line is a record.
    Lines,
}

impl Form {
    /// A short, stable word: it is part of what an `Idempotency-Key` stands for.
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

/// A request of lines for [`Pipeline::submit`](crate::Pipeline::submit), by whoever has them in this process: what a
/// sender of [`LINES`] would have sent. The body takes no room of the receivers', so the caller bounds what it has in
/// flight.
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
        permits: Vec::new(),
    }
}

pub(super) fn routes<I: IngestPipeline>() -> Router<IngestService<I>> {
    Router::new().route("/v1/envelopes", post(take::<I>).fallback(wrong_method::<I>))
}

async fn take<I: IngestPipeline>(State(door): State<IngestService<I>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let answered = match request::read(&head, door.limits()) {
        Ok(asked) => door.pass(asked, body).await,
        Err(rejection) => Err(door.refuse(Source::Envelopes, rejection)),
    };
    match answered {
        Ok(taken) => response::taken(&taken),
        Err(rejection) => refused(&rejection),
    }
}

async fn wrong_method<I: IngestPipeline>(State(door): State<IngestService<I>>, request: Request) -> Response {
    let detail = format!("{} is not answered here", request.method());
    refused(&door.refuse(Source::Envelopes, Rejection::new(RejectionReason::WrongMethod, detail)))
}

/// The pure half.
fn read_body(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    record_splitter::read(body, sink)
}

/// The pure half for [`LINES`]; blank lines alone are no mistake.
pub(super) fn read_lines(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    record_splitter::lines(body, 1, sink);
    Ok(())
}

#[cfg(test)]
mod tests;
