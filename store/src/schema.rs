//! The tables, their columns, and the version of the schema.
//!
//! The columns themselves stand in `rows/`, one list a table; everything here is derived from those lists.

use crate::rows::{EventRows, RejectRows, RequestRows, TrafficRows};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::{Arc, LazyLock};

/// Grows by one whenever a column is added; stands in every frame of the log.
pub const VERSION: u16 = 3;

/// One column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Whether a cell may be null.
    pub nullable: bool,
    /// The description of the column.
    pub about: &'static str,
    /// Its Arrow type.
    pub data_type: fn() -> DataType,
    /// Its cells are JSON text.
    pub is_json: bool,
}

/// A stored table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// Every error, warning and audit event.
    Events,
    /// Numbers of calls by minute and outcome.
    Traffic,
    /// A sample of what could not be read.
    Rejects,
    /// Answers to requests with an `Idempotency-Key`, so that they are known after a restart; for ourselves only.
    Requests,
}

impl Table {
    /// All of them; the place is the number in the log.
    pub const ALL: [Self; 4] = [Self::Events, Self::Traffic, Self::Rejects, Self::Requests];

    /// The name, as in SQL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Traffic => "traffic",
            Self::Rejects => "rejects",
            Self::Requests => "requests",
        }
    }

    /// Returns the description of the table's rows.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Events => "Every error, warning and audit event",
            Self::Traffic => "The number of calls by minute, service, operation and outcome",
            Self::Rejects => "A sample of the records that could not be read, each with the reason",
            Self::Requests => "Responses to requests with an Idempotency-Key; internal",
        }
    }

    /// The columns, in order.
    #[must_use]
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Events => EventRows::COLUMNS,
            Self::Traffic => TrafficRows::COLUMNS,
            Self::Rejects => RejectRows::COLUMNS,
            Self::Requests => RequestRows::COLUMNS,
        }
    }

    /// The Arrow schema of the table, as the WAL and the buffer hold it.
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; 4]> = LazyLock::new(|| Table::ALL.map(of_columns));
        Arc::clone(&SCHEMAS[self as usize])
    }
}

fn of_columns(table: Table) -> SchemaRef {
    let field = |column: &Column| Field::new(column.name, (column.data_type)(), column.nullable);
    Arc::new(Schema::new(table.columns().iter().map(field).collect::<Vec<_>>()))
}
