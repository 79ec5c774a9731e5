//! A catalog that lists its schemas and tables sorted by name.
//!
//! PostgreSQL clients ask for the number (`oid`) of a table, and then for its columns by that number. Each worker process
//! assigns these numbers in the order in which names are listed, so the order must be the same in every worker.
//! DataFusion's own catalog lists names in hash table order, which differs from process to process.

use async_trait::async_trait;
use datafusion::catalog::{
    CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider,
};
use datafusion::common::Result;
use datafusion::logical_expr::TableType;
use std::sync::Arc;

/// A catalog that lists its schemas sorted by name.
#[derive(Debug, Default)]
pub(super) struct OrderedCatalog(MemoryCatalogProvider);

impl CatalogProvider for OrderedCatalog {
    fn schema_names(&self) -> Vec<String> {
        sorted(self.0.schema_names())
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.0.schema(name)
    }

    fn register_schema(
        &self,
        name: &str,
        schema: Arc<dyn SchemaProvider>,
    ) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.0.register_schema(name, schema)
    }
}

/// A schema that lists its tables sorted by name.
#[derive(Debug)]
pub(super) struct OrderedSchema(pub(super) Arc<MemorySchemaProvider>);

#[async_trait]
impl SchemaProvider for OrderedSchema {
    fn table_names(&self) -> Vec<String> {
        sorted(self.0.table_names())
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.0.table(name).await
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        self.0.table_type(name).await
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name)
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}
