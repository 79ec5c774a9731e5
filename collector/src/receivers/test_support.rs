//! A pipeline for tests: it returns a configured result, and records requests and rejections.

use crate::pipeline::{Defaults, Encoding, IngestResponse, Request};
use crate::receivers::{IngestPipeline, Routers, routers};
use crate::{Limits, Rejection, RejectionReason, Source};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};
use tower::Service;

#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) limits: Limits,
    pub(crate) room: Arc<Semaphore>,
    pub(crate) response: Result<IngestResponse, Rejection>,
    pub(crate) seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) submitted: Vec<Submitted>,
    pub(crate) rejected: Vec<(Source, RejectionReason)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Submitted {
    pub(crate) source: Source,
    pub(crate) body: Vec<u8>,
    pub(crate) encoding: Encoding,
    pub(crate) defaults: Defaults,
    pub(crate) key: Option<String>,
    pub(crate) room: usize,
}

impl Default for Fake {
    fn default() -> Self {
        Self::with(Limits::default())
    }
}

impl Fake {
    pub(crate) fn with(limits: Limits) -> Self {
        let room = Arc::new(Semaphore::new(limits.inflight_bytes >> 10));
        Self { limits, room, response: Ok(IngestResponse::default()), seen: Arc::default() }
    }

    pub(crate) fn responding_with(response: Result<IngestResponse, Rejection>) -> Self {
        Self { response, ..Self::default() }
    }

    pub(crate) fn routers(&self) -> Routers {
        routers(self.clone(), &Arc::new(auth::Authenticator::without_tokens(true)))
    }

    pub(crate) fn rejected(&self) -> Vec<(Source, RejectionReason)> {
        self.seen.lock().unwrap().rejected.clone()
    }

    pub(crate) fn submitted(&self) -> Vec<Submitted> {
        self.seen.lock().unwrap().submitted.clone()
    }
}

impl IngestPipeline for Fake {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn room(&self) -> &Arc<Semaphore> {
        &self.room
    }

    async fn submit(&self, request: Request) -> Result<IngestResponse, Rejection> {
        let Request { source, body, encoding, defaults, idempotency_key, permits: room, .. } = request;
        let key = idempotency_key.map(|key| key.key);
        let room = room.iter().map(tokio::sync::OwnedSemaphorePermit::num_permits).sum();
        let body = body.to_vec();
        self.seen.lock().unwrap().submitted.push(Submitted { source, body, encoding, defaults, key, room });
        self.response.clone()
    }

    fn rejected(&self, source: Source, rejection: &Rejection) {
        self.seen.lock().unwrap().rejected.push((source, rejection.reason));
    }
}

/// One step of a scripted body.
pub(crate) enum Step {
    Data(&'static [u8]),
    Wait(Duration),
    Fail,
    /// Fails the test: the body must not be read this far.
    Panic,
}

/// A body that follows a script.
pub(crate) struct Script {
    steps: VecDeque<Step>,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Script {
    pub(crate) fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), waiting: None }
    }
}

impl http_body::Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
            }
            match self.steps.pop_front() {
                None => return Poll::Ready(None),
                Some(Step::Data(data)) => {
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(data)))));
                }
                Some(Step::Wait(time)) => self.waiting = Some(Box::pin(sleep(time))),
                Some(Step::Fail) => return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
                Some(Step::Panic) => panic!("the body was read too far"),
            }
        }
    }
}

/// Sends one request to a router without a socket, and returns the response.
pub(crate) async fn call(mut router: axum::Router, request: http::Request<Body>) -> Response {
    router.call(request).await.unwrap()
}

/// Returns the whole body of a response.
pub(crate) async fn bytes(response: Response) -> Vec<u8> {
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

/// Returns the body of a response as JSON.
pub(crate) async fn json(response: Response) -> serde_json::Value {
    serde_json::from_slice(&bytes(response).await).unwrap()
}
