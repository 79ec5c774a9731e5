//! The routes of the web listener, which combine those of `collector` and `query`.

use super::{page, runbook, session};
use crate::commands::running_pipeline::RunningPipeline;
use auth::listener::ConnectionStats;
use auth::metrics::AuthMetrics;
use auth::tls::Tls;
use auth::{Authenticator, Denial, DenialReason, Scope};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use collector::metrics::ServerMetrics;
use collector::receivers::server::Routes;
use collector::status_api;
use query::QueryService;
use query::serve::api::IngestReport;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::watch;

/// The authentication, connection counters and TLS configuration, which some of the routes report.
pub(super) struct WebState<'w> {
    pub(super) authenticator: &'w Arc<Authenticator>,
    pub(super) connections: &'w Arc<ConnectionStats>,
    pub(super) tls: Option<&'w Arc<Tls>>,
}

/// Returns all routes. Tails end when `stopping` becomes true.
pub(super) fn routes(
    store: &RunningPipeline,
    service: &QueryService,
    state: &WebState<'_>,
    stopping: watch::Receiver<bool>,
) -> anyhow::Result<Routes> {
    let WebState { authenticator, connections, tls } = state;
    let (pipeline, maintenance) = (store.pipeline.clone(), store.maintenance.clone());
    let metrics = Arc::new(ServerMetrics::new(
        pipeline.clone(),
        maintenance.clone(),
        vec![
            Box::new(store.metrics()),
            Box::new(service.clone()),
            Box::new(AuthMetrics {
                authenticator: Arc::clone(authenticator),
                connections: Arc::clone(connections),
                tls: tls.cloned(),
            }),
        ],
    ));
    let status =
        status_api::routes(pipeline.clone(), maintenance.clone(), Arc::clone(&metrics), store.replay.clone());
    let probes = status_api::probes(pipeline.clone(), maintenance.clone());
    let reserve = status_api::reserved_probes(pipeline, maintenance);
    let routes = status
        .merge(collector::metrics::routes(metrics)?)
        .merge(query::serve::http::routes(service.clone()))
        .merge(query::serve::api::routes(service.clone(), &store.rules, ingest_report(store)))
        .merge(query::serve::tail::routes(service.clone(), &store.rules, stopping)?);
    // The probes need no token, and reveal nothing but liveness and readiness.
    let deny = |denial: &Denial, _: &Request| rejection(denial);
    let routes = auth::require_scope_or_session(routes, authenticator, Scope::Query, deny);
    // The page and the runbook contain no data. Who signs in, or follows the link of an alert, has no session yet.
    let open = probes
        .merge(page::routes())
        .merge(runbook::routes())
        .merge(session::routes(authenticator, tls.is_some()));
    let [open, reserve] = [open, reserve].map(|open| auth::allow_anonymous(open, authenticator, deny));
    let all = page::answer_unknown_paths(routes.merge(open)).layer(map_response(without_guessing));
    Ok(Routes { all, probes: Some(reserve) })
}

/// Forbids browsers to guess the type of a response from texts of senders in it.
async fn without_guessing(mut response: Response) -> Response {
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Returns a function that reports the state of ingestion, which the page shows.
fn ingest_report(store: &RunningPipeline) -> IngestReport {
    let (pipeline, maintenance) = (store.pipeline.clone(), store.maintenance.clone());
    let started_at = jiff::Timestamp::now().to_string();
    Arc::new(move || {
        let mut summary = status_api::ingest_summary(&pipeline, &maintenance);
        summary["started_at"] = started_at.clone().into();
        summary
    })
}

/// Returns the response to a denied request.
pub(super) fn rejection(denial: &Denial) -> Response {
    let (status, code) = match denial.reason {
        DenialReason::CrossSite => (StatusCode::FORBIDDEN, "cross_site"),
        DenialReason::MissingCsrfToken => (StatusCode::FORBIDDEN, "csrf"),
        _ if denial.is_unauthenticated() => (StatusCode::UNAUTHORIZED, "unauthenticated"),
        _ => (StatusCode::FORBIDDEN, "forbidden"),
    };
    let body = json!({"error": {"code": code, "message": denial.to_string(), "remedy": denial.remedy()}});
    let mut response =
        (status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
