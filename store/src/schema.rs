//! The tables, their columns, and the version of the schema.
//!
//! The columns are declared in `rows/`, one list for each table; everything here is derived from those lists.

use crate::rows::{EventRows, RejectRows, RequestRows, TrafficRows};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::{Arc, LazyLock};

/// The version of the schema. It increases by one whenever a column is added, and is part of every frame of the WAL.
pub const VERSION: u16 = 4;

/// One column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The name of the column.
    pub name: &'static str,
    /// True if a cell may be null.
    pub nullable: bool,
    /// The description of the column.
    pub about: &'static str,
    /// The Arrow type of the column.
    pub data_type: fn() -> DataType,
    /// True if the cells are JSON text.
    pub is_json: bool,
}

/// A stored table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// Every error, warning and audit event.
    Events,
    /// The numbers of calls by minute and outcome.
    Traffic,
    /// A sample of records that could not be read.
    Rejects,
    /// The state that requests leave besides their rows: responses to requests with an `Idempotency-Key`, read
    /// positions and identities. It cannot be queried.
    Requests,
}

impl Table {
    /// All tables. The index of a table is its number in the WAL.
    pub const ALL: [Self; 4] = [Self::Events, Self::Traffic, Self::Rejects, Self::Requests];

    /// Returns the name, as in SQL.
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
            Self::Requests => {
                "Responses to requests with an Idempotency-Key, read positions and identities; internal"
            }
        }
    }

    /// Returns the columns, in order.
    #[must_use]
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Events => EventRows::COLUMNS,
            Self::Traffic => TrafficRows::COLUMNS,
            Self::Rejects => RejectRows::COLUMNS,
            Self::Requests => RequestRows::COLUMNS,
        }
    }

    /// Returns the Arrow schema of the table, as the WAL and the buffer hold it.
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
