//! The web listener, put together from what `collector` and `query` offer.

use super::runbook;
use crate::opened::Opened;
use axum::Router;
use collector::metrics::{self, Exporter, Queries, QueriesOfDoor};
use collector::receive::server::Connections;
use collector::web;
use query::serve::gate::SharedGate;
use query::{BOUNDS_MS, Engine, Via};
use std::sync::Arc;
use tokio::sync::watch;

/// All routes. Tails end when `stopping` turns true.
pub(super) fn routes(
    store: &Opened,
    engine: &Engine,
    gate: &SharedGate,
    connections: &Arc<Connections>,
    stopping: watch::Receiver<bool>,
) -> anyhow::Result<Router> {
    let (pipeline, keeper) = (store.pipeline.clone(), store.keeper.clone());
    let status = web::routes(pipeline.clone(), Arc::clone(connections), keeper.clone(), store.replay.clone());
    let queries = queries(engine.clone());
    let exporter = Exporter::new(pipeline, Arc::clone(connections), keeper, store.log_limit, queries)?;
    Ok(status
        .merge(metrics::routes(exporter)?)
        .merge(runbook::routes())
        .merge(query::serve::http::routes(engine.clone(), Arc::clone(gate)))
        .merge(query::serve::tail::routes(engine.clone(), Arc::clone(gate), stopping)))
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
