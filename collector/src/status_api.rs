//! Health and status endpoints, for probes and for people: a part of the HTTP listener on port 7070.
//!
//! `/healthz` reports that the process runs; `/readyz`, that a request would be accepted now; `/api/v1/status` shows
//! every counter, so that everything that was rejected or dropped is visible.

use crate::counters::{RECORD_REASONS, SourceCounters};
use crate::metrics::{Capture, REPLY_NOT_CAPTURED};
use crate::pipeline::Pipeline;
use crate::rejection::RejectionReason;
use crate::source::Source;
use auth::listener::{ConnectionStats, ProtocolStats};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use classifier::Category;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::Table;
use store::delta::Expired;
use store::maintenance::{Maintenance, MaintenanceStats, TableSize};
use store::wal::Replay;

/// The state that the routes read.
#[derive(Clone)]
struct StatusState {
    pipeline: Pipeline,
    connections: Arc<ConnectionStats>,
    maintenance: Maintenance,
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
    connections: Arc<ConnectionStats>,
    maintenance: Maintenance,
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
        .with_state(StatusState { pipeline, connections, maintenance, replay: Arc::new(replay) })
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
    let mut refused = Map::new();
    for (index, reason) in RejectionReason::ALL.into_iter().enumerate() {
        let of_source = |source| counters.of(source).rejected_requests[index].get();
        let count: u64 = Source::ALL.into_iter().map(of_source).sum();
        if count > 0 {
            refused.insert(reason.as_str().to_owned(), count.into());
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
        "refused": refused,
        "wal_bytes": wal.bytes,
        "buffered_events": pipeline.hot().size().events,
        "stored_events": stored_events,
        "stored_bytes": stored_bytes,
    })
}

async fn status(State(state): State<StatusState>) -> Response {
    let pipeline = &state.pipeline;
    let counters = pipeline.counters();
    let sources: Map<String, Value> = Source::ALL
        .into_iter()
        .map(|source| (source.as_str().to_owned(), source_json(counters.of(source))))
        .collect();
    json_response(
        StatusCode::OK,
        &json!({
            "version": env!("CARGO_PKG_VERSION"),
            "ready": is_ready(pipeline, &state.maintenance),
            "sources": sources,
            "capture": capture_json(pipeline),
            "connections": {
                "open": state.connections.total(ProtocolStats::open),
                "opened": state.connections.total(ProtocolStats::opened),
                "refused": state.connections.total(ProtocolStats::rejected),
                "reserved": state.connections.total(ProtocolStats::reserved),
                "accept_errors": state.connections.total(ProtocolStats::accept_errors),
            },
            "answered_again": counters.idempotent_replays.get(),
            "samples_dropped": counters.samples_dropped.get(),
            "panics": counters.panics.get(),
            "unreadable_records": counters.unreadable_records.get(),
            "files": counters_json(&counters.files.named()),
            "stdin": counters_json(&counters.stdin.named()),
            "wal": wal_json(pipeline),
            "hot": buffer_json(pipeline),
            "replay": replay_json(&state.replay),
            "flush": flush_json(&state.maintenance.stats()),
            "maintenance": maintenance_json(&state.maintenance.stats()),
            "tables": tables_json(&state.maintenance.stats()),
        }),
    )
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

fn source_json(source: &SourceCounters) -> Value {
    let mut object: Map<String, Value> =
        source.named().into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
    let by_name = |words: &[&str], counts: &[crate::counters::Counter]| -> Map<String, Value> {
        let counted = words.iter().zip(counts).filter(|(_, count)| count.get() > 0);
        counted.map(|(word, count)| ((*word).to_owned(), count.get().into())).collect()
    };
    object.insert("requests".to_owned(), source.requests.get().into());
    object.insert("wire_bytes".to_owned(), source.wire_bytes.get().into());
    object.insert("body_bytes".to_owned(), source.body_bytes.get().into());
    object.insert(
        "refused".to_owned(),
        by_name(&RejectionReason::ALL.map(RejectionReason::as_str), &source.rejected_requests).into(),
    );
    object.insert("unusable".to_owned(), by_name(&RECORD_REASONS, &source.reasons).into());
    let categories: Vec<&str> = Category::ALL.iter().map(|category| category.as_str()).collect();
    object.insert("categories".to_owned(), by_name(&categories, &source.categories).into());
    object.into()
}

fn counters_json(named: &[(&'static str, u64)]) -> Value {
    named.iter().map(|(name, count)| ((*name).to_owned(), (*count).into())).collect::<Map<_, _>>().into()
}

fn wal_json(pipeline: &Pipeline) -> Value {
    let wal = pipeline.wal_stats();
    json!({
        "bytes": wal.bytes,
        "segments": wal.segments,
        "records": wal.records,
        "record_bytes": wal.record_bytes,
        "commits": wal.commits,
        "fsync_micros": wal.fsync_micros,
        "fsync_max_micros": wal.fsync_max_micros,
        "refused": {
            "full": wal.refused_full,
            "no_space": wal.refused_no_space,
            "io": wal.refused_io,
            "displaced": wal.refused_displaced,
            "stale": wal.refused_stale,
            "too_large": wal.refused_too_large,
        },
        "full": wal.full,
        "failing": wal.failing,
        "last_error": wal.last_error,
    })
}

fn flush_json(stats: &MaintenanceStats) -> Value {
    json!({
        "flushes": stats.flushes,
        "records": stats.records,
        "rows": stats.flushed.rows,
        "files": stats.flushed.files,
        "bytes": stats.flushed.bytes,
        "commits": stats.flushed.commits,
        "unreadable_records": stats.flushed.unreadable,
        "micros": micros(stats.flush_time),
        "max_micros": micros(stats.longest_flush),
        "failures": stats.flush_failures,
        "failing": stats.is_flush_failing,
        "last_error": stats.last_error,
        "set_aside": stats.set_aside,
    })
}

fn maintenance_json(stats: &MaintenanceStats) -> Value {
    json!({
        "rounds": stats.rounds,
        "held": stats.clock.is_held,
        "clock_jumps": stats.clock.jumps,
        "clock_offset_s": stats.clock.offset_us / 1_000_000,
        "merged_files": stats.kept.merged,
        "merged_into_files": stats.kept.merged_into,
        "merged_bytes": stats.kept.merged_bytes,
        "expired_files": stats.kept.expired.files,
        "expired": expired_json(stats),
        "checkpoints": stats.kept.checkpoints,
        "cleaned_log_files": stats.kept.log_files,
        "vacuumed_files": stats.kept.vacuumed.files,
        "vacuumed_bytes": stats.kept.vacuumed.bytes,
        "micros": micros(stats.maintenance_time),
        "failures": stats.maintenance_failures,
    })
}

/// Returns the counts of what retention removed, by table.
fn expired_json(stats: &MaintenanceStats) -> Value {
    let of_table = |(table, expired): (Table, &Expired)| {
        let expired = json!({
            "files": expired.files, "rows": expired.rows, "bytes": expired.bytes, "days": expired.days,
        });
        (table.name().to_owned(), expired)
    };
    Value::Object(Table::ALL.into_iter().zip(&stats.expired).map(of_table).collect())
}

/// Returns the sizes of the tables, or null while they cannot be opened.
fn tables_json(stats: &MaintenanceStats) -> Value {
    let Some(tables) = &stats.tables else { return Value::Null };
    let of_table = |(table, size): (Table, &TableSize)| {
        let size =
            json!({"version": size.version, "files": size.files, "rows": size.rows, "bytes": size.bytes});
        (table.name().to_owned(), size)
    };
    Value::Object(Table::ALL.into_iter().zip(tables).map(of_table).collect())
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn buffer_json(pipeline: &Pipeline) -> Value {
    let hot = pipeline.hot().size();
    json!({"records": hot.records, "events": hot.events, "bytes": hot.bytes, "evicted": hot.evicted})
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
