//! The location of the server: an address, or the address in its data directory.

use super::Arguments;
use crate::client::ServerAddress;
use crate::config::paths;
use std::path::PathBuf;
use store::DataDirectory;

/// The location of the server.
pub(super) enum ServerLocation {
    /// The server has this address.
    Server(ServerAddress),
    /// The server is the one that uses this data directory.
    Directory(PathBuf),
}

impl ServerLocation {
    pub(super) fn new(arguments: &Arguments) -> Self {
        match &arguments.server {
            Some(address) => Self::Server(address.clone()),
            None => Self::Directory(paths::data_dir(arguments.data_dir.as_deref())),
        }
    }

    /// Returns the current address of the server's web listener.
    pub(super) fn resolve(&self) -> Result<ServerAddress, String> {
        match self {
            Self::Server(address) => Ok(address.clone()),
            Self::Directory(path) => {
                let directory = DataDirectory::existing(path).map_err(|error| {
                    format!("{error}; start a server with `faultline serve`, or name one with --server")
                })?;
                ServerAddress::from_endpoints_file(directory.path(), "web").ok_or_else(|| {
                    format!(
                        "no server with a web listener is using {}; start one with `faultline serve`, or name one with --server",
                        path.display()
                    )
                })
            }
        }
    }
}
