//! The schema of a Delta table, and the addition of new columns to a table of an older version.
//!
//! Invariants: columns are only added, and an added column is nullable, so that files and WAL records without it can be
//! read. Columns of a newer version stay in the table; this version writes nothing into them.

use super::layout;
use crate::schema::Table;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{Field, SchemaRef};
use arrow::error::ArrowError;
use deltalake_core::DeltaTableError;
use deltalake_core::kernel::engine::arrow_conversion::TryIntoKernel;
use deltalake_core::kernel::{Metadata, MetadataExt, StructField, StructType};
use deltalake_core::protocol::DeltaOperation;
use deltalake_core::table::state::DeltaTableState;
use std::collections::HashMap;
use std::sync::Arc;

/// The time for which the Delta log names files that were removed. Every checkpoint names them, so the time is short; a
/// file that is forgotten before it is deleted is cleaned up as a file that no commit names.
const REMOVED_FOR: &str = "interval 2 hours";
/// The time for which old versions of a table can be read.
const VERSIONS_FOR: &str = "interval 1 days";

/// Returns the columns, each with its description.
pub(super) fn columns(table: Table) -> Result<Vec<StructField>, ArrowError> {
    let schema = layout::table_schema(table);
    let about = |name: &str| table.columns().iter().find(|column| column.name == name).map(|c| c.about);
    let field = |field: &Arc<Field>| {
        let comment = about(field.name()).unwrap_or("The day of the row's time, UTC: the partition");
        let commented = HashMap::from([("comment".to_owned(), comment.to_owned())]);
        (&field.as_ref().clone().with_metadata(commented)).try_into_kernel()
    };
    schema.fields().iter().map(field).collect()
}

/// Returns the configuration of a table.
pub(super) fn configuration(table: Table) -> HashMap<String, Option<String>> {
    HashMap::from([
        // Otherwise statistics would stop at the first 32 columns.
        ("delta.dataSkippingStatsColumns".to_owned(), Some(layout::of(table).statistics.join(","))),
        ("delta.deletedFileRetentionDuration".to_owned(), Some(REMOVED_FOR.to_owned())),
        ("delta.logRetentionDuration".to_owned(), Some(VERSIONS_FOR.to_owned())),
    ])
}

/// Returns the table's metadata with the columns that it lacks, or `None` when it has them all.
pub(super) fn new_columns(
    table: Table,
    state: &DeltaTableState,
) -> Result<Option<Metadata>, DeltaTableError> {
    let known = state.schema();
    let ours = columns(table)?;
    let added: Vec<StructField> =
        ours.into_iter().filter(|field| known.field(field.name()).is_none()).map(nullable).collect();
    if added.is_empty() {
        return Ok(None);
    }
    let names: Vec<&str> = added.iter().map(|field| field.name().as_str()).collect();
    tracing::info!(table = table.name(), columns = ?names, "an older version made this table; it gets new columns");
    let schema = StructType::try_new(known.fields().cloned().chain(added))?;
    Ok(Some(state.metadata().clone().with_schema(&schema)?))
}

fn nullable(mut field: StructField) -> StructField {
    field.nullable = true;
    field
}

/// Returns the operation that a commit of new columns records.
pub(super) fn operation(table: Table) -> Result<DeltaOperation, ArrowError> {
    Ok(DeltaOperation::AddColumn { fields: columns(table)? })
}

/// Converts a batch of an older or newer version to exactly the columns of a schema.
///
/// # Errors
/// Fails when a column has another type, or when a column that must not be null is missing.
pub fn adapted(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    if batch.schema_ref() == schema {
        return Ok(batch);
    }
    let column = |field: &Arc<Field>| -> ArrayRef {
        let column = batch.column_by_name(field.name()).cloned();
        column.unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows()))
    };
    let columns = schema.fields().iter().map(column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, Int64Array};
    use arrow::datatypes::{DataType, Schema};

    /// A batch of an older version lacks a column, and one of a newer version has one more.
    #[test]
    fn a_batch_of_another_version_gets_exactly_the_columns() {
        let number = |name, is_nullable| Field::new(name, DataType::Int64, is_nullable);
        let theirs = Arc::new(Schema::new(vec![number("newer", true), number("both", false)]));
        let column = |value| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
        let batch = RecordBatch::try_new(theirs, vec![column(1), column(2)]).unwrap();
        let ours =
            |is_nullable| Arc::new(Schema::new(vec![number("both", false), number("added", is_nullable)]));
        let result = adapted(batch.clone(), &ours(true)).unwrap();
        assert_eq!(result.column(0).as_ref(), column(2).as_ref());
        assert!(result.num_columns() == 2 && result.column(1).is_null(0));
        assert!(adapted(batch, &ours(false)).is_err(), "an added column must be nullable");
    }
}
