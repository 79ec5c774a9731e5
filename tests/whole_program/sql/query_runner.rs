//! Runs one query, by the library on a data directory or through a running server, and returns its result as texts.

use crate::whole_program::server::ask;
use arrow::array::RecordBatch;
use arrow::json::{WriterBuilder, writer::JsonArray};
use classifier::{HashKey, Registry, Rules};
use query::{DataSource, Engine, Limits, QueryError};
use serde_json::Value;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use store::DataDirectory;
use store::disk::RealDisk;
use store::snapshot::Horizon;
use tokio::runtime::Runtime;

/// The target of the queries.
pub(super) enum QueryRunner {
    Library { engine: Engine, runtime: Runtime },
    Server(SocketAddr),
}

/// A result: the columns with the names of their types, and the cells as JSON.
pub(super) struct Table {
    pub(super) columns: Vec<(String, String)>,
    pub(super) rows: Vec<Vec<Value>>,
}

/// The reason why a query failed.
#[derive(Debug)]
pub(super) struct QueryFailure(pub(super) String);

impl fmt::Display for QueryFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<QueryError> for QueryFailure {
    fn from(error: QueryError) -> Self {
        Self(error.to_string())
    }
}

impl QueryRunner {
    /// Returns the library, on a data directory that a server may be using.
    pub(super) fn of_directory(path: &Path) -> Self {
        let directory = DataDirectory::existing(path).expect("a data directory");
        let source = DataSource::new(Arc::new(RealDisk), directory);
        let registry = Registry::builtin().expect("the registry");
        let rules = Arc::new(Rules::new(registry, HashKey::FIXED, classifier::Limits::default()));
        let engine = Engine::new(source, &rules, Limits::default()).expect("an engine");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self::Library { engine, runtime }
    }

    /// Runs one query, and returns its result.
    pub(super) fn query(&self, sql: &str) -> Result<Table, QueryFailure> {
        match self {
            Self::Library { engine, runtime } => runtime.block_on(of_engine(engine, sql)),
            Self::Server(address) => of_server(*address, sql),
        }
    }
}

async fn of_engine(engine: &Engine, sql: &str) -> Result<Table, QueryFailure> {
    let mut answer = engine.session(Horizon::ALL).query(sql).await?;
    let fields = answer.schema().fields();
    let columns =
        fields.iter().map(|field| (field.name().clone(), query::types::postgres_name(field.data_type())));
    let columns: Vec<(String, String)> = columns.collect();
    let mut rows = Vec::new();
    while let Some(batch) = answer.next().await {
        rows.extend(in_order(&columns, &as_json(&batch?)));
    }
    Ok(Table { columns, rows })
}

fn as_json(batch: &RecordBatch) -> Value {
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(Vec::new());
    writer.write(batch).expect("rows as JSON");
    writer.finish().expect("rows as JSON");
    serde_json::from_slice(&writer.into_inner()).expect("JSON")
}

fn of_server(address: SocketAddr, sql: &str) -> Result<Table, QueryFailure> {
    let headers = [("Content-Type", "text/plain; charset=utf-8"), ("Accept", "application/json")];
    let answer = ask(address, "POST", "/api/v1/sql", &headers, sql.as_bytes()).expect("an answer");
    let body = answer.json();
    if answer.status != 200 {
        return Err(refused(&body["error"]));
    }
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let columns = body["columns"].as_array().expect("columns").iter();
    let columns: Vec<(String, String)> =
        columns.map(|column| (text(&column["name"]), text(&column["type"]))).collect();
    let rows = in_order(&columns, &body["rows"]);
    Ok(Table { columns, rows })
}

/// Returns the error of a response as the library would have returned it.
fn refused(error: &Value) -> QueryFailure {
    let mut text = error["message"].as_str().expect("a message").to_owned();
    if let Some(location) = error["position"].as_object() {
        text.push_str(&format!(" (line {}, column {})", location["line"], location["column"]));
    }
    if let Some(remedy) = error["remedy"].as_str() {
        text.push_str(&format!("; {remedy}"));
    }
    QueryFailure(text)
}

fn in_order(columns: &[(String, String)], rows: &Value) -> Vec<Vec<Value>> {
    let row = |row: &Value| columns.iter().map(|(name, _)| row[name.as_str()].clone()).collect();
    rows.as_array().expect("rows").iter().map(row).collect()
}
