//! Selects the files that can contain matching rows, by the statistics in the Delta log of the table.

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Int64Array, StringArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;
use store::delta::files::DataFile;
use store::delta::layout::PARTITION;
use store::delta::statistics::Statistics;

/// Returns the files that can hold rows for which the predicate is true.
pub(super) fn prune_files(
    schema: &SchemaRef,
    predicate: Option<&Arc<dyn PhysicalExpr>>,
    files: &[Arc<DataFile>],
) -> Result<Vec<Arc<DataFile>>> {
    let Some(predicate) = predicate else { return Ok(files.to_vec()) };
    let pruning = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema));
    let Ok(pruning) = pruning.try_build(Arc::clone(predicate)) else {
        return Ok(files.to_vec());
    };
    if pruning.always_true() {
        return Ok(files.to_vec());
    }
    let fits = pruning.prune(&FileStatistics { schema, files })?;
    Ok(files.iter().zip(fits).filter(|(_, fits)| *fits).map(|(file, _)| Arc::clone(file)).collect())
}

/// The statistics of the files in the Delta log.
struct FileStatistics<'f> {
    schema: &'f SchemaRef,
    files: &'f [Arc<DataFile>],
}

impl FileStatistics<'_> {
    /// Returns the lower or the upper bounds of a column; a file without statistics for it has none.
    fn bounds(&self, column: &Column, side: fn(&Statistics) -> &Map<String, Value>) -> Option<ArrayRef> {
        let name = column.name();
        if name == PARTITION {
            return Some(Arc::new(self.files.iter().map(|file| Some(file.day)).collect::<Date32Array>()));
        }
        let data_type = self.schema.field_with_name(name).ok()?.data_type();
        let values = self.files.iter().map(|file| side(&file.statistics).get(name));
        let bounds: ArrayRef = match data_type {
            DataType::Timestamp(..) => {
                let time = |value: &Value| classifier::time::parse(value.as_str()?);
                Arc::new(values.map(|value| value.and_then(time)).collect::<TimestampMicrosecondArray>())
            }
            DataType::Int64 => Arc::new(values.map(|value| value?.as_i64()).collect::<Int64Array>()),
            DataType::Utf8 | DataType::Utf8View => {
                Arc::new(values.map(|value| value?.as_str()).collect::<StringArray>())
            }
            _ => return None,
        };
        cast(&bounds, data_type).ok()
    }
}

impl PruningStatistics for FileStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(column, |statistics| &statistics.min_values)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(column, |statistics| &statistics.max_values)
    }

    fn num_containers(&self) -> usize {
        self.files.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let nulls = self.files.iter().map(|file| file.statistics.null_count.get(column.name())?.as_u64());
        Some(Arc::new(nulls.collect::<UInt64Array>()))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let rows = self.files.iter().map(|file| Some(file.statistics.num_records));
        Some(Arc::new(rows.collect::<UInt64Array>()))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
