//! The table `columns`: a sentence about every column of every table and view, so that the documentation can be queried.

use super::{STORED_TABLES, codes};
use crate::{types, views};
use arrow::array::{BooleanArray, Int32Array, RecordBatch, StringArray};
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider};
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use std::sync::Arc;
use store::delta::layout::PARTITION;

pub(super) const NAME: &str = "columns";
pub(super) const ABOUT: &str = "A description of each column of every table and view";

/// The description of the partition column.
pub(crate) const DATE_COLUMN_ABOUT: &str =
    "The day of the row's time, in UTC; a filter on it skips the files of other days";

const COLUMNS: [(&str, &str); 6] = [
    ("table_name", "The name of the table or view"),
    ("column_name", "The name of the column"),
    ("position", "The position of the column in the table, from 1"),
    ("data_type", "The type of the column, by its PostgreSQL name"),
    ("is_nullable", "Whether the column may be null"),
    ("about", "What the column holds"),
];

/// Returns the description of a column.
#[must_use]
pub fn about(table: &str, column: &str) -> Option<&'static str> {
    let named = |columns: &[(&str, &'static str)]| {
        columns.iter().find(|(name, _)| *name == column).map(|found| found.1)
    };
    let stored = STORED_TABLES.into_iter().find(|stored| stored.name() == table);
    match (table, stored) {
        (_, Some(_)) if column == PARTITION => Some(DATE_COLUMN_ABOUT),
        (_, Some(stored)) => {
            stored.columns().iter().find(|known| known.name == column).map(|known| known.about)
        }
        (codes::NAME, _) => named(&codes::COLUMNS),
        (NAME, _) => named(&COLUMNS),
        _ => views::find(table).and_then(|view| view.about_column(column)),
    }
}

/// Registers the table in the schema that has the tables it describes.
pub(crate) async fn register(schema: &MemorySchemaProvider) -> Result<()> {
    let mut rows = Vec::new();
    for table in super::names() {
        let Some(provider) = schema.table(table).await? else { continue };
        for (position, field) in provider.schema().fields().iter().enumerate() {
            let position = i32::try_from(position + 1).unwrap_or(i32::MAX);
            let (name, data_type) = (field.name().clone(), types::postgres_name(field.data_type()));
            let about = about(table, &name);
            rows.push((table, name, position, data_type, field.is_nullable(), about));
        }
    }
    for ((name, about), position) in COLUMNS.into_iter().zip(1..) {
        let data_type = match name {
            "position" => "integer",
            "is_nullable" => "boolean",
            _ => "text",
        };
        rows.push((NAME, name.to_owned(), position, data_type.to_owned(), name == "about", Some(about)));
    }
    let batch = RecordBatch::try_from_iter_with_nullable([
        (COLUMNS[0].0, Arc::new(rows.iter().map(|row| Some(row.0)).collect::<StringArray>()) as _, false),
        (COLUMNS[1].0, Arc::new(rows.iter().map(|row| Some(&row.1)).collect::<StringArray>()) as _, false),
        (COLUMNS[2].0, Arc::new(rows.iter().map(|row| Some(row.2)).collect::<Int32Array>()) as _, false),
        (COLUMNS[3].0, Arc::new(rows.iter().map(|row| Some(&row.3)).collect::<StringArray>()) as _, false),
        (COLUMNS[4].0, Arc::new(rows.iter().map(|row| Some(row.4)).collect::<BooleanArray>()) as _, false),
        (COLUMNS[5].0, Arc::new(rows.iter().map(|row| row.5).collect::<StringArray>()) as _, true),
    ])?;
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
    schema.register_table(NAME.to_owned(), Arc::new(table))?;
    Ok(())
}
