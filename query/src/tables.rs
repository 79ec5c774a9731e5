//! What is stored, as tables to ask about; and two that explain the others: `codes` and `columns`.

mod codes;
pub mod columns;
mod prune;
mod stored;
mod unsealed;

use crate::source::Source;
use crate::views;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider};
use datafusion::common::{Result, plan_err};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::object_store::{ObjectStoreRegistry, ObjectStoreUrl};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use std::sync::Arc;
use store::{TABLES, Table};
use stored::Stored;
use taxonomy::Registry;
pub(crate) use unsealed::Columns;
use url::Url;

/// The stored tables that can be asked about.
pub const STORED: [Table; 3] = [Table::Events, Table::Traffic, Table::Rejects];

/// Footers of files that were opened before, in each worker process; those of some hundred files.
const METADATA_CACHE: usize = 24 << 20;

/// The names of all tables and views.
pub fn names() -> impl Iterator<Item = &'static str> {
    let tables = STORED.into_iter().map(Table::name).chain([codes::NAME, columns::NAME]);
    tables.chain(views::ALL.iter().map(|view| view.name))
}

/// Every table and view, with what its rows are.
pub fn described() -> impl Iterator<Item = (&'static str, &'static str)> {
    let stored = STORED.into_iter().map(|table| (table.name(), table.about()));
    let own = [(codes::NAME, codes::ABOUT), (columns::NAME, columns::ABOUT)];
    stored.chain(own).chain(views::ALL.iter().map(|view| (view.name, view.about)))
}

/// The columns of a stored table as the engine knows them.
pub(crate) fn schema_of(table: Table) -> SchemaRef {
    Arc::clone(Stored::new(table).schema())
}

/// Puts the tables into the schema.
pub(crate) fn register(schema: &MemorySchemaProvider, registry: &Registry) -> Result<()> {
    for table in STORED {
        schema.register_table(table.name().to_owned(), Arc::new(Stored::new(table)))?;
    }
    schema.register_table(codes::NAME.to_owned(), Arc::new(codes::table(registry)?))?;
    Ok(())
}

/// What files are reached by: the folder of the tables and nothing else; nothing is spilled to the disk.
pub(crate) fn runtime_env(source: &Source) -> Result<Arc<RuntimeEnv>> {
    // There are no tables before the first row is sealed, and whoever only reads must not make their folder.
    let store = PrefixStore::new(LocalFileSystem::new_with_prefix(source.folder())?, TABLES);
    RuntimeEnvBuilder::new()
        .with_object_store_registry(Arc::new(OnlyOurTables(Arc::new(store))))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
        .with_metadata_cache_limit(METADATA_CACHE)
        .build_arc()
}

/// The name under which files are reached.
fn url() -> Result<ObjectStoreUrl> {
    ObjectStoreUrl::parse("faultline://tables")
}

/// Knows the files of our tables, and no other place.
#[derive(Debug)]
struct OnlyOurTables(Arc<dyn ObjectStore>);

impl ObjectStoreRegistry for OnlyOurTables {
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
