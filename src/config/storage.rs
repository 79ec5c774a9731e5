//! Settings of the store: sizes of the write-ahead log and the buffer, flushing, retention and vacuum.

use crate::cli::units;
use std::time::Duration;
use store::delta::Retention;

/// The flags that bound what the store uses of the machine, and say how long it keeps data.
#[derive(Debug, clap::Args)]
pub(crate) struct StorageArgs {
    /// Disk space for the write-ahead log; while it is full, ingest requests are rejected with a time to retry.
    #[arg(long, value_name = "BYTES", default_value = "16GiB", value_parser = units::parse_wal_bytes, env = "FAULTLINE_WAL_BYTES")]
    pub(crate) wal_bytes: u64,
    /// Memory for rows that are not yet flushed to Parquet.
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = units::parse_bytes, env = "FAULTLINE_BUFFER_BYTES")]
    pub(crate) buffer_bytes: u64,
    /// Flush rows from the write-ahead log to Parquet when this many bytes of it are unflushed.
    #[arg(long, value_name = "BYTES", default_value = "32MiB", value_parser = units::parse_bytes, env = "FAULTLINE_FLUSH_BYTES")]
    pub(crate) flush_bytes: u64,
    /// Flush rows from the write-ahead log to Parquet when the oldest unflushed row is this old.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::parse_duration, env = "FAULTLINE_FLUSH_AFTER")]
    pub(crate) flush_after: Duration,
    /// Retention of the table events: an age, a size, both as in 400d,50GiB, or forever.
    #[arg(long, value_name = "RETENTION", default_value = "400d", value_parser = units::parse_retention, env = "FAULTLINE_KEEP_EVENTS")]
    pub(crate) keep_events: Retention,
    /// Retention of the table traffic: an age, a size, both as in 400d,50GiB, or forever.
    #[arg(long, value_name = "RETENTION", default_value = "400d", value_parser = units::parse_retention, env = "FAULTLINE_KEEP_TRAFFIC")]
    pub(crate) keep_traffic: Retention,
    /// Retention of the table rejects: an age, a size, both as in 400d,50GiB, or forever.
    #[arg(long, value_name = "RETENTION", default_value = "30d", value_parser = units::parse_retention, env = "FAULTLINE_KEEP_REJECTS")]
    pub(crate) keep_rejects: Retention,
    /// Time that files removed from a table stay on disk, so that running queries can finish reading them.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = units::parse_duration, env = "FAULTLINE_VACUUM_GRACE")]
    pub(crate) vacuum_grace: Duration,
}
