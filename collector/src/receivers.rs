//! Receivers of telemetry, one file each. They limit request sizes, read frames and send responses; they do not
//! interpret records.
//!
//! A receiver has two halves. The *async half* handles the request: it checks the head, collects the body (`body`),
//! submits it, and turns the result into a response of its protocol. The *pure half* is a [`BodyReader`]: it runs on a
//! worker over the decompressed body and passes records on one by one (`record_consumer`). No receiver decompresses,
//! and none decides what a record means.
//!
//! | file | receives |
//! |---|---|
//! | `envelopes` | `POST /v1/envelopes`: NDJSON, a JSON array, one object |
//! | `otlp_http` | `POST /v1/traces`, `/v1/logs`, `/v1/metrics`: protobuf and JSON |
//! | `otlp_grpc` | the same over gRPC |
//! | `otlp/` | decodes OTLP bytes into the views of `classifier::telemetry` |
//! | `files` | log files and archives, which it reads from disk |
//! | `stdin` | lines of standard input |
//! | `server` | connections: accepts, limits and drains them |
//!
//! Invariants:
//! - No request is processed before it is authenticated and authorized.
//! - Every request goes through `IngestService::pass`, so that limits and counters are the same for all.
//! - A rejection is counted once: here if it happens before `submit`, by the pipeline if it happens later.
//! - Memory permits are acquired *before* bytes are buffered, never after.

pub mod envelopes;
pub mod files;
pub mod server;
pub mod stdin;

mod body;
mod content_headers;
mod grpc_frame;
mod http_response;
pub(crate) mod otlp;
mod otlp_grpc;
mod otlp_http;
mod record_consumer;

#[cfg(test)]
mod test_support;

use crate::pipeline::{BodyReader, Defaults, Encoding, IdempotencyKey, IngestResponse, Pipeline, Request};
use crate::{Limits, Rejection, RejectionReason, Source};
use auth::{Authenticator, Denial, Scope};
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The part of the pipeline that receivers use: their only access to it, which tests replace.
pub trait IngestPipeline: Clone + Send + Sync + 'static {
    /// Returns the limits in force.
    fn limits(&self) -> &Limits;

    /// Returns the semaphore that bounds the memory of all bodies; one permit stands for one KiB.
    fn room(&self) -> &Arc<Semaphore>;

    /// Stores the records of a request. When this returns `Ok`, they are durable.
    fn submit(&self, request: Request) -> impl Future<Output = Result<IngestResponse, Rejection>> + Send;

    /// Counts a request that was rejected before it was submitted.
    fn rejected(&self, source: Source, rejection: &Rejection);
}

impl IngestPipeline for Pipeline {
    fn limits(&self) -> &Limits {
        self.limits()
    }

    fn room(&self) -> &Arc<Semaphore> {
        self.body_permits()
    }

    async fn submit(&self, request: Request) -> Result<IngestResponse, Rejection> {
        self.submit(request).await
    }

    fn rejected(&self, source: Source, rejection: &Rejection) {
        self.record_rejection(source, rejection);
    }
}

/// The routes of the two ports that receive telemetry.
pub struct Routers {
    /// OTLP over HTTP, and envelopes: port 4318.
    pub http: Router,
    /// OTLP over gRPC: port 4317.
    pub grpc: Router,
}

/// Builds the receivers of one pipeline, for clients with the ingest scope. They share one limit on concurrent
/// requests.
pub fn routers(intake: impl IngestPipeline, authenticator: &Arc<Authenticator>) -> Routers {
    let service = IngestService::new(intake);
    let http = envelopes::routes().merge(otlp_http::routes()).fallback(otlp_http::unknown);
    let (of_http, of_grpc) = (service.clone(), service.clone());
    let http = auth::require_scope(
        http,
        authenticator,
        Scope::Ingest,
        move |denial: &Denial, request: &axum::extract::Request| otlp_http::denied(&of_http, denial, request),
    );
    let grpc = auth::require_scope(
        otlp_grpc::routes(),
        authenticator,
        Scope::Ingest,
        move |denial: &Denial, request: &axum::extract::Request| otlp_grpc::denied(&of_grpc, denial, request),
    );
    Routers { http: http.with_state(service.clone()), grpc: grpc.with_state(service) }
}

/// Returns the rejection for a client that authentication or authorization denied.
fn rejection_of(denial: &Denial) -> Rejection {
    let reason = match denial.reason {
        auth::DenialReason::CrossSite => RejectionReason::CrossSite,
        _ if denial.is_unauthenticated() => RejectionReason::Unauthenticated,
        _ => RejectionReason::Forbidden,
    };
    Rejection::new(reason, denial.to_string()).with_remedy(denial.remedy())
}

/// A request whose head was checked and whose body was not read yet.
struct RequestHead {
    source: Source,
    encoding: Encoding,
    read: BodyReader,
    defaults: Defaults,
    idempotency_key: Option<IdempotencyKey>,
    bounds: body::Bounds,
}

/// The service through which every request reaches the pipeline.
#[derive(Clone)]
struct IngestService<I> {
    intake: I,
    /// One permit for each request whose body may be read or that may wait for the pipeline.
    slots: Arc<Semaphore>,
}

impl<I: IngestPipeline> IngestService<I> {
    fn new(intake: I) -> Self {
        let slots = Arc::new(Semaphore::new(intake.limits().requests));
        Self { intake, slots }
    }

    fn limits(&self) -> &Limits {
        self.intake.limits()
    }

    /// Collects the body and submits it. The request has been counted when this returns, accepted or rejected.
    async fn pass(&self, request_head: RequestHead, body: Body) -> Result<IngestResponse, Rejection> {
        let source = request_head.source;
        let (_slot, request) = match self.admit(request_head, body).await {
            Ok(admitted) => admitted,
            Err(rejection) => return Err(self.reject(source, rejection)),
        };
        self.intake.submit(request).await
    }

    /// Counts a rejection that happens before `submit`, and returns it. All such rejections go through here.
    fn reject(&self, source: Source, rejection: Rejection) -> Rejection {
        self.intake.rejected(source, &rejection);
        rejection
    }

    async fn admit(
        &self,
        request_head: RequestHead,
        body: Body,
    ) -> Result<(OwnedSemaphorePermit, Request), Rejection> {
        let RequestHead { source, encoding, read, defaults, idempotency_key, bounds } = request_head;
        // This comes before the wait for a slot: a request that announces too large a body never takes one.
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
        Ok((
            slot,
            Request {
                source,
                body,
                encoding,
                read,
                defaults,
                idempotency_key,
                position: None,
                stream: None,
                permits: room,
            },
        ))
    }

    async fn slot(&self) -> Result<OwnedSemaphorePermit, Rejection> {
        let limits = self.limits();
        match timeout(limits.admission_wait, Arc::clone(&self.slots).acquire_owned()).await {
            Ok(Ok(slot)) => Ok(slot),
            _ => Err(Rejection::retryable(
                RejectionReason::Busy,
                "too many requests at once",
                limits.retry_after,
            )),
        }
    }
}

/// Counts a request whose sender disconnects while its body is read: the server then drops the handler, and nothing
/// else would count the request.
struct Unanswered<'a, I: IngestPipeline> {
    intake: &'a I,
    source: Source,
    armed: bool,
}

impl<I: IngestPipeline> Unanswered<'_, I> {
    fn answered(mut self) {
        self.armed = false;
    }
}

impl<I: IngestPipeline> Drop for Unanswered<'_, I> {
    fn drop(&mut self) {
        if self.armed {
            self.intake.rejected(self.source, &body::gone());
        }
    }
}

/// Converts bytes to a response body.
fn body_of(bytes: impl Into<Bytes>) -> Body {
    Body::from(bytes.into())
}
