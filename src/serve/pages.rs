//! The web listener, put together from what `collector` and `query` offer.

use super::runbook;
use crate::opened::Opened;
use access::tls::Tls;
use access::{Denied, Gate, Reason, Scope};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use collector::metrics::{self, Doors, Exporter, Queries, QueriesOfDoor};
use collector::receive::server::{Connections, Routes};
use collector::web;
use query::{BOUNDS_MS, QueryService, Via};
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
    service: &QueryService,
    watched: &Watched<'_>,
    stopping: watch::Receiver<bool>,
) -> anyhow::Result<Routes> {
    let Watched { gate, connections, tls } = watched;
    let (pipeline, keeper) = (store.pipeline.clone(), store.keeper.clone());
    let status = web::routes(pipeline.clone(), Arc::clone(connections), keeper.clone(), store.replay.clone());
    let queries = queries(service.clone());
    let probes = web::probes(pipeline.clone(), keeper.clone());
    let reserve = web::reserved_probes(pipeline.clone(), keeper.clone());
    let doors =
        Doors { gate: Arc::clone(gate), connections: Arc::clone(connections), tls: tls.cloned(), queries };
    let exporter = Exporter::new(pipeline, keeper, store.log_limit, doors)?;
    let routes = status
        .merge(metrics::routes(exporter)?)
        .merge(runbook::routes())
        .merge(query::serve::http::routes(service.clone()))
        .merge(query::serve::tail::routes(service.clone(), &store.rules, stopping)?);
    // Probes have no token, and tell nothing else.
    let deny = |denied: &Denied, _: &Request| refused(denied);
    let routes = access::guarded(routes, gate, Scope::Query, deny);
    let [probes, reserve] = [probes, reserve].map(|probes| access::open_to_all(probes, gate, deny));
    Ok(Routes { all: routes.merge(probes), probes: Some(reserve) })
}

fn refused(denied: &Denied) -> Response {
    let (status, code) = match denied.reason {
        Reason::CrossSite => (StatusCode::FORBIDDEN, "cross_site"),
        _ if denied.is_unauthenticated() => (StatusCode::UNAUTHORIZED, "unauthenticated"),
        _ => (StatusCode::FORBIDDEN, "forbidden"),
    };
    let body = json!({"error": {"code": code, "message": denied.to_string(), "remedy": denied.remedy()}});
    let mut response =
        (status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// What queries did so far, in the words of the metrics.
fn queries(service: QueryService) -> Box<dyn Fn() -> Queries + Send + Sync> {
    let of_door = move |service: &QueryService, via: Via| {
        let stats = service.stats(via);
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
        running: service.running() as u64,
        doors: Via::ALL.into_iter().map(|via| of_door(&service, via)).collect(),
    })
}
