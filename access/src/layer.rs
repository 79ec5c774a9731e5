//! The gate before routes: nothing of a request is looked at before it was let in.

use crate::client::Client;
use crate::gate::{Denied, Gate};
use crate::origin;
use crate::revocation;
use crate::scope::Scope;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use std::sync::Arc;

/// Answers whoever is not let in.
pub trait Deny: Fn(&Denied, &Request) -> Response + Clone + Send + Sync + 'static {}

impl<D: Fn(&Denied, &Request) -> Response + Clone + Send + Sync + 'static> Deny for D {}

/// The routes, for those who have a token of a scope. `deny` answers the others.
///
/// What is being answered under the scope [`Scope::Query`] ends when the token of its client is revoked; what is sent
/// to us is finished, since it takes a bounded time and its sender would not know what became of it.
pub fn guarded<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    gate: &Arc<Gate>,
    wanted: Scope,
    deny: impl Deny,
) -> Router<S> {
    let gate = Arc::clone(gate);
    router.layer(from_fn(move |request: Request, next: Next| {
        let (gate, deny) = (Arc::clone(&gate), deny.clone());
        async move {
            let admit = async |request: Request| {
                let (mut head, body) = request.into_parts();
                match gate.admit_request(wanted, &head.uri, &head.headers).await {
                    Ok(client) => {
                        head.extensions.insert(client.clone());
                        run(client, wanted, Request::from_parts(head, body), next, &deny).await
                    }
                    Err(denied) => deny(&denied, &Request::from_parts(head, body)),
                }
            };
            screened(&gate, wanted, request, &deny, admit).await
        }
    }))
}

/// The routes, for everybody but pages of other origins.
pub fn open_to_all<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    gate: &Arc<Gate>,
    deny: impl Deny,
) -> Router<S> {
    let gate = Arc::clone(gate);
    router.layer(from_fn(move |request: Request, next: Next| {
        let (gate, deny) = (Arc::clone(&gate), deny.clone());
        async move {
            let admit = async |request: Request| next.run(request).await;
            screened(&gate, Scope::Query, request, &deny, admit).await
        }
    }))
}

/// Keeps pages of other origins out, and lets those of listed ones read the response.
async fn screened(
    gate: &Gate,
    wanted: Scope,
    request: Request,
    deny: &impl Deny,
    admit: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let (head, body) = request.into_parts();
    let listed = match gate.screen(wanted, &head) {
        Ok(listed) => listed,
        Err(denied) => return deny(&denied, &Request::from_parts(head, body)),
    };
    let mut response = match &listed {
        Some(_) if origin::is_preflight(&head) => origin::preflight(&head),
        _ => admit(Request::from_parts(head, body)).await,
    };
    if let Some(listed) = listed {
        origin::share(&mut response, listed);
    }
    response
}

/// Answers a request for as long as its client may be here.
async fn run(client: Client, wanted: Scope, request: Request, next: Next, deny: &impl Deny) -> Response {
    if client.token_name().is_none() || wanted == Scope::Ingest {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let asked = Request::from_parts(head.clone(), Body::empty());
    tokio::select! {
        response = next.run(Request::from_parts(head, body)) => revocation::watch(response, client),
        denied = client.revoked() => deny(&denied, &asked),
    }
}
