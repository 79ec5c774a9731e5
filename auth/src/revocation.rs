//! Responses that end when the token of their client is revoked.
//!
//! Invariant: a truncated response does not look complete. An event stream ends with an event that states the reason, a
//! gRPC stream with its status, and any other response with an error, which breaks the connection.

use crate::client::Client;
use crate::denial::Denial;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The gRPC status UNAUTHENTICATED.
const GRPC_UNAUTHENTICATED: HeaderValue = HeaderValue::from_static("16");

/// The format of a response body, which determines how the body can report that it ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyFormat {
    EventStream,
    Grpc,
    Other,
}

impl BodyFormat {
    fn from_headers(headers: &HeaderMap) -> Self {
        let content_type =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if content_type.starts_with("text/event-stream") {
            Self::EventStream
        } else if content_type.starts_with("application/grpc") {
            Self::Grpc
        } else {
            Self::Other
        }
    }

    fn last_frame(self, denial: &Denial) -> Result<Frame<Bytes>, axum::Error> {
        match self {
            Self::EventStream => {
                // No denial message has a character that JSON would escape.
                let reason = format!("the token was revoked: {denial}");
                Ok(Frame::data(format!("event: end\ndata: {{\"reason\":\"{reason}\"}}\n\n").into()))
            }
            Self::Grpc => {
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", GRPC_UNAUTHENTICATED);
                let message = HeaderValue::try_from(denial.to_string());
                message.map(|message| trailers.insert("grpc-message", message)).ok();
                Ok(Frame::trailers(trailers))
            }
            Self::Other => Err(axum::Error::new(*denial)),
        }
    }
}

/// Makes a response end when the token of its client is revoked.
pub(crate) fn end_on_revocation(response: Response, client: Client) -> Response {
    let format = BodyFormat::from_headers(response.headers());
    // An empty body cannot be truncated.
    if response.body().size_hint().exact().is_some_and(|bytes| bytes == 0) {
        return response;
    }
    response.map(|body| {
        let revoked = Box::pin(async move { client.revoked().await });
        Body::new(RevocableBody { body, revoked, format, has_ended: false })
    })
}

/// A response body that ends when a token is revoked.
struct RevocableBody {
    body: Body,
    revoked: Pin<Box<dyn Future<Output = Denial> + Send>>,
    format: BodyFormat,
    has_ended: bool,
}

impl HttpBody for RevocableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(denial) = self.revoked.as_mut().poll(context) {
            self.has_ended = true;
            return Poll::Ready(Some(self.format.last_frame(&denial)));
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
