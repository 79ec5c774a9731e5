//! `/api/v1/session`: signing in and out of the web page.
//!
//! A user who signs in has no session yet, so these routes need no token. Beyond the version and whether tokens are
//! required, they reveal nothing unless the request contains a valid token or cookie.

use super::web::rejection;
use auth::browser_session::removal_cookie;
use auth::{Authenticator, Scope, SignInError, SignedIn};
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use std::sync::Arc;

/// The maximum size of a request body. A token is much shorter.
const MAX_BODY_BYTES: usize = 4 << 10;

#[derive(Debug, Clone)]
struct SignIn {
    authenticator: Arc<Authenticator>,
    /// True if the listener has TLS.
    is_encrypted: bool,
}

/// Returns the routes.
pub(super) fn routes(authenticator: &Arc<Authenticator>, is_encrypted: bool) -> Router {
    Router::new()
        .route("/api/v1/session", get(show).post(sign_in).delete(sign_out))
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(SignIn { authenticator: Arc::clone(authenticator), is_encrypted })
}

async fn show(State(state): State<SignIn>, headers: HeaderMap) -> Response {
    json_response(StatusCode::OK, &state.describe(state.authenticator.signed_in(&headers)))
}

async fn sign_in(State(state): State<SignIn>, head: Parts, body: Result<Bytes, BytesRejection>) -> Response {
    let token = body.ok().as_deref().and_then(token);
    let Some(token) = token else {
        return error_response(
            StatusCode::BAD_REQUEST,
            "invalid",
            "The request body has no token.",
            r#"Send {"token": "..."} as JSON."#,
        );
    };
    match state.authenticator.sign_in(&head, &token).await {
        Ok(Some((session, signed_in))) => {
            let mut response = json_response(StatusCode::OK, &state.describe(Some(signed_in)));
            set_cookie(&mut response, &session.cookie(state.is_encrypted(&head.headers)));
            response
        }
        Ok(None) => json_response(StatusCode::OK, &state.describe(None)),
        Err(SignInError::Denied(denial)) => rejection(&denial),
        Err(SignInError::NoRandomness(error)) => error_response(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            &format!("The system has no random numbers: {error}."),
            "Try again.",
        ),
    }
}

async fn sign_out(State(state): State<SignIn>, head: Parts) -> Response {
    if let Err(denial) = state.authenticator.sign_out(&head) {
        return rejection(&denial);
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&mut response, &removal_cookie(state.is_encrypted(&head.headers)));
    response
}

/// Returns the token in a body, if the body is `{"token": "..."}`.
fn token(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let token = body.as_object().filter(|body| body.len() == 1)?.get("token")?.as_str()?;
    (!token.is_empty()).then(|| token.to_owned())
}

impl SignIn {
    /// Returns true if the browser uses TLS, so that it should send the cookie over TLS only. If a proxy adds TLS, only the
    /// origin of the page tells.
    fn is_encrypted(&self, headers: &HeaderMap) -> bool {
        let origin = headers.get(header::ORIGIN).map(HeaderValue::as_bytes).unwrap_or_default();
        self.is_encrypted || origin.starts_with(b"https://")
    }

    fn describe(&self, signed_in: Option<SignedIn>) -> Value {
        let required = self.authenticator.requires_token();
        let is_signed_in = signed_in.is_some();
        let (name, scopes, csrf) = match signed_in {
            Some(SignedIn { name, scopes, csrf }) => (Some(name), scopes, csrf),
            // If no tokens are required, every client has all permissions.
            None if !required => (None, Scope::ALL.to_vec(), None),
            None => (None, Vec::new(), None),
        };
        json!({
            "required": required,
            "signed_in": is_signed_in,
            "name": name,
            "scopes": scopes.into_iter().map(Scope::as_str).collect::<Vec<_>>(),
            "csrf": csrf,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}

async fn wrong_method(method: Method) -> Response {
    if method == Method::OPTIONS {
        return (StatusCode::NO_CONTENT, [(header::ALLOW, "GET, HEAD, POST, DELETE, OPTIONS")])
            .into_response();
    }
    error_response(
        StatusCode::METHOD_NOT_ALLOWED,
        "wrong_method",
        &format!("Only GET, POST and DELETE are answered here, not {method}."),
        "POST a token to sign in, DELETE to sign out.",
    )
}

fn set_cookie(response: &mut Response, cookie: &str) {
    if let Ok(value) = HeaderValue::try_from(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
}

fn error_response(status: StatusCode, code: &str, message: &str, remedy: &str) -> Response {
    json_response(status, &json!({"error": {"code": code, "message": message, "remedy": remedy}}))
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, format!("{body}\n")).into_response()
}
