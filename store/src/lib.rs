//! The storage: the schema, the write-ahead log (WAL), the buffer of recent records, and the Delta tables.
//!
//! # A tour
//!
//! 1. [`rows`] takes events while the classifier still holds them, and builds Arrow columns from them.
//! 2. [`codec`] encodes the batches of a request as the bytes of one WAL record.
//! 3. [`wal`] makes records durable: once it acknowledges a record, the record survives a kill and a power failure.
//! 4. [`hot`] keeps the newest records in memory, as a snapshot that readers share.
//! 5. [`maintenance`] flushes them into the [`delta`] tables, and compacts these and applies their retention.
//! 6. [`snapshot`] is a consistent view of a table: its files, and the buffered rows.
//!
//! [`metrics`] declares and reports the metrics of all these.
//!
//! [`clock`] decides whether the wall clock can be trusted; [`check`] verifies all data, and [`backup`] copies it while
//! it is in use.
//!
//! [`Table`] lists the tables; [`DataDirectory`] knows the folders.
//!
//! # What is not here
//!
//! This crate has no sockets and no SQL, and reads clocks only to measure time.

pub mod backup;
pub mod check;
pub mod clock;
pub mod codec;
pub mod delta;
mod directory;
pub mod disk;
pub mod hot;
pub mod json;
mod lock;
pub mod maintenance;
pub mod metrics;
pub mod rows;
pub mod schema;
pub mod snapshot;
pub mod wal;

pub use directory::{DataDirectory, DirectoryError, TABLES, write_whole};
pub use lock::{DirectoryLock, LockError};
pub use schema::Table;
