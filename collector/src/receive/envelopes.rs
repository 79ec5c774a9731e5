//! `POST /v1/envelopes`: NDJSON, a JSON array, or one object.
//!
//! One bad line never fails the good ones: it is listed in the answer, and the rest is stored.

mod answer;
mod head;
mod split;

pub(super) use answer::refused;

use crate::pipeline::Reading;
use crate::receive::{Asked, Door, Intake};
use crate::{Cause, Refusal, Source};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;

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

#[cfg(test)]
mod tests;
