//! `information_schema.tables` and `.columns` as PostgreSQL has them: without system tables, and with PostgreSQL type names.

use crate::engine::{CATALOG, SCHEMA};
use crate::types;
use arrow::array::{Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field};
use arrow_pg::datatypes::into_pg_type;
use async_trait::async_trait;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::{Result, plan_datafusion_err};
use datafusion::datasource::{MemTable, TableType};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

const NAME: &str = "information_schema";
const TABLES: &str = "tables";
const COLUMNS: &str = "columns";

/// Registers the schema in the catalog with the tables that it describes.
pub(super) async fn register(context: &SessionContext, catalog: &Arc<dyn CatalogProvider>) -> Result<()> {
    let public = catalog.schema(SCHEMA).ok_or_else(|| plan_datafusion_err!("there is no schema"))?;
    let mut tables_by_name = Vec::new();
    let mut names = public.table_names();
    names.sort();
    for name in names {
        if let Some(table) = public.table(&name).await? {
            tables_by_name.push((name, table));
        }
    }
    let state = context.state();
    let inner = InformationSchemaProvider::new(Arc::clone(state.catalog_list()))
        .with_table_functions(state.table_functions().clone());
    let schema =
        InformationSchema { inner, tables: tables(&tables_by_name)?, columns: columns(&tables_by_name)? };
    catalog.register_schema(NAME, Arc::new(schema))?;
    Ok(())
}

#[derive(Debug)]
struct InformationSchema {
    inner: InformationSchemaProvider,
    tables: Arc<dyn TableProvider>,
    columns: Arc<dyn TableProvider>,
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        self.inner.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match name {
            TABLES => Ok(Some(Arc::clone(&self.tables))),
            COLUMNS => Ok(Some(Arc::clone(&self.columns))),
            _ => self.inner.table(name).await,
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.inner.table_exist(name)
    }
}

type NamedTable = (String, Arc<dyn TableProvider>);

fn tables(tables_by_name: &[NamedTable]) -> Result<Arc<dyn TableProvider>> {
    let kind = |table: &Arc<dyn TableProvider>| match table.table_type() {
        TableType::View => "VIEW",
        TableType::Base | TableType::Temporary => "BASE TABLE",
    };
    let count = tables_by_name.len();
    let names = tables_by_name.iter().map(|(name, _)| name.as_str());
    let kinds = tables_by_name.iter().map(|(_, table)| kind(table));
    let rows = RecordBatch::try_from_iter([
        ("table_catalog", same(CATALOG, count)),
        ("table_schema", same(SCHEMA, count)),
        ("table_name", Arc::new(StringArray::from_iter_values(names))),
        ("table_type", Arc::new(StringArray::from_iter_values(kinds))),
    ])?;
    table(rows)
}

fn columns(tables_by_name: &[NamedTable]) -> Result<Arc<dyn TableProvider>> {
    let rows: Vec<(&str, i32, Field)> = tables_by_name
        .iter()
        .flat_map(|(name, table)| {
            let fields = table.schema().fields().clone();
            (1..)
                .zip(fields.iter().map(|field| field.as_ref().clone()).collect::<Vec<_>>())
                .map(move |(position, field)| (name.as_str(), position, field))
        })
        .collect();
    let count = rows.len();
    let text = |of: fn(&Field) -> String| {
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, _, field)| of(field)))) as _
    };
    let number = |of: fn(&DataType) -> Option<i32>| {
        Arc::new(rows.iter().map(|(_, _, field)| of(field.data_type())).collect::<Int32Array>()) as _
    };
    let nulls = || Arc::new((0..count).map(|_| None::<&str>).collect::<StringArray>()) as _;
    let rows = RecordBatch::try_from_iter_with_nullable([
        ("table_catalog", same(CATALOG, count), false),
        ("table_schema", same(SCHEMA, count), false),
        ("table_name", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))) as _, false),
        ("column_name", text(|field| field.name().clone()), false),
        (
            "ordinal_position",
            Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Int32Array>()) as _,
            false,
        ),
        ("column_default", nulls(), true),
        ("is_nullable", text(|field| if field.is_nullable() { "YES" } else { "NO" }.to_owned()), false),
        ("data_type", text(|field| type_name(field.data_type())), false),
        ("character_maximum_length", number(|_| None), true),
        ("character_octet_length", number(|_| None), true),
        ("numeric_precision", number(precision), true),
        ("numeric_precision_radix", number(|data_type| precision(data_type).map(|_| 2)), true),
        (
            "numeric_scale",
            number(|data_type| precision(data_type).filter(|_| data_type.is_integer()).map(|_| 0)),
            true,
        ),
        ("datetime_precision", number(|data_type| data_type.is_temporal().then_some(6)), true),
        ("interval_type", nulls(), true),
        ("udt_catalog", same(CATALOG, count), false),
        ("udt_schema", same("pg_catalog", count), false),
        ("udt_name", text(|field| udt_name(field.data_type())), false),
        ("is_updatable", same("NO", count), false),
    ])?;
    table(rows)
}

fn table(rows: RecordBatch) -> Result<Arc<dyn TableProvider>> {
    Ok(Arc::new(MemTable::try_new(rows.schema(), vec![vec![rows]])?))
}

fn same(text: &str, count: usize) -> Arc<dyn arrow::array::Array> {
    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, count)))
}

/// Returns the name of a type in the SQL standard.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::List(_) | DataType::LargeList(_) => "ARRAY".to_owned(),
        DataType::Timestamp(_, None) => "timestamp without time zone".to_owned(),
        other => types::postgres_name(other),
    }
}

/// Returns PostgreSQL's own name of a type.
fn udt_name(data_type: &DataType) -> String {
    let data_type = match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    into_pg_type(data_type).map_or_else(|_| "text".to_owned(), |wire| wire.name().to_owned())
}

/// Returns the number of bits of a numeric type.
fn precision(data_type: &DataType) -> Option<i32> {
    Some(match data_type {
        DataType::Int16 => 16,
        DataType::Int32 => 32,
        DataType::Int64 => 64,
        DataType::Float32 => 24,
        DataType::Float64 => 53,
        _ => return None,
    })
}
