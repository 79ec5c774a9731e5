//! The target of queries: a worker process on a data directory, or a running server.

use super::Arguments;
use super::error::SqlError;
use super::remote::{RemoteResult, RemoteServer};
use crate::config::{paths, registry};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use query::{Endpoint, Limits, QueryService, Rows, ServiceOptions, Session, StatementText, parameters};
use serde_json::Value;
use std::sync::Arc;
use store::DataDirectory;

/// The target of queries.
pub(super) enum QueryTarget {
    Directory { session: Session, path: String },
    RemoteServer(Box<RemoteServer>),
}

impl QueryTarget {
    /// Opens the target that the arguments name. It must not be called on an asynchronous thread.
    pub(super) fn open(arguments: &Arguments) -> anyhow::Result<Self> {
        match &arguments.server {
            Some(address) => Ok(Self::RemoteServer(Box::new(RemoteServer::new(
                address,
                &arguments.tls,
                arguments.timeout,
            )?))),
            None => Self::directory(arguments),
        }
    }

    fn directory(arguments: &Arguments) -> anyhow::Result<Self> {
        let path = paths::data_dir(arguments.data_dir.as_deref());
        let directory = DataDirectory::existing(&path)?;
        let registry = registry::read_file(arguments.registry.as_deref())?;
        // A mistake in the file is reported before anything runs.
        registry::from_file(registry.as_ref())?;
        let service = QueryService::new(ServiceOptions {
            data_dir: directory.path().to_owned(),
            registry,
            hash_key: hash_key(&directory)?,
            limits: limits(arguments),
            live: None,
        })?;
        Ok(Self::Directory { session: service.session(Endpoint::Local), path: path.display().to_string() })
    }

    /// Returns the name of the target for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Directory { path, .. } => format!("the data directory {path}"),
            Self::RemoteServer(server) => format!("the server at {}", server.url()),
        }
    }

    /// Starts a query. Dropping the future or the result stops the query.
    pub(super) async fn query(&self, statement: &str, values: &[Value]) -> Result<QueryResult, SqlError> {
        match self {
            Self::Directory { session, .. } => {
                let started = session.run(&StatementText::plain(statement), &parameters(values)?).await?;
                Ok(QueryResult::Directory(started.rows))
            }
            Self::RemoteServer(server) => {
                Ok(QueryResult::RemoteServer(Box::new(server.query(statement, values).await?)))
            }
        }
    }
}

/// Reads the hash key if it exists. A command that only reads creates none, and without a key nothing was hashed with
/// one.
fn hash_key(directory: &DataDirectory) -> anyhow::Result<[u8; 16]> {
    let is_there = directory.path().join("hash.key").exists();
    Ok(if is_there { directory.hash_key()? } else { [0; 16] })
}

/// Returns the limits: one user runs one query at a time, and may have all rows of a result.
fn limits(arguments: &Arguments) -> Limits {
    let memory = usize::try_from(arguments.memory).unwrap_or(usize::MAX);
    Limits { time: arguments.timeout, query_memory: memory, memory, rows: usize::MAX, ..Limits::DEFAULT }
}

/// The rows of a result, as they arrive.
pub(super) enum QueryResult {
    Directory(Rows),
    RemoteServer(Box<RemoteResult>),
}

impl QueryResult {
    pub(super) fn schema(&self) -> SchemaRef {
        match self {
            Self::Directory(rows) => Arc::clone(rows.schema()),
            Self::RemoteServer(remote) => remote.schema(),
        }
    }

    /// Returns true when the server left out rows.
    pub(super) fn is_truncated(&self) -> bool {
        matches!(self, Self::RemoteServer(remote) if remote.is_truncated())
    }

    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        match self {
            Self::Directory(rows) => Ok(rows.next().await.transpose()?),
            Self::RemoteServer(remote) => remote.next().await,
        }
    }
}
