//! Health and status endpoints, for probes and for people: a part of the HTTP listener on port 7070.
//!
//! `/healthz` reports that the process runs; `/readyz`, that a request would be accepted now; `/api/v1/status` shows
//! every counter of the server, from the same list as `/metrics`, so that everything that was rejected or dropped is
//! visible.

use crate::counters::SourceCounters;
use crate::metrics::{Capture, REPLY_NOT_CAPTURED, ServerMetrics};
use crate::pipeline::Pipeline;
use crate::rejection::RejectionReason;
use crate::source::Source;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::Table;
use store::maintenance::Maintenance;
use store::wal::Replay;

/// The state that the routes read.
#[derive(Clone)]
struct StatusState {
    pipeline: Pipeline,
    maintenance: Maintenance,
    metrics: Arc<ServerMetrics>,
    replay: Arc<Replay>,
}

/// Returns the routes of the probes, which need no token.
pub fn probes(pipeline: Pipeline, maintenance: Maintenance) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .method_not_allowed_fallback(wrong_method)
        .with_state((pipeline, maintenance))
}

async fn wrong_method() -> Response {
    error_response(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", "only GET is answered here", "use GET")
}

/// Returns the routes for reserved connections, which answer probes only.
pub fn reserved_probes(pipeline: Pipeline, maintenance: Maintenance) -> Router {
    probes(pipeline, maintenance).fallback(async || {
        error_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "too_many_connections",
            "all connections of this listener, or of this address, are taken; the last ones answer /healthz and /readyz",
            "close connections that are not used, or raise --limit-connections or --limit-connections-per-address",
        )
    })
}

/// Returns the routes that are not probes.
pub fn routes(
    pipeline: Pipeline,
    maintenance: Maintenance,
    metrics: Arc<ServerMetrics>,
    replay: Replay,
) -> Router {
    Router::new()
        .route("/api/v1/status", get(status))
        .fallback(async || {
            error_response(
                StatusCode::NOT_FOUND,
                "not_found",
                "no such path",
                "use /, /healthz, /readyz, /metrics, /runbook, or one of the paths in /api/v1/openapi.json",
            )
        })
        .method_not_allowed_fallback(wrong_method)
        .with_state(StatusState { pipeline, maintenance, metrics, replay: Arc::new(replay) })
}

/// The reason for which the collector is not ready.
struct NotReady {
    reason: &'static str,
    message: String,
    remedy: &'static str,
}

impl NotReady {
    fn check(pipeline: &Pipeline, maintenance: &Maintenance) -> Option<Self> {
        let rejection = pipeline.readiness_error().map(|rejection| Self {
            reason: rejection.reason.as_str(),
            message: rejection.detail,
            remedy: rejection.reason.remedy(),
        });
        rejection.or_else(|| {
            maintenance.damage().map(|message| Self {
                reason: "tables_damaged",
                message,
                remedy: "mend what the message names; no restart is needed, and what is sent meanwhile is kept in the log",
            })
        })
    }
}

/// Reports whether requests are accepted and all stored data can be queried.
pub(crate) fn is_ready(pipeline: &Pipeline, maintenance: &Maintenance) -> bool {
    NotReady::check(pipeline, maintenance).is_none()
}

async fn ready(State((pipeline, maintenance)): State<(Pipeline, Maintenance)>) -> Response {
    match NotReady::check(&pipeline, &maintenance) {
        None => json_response(StatusCode::OK, &json!({"ready": true})),
        Some(NotReady { reason, message, remedy }) => json_response(
            StatusCode::SERVICE_UNAVAILABLE,
            &json!({"ready": false, "reason": reason, "message": message, "remedy": remedy}),
        ),
    }
}

/// Returns the ingest summary of the web page: counters since the server was started, and the sizes of stored data.
pub fn ingest_summary(pipeline: &Pipeline, maintenance: &Maintenance) -> Value {
    let not_ready = NotReady::check(pipeline, maintenance);
    let (stats, wal, counters) = (maintenance.stats(), pipeline.wal_stats(), pipeline.counters());
    let problem = not_ready.as_ref().map(|problem| format!("{}: {}", problem.message, problem.remedy));
    let problem = problem.or(wal.last_error.filter(|_| wal.failing));
    let problem = problem.or_else(|| stats.last_error.clone().filter(|_| stats.is_flush_failing));
    let sum = |count: fn(&SourceCounters) -> u64| -> u64 {
        Source::ALL.into_iter().map(|source| count(counters.of(source))).sum()
    };
    let mut rejected_requests = Map::new();
    for (index, reason) in RejectionReason::ALL.into_iter().enumerate() {
        let of_source = |source| counters.of(source).rejected_requests[index].get();
        let count: u64 = Source::ALL.into_iter().map(of_source).sum();
        if count > 0 {
            rejected_requests.insert(reason.as_str().to_owned(), count.into());
        }
    }
    let stored_events = stats.tables.as_ref().and_then(|tables| {
        let sizes = Table::ALL.into_iter().zip(tables.iter());
        sizes.filter(|(table, _)| *table == Table::Events).map(|(_, size)| size.rows).next()
    });
    let stored_bytes = stats.tables.as_ref().map(|tables| tables.iter().map(|size| size.bytes).sum::<u64>());
    json!({
        "ready": not_ready.is_none(),
        "message": problem,
        "events": sum(|source| source.events.get()),
        "unrecognized": sum(|source| source.unrecognized.get()),
        "rejected": sum(|source| source.rejected.get()),
        "rejected_requests": rejected_requests,
        "wal_bytes": wal.bytes,
        "buffered_events": pipeline.hot().size().events,
        "stored_events": stored_events,
        "stored_bytes": stored_bytes,
    })
}

/// Returns the metrics by group, and what no metric can say.
async fn status(State(state): State<StatusState>) -> Response {
    let (pipeline, maintenance) = (&state.pipeline, state.maintenance.stats());
    let mut status = state.metrics.to_json();
    status["version"] = env!("CARGO_PKG_VERSION").into();
    status["ready"] = is_ready(pipeline, &state.maintenance).into();
    status["capture"] = capture_json(pipeline);
    status["errors"] = json!({"wal": pipeline.wal_stats().last_error, "flush": maintenance.last_error});
    status["set_aside"] = maintenance.set_aside.into();
    status["replay"] = replay_json(&state.replay);
    json_response(StatusCode::OK, &status)
}

/// Returns the services whose failures may be hidden, because the content of replies is not captured.
fn capture_json(pipeline: &Pipeline) -> Value {
    let of_service = |(service, capture): (String, Capture)| {
        let Capture { calls, unverified } = capture;
        let finding = capture.is_blind().then_some(REPLY_NOT_CAPTURED);
        (service, json!({"calls": calls, "unverified_calls": unverified, "finding": finding}))
    };
    let services = pipeline.metrics().unverified_services();
    Value::Object(services.into_iter().map(of_service).collect())
}

fn replay_json(replay: &Replay) -> Value {
    json!({
        "records": replay.records,
        "bytes": replay.bytes,
        "segments": replay.segments,
        "damaged": replay.damaged,
        "damaged_bytes": replay.damaged_bytes,
        "torn": replay.torn,
        "void": replay.void,
        "unreadable_segments": replay.unreadable_segments,
        "unsynced_segments": replay.unsynced_segments,
    })
}

fn error_response(status: StatusCode, code: &str, message: &str, remedy: &str) -> Response {
    json_response(status, &json!({"error": {"code": code, "message": message, "remedy": remedy}}))
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}
