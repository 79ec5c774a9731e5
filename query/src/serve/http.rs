//! SQL over HTTP: `POST /api/v1/sql`.
//!
//! It takes `{"query": "...", "params": [...], "max_rows": n}`, or the bare statement as text. The response is JSON,
//! CSV, a Parquet file or an Arrow stream, according to `Accept`. It is complete before its first byte is sent, so that every error has
//! a status of its own; a result that is too long for that is truncated and marked as such.

mod format;
mod response;

use crate::error::{Limit, QueryError, QueryErrorKind};
use crate::limits::Limits;
use crate::parameters::parameters;
use crate::statement::StatementText;
use crate::stats::Endpoint;
use crate::worker::QueryService;
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use format::Format;
use response::SqlResponse;
pub(super) use response::{error_response, wrong_method};
use serde::Deserialize;
use serde_json::Value;
use std::time::Instant;

/// The path of the endpoint.
const PATH: &str = "/api/v1/sql";
/// The remedy for a request without a statement.
pub(super) const EXAMPLE: &str = "Send the statement with POST, as in: curl http://127.0.0.1:7070/api/v1/sql -d 'SELECT count(*) FROM events'";

/// The body of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SqlRequest {
    query: String,
    #[serde(default)]
    params: Vec<Value>,
    max_rows: Option<usize>,
}

/// Returns the routes, which belong behind the authentication middleware.
pub fn routes(service: QueryService) -> Router {
    // A body contains a statement, its parameters, and JSON around them.
    let most = 2 * service.limits().statement_bytes;
    Router::new()
        .route(PATH, post(sql))
        .method_not_allowed_fallback(async |method: Method| wrong_method(&method, "POST"))
        .layer(DefaultBodyLimit::max(most))
        .with_state(service)
}

async fn sql(
    State(service): State<QueryService>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => {
            let mut response = error_response(&body_error(&rejection, service.limits()));
            *response.status_mut() = rejection.status();
            return response;
        }
    };
    match respond(&service, &headers, &body).await {
        Ok(response) => response.into_response(),
        Err(error) => error_response(&error),
    }
}

/// Returns the error for a body that is too long or incomplete.
fn body_error(rejection: &BytesRejection, limits: &Limits) -> QueryError {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let message =
                format!("the request is too long; a statement has at most {} bytes", limits.statement_bytes);
            QueryError::new(QueryErrorKind::Limit(Limit::Statement), message)
                .hint("use parameters or a join instead of long lists")
        }
        _ => QueryError::new(QueryErrorKind::Invalid, rejection.body_text()).hint("send the statement again"),
    }
}

async fn respond(
    service: &QueryService,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<SqlResponse, QueryError> {
    let began = Instant::now();
    let format = Format::of(headers)?;
    let request = SqlRequest::read(headers, body)?;
    let limits = service.limits();
    let most = request.max_rows.unwrap_or(limits.rows).min(limits.rows);
    let session = service.session(Endpoint::Http);
    let started = session.run(&StatementText::plain(request.query), &parameters(&request.params)?).await?;
    SqlResponse::collect(started.rows, format, most, limits.answer_bytes, began).await
}

impl SqlRequest {
    fn read(headers: &HeaderMap, body: &[u8]) -> Result<Self, QueryError> {
        let bad = |message: String| {
            QueryError::new(QueryErrorKind::Invalid, message).hint(r#"send {"query": "SELECT ..."}"#)
        };
        let media =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_text = media.starts_with("text/plain") || media.starts_with("application/sql");
        if !is_text {
            if let Some(query) = bare_statement(media, body) {
                return Ok(query);
            }
            if body.trim_ascii().is_empty() {
                return Err(bad(format!("The body of the request to {PATH} is empty.")).hint(EXAMPLE));
            }
            // A number that is too large for a float is read as a text, as in ingested records.
            return serde_json::from_slice(&classifier::quote_oversized_numbers(body)).map_err(|error| {
                bad(format!("The request body is not JSON of the expected form ({error}).")).hint(
                    r#"Send {"query": "SELECT ..."}, or the statement itself with Content-Type: text/plain."#,
                )
            });
        }
        let query = std::str::from_utf8(body)
            .map_err(|error| bad(format!("The statement is not UTF-8: {error}.")))?;
        Ok(Self { query: query.to_owned(), params: Vec::new(), max_rows: None })
    }
}

/// Returns the statement of a client that sends it as `curl -d` does: as plain text, without a content type or with
/// that of a form. A body that begins like JSON is read as JSON.
fn bare_statement(media: &str, body: &[u8]) -> Option<SqlRequest> {
    let is_unnamed = media.is_empty() || media.starts_with("application/x-www-form-urlencoded");
    let text = std::str::from_utf8(body).ok().filter(|_| is_unnamed)?;
    let starts_like_sql =
        text.trim_start().starts_with(|first: char| first.is_ascii_alphabetic() || first == '(');
    let first_word = text.split_whitespace().next().unwrap_or_default();
    // A form has a name and an equals sign before any space, which a statement has not.
    let is_statement = starts_like_sql && !first_word.contains(['=', '&']);
    is_statement.then(|| SqlRequest { query: text.to_owned(), params: Vec::new(), max_rows: None })
}

/// Returns the media types of responses.
pub(super) fn formats() -> Vec<&'static str> {
    Format::ALL.map(|format| format.media().split(';').next().unwrap_or_default()).to_vec()
}
