//! The web listener, put together from what `collector` and `query` offer.

use super::runbook;
use crate::opened::Opened;
use access::{Denied, Gate, Scope};
use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use collector::metrics::{self, Exporter, Queries, QueriesOfDoor};
use collector::receive::server::Connections;
use collector::web;
use query::{BOUNDS_MS, Engine, Via};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::watch;

/// All routes. Tails end when `stopping` turns true.
pub(super) fn routes(
    store: &Opened,
    engine: &Engine,
    gate: &Arc<Gate>,
    connections: &Arc<Connections>,
    stopping: watch::Receiver<bool>,
) -> anyhow::Result<Router> {
    let (pipeline, keeper) = (store.pipeline.clone(), store.keeper.clone());
    let status = web::routes(pipeline.clone(), Arc::clone(connections), keeper.clone(), store.replay.clone());
    let queries = queries(engine.clone());
    let probes = web::probes(pipeline.clone());
    let exporter =
        Exporter::new(pipeline, Arc::clone(connections), keeper, store.log_limit, Arc::clone(gate), queries)?;
    let routes = status
        .merge(metrics::routes(exporter)?)
        .merge(runbook::routes())
        .merge(query::serve::http::routes(engine.clone()))
        .merge(query::serve::tail::routes(engine.clone(), stopping));
    // Probes have no token, and tell nothing else.
    Ok(access::guarded(routes, gate, Scope::Query, |denied, _| refused(denied)).merge(probes))
}

fn refused(denied: &Denied) -> Response {
    let (status, code, remedy) = match denied.is_unauthenticated() {
        true => (
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "send Authorization: Bearer with a token of the scope query",
        ),
        false => (
            StatusCode::FORBIDDEN,
            "forbidden",
            "use a token of the scope query, and name this server by its address or as localhost",
        ),
    };
    let body = json!({"error": {"code": code, "message": denied.to_string(), "remedy": remedy}});
    let mut response =
        (status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// What queries did so far, in the words of the metrics.
fn queries(engine: Engine) -> Box<dyn Fn() -> Queries + Send + Sync> {
    let of_door = move |engine: &Engine, via: Via| {
        let stats = engine.stats(via);
        QueriesOfDoor {
            door: via.as_str(),
            answered: stats.answered,
            failed: stats.failed,
            stopped: stats.stopped,
            time: stats.time,
            within: BOUNDS_MS.into_iter().zip(stats.within).collect(),
        }
    };
    Box::new(move || Queries {
        running: engine.running() as u64,
        doors: Via::ALL.into_iter().map(|via| of_door(&engine, via)).collect(),
    })
}
