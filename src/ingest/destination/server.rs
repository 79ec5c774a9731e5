//! Pieces to a running server, over HTTP: `POST /v1/envelopes`, compressed, each under its key.

use super::No;
use crate::client::{self, Address, Http, Trust};
use bytes::Bytes;
use collector::counters::ByCategory;
use collector::pipeline::{Answer, Defaults, Rejected};
use collector::receive::envelopes::LINES;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use serde::Deserialize;
use std::str::FromStr;
use std::time::Duration;
use taxonomy::Dialect;

/// An answer takes no longer than this, or it is asked for again.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Answers are short.
const ANSWER_BYTES: usize = 4 << 20;
/// A server that names no time is asked again after this.
const USUAL_PAUSE: Duration = Duration::from_secs(1);
/// Fast, and a log shrinks to a tenth all the same.
const LEVEL: i32 = 1;

/// The address of a server, as given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target(Address);

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Address::read(text, "http://127.0.0.1:4318", "/v1/envelopes").map(Self)
    }
}

impl Target {
    /// As it is shown.
    pub(crate) fn url(&self) -> String {
        self.0.to_string()
    }

    /// The name of the file that remembers what went there.
    pub(crate) fn file_name(&self) -> String {
        let tame = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' };
        let name: String = self.0.authority.chars().take(100).map(tame).collect();
        format!("ingest-{name}-{:016x}.json", xxhash_rust::xxh3::xxh3_64(self.0.authority.as_bytes()))
    }

    /// Where pieces are posted, with what holds for lines that do not say.
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
        let mark = if query.is_empty() { "" } else { "?" };
        let text = format!("{}/v1/envelopes{mark}{query}", self.url());
        text.parse().map_err(|error| format!("{text} is no address: {error}"))
    }
}

/// A server that takes pieces.
pub(crate) struct Server {
    client: Http,
    uri: Uri,
    url: String,
}

impl Server {
    pub(crate) fn new(target: &Target, trust: &Trust, defaults: &Defaults) -> anyhow::Result<Self> {
        let uri = target.uri(defaults).map_err(anyhow::Error::msg)?;
        Ok(Self { client: Http::to(&target.0, trust)?, uri, url: target.url() })
    }

    /// Sends a piece once.
    pub(super) async fn post(&self, body: Bytes, key: &str) -> Result<Answer, No> {
        let packed = tokio::task::spawn_blocking(move || zstd::bulk::compress(&body, LEVEL));
        let packed = match packed.await.map_err(std::io::Error::from).flatten() {
            Ok(packed) => packed,
            Err(error) => return Err(No::Never { reason: format!("cannot compress a piece: {error}") }),
        };
        let request = Request::post(self.uri.clone())
            .header(CONTENT_TYPE, LINES)
            .header(CONTENT_ENCODING, "zstd")
            .header("idempotency-key", key)
            .body(Full::new(Bytes::from(packed)))
            .map_err(|error| No::Never { reason: format!("cannot ask {}: {error}", self.url) })?;
        match tokio::time::timeout(TIMEOUT, self.ask(request)).await {
            Ok(answered) => answered,
            Err(_) => {
                let reason = format!("{} did not answer within {} s", self.url, TIMEOUT.as_secs());
                Err(No::Later { after: USUAL_PAUSE, reason, is_grave: false })
            }
        }
    }

    async fn ask(&self, request: Request<Full<Bytes>>) -> Result<Answer, No> {
        let response = match self.client.request(request).await {
            Ok(response) => response,
            Err(error) if error.is_connect() => {
                return Err(No::Away { reason: client::away(&self.url, &error) });
            }
            Err(error) => return Err(self.broken(&error)),
        };
        let (head, body) = response.into_parts();
        match Limited::new(body, ANSWER_BYTES).collect().await {
            Ok(body) => judge(&self.url, head.status, &head.headers, &body.to_bytes()),
            Err(error) => Err(self.broken(&*error)),
        }
    }

    /// The connection ended early: what became of the piece will show when it is sent again.
    fn broken(&self, error: &(dyn std::error::Error + 'static)) -> No {
        let reason = client::broken(&self.url, error);
        No::Later { after: Duration::from_millis(500), reason, is_grave: false }
    }
}

/// The answer of `/v1/envelopes`, or its refusal.
#[derive(Deserialize)]
struct Told {
    accepted: Option<u64>,
    #[serde(default)]
    events: u64,
    #[serde(default)]
    unrecognized: u64,
    #[serde(default)]
    rejected: Vec<Rejected>,
    rejected_count: Option<u64>,
    #[serde(default)]
    categories: ByCategory,
    error: Option<Problem>,
}

impl Told {
    /// The counts, if that is what came.
    fn answer(&mut self) -> Option<Answer> {
        let rejected = std::mem::take(&mut self.rejected);
        Some(Answer {
            accepted: self.accepted?,
            events: self.events,
            unrecognized: self.unrecognized,
            rejected_count: self.rejected_count.unwrap_or(rejected.len() as u64),
            rejected,
            categories: self.categories,
        })
    }
}

#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    message: String,
    #[serde(default)]
    remedy: String,
}

/// What an answer means for the piece. 400 with counts means that it was read, and no line of it was of use.
fn judge(url: &str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<Answer, No> {
    let mut told: Option<Told> = serde_json::from_slice(body).ok();
    let is_read = status.is_success() || status == StatusCode::BAD_REQUEST;
    if let Some(answer) = told.as_mut().filter(|_| is_read).and_then(Told::answer) {
        return Ok(answer);
    }
    let problem = told.and_then(|told| told.error);
    let is_ours = problem.is_some() && status != StatusCode::NOT_FOUND;
    let reason = match problem {
        Some(problem) => format!("{url} answered {status}: {}; {}", problem.message, problem.remedy),
        None => format!("{url} answered {status}; check that it is a Faultline server"),
    };
    Err(match status.as_u16() {
        413 => No::TooLarge { reason },
        422 if is_ours => No::KeyReused { reason },
        code @ (408 | 425 | 429 | 500 | 502 | 503 | 504) => {
            No::Later { after: pause(headers), reason, is_grave: code == 503 }
        }
        // Something else answers in its place: a proxy, or whoever has the port now.
        _ if !is_ours => No::Away { reason },
        _ => No::Never { reason },
    })
}

/// When the server wants to be asked again, within reason.
fn pause(headers: &HeaderMap) -> Duration {
    const LONGEST: u64 = 60;
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    seconds.map_or(USUAL_PAUSE, |seconds| Duration::from_secs(seconds.clamp(1, LONGEST)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taxonomy::Category;

    #[test]
    fn addresses() {
        for good in ["http://127.0.0.1:4318", "http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/envelopes"]
        {
            assert_eq!(good.parse::<Target>().unwrap().url(), "http://127.0.0.1:4318");
        }
        for (bad, words) in [
            ("127.0.0.1:4318", "http://"),
            ("ftp://h:1", "http://"),
            ("http://h:1/metrics", "neither a path"),
            ("http://h:1/?service=a", "neither a path"),
            ("not an address", "no address"),
        ] {
            let error = bad.parse::<Target>().unwrap_err();
            assert!(error.contains(words), "{bad}: {error}");
        }
        assert_eq!("https://H:1".parse::<Target>().unwrap().url(), "https://h:1");
        let defaults = Defaults {
            service: Some("a b&c".to_owned()),
            environment: None,
            dialect: Dialect::from_word("erlmcp"),
        };
        let target: Target = "http://h:1".parse().unwrap();
        assert_eq!(target.uri(&defaults).unwrap(), "http://h:1/v1/envelopes?service=a+b%26c&dialect=erlmcp");
        assert_eq!(target.uri(&Defaults::default()).unwrap(), "http://h:1/v1/envelopes");
    }

    #[test]
    fn every_server_has_a_file_of_its_own() {
        let name = |url: &str| url.parse::<Target>().unwrap().file_name();
        assert!(name("http://[::1]:4318").starts_with("ingest-___1__4318-"));
        assert_ne!(name("http://a:1"), name("http://a:2"));
        assert_eq!(name("http://A:1"), name("http://a:1/"));
    }

    fn judged(status: u16, retry: Option<&'static str>, body: &str) -> Result<Answer, No> {
        let mut headers = HeaderMap::new();
        retry.map(|value| headers.insert(RETRY_AFTER, http::HeaderValue::from_static(value)));
        judge("http://h", StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes())
    }

    #[test]
    fn answers_are_read() {
        let body = r#"{"accepted":3,"events":2,"unrecognized":1,"rejected":[],"categories":{"TOKEN":2}}"#;
        let answer = judged(200, None, body).unwrap();
        assert_eq!((answer.accepted, answer.events, answer.unrecognized), (3, 2, 1));
        assert_eq!(answer.categories.iter().collect::<Vec<_>>(), [(Category::Token, 2)]);
        let body = r#"{"accepted":0,"events":0,"unrecognized":0,"rejected":[{"line":1,"reason":"r"}],
                       "rejected_count":200,"error":{"code":"unreadable","message":"m","remedy":"r"}}"#;
        let answer = judged(400, None, body).unwrap();
        assert_eq!((answer.rejected.len(), answer.rejected_count), (1, 200));
    }

    #[test]
    fn refusals_are_told_apart() {
        let body = r#"{"error":{"code":"busy","message":"no room","remedy":"retry"}}"#;
        for (status, retry, seconds) in
            [(429, Some("7"), 7), (503, None, 1), (503, Some("9999"), 60), (500, Some("x"), 1)]
        {
            let Err(No::Later { after, reason, .. }) = judged(status, retry, body) else {
                panic!("{status}")
            };
            assert_eq!(after.as_secs(), seconds);
            assert!(reason.contains("no room; retry"), "{reason}");
        }
        assert!(matches!(judged(413, None, body), Err(No::TooLarge { .. })));
        assert!(matches!(judged(422, None, body), Err(No::KeyReused { .. })));
        for status in [400, 401, 415] {
            assert!(matches!(judged(status, None, body), Err(No::Never { .. })), "{status}");
        }
        assert!(matches!(judged(404, None, body), Err(No::Away { .. })), "another listener of ours");
        for status in [200, 301, 401, 404] {
            assert!(matches!(judged(status, None, "<html>"), Err(No::Away { .. })), "{status} of a stranger");
        }
    }
}
