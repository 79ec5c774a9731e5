//! Where events are kept: the schema, the write-ahead log, the hot buffer and the lake.
//!
//! # A tour
//!
//! 1. [`rows`] takes events while they are still in the classifier's hands and builds Arrow columns of them.
//! 2. [`codec`] turns the batches of a request into the bytes of one log record.
//! 3. [`log`] makes records durable: when it says yes, they survive a kill and a power failure.
//! 4. [`hot`] keeps the newest records in memory, as a snapshot that readers share.
//! 5. [`keeper`] seals them into the tables of the [`lake`], and keeps those small, few and young.
//! 6. [`snapshot`] shows a table as it is at one moment: its files, and what is not sealed yet.
//!
//! [`clock`] says whether it is certain what time it is; [`check`] verifies all of it, and [`backup`] copies it while it is used.
//!
//! [`Table`] says what is stored; [`DataDirectory`] says where.
//!
//! # What is not here
//!
//! No sockets, no clock but for measuring, no SQL.

pub mod backup;
pub mod check;
pub mod clock;
pub mod codec;
mod directory;
pub mod disk;
pub mod hot;
pub mod json;
pub mod keeper;
pub mod lake;
mod lock;
pub mod log;
pub mod rows;
pub mod schema;
pub mod snapshot;

pub use directory::{DataDirectory, DirectoryError, TABLES, write_whole};
pub use lock::{DirectoryLock, LockError};
pub use schema::Table;
