//! A connection to `/api/v1/tail`, which continues where the last one ended.

use super::Arguments;
use super::sse::EventStream;
use crate::client::{
    self, ClientTlsArgs, ErrorBody, ErrorPosition, ErrorResponse, HttpClient, ServerAddress,
};
use auth::Scope;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use std::time::Duration;
use tokio::time::timeout;

/// The path of the event stream.
pub(super) const PATH: &str = "/api/v1/tail";
const MEDIA: &str = "text/event-stream";
/// The longest time until the response begins. The server first looks up the newest events.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of an error response; these are short.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// The reason why no more events arrive.
pub(super) enum Disconnect {
    /// The server cannot be reached, or cannot serve tails now.
    Unreachable(String),
    /// The request is invalid, and a retry cannot help.
    Rejected(String),
    /// The connection has ended.
    Closed(String),
}

/// The request of a tail, with its position.
pub(super) struct Connection {
    tls: ClientTlsArgs,
    /// The filters, as URL parameters.
    query: String,
    position: Option<String>,
}

impl Connection {
    pub(super) fn new(arguments: &Arguments) -> Self {
        Self { tls: arguments.tls.clone(), query: query(arguments), position: None }
    }

    /// Sets the position after which the next connection continues.
    pub(super) fn set_position(&mut self, id: Option<String>) {
        self.position = id.or(self.position.take());
    }

    /// Requests the events after the position.
    pub(super) async fn open(&self, address: &ServerAddress) -> Result<EventStream, Disconnect> {
        let url = address.to_string();
        let client = HttpClient::new(address, &self.tls)
            .map_err(|error| Disconnect::Rejected(format!("{error:#}")))?;
        let mut request = Request::get(format!("{url}{PATH}?{}", self.query)).header(ACCEPT, MEDIA);
        if let Some(position) = &self.position {
            request = request.header("last-event-id", position);
        }
        let request = request.body(Full::new(Bytes::new()));
        let request = request.map_err(|error| Disconnect::Rejected(format!("cannot ask {url}: {error}")))?;
        let response = timeout(RESPONSE_TIMEOUT, client.request(request)).await;
        let response = response.map_err(|_| Disconnect::Unreachable(format!("{url} does not answer")))?;
        let response = response.map_err(|error| {
            let explain = if error.is_connect() { client::connect_error } else { client::connection_error };
            Disconnect::Unreachable(explain(&url, &error))
        })?;
        let is_events = response.headers().get(CONTENT_TYPE).is_some_and(|media| media == MEDIA);
        if response.status() != StatusCode::OK || !is_events {
            return Err(rejection(&url, response).await);
        }
        Ok(EventStream::new(url, response.into_body()))
    }
}

fn query(arguments: &Arguments) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let named =
        [("category", &arguments.category), ("service", &arguments.service), ("code", &arguments.code)];
    for (name, values) in named {
        for value in values {
            query.append_pair(name, value);
        }
    }
    if let Some(condition) = &arguments.condition {
        query.append_pair("where", condition);
    }
    query.append_pair("recent", &arguments.recent.to_string());
    query.finish()
}

async fn rejection(url: &str, response: Response<Incoming>) -> Disconnect {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_ERROR_BYTES).collect().await.map(http_body_util::Collected::to_bytes);
    let error_response = body.ok().and_then(|body| serde_json::from_slice::<ErrorResponse>(&body).ok());
    match error_response {
        Some(error_response) if head.status.is_client_error() && head.status != StatusCode::NOT_FOUND => {
            let error = error_response.error;
            let remedy = client::token_remedy(head.status, Scope::Query).or(error.remedy);
            Disconnect::Rejected(ErrorBody { remedy, ..error }.to_sentence())
        }
        Some(error_response) if head.status.is_server_error() => {
            Disconnect::Unreachable(format!("{url}: {}", error_response.error.to_sentence()))
        }
        _ => Disconnect::Unreachable(format!(
            "{url} answered {}, which are no events; give the web address of a Faultline server, by default port 7070",
            head.status
        )),
    }
}

impl ErrorBody {
    fn to_sentence(&self) -> String {
        let mut text = self.message.clone();
        if let Some(ErrorPosition { line, column }) = self.position {
            text.push_str(&format!(" (line {line}, column {column} of the condition)"));
        }
        if let Some(remedy) = &self.remedy {
            text.push_str(&format!("; {remedy}"));
        }
        text
    }
}
