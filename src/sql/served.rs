//! Questions to a running server: `POST /api/v1/sql`, answered by an Arrow stream that is read as it comes.

use super::failure::Failure;
use crate::client::{self, Address, Http, Place, Problem, Told, Trust};
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::reader::StreamDecoder;
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

/// Where questions are sent.
pub(super) const PATH: &str = "/api/v1/sql";
const ARROW: &str = "application/vnd.apache.arrow.stream";
/// Says that rows were left out.
const TRUNCATED: &str = "x-faultline-truncated";
/// Refusals are short.
const REFUSAL_BYTES: usize = 1 << 20;

/// What a client's connection carries.
type Body = hyper::body::Incoming;

/// A server to ask.
pub(super) struct Server {
    client: Http,
    url: String,
    /// How long an answer may take.
    time: Duration,
}

impl Server {
    pub(super) fn new(address: &Address, trust: &Trust, time: Duration) -> anyhow::Result<Self> {
        Ok(Self { client: Http::to(address, trust)?, url: address.to_string(), time })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Asks, and waits until the answer begins.
    pub(super) async fn ask(&self, statement: &str, values: &[Value]) -> Result<Served, Failure> {
        let until = Instant::now().checked_add(self.time).unwrap_or_else(Instant::now);
        let body = json!({"query": statement, "params": values}).to_string();
        let request = Request::post(format!("{}{PATH}", self.url()))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, ARROW)
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| Failure::new(format!("cannot ask {}: {error}", self.url())))?;
        let response = timeout_at(until, self.client.request(request));
        let response = response.await.map_err(|_| too_slow(self.time))?.map_err(|error| {
            let explain = if error.is_connect() { client::away } else { client::broken };
            Failure::new(explain(self.url(), &error))
        })?;
        if response.status() != StatusCode::OK || !is_arrow(&response) {
            return Err(self.refusal(response).await);
        }
        Served::begin(self, response, until).await
    }

    /// Why there is no answer.
    async fn refusal(&self, response: Response<Body>) -> Failure {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, REFUSAL_BYTES).collect().await.map(http_body_util::Collected::to_bytes);
        let told = body.ok().and_then(|body| serde_json::from_slice::<Told>(&body).ok());
        match told {
            // Other listeners of ours know no such path.
            Some(told) if head.status != StatusCode::NOT_FOUND => told.error.into(),
            _ => Failure {
                hint: Some("give the web address of a Faultline server, by default port 7070".to_owned()),
                ..Failure::new(format!("{} answered {}, which is no answer to SQL", self.url(), head.status))
            },
        }
    }
}

fn is_arrow<B>(response: &Response<B>) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|media| media == ARROW)
}

fn too_slow(time: Duration) -> Failure {
    Failure {
        hint: Some("narrow it, or allow more with --timeout".to_owned()),
        ..Failure::new(format!("the server did not answer within {time:?}"))
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let position = problem.position.map(|Place { line, column }| Position { line, column });
        Self { message: problem.message, position, hint: problem.remedy }
    }
}

/// The rows of an answer, as they come.
pub(super) struct Served {
    url: String,
    body: Body,
    decoder: StreamDecoder,
    /// Bytes that have come and are not read yet.
    rest: Buffer,
    /// A batch that came along with the schema.
    first: Option<RecordBatch>,
    schema: SchemaRef,
    until: Instant,
    time: Duration,
    is_cut: bool,
    ended: bool,
}

impl Served {
    async fn begin(server: &Server, response: Response<Body>, until: Instant) -> Result<Self, Failure> {
        let is_cut = response.headers().contains_key(TRUNCATED);
        let mut served = Self {
            url: server.url.clone(),
            body: response.into_body(),
            decoder: StreamDecoder::new(),
            rest: Buffer::default(),
            first: None,
            schema: Arc::new(Schema::empty()),
            until,
            time: server.time,
            is_cut,
            ended: false,
        };
        served.read_schema().await?;
        Ok(served)
    }

    async fn read_schema(&mut self) -> Result<(), Failure> {
        loop {
            let batch = self.decode()?;
            if let Some(schema) = self.decoder.schema() {
                self.schema = schema;
                self.first = batch;
                return Ok(());
            }
            if !self.receive().await? {
                return Err(unreadable(&self.url, "it ended before its columns"));
            }
        }
    }

    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        loop {
            if let Some(batch) = self.decode()? {
                return Ok(Some(batch));
            }
            if !self.receive().await? {
                self.decoder.finish().map_err(|error| unreadable(&self.url, error))?;
                return Ok(None);
            }
        }
    }

    fn decode(&mut self) -> Result<Option<RecordBatch>, Failure> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.decoder.decode(&mut self.rest).map_err(|error| unreadable(&self.url, error))
    }

    /// Waits for more bytes; false when there are none.
    async fn receive(&mut self) -> Result<bool, Failure> {
        while !self.ended {
            let frame = timeout_at(self.until, self.body.frame()).await.map_err(|_| too_slow(self.time))?;
            match frame {
                None => self.ended = true,
                Some(Err(error)) => return Err(Failure::new(client::broken(&self.url, &error))),
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

fn unreadable(url: &str, error: impl Display) -> Failure {
    Failure::new(format!("the answer of {url} cannot be read: {error}"))
}
