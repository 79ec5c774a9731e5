//! Live events: `GET /api/v1/tail`, as server-sent events.
//!
//! Parameters: `category`, `service` and `code` (each may be repeated; a code may end with `*`), `where` (a condition
//! in SQL over the columns of `events`) and `recent` (the number of stored events to send first, the newest ones). Each
//! event is one JSON object, as `faultline dump` prints it, under an id that marks its position: a client that
//! reconnects with it in `Last-Event-ID` continues there.
//!
//! Invariants:
//! - No event is missed silently. An event `gap` reports events that left the buffer before they were sent.
//! - A client that does not read costs a bounded amount of memory for a bounded time, and then gets the reason why the
//!   tail ended.
//! - Ingest is not slowed down: the buffer is polled on the threads of queries.

mod filter;
mod follow;
mod message;
mod recent;
mod request;

use super::http::{error_response, wrong_method};
use crate::error::{QueryError, QueryErrorKind};
use crate::stats::Endpoint;
use crate::worker::QueryService;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use classifier::Rules;
use filter::Conditions;
use follow::Follower;
use futures_util::Stream;
use request::TailRequest;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::sync::{Semaphore, mpsc, watch};

/// The maximum number of concurrent tails.
const MAX_TAILS: usize = 32;
/// The number of messages that are queued for a client; each contains a few events, or one large one.
const QUEUED_MESSAGES: usize = 16;

/// The request header with the position of the last event that the client received.
const LAST_EVENT_ID: &str = "last-event-id";

#[derive(Debug, Clone)]
struct TailEndpoint {
    service: QueryService,
    conditions: Conditions,
    slots: Arc<Semaphore>,
    /// Becomes true when the server stops.
    stopping: watch::Receiver<bool>,
}

/// Returns the routes. Tails end when `stopping` becomes true, because they would never end by themselves.
///
/// # Errors
/// Fails when the functions of conditions cannot be set up.
pub fn routes(
    service: QueryService,
    rules: &Arc<Rules>,
    stopping: watch::Receiver<bool>,
) -> Result<Router, QueryError> {
    let conditions = Conditions::new(rules)?;
    let slots = Arc::new(Semaphore::new(MAX_TAILS));
    Ok(Router::new()
        .route("/api/v1/tail", get(tail))
        .method_not_allowed_fallback(async |method: Method| wrong_method(&method, "GET"))
        .with_state(TailEndpoint { service, conditions, slots, stopping }))
}

async fn tail(
    State(endpoint): State<TailEndpoint>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    match endpoint.follow(query.as_deref().unwrap_or_default(), &headers).await {
        Ok(events) => events.into_response(),
        Err(error) => error_response(&error),
    }
}

impl TailEndpoint {
    async fn follow(self, query: &str, headers: &HeaderMap) -> Result<Events, QueryError> {
        let request = TailRequest::read(query, headers.get(LAST_EVENT_ID))?;
        let (request, filter) = self.conditions.filter(request).await?;
        let slot = self.slots.try_acquire_owned().map_err(|_| {
            QueryError::new(QueryErrorKind::Busy, format!("{MAX_TAILS} tails are open"))
                .hint("close one, or try again later")
        })?;
        let (sender, messages) = mpsc::channel(QUEUED_MESSAGES);
        let ending = Arc::new(OnceLock::new());
        let mut follower = Follower::new(&self.service, filter, request.after, sender, Arc::clone(&ending))?;
        if request.recent > 0 && request.after.is_none() {
            follower.prepend_recent(recent::newest(&request, &self.service.session(Endpoint::Tail)).await?);
        }
        let stopping = self.stopping;
        self.service.spawn(async move {
            follower.run(stopping).await;
            drop(slot);
        });
        Ok(Events { messages, ending, ended: false })
    }
}

/// The body of a response. Dropping it, as happens when the client disconnects, ends the tail.
struct Events {
    messages: mpsc::Receiver<String>,
    /// The reason why the tail ended, which follows all queued messages.
    ending: Arc<OnceLock<&'static str>>,
    ended: bool,
}

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.messages.poll_recv(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(message)) => Poll::Ready(Some(Ok(message.into()))),
            Poll::Ready(None) if self.ended => Poll::Ready(None),
            Poll::Ready(None) => {
                self.ended = true;
                let last = self.ending.get().map(|reason| Ok(message::end(reason).into()));
                Poll::Ready(last)
            }
        }
    }
}

impl IntoResponse for Events {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from_stream(self));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Without this header, proxies buffer the events.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}
