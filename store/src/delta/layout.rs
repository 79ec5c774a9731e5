//! The layout of each table on disk: the day it is partitioned by, its sort order, and its statistics for skipping
//! files.
//!
//! The figures behind the order, the row groups and the compression are in `benches/RESULTS.md`.

use crate::schema::{Column, Table};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::{Arc, LazyLock};

/// The partition column: the day of a row's time, UTC.
pub const PARTITION: &str = "date";

/// The layout of a table on disk.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The column whose day is the partition.
    pub time: &'static str,
    /// The sort order inside a file: ascending, nulls first.
    pub order: &'static [&'static str],
    /// The columns with a bloom filter, for look-ups of a single value.
    pub blooms: &'static [&'static str],
    /// The columns with minimum and maximum in the Delta log.
    pub statistics: &'static [&'static str],
    /// The columns whose values rarely recur, so that a dictionary would not help.
    pub unique: &'static [&'static str],
    /// True if rows that agree in the whole sort order are combined into one. Numbers are added up; the sort order names
    /// all other columns, except those that `event_counts::combined` knows.
    pub sums: bool,
}

impl Layout {
    /// Returns true if rows are sorted by time first. In all other orders, the time comes last.
    pub(super) fn is_time_first(&self) -> bool {
        self.order.first() == Some(&self.time)
    }

    /// Returns the columns of the sort order in front of the time if that comes last, and otherwise all of them.
    pub(super) fn group(&self) -> &'static [&'static str] {
        if self.is_time_first() { self.order } else { &self.order[..self.order.len() - 1] }
    }
}

/// Returns the layout of a table on disk.
#[must_use]
pub const fn of(table: Table) -> &'static Layout {
    match table {
        Table::Events => &EVENTS,
        Table::Traffic => &TRAFFIC,
        Table::Rejects => &REJECTS,
        Table::Requests => &REQUESTS,
        Table::EventCounts => &EVENT_COUNTS,
    }
}

const EVENTS: Layout = Layout {
    time: "time",
    order: &["service", "canonical", "operation", "fingerprint", "time"],
    blooms: &["trace_id", "fingerprint"],
    statistics: &[
        "time",
        "ingested_at",
        "canonical",
        "category",
        "service",
        "operation",
        "duration_us",
        "quota_level",
        "token_hash",
        "supersedes",
    ],
    unique: &[
        "event_id",
        "request_id",
        "trace_id",
        "span_id",
        "duration_us",
        "details",
        "attributes",
        "duplicate_of",
        "supersedes",
    ],
    sums: false,
};

const TRAFFIC: Layout = Layout {
    time: "minute",
    order: &["minute", "service", "environment", "operation", "dialect", "outcome", "span_kind", "source"],
    blooms: &[],
    statistics: &["minute", "service", "operation", "outcome", "calls", "failures"],
    unique: &[],
    sums: true,
};

const REJECTS: Layout = Layout {
    time: "time",
    order: &["time"],
    blooms: &[],
    statistics: &["time", "source", "reason"],
    unique: &["sample"],
    sums: false,
};

const REQUESTS: Layout = Layout {
    time: "time",
    order: &["time"],
    blooms: &[],
    statistics: &["time"],
    unique: &["key", "content", "response", "identities"],
    sums: false,
};

/// The bucket comes last, so that buckets can be made longer without sorting again.
const EVENT_COUNTS: Layout = Layout {
    time: "bucket",
    order: &[
        "service",
        "canonical",
        "operation",
        "fingerprint",
        "category",
        "dialect",
        "template",
        "kind",
        "hidden",
        "fault",
        "service_version",
        "environment",
        "bucket",
    ],
    blooms: &[],
    statistics: &["bucket", "service", "canonical", "category", "operation", "kind"],
    unique: &["newest_event_id"],
    sums: true,
};

/// Returns the schema of a table's files: that of the WAL, with plain texts in place of dictionaries.
#[must_use]
pub fn file_schema(table: Table) -> SchemaRef {
    static SCHEMAS: LazyLock<[SchemaRef; Table::ALL.len()]> =
        LazyLock::new(|| Table::ALL.map(|table| Arc::new(plain(table.columns()))));
    Arc::clone(&SCHEMAS[table as usize])
}

/// Returns the public schema of a table: that of its files, and the partition column.
#[must_use]
pub fn table_schema(table: Table) -> SchemaRef {
    let mut fields: Vec<_> = file_schema(table).fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(PARTITION, DataType::Date32, false)));
    Arc::new(Schema::new(fields))
}

fn plain(columns: &[Column]) -> Schema {
    let field = |column: &Column| Field::new(column.name, decoded(&(column.data_type)()), column.nullable);
    Schema::new(columns.iter().map(field).collect::<Vec<_>>())
}

/// Returns a type without its dictionaries.
fn decoded(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => (**values).clone(),
        DataType::List(item) => {
            let plain = Field::new(item.name(), decoded(item.data_type()), item.is_nullable());
            DataType::List(Arc::new(plain))
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::event_counts::COMBINED;

    /// Every name in a layout must be a column, and the sort order of a summed table must leave only numbers.
    #[test]
    fn layouts_name_columns_that_exist() {
        for table in Table::ALL {
            let (layout, schema) = (of(table), file_schema(table));
            let named = [layout.order, layout.blooms, layout.statistics, layout.unique, &[layout.time]];
            for name in named.into_iter().flatten() {
                assert!(schema.field_with_name(name).is_ok(), "{} has no column {name}", table.name());
            }
            let is_time_last = layout.order.last() == Some(&layout.time);
            assert!(is_time_last || layout.is_time_first(), "{}", table.name());
            let rest = schema.fields().iter().filter(|field| !layout.order.contains(&field.name().as_str()));
            for field in rest.filter(|_| layout.sums) {
                let is_combined = COMBINED.contains(&field.name().as_str());
                assert!(is_combined || field.data_type() == &DataType::Int64, "{}", field.name());
            }
        }
    }
}
