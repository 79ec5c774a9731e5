//! A check that the `Host` header of a request names this server.
//!
//! A foreign web page can make a browser on this machine send requests to loopback, under a host name that its owner
//! has pointed there (DNS rebinding). Such a request carries that name, and the name has a dot, since others can only
//! own names with a dot. A genuine request carries an address, `localhost`, or a name without a dot that this machine
//! or its network assigned to the server.

use http::{HeaderMap, Uri, header};
use std::net::IpAddr;

/// Returns true when every host that the request names can only be this server.
#[must_use]
pub(crate) fn names_this_server(uri: &Uri, headers: &HeaderMap) -> bool {
    let hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().ok());
    hosts
        .chain(uri.authority().map(|authority| Some(authority.as_str())))
        .all(|host| host.is_some_and(is_local))
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.parse::<IpAddr>().is_ok() || !name.contains('.') || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_others_can_own_are_not_local() {
        let local = [
            "127.0.0.1",
            "127.0.0.1:7070",
            "localhost:7070",
            "LOCALHOST",
            "[::1]:80",
            "[::1]",
            "a.localhost:1",
            "10.0.0.7:4318",
        ];
        for host in local.into_iter().chain(["faultline:4318", "box", ""]) {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:7070",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "evil.example.",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
