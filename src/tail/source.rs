//! Where the server is: at an address, or where its data directory says.

use super::Arguments;
use crate::places;
use std::path::PathBuf;
use store::DataDirectory;

/// Where the server is.
pub(super) enum Source {
    /// At this host and port.
    Server(String),
    /// Whoever is using this data directory.
    Directory(PathBuf),
}

impl Source {
    pub(super) fn new(arguments: &Arguments) -> Self {
        match &arguments.server {
            Some(authority) => Self::Server(authority.clone()),
            None => Self::Directory(places::data_dir(arguments.data_dir.as_deref())),
        }
    }

    /// The host and port of its web listener, as they are now.
    pub(super) fn find(&self) -> Result<String, String> {
        match self {
            Self::Server(authority) => Ok(authority.clone()),
            Self::Directory(path) => {
                let directory = DataDirectory::existing(path).map_err(|error| {
                    format!("{error}; start a server with `faultline serve`, or name one with --server")
                })?;
                web_of(&directory).ok_or_else(|| {
                    format!(
                        "no server with a web listener is using {}; start one with `faultline serve`, or name one with --server",
                        path.display()
                    )
                })
            }
        }
    }
}

/// The address that a server wrote down when it started.
fn web_of(directory: &DataDirectory) -> Option<String> {
    let text = std::fs::read(directory.endpoints()).ok()?;
    let endpoints: serde_json::Value = serde_json::from_slice(&text).ok()?;
    endpoints.get("web")?.as_str().map(str::to_owned)
}
