//! Plain HTTP to a running server: what all commands that talk to one have in common.

use anyhow::Context;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Uri};
use http_body_util::Full;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;

/// Sends requests, each with what we say of ourselves.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    authorization: Option<HeaderValue>,
}

/// A client; it connects when it is first used.
pub(crate) fn http() -> anyhow::Result<Http> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    Ok(Http { client, authorization: authorization()? })
}

impl Http {
    /// Sends a request.
    pub(crate) fn request(&self, mut request: Request<Full<Bytes>>) -> ResponseFuture {
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        self.client.request(request)
    }
}

/// What we say of ourselves: the token of the environment.
fn authorization() -> anyhow::Result<Option<HeaderValue>> {
    let token = match (std::env::var("FAULTLINE_TOKEN"), std::env::var_os("FAULTLINE_TOKEN_FILE")) {
        (Ok(token), _) if !token.is_empty() => token,
        (_, Some(file)) => std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read FAULTLINE_TOKEN_FILE '{}'", file.display()))?,
        _ => return Ok(None),
    };
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
        .map_err(|_| anyhow::anyhow!("the token in the environment has characters that no token has"))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// Reads the address of a server as it is given on the command line, and returns its host and port. The path that we
/// would add ourselves may be there.
pub(crate) fn authority(text: &str, example: &str, path: &str) -> Result<String, String> {
    let example = format!("give one as in {example}");
    let uri: Uri = text.parse().map_err(|error| format!("this is no address ({error}); {example}"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(format!(
                "https is not spoken yet; use a server on this machine or a tunnel to it, and {example}"
            ));
        }
        _ => return Err(format!("the address must start with http://; {example}")),
    }
    let is_ours = ["", "/", path].contains(&uri.path()) && uri.query().is_none();
    match uri.authority() {
        Some(authority) if is_ours => Ok(authority.as_str().to_ascii_lowercase()),
        _ => Err(format!("the address takes neither a path nor parameters; {example}")),
    }
}

/// What a server of ours says when it refuses.
#[derive(Deserialize)]
pub(crate) struct Told {
    pub(crate) error: Problem,
}

/// What is wrong, where, and what to do.
#[derive(Deserialize)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) position: Option<Place>,
    pub(crate) remedy: Option<String>,
}

/// A place in a statement.
#[derive(Deserialize)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// Nobody is there.
pub(crate) fn away(url: &str, error: &dyn std::error::Error) -> String {
    format!("cannot reach {url}: {}; check that a server listens there", innermost(error))
}

/// Somebody was there, and is not any more.
pub(crate) fn broken(url: &str, error: &dyn std::error::Error) -> String {
    format!("the connection to {url} broke: {}", innermost(error))
}

/// What an error comes from: the outer ones only say that there was one.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
