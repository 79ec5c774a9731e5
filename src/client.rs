//! Plain HTTP to a running server: what all commands that talk to one have in common.

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// Sends requests.
pub(crate) type Http = Client<HttpConnector, Full<Bytes>>;

/// A client; it connects when it is first used.
pub(crate) fn http() -> Http {
    Client::builder(TokioExecutor::new()).build_http()
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
