//! Builds Arrow batches from rows, with one builder for each table.
//!
//! A table is declared once, in one list of columns: the name, the kind of column, the source of the value, and a
//! description. The schema, the builder and the documentation are all derived from that list, so that **adding a column
//! takes one line**.
//!
//! Invariant: rows are appended as a whole, so all columns of a table have the same length.

pub mod column;
pub(crate) mod event_counts;
mod events;
mod name;
mod rejects;
mod requests;
mod traffic;

pub use event_counts::{BUCKET_US, EventCountRow, EventCountRows, OLD_BUCKET_US, SHORT_BUCKETS_FOR_US};
pub use events::{EventRow, EventRows, Relation};
pub use rejects::{Reject, RejectRows};
pub(crate) use requests::without_call_identities;
pub use requests::{Entry, EntryKind, KeyedResponse, ReadPosition, RequestColumns, RequestRow, RequestRows};
pub use traffic::{BUCKET_BOUNDS_US, TrafficRow, TrafficRows};

/// Declares a table: its builder, and the description that schemas are made of.
///
/// A column is `name: Kind = value, optional, "about";`, or `always` instead of `optional` when it is never null. The
/// value is an expression over the row that gives an `Option` of what the kind takes.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $vis:vis $rows:ident($row:ident: $row_type:ty, $table:expr) {
            $( $name:ident: $kind:ty = $value:expr, $nullable:ident, $about:literal; )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Default)]
        $vis struct $rows {
            length: usize,
            $( $name: $kind, )+
        }

        impl $rows {
            /// The columns, in order.
            $vis const COLUMNS: &'static [$crate::schema::Column] = &[
                $( $crate::schema::Column {
                    name: stringify!($name),
                    nullable: $crate::rows::nullable!($nullable),
                    about: $about,
                    data_type: <$kind as $crate::rows::column::Kind>::data_type,
                    is_json: <$kind as $crate::rows::column::Kind>::IS_JSON,
                }, )+
            ];

            /// Appends one row.
            $vis fn push(&mut self, $row: $row_type) {
                use $crate::rows::column::Kind as _;
                $( self.$name.push($value); )+
                self.length += 1;
            }

            /// Returns the number of rows.
            #[must_use]
            $vis fn len(&self) -> usize {
                self.length
            }

            /// True when there is none.
            #[must_use]
            $vis fn is_empty(&self) -> bool {
                self.length == 0
            }

            /// The rows as one batch; the builder is empty afterwards.
            ///
            /// # Errors
            /// When columns and schema disagree, which would be a defect of this library.
            $vis fn finish(&mut self) -> Result<arrow::array::RecordBatch, arrow::error::ArrowError> {
                use $crate::rows::column::Kind as _;
                self.length = 0;
                let columns = vec![ $( self.$name.finish(), )+ ];
                arrow::array::RecordBatch::try_new($table.schema(), columns)
            }
        }
    };
}

/// Parses the word that tells whether a column may be null.
macro_rules! nullable {
    (optional) => {
        true
    };
    (always) => {
        false
    };
}

pub(crate) use {nullable, table};

#[cfg(test)]
mod tests;
