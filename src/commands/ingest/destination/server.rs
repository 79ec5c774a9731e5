//! Sends chunks to a running server over HTTP: `POST /v1/envelopes`, compressed, each with its idempotency key.

use super::DeliveryError;
use crate::client::{self, ClientTlsArgs, HttpClient, ServerAddress};
use auth::Scope;
use bytes::Bytes;
use classifier::Dialect;
use collector::counters::CategoryCounts;
use collector::pipeline::{Defaults, IngestResponse, RejectedRecord};
use collector::receivers::envelopes::LINES;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use serde::Deserialize;
use std::str::FromStr;
use std::time::Duration;

/// The longest time for a response. After it, the request is retried.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of a response; responses are short.
const MAX_RESPONSE_BYTES: usize = 4 << 20;
/// The pause before a retry if the server names none.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);
/// The fastest level, at which a log still shrinks to a tenth.
const ZSTD_LEVEL: i32 = 1;

/// The address of a server, as given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IngestUrl(ServerAddress);

impl FromStr for IngestUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        ServerAddress::parse(text, "http://127.0.0.1:4318", "/v1/envelopes").map(Self)
    }
}

impl IngestUrl {
    /// Returns the URL as it is displayed.
    pub(crate) fn url(&self) -> String {
        self.0.to_string()
    }

    /// Returns the name of the ledger file for this server.
    pub(crate) fn ledger_file_name(&self) -> String {
        let escape = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' };
        let name: String = self.0.authority.chars().take(100).map(escape).collect();
        format!("ingest-{name}-{:016x}.json", xxhash_rust::xxh3::xxh3_64(self.0.authority.as_bytes()))
    }

    /// Returns the URI to which chunks are posted, with the defaults for lines as parameters.
    fn uri(&self, defaults: &Defaults) -> Result<Uri, String> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let dialect = defaults.dialect.map(Dialect::as_str);
        let given = [
            ("service", defaults.service.as_deref()),
            ("environment", defaults.environment.as_deref()),
            ("dialect", dialect),
        ];
        for (name, value) in given {
            value.map(|value| query.append_pair(name, value));
        }
        let query = query.finish();
        let separator = if query.is_empty() { "" } else { "?" };
        let text = format!("{}/v1/envelopes{separator}{query}", self.url());
        text.parse().map_err(|error| format!("{text} is no address: {error}"))
    }
}

/// A server that accepts chunks.
pub(crate) struct IngestServer {
    client: HttpClient,
    uri: Uri,
    url: String,
}

impl IngestServer {
    pub(crate) fn new(target: &IngestUrl, tls: &ClientTlsArgs, defaults: &Defaults) -> anyhow::Result<Self> {
        let uri = target.uri(defaults).map_err(anyhow::Error::msg)?;
        Ok(Self { client: HttpClient::new(&target.0, tls)?, uri, url: target.url() })
    }

    /// Sends a chunk once.
    pub(super) async fn post(&self, body: Bytes, key: &str) -> Result<IngestResponse, DeliveryError> {
        let compressed = tokio::task::spawn_blocking(move || zstd::bulk::compress(&body, ZSTD_LEVEL));
        let compressed = match compressed.await.map_err(std::io::Error::from).flatten() {
            Ok(compressed) => compressed,
            Err(error) => {
                return Err(DeliveryError::Permanent { reason: format!("cannot compress a piece: {error}") });
            }
        };
        let request = Request::post(self.uri.clone())
            .header(CONTENT_TYPE, LINES)
            .header(CONTENT_ENCODING, "zstd")
            .header("idempotency-key", key)
            .body(Full::new(Bytes::from(compressed)))
            .map_err(|error| DeliveryError::Permanent {
                reason: format!("cannot ask {}: {error}", self.url),
            })?;
        match tokio::time::timeout(TIMEOUT, self.send(request)).await {
            Ok(result) => result,
            Err(_) => {
                let reason = format!("{} did not answer within {} s", self.url, TIMEOUT.as_secs());
                Err(DeliveryError::Retry { after: DEFAULT_RETRY_AFTER, reason, needs_operator: false })
            }
        }
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<IngestResponse, DeliveryError> {
        let response = match self.client.request(request).await {
            Ok(response) => response,
            Err(error) if error.is_connect() => {
                return Err(DeliveryError::Unreachable { reason: client::connect_error(&self.url, &error) });
            }
            Err(error) => return Err(self.connection_error(&error)),
        };
        let (head, body) = response.into_parts();
        match Limited::new(body, MAX_RESPONSE_BYTES).collect().await {
            Ok(body) => interpret_response(&self.url, head.status, &head.headers, &body.to_bytes()),
            Err(error) => Err(self.connection_error(&*error)),
        }
    }

    /// Returns the error for a connection that ended early. A retry will show if the chunk was stored.
    fn connection_error(&self, error: &(dyn std::error::Error + 'static)) -> DeliveryError {
        let reason = client::connection_error(&self.url, error);
        DeliveryError::Retry { after: Duration::from_millis(500), reason, needs_operator: false }
    }
}

/// The response of `/v1/envelopes`, which has either counts or an error.
#[derive(Deserialize)]
struct EnvelopesResponse {
    accepted: Option<u64>,
    #[serde(default)]
    events: u64,
    #[serde(default)]
    unrecognized: u64,
    #[serde(default)]
    rejected: Vec<RejectedRecord>,
    rejected_count: Option<u64>,
    #[serde(default)]
    categories: CategoryCounts,
    error: Option<ErrorBody>,
}

impl EnvelopesResponse {
    /// Returns the counts, if the response has them.
    fn summary(&mut self) -> Option<IngestResponse> {
        let rejected = std::mem::take(&mut self.rejected);
        Some(IngestResponse {
            accepted: self.accepted?,
            events: self.events,
            unrecognized: self.unrecognized,
            rejected_count: self.rejected_count.unwrap_or(rejected.len() as u64),
            rejected,
            categories: self.categories,
            ignored: 0,
        })
    }
}

#[derive(Deserialize)]
struct ErrorBody {
    #[serde(default)]
    message: String,
    #[serde(default)]
    remedy: String,
}

/// Interprets a response. A status of 400 with counts means that the chunk was processed, and no line of it was usable.
fn interpret_response(
    url: &str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<IngestResponse, DeliveryError> {
    let mut response: Option<EnvelopesResponse> = serde_json::from_slice(body).ok();
    let was_processed = status.is_success() || status == StatusCode::BAD_REQUEST;
    if let Some(summary) = response.as_mut().filter(|_| was_processed).and_then(EnvelopesResponse::summary) {
        return Ok(summary);
    }
    let error = response.and_then(|response| response.error);
    let is_faultline = error.is_some() && status != StatusCode::NOT_FOUND;
    let reason = match error {
        Some(error) => {
            let remedy = client::token_remedy(status, Scope::Ingest).unwrap_or(error.remedy);
            format!("{url} answered {status}: {}; {remedy}", error.message)
        }
        None => format!("{url} answered {status}; check that it is a Faultline server"),
    };
    Err(match status.as_u16() {
        413 => DeliveryError::TooLarge { reason },
        422 if is_faultline => DeliveryError::KeyReused { reason },
        code @ (408 | 425 | 429 | 500 | 502 | 503 | 504) => {
            DeliveryError::Retry { after: retry_after(headers), reason, needs_operator: code == 503 }
        }
        // Something else responds at this address, such as a proxy or another program.
        _ if !is_faultline => DeliveryError::Unreachable { reason },
        _ => DeliveryError::Permanent { reason },
    })
}

/// Returns the time after which the server requests a retry, within limits.
fn retry_after(headers: &HeaderMap) -> Duration {
    const LONGEST: u64 = 60;
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    seconds.map_or(DEFAULT_RETRY_AFTER, |seconds| Duration::from_secs(seconds.clamp(1, LONGEST)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use classifier::Category;

    #[test]
    fn addresses() {
        for good in ["http://127.0.0.1:4318", "http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/envelopes"]
        {
            assert_eq!(good.parse::<IngestUrl>().unwrap().url(), "http://127.0.0.1:4318");
        }
        for (bad, words) in [
            ("127.0.0.1:4318", "http://"),
            ("ftp://h:1", "http://"),
            ("http://h:1/metrics", "neither a path"),
            ("http://h:1/?service=a", "neither a path"),
            ("not an address", "no address"),
        ] {
            let error = bad.parse::<IngestUrl>().unwrap_err();
            assert!(error.contains(words), "{bad}: {error}");
        }
        assert_eq!("https://H:1".parse::<IngestUrl>().unwrap().url(), "https://h:1");
        let defaults = Defaults {
            service: Some("a b&c".to_owned()),
            environment: None,
            dialect: Dialect::from_name("erlmcp"),
        };
        let target: IngestUrl = "http://h:1".parse().unwrap();
        assert_eq!(target.uri(&defaults).unwrap(), "http://h:1/v1/envelopes?service=a+b%26c&dialect=erlmcp");
        assert_eq!(target.uri(&Defaults::default()).unwrap(), "http://h:1/v1/envelopes");
    }

    #[test]
    fn every_server_has_a_file_of_its_own() {
        let name = |url: &str| url.parse::<IngestUrl>().unwrap().ledger_file_name();
        assert!(name("http://[::1]:4318").starts_with("ingest-___1__4318-"));
        assert_ne!(name("http://a:1"), name("http://a:2"));
        assert_eq!(name("http://A:1"), name("http://a:1/"));
    }

    fn interpret(
        status: u16,
        retry: Option<&'static str>,
        body: &str,
    ) -> Result<IngestResponse, DeliveryError> {
        let mut headers = HeaderMap::new();
        retry.map(|value| headers.insert(RETRY_AFTER, http::HeaderValue::from_static(value)));
        interpret_response("http://h", StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes())
    }

    #[test]
    fn answers_are_read() {
        let body = r#"{"accepted":3,"events":2,"unrecognized":1,"rejected":[],"categories":{"TOKEN":2}}"#;
        let summary = interpret(200, None, body).unwrap();
        assert_eq!((summary.accepted, summary.events, summary.unrecognized), (3, 2, 1));
        assert_eq!(summary.categories.iter().collect::<Vec<_>>(), [(Category::Token, 2)]);
        let body = r#"{"accepted":0,"events":0,"unrecognized":0,"rejected":[{"line":1,"reason":"r"}],
                       "rejected_count":200,"error":{"code":"unreadable","message":"m","remedy":"r"}}"#;
        let summary = interpret(400, None, body).unwrap();
        assert_eq!((summary.rejected.len(), summary.rejected_count), (1, 200));
    }

    #[test]
    fn refusals_are_told_apart() {
        let body = r#"{"error":{"code":"busy","message":"no room","remedy":"retry"}}"#;
        for (status, retry, seconds) in
            [(429, Some("7"), 7), (503, None, 1), (503, Some("9999"), 60), (500, Some("x"), 1)]
        {
            let Err(DeliveryError::Retry { after, reason, .. }) = interpret(status, retry, body) else {
                panic!("{status}")
            };
            assert_eq!(after.as_secs(), seconds);
            assert!(reason.contains("no room; retry"), "{reason}");
        }
        assert!(matches!(interpret(413, None, body), Err(DeliveryError::TooLarge { .. })));
        assert!(matches!(interpret(422, None, body), Err(DeliveryError::KeyReused { .. })));
        for status in [400, 401, 415] {
            assert!(
                matches!(interpret(status, None, body), Err(DeliveryError::Permanent { .. })),
                "{status}"
            );
        }
        assert!(
            matches!(interpret(404, None, body), Err(DeliveryError::Unreachable { .. })),
            "another listener of ours"
        );
        for status in [200, 301, 401, 404] {
            assert!(
                matches!(interpret(status, None, "<html>"), Err(DeliveryError::Unreachable { .. })),
                "{status} of a stranger"
            );
        }
    }
}
