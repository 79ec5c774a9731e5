//! Live events: `GET /api/v1/tail`, as server-sent events.
//!
//! Parameters: `category`, `service` and `code` (each may be repeated; a code may end with `*`), `where` (a condition
//! in SQL over the columns of `events`) and `recent` (so many of the newest events first). Each event is one JSON
//! object, as `faultline dump` prints it, under an id that says how far its reader has come: whoever comes back with it
//! in `Last-Event-ID` goes on there.
//!
//! What must always hold:
//! - Nothing is missed in silence. What had to go before it was looked at is told by an event `gap`.
//! - A reader who does not read costs a bounded amount of memory for a bounded time, and is told why he is dropped.
//! - Ingest pays nothing: the buffer is looked at from here, on the threads of queries.

mod asked;
mod filter;
mod follow;
mod message;
mod recent;

use super::http::failed;
use crate::error::{Kind, QueryError};
use crate::stats::Via;
use crate::worker::QueryService;
use asked::Asked;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use filter::Conditions;
use follow::Follower;
use futures_util::Stream;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use taxonomy::Rules;
use tokio::sync::{Semaphore, mpsc, watch};

/// Tails at once.
const TAILS: usize = 32;
/// Messages that wait for a reader; each is a few events, or one large one.
const WAITING: usize = 16;

/// Where a reader says how far he had come.
const LAST_EVENT_ID: &str = "last-event-id";

#[derive(Debug, Clone)]
struct Door {
    service: QueryService,
    conditions: Conditions,
    places: Arc<Semaphore>,
    /// Turns true when the server is to stop.
    stopping: watch::Receiver<bool>,
}

/// The routes. Tails end when `stopping` turns true: otherwise nobody could.
///
/// # Errors
/// When the functions of conditions cannot be set up.
pub fn routes(
    service: QueryService,
    rules: &Arc<Rules>,
    stopping: watch::Receiver<bool>,
) -> Result<Router, QueryError> {
    let conditions = Conditions::new(rules)?;
    let places = Arc::new(Semaphore::new(TAILS));
    Ok(Router::new()
        .route("/api/v1/tail", get(tail))
        .method_not_allowed_fallback(async || {
            failed(&QueryError::new(Kind::Invalid, "only GET is answered here").hint("GET the events"))
        })
        .with_state(Door { service, conditions, places, stopping }))
}

async fn tail(State(door): State<Door>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    match door.follow(query.as_deref().unwrap_or_default(), &headers).await {
        Ok(events) => events.into_response(),
        Err(error) => failed(&error),
    }
}

impl Door {
    async fn follow(self, query: &str, headers: &HeaderMap) -> Result<Events, QueryError> {
        let asked = Asked::read(query, headers.get(LAST_EVENT_ID))?;
        let (asked, filter) = self.conditions.filter(asked).await?;
        let place = self.places.try_acquire_owned().map_err(|_| {
            QueryError::new(Kind::Busy, format!("{TAILS} tails are open"))
                .hint("close one, or try again later")
        })?;
        let (sender, messages) = mpsc::channel(WAITING);
        let ending = Arc::new(OnceLock::new());
        let mut follower = Follower::new(&self.service, filter, asked.after, sender, Arc::clone(&ending))?;
        if asked.recent > 0 && asked.after.is_none() {
            follower.begin_with(recent::newest(&asked, &self.service.session(Via::Tail)).await?);
        }
        let stopping = self.stopping;
        self.service.spawn(async move {
            follower.run(stopping).await;
            drop(place);
        });
        Ok(Events { messages, ending, ended: false })
    }
}

/// The body of an answer. Dropping it, as happens when the reader goes, ends the tail.
struct Events {
    messages: mpsc::Receiver<String>,
    /// Why there are no more; told after everything that waits.
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
        // Proxies would wait for more.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}
