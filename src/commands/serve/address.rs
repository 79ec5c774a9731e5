//! The address of a listener, as given on the command line.

use crate::cli::exit_code::ExitError;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use tokio::net::TcpListener;

/// An address, or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenAddress {
    Off,
    At(SocketAddr),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let loopback =
            |port: &str| port.parse().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        let address = match text.strip_prefix(':').or_else(|| text.strip_prefix("localhost:")) {
            Some(port) => loopback(port).ok(),
            None => text.parse().ok(),
        };
        address
            .map(Self::At)
            .ok_or_else(|| "give an address as in 127.0.0.1:4318, :0 for any free port, or off".to_owned())
    }
}

impl ListenAddress {
    /// Binds the address. One that other machines can reach requires tokens, or `--insecure`.
    pub(super) async fn bind(self, flag: &str, allow_remote: bool) -> Result<Option<TcpListener>, ExitError> {
        let Self::At(address) = self else { return Ok(None) };
        if !address.ip().is_loopback() && !allow_remote {
            return Err(ExitError::listen_address(format!(
                "{flag} {address} can be reached by other machines, and nobody has to prove who they are; \
                 listen on 127.0.0.1, make tokens (`faultline token new`) and give them with --tokens, or add --insecure \
                 if the network is trusted"
            )));
        }
        match TcpListener::bind(address).await {
            Ok(listener) => Ok(Some(listener)),
            Err(error) => Err(ExitError::listen_address(format!(
                "cannot listen on {address}: {error}; stop what uses it, or choose another with {flag} \
                 (:0 takes any free port)"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let at = |text: &str| ListenAddress::At(text.parse().expect("an address"));
        assert_eq!("off".parse(), Ok(ListenAddress::Off));
        assert_eq!(":0".parse(), Ok(at("127.0.0.1:0")));
        assert_eq!("localhost:80".parse(), Ok(at("127.0.0.1:80")));
        assert_eq!("[::1]:4317".parse(), Ok(at("[::1]:4317")));
        for bad in ["", "4317", "host:1", ":99999", "on"] {
            assert!(bad.parse::<ListenAddress>().is_err(), "{bad}");
        }
    }
}
