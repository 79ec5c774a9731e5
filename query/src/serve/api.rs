//! The API behind the web page: `GET /api/v1/overview` and its siblings, described by `/api/v1/openapi.json`.
//!
//! Each endpoint is a row of `ENDPOINTS`: a path, its parameters, the shape of its response, and a function that runs
//! statements over the tables and views and puts their rows into that shape. Routes, the checks of parameters and the
//! `openapi.json` are made from the table. **To add an endpoint, add one file and its row.**
//!
//! Invariants:
//! - Every number comes from a statement that passes the same guard, limits and queue as those of other clients.
//! - No part of a request becomes part of a statement's text; values are parameters.
//! - A response has the shape that the document states; an error is JSON with a message and a remedy.

mod codes;
mod confirmations;
mod event;
mod events;
mod facets;
mod failures;
mod group;
mod groups;
mod ingest;
mod meaning;
mod names;
mod openapi;
mod other_paths;
mod overview;
mod parameters;
mod quotas;
mod range;
mod request;
mod schema;
mod services;
mod services_statements;
mod shape;
mod statement;
mod trust;

use super::http::{error_response, wrong_method};
use crate::worker::QueryService;
use axum::Router;
use axum::extract::{RawPathParams, RawQuery, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use classifier::Rules;
use futures_util::future::BoxFuture;
use parameters::{
    CLIENT, ENVIRONMENT, EVENT_FILTERS, EVENT_LIST, EVENT_TIME, GROUP_LIST, OPERATION, Parameter,
    QUOTA_STATES, RANGE, SERVICE, Values,
};
use request::{Api, ApiRequest, Problem};
use serde_json::{Value, json};
use shape::Shape;
use std::sync::{Arc, LazyLock};

pub use request::IngestReport;

/// The complete definition of an endpoint.
struct ApiEndpoint {
    path: &'static str,
    about: &'static str,
    parameters: &'static [&'static [Parameter]],
    shape: &'static Shape,
    respond: fn(ApiRequest) -> BoxFuture<'static, Result<Value, Problem>>,
}

/// All endpoints.
static ENDPOINTS: &[ApiEndpoint] = &[
    ApiEndpoint {
        path: "/api/v1/overview",
        about: "Failures and calls of a range: totals, series, and the largest of everything.",
        parameters: &[RANGE, &[SERVICE, ENVIRONMENT]],
        shape: &overview::SHAPE,
        respond: |request| Box::pin(overview::respond(request)),
    },
    ApiEndpoint {
        path: "/api/v1/groups",
        about: "Groups of failures: errors that differ only in their values.",
        parameters: &[RANGE, EVENT_FILTERS, GROUP_LIST],
        shape: &groups::SHAPE,
        respond: |request| Box::pin(groups::respond(request)),
    },
    ApiEndpoint {
        path: "/api/v1/groups/{fingerprint}",
        about: "One group of failures.",
        parameters: &[RANGE, &[ENVIRONMENT]],
        shape: &group::SHAPE,
        respond: |request| Box::pin(group::respond(request)),
    },
    ApiEndpoint {
        path: "/api/v1/services",
        about: "Services: rates, latency, hidden failures, findings, and whether replies are captured.",
        parameters: &[RANGE, &[SERVICE, ENVIRONMENT]],
        shape: &services::SHAPE,
        respond: |request| Box::pin(services::respond(request)),
    },
    ApiEndpoint {
        path: "/api/v1/quotas",
        about: "Quotas, as in the view quota_state, and how they developed.",
        parameters: &[RANGE, &[SERVICE, CLIENT], QUOTA_STATES],
        shape: &quotas::SHAPE,
        respond: |request| Box::pin(quotas::respond(request)),
    },
    ApiEndpoint {
        path: "/api/v1/trust",
        about: "Denials because of too little trust or too much danger, and what became of confirmations.",
        parameters: &[RANGE, &[SERVICE, ENVIRONMENT, CLIENT, OPERATION]],
        shape: &trust::SHAPE,
        respond: |request| Box::pin(trust::respond(request)),
    },
    ApiEndpoint {
        path: "/api/v1/codes",
        about: "The registry of codes and categories, and which of them were seen in a range.",
        parameters: &[RANGE],
        shape: &codes::SHAPE,
        respond: |request| Box::pin(codes::respond(request)),
    },
    ApiEndpoint {
        path: "/api/v1/events",
        about: "Events, the newest first.",
        parameters: &[RANGE, EVENT_FILTERS, EVENT_LIST],
        shape: &events::SHAPE,
        respond: |request| Box::pin(events::respond(request)),
    },
    ApiEndpoint {
        path: "/api/v1/events/{event_id}",
        about: "One event, and those around it.",
        parameters: &[EVENT_TIME],
        shape: &event::SHAPE,
        respond: |request| Box::pin(event::respond(request)),
    },
    ApiEndpoint {
        path: "/api/v1/names",
        about: "The names that filters can choose from, the busiest first.",
        parameters: &[RANGE],
        shape: &names::SHAPE,
        respond: |request| Box::pin(names::respond(request)),
    },
    ApiEndpoint {
        path: "/api/v1/schema",
        about: "Tables, columns, functions and example queries, for editors of SQL.",
        parameters: &[],
        shape: &schema::SHAPE,
        respond: |request| Box::pin(schema::respond(request)),
    },
    ApiEndpoint {
        path: "/api/v1/openapi.json",
        about: "This document.",
        parameters: &[],
        shape: &Shape::Open(&[&[("openapi", Shape::Text), ("paths", Shape::Map(&Shape::Any))]]),
        respond: |_| Box::pin(async { Ok(DOCUMENT.clone()) }),
    },
];

static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi::document);

/// Returns the routes, for clients that may query. `ingest` reports the state of the server itself, as a JSON object.
pub fn routes(service: QueryService, rules: &Arc<Rules>, ingest: IngestReport) -> Router {
    let api = Api { service, rules: Arc::clone(rules), ingest };
    let mut router = Router::new();
    for endpoint in ENDPOINTS {
        let handler = async move |State(api): State<Api>, path: RawPathParams, RawQuery(query): RawQuery| {
            let id = path.iter().next().map(|(_, value)| value.to_owned()).unwrap_or_default();
            answer(respond(endpoint, api, id, query.unwrap_or_default()).await)
        };
        router = router.route(endpoint.path, get(handler));
    }
    router.method_not_allowed_fallback(async |method: Method| wrong_method(&method, "GET")).with_state(api)
}

async fn respond(endpoint: &ApiEndpoint, api: Api, id: String, query: String) -> Result<Value, Problem> {
    let values = Values::parse(&query, endpoint.parameters, range::now())?;
    let range = values.range()?;
    (endpoint.respond)(ApiRequest { api, id, values, range }).await
}

fn answer(result: Result<Value, Problem>) -> Response {
    let mut response = match result {
        Ok(body) => json_response(StatusCode::OK, &body),
        Err(Problem::Query(error)) => error_response(&error),
        Err(Problem::NotFound { message, remedy }) => json_response(
            StatusCode::NOT_FOUND,
            &json!({"error": {"code": "not_found", "message": message, "remedy": remedy}}),
        ),
    };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}
