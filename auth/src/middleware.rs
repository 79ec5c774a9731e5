//! Middleware that authenticates requests: no handler sees a request before it is accepted.

use crate::authenticator::Authenticator;
use crate::client::Client;
use crate::denial::Denial;
use crate::origin;
use crate::revocation;
use crate::scope::Scope;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use std::sync::Arc;

/// Creates the response to a denied request.
pub trait DenialHandler: Fn(&Denial, &Request) -> Response + Clone + Send + Sync + 'static {}

impl<D: Fn(&Denial, &Request) -> Response + Clone + Send + Sync + 'static> DenialHandler for D {}

/// Requires a token with a scope for these routes; `deny` creates the response to denied requests.
///
/// A response under [`Scope::Query`] ends when the token of its client is revoked. A request under [`Scope::Ingest`]
/// runs to its end, since it takes a bounded time and the sender would otherwise not know whether its data was stored.
pub fn require_scope<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    authenticator: &Arc<Authenticator>,
    scope: Scope,
    deny: impl DenialHandler,
) -> Router<S> {
    authenticated(router, authenticator, scope, false, deny)
}

/// Requires a token with a scope, or the cookie of a browser that has signed in with one.
pub fn require_scope_or_session<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    authenticator: &Arc<Authenticator>,
    scope: Scope,
    deny: impl DenialHandler,
) -> Router<S> {
    authenticated(router, authenticator, scope, true, deny)
}

fn authenticated<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    authenticator: &Arc<Authenticator>,
    scope: Scope,
    accepts_sessions: bool,
    deny: impl DenialHandler,
) -> Router<S> {
    let authenticator = Arc::clone(authenticator);
    router.layer(from_fn(move |request: Request, next: Next| {
        let (authenticator, deny) = (Arc::clone(&authenticator), deny.clone());
        async move {
            let authenticate = async |request: Request| {
                let (mut head, body) = request.into_parts();
                let client = if accepts_sessions {
                    authenticator.authenticate_browser_request(scope, &head).await
                } else {
                    authenticator.authenticate_request(scope, &head.uri, &head.headers).await
                };
                match client {
                    Ok(client) => {
                        head.extensions.insert(client.clone());
                        run_until_revoked(client, scope, Request::from_parts(head, body), next, &deny).await
                    }
                    Err(denial) => deny(&denial, &Request::from_parts(head, body)),
                }
            };
            check_origin(&authenticator, scope, request, &deny, authenticate).await
        }
    }))
}

/// Allows anonymous requests to these routes, except requests from pages of other origins.
pub fn allow_anonymous<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    authenticator: &Arc<Authenticator>,
    deny: impl DenialHandler,
) -> Router<S> {
    let authenticator = Arc::clone(authenticator);
    router.layer(from_fn(move |request: Request, next: Next| {
        let (authenticator, deny) = (Arc::clone(&authenticator), deny.clone());
        async move {
            let run = async |request: Request| next.run(request).await;
            check_origin(&authenticator, Scope::Query, request, &deny, run).await
        }
    }))
}

/// Denies requests from pages of foreign origins, answers preflights of allowed origins, and lets their pages read the
/// response.
async fn check_origin(
    authenticator: &Authenticator,
    scope: Scope,
    request: Request,
    deny: &impl DenialHandler,
    run: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let (head, body) = request.into_parts();
    let allowed_origin = match authenticator.check_origin(scope, &head) {
        Ok(allowed_origin) => allowed_origin,
        Err(denial) => return deny(&denial, &Request::from_parts(head, body)),
    };
    let mut response = match &allowed_origin {
        Some(_) if origin::is_preflight(&head) => origin::preflight_response(&head),
        _ => run(Request::from_parts(head, body)).await,
    };
    if let Some(allowed_origin) = allowed_origin {
        origin::add_cors_headers(&mut response, allowed_origin);
    }
    response
}

/// Runs a request, and ends it when the token of its client is revoked.
async fn run_until_revoked(
    client: Client,
    scope: Scope,
    request: Request,
    next: Next,
    deny: &impl DenialHandler,
) -> Response {
    if client.token_name().is_none() || scope == Scope::Ingest {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let request_head = Request::from_parts(head.clone(), Body::empty());
    tokio::select! {
        response = next.run(Request::from_parts(head, body)) => revocation::end_on_revocation(response, client),
        denial = client.revoked() => deny(&denial, &request_head),
    }
}
