//! The HTTP door: `POST /api/v1/sql`.
//!
//! Takes `{"query": "...", "params": [...], "max_rows": n}`, or the bare statement as text. Answers JSON, CSV or an
//! Arrow stream, as `Accept` asks. An answer is put together before its first byte is sent, so that an error always
//! has a status of its own; what is too long for that is cut, and says so.

mod answer;
mod format;

use crate::engine::{Engine, Via};
use crate::error::{Kind, QueryError};
use crate::parameters::parameters;
use answer::Answer;
pub(super) use answer::failed;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, header};
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
pub fn routes(engine: Engine) -> Router {
    // A statement, its parameters, and the quotes around them.
    let most = 2 * engine.limits().statement_bytes;
    Router::new()
        .route("/api/v1/sql", post(sql))
        .method_not_allowed_fallback(async || {
            failed(&QueryError::new(Kind::Invalid, "only POST is answered here").hint("POST the statement"))
        })
        .layer(DefaultBodyLimit::max(most))
        .with_state(engine)
}

async fn sql(State(engine): State<Engine>, headers: HeaderMap, body: Bytes) -> Response {
    match respond(&engine, &headers, &body).await {
        Ok(answer) => answer.into_response(),
        Err(error) => failed(&error),
    }
}

async fn respond(engine: &Engine, headers: &HeaderMap, body: &Bytes) -> Result<Answer, QueryError> {
    let began = Instant::now();
    let format = Format::of(headers)?;
    let asked = Asked::read(headers, body)?;
    let limits = engine.limits();
    let most = asked.max_rows.unwrap_or(limits.rows).min(limits.rows);
    let session = engine.session(Via::Http);
    let prepared = session.prepare(&asked.query).await?;
    let rows = session.run(&prepared, parameters(&asked.params)?).await?;
    Answer::gather(rows, format, most, limits.answer_bytes, began).await
}

impl Asked {
    fn read(headers: &HeaderMap, body: &[u8]) -> Result<Self, QueryError> {
        let bad =
            |message: String| QueryError::new(Kind::Invalid, message).hint(r#"send {"query": "SELECT ..."}"#);
        let media =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_text = media.starts_with("text/plain") || media.starts_with("application/sql");
        if !is_text {
            return serde_json::from_slice(body)
                .map_err(|error| bad(format!("the body is no question: {error}")));
        }
        let query =
            std::str::from_utf8(body).map_err(|error| bad(format!("the statement is no UTF-8: {error}")))?;
        Ok(Self { query: query.to_owned(), params: Vec::new(), max_rows: None })
    }
}
