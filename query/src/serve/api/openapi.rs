//! `openapi.json`, generated from the table of endpoints.

use super::other_paths::{OTHER_PATHS, OtherPath};
use super::parameters::Parameter;
use super::shape::{self, Shape};
use super::{ApiEndpoint, ENDPOINTS};
use serde_json::{Map, Value, json};

/// Returns the document.
pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        paths.insert(endpoint.path.to_owned(), json!({"get": operation(endpoint)}));
    }
    for other in OTHER_PATHS {
        let item = paths.entry(other.path).or_insert_with(|| json!({}));
        item[other.method] = other_operation(other);
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

fn operation(endpoint: &ApiEndpoint) -> Value {
    let query = endpoint.parameters.iter().copied().flatten().map(query_parameter);
    let in_path =
        endpoint.path.split(['{', '}']).nth(1).map(
            |name| json!({"name": name, "in": "path", "required": true, "schema": Shape::Text.schema()}),
        );
    json!({
        "summary": endpoint.about,
        "parameters": in_path.into_iter().chain(query).collect::<Vec<_>>(),
        "responses": {
            "200": {
                "description": "The response.",
                "content": {"application/json": {"schema": endpoint.shape.schema()}},
            },
            "default": error_response(),
        },
    })
}

fn other_operation(other: &OtherPath) -> Value {
    let headers = other.headers.iter().map(|(name, about, required)| {
        json!({
            "name": name,
            "in": "header",
            "description": about,
            "required": required,
            "schema": Shape::Text.schema(),
        })
    });
    let mut success = json!({"description": "The response."});
    if !other.response.is_empty() {
        success["content"] = content(other.response);
    }
    let mut operation = json!({
        "summary": other.about,
        "parameters": other.parameters.iter().map(query_parameter).chain(headers).collect::<Vec<_>>(),
        "responses": {other.status: success, "default": error_response()},
    });
    if !other.body.is_empty() {
        operation["requestBody"] = json!({"required": true, "content": content(other.body)});
    }
    if !other.needs_token {
        operation["security"] = json!([{}]);
    }
    operation
}

fn query_parameter(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "in": "query",
        "description": parameter.about,
        "schema": parameter.kind.schema(),
    })
}

fn content(shapes: &[(&str, Shape)]) -> Value {
    let media = |(media, shape): &(&str, Shape)| ((*media).to_owned(), json!({"schema": shape.schema()}));
    shapes.iter().map(media).collect::<Map<_, _>>().into()
}

fn error_response() -> Value {
    let schema = json!({"$ref": "#/components/schemas/Error"});
    json!({"description": "What was wrong, and what to do.", "content": {"application/json": {"schema": schema}}})
}
