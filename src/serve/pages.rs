//! The web listener, put together from what `collector` and `query` offer.

use super::runbook;
use crate::opened::Opened;
use access::tls::Tls;
use access::{Denied, Gate, Scope};
use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use collector::metrics::{self, Doors, Exporter, Queries, QueriesOfDoor};
use collector::receive::server::Connections;
use collector::web;
use query::{BOUNDS_MS, Engine, Via};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::watch;

/// What stands before the routes, and is watched by some of them.
pub(super) struct Watched<'w> {
    pub(super) gate: &'w Arc<Gate>,
    pub(super) connections: &'w Arc<Connections>,
    pub(super) tls: Option<&'w Arc<Tls>>,
}

/// All routes. Tails end when `stopping` turns true.
pub(super) fn routes(
    store: &Opened,
    engine: &Engine,
    watched: &Watched<'_>,
    stopping: watch::Receiver<bool>,
) -> anyhow::Result<Router> {
    let Watched { gate, connections, tls } = watched;
    let (pipeline, keeper) = (store.pipeline.clone(), store.keeper.clone());
    let status = web::routes(pipeline.clone(), Arc::clone(connections), keeper.clone(), store.replay.clone());
    let queries = queries(engine.clone());
    let probes = web::probes(pipeline.clone());
    let doors =
        Doors { gate: Arc::clone(gate), connections: Arc::clone(connections), tls: tls.cloned(), queries };
    let exporter = Exporter::new(pipeline, keeper, store.log_limit, doors)?;
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
