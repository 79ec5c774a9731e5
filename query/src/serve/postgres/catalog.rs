//! What PostgreSQL clients ask about tables, columns and the server itself. Registered once, for all doors.
//!
//! `pg_catalog` is `datafusion-pg-catalog`'s, but for what it would say of databases and settings that are not ours;
//! `information_schema` is the engine's, but for tables and columns, which are told as PostgreSQL tells them.

mod descriptions;
mod functions;
mod information_schema;

use super::settings;
use crate::engine::CATALOG;
use arrow::array::{RecordBatch, StringArray};
use async_trait::async_trait;
use datafusion::catalog::view::ViewTable;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result, plan_datafusion_err};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};
use datafusion::prelude::SessionContext;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::setup_pg_catalog;
use std::sync::Arc;

const PG_CATALOG: &str = "pg_catalog";
const DATABASES: &str = "pg_database";
const SETTINGS: &str = "pg_settings";

/// Adds the catalog to a session that has its tables.
pub(crate) async fn register(context: &SessionContext) -> Result<()> {
    setup_pg_catalog(context, CATALOG, EmptyContextProvider)
        .map_err(|error| -> DataFusionError { *error })?;
    let catalog = context.catalog(CATALOG).ok_or_else(|| plan_datafusion_err!("there is no catalog"))?;
    let inner = catalog.schema(PG_CATALOG).ok_or_else(|| plan_datafusion_err!("there is no pg_catalog"))?;
    catalog.register_schema(PG_CATALOG, Arc::new(PgCatalog::new(inner).await?))?;
    functions::register(context);
    descriptions::register(context).await?;
    information_schema::register(context, &catalog).await?;
    number_tables(context).await
}

/// Gives every schema and table its number, in the order of their names: a client may ask one worker for the number, and
/// another one for what has it.
async fn number_tables(context: &SessionContext) -> Result<()> {
    for numbered in ["pg_database", "pg_namespace", "pg_class"] {
        context.sql(&format!("SELECT oid FROM {PG_CATALOG}.{numbered}")).await?.collect().await?;
    }
    Ok(())
}

/// `pg_catalog`, with our one database and our settings.
#[derive(Debug)]
struct PgCatalog {
    inner: Arc<dyn SchemaProvider>,
    databases: Arc<dyn TableProvider>,
    settings: Arc<dyn TableProvider>,
}

impl PgCatalog {
    async fn new(inner: Arc<dyn SchemaProvider>) -> Result<Self> {
        let databases = inner.table(DATABASES).await?;
        let databases = databases.ok_or_else(|| plan_datafusion_err!("there is no {DATABASES}"))?;
        let ours = LogicalPlanBuilder::scan(DATABASES, provider_as_source(databases), None)?
            .filter(col("datname").eq(lit(CATALOG)))?
            .build()?;
        Ok(Self {
            inner,
            databases: Arc::new(ViewTable::new(ours, None)),
            settings: Arc::new(settings_table()?),
        })
    }
}

#[async_trait]
impl SchemaProvider for PgCatalog {
    fn table_names(&self) -> Vec<String> {
        self.inner.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match name {
            DATABASES => Ok(Some(Arc::clone(&self.databases))),
            SETTINGS => Ok(Some(Arc::clone(&self.settings))),
            _ => self.inner.table(name).await,
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.inner.table_exist(name)
    }
}

/// The settings that nobody has changed.
fn settings_table() -> Result<MemTable> {
    let (names, values): (Vec<_>, Vec<_>) = settings::all().unzip();
    let nothing: StringArray = names.iter().map(|_| None::<&str>).collect();
    let text = |values| Arc::new(StringArray::from_iter_values::<&str, Vec<&str>>(values)) as _;
    let rows = RecordBatch::try_from_iter_with_nullable([
        ("name", text(names), true),
        ("setting", text(values), true),
        ("unit", Arc::new(nothing.clone()) as _, true),
        ("category", Arc::new(nothing.clone()) as _, true),
        ("short_desc", Arc::new(nothing) as _, true),
    ])?;
    MemTable::try_new(rows.schema(), vec![vec![rows]])
}
