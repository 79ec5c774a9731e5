//! The storage: the schema, the write-ahead log (WAL), the buffer of recent records, and the Delta tables.
//!
//! # A tour
//!
//! 1. [`rows`] takes events while they are still in the classifier's hands and builds Arrow columns of them.
//! 2. [`codec`] turns the batches of a request into the bytes of one log record.
//! 3. [`wal`] makes records durable: once it acknowledges a record, the record survives a kill and a power failure.
//! 4. [`hot`] keeps the newest records in memory, as a snapshot that readers share.
//! 5. [`maintenance`] flushes them into the tables of the [`delta`], and keeps those small, few and young.
//! 6. [`snapshot`] is a consistent view of a table: its files, and the buffered rows.
//!
//! [`clock`] says whether it is certain what time it is; [`check`] verifies all of it, and [`backup`] copies it while it is used.
//!
//! [`Table`] lists the tables; [`DataDirectory`] knows the folders.
//!
//! # What is not here
//!
//! No sockets, no clock but for measuring, no SQL.

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
pub mod rows;
pub mod schema;
pub mod snapshot;
pub mod wal;

pub use directory::{DataDirectory, DirectoryError, TABLES, write_whole};
pub use lock::{DirectoryLock, LockError};
pub use schema::Table;
