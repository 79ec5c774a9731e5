//! OTLP as real senders use it: the OpenTelemetry SDK for Python, and bytes made by hand where no SDK would send them.
//! Rows are read back and compared, because a status of 200 proves nothing.
//!
//! | file | proves |
//! |---|---|
//! | `story` | the data of an SDK becomes the right rows, over every transport |
//! | `json` | OTLP/JSON in all its spellings becomes the same rows |
//! | `rules` | each MUST of OTLP over HTTP |
//! | `calls` | each MUST of OTLP over gRPC |
//! | `later` | a sender that is told to come back later loses nothing |
//! | `own_traces` | our own spans are sent, and never to ourselves |

mod calls;
pub(crate) mod client;
mod expected;
mod json;
mod later;
mod own_traces;
mod rules;
mod story;
pub(crate) mod wire;

use super::server::{Answer, Server};
use super::support::Folder;
use serde_json::Value;

/// The content type of protobuf.
pub(crate) const PROTOBUF: (&str, &str) = ("Content-Type", "application/x-protobuf");
/// The content type of JSON.
pub(crate) const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Starts a server with a small WAL, which is quickly read back.
pub(crate) fn start(folder: &Folder) -> Server {
    Server::start_with(folder, &["--wal-bytes", "16MiB"])
}

/// Posts a body in protobuf.
pub(crate) fn post_protobuf(server: &Server, path: &str, body: &[u8]) -> Answer {
    server.post(path, &[PROTOBUF], body)
}

/// Posts a body in JSON.
pub(crate) fn post_json(server: &Server, path: &str, body: &Value) -> Answer {
    server.post(path, &[JSON], body.to_string().as_bytes())
}
