//! Health and status, for probes and for people: a part of the 7070 listener.
//!
//! `/healthz` says that the process runs; `/readyz` that a request would be taken now; `/api/v1/status` shows
//! every counter, so that nothing that was refused or dropped stays unseen.

use crate::counters::{RECORD_REASONS, SourceCounters};
use crate::pipeline::Pipeline;
use crate::receive::server::Connections;
use crate::refusal::Cause;
use crate::source::Source;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::Table;
use store::keeper::{Keeper, KeeperStats, TableSize};
use store::lake::Expired;
use store::log::Replay;
use taxonomy::Category;

/// What the routes look at.
#[derive(Clone)]
struct Watched {
    pipeline: Pipeline,
    connections: Arc<Connections>,
    keeper: Keeper,
    replay: Arc<Replay>,
}

/// The routes of probes, which have no token.
pub fn probes(pipeline: Pipeline, keeper: Keeper) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .method_not_allowed_fallback(wrong_method)
        .with_state((pipeline, keeper))
}

async fn wrong_method() -> Response {
    refused(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", "only GET is answered here", "use GET")
}

/// The same routes for connections of the reserve, which are for nothing else.
pub fn reserved_probes(pipeline: Pipeline, keeper: Keeper) -> Router {
    probes(pipeline, keeper).fallback(async || {
        refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "too_many_connections",
            "all connections of this listener, or of this address, are taken; the last ones answer /healthz and /readyz",
            "close connections that are not used, or raise --limit-connections or --limit-connections-per-address",
        )
    })
}

/// The other routes.
pub fn routes(pipeline: Pipeline, connections: Arc<Connections>, keeper: Keeper, replay: Replay) -> Router {
    Router::new()
        .route("/api/v1/status", get(status))
        .fallback(async || {
            refused(
                StatusCode::NOT_FOUND,
                "not_found",
                "no such path",
                "use /healthz, /readyz, /metrics, /runbook, /api/v1/status or /api/v1/sql",
            )
        })
        .method_not_allowed_fallback(wrong_method)
        .with_state(Watched { pipeline, connections, keeper, replay: Arc::new(replay) })
}

/// Why a collector is not ready.
struct Unready {
    reason: &'static str,
    message: String,
    remedy: &'static str,
}

impl Unready {
    fn of(pipeline: &Pipeline, keeper: &Keeper) -> Option<Self> {
        let refused = pipeline.unready().map(|refusal| Self {
            reason: refusal.cause.as_str(),
            message: refusal.detail,
            remedy: refusal.cause.remedy(),
        });
        refused.or_else(|| {
            keeper.damage().map(|message| Self {
                reason: "tables_damaged",
                message,
                remedy: "mend what the message names; no restart is needed, and what is sent meanwhile is kept in the log",
            })
        })
    }
}

/// Whether requests are taken, and everything that is stored can be asked about.
pub(crate) fn is_ready(pipeline: &Pipeline, keeper: &Keeper) -> bool {
    Unready::of(pipeline, keeper).is_none()
}

async fn ready(State((pipeline, keeper)): State<(Pipeline, Keeper)>) -> Response {
    match Unready::of(&pipeline, &keeper) {
        None => answer(StatusCode::OK, &json!({"ready": true})),
        Some(Unready { reason, message, remedy }) => answer(
            StatusCode::SERVICE_UNAVAILABLE,
            &json!({"ready": false, "reason": reason, "message": message, "remedy": remedy}),
        ),
    }
}

async fn status(State(watched): State<Watched>) -> Response {
    let pipeline = &watched.pipeline;
    let counters = pipeline.counters();
    let sources: Map<String, Value> = Source::ALL
        .into_iter()
        .map(|source| (source.as_str().to_owned(), of_source(counters.of(source))))
        .collect();
    answer(
        StatusCode::OK,
        &json!({
            "version": env!("CARGO_PKG_VERSION"),
            "ready": is_ready(pipeline, &watched.keeper),
            "sources": sources,
            "connections": {
                "open": watched.connections.open(),
                "opened": watched.connections.opened(),
                "refused": watched.connections.refused(),
                "reserved": watched.connections.reserved(),
                "accept_errors": watched.connections.accept_errors(),
            },
            "answered_again": counters.answered_again.get(),
            "samples_dropped": counters.samples_dropped.get(),
            "panics": counters.panics.get(),
            "unreadable_records": counters.unreadable_records.get(),
            "files": of_words(&counters.files.named()),
            "stdin": of_words(&counters.stdin.named()),
            "log": of_log(pipeline),
            "hot": of_hot(pipeline),
            "replay": of_replay(&watched.replay),
            "seal": of_seal(&watched.keeper.stats()),
            "upkeep": of_upkeep(&watched.keeper.stats()),
            "tables": of_tables(&watched.keeper.stats()),
        }),
    )
}

fn of_source(source: &SourceCounters) -> Value {
    let mut object: Map<String, Value> =
        source.named().into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
    let by_word = |words: &[&str], counts: &[crate::counters::Counter]| -> Map<String, Value> {
        let counted = words.iter().zip(counts).filter(|(_, count)| count.get() > 0);
        counted.map(|(word, count)| ((*word).to_owned(), count.get().into())).collect()
    };
    object.insert("requests".to_owned(), source.requests.get().into());
    object.insert("wire_bytes".to_owned(), source.wire_bytes.get().into());
    object.insert("body_bytes".to_owned(), source.body_bytes.get().into());
    object.insert("refused".to_owned(), by_word(&Cause::ALL.map(Cause::as_str), &source.refused).into());
    object.insert("unusable".to_owned(), by_word(&RECORD_REASONS, &source.reasons).into());
    let categories: Vec<&str> = Category::ALL.iter().map(|category| category.as_str()).collect();
    object.insert("categories".to_owned(), by_word(&categories, &source.categories).into());
    object.into()
}

fn of_words(named: &[(&'static str, u64)]) -> Value {
    named.iter().map(|(name, count)| ((*name).to_owned(), (*count).into())).collect::<Map<_, _>>().into()
}

fn of_log(pipeline: &Pipeline) -> Value {
    let log = pipeline.log_stats();
    json!({
        "bytes": log.bytes,
        "segments": log.segments,
        "records": log.records,
        "record_bytes": log.record_bytes,
        "commits": log.commits,
        "fsync_micros": log.fsync_micros,
        "fsync_max_micros": log.fsync_max_micros,
        "refused": {
            "full": log.refused_full,
            "no_space": log.refused_no_space,
            "io": log.refused_io,
            "displaced": log.refused_displaced,
            "stale": log.refused_stale,
            "too_large": log.refused_too_large,
        },
        "full": log.full,
        "failing": log.failing,
        "last_error": log.last_error,
    })
}

fn of_seal(stats: &KeeperStats) -> Value {
    json!({
        "seals": stats.seals,
        "records": stats.records,
        "rows": stats.sealed.rows,
        "files": stats.sealed.files,
        "bytes": stats.sealed.bytes,
        "commits": stats.sealed.commits,
        "unreadable_records": stats.sealed.unreadable,
        "micros": micros(stats.seal_time),
        "max_micros": micros(stats.longest_seal),
        "failures": stats.seal_failures,
        "failing": stats.is_seal_failing,
        "last_error": stats.last_error,
        "set_aside": stats.set_aside,
    })
}

fn of_upkeep(stats: &KeeperStats) -> Value {
    json!({
        "rounds": stats.rounds,
        "held": stats.clock.is_held,
        "clock_jumps": stats.clock.jumps,
        "clock_offset_s": stats.clock.offset_us / 1_000_000,
        "merged_files": stats.kept.merged,
        "merged_into_files": stats.kept.merged_into,
        "merged_bytes": stats.kept.merged_bytes,
        "expired_files": stats.kept.expired.files,
        "expired": of_expired(stats),
        "checkpoints": stats.kept.checkpoints,
        "cleaned_log_files": stats.kept.log_files,
        "vacuumed_files": stats.kept.vacuumed.files,
        "vacuumed_bytes": stats.kept.vacuumed.bytes,
        "micros": micros(stats.upkeep_time),
        "failures": stats.upkeep_failures,
    })
}

/// What retention removed, by table.
fn of_expired(stats: &KeeperStats) -> Value {
    let of_table = |(table, expired): (Table, &Expired)| {
        let expired = json!({
            "files": expired.files, "rows": expired.rows, "bytes": expired.bytes, "days": expired.days,
        });
        (table.name().to_owned(), expired)
    };
    Value::Object(Table::ALL.into_iter().zip(&stats.expired).map(of_table).collect())
}

/// Null while the tables cannot be opened.
fn of_tables(stats: &KeeperStats) -> Value {
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

fn of_hot(pipeline: &Pipeline) -> Value {
    let hot = pipeline.hot().size();
    json!({"records": hot.records, "events": hot.events, "bytes": hot.bytes, "evicted": hot.evicted})
}

fn of_replay(replay: &Replay) -> Value {
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

fn refused(status: StatusCode, code: &str, message: &str, remedy: &str) -> Response {
    answer(status, &json!({"error": {"code": code, "message": message, "remedy": remedy}}))
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}
