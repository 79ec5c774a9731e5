//! Receivers: one file each. They bound, frame and answer; what the bytes mean is not decided here.
//!
//! A receiver has two halves. The *async half* answers the socket: it checks the head, collects the body
//! (`body`), submits it and turns what comes back into its protocol's answer. The *pure half* is a
//! [`ReadBody`]: it runs on a worker over the decompressed body and hands records
//! over one by one (`records`). No receiver decompresses, and none decides what a record means.
//!
//! | file | receives |
//! |---|---|
//! | `envelopes` | `POST /v1/envelopes`: NDJSON, a JSON array, one object |
//! | `otlp_http` | `POST /v1/traces`, `/v1/logs`: protobuf and JSON |
//! | `otlp_grpc` | the same over gRPC |
//! | `otlp/` | reads OTLP bytes into the views of `taxonomy::signal` |
//! | `files` | log files, which it reads itself, and archives |
//! | `stdin` | lines of standard input |
//! | `server` | connections: accepts, bounds, drains |
//!
//! What must always hold:
//! - No request is looked at before the gate has let it in.
//! - Every request passes `Door::pass`, so the limits and the counting are the same for all.
//! - A refusal is counted once: here when it happened before `submit`, by the pipeline after.
//! - Memory is taken from the pipeline's room *before* bytes are kept, never after.

pub mod envelopes;
pub mod files;
pub mod server;
pub mod stdin;

mod body;
mod encoding;
mod frame;
mod otlp;
mod otlp_grpc;
mod otlp_http;
mod records;
mod reply;

#[cfg(test)]
mod fake;

use crate::pipeline::{Answer, Defaults, Encoding, IdempotencyKey, Pipeline, ReadBody, Request};
use crate::{Cause, Limits, Refusal, Source};
use access::{Denied, Gate, Scope};
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// What receivers need of the pipeline: their only way in, and the seam where tests put another.
pub trait Intake: Clone + Send + Sync + 'static {
    /// The bounds in force.
    fn limits(&self) -> &Limits;

    /// Room for bodies, a permit a KiB.
    fn room(&self) -> &Arc<Semaphore>;

    /// Takes a request; when this returns `Ok`, what it held is durable.
    fn submit(&self, request: Request) -> impl Future<Output = Result<Answer, Refusal>> + Send;

    /// Counts a request that was refused before it was submitted.
    fn refused(&self, source: Source, refusal: &Refusal);
}

impl Intake for Pipeline {
    fn limits(&self) -> &Limits {
        self.limits()
    }

    fn room(&self) -> &Arc<Semaphore> {
        self.room()
    }

    async fn submit(&self, request: Request) -> Result<Answer, Refusal> {
        self.submit(request).await
    }

    fn refused(&self, source: Source, refusal: &Refusal) {
        self.refused(source, refusal);
    }
}

/// What is served on the two ports that take telemetry in.
pub struct Routers {
    /// OTLP over HTTP, and envelopes: port 4318.
    pub http: Router,
    /// OTLP over gRPC: port 4317.
    pub grpc: Router,
}

/// The receivers of one pipeline, for those whom the gate lets in. They share one bound on the number of requests.
pub fn routers(intake: impl Intake, gate: &Arc<Gate>) -> Routers {
    let door = Door::new(intake);
    let http = envelopes::routes().merge(otlp_http::routes()).fallback(otlp_http::unknown);
    let (of_http, of_grpc) = (door.clone(), door.clone());
    let http = access::guarded(
        http,
        gate,
        Scope::Ingest,
        move |denied: &Denied, request: &axum::extract::Request| otlp_http::denied(&of_http, denied, request),
    );
    let grpc = access::guarded(
        otlp_grpc::routes(),
        gate,
        Scope::Ingest,
        move |denied: &Denied, request: &axum::extract::Request| otlp_grpc::denied(&of_grpc, denied, request),
    );
    Routers { http: http.with_state(door.clone()), grpc: grpc.with_state(door) }
}

/// What somebody is told whom the gate does not let in.
fn refusal_of(denied: &Denied) -> Refusal {
    let cause = match denied.reason {
        access::Reason::CrossSite => Cause::CrossSite,
        _ if denied.is_unauthenticated() => Cause::Unauthenticated,
        _ => Cause::Forbidden,
    };
    Refusal::new(cause, denied.to_string())
}

/// A request whose head is in order: all that is left is its body.
struct Asked {
    source: Source,
    encoding: Encoding,
    read: ReadBody,
    defaults: Defaults,
    idempotency_key: Option<IdempotencyKey>,
    bounds: body::Bounds,
}

/// The one way from a socket to the pipeline.
#[derive(Clone)]
struct Door<I> {
    intake: I,
    /// Requests that are being read or wait for the log.
    slots: Arc<Semaphore>,
}

impl<I: Intake> Door<I> {
    fn new(intake: I) -> Self {
        let slots = Arc::new(Semaphore::new(intake.limits().requests));
        Self { intake, slots }
    }

    fn limits(&self) -> &Limits {
        self.intake.limits()
    }

    /// Collects the body and submits it. Either way the request has been counted when this returns.
    async fn pass(&self, asked: Asked, body: Body) -> Result<Answer, Refusal> {
        let source = asked.source;
        let (_slot, request) = match self.admit(asked, body).await {
            Ok(admitted) => admitted,
            Err(refusal) => return Err(self.refuse(source, refusal)),
        };
        self.intake.submit(request).await
    }

    /// Counts a refusal that happens before `submit`; all of them come through here.
    fn refuse(&self, source: Source, refusal: Refusal) -> Refusal {
        self.intake.refused(source, &refusal);
        refusal
    }

    async fn admit(&self, asked: Asked, body: Body) -> Result<(OwnedSemaphorePermit, Request), Refusal> {
        let Asked { source, encoding, read, defaults, idempotency_key, bounds } = asked;
        // Before a slot is waited for: a request that announces too much never costs one.
        bounds.check_announced()?;
        let frame = bounds.frame;
        let slot = self.slot().await?;
        let gone = Unanswered { intake: &self.intake, source, armed: true };
        let collected = body::collect(body, bounds, self.limits(), self.intake.room()).await;
        gone.answered();
        let (body, room) = collected?;
        let (body, encoding) = match frame {
            Some(frame) => frame.open(body)?,
            None => (body, encoding),
        };
        Ok((slot, Request { source, body, encoding, read, defaults, idempotency_key, position: None, room }))
    }

    async fn slot(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let limits = self.limits();
        match timeout(limits.park, Arc::clone(&self.slots).acquire_owned()).await {
            Ok(Ok(slot)) => Ok(slot),
            _ => Err(Refusal::later(Cause::Busy, "too many requests at once", limits.retry_after)),
        }
    }
}

/// Counts a request whose sender hangs up while its body is read: the server then drops the handler, and
/// nobody else would know.
struct Unanswered<'a, I: Intake> {
    intake: &'a I,
    source: Source,
    armed: bool,
}

impl<I: Intake> Unanswered<'_, I> {
    fn answered(mut self) {
        self.armed = false;
    }
}

impl<I: Intake> Drop for Unanswered<'_, I> {
    fn drop(&mut self) {
        if self.armed {
            self.intake.refused(self.source, &body::gone());
        }
    }
}

/// A response's body.
fn body_of(bytes: impl Into<Bytes>) -> Body {
    Body::from(bytes.into())
}
