//! The tables, their columns, and the version of the schema.
//!
//! The columns are declared in `rows/`, one list for each table; everything here is derived from those lists.

use crate::rows::{EventCountRows, EventRows, RejectRows, RequestRows, TrafficRows};
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
    /// The numbers of events by time and group. They are derived from `events` and are not in the WAL.
    EventCounts,
}

impl Table {
    /// All tables. The index of a table is its number in the WAL. A derived table comes after its source.
    pub const ALL: [Self; 5] =
        [Self::Events, Self::Traffic, Self::Rejects, Self::Requests, Self::EventCounts];
    /// The tables whose rows are in the WAL, in the order of [`Self::ALL`].
    pub const IN_WAL: [Self; 4] = [Self::Events, Self::Traffic, Self::Rejects, Self::Requests];

    /// Returns the table whose rows in the WAL this table is made of: the table itself, unless it is derived.
    #[must_use]
    pub const fn source(self) -> Self {
        match self {
            Self::EventCounts => Self::Events,
            Self::Events | Self::Traffic | Self::Rejects | Self::Requests => self,
        }
    }

    /// Returns true if the table is derived from another one.
    #[must_use]
    pub const fn is_derived(self) -> bool {
        self as usize != self.source() as usize
    }

    /// Returns the name, as in SQL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Traffic => "traffic",
            Self::Rejects => "rejects",
            Self::Requests => "requests",
            Self::EventCounts => "event_counts",
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
            Self::EventCounts => "The number of events by time, group, version and environment",
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
            Self::EventCounts => EventCountRows::COLUMNS,
        }
    }

    /// Returns the Arrow schema of the table, as the WAL and the buffer hold it.
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; Table::ALL.len()]> =
            LazyLock::new(|| Table::ALL.map(of_columns));
        Arc::clone(&SCHEMAS[self as usize])
    }
}

fn of_columns(table: Table) -> SchemaRef {
    let field = |column: &Column| Field::new(column.name, (column.data_type)(), column.nullable);
    Arc::new(Schema::new(table.columns().iter().map(field).collect::<Vec<_>>()))
}
