//! The gate before routes: nothing of a request is looked at before it was let in.

use crate::gate::{Denied, Gate};
use crate::scope::Scope;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use std::sync::Arc;

/// The routes, for those who have a token of a scope. `deny` answers the others.
pub fn guarded<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    gate: &Arc<Gate>,
    wanted: Scope,
    deny: impl Fn(&Denied, &Request) -> Response + Clone + Send + Sync + 'static,
) -> Router<S> {
    let gate = Arc::clone(gate);
    router.layer(from_fn(move |request: Request, next: Next| {
        let (gate, deny) = (Arc::clone(&gate), deny.clone());
        async move {
            let (head, body) = request.into_parts();
            let admitted = gate.admit_request(wanted, &head.uri, &head.headers).await;
            let request = Request::from_parts(head, body);
            match admitted {
                Ok(()) => next.run(request).await,
                Err(denied) => deny(&denied, &request),
            }
        }
    }))
}
