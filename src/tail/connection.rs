//! A connection to `/api/v1/tail`, which goes on where the last one ended.

use super::Arguments;
use super::messages::Messages;
use crate::client::{self, Address, Http, Place, Problem, Told, Trust};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use std::time::Duration;
use tokio::time::timeout;

/// Where events are had.
pub(super) const PATH: &str = "/api/v1/tail";
const MEDIA: &str = "text/event-stream";
/// The newest events are looked for before the answer begins.
const PATIENCE: Duration = Duration::from_secs(60);
/// Refusals are short.
const REFUSAL_BYTES: usize = 1 << 20;

/// Why nothing comes any more.
pub(super) enum Lost {
    /// Nobody is there, or nobody who can be read from now.
    Away(String),
    /// What was asked makes no sense, and will not later.
    Refused(String),
    /// The connection has ended.
    Broken(String),
}

/// How to ask, and how far we have come.
pub(super) struct Connection {
    trust: Trust,
    /// The filters, as parameters.
    query: String,
    last: Option<String>,
}

impl Connection {
    pub(super) fn new(arguments: &Arguments) -> Self {
        Self { trust: arguments.trust.clone(), query: query(arguments), last: None }
    }

    /// Remembers how far we have come.
    pub(super) fn seen(&mut self, id: Option<String>) {
        self.last = id.or(self.last.take());
    }

    /// Asks for what comes after that.
    pub(super) async fn open(&self, address: &Address) -> Result<Messages, Lost> {
        let url = address.to_string();
        let client = Http::to(address, &self.trust).map_err(|error| Lost::Refused(format!("{error:#}")))?;
        let mut request = Request::get(format!("{url}{PATH}?{}", self.query)).header(ACCEPT, MEDIA);
        if let Some(last) = &self.last {
            request = request.header("last-event-id", last);
        }
        let request = request.body(Full::new(Bytes::new()));
        let request = request.map_err(|error| Lost::Refused(format!("cannot ask {url}: {error}")))?;
        let response = timeout(PATIENCE, client.request(request)).await;
        let response = response.map_err(|_| Lost::Away(format!("{url} does not answer")))?;
        let response = response.map_err(|error| {
            let explain = if error.is_connect() { client::away } else { client::broken };
            Lost::Away(explain(&url, &error))
        })?;
        let is_events = response.headers().get(CONTENT_TYPE).is_some_and(|media| media == MEDIA);
        if response.status() != StatusCode::OK || !is_events {
            return Err(refusal(&url, response).await);
        }
        Ok(Messages::new(url, response.into_body()))
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

async fn refusal(url: &str, response: Response<Incoming>) -> Lost {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, REFUSAL_BYTES).collect().await.map(http_body_util::Collected::to_bytes);
    let told = body.ok().and_then(|body| serde_json::from_slice::<Told>(&body).ok());
    match told {
        Some(told) if head.status.is_client_error() && head.status != StatusCode::NOT_FOUND => {
            Lost::Refused(told.error.sentence())
        }
        Some(told) if head.status.is_server_error() => {
            Lost::Away(format!("{url}: {}", told.error.sentence()))
        }
        _ => Lost::Away(format!(
            "{url} answered {}, which are no events; give the web address of a Faultline server, by default port 7070",
            head.status
        )),
    }
}

impl Problem {
    fn sentence(&self) -> String {
        let mut text = self.message.clone();
        if let Some(Place { line, column }) = self.position {
            text.push_str(&format!(" (line {line}, column {column} of the condition)"));
        }
        if let Some(remedy) = &self.remedy {
            text.push_str(&format!("; {remedy}"));
        }
        text
    }
}
