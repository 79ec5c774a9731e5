//! `openapi.json`, generated from the table of endpoints.

use super::shape::{self, Shape};
use super::{ENDPOINTS, Endpoint};
use serde_json::{Map, Value, json};

/// The paths that are served elsewhere: method, path, purpose, and the media type of the response.
const OTHER_PATHS: [(&str, &str, &str, &str); 6] = [
    (
        "post",
        "/api/v1/sql",
        "Runs one SQL statement that reads: {\"query\", \"params\", \"max_rows\"}, or the statement as text.",
        "application/json",
    ),
    (
        "get",
        "/api/v1/tail",
        "Live events, as server-sent events. Takes category, service, code, where and recent.",
        "text/event-stream",
    ),
    ("get", "/api/v1/status", "Every counter of the server.", "application/json"),
    (
        "get",
        "/api/v1/session",
        "Whether tokens are required, and who is signed in. Needs no token.",
        "application/json",
    ),
    (
        "post",
        "/api/v1/session",
        "Signs a browser in with {\"token\"}, and sets a cookie. Later requests that are not GET need the header \
         X-CSRF-Token.",
        "application/json",
    ),
    ("delete", "/api/v1/session", "Signs a browser out.", "application/json"),
];

/// Returns the document.
pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        paths.insert(endpoint.path.to_owned(), json!({"get": operation(endpoint)}));
    }
    for (method, path, about, media) in OTHER_PATHS {
        let item = paths.entry(path).or_insert_with(|| json!({}));
        let success = if method == "delete" { "204" } else { "200" };
        item[method] = json!({
            "summary": about,
            "responses": {
                success: {"description": "The answer.", "content": {media: {}}},
                "default": error_response(),
            },
        });
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Faultline",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The API behind Faultline's web page. Times are RFC 3339 in UTC; times in `time` lists are \
                            seconds since 1970, the starts of buckets.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": shape::ERROR.schema()},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "faultline_session"},
            },
        },
        "security": [{}, {"token": []}, {"session": []}],
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let query = endpoint.parameters.iter().copied().flatten().map(|parameter| {
        json!({
            "name": parameter.name,
            "in": "query",
            "description": parameter.about,
            "schema": parameter.kind.schema(),
        })
    });
    let in_path =
        endpoint.path.split(['{', '}']).nth(1).map(
            |name| json!({"name": name, "in": "path", "required": true, "schema": Shape::Text.schema()}),
        );
    json!({
        "summary": endpoint.about,
        "parameters": in_path.into_iter().chain(query).collect::<Vec<_>>(),
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {"application/json": {"schema": endpoint.shape.schema()}},
            },
            "default": error_response(),
        },
    })
}

fn error_response() -> Value {
    let schema = json!({"$ref": "#/components/schemas/Error"});
    json!({"description": "What was wrong, and what to do.", "content": {"application/json": {"schema": schema}}})
}
