//! Who answers: a worker process on a data directory, or a running server.

use super::Arguments;
use super::failure::Failure;
use super::served::{Served, Server};
use crate::{places, registry};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use query::{Limits, QueryService, Rows, ServiceOptions, Session, StatementText, Via, parameters};
use serde_json::Value;
use std::sync::Arc;
use store::DataDirectory;

/// Who answers.
pub(super) enum Place {
    Directory { session: Session, path: String },
    Server(Box<Server>),
}

impl Place {
    /// Opens the place that the arguments name. Must not be called on an asynchronous thread.
    pub(super) fn open(arguments: &Arguments) -> anyhow::Result<Self> {
        match &arguments.server {
            Some(address) => {
                Ok(Self::Server(Box::new(Server::new(address, &arguments.trust, arguments.timeout)?)))
            }
            None => Self::directory(arguments),
        }
    }

    fn directory(arguments: &Arguments) -> anyhow::Result<Self> {
        let path = places::data_dir(arguments.data_dir.as_deref());
        let directory = DataDirectory::existing(&path)?;
        let registry = registry::read(arguments.registry.as_deref())?;
        // A mistake in the file is told before anything runs.
        registry::of_file(registry.as_ref())?;
        let service = QueryService::new(ServiceOptions {
            data_dir: directory.path().to_owned(),
            registry,
            hash_key: hash_key(&directory)?,
            limits: limits(arguments),
            live: None,
        })?;
        Ok(Self::Directory { session: service.session(Via::Local), path: path.display().to_string() })
    }

    /// Where that is, for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Directory { path, .. } => format!("the data directory {path}"),
            Self::Server(server) => format!("the server at {}", server.url()),
        }
    }

    /// Asks. Whoever drops this, or the answer, stops the query.
    pub(super) async fn ask(&self, statement: &str, values: &[Value]) -> Result<Answer, Failure> {
        match self {
            Self::Directory { session, .. } => {
                let started = session.run(&StatementText::plain(statement), &parameters(values)?).await?;
                Ok(Answer::Directory(started.rows))
            }
            Self::Server(server) => Ok(Answer::Server(Box::new(server.ask(statement, values).await?))),
        }
    }
}

/// The key that is there; whoever only reads makes none, and without one there is nothing that was hashed with it.
fn hash_key(directory: &DataDirectory) -> anyhow::Result<[u8; 16]> {
    let is_there = directory.path().join("hash.key").exists();
    Ok(if is_there { directory.hash_key()? } else { [0; 16] })
}

/// One person asks one question at a time, and may have all rows of an answer.
fn limits(arguments: &Arguments) -> Limits {
    let memory = usize::try_from(arguments.memory).unwrap_or(usize::MAX);
    Limits { time: arguments.timeout, query_memory: memory, memory, rows: usize::MAX, ..Limits::DEFAULT }
}

/// The rows that were asked for, as they come.
pub(super) enum Answer {
    Directory(Rows),
    Server(Box<Served>),
}

impl Answer {
    pub(super) fn schema(&self) -> SchemaRef {
        match self {
            Self::Directory(rows) => Arc::clone(rows.schema()),
            Self::Server(served) => served.schema(),
        }
    }

    /// Whether the server left out rows.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self, Self::Server(served) if served.is_cut())
    }

    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        match self {
            Self::Directory(rows) => Ok(rows.next().await.transpose()?),
            Self::Server(served) => served.next().await,
        }
    }
}
