//! `POST /v1/envelopes`: NDJSON, a JSON array, or one object; or strictly lines.
//!
//! One bad line never fails the good ones: it is listed in the answer, and the rest is stored.
//!
//! What a body is, is told by how it starts. That is right for a whole document and wrong for a piece that was cut out of
//! a log: when its first line happens to be `[INFO] starting`, all the rest would be taken for a broken array. So whoever
//! sends pieces says that they are [`LINES`], and then every line is a record, whatever it starts with.

mod answer;
mod head;
pub(super) mod split;

pub(super) use answer::refused;

use crate::pipeline::{self, Defaults, Encoding, IdempotencyKey, ReadBody, Reading};
use crate::receive::{Asked, Door, Intake};
use crate::{Cause, Refusal, Source};
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

    fn reader(self) -> ReadBody {
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
        room: Vec::new(),
    }
}

pub(super) fn routes<I: Intake>() -> Router<Door<I>> {
    Router::new().route("/v1/envelopes", post(take::<I>).fallback(wrong_method::<I>))
}

async fn take<I: Intake>(State(door): State<Door<I>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let answered = match head::read(&head, door.limits()) {
        Ok(asked) => door.pass(asked, body).await,
        Err(refusal) => Err(door.refuse(Source::Envelopes, refusal)),
    };
    match answered {
        Ok(taken) => answer::taken(&taken),
        Err(refusal) => refused(&refusal),
    }
}

async fn wrong_method<I: Intake>(State(door): State<Door<I>>, request: Request) -> Response {
    let detail = format!("{} is not answered here", request.method());
    refused(&door.refuse(Source::Envelopes, Refusal::new(Cause::WrongMethod, detail)))
}

/// The pure half.
fn read_body(body: &[u8], reading: &mut Reading<'_>) -> Result<(), Refusal> {
    split::read(body, reading)
}

/// The pure half for [`LINES`]; blank lines alone are no mistake.
pub(super) fn read_lines(body: &[u8], reading: &mut Reading<'_>) -> Result<(), Refusal> {
    split::lines(body, 1, reading);
    Ok(())
}

#[cfg(test)]
mod tests;
