//! Protection against requests that a page of another origin makes through a user's browser.
//!
//! A browser sends some requests for any page: forms, images, beacons, and `fetch` with plain text. They come from
//! inside the network, and where no tokens are required, nothing else distinguishes them from requests of genuine
//! clients. But browsers name the page's origin in `Origin`, and describe its relation to the server in
//! `Sec-Fetch-Site`; no page can set either. So a request from another origin is denied unless the operator has allowed
//! that origin. A response to an allowed one also gets the CORS headers, without which `fetch` could not read it.
//!
//! Invariant: a request without these headers does not come from a page in a current browser, and is accepted; a
//! request whose headers have unknown values is denied.

use axum::body::Body;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::fmt;
use std::str::FromStr;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// Chromium sends this in the preflight before a public page may reach a private address.
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, POST");
/// The headers that a page may send when the preflight does not list any.
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, authorization, content-encoding, content-type, idempotency-key, last-event-id",
);
/// The response headers that a page may read.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static("retry-after, www-authenticate");
/// The number of seconds for which a browser caches the response to a preflight.
const PREFLIGHT_MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const TRUE: HeaderValue = HeaderValue::from_static("true");

/// The origin of a page: a scheme, a host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

impl Origin {
    /// Returns true when an authority, as given in a request, is the host and port of this origin.
    fn matches_authority(&self, authority: &str) -> bool {
        let Some((host, port)) = host_and_port(authority) else { return false };
        host == self.host && port.or_else(|| default_port(&self.scheme)) == self.port
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("'{text}' is not an origin; write one such as https://grafana.example:3000");
        if text == "*" {
            return Err("'*' would allow every page; list the origins of your own pages".to_owned());
        }
        let (scheme, authority) = text.split_once("://").ok_or_else(invalid)?;
        let (host, port) = host_and_port(authority).ok_or_else(invalid)?;
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        if !is_scheme || host.is_empty() {
            return Err(invalid());
        }
        let scheme = scheme.to_ascii_lowercase();
        let port = port.or_else(|| default_port(&scheme));
        Ok(Self { scheme, host, port })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        match self.port.filter(|port| default_port(&self.scheme) != Some(*port)) {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// Splits an authority into the host in lower case and the port, if there is one. Returns `None` if the text is
/// malformed.
fn host_and_port(authority: &str) -> Option<(String, Option<u16>)> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~[]:%".contains(c);
    if !authority.chars().all(is_plain) {
        return None;
    }
    let end = authority.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match authority[end..].rfind(':') {
        Some(colon) => {
            let colon = end + colon;
            (&authority[..colon], Some(authority[colon + 1..].parse().ok()?))
        }
        None => (authority, None),
    };
    let is_address = host.starts_with('[') && host.ends_with(']');
    (is_address || !host.contains([':', '[', ']'])).then(|| (host.to_ascii_lowercase(), port))
}

/// The origins whose pages may use the endpoints.
#[derive(Debug, Default)]
pub(crate) struct AllowedOrigins(Vec<Origin>);

/// The origin of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestOrigin {
    /// The request comes from no page, or from a page of this server.
    Own,
    /// The request comes from a page of an allowed origin, which is given as written in the request.
    Allowed(HeaderValue),
    /// The request comes from any other page.
    Foreign,
}

impl AllowedOrigins {
    pub(crate) fn new(origins: Vec<Origin>) -> Self {
        Self(origins)
    }

    /// Determines from its headers which origin a request comes from.
    pub(crate) fn classify(&self, head: &Parts) -> RequestOrigin {
        let (Ok(site), Ok(origin)) =
            (single_value(&head.headers, &FETCH_SITE), single_value(&head.headers, &header::ORIGIN))
        else {
            return RequestOrigin::Foreign;
        };
        let site = site.map(|site| site.to_str().unwrap_or_default());
        let Some(origin) = origin else {
            return match site {
                None | Some("same-origin" | "none") => RequestOrigin::Own,
                Some("same-site" | "cross-site") if is_navigation(head) => RequestOrigin::Own,
                Some(_) => RequestOrigin::Foreign,
            };
        };
        // Sandboxed frames and files send `null`, which is not an origin.
        let Some(parsed) = origin.to_str().ok().and_then(|text| text.parse::<Origin>().ok()) else {
            return RequestOrigin::Foreign;
        };
        match site {
            _ if self.0.contains(&parsed) => RequestOrigin::Allowed(origin.clone()),
            // A proxy may have changed the host; the browser knows the one that it addressed.
            Some("same-origin") => RequestOrigin::Own,
            None | Some("none") if is_own(&parsed, &head.uri, &head.headers) => RequestOrigin::Own,
            _ => RequestOrigin::Foreign,
        }
    }
}

/// Returns true when the request is a navigation: a user follows a link. The response is shown to that user, and the
/// page with the link cannot read it.
fn is_navigation(head: &Parts) -> bool {
    let has = |name: &HeaderName, value: &str| {
        single_value(&head.headers, name).is_ok_and(|sent| sent.is_some_and(|sent| sent == value))
    };
    matches!(head.method, Method::GET | Method::HEAD)
        && has(&FETCH_MODE, "navigate")
        && has(&FETCH_DEST, "document")
}

/// Returns true when a request was sent to the origin that it comes from.
fn is_own(origin: &Origin, uri: &Uri, headers: &HeaderMap) -> bool {
    let hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().ok());
    let mut hosts = hosts.chain(uri.authority().map(|authority| Some(authority.as_str()))).peekable();
    hosts.peek().is_some() && hosts.all(|host| host.is_some_and(|host| origin.matches_authority(host)))
}

/// Returns the value of a header that may occur at most once.
fn single_value<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() { Err(()) } else { Ok(first) }
}

/// Returns true for a CORS preflight.
pub(crate) fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Returns the response to a preflight. It needs no token, since browsers send none with it.
pub(crate) fn preflight_response(head: &Parts) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
    let requested = head.headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, requested.unwrap_or(ALLOWED_HEADERS));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE);
    if head.headers.contains_key(REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, TRUE);
    }
    response
}

/// Lets a page of an allowed origin read a response.
pub(crate) fn add_cors_headers(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(method: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().method(method).uri("/v1/envelopes");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn classify(method: &str, headers: &[(&str, &str)]) -> RequestOrigin {
        let allowed = vec!["https://grafana.example".parse().unwrap()];
        let own = [("host", "127.0.0.1:4318")];
        AllowedOrigins::new(allowed).classify(&head(method, &[&own, headers].concat()))
    }

    #[test]
    fn origins_are_parsed_as_browsers_write_them() {
        for (text, written) in [
            ("https://grafana.example", "https://grafana.example"),
            ("HTTPS://Grafana.Example:443", "https://grafana.example"),
            ("http://[::1]:3000", "http://[::1]:3000"),
            ("http://localhost:80", "http://localhost"),
            ("chrome-extension://abc", "chrome-extension://abc"),
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), written);
        }
        for bad in [
            "*",
            "null",
            "",
            "grafana.example",
            "https://",
            "https://a/b",
            "https://a:x",
            "https://u@a",
            "//a",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }

    #[test]
    fn requests_of_foreign_pages_are_recognised() {
        let navigation = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        let own: &[(&str, &[(&str, &str)])] = &[
            ("POST", &[]),
            ("GET", &[("sec-fetch-site", "none")]),
            ("POST", &[("sec-fetch-site", "same-origin")]),
            ("POST", &[("sec-fetch-site", "same-origin"), ("origin", "https://behind.a.proxy")]),
            ("POST", &[("origin", "http://127.0.0.1:4318")]),
            ("GET", &[("sec-fetch-site", "cross-site"), navigation[0], navigation[1]]),
        ];
        for (method, headers) in own {
            assert_eq!(classify(method, headers), RequestOrigin::Own, "{method} {headers:?}");
        }
        let foreign: &[(&str, &[(&str, &str)])] = &[
            ("POST", &[("origin", "null")]),
            ("POST", &[("origin", "http://127.0.0.1:4319")]),
            ("POST", &[("origin", "https://127.0.0.1:4318.evil.example")]),
            ("POST", &[("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")]),
            ("POST", &[("origin", "http://127.0.0.1:4319"), ("sec-fetch-site", "same-site")]),
            ("POST", &[("origin", "http://127.0.0.1:4318"), ("sec-fetch-site", "cross-site")]),
            ("POST", &[("origin", "http://127.0.0.1:4318"), ("origin", "http://evil.example")]),
            ("GET", &[("sec-fetch-site", "cross-site")]),
            ("GET", &[("sec-fetch-site", "same-site"), navigation[0], ("sec-fetch-dest", "iframe")]),
            ("POST", &[("sec-fetch-site", "cross-site"), navigation[0], navigation[1]]),
            ("GET", &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")]),
            ("GET", &[("sec-fetch-site", "something-new")]),
        ];
        for (method, headers) in foreign {
            assert_eq!(classify(method, headers), RequestOrigin::Foreign, "{method} {headers:?}");
        }
        let allowed = ("origin", "https://grafana.example");
        for headers in [&[allowed][..], &[allowed, ("sec-fetch-site", "cross-site")]] {
            assert!(matches!(classify("POST", headers), RequestOrigin::Allowed(_)), "{headers:?}");
        }
    }
}
