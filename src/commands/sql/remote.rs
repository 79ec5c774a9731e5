//! Sends queries to a running server with `POST /api/v1/sql`, and reads the Arrow stream of the response as it arrives.

use super::error::SqlError;
use crate::client::{
    self, ClientTlsArgs, ErrorBody, ErrorPosition, ErrorResponse, HttpClient, ServerAddress,
};
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::reader::StreamDecoder;
use auth::Scope;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use query::Position;
use serde_json::{Value, json};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The path to which queries are sent.
pub(super) const PATH: &str = "/api/v1/sql";
const ARROW_STREAM: &str = "application/vnd.apache.arrow.stream";
/// The response header that says that rows were left out.
const TRUNCATED_HEADER: &str = "x-faultline-truncated";
/// The maximum size of an error response; these are short.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// The type of response bodies.
type Body = hyper::body::Incoming;

/// A server that runs queries.
pub(super) struct RemoteServer {
    client: HttpClient,
    url: String,
    /// The longest time for a whole response.
    timeout: Duration,
}

impl RemoteServer {
    pub(super) fn new(
        address: &ServerAddress,
        tls: &ClientTlsArgs,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        Ok(Self { client: HttpClient::new(address, tls)?, url: address.to_string(), timeout })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Sends a query, and waits until the result begins.
    pub(super) async fn query(&self, statement: &str, values: &[Value]) -> Result<RemoteResult, SqlError> {
        let deadline = Instant::now().checked_add(self.timeout).unwrap_or_else(Instant::now);
        let body = json!({"query": statement, "params": values}).to_string();
        let request = Request::post(format!("{}{PATH}", self.url()))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, ARROW_STREAM)
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| SqlError::new(format!("cannot ask {}: {error}", self.url())))?;
        let response = timeout_at(deadline, self.client.request(request));
        let response = response.await.map_err(|_| timeout_error(self.timeout))?.map_err(|error| {
            let explain = if error.is_connect() { client::connect_error } else { client::connection_error };
            SqlError::new(explain(self.url(), &error))
        })?;
        if response.status() != StatusCode::OK || !is_arrow(&response) {
            return Err(self.rejection(response).await);
        }
        RemoteResult::begin(self, response, deadline).await
    }

    /// Returns the error that the response describes.
    async fn rejection(&self, response: Response<Body>) -> SqlError {
        let (head, body) = response.into_parts();
        let body =
            Limited::new(body, MAX_ERROR_BYTES).collect().await.map(http_body_util::Collected::to_bytes);
        let error_response = body.ok().and_then(|body| serde_json::from_slice::<ErrorResponse>(&body).ok());
        match error_response {
            // Other listeners of Faultline do not have this path.
            Some(error_response) if head.status != StatusCode::NOT_FOUND => {
                let error = SqlError::from(error_response.error);
                SqlError { hint: client::token_remedy(head.status, Scope::Query).or(error.hint), ..error }
            }
            _ => SqlError {
                hint: Some("give the web address of a Faultline server, by default port 7070".to_owned()),
                ..SqlError::new(format!("{} answered {}, which is no answer to SQL", self.url(), head.status))
            },
        }
    }
}

fn is_arrow<B>(response: &Response<B>) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|media| media == ARROW_STREAM)
}

fn timeout_error(timeout: Duration) -> SqlError {
    SqlError {
        hint: Some("narrow it, or allow more with --timeout".to_owned()),
        ..SqlError::new(format!("the server did not answer within {timeout:?}"))
    }
}

impl From<ErrorBody> for SqlError {
    fn from(error: ErrorBody) -> Self {
        let position = error.position.map(|ErrorPosition { line, column }| Position { line, column });
        Self { message: error.message, position, hint: error.remedy }
    }
}

/// The rows of a result, as they arrive.
pub(super) struct RemoteResult {
    url: String,
    body: Body,
    decoder: StreamDecoder,
    /// The bytes that were received and are not decoded yet.
    rest: Buffer,
    /// The batch that was decoded together with the schema, if there was one.
    first: Option<RecordBatch>,
    schema: SchemaRef,
    deadline: Instant,
    timeout: Duration,
    is_truncated: bool,
    ended: bool,
}

impl RemoteResult {
    async fn begin(
        server: &RemoteServer,
        response: Response<Body>,
        deadline: Instant,
    ) -> Result<Self, SqlError> {
        let is_truncated = response.headers().contains_key(TRUNCATED_HEADER);
        let mut result = Self {
            url: server.url.clone(),
            body: response.into_body(),
            decoder: StreamDecoder::new(),
            rest: Buffer::default(),
            first: None,
            schema: Arc::new(Schema::empty()),
            deadline,
            timeout: server.timeout,
            is_truncated,
            ended: false,
        };
        result.read_schema().await?;
        Ok(result)
    }

    async fn read_schema(&mut self) -> Result<(), SqlError> {
        loop {
            let batch = self.decode()?;
            if let Some(schema) = self.decoder.schema() {
                self.schema = schema;
                self.first = batch;
                return Ok(());
            }
            if !self.receive().await? {
                return Err(invalid_response(&self.url, "it ended before its columns"));
            }
        }
    }

    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    pub(super) fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        loop {
            if let Some(batch) = self.decode()? {
                return Ok(Some(batch));
            }
            if !self.receive().await? {
                self.decoder.finish().map_err(|error| invalid_response(&self.url, error))?;
                return Ok(None);
            }
        }
    }

    fn decode(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.decoder.decode(&mut self.rest).map_err(|error| invalid_response(&self.url, error))
    }

    /// Waits for more bytes. Returns false at the end of the response.
    async fn receive(&mut self) -> Result<bool, SqlError> {
        while !self.ended {
            let frame = timeout_at(self.deadline, self.body.frame())
                .await
                .map_err(|_| timeout_error(self.timeout))?;
            match frame {
                None => self.ended = true,
                Some(Err(error)) => return Err(SqlError::new(client::connection_error(&self.url, &error))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.rest = Buffer::from(data);
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

fn invalid_response(url: &str, error: impl Display) -> SqlError {
    SqlError::new(format!("the answer of {url} cannot be read: {error}"))
}
