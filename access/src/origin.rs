//! Requests that a page of another origin makes through somebody's browser.
//!
//! A browser sends some requests for any page: forms, images, beacons, and `fetch` with a plain text. They come from
//! inside the network, and where no tokens are asked for, nothing else tells them from requests of our own clients. But
//! browsers say whose page it is: in `Origin`, and in `Sec-Fetch-Site`, which no page can set. So a request of another
//! origin is rejected unless the operator has listed that origin; a listed one also gets the headers of CORS, without
//! which `fetch` could not use what it may ask for.
//!
//! What always holds: a request without these headers is not from a page that we could protect anybody from, and passes;
//! one with headers that we do not understand does not.

use axum::body::Body;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::fmt;
use std::str::FromStr;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// Chromium asks this before a public page may reach a private address.
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST");
/// What a page may send when it does not say.
const HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, authorization, content-encoding, content-type, idempotency-key, last-event-id",
);
/// What a page may read beside the body.
const EXPOSED: HeaderValue = HeaderValue::from_static("retry-after, www-authenticate");
/// How many seconds a browser remembers the answer to a preflight.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");
const YES: HeaderValue = HeaderValue::from_static("true");

/// The origin of a page: a scheme, a host, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

impl Origin {
    /// Whether a host, as requests name it, is the one of this origin.
    fn is_host(&self, authority: &str) -> bool {
        let Some((host, port)) = host_and_port(authority) else { return false };
        host == self.host && port.or_else(|| default_port(&self.scheme)) == self.port
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no origin; write one as in https://grafana.example:3000");
        if text == "*" {
            return Err("'*' would let every page in; list the origins of your own pages".to_owned());
        }
        let (scheme, authority) = text.split_once("://").ok_or_else(wrong)?;
        let (host, port) = host_and_port(authority).ok_or_else(wrong)?;
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        if !is_scheme || host.is_empty() {
            return Err(wrong());
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

/// The host in lower case, and the port if one is named. None when it is something else.
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

/// Which pages may use the endpoints.
#[derive(Debug, Default)]
pub(crate) struct Origins(Vec<Origin>);

/// Whose page a request comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// Of nobody, or of our own.
    Own,
    /// Of a listed origin, as the request names it.
    Listed(HeaderValue),
    /// Of somebody else.
    Other,
}

impl Origins {
    pub(crate) fn new(listed: Vec<Origin>) -> Self {
        Self(listed)
    }

    /// Says whose page a request comes from.
    pub(crate) fn site(&self, head: &Parts) -> Site {
        let (Ok(site), Ok(origin)) =
            (single(&head.headers, &FETCH_SITE), single(&head.headers, &header::ORIGIN))
        else {
            return Site::Other;
        };
        let site = site.map(|site| site.to_str().unwrap_or_default());
        let Some(origin) = origin else {
            return match site {
                None | Some("same-origin" | "none") => Site::Own,
                Some("same-site" | "cross-site") if is_navigation(head) => Site::Own,
                Some(_) => Site::Other,
            };
        };
        // `null`, of sandboxed frames and files, is nobody's.
        let Some(named) = origin.to_str().ok().and_then(|text| text.parse::<Origin>().ok()) else {
            return Site::Other;
        };
        match site {
            _ if self.0.contains(&named) => Site::Listed(origin.clone()),
            // A proxy may have named another host to us; the browser knows better.
            Some("same-origin") => Site::Own,
            None | Some("none") if is_own(&named, &head.uri, &head.headers) => Site::Own,
            _ => Site::Other,
        }
    }
}

/// A person follows a link. What is answered is shown to that person, and the page it came from cannot read it.
fn is_navigation(head: &Parts) -> bool {
    let is = |name: &HeaderName, value: &str| {
        single(&head.headers, name).is_ok_and(|given| given.is_some_and(|given| given == value))
    };
    matches!(head.method, Method::GET | Method::HEAD)
        && is(&FETCH_MODE, "navigate")
        && is(&FETCH_DEST, "document")
}

/// Whether a request was sent to the origin that it comes from.
fn is_own(origin: &Origin, uri: &Uri, headers: &HeaderMap) -> bool {
    let hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().ok());
    let mut named = hosts.chain(uri.authority().map(|authority| Some(authority.as_str()))).peekable();
    named.peek().is_some() && named.all(|host| host.is_some_and(|host| origin.is_host(host)))
}

/// The value of a header that may be there once.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() { Err(()) } else { Ok(first) }
}

/// Whether a browser asks what a page of a listed origin may send.
pub(crate) fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight. No token is asked for yet: browsers send none with it.
pub(crate) fn preflight(head: &Parts) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    let asked = head.headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.unwrap_or(HEADERS));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED);
    if head.headers.contains_key(REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, YES);
    }
    response
}

/// Lets a page of a listed origin read a response.
pub(crate) fn share(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
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

    fn site(method: &str, headers: &[(&str, &str)]) -> Site {
        let listed = vec!["https://grafana.example".parse().unwrap()];
        let own = [("host", "127.0.0.1:4318")];
        Origins::new(listed).site(&head(method, &[&own, headers].concat()))
    }

    #[test]
    fn origins_are_read_as_browsers_write_them() {
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
    fn pages_of_others_are_told_from_everything_else() {
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
            assert_eq!(site(method, headers), Site::Own, "{method} {headers:?}");
        }
        let others: &[(&str, &[(&str, &str)])] = &[
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
        for (method, headers) in others {
            assert_eq!(site(method, headers), Site::Other, "{method} {headers:?}");
        }
        let listed = ("origin", "https://grafana.example");
        for headers in [&[listed][..], &[listed, ("sec-fetch-site", "cross-site")]] {
            assert!(matches!(site("POST", headers), Site::Listed(_)), "{headers:?}");
        }
    }
}
