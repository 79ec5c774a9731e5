//! Responses over plain HTTP, and the headers that rejections of all receivers have in common.

use crate::receivers::body_of;
use crate::{Rejection, RejectionReason};
use axum::response::Response;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

/// Builds a response with a status, a content type and a body.
pub(crate) fn reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(body_of(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Builds the response to a rejection: its status, and the `Retry-After`, `WWW-Authenticate` or `Allow` header it
/// needs.
pub(crate) fn rejected(
    rejection: &Rejection,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response {
    let status = StatusCode::from_u16(rejection.reason.http_status());
    let mut response = reply(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), content_type, body);
    if let Some(seconds) = retry_seconds(rejection) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if rejection.reason == RejectionReason::Unauthenticated {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if rejection.reason == RejectionReason::WrongMethod {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

/// Returns the value of `Retry-After` in whole seconds: rounded up, and at least 1, because 0 would cause a busy loop.
fn retry_seconds(rejection: &Rejection) -> Option<u64> {
    let after = rejection.retry_after?;
    Some(after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0)).max(1))
}
