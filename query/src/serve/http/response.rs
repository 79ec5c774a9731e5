//! The HTTP responses with a result or with an error.

use super::EXAMPLE;
use super::format::{Format, Writer};
use crate::engine::Rows;
use crate::error::{QueryError, QueryErrorKind};
use crate::types;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The response header that marks a truncated result in formats without a field for it.
const TRUNCATED: &str = "x-faultline-truncated";

/// A complete result.
pub(super) struct SqlResponse {
    format: Format,
    schema: SchemaRef,
    rows: Vec<u8>,
    row_count: usize,
    truncated: bool,
    took: Duration,
}

impl SqlResponse {
    /// Collects all rows, up to the limits.
    pub(super) async fn collect(
        mut rows: Rows,
        format: Format,
        most: usize,
        most_bytes: usize,
        began: Instant,
    ) -> Result<Self, QueryError> {
        let schema = Arc::clone(rows.schema());
        let mut writer = Writer::new(format, &schema).map_err(|error| format_error(&error))?;
        let (mut row_count, mut bytes, mut truncated) = (0, 0, false);
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            let wanted = batch.slice(0, batch.num_rows().min(most - row_count));
            truncated = wanted.num_rows() < batch.num_rows() || bytes > most_bytes;
            if bytes <= most_bytes {
                writer.write(&wanted).map_err(|error| format_error(&error))?;
                row_count += wanted.num_rows();
                bytes += wanted.get_array_memory_size();
            }
            if truncated {
                break;
            }
        }
        let rows = writer.finish().map_err(|error| format_error(&error))?;
        Ok(Self { format, schema, rows, row_count, truncated, took: began.elapsed() })
    }

    fn body(self) -> Vec<u8> {
        if self.format != Format::Json {
            return self.rows;
        }
        let column = |field: &Arc<arrow::datatypes::Field>| json!({"name": field.name(), "type": types::postgres_name(field.data_type())});
        let columns: Vec<_> = self.schema.fields().iter().map(column).collect();
        let took = self.took.as_micros() as f64 / 1e3;
        let mut body = format!(r#"{{"columns":{},"rows":"#, serde_json::Value::from(columns)).into_bytes();
        body.extend_from_slice(&self.rows);
        let rest = format!(
            r#","row_count":{},"elapsed_ms":{took},"truncated":{}}}"#,
            self.row_count, self.truncated
        );
        body.extend_from_slice(rest.as_bytes());
        body.push(b'\n');
        body
    }
}

impl IntoResponse for SqlResponse {
    fn into_response(self) -> Response {
        let mut headers = vec![(header::CONTENT_TYPE, HeaderValue::from_static(self.format.media()))];
        if self.truncated {
            headers.push((header::HeaderName::from_static(TRUNCATED), HeaderValue::from_static("true")));
        }
        (headers.into_iter().collect::<axum::http::HeaderMap>(), self.body()).into_response()
    }
}

fn format_error(error: &ArrowError) -> QueryError {
    QueryError::new(QueryErrorKind::Failed, format!("the result cannot be encoded: {error}"))
        .hint("cast the column to text, or ask for another format")
}

/// Returns the response for an error.
pub(in crate::serve) fn error_response(error: &QueryError) -> Response {
    let status = match error.kind {
        QueryErrorKind::Syntax
        | QueryErrorKind::Unknown
        | QueryErrorKind::Invalid
        | QueryErrorKind::Failed => StatusCode::BAD_REQUEST,
        QueryErrorKind::Refused => StatusCode::FORBIDDEN,
        QueryErrorKind::Limit(_) => StatusCode::UNPROCESSABLE_ENTITY,
        QueryErrorKind::Busy | QueryErrorKind::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        QueryErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let position = error.position.map(|position| json!({"line": position.line, "column": position.column}));
    let body = json!({"error": {
        "code": error.code(),
        "message": error.message,
        "position": position,
        "remedy": error.hint,
    }});
    let mut response = json_response(status, &body);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Returns the response to a request whose method is not `allowed`, which is GET or POST. OPTIONS gets the allowed
/// methods.
pub(in crate::serve) fn wrong_method(method: &Method, allowed: &'static str) -> Response {
    let allow = if allowed == "GET" { "GET, HEAD, OPTIONS" } else { "POST, OPTIONS" };
    let mut response = if *method == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        let message = format!("Only {allowed} is answered here, not {method}.");
        let remedy = if allowed == "GET" { "Use GET." } else { EXAMPLE };
        let body = json!({"error": {"code": "wrong_method", "message": message, "position": null, "remedy": remedy}});
        json_response(StatusCode::METHOD_NOT_ALLOWED, &body)
    };
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}

fn json_response(status: StatusCode, body: &serde_json::Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}
