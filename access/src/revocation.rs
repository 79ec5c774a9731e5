//! Responses that end when the token of their client is revoked.
//!
//! What always holds: a response that was cut does not look whole. A stream of events ends with an event that says why, a
//! gRPC stream with its status, and any other response with an error, which breaks the connection.

use crate::client::Client;
use crate::gate::Denied;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The status UNAUTHENTICATED of gRPC.
const UNAUTHENTICATED: HeaderValue = HeaderValue::from_static("16");

/// How a response says that it ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Events,
    Grpc,
    Other,
}

impl Form {
    fn of(headers: &HeaderMap) -> Self {
        let media =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if media.starts_with("text/event-stream") {
            Self::Events
        } else if media.starts_with("application/grpc") {
            Self::Grpc
        } else {
            Self::Other
        }
    }

    fn last_frame(self, denied: &Denied) -> Result<Frame<Bytes>, axum::Error> {
        match self {
            Self::Events => {
                // None of the sentences has anything that JSON would escape.
                let reason = format!("the token was revoked: {denied}");
                Ok(Frame::data(format!("event: end\ndata: {{\"reason\":\"{reason}\"}}\n\n").into()))
            }
            Self::Grpc => {
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", UNAUTHENTICATED);
                let message = HeaderValue::try_from(denied.to_string());
                message.map(|message| trailers.insert("grpc-message", message)).ok();
                Ok(Frame::trailers(trailers))
            }
            Self::Other => Err(axum::Error::new(*denied)),
        }
    }
}

/// A response that ends when the token of its client is revoked.
pub(crate) fn watch(response: Response, client: Client) -> Response {
    let form = Form::of(response.headers());
    // Most are short, and known to be.
    if response.body().size_hint().exact().is_some_and(|bytes| bytes == 0) {
        return response;
    }
    response.map(|body| {
        let revoked = Box::pin(async move { client.revoked().await });
        Body::new(Watched { body, revoked, form, has_ended: false })
    })
}

struct Watched {
    body: Body,
    revoked: Pin<Box<dyn Future<Output = Denied> + Send>>,
    form: Form,
    has_ended: bool,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(denied) = self.revoked.as_mut().poll(context) {
            self.has_ended = true;
            return Poll::Ready(Some(self.form.last_frame(&denied)));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
