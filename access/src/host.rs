//! Whether a request means us.
//!
//! A page of somebody else can make a browser on this machine send requests to loopback, under a name of its own that it
//! lets point there (DNS rebinding). Such a request carries that name; one that means us carries an address or `localhost`.

use http::{HeaderMap, Uri, header};
use std::net::IpAddr;

/// Whether the host that a request names can only be ours.
#[must_use]
pub fn is_ours(uri: &Uri, headers: &HeaderMap) -> bool {
    let named = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or("?"));
    named.chain(uri.authority().map(http::uri::Authority::as_str)).all(is_local)
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.parse::<IpAddr>().is_ok() || name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_localhost_are_ours() {
        for ours in [
            "127.0.0.1",
            "127.0.0.1:7070",
            "localhost:7070",
            "LOCALHOST",
            "[::1]:80",
            "[::1]",
            "a.localhost:1",
            "10.0.0.7:4318",
        ] {
            assert!(is_local(ours), "{ours}");
        }
        for others in [
            "evil.example",
            "evil.example:7070",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "",
            "?",
        ] {
            assert!(!is_local(others), "{others}");
        }
    }
}
