//! Where the server is: at an address, or where its data directory says.

use super::Arguments;
use crate::client::Address;
use crate::places;
use std::path::PathBuf;
use store::DataDirectory;

/// Where the server is.
pub(super) enum Source {
    /// At this address.
    Server(Address),
    /// Whoever is using this data directory.
    Directory(PathBuf),
}

impl Source {
    pub(super) fn new(arguments: &Arguments) -> Self {
        match &arguments.server {
            Some(address) => Self::Server(address.clone()),
            None => Self::Directory(places::data_dir(arguments.data_dir.as_deref())),
        }
    }

    /// The address of its web listener, as it is now.
    pub(super) fn find(&self) -> Result<Address, String> {
        match self {
            Self::Server(address) => Ok(address.clone()),
            Self::Directory(path) => {
                let directory = DataDirectory::existing(path).map_err(|error| {
                    format!("{error}; start a server with `faultline serve`, or name one with --server")
                })?;
                Address::of_endpoint(directory.path(), "web").ok_or_else(|| {
                    format!(
                        "no server with a web listener is using {}; start one with `faultline serve`, or name one with --server",
                        path.display()
                    )
                })
            }
        }
    }
}
