//! The catalog that PostgreSQL clients query for tables, columns and the server itself. Every endpoint offers it.
//!
//! `pg_catalog` is that of `datafusion-pg-catalog`, except for the databases and settings. `information_schema` is that of
//! the engine, except for tables and columns, which have the form that PostgreSQL gives them.

mod descriptions;
mod functions;
mod information_schema;

use super::catalog_rewriting::EMPTY_TABLES;
use super::settings;
use crate::engine::CATALOG;
use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::catalog::view::ViewTable;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue, plan_datafusion_err};
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, col, lit};
use datafusion::prelude::SessionContext;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::setup_pg_catalog;
use std::sync::Arc;

const PG_CATALOG: &str = "pg_catalog";
const DATABASES: &str = "pg_database";
const SETTINGS: &str = "pg_settings";
const CLASSES: &str = "pg_class";

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

/// Gives every schema and table its number, in the order of the names, because a client may get a number from one worker
/// and use it in another.
async fn number_tables(context: &SessionContext) -> Result<()> {
    for numbered in ["pg_database", "pg_namespace", "pg_class"] {
        context.sql(&format!("SELECT oid FROM {PG_CATALOG}.{numbered}")).await?.collect().await?;
    }
    Ok(())
}

/// `pg_catalog` with the one database and the settings of this server, and with the column for the options of tables.
#[derive(Debug)]
struct PgCatalog {
    inner: Arc<dyn SchemaProvider>,
    databases: Arc<dyn TableProvider>,
    classes: Arc<dyn TableProvider>,
    settings: Arc<dyn TableProvider>,
}

impl PgCatalog {
    async fn new(inner: Arc<dyn SchemaProvider>) -> Result<Self> {
        let table = async |name: &str| {
            let table = inner.table(name).await?.ok_or_else(|| plan_datafusion_err!("there is no {name}"))?;
            LogicalPlanBuilder::scan(name, provider_as_source(table), None)
        };
        let no_options = lit(ScalarValue::new_null_list(DataType::Utf8, true, 1)).alias("reloptions");
        let classes = table(CLASSES).await?;
        let columns = classes.schema().columns().into_iter().map(Expr::Column);
        let columns: Vec<_> = columns.chain([no_options]).collect();
        let classes = classes.project(columns)?.build()?;
        let databases = table(DATABASES).await?.filter(col("datname").eq(lit(CATALOG)))?.build()?;
        Ok(Self {
            inner,
            databases: Arc::new(ViewTable::new(databases, None)),
            classes: Arc::new(ViewTable::new(classes, None)),
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
            CLASSES => Ok(Some(Arc::clone(&self.classes))),
            SETTINGS => Ok(Some(Arc::clone(&self.settings))),
            // `datafusion-pg-catalog` has the rows of PostgreSQL's own objects in some of them.
            _ if EMPTY_TABLES.contains(&name) => {
                let table = self.inner.table(name).await?;
                Ok(table.map(|table| Arc::new(EmptyTable::new(table.schema())) as _))
            }
            _ => self.inner.table(name).await,
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.inner.table_exist(name)
    }
}

/// Returns the table of the settings, with their defaults.
fn settings_table() -> Result<MemTable> {
    let (names, values): (Vec<_>, Vec<_>) = settings::all().unzip();
    let nulls: StringArray = names.iter().map(|_| None::<&str>).collect();
    let text = |values| Arc::new(StringArray::from_iter_values::<&str, Vec<&str>>(values)) as _;
    let rows = RecordBatch::try_from_iter_with_nullable([
        ("name", text(names), true),
        ("setting", text(values), true),
        ("unit", Arc::new(nulls.clone()) as _, true),
        ("category", Arc::new(nulls.clone()) as _, true),
        ("short_desc", Arc::new(nulls) as _, true),
    ])?;
    MemTable::try_new(rows.schema(), vec![vec![rows]])
}
