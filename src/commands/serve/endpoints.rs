//! The addresses of the listeners, which users and scripts read from `endpoints.json`.

use std::net::SocketAddr;
use store::{DataDirectory, DirectoryError};

/// The addresses of the listeners that are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Endpoints {
    pub(crate) otlp_grpc: Option<SocketAddr>,
    pub(crate) otlp_http: Option<SocketAddr>,
    pub(crate) web: Option<SocketAddr>,
    pub(crate) postgres: Option<SocketAddr>,
    pub(crate) flight: Option<SocketAddr>,
    /// True if the listeners use TLS.
    pub(crate) tls: bool,
}

impl Endpoints {
    fn named(&self) -> [(&'static str, Option<SocketAddr>); 5] {
        [
            ("otlp_grpc", self.otlp_grpc),
            ("otlp_http", self.otlp_http),
            ("web", self.web),
            ("postgres", self.postgres),
            ("flight", self.flight),
        ]
    }

    /// Returns true when one of the listeners can be reached at this address.
    pub(super) fn includes(&self, host: &str, port: u16) -> bool {
        let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        let is_this_machine = host.eq_ignore_ascii_case("localhost")
            || ip.as_ref().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified());
        self.named().into_iter().filter_map(|(_, address)| address).any(|address| {
            address.port() == port && (is_this_machine || ip.as_ref().is_ok_and(|ip| *ip == address.ip()))
        })
    }

    /// Returns true when other machines can reach one of the listeners.
    pub(super) fn is_remotely_reachable(&self) -> bool {
        self.named().into_iter().filter_map(|(_, address)| address).any(|address| !address.ip().is_loopback())
    }

    /// Returns the scheme of HTTP addresses.
    pub(super) fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// Writes the addresses to the data directory.
    pub(super) fn write(&self, directory: &DataDirectory) -> Result<(), DirectoryError> {
        let mut object: serde_json::Map<_, _> = self
            .named()
            .into_iter()
            .filter_map(|(name, address)| Some((name.to_owned(), address?.to_string().into())))
            .collect();
        if self.tls {
            object.insert("tls".to_owned(), true.into());
        }
        let text = format!("{}\n", serde_json::Value::Object(object));
        directory.write(&directory.endpoints(), text.as_bytes())
    }

    /// Removes the file, since the server no longer listens.
    pub(super) fn remove(&self, directory: &DataDirectory) {
        match std::fs::remove_file(directory.endpoints()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!("cannot remove endpoints.json: {error}");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_addresses_are_known_under_every_name() {
        let at = |text: &str| text.parse().ok();
        let endpoints = Endpoints {
            otlp_grpc: at("127.0.0.1:4317"),
            otlp_http: at("10.0.0.5:4318"),
            web: None,
            postgres: None,
            flight: None,
            tls: false,
        };
        for (host, port) in [("localhost", 4317), ("127.0.0.1", 4317), ("[::1]", 4317), ("10.0.0.5", 4318)] {
            assert!(endpoints.includes(host, port), "{host}:{port}");
        }
        for (host, port) in [("localhost", 4319), ("10.0.0.6", 4318), ("collector", 4317)] {
            assert!(!endpoints.includes(host, port), "{host}:{port}");
        }
    }
}
