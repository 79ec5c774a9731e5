//! Catalogs, schemas, and tables with their columns, as the engine reports them.

use super::status::unwritable;
use crate::engine::{CATALOG, SCHEMA};
use crate::error::QueryError;
use crate::statement::StatementText;
use crate::worker::Session;
use crate::{tables, types};
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow_flight::error::FlightError;
use arrow_flight::sql::{CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tonic::Status;

/// The table type of stored tables. [`VIEW`] is that of views, and [`SYSTEM`] that of tables that describe the others.
const TABLE: &str = "TABLE";
const VIEW: &str = "VIEW";
const SYSTEM: &str = "SYSTEM TABLE";

/// The metadata key of a column's type name, which clients read.
const TYPE_NAME: &str = "ARROW:FLIGHT:SQL:TYPE_NAME";
const REMARKS: &str = "ARROW:FLIGHT:SQL:REMARKS";

const LISTED: &str = "SELECT table_schema, table_name, table_type FROM information_schema.tables \
                      WHERE table_catalog = 'faultline' ORDER BY table_schema, table_name";

/// A table or view.
struct Listed {
    schema: String,
    name: String,
    kind: &'static str,
}

pub(super) fn catalogs(request: CommandGetCatalogs) -> Result<RecordBatch, Status> {
    let mut rows = request.into_builder();
    rows.append(CATALOG);
    rows.build().map_err(failed)
}

pub(super) fn table_types(request: CommandGetTableTypes) -> Result<RecordBatch, Status> {
    let mut rows = request.into_builder();
    for kind in [TABLE, VIEW, SYSTEM] {
        rows.append(kind);
    }
    rows.build().map_err(failed)
}

pub(super) async fn schemas(request: CommandGetDbSchemas, session: &Session) -> Result<RecordBatch, Status> {
    let listed = listed(session).await?;
    let names: BTreeSet<&str> = listed.iter().map(|table| table.schema.as_str()).collect();
    let mut rows = request.into_builder();
    for name in names {
        rows.append(CATALOG, name);
    }
    rows.build().map_err(failed)
}

/// Returns the tables that match the request. Only those are planned, to find their columns.
pub(super) async fn tables(request: CommandGetTables, session: &Session) -> Result<RecordBatch, Status> {
    let names = CommandGetTables { include_schema: false, ..request.clone() };
    let all = listed(session).await?;
    let fitting = fill(names, &all, |_| Ok(Arc::new(Schema::empty())))?;
    if !request.include_schema {
        return Ok(fitting);
    }
    let mut columns = HashMap::new();
    let (schemas, names) = (fitting.column(1).as_string::<i32>(), fitting.column(2).as_string::<i32>());
    for (schema, name) in schemas.iter().flatten().zip(names.iter().flatten()) {
        columns.insert((schema.to_owned(), name.to_owned()), columns_of(schema, name, session).await?);
    }
    let none = Arc::new(Schema::empty());
    let of = |table: &Listed| columns.get(&(table.schema.clone(), table.name.clone())).unwrap_or(&none);
    fill(request, &all, |table| Ok(Arc::clone(of(table))))
}

fn fill(
    request: CommandGetTables,
    tables: &[Listed],
    columns: impl Fn(&Listed) -> Result<SchemaRef, Status>,
) -> Result<RecordBatch, Status> {
    let mut rows = request.into_builder();
    for table in tables {
        let columns = columns(table)?;
        rows.append(CATALOG, &table.schema, &table.name, table.kind, &columns).map_err(failed)?;
    }
    rows.build().map_err(failed)
}

async fn listed(session: &Session) -> Result<Vec<Listed>, Status> {
    let mut rows = session.query(LISTED).await?;
    let mut listed = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let text = |column: usize, row: usize| batch.column(column).as_string::<i32>().value(row).to_owned();
        for row in 0..batch.num_rows() {
            let schema = text(0, row);
            let kind = match text(2, row).as_str() {
                _ if schema != SCHEMA => SYSTEM,
                "VIEW" => VIEW,
                _ => TABLE,
            };
            listed.push(Listed { schema, name: text(1, row), kind });
        }
    }
    Ok(listed)
}

/// Returns the columns of a table as its rows have them, each with the name of its type and its description.
async fn columns_of(schema: &str, table: &str, session: &Session) -> Result<SchemaRef, QueryError> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let text = StatementText::plain(format!("SELECT * FROM {}.{}", quoted(schema), quoted(table)));
    let described = session.describe(&text, None).await?;
    let field = |field: &Arc<Field>| {
        let about = if schema == SCHEMA { tables::columns::about(table, field.name()) } else { None };
        let mut said = HashMap::from([(TYPE_NAME.to_owned(), types::postgres_name(field.data_type()))]);
        said.extend(about.map(|about| (REMARKS.to_owned(), about.to_owned())));
        field.as_ref().clone().with_metadata(said)
    };
    Ok(Arc::new(Schema::new(described.schema.fields().iter().map(field).collect::<Vec<_>>())))
}

/// Returns the columns of the (empty) result for primary keys.
pub(super) fn primary_keys() -> SchemaRef {
    Arc::new(Schema::new(vec![
        text("catalog_name"),
        text("db_schema_name"),
        name("table_name"),
        name("column_name"),
        text("key_name"),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

/// Returns the columns of the (empty) result for foreign keys.
pub(super) fn foreign_keys() -> SchemaRef {
    Arc::new(Schema::new(vec![
        text("pk_catalog_name"),
        text("pk_db_schema_name"),
        name("pk_table_name"),
        name("pk_column_name"),
        text("fk_catalog_name"),
        text("fk_db_schema_name"),
        name("fk_table_name"),
        name("fk_column_name"),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name"),
        text("pk_key_name"),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}

fn text(column: &str) -> Field {
    Field::new(column, DataType::Utf8, true)
}

fn name(column: &str) -> Field {
    Field::new(column, DataType::Utf8, false)
}

fn failed(error: FlightError) -> Status {
    match error {
        FlightError::Arrow(error) => unwritable(&error),
        other => other.into(),
    }
}
