//! The HTTP client for a running server, with or without TLS, for all commands that connect to one.

mod tls;

pub(crate) use tls::ClientTlsArgs;

use anyhow::Context;
use auth::Scope;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use std::fmt;
use std::path::Path;

/// The file in which a server lists its addresses.
const ENDPOINTS: &str = "endpoints.json";

/// An HTTP client that sends its token with every request.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    authorization: Option<HeaderValue>,
}

impl HttpClient {
    /// Creates a client for one server. It connects when it is first used.
    pub(crate) fn new(address: &ServerAddress, tls: &ClientTlsArgs) -> anyhow::Result<Self> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls.client_config(address.is_https)?)
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, authorization: authorization()? })
    }

    /// Sends a request.
    pub(crate) fn request(&self, mut request: Request<Full<Bytes>>) -> ResponseFuture {
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        self.client.request(request)
    }
}

/// Returns the authorization header with the token from the environment, or `None` if there is none.
pub(crate) fn authorization() -> anyhow::Result<Option<HeaderValue>> {
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

/// The address of a server, which is displayed as a URL without a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    is_https: bool,
    /// The host and port.
    pub(crate) authority: String,
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_https { "https" } else { "http" }, self.authority)
    }
}

impl ServerAddress {
    /// Parses an address from the command line. It may have the path that the command would add itself.
    pub(crate) fn parse(text: &str, example: &str, path: &str) -> Result<Self, String> {
        let example = format!("give one as in {example}");
        let uri: Uri = text.parse().map_err(|error| format!("this is no address ({error}); {example}"))?;
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(format!("the address must start with http:// or https://; {example}")),
        };
        let is_ours = ["", "/", path].contains(&uri.path()) && uri.query().is_none();
        match uri.authority() {
            Some(authority) if is_ours => {
                Ok(Self { is_https, authority: authority.as_str().to_ascii_lowercase() })
            }
            _ => Err(format!("the address takes neither a path nor parameters; {example}")),
        }
    }

    /// Reads one of the addresses that a running server wrote to its data directory, by its name in that file.
    pub(crate) fn from_endpoints_file(directory: &Path, name: &str) -> Option<Self> {
        let text = std::fs::read(directory.join(ENDPOINTS)).ok()?;
        let endpoints: serde_json::Value = serde_json::from_slice(&text).ok()?;
        let authority = endpoints.get(name)?.as_str()?.to_owned();
        let is_https = endpoints.get("tls").and_then(serde_json::Value::as_bool).unwrap_or_default();
        Some(Self { is_https, authority })
    }
}

/// The response of a Faultline server that rejects a request.
#[derive(Deserialize)]
pub(crate) struct ErrorResponse {
    pub(crate) error: ErrorBody,
}

/// The error in such a response: the problem, its position, and the remedy.
#[derive(Deserialize)]
pub(crate) struct ErrorBody {
    pub(crate) message: String,
    pub(crate) position: Option<ErrorPosition>,
    pub(crate) remedy: Option<String>,
}

/// A position in a statement.
#[derive(Deserialize)]
pub(crate) struct ErrorPosition {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// Returns what to do about a response that denies access: the variables from which every command reads its token.
pub(crate) fn token_remedy(status: StatusCode, scope: Scope) -> Option<String> {
    let is_sent = authorization().is_ok_and(|authorization| authorization.is_some());
    match status {
        StatusCode::UNAUTHORIZED if is_sent => Some(format!(
            "check the token in FAULTLINE_TOKEN or in the file FAULTLINE_TOKEN_FILE: it must have the scope {scope}"
        )),
        StatusCode::UNAUTHORIZED => Some(format!(
            "put a token with the scope {scope} into FAULTLINE_TOKEN, or its file into FAULTLINE_TOKEN_FILE; \
             `faultline token new --scope {scope}` makes one"
        )),
        StatusCode::FORBIDDEN if is_sent => {
            Some(format!("put a token with the scope {scope} into FAULTLINE_TOKEN or FAULTLINE_TOKEN_FILE"))
        }
        _ => None,
    }
}

/// Returns the message if no server is there, or one whose certificate is not trusted.
pub(crate) fn connect_error(url: &str, error: &(dyn std::error::Error + 'static)) -> String {
    let innermost = innermost(error);
    let remedy = tls::remedy(error).unwrap_or("check that a server listens there");
    format!("cannot reach {url}: {innermost}; {remedy}")
}

/// Returns the message if a connection broke after it was established.
pub(crate) fn connection_error(url: &str, error: &(dyn std::error::Error + 'static)) -> String {
    let remedy = tls::remedy(error).map(|remedy| format!("; {remedy}")).unwrap_or_default();
    format!("the connection to {url} broke: {}{remedy}", innermost(error))
}

/// Returns the innermost cause of an error, since the outer ones carry no details.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
