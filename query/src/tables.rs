//! The tables of the engine: the stored ones, and the tables `codes` and `columns`, which describe the others.

mod buffered_rows;
mod codes;
pub mod columns;
mod file_pruning;
mod provider;

use crate::source::DataSource;
use crate::views;
use arrow::datatypes::SchemaRef;
pub(crate) use buffered_rows::ColumnProjection;
use classifier::Registry;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider};
use datafusion::common::{Result, plan_err};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::object_store::{ObjectStoreRegistry, ObjectStoreUrl};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use provider::StoredTable;
use std::sync::Arc;
use store::{TABLES, Table};
use url::Url;

/// The stored tables that can be queried.
pub const STORED_TABLES: [Table; 4] = [Table::Events, Table::EventCounts, Table::Traffic, Table::Rejects];

/// The size of the cache for the footers of Parquet files, in each worker process. It holds those of a few hundred
/// files.
const METADATA_CACHE_BYTES: usize = 24 << 20;

/// Returns the names of all tables and views.
pub fn names() -> impl Iterator<Item = &'static str> {
    let tables = STORED_TABLES.into_iter().map(Table::name).chain([codes::NAME, columns::NAME]);
    tables.chain(views::ALL.iter().map(|view| view.name))
}

/// Returns every table and view with the description of its rows.
pub fn descriptions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let stored = STORED_TABLES.into_iter().map(|table| (table.name(), table.about()));
    let own = [(codes::NAME, codes::ABOUT), (columns::NAME, columns::ABOUT)];
    stored.chain(own).chain(views::ALL.iter().map(|view| (view.name, view.about)))
}

/// Returns the columns of a stored table as the engine reads them.
pub(crate) fn table_schema(table: Table) -> SchemaRef {
    Arc::clone(StoredTable::new(table).schema())
}

/// Adds the tables to the schema.
pub(crate) fn register(schema: &MemorySchemaProvider, registry: &Registry) -> Result<()> {
    for table in STORED_TABLES {
        schema.register_table(table.name().to_owned(), Arc::new(StoredTable::new(table)))?;
    }
    schema.register_table(codes::NAME.to_owned(), Arc::new(codes::table(registry)?))?;
    Ok(())
}

/// Returns the environment in which files are read. It reaches only the folder of the tables, and spills nothing to
/// disk.
pub(crate) fn runtime_env(source: &DataSource) -> Result<Arc<RuntimeEnv>> {
    // There are no tables before the first flush, and a reader must not create their folder.
    let store = PrefixStore::new(LocalFileSystem::new_with_prefix(source.path())?, TABLES);
    RuntimeEnvBuilder::new()
        .with_object_store_registry(Arc::new(TableStoreRegistry(Arc::new(store))))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
        .with_metadata_cache_limit(METADATA_CACHE_BYTES)
        .build_arc()
}

/// Returns the URL under which files are reached.
fn url() -> Result<ObjectStoreUrl> {
    ObjectStoreUrl::parse("faultline://tables")
}

/// Gives access to the files of the tables, and to no other files.
#[derive(Debug)]
struct TableStoreRegistry(Arc<dyn ObjectStore>);

impl ObjectStoreRegistry for TableStoreRegistry {
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        match url.scheme() {
            "faultline" => Ok(Arc::clone(&self.0)),
            _ => plan_err!("only the tables of Faultline can be read"),
        }
    }
}
