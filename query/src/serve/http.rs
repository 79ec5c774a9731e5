//! The HTTP door: `POST /api/v1/sql`.
//!
//! Takes `{"query": "...", "params": [...], "max_rows": n}`, or the bare statement as text. Answers JSON, CSV or an
//! Arrow stream, as `Accept` asks. An answer is put together before its first byte is sent, so that an error always
//! has a status of its own; what is too long for that is cut, and says so.

mod answer;
mod format;

use crate::error::{Kind, Limit, QueryError};
use crate::limits::Limits;
use crate::parameters::parameters;
use crate::statement::StatementText;
use crate::stats::Via;
use crate::worker::QueryService;
use answer::Answer;
pub(super) use answer::failed;
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use format::Format;
use serde::Deserialize;
use serde_json::Value;
use std::time::Instant;

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    query: String,
    #[serde(default)]
    params: Vec<Value>,
    max_rows: Option<usize>,
}

/// The routes, for whoever was let in.
pub fn routes(service: QueryService) -> Router {
    // A statement, its parameters, and the quotes around them.
    let most = 2 * service.limits().statement_bytes;
    Router::new()
        .route("/api/v1/sql", post(sql))
        .method_not_allowed_fallback(async || {
            failed(&QueryError::new(Kind::Invalid, "only POST is answered here").hint("POST the statement"))
        })
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
            let mut response = failed(&unread(&rejection, service.limits()));
            *response.status_mut() = rejection.status();
            return response;
        }
    };
    match respond(&service, &headers, &body).await {
        Ok(answer) => answer.into_response(),
        Err(error) => failed(&error),
    }
}

/// The body was too long, or did not come.
fn unread(rejection: &BytesRejection, limits: &Limits) -> QueryError {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let message =
                format!("the request is too long; a statement has at most {} bytes", limits.statement_bytes);
            QueryError::new(Kind::Limit(Limit::Statement), message)
                .hint("use parameters or a join instead of long lists")
        }
        _ => QueryError::new(Kind::Invalid, rejection.body_text()).hint("send the statement again"),
    }
}

async fn respond(service: &QueryService, headers: &HeaderMap, body: &Bytes) -> Result<Answer, QueryError> {
    let began = Instant::now();
    let format = Format::of(headers)?;
    let asked = Asked::read(headers, body)?;
    let limits = service.limits();
    let most = asked.max_rows.unwrap_or(limits.rows).min(limits.rows);
    let session = service.session(Via::Http);
    let started = session.run(&StatementText::plain(asked.query), &parameters(&asked.params)?).await?;
    Answer::gather(started.rows, format, most, limits.answer_bytes, began).await
}

impl Asked {
    fn read(headers: &HeaderMap, body: &[u8]) -> Result<Self, QueryError> {
        let bad =
            |message: String| QueryError::new(Kind::Invalid, message).hint(r#"send {"query": "SELECT ..."}"#);
        let media =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_text = media.starts_with("text/plain") || media.starts_with("application/sql");
        if !is_text {
            // A number that is too large for a float is a text, here as in records.
            return serde_json::from_slice(&taxonomy::mend_numbers(body))
                .map_err(|error| bad(format!("the body is no question: {error}")));
        }
        let query =
            std::str::from_utf8(body).map_err(|error| bad(format!("the statement is no UTF-8: {error}")))?;
        Ok(Self { query: query.to_owned(), params: Vec::new(), max_rows: None })
    }
}
