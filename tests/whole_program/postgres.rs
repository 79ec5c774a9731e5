//! The PostgreSQL endpoint, with common clients.
//!
//! | file | proves |
//! |---|---|
//! | `psql` | the shell's own commands, its errors, and that Ctrl-C stops a query |
//! | `psycopg` | both protocols, prepared statements, cursors, transactions, values of every type |
//! | `grafana` | the very queries of Grafana's PostgreSQL data source |
//! | `denied` | statements that nobody may run, over either protocol |
//! | `leaving` | queries that end early: by time, by request, by a client that goes, by a server that stops |
//! | `hostile` | bytes that violate the protocol, and clients that send nothing |
//!
//! Needs psql and the Python clients: a test that lacks one says so and fails.

mod denied;
mod grafana;
mod hostile;
mod leaving;
mod psql;
mod psycopg;
mod wire;

use super::otlp::client::python;
use super::server::Server;
use serde_json::Value;

/// Runs a topic of `tests/clients/postgres.py`.
#[track_caller]
fn client(server: &Server, topic: &str, given: &Value) -> Value {
    let port = server.address("postgres").port().to_string();
    python("postgres.py", &[&port, topic], given.to_string().as_bytes())
}
